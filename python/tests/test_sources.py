"""Graphs of other libraries: what they hold is what the graph has."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import laconic_gnn as lc
import numpy as np
import pytest

SEEDS = range(12)


def held(graph: lc.Graph) -> dict[str, np.ndarray]:
    return graph.arrays()


def edges_of(arrays: dict[str, np.ndarray]) -> Counter[tuple[int, int, float]]:
    """Edges with weights, as many times as they are there."""
    weights = arrays.get("edge_weight", np.ones(arrays["edge_index"].shape[1], dtype=np.float32))
    return Counter(zip(*arrays["edge_index"].tolist(), weights.tolist()))


def texts(arrays: dict[str, np.ndarray]) -> list[str]:
    data, ends = arrays["ids_data"].tobytes(), arrays["ids_offsets"].tolist()
    return [data[start:end].decode() for start, end in zip(ends, ends[1:])]


def classes(arrays: dict[str, np.ndarray]) -> list[str | None]:
    """What each node is labelled with, by name."""
    names = json.loads(arrays["about"].tobytes())["classes"]
    return [names[label] if label >= 0 else None for label in arrays["labels"].tolist()]


class Drawn:
    """A graph of plain values: each pair once, weights that float32 holds, no edge from a node to itself."""

    def __init__(self, seed: int, directed: bool) -> None:
        draw = np.random.default_rng(seed)
        self.nodes = int(draw.integers(2, 40))
        pairs = {tuple(pair) for pair in draw.integers(0, self.nodes, (3 * self.nodes, 2)).tolist()}
        pairs = {pair for pair in pairs if pair[0] != pair[1]}
        if not directed:
            pairs = {(min(pair), max(pair)) for pair in pairs}
        self.pairs = sorted(pairs, key=lambda _: draw.random())
        self.weights = (draw.integers(1, 64, len(self.pairs)) / 8).tolist()
        self.directed = directed
        self.x = draw.normal(size=(self.nodes, 3)).astype(np.float32)
        self.x[0, :2] = [-0.0, np.float32(1e-40)]
        self.y = [None if draw.random() < 0.2 else f"c{draw.integers(0, 3)}" for _ in range(self.nodes)]
        self.words = draw.choice(["train", "val", "test", ""], self.nodes).tolist()
        self.numbers = draw.permutation(10 * self.nodes)[: self.nodes].tolist()

    def edges(self, with_weights: bool = True) -> Counter[tuple[int, int, float]]:
        weights = self.weights if with_weights else [1.0] * len(self.pairs)
        there = [(a, b, weight) for (a, b), weight in zip(self.pairs, weights)]
        return Counter(there if self.directed else there + [(b, a, weight) for a, b, weight in there])


def agrees(arrays: dict[str, np.ndarray], drawn: Drawn, with_weights: bool = True) -> None:
    assert edges_of(arrays) == drawn.edges(with_weights)
    assert arrays["num_nodes"].tolist() == [drawn.nodes]
    assert arrays["features"].tobytes() == drawn.x.tobytes()
    assert classes(arrays) == drawn.y
    for word in ("train", "val", "test"):
        assert (arrays[f"{word}_mask"] != 0).tolist() == [each == word for each in drawn.words], word


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("kind", ["numbers", "texts", "tuples"])
def test_a_graph_of_networkx_keeps_edges_weights_ids_labels_and_bits_of_features(
    seed: int, directed: bool, kind: str
) -> None:
    networkx = pytest.importorskip("networkx")
    drawn = Drawn(seed, directed)
    ids = {
        "numbers": drawn.numbers,
        "texts": [f"n{n}" for n in drawn.numbers],
        "tuples": [(n, "é") for n in drawn.numbers],
    }
    graph = networkx.DiGraph() if directed else networkx.Graph()
    for name, y, word, x in zip(ids[kind], drawn.y, drawn.words, drawn.x):
        graph.add_node(name, role=word, x=x, **({} if y is None else {"kind": y}))
    graph.add_weighted_edges_from((ids[kind][a], ids[kind][b], w) for (a, b), w in zip(drawn.pairs, drawn.weights))
    arrays = held(lc.Graph.from_networkx(graph, "x", "kind", split="role"))
    agrees(arrays, drawn)
    found = arrays["ids"].tolist() if kind == "numbers" else texts(arrays)
    assert found == [name if kind == "numbers" else str(name) for name in ids[kind]]


@pytest.mark.parametrize("directed", [True, False])
def test_parallel_edges_of_networkx_are_one_with_the_sum_of_their_weights(directed: bool) -> None:
    networkx = pytest.importorskip("networkx")
    graph = networkx.MultiDiGraph() if directed else networkx.MultiGraph()
    graph.add_weighted_edges_from([("a", "b", 2.0), ("a", "b", 0.5), ("b", "c", 1.0)])
    graph.add_edge("c", "a")
    there = [(0, 1, 2.5), (1, 2, 1.0), (2, 0, 1.0)]
    expected = Counter(there if directed else there + [(b, a, weight) for a, b, weight in there])
    assert edges_of(held(lc.Graph.from_networkx(graph))) == expected
    assert set(edges_of(held(lc.Graph.from_networkx(graph, weight=None))).values()) == {1}


def test_attributes_of_networkx_become_named_columns_and_masks() -> None:
    networkx = pytest.importorskip("networkx")
    graph = networkx.path_graph(3)
    networkx.set_node_attributes(graph, {0: 1.5, 1: 2, 2: True}, "age")
    networkx.set_node_attributes(graph, {n: [n, -n] for n in range(3)}, "place")
    networkx.set_node_attributes(graph, {1: True}, "seen")
    networkx.set_node_attributes(graph, {0: "red", 2: "blue"}, "party")
    arrays = held(
        lc.Graph.from_networkx(graph, ["age", "place"], "party", train_mask="seen", val_mask=[True, False, False])
    )
    assert arrays["features"].tolist() == [[1.5, 0, 0], [2, 1, -1], [1, 2, -2]]
    assert json.loads(arrays["about"].tobytes())["features"] == ["age", "place.0", "place.1"]
    assert classes(arrays) == ["red", None, "blue"]
    assert arrays["train_mask"].tolist() == [0, 1, 0] and arrays["val_mask"].tolist() == [1, 0, 0]
    with pytest.raises(lc.DataError, match="x: 2 of 3 nodes have no attribute 'seen', such as 0"):
        lc.Graph.from_networkx(graph, "seen")


def test_two_nodes_of_networkx_that_are_called_the_same_as_texts_are_refused() -> None:
    networkx = pytest.importorskip("networkx")
    with pytest.raises(lc.DataError, match="ids: .*'1' at several"):
        lc.Graph.from_networkx(networkx.Graph([(1, "1"), (1, "b")]))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("form", ["csr_array", "csc_matrix", "coo_array", "lil_matrix", "dok_array"])
def test_a_matrix_of_scipy_keeps_edges_weights_labels_and_bits_of_features(seed: int, form: str) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    drawn = Drawn(seed, directed=True)
    ends = np.array(drawn.pairs).reshape(-1, 2).T
    matrix = sparse.coo_array((drawn.weights, ends), shape=(drawn.nodes, drawn.nodes))
    matrix = getattr(sparse, form)(matrix)
    masks = {f"{word}_mask": [each == word for each in drawn.words] for word in ("train", "val", "test")}
    arrays = held(lc.Graph.from_scipy(matrix, drawn.x, drawn.y, undirected=False, ids=drawn.numbers, **masks))
    agrees(arrays, drawn)
    assert arrays["ids"].tolist() == drawn.numbers
    assert edges_of(held(lc.Graph.from_scipy(matrix.astype(bool), undirected=False))) == drawn.edges(False)


def test_values_of_scipy_that_are_stored_twice_are_added_and_the_matrix_stays() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.coo_array(([1, 1, 1], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    assert edges_of(held(lc.Graph.from_scipy(matrix))) == Counter([(0, 1, 2.0), (1, 0, 1.0)])
    assert matrix.nnz == 3
    with pytest.raises(lc.DataError, match=r"expected as many rows as columns, found \[2, 3\].*block_array"):
        lc.Graph.from_scipy(sparse.coo_array((2, 3)))
    with pytest.raises(lc.DataError, match="found ndarray; scipy.sparse.coo_array"):
        lc.Graph.from_scipy(np.eye(3))


@pytest.mark.parametrize("form", ["csr_array", "csc_matrix", "coo_array"])
def test_sparse_features_of_scipy_stay_sparse(form: str) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    draw = np.random.default_rng(0)
    dense = np.where(draw.random((9, 5)) < 0.3, draw.normal(size=(9, 5)), 0).astype(np.float32)
    arrays = held(lc.Graph.from_numpy([[0, 8], [8, 0]], getattr(sparse, form)(dense)))
    parts = (arrays["features_data"], arrays["features_indices"], arrays["features_indptr"])
    back = sparse.csr_array(parts, shape=tuple(arrays["features_shape"]))
    assert back.nnz == np.count_nonzero(dense)
    assert back.toarray().tobytes() == dense.tobytes()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("directed", [True, False])
def test_a_graph_of_igraph_keeps_edges_weights_ids_labels_and_bits_of_features(seed: int, directed: bool) -> None:
    igraph = pytest.importorskip("igraph")
    drawn = Drawn(seed, directed)
    graph = igraph.Graph(drawn.nodes, drawn.pairs, directed=directed)
    graph.es["weight"] = drawn.weights
    graph.vs["name"], graph.vs["kind"], graph.vs["role"] = [f"n{n}" for n in drawn.numbers], drawn.y, drawn.words
    for column in range(3):
        graph.vs[f"x{column}"] = drawn.x[:, column]
    graph.vs["key"] = drawn.numbers
    arrays = held(lc.Graph.from_igraph(graph, ["x0", "x1", "x2"], "kind", split="role"))
    agrees(arrays, drawn)
    assert texts(arrays) == [f"n{n}" for n in drawn.numbers]
    assert json.loads(arrays["about"].tobytes())["features"] == ["x0", "x1", "x2"]
    arrays = held(lc.Graph.from_igraph(graph, drawn.x, drawn.y, ids="key", weight=None))
    assert arrays["ids"].tolist() == drawn.numbers and edges_of(arrays) == drawn.edges(False)


def cells(drawn: Drawn) -> Any:
    anndata, pandas, sparse = (pytest.importorskip(name) for name in ("anndata", "pandas", "scipy.sparse"))
    ends = np.array(drawn.pairs).reshape(-1, 2).T
    matrix = sparse.csr_matrix((drawn.weights, ends), shape=(drawn.nodes, drawn.nodes))
    columns = {"kind": pandas.Categorical(drawn.y, ["c2", "c0", "c1"]), "role": drawn.words}
    names = [f"cell{n}" for n in drawn.numbers]
    found = anndata.AnnData(sparse.csr_matrix(np.abs(drawn.x)), obs=pandas.DataFrame(columns, index=names))
    found.obsp["connectivities"], found.obsp["distances"] = matrix, matrix.astype(bool)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_cells_of_anndata_keep_edges_weights_ids_labels_and_bits_of_features(seed: int) -> None:
    drawn = Drawn(seed, directed=True)
    given = cells(drawn)
    arrays = held(lc.Graph.from_anndata(given, "kind", split="role", undirected=False))
    assert arrays["features_shape"].tolist() == [drawn.nodes, 3]
    assert json.loads(arrays["about"].tobytes())["features"] == ["0", "1", "2"]
    given.obsm["X_pca"] = drawn.x
    graph = lc.Graph.from_anndata(given, "kind", split="role", undirected=False)
    agrees(held(graph), drawn)
    assert texts(held(graph)) == given.obs_names.tolist()
    assert graph.class_names == ["c2", "c0", "c1"]
    assert edges_of(held(lc.Graph.from_anndata(given, key="distances", undirected=False))) == drawn.edges(False)
    with pytest.raises(lc.DataError, match="key: expected one of connectivities, distances, found 'conectivities'"):
        lc.Graph.from_anndata(given, key="conectivities")
    with pytest.raises(lc.DataError, match="label: expected one of kind, role, found 'cell_type'"):
        lc.Graph.from_anndata(given, "cell_type")


def test_ids_of_any_kind_come_back() -> None:
    class Named:
        def __str__(self) -> str:
            return "one"

    for ids, expected in [
        ([7, -1, 1 << 40], [7, -1, 1 << 40]),
        (np.array([7, 2, 9], dtype=np.uint8), [7, 2, 9]),
        ([7, 1 << 70, 3], ["7", str(1 << 70), "3"]),
        (["a", "b/ü", ""], ["a", "b/ü", ""]),
        (np.array([b"x", b"y", b"zz"]), ["x", "y", "zz"]),
        ([("a", 1), ("a", 2), ("b", 1)], ["('a', 1)", "('a', 2)", "('b', 1)"]),
        ([1, "b", 2.5], ["1", "b", "2.5"]),
        ([Named(), None, True], ["one", "None", "True"]),
        (np.arange("2026-01-01", "2026-01-04", dtype="M8[D]"), ["2026-01-01", "2026-01-02", "2026-01-03"]),
    ]:
        graph = lc.Graph.from_numpy([[0, 1, 2], [1, 2, 0]], ids=ids)
        assert graph.ids.tolist() == expected
