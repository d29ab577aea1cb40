def read_tensors(path):
    """The tensors of a safetensors file; no package of that name is needed."""
    data, kinds = Path(path).read_bytes(), {"F32": torch.float32, "F64": torch.float64}
    start, tensors = 8 + int.from_bytes(data[:8], "little"), {}
    for name, entry in json.loads(data[8:start]).items():
        if name != "__metadata__":
            first, end = entry["data_offsets"]
            values = torch.frombuffer(bytearray(data[start + first : start + end]), dtype=kinds[entry["dtype"]])
            tensors[name] = values.reshape(entry["shape"])
    return tensors


def load(path=Path(__file__).with_name("model.safetensors")):
    """The model with its weights."""
    model = Model()
    model.load_state_dict(read_tensors(path))
    return model.eval()
