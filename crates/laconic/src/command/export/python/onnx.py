def to_onnx(path):
    """Writes the model as ONNX for any numbers of nodes and edges."""
    inputs = torch.rand(3, INPUTS), torch.tensor([[0, 1, 2], [1, 2, 0]]), WEIGHT
    names = ["x", "edge_index", NAME]
    sizes = {"x": {0: "nodes"}, "edge_index": {1: "edges"}, "edge_weight": {0: "edges"}, "logits": {0: "nodes"}}
    sizes = {name: size for name, size in sizes.items() if name in [*names, "logits"]}
    named = {"input_names": names, "output_names": ["logits"], "dynamic_axes": sizes}
    torch.onnx.export(load(), inputs, path, opset_version=17, **named)


if __name__ == "__main__":
    to_onnx(sys.argv[1])
