"""Saves an OGB link dataset for Laconic: `save(dataset, "graph.npz")` of an `ogb.linkproppred.LinkPropPredDataset`."""
import numpy as np


def save(dataset, path):
    graph, split = dataset[0], dataset.get_edge_split()
    arrays = {"edge_index": graph["edge_index"], "num_nodes": [graph["num_nodes"]], "features": graph["node_feat"]}
    for name, role in ("val", "valid"), ("test", "test"):
        of = {key: np.asarray(values) for key, values in split[role].items()}
        if "edge" in of:  # one pool for all edges of a split
            arrays[name + "_edge_index"] = of["edge"].T
            arrays[name + "_neg_edge_index"] = of["edge_neg"].T
        else:  # targets for each edge, its source kept
            arrays[name + "_edge_index"] = np.stack([of["source_node"], of["target_node"]])
            arrays[name + "_neg_targets"] = of["target_node_neg"]
    np.savez(path, **{name: np.asarray(array) for name, array in arrays.items() if array is not None})
