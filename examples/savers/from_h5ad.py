"""Saves cells with their neighbours (`scanpy.pp.neighbors`) for Laconic:
`save(anndata.read_h5ad("cells.h5ad"), "cells.npz", label="cell_type")`.

Edges are those of `connectivities` (or `graph="distances"`), features the principal components where they are there,
else `X` (or `features="X_umap"`), `split` a column of train, val (or valid, validation, dev) and test."""
import numpy as np

WORDS = {"train": "train", "training": "train", "test": "test", "testing": "test"}
WORDS |= dict.fromkeys(("val", "valid", "validation", "dev"), "val")


def save(cells, path, label=None, split=None, graph="connectivities", features=None):
    matrix = cells.obsp[graph].tocoo()
    arrays = {"edge_index": np.stack([matrix.row, matrix.col]), "edge_weight": matrix.data, "num_nodes": [cells.n_obs]}
    arrays["ids"] = np.asarray(cells.obs_names, dtype=str)
    features = features or ("X_pca" if "X_pca" in cells.obsm else None)
    values = cells.obsm[features] if features else cells.X
    if hasattr(values, "tocsr"):
        values = values.tocsr()
        arrays.update({"features_" + part: getattr(values, part) for part in ("data", "indices", "indptr", "shape")})
    else:
        arrays["features"] = values
    if not features:
        arrays["feature_names"] = np.asarray(cells.var_names, dtype=str)
    if label:
        classes = cells.obs[label].astype("category").cat
        arrays["labels"], arrays["class_names"] = classes.codes, np.asarray(classes.categories, dtype=str)
    words = cells.obs[split].astype(str).str.lower() if split else None
    for role in ("train", "val", "test") if split else ():
        arrays[role + "_mask"] = words.map(WORDS.get) == role
    if split and (unknown := set(words) - set(WORDS)):
        print("in no part of the split: cells that have", ", ".join(sorted(unknown)))
    print("not saved: columns", ", ".join(name for name in cells.obs if name not in (label, split)) or "none")
    np.savez(path, **{name: np.asarray(array) for name, array in arrays.items()})
