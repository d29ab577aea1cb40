"""Saves PyTorch Geometric's `Data` for Laconic: `save(data, "graph.npz")`."""
import numpy as np


def save(data, path):
    arrays = {"edge_index": data.edge_index, "num_nodes": [data.num_nodes], "features": data.x, "labels": data.y}
    for name in ("edge_weight", "train_mask", "val_mask", "test_mask"):
        arrays[name] = getattr(data, name, None)
    np.savez(path, **{name: np.asarray(array) for name, array in arrays.items() if array is not None})
