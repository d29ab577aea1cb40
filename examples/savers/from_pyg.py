"""Saves PyTorch Geometric's `Data` for Laconic: `save(data, "graph.npz")`, and prints what it leaves out."""
import numpy as np

NAMES = {"edge_index": "edge_index", "edge_weight": "edge_weight", "x": "features", "y": "labels", "n_id": "ids"}
NAMES |= {role + "_mask": role + "_mask" for role in ("train", "val", "test")}  # a column for each of several splits


def save(data, path):
    keys = getattr(data, "keys", None) or vars(data)  # a method, in old versions a list
    held = {key: getattr(data, key) for key in (keys() if callable(keys) else keys)}
    held = {key: value for key, value in held.items() if value is not None and key != "num_nodes"}
    if "edge_index" not in held:  # after ToSparseTensor
        columns, rows, weights = held.pop("adj_t").coo()
        held |= {"edge_index": np.stack([np.asarray(rows), np.asarray(columns)]), "edge_weight": weights}
        held = {key: value for key, value in held.items() if value is not None}
    edges = np.shape(held["edge_index"])[1]
    if "edge_weight" not in held and "edge_attr" in held and np.size(np.asarray(held["edge_attr"])) == edges:
        held["edge_weight"] = np.ravel(np.asarray(held.pop("edge_attr")))  # one number an edge
    if left := [key for key in held if key not in NAMES]:
        print("not saved:", ", ".join(left))
    arrays = {NAMES[key]: np.asarray(value) for key, value in held.items() if key in NAMES}
    if "edge_weight" in arrays:
        arrays["edge_weight"] = arrays["edge_weight"].ravel()
    np.savez(path, num_nodes=np.asarray([data.num_nodes]), **arrays)
