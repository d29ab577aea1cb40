"""Saves an OGB link dataset for Laconic: `save(dataset, "graph.npz")` of an `ogb.linkproppred.LinkPropPredDataset`.

Prints what it leaves out. Relations (ogbl-wikikg2) are read with `--typed`."""
import numpy as np

READ = {"edge_index", "num_nodes", "node_feat", "edge_weight", "edge_reltype"}


def save(dataset, path):
    graph, split = dataset[0], dataset.get_edge_split()
    arrays = {"edge_index": graph["edge_index"], "num_nodes": [graph["num_nodes"]], "features": graph["node_feat"]}
    for name, key in ("edge_weight", "edge_weight"), ("edge_type", "edge_reltype"):
        if graph.get(key) is not None:
            arrays[name] = np.ravel(graph[key])
    for name, role in ("val", "valid"), ("test", "test"):
        of = {key: np.asarray(values) for key, values in split[role].items()}
        if "edge" in of:  # one pool for all edges of a split
            arrays[name + "_edge_index"] = of["edge"].T
            arrays[name + "_neg_edge_index"] = of["edge_neg"].T
        elif "head" in of:  # triples; of what is set against them, other tails alone
            arrays[name + "_edge_index"] = np.stack([of["head"], of["tail"]])
            arrays[name + "_edge_type"] = of["relation"]
            arrays[name + "_neg_targets"] = of["tail_neg"]
        else:  # targets for each edge, its source kept
            arrays[name + "_edge_index"] = np.stack([of["source_node"], of["target_node"]])
            arrays[name + "_neg_targets"] = of["target_node_neg"]
    if left := sorted(key for key, value in graph.items() if value is not None and key not in READ):
        print("not saved:", ", ".join(left))
    np.savez(path, **{name: np.asarray(array) for name, array in arrays.items() if array is not None})
