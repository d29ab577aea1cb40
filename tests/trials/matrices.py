"""Matrices and arrays: Matrix Market, SciPy, NumPy, single cells (trials 66-68, 77-80)."""
import gzip
import importlib
import os
import sys
import numpy as np
import pandas as pd
import networkx as nx
import scipy.io
import scipy.sparse as sp
from lists import RING
from sample import BARE, IDS, LABEL, N, SPLIT, WEIGHT, X, truth
from trial import Case, Truth, both, trial, write

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "examples", "savers"))
AT = [(IDS.index(a), IDS.index(b)) for a, b in BARE]


def matrix(kind=sp.coo_matrix, dtype=np.float64):
    return kind((np.array(WEIGHT, dtype=dtype), tuple(np.array(AT).T)), shape=(N, N))


def entries(made, base):
    made = made.tocoo()
    return [(int(a) + base, int(b) + base, float(w)) for a, b, w in zip(made.row, made.col, made.data)]


@trial(66, "Matrix Market by scipy: real, symmetric, pattern, integer, skew-symmetric, .gz; nodes beside it")
def market():
    plain, mirrored = matrix(), (matrix() + matrix().T).tocoo()
    scipy.io.mmwrite("plain.mtx", plain)
    yield Case("plain.mtx", truth=Truth(entries(plain, 1), range(1, N + 1)))
    scipy.io.mmwrite("mirrored.mtx", mirrored)  # the writer finds that it is symmetric
    yield Case("mirrored.mtx", truth=Truth(entries(mirrored, 1), range(1, N + 1)))
    with open("mirrored.mtx", "rb") as file, gzip.open("mirrored.mtx.gz", "wb") as packed:
        packed.write(file.read())
    yield Case("mirrored.mtx.gz", truth=Truth(entries(mirrored, 1), range(1, N + 1)))
    scipy.io.mmwrite("pattern.mtx", plain, field="pattern")
    yield Case("pattern.mtx", truth=Truth([row[:2] for row in entries(plain, 1)], range(1, N + 1)))
    whole = (plain * 4).astype(np.int64)
    scipy.io.mmwrite("whole.mtx", whole)
    yield Case("whole.mtx", truth=Truth(entries(whole, 1), range(1, N + 1)))
    skew = (plain - plain.T).tocoo()
    scipy.io.mmwrite("skew.mtx", skew)
    yield Case("skew.mtx", truth=Truth([row for row in entries(skew, 1) if row[2]], range(1, N + 1)))
    pd.DataFrame({"id": IDS, "x": X[:, 0], "label": LABEL, "split": SPLIT}).to_csv("people.csv", index=False)
    yield Case("plain.mtx", "--nodes", "people.csv", truth=truth(x=X[:, :1]))


@trial(67, "the same called .txt")
def market_as_text():
    plain = matrix()
    scipy.io.mmwrite("links.mtx", plain)
    os.rename("links.mtx", "links.txt")
    yield Case("links.txt", truth=Truth(entries(plain, 1), range(1, N + 1)))


@trial(68, "10x matrix.mtx, .h5ad, Pajek .net, sparse6, .sif")
def unread():
    import anndata
    counts = sp.random(30, N, 0.3, format="coo", random_state=1)
    scipy.io.mmwrite("matrix.mtx", counts)
    links = [(f"row/{gene}", f"column/{cell}", count) for gene, cell, count in entries(counts, 1)]
    sides = [f"row/{at + 1}" for at in range(30)] + [f"column/{at + 1}" for at in range(N)]
    kinds = {end: [end.startswith("row"), end.startswith("column")] for end in sides}
    yield Case("matrix.mtx", truth=Truth(links, sides, x=kinds), remedy=["--bipartite", "scanpy.pp.neighbors"],
               follow=lambda: ["matrix.mtx", "--bipartite"])
    anndata.settings.allow_write_nullable_strings = True
    cells = anndata.AnnData(X=X, obs=pd.DataFrame({"cell_type": LABEL}, index=IDS))
    cells.obsp["connectivities"] = matrix(sp.csr_matrix)
    cells.write_h5ad("cells.h5ad")

    def follow():
        saver = importlib.import_module("from_h5ad")
        saver.save(anndata.read_h5ad("cells.h5ad"), "cells.npz", label="cell_type")
        return ["cells.npz"]
    yield Case("cells.h5ad", truth=truth(split=None), remedy=["from_h5ad.py"], follow=follow)
    ring = nx.Graph(RING)

    def listed(made):
        nx.write_edgelist(made, "edges.txt", data=False)
        return ["edges.txt", "--symmetrise"]
    nx.write_pajek(ring, "ring.net")
    nx.write_sparse6(ring, "ring.s6")
    yield Case("ring.net", truth=Truth(both(RING)), remedy=["read_pajek"],
               follow=lambda: listed(nx.Graph(nx.read_pajek("ring.net"))))
    yield Case("ring.s6", truth=Truth(both(RING)), remedy=["read_sparse6"],
               follow=lambda: listed(nx.read_sparse6("ring.s6")))
    write("net.sif", "\n".join(f"{a}\tpp\t{b}" for a, b in RING))

    def sif():
        os.rename("net.sif", "net.txt")
        return ["net.txt", "--header", "no", "--source", "column 1", "--relation", "column 2", "--target", "column 3"]
    yield Case("net.sif", truth=Truth(RING), remedy=["--source", "--target"], follow=sif)
    for name, save in (("ring.graphml", nx.write_graphml), ("ring.gexf", nx.write_gexf), ("ring.gml", nx.write_gml)):
        save(ring, name)
        yield Case(name, truth=Truth(both(RING)))


@trial(77, "scipy save_npz (CSR, CSC, COO); a dense adjacency; roman_empire.npz; DGL's Reddit folder")
def arrays():
    for kind in (sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.csr_array):
        name = f"{kind.__name__}.npz"
        sp.save_npz(name, matrix(kind))
        yield Case(name, truth=Truth(entries(matrix(), 0), range(N)))
    np.savez("dense.npz", adj=matrix().toarray())

    def follow():
        np.savez("sparse.npz", edge_index=np.array(matrix().toarray().nonzero()),
                 edge_weight=matrix().toarray()[matrix().toarray().nonzero()])
        return ["sparse.npz"]
    yield Case("dense.npz", truth=Truth(entries(matrix(), 0), range(N)), remedy=["adj", "edge_index"], follow=follow)
    y = [LABEL[i] == "ok" for i in range(N)]
    masks = {role: np.array([[one == role for one in SPLIT]] * 10) for role in ("train", "val", "test")}
    np.savez("roman_empire.npz", node_features=X, node_labels=np.array(y, dtype=int), edges=np.array(AT),
             **{f"{role}_masks": masks[role] for role in masks})
    y = [str(int(one)) for one in y]
    yield Case("roman_empire.npz", truth=truth(both(AT), range(N), y=y))
    os.mkdir("reddit")
    roles = np.array([{"train": 1, "val": 2, "test": 3}[role] for role in SPLIT])
    np.savez("reddit/reddit_data.npz", feature=X, label=np.array(y, dtype=int), node_types=roles, node_ids=np.arange(N))
    one = matrix(sp.csr_matrix)
    one.data[:] = 1
    sp.save_npz("reddit/reddit_graph.npz", one)
    yield Case("reddit", truth=truth(AT, range(N), y=y))


@trial(78, "npz: edge_index E x 2; masks as index arrays; y one-hot, N x 1")
def plain_npz():
    e, y = np.array(AT).T, np.array([int(word == "ok") for word in LABEL])
    masks = {f"{role}_mask": np.array([one == role for one in SPLIT]) for role in ("train", "val", "test")}
    right = truth(AT, range(N), y=[str(one) for one in y])
    np.savez("column.npz", edge_index=e, x=X, y=y.reshape(-1, 1), **masks)
    yield Case("column.npz", truth=right)

    def follow():
        np.savez("turned.npz", edge_index=e, x=X, y=y, **masks)
        return ["turned.npz"]
    np.savez("rows.npz", edge_index=e.T, x=X, y=y, **masks)
    yield Case("rows.npz", truth=right, remedy=["edge_index", "2"], follow=follow)
    np.savez("places.npz", edge_index=e, x=X, y=y, **{name: np.flatnonzero(mask) for name, mask in masks.items()})
    yield Case("places.npz", truth=right, remedy=["train_mask", f"{N}"], follow=follow)
    np.savez("onehot.npz", edge_index=e, x=X, y=np.eye(2, dtype=int)[y], **masks)
    several = truth(AT, range(N), y=None)
    several.y = None
    yield OneHot("onehot.npz", truth=several, rows=np.eye(2)[y])


class OneHot(Case):
    """Labels with a column a class: several labels a node, each of which is compared."""
    def __init__(self, *words, rows, **more):
        super().__init__(*words, **more)
        self.truth.y = None
        right, plain = self.truth.differences, np.asarray(rows)

        def differences(got):
            same = got["y"] is not None and np.array_equal(np.array(list(got["y"].values())), plain)
            return right({**got, "y": None}) + ([] if same else ["labels differ"])
        self.truth.differences = differences


@trial(79, "npz with train_idx, edge_attr")
def other_names():
    e = np.array(AT).T
    np.savez("data.npz", edge_index=e, x=X, train_idx=np.arange(12), edge_attr=np.array(WEIGHT).reshape(-1, 1))
    yield Case("data.npz", truth=truth(AT, range(N), y=None, split=None), told=["train_idx", "edge_attr"])


@trial(80, "neighbours of single cells by CSV, obs in Parquet")
def cells():
    square = ((X[:, None] - X[None]) ** 2).sum(-1)
    near = np.argsort(square, axis=1)[:, 1:5]
    made = sp.lil_matrix((N, N))
    for i in range(N):
        for j in near[i]:
            made[i, j] = made[j, i] = 1 / (1 + square[i, j])
    made, names = made.tocoo(), [f"AAAC{i}-1" for i in range(N)]
    frame = pd.DataFrame({"source": [names[i] for i in made.row], "target": [names[j] for j in made.col],
                          "weight": made.data.round(6)})
    frame.to_csv("edges.csv", index=False)
    columns = {f"pc{at}": X[:, at] for at in range(4)}
    pd.DataFrame({"cell_type": LABEL, **columns}, index=names).to_parquet("obs.parquet")
    yield Case("edges.csv", "--nodes", "obs.parquet", "--label", "cell_type",
               truth=truth(list(frame.itertuples(index=False, name=None)), names, split=None))
