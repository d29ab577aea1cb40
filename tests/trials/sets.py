"""Folders of collections of graphs, and typed graphs (trials 81-88, 105-107), made as their documentation has them."""
import gzip
import importlib
import os
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import matrices  # puts the folder of the savers on the path
from exports import lines
from lists import RING
from matrices import AT
from sample import LABEL, N, SPLIT, X, truth
from trial import Case, Truth, both, trial, write

Y = [int(word == "ok") for word in LABEL]
NUMBERED = [str(one) for one in Y]
ROLES = {"train": "train", "val": "valid", "test": "test"}


def packed(path, rows, separator=","):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with gzip.open(path, "wt") as file:
        for row in rows:
            file.write(separator.join(map(str, np.ravel(row))) + "\n")


def split(folder):
    for role, name in ROLES.items():
        packed(f"{folder}/{name}.csv.gz", [i for i in range(N) if SPLIT[i] == role])


def raw(folder, labels=Y, features=X, more=()):
    packed(f"{folder}/raw/edge.csv.gz", AT)
    packed(f"{folder}/raw/num-node-list.csv.gz", [N])
    packed(f"{folder}/raw/num-edge-list.csv.gz", [len(AT)])
    packed(f"{folder}/raw/node-label.csv.gz", labels)
    if features is not None:
        packed(f"{folder}/raw/node-feat.csv.gz", features)
    for name, rows in more:
        packed(f"{folder}/raw/{name}.csv.gz", rows)


@trial(81, "OGB: arxiv's layout")
def arxiv():
    raw("ogbn_arxiv", more=[("node_year", [2000 + i for i in range(N)])])
    split("ogbn_arxiv/split/time")
    yield Case("ogbn_arxiv", truth=truth(AT, range(N), y=NUMBERED))


@trial(82, "OGB's binary layout: papers100M, DatasetSaver")
def binary():
    for name, kind, scheme in (("ogbn_papers100M", np.float16, "time"), ("ogbn_saved", np.float32, "random")):
        os.makedirs(f"{name}/raw")
        np.savez(f"{name}/raw/data.npz", edge_index=np.array(AT).T, num_nodes_list=np.array([N]),
                 num_edges_list=np.array([len(AT)]), node_feat=X.astype(kind), node_year=np.arange(N).reshape(-1, 1))
        np.savez(f"{name}/raw/node-label.npz", node_label=np.array(Y, dtype=np.float32).reshape(-1, 1))
        split(f"{name}/split/{scheme}")
        yield Case(name, truth=truth(AT, range(N), y=NUMBERED))


@trial(83, "OGB: proteins' layout, edge features and species")
def proteins():
    labels = [[Y[i], i % 2, 0] for i in range(N)]
    raw("ogbn_proteins", labels, None, [("edge-feat", [[0.1 * at, 0.5] for at in range(len(AT))]),
                                        ("species", [3702] * N)])
    split("ogbn_proteins/split/species")
    right = truth(both(AT), range(N), x=False)
    yield matrices.OneHot("ogbn_proteins", truth=right, rows=labels, told=["edge-feat", "species"])


def links(folder):
    """The split of a link prediction set, as torch would have saved it: bytes that Python alone can open."""
    os.makedirs(folder)
    for name in ROLES.values():
        with open(f"{folder}/{name}.pt", "wb") as file:
            file.write(b"PK\x03\x04 archive/data.pkl")


@trial(84, "OGB: ogbl-collab's layout")
def collab():
    raw("ogbl_collab", more=[("edge_weight", [1] * len(AT))])
    os.remove("ogbl_collab/raw/node-label.csv.gz")
    links("ogbl_collab/split/time")
    val, test = np.array(AT[28:32]), np.array(AT[32:36])

    def follow():
        dataset = type("Links", (list,), {"get_edge_split": lambda self: {
            "valid": {"edge": val, "edge_neg": val[:, ::-1]}, "test": {"edge": test, "edge_neg": test[:, ::-1]}}})
        graph = {"edge_index": np.array(AT).T, "num_nodes": N, "node_feat": X, "edge_weight": np.ones((len(AT), 1))}
        importlib.import_module("from_ogb_links").save(dataset([graph]), "links.npz")
        return ["links.npz"]
    edges = [(a, b, 1.0) for a, b in AT]
    yield Case("ogbl_collab", truth=truth(edges, range(N), y=None, split=None), remedy=["from_ogb_links.py"],
               follow=follow)


@trial(85, "OGB: wikikg2's layout, --typed")
def wikikg():
    packed("ogbl_wikikg2/raw/edge.csv.gz", AT)
    packed("ogbl_wikikg2/raw/num-node-list.csv.gz", [N])
    packed("ogbl_wikikg2/raw/num-edge-list.csv.gz", [len(AT)])
    packed("ogbl_wikikg2/raw/edge_reltype.csv.gz", [at % 3 for at in range(len(AT))])
    yield Case("ogbl_wikikg2", "--typed", truth=Truth(AT, range(N)), told=["edge_reltype"])
    links("ogbl_wikikg2/split/time")
    yield Case("ogbl_wikikg2", "--typed", remedy=["from_ogb_links.py"])


@trial(86, "OGB: ogbg-molhiv; TUDataset")
def many_graphs():
    raw("ogbg_molhiv")
    packed("ogbg_molhiv/raw/num-node-list.csv.gz", [12, 8])
    packed("ogbg_molhiv/raw/num-edge-list.csv.gz", [20, len(AT) - 20])
    yield Case("ogbg_molhiv", remedy=["many graphs", "numpy.savez"])
    write("MUTAG_A.txt", lines(None, ((a + 1, b + 1) for a, b in RING), ", "))
    yield Case("MUTAG_A.txt", truth=Truth([(a + 1, b + 1) for a, b in RING]))


@trial(87, "Geom-GCN's text")
def geom_gcn():
    os.mkdir("texas")
    write("texas/out1_graph_edges.txt", lines(["node_id", "node_id"], AT, "\t"))
    rows = ((i, ",".join(map(str, X[i])), Y[i]) for i in range(N))
    write("texas/out1_node_feature_label.txt", lines(["node_id", "feature", "label"], rows, "\t"))
    masks = {f"{role}_mask": np.array([one == role for one in SPLIT]) for role in ROLES}
    np.savez("texas/texas_split_0.6_0.2_0.npz", **masks)
    yield Case("texas", truth=truth(AT, range(N), y=NUMBERED))


@trial(88, "DGL's CSVDataset: three features in a cell, two of them, a folder with meta.yaml")
def dgl_csv():
    write("edges.csv", lines(["src_id", "dst_id"], AT))
    for width, values in ((3, X[:, :3]), (2, np.abs(X[:, :2]).astype(int))):
        rows = ((i, Y[i], *(int(SPLIT[i] == role) for role in ROLES), f'"{", ".join(map(str, values[i]))}"')
                for i in range(N))
        write("nodes.csv", lines(["node_id", "label", "train_mask", "val_mask", "test_mask", "feat"], rows))
        yield Case("edges.csv", truth=truth(AT, range(N), x=values, y=NUMBERED))
    write("set/meta.yaml", "dataset_name: people\nedge_data:\n- file_name: edges.csv\nnode_data:\n"
                           "- file_name: nodes.csv")
    for name in ("edges.csv", "nodes.csv"):
        os.link(name, f"set/{name}")
    yield Case("set", truth=truth(AT, range(N), x=values, y=NUMBERED))


@trial(105, "two splits and one test mask, as data of WebKB have them in PyG")
def two_splits():
    pyg = importlib.import_module("from_pyg")
    masks = {role: np.array([[one == role] * 2 for one in SPLIT]) for role in ("train", "val")}
    data = Bag(x=X, y=np.array(Y), num_nodes=N, edge_index=np.array(AT).T, train_mask=masks["train"],
               val_mask=masks["val"], test_mask=np.array([one == "test" for one in SPLIT]))
    pyg.save(data, "webkb.npz")
    yield Case("webkb.npz", truth=truth(AT, range(N), y=NUMBERED))


class Bag:
    """An object with these attributes, as PyTorch Geometric's `Data` has them."""
    def __init__(self, **values):
        self.__dict__.update(values)


USERS, ITEMS = [f"u{i}" for i in range(5)], [f"i{i}" for i in range(4)]
BUYS = [(USERS[i], ITEMS[(i * 3 + 1) % 4]) for i in range(5)]


@trial(106, "GraphStorm's columns: nid, source_id, dest_id in a folder with a table a type")
def graphstorm():
    os.makedirs("gs/nodes"), os.makedirs("gs/edges")
    pq.write_table(pa.table({"nid": USERS, "age": [20.0 + i for i in range(5)]}), "gs/nodes/user.parquet")
    pq.write_table(pa.table({"nid": ITEMS, "price": [1.5 * i for i in range(4)]}), "gs/nodes/item.parquet")
    pq.write_table(pa.table({"source_id": [a for a, _ in BUYS], "dest_id": [b for _, b in BUYS]}),
                   "gs/edges/user__buys__item.parquet")
    yield typed("gs")
    yield typed("gs", "--id", "nid", "--source", "source_id", "--target", "dest_id")


@trial(107, "a folder with a table a type, as documented, in Parquet")
def typed_folder():
    os.makedirs("shop/nodes"), os.makedirs("shop/edges")
    pq.write_table(pa.table({"id": USERS, "age": [20.0 + i for i in range(5)]}), "shop/nodes/user.parquet")
    pq.write_table(pa.table({"id": ITEMS, "price": [1.5 * i for i in range(4)]}), "shop/nodes/item.parquet")
    pq.write_table(pa.table({"source": [a for a, _ in BUYS], "target": [b for _, b in BUYS]}),
                   "shop/edges/user__buys__item.parquet")
    yield typed("shop")


def typed(folder, *flags):
    x = {**{f"user/{one}": [0, 0, 20.0 + i, 1] for i, one in enumerate(USERS)},
         **{f"item/{one}": [1.5 * i, 1, 0, 0] for i, one in enumerate(ITEMS)}}  # each kind's, and which kind it is
    edges = [(f"user/{a}", f"item/{b}") for a, b in BUYS]
    return Case(folder, "--typed", *flags, truth=Truth(edges, x, x=x))
