"""Saves a DGL graph of one kind of nodes and edges: `save(graph, "graph.npz")`, and prints what it leaves out."""
import numpy as np

NODES = {"feat": "features", "label": "labels", "_ID": "ids"}
NODES |= {role + "_mask": role + "_mask" for role in ("train", "val", "test")}  # a column for each of several splits
WEIGHTS = ("weight", "w", "edge_weight")


def save(graph, path):
    arrays = {"edge_index": np.stack([np.asarray(ends) for ends in graph.edges()]), "num_nodes": [graph.num_nodes()]}
    arrays.update({name: graph.ndata[key] for key, name in NODES.items() if key in graph.ndata})
    edges = arrays["edge_index"].shape[1]
    one = [key for key in WEIGHTS if key in graph.edata and np.size(np.asarray(graph.edata[key])) == edges]
    if one:
        arrays["edge_weight"] = np.ravel(np.asarray(graph.edata[one[0]]))
    left = [key for key in graph.ndata if key not in NODES] + [key for key in graph.edata if key not in one[:1]]
    if left := [key for key in left if key != "_ID"]:
        print("not saved:", ", ".join(left))
    np.savez(path, **{name: np.asarray(array) for name, array in arrays.items()})
