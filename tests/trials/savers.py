"""The savers of Python's graph libraries (trial 104)."""
import importlib
import numpy as np
import networkx as nx
from matrices import AT
from sample import BARE, EDGES, IDS, LABEL, N, SPLIT, WEIGHT, X, truth
from sets import NUMBERED, Bag, Y
from trial import Case, trial


@trial(104, "savers: PyG edge_attr of one number, DGL edata['w'], NetworkX with one edge without a weight")
def savers():
    e, weighed = np.array(AT).T, [(a, b, w) for (a, b), w in zip(AT, WEIGHT)]
    masks = {f"{role}_mask": np.array([one == role for one in SPLIT]) for role in ("train", "val", "test")}
    data = Bag(x=X, y=np.array(Y), num_nodes=N, edge_index=e, edge_attr=np.array(WEIGHT), **masks)
    importlib.import_module("from_pyg").save(data, "pyg.npz")
    yield Case("pyg.npz", truth=truth(weighed, range(N), y=NUMBERED))
    graph = Bag(edges=lambda: tuple(e), num_nodes=lambda: N, ndata={"feat": X, "label": np.array(Y), **masks},
                edata={"w": np.array(WEIGHT)})
    importlib.import_module("from_dgl").save(graph, "dgl.npz")
    yield Case("dgl.npz", truth=truth(weighed, range(N), y=NUMBERED))
    made = nx.DiGraph()
    for at, node in enumerate(IDS):
        made.add_node(node, kind=LABEL[at], role=SPLIT[at], a=X[at, 0], b=X[at, 1])
    made.add_weighted_edges_from(EDGES)
    del made.edges[BARE[0]]["weight"]
    importlib.import_module("from_networkx").save(made, "nx.npz", features=["a", "b"], label="kind", split="role")
    yield Case("nx.npz", truth=truth([(*BARE[0], 1.0), *EDGES[1:]], x=X[:, :2]))
