"""Saves a DGL graph of one kind of nodes and edges for Laconic: `save(graph, "graph.npz")`."""
import numpy as np

NODES = {"feat": "features", "label": "labels"} | {role + "_mask": role + "_mask" for role in ("train", "val", "test")}


def save(graph, path):
    arrays = {"edge_index": np.stack([np.asarray(ends) for ends in graph.edges()]), "num_nodes": [graph.num_nodes()]}
    arrays.update({name: graph.ndata[key] for key, name in NODES.items() if key in graph.ndata})
    if "weight" in graph.edata:
        arrays["edge_weight"] = graph.edata["weight"]
    np.savez(path, **{name: np.asarray(array) for name, array in arrays.items()})
