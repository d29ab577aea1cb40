"""PyTorch Geometric's graphs: in, out, and there and back again."""

from __future__ import annotations

import copy
import tracemalloc
import warnings
from collections import defaultdict
from typing import Any

import laconic_gnn as lc
import numpy as np
import pytest
from laconic_gnn.sources import pyg

pytest.importorskip("torch_geometric", reason="needs torch_geometric")
torch = pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("hypothesis", reason="needs hypothesis")
from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from torch_geometric.data import Data, HeteroData  # noqa: E402

QUICK = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
MASKS = ("train_mask", "val_mask", "test_mask")
# Nodes that are in several parts of a split come back, too, and a run says no to them.
pytestmark = pytest.mark.filterwarnings("ignore::laconic_gnn.errors.LaconicWarning", "ignore:Sparse CSR tensor support")


def graph_of(data: Any, **more: Any) -> lc.Graph:
    return lc.Graph.from_numpy(**{"undirected": False, **pyg.arguments(data), **more})


def draws(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def edges_of(index: Any, weights: Any = None, types: Any = None) -> dict[tuple[int, ...], float]:
    """Edges as the program has them: none from a node to itself, those that are listed several times with the sum of
    their weights (of weights that binary fractions hold exactly)."""
    found: dict[tuple[int, ...], float] = defaultdict(float)
    ends = index.tolist() if types is None else [*index.tolist(), types.tolist()]
    for number, edge in enumerate(zip(*ends)):
        if edge[0] != edge[1]:
            found[edge] += 1.0 if weights is None else float(weights.reshape(-1)[number])
    return dict(found)


def assert_same_edges(given: Any, back: Any, is_typed: bool = False) -> None:
    weights = given.get("edge_weight", given.get("edge_attr"))
    expected = edges_of(given["edge_index"], weights, given["edge_type"] if is_typed else None)
    assert back["edge_index"].dtype == torch.int64
    found = edges_of(back["edge_index"], back.get("edge_weight"), back["edge_type"] if is_typed else None)
    assert len(found) == back["edge_index"].shape[1]
    assert found == expected if weights is not None else found.keys() == expected.keys()
    assert ("edge_weight" in back) == (weights is not None)
    if weights is not None:
        assert back["edge_weight"].dtype == torch.float32


def splits_of(stores: list[Any]) -> int:
    return max([store[mask].numel() // len(store[mask]) for store in stores for mask in MASKS if mask in store] or [1])


def assert_same_masks(given: Any, back: Any, splits: int) -> None:
    """One column holds for all splits; masks that were not there are empty where another one was."""
    for mask in MASKS:
        nodes = len(back[mask])
        expected = given[mask].bool() if mask in given else torch.zeros(nodes, dtype=torch.bool)
        expected = expected.reshape(nodes, -1).expand(-1, splits)
        assert back[mask].dtype == torch.bool and back[mask].shape == ((nodes, splits) if splits > 1 else (nodes,))
        assert torch.equal(back[mask].reshape(nodes, -1), expected)


@st.composite
def edge_lists(draw: st.DrawFn, sources: int, targets: int) -> dict[str, Any]:
    """Edges between so many nodes, twice or from a node to itself as chance has it, perhaps with weights."""
    count = draw(st.integers(0, 20)) if sources and targets else 0
    seed = draws(draw(st.integers(0, 2**32 - 1)))
    low, high = seed.integers(0, max(sources, 1), count), seed.integers(0, max(targets, 1), count)
    kind = draw(st.sampled_from([torch.int64, torch.int32]))
    return {"edge_index": torch.from_numpy(np.stack([low, high])).to(kind), "seed": seed}


def weights_of(kind: str, seed: np.random.Generator, count: int) -> dict[str, Any]:
    values = torch.from_numpy(seed.integers(-8, 9, count) / 4)
    return {
        "none": {},
        "edge_weight": {"edge_weight": values.float()},
        "doubles": {"edge_weight": values},
        "halves": {"edge_weight": values.half()},
        "column": {"edge_weight": values.float().reshape(-1, 1)},
        "edge_attr": {"edge_attr": values.float()},
        "edge_attr column": {"edge_attr": values.bfloat16().reshape(-1, 1)},
    }[kind]


WEIGHTS = ["none", "edge_weight", "doubles", "halves", "column", "edge_attr", "edge_attr column"]


def features_of(kind: str, seed: np.random.Generator, nodes: int, columns: int) -> dict[str, Any]:
    values = torch.from_numpy(seed.integers(-3, 4, (nodes, columns)) / 2).float()
    wide = torch.from_numpy(seed.integers(-3, 4, (nodes, 2 * columns)) / 2).float()
    return {
        "none": {},
        "float": {"x": values},
        "double": {"x": values.double()},
        "half": {"x": values.half()},
        "bfloat16": {"x": values.bfloat16()},
        "whole": {"x": (2 * values).long()},
        "bool": {"x": values > 0},
        "strided": {"x": wide[:, ::2]},
        "transposed": {"x": values.t().contiguous().t()},
        "needs gradients": {"x": values.clone().requires_grad_()},
        "coo": {"x": values.to_sparse_coo()},
        "csr": {"x": values.to_sparse_csr()},
        "csc": {"x": values.to_sparse_csc()},
    }[kind]


DENSE = ["none", "float", "double", "half", "bfloat16", "whole", "bool", "strided", "transposed", "needs gradients"]
SPARSE = ["coo", "csr", "csc"]


def labels_of(kind: str, seed: np.random.Generator, nodes: int) -> dict[str, Any]:
    one = torch.from_numpy(seed.integers(-1, 3, nodes))
    several = torch.from_numpy(seed.integers(0, 2, (nodes, 3)))
    # Rows with a single 1 each would be one class a node.
    several[0, :2] = 1
    return {
        "none": {},
        "one": {"y": one},
        "int32": {"y": one.int()},
        "column": {"y": one.reshape(-1, 1)},
        "several": {"y": several.float()},
        "several, whole": {"y": several},
    }[kind]


SPLITS = st.sampled_from([None, 1, 3])
LABELS = ["none", "one", "int32", "column", "several", "several, whole"]


@st.composite
def masks(draw: st.DrawFn, seed: np.random.Generator, nodes: int, splits: int | None) -> dict[str, Any]:
    there = draw(st.sets(st.sampled_from(MASKS)))
    found = {}
    for mask in sorted(there):
        # One mask for all splits stands beside several of the others, as in the data of WebKB.
        own = None if mask == "test_mask" and draw(st.booleans()) else splits
        shape = (nodes,) if own is None else (nodes, own)
        values = torch.from_numpy(seed.integers(0, 2, shape))
        found[mask] = values.bool() if draw(st.booleans()) else values.to(torch.uint8)
    return found


@st.composite
def graphs(draw: st.DrawFn) -> Data:
    nodes = draw(st.integers(1, 8))
    edges = draw(edge_lists(nodes, nodes))
    seed, count = edges.pop("seed"), edges["edge_index"].shape[1]
    data = Data(**edges, num_nodes=nodes)
    more = weights_of(draw(st.sampled_from(WEIGHTS)), seed, count)
    more |= features_of(draw(st.sampled_from(DENSE + SPARSE)), seed, nodes, draw(st.integers(1, 3)))
    more |= labels_of(draw(st.sampled_from(LABELS)), seed, nodes) | draw(masks(seed, nodes, draw(SPLITS)))
    if draw(st.booleans()):
        more["edge_type"] = torch.from_numpy(seed.integers(0, 3, count))
    if draw(st.booleans()):
        more["n_id"] = torch.from_numpy(seed.permutation(nodes) * 7)
    for name, value in more.items():
        data[name] = value
    return data


def dense(x: Any) -> Any:
    x = x.detach()
    return x if x.layout == torch.strided else x.to_dense()


def known_labels(y: Any) -> Any:
    return y.reshape(-1) if y.ndim == 2 and y.shape[1] == 1 else y


@QUICK
@given(data=graphs())
def test_data_comes_back_with_its_edges_weights_types_masks_labels_and_features(data: Data) -> None:
    back = pyg.data(graph_of(data))
    assert isinstance(back, Data) and back.num_nodes == data.num_nodes
    assert_same_edges(data.to_dict(), back.to_dict(), "edge_type" in data)
    assert any(mask in data for mask in MASKS) == any(mask in back for mask in MASKS)
    if any(mask in data for mask in MASKS):
        assert_same_masks(data.to_dict(), back.to_dict(), splits_of([data.to_dict()]))
    if "x" in data:
        assert back.x.dtype == torch.float32
        assert back.x.layout == (torch.strided if data.x.layout == torch.strided else torch.sparse_csr)
        assert torch.equal(dense(back.x), dense(data.x).float())
    else:
        assert "x" not in back
    if "y" in data:
        expected = known_labels(data.y)
        expected = expected.long() if expected.ndim == 1 else expected.float()
        assert back.y.dtype == expected.dtype and torch.equal(back.y, expected)
    else:
        assert "y" not in back
    assert ("n_id" in back) == ("n_id" in data) and ("n_id" not in data or torch.equal(back.n_id, data.n_id))


@QUICK
@given(data=graphs())
def test_what_came_back_comes_back_the_same(data: Data) -> None:
    once = pyg.data(graph_of(data))
    twice = pyg.data(graph_of(once))
    assert set(once.to_dict()) == set(twice.to_dict())
    for name, value in once.to_dict().items():
        other = twice[name]
        if isinstance(value, torch.Tensor):
            assert value.dtype == other.dtype and value.layout == other.layout
            assert torch.equal(dense(value), dense(other)), name
        else:
            assert value == other


@st.composite
def typed_graphs(draw: st.DrawFn) -> HeteroData:
    data, seed = HeteroData(), draws(draw(st.integers(0, 2**32 - 1)))
    kinds = ["paper", "author", "venue"][: draw(st.integers(1, 3))]
    counts = {kind: draw(st.integers(1, 5)) for kind in kinds}
    labelled, splits = draw(st.sampled_from([None, *kinds])), draw(SPLITS)
    for kind, nodes in counts.items():
        features = features_of(draw(st.sampled_from(DENSE + SPARSE)), seed, nodes, draw(st.integers(1, 3)))
        own = features | draw(masks(seed, nodes, splits))
        if kind == labelled:
            own |= labels_of(draw(st.sampled_from(LABELS[1:])), seed, nodes)
        for name, value in own.items():
            data[kind][name] = value
        data[kind].num_nodes = nodes
    weights = draw(st.sampled_from(WEIGHTS))
    some_kind = st.sampled_from(kinds)
    names = st.tuples(some_kind, st.sampled_from(["cites", "writes", "rev_writes", "is in"]), some_kind)
    for relation in draw(st.lists(names, min_size=1, max_size=4, unique=True)):
        edges = draw(edge_lists(counts[relation[0]], counts[relation[2]]))
        del edges["seed"]
        edges |= weights_of(weights, seed, edges["edge_index"].shape[1])
        for name, value in edges.items():
            data[relation][name] = value
    return data


@QUICK
@given(data=typed_graphs())
def test_hetero_data_comes_back_with_its_types_edges_weights_masks_labels_and_features(data: HeteroData) -> None:
    back = pyg.data(graph_of(data))
    assert isinstance(back, HeteroData) and back.node_types == data.node_types
    assert sorted(back.edge_types) == sorted(data.edge_types)
    for relation in data.edge_types:
        given, found = data[relation].to_dict(), back[relation].to_dict()
        if relation[0] != relation[2]:
            # Nodes of two types are two, though their rows are called alike.
            for of in (given, found):
                of["edge_index"] = of["edge_index"] + torch.tensor([[0], [100]])
        assert_same_edges(given, found)
    for kind in data.node_types:
        given, found = data[kind], back[kind]
        assert found.num_nodes == given.num_nodes
        if "x" in given:
            assert found.x.dtype == torch.float32 and torch.equal(found.x, dense(given.x).float())
        else:
            assert "x" not in found
        known = "y" in given and bool((given.y >= 0).any())
        assert ("y" in found) == known
        assert not known or torch.equal(found.y.double(), known_labels(given.y).double())
        some = any(given[mask].any() for mask in MASKS if mask in given)
        assert any(mask in found for mask in MASKS) == some
        if some:
            assert_same_masks(given.to_dict(), found.to_dict(), splits_of([of.to_dict() for of in data.node_stores]))


def small(**more: Any) -> Data:
    index = torch.tensor([[0, 1, 2, 2], [1, 2, 0, 1]])
    return Data(x=torch.arange(6.0).reshape(3, 2), edge_index=index, y=torch.tensor([0, 1, 0]), **more)


def two_types() -> HeteroData:
    data = HeteroData()
    data["user"].x = torch.rand(3, 2)
    data["item"].num_nodes = 2
    data["user", "buys", "item"].edge_index = torch.tensor([[0, 1, 2], [0, 1, 1]])
    return data


def test_edges_ascend_by_target_and_then_by_source() -> None:
    assert pyg.data(graph_of(small())).edge_index.tolist() == [[2, 0, 2, 1], [0, 1, 1, 2]]


def test_contiguous_float32_stays_where_it_is_and_all_else_is_copied_once() -> None:
    data = small()
    graph = graph_of(data)
    data.x[0, 0] = 7.0
    assert graph.arrays()["features"][0, 0] == 7.0
    for x in (torch.rand(2, 3).t(), torch.rand(3, 4)[:, ::2], torch.rand(3, 2).double(), torch.rand(3, 2).half()):
        data.x = x
        graph, before = graph_of(data), x[0, 0].item()
        x[0, 0] = 7.0
        assert graph.arrays()["features"][0, 0] == np.float32(before)


def test_contiguous_bfloat16_stays_where_it_is_and_is_missed_where_it_moves() -> None:
    data = small()
    data.x = data.x.bfloat16()
    graph = lc.Graph.from_pyg(data, undirected=False)
    data.x[0, 0] = 7.0
    assert graph.arrays()["features"].tolist() == [[7, 1], [2, 3], [4, 5]]
    data.x.share_memory_()
    with pytest.raises(lc.DataError, match="its memory has moved"):
        graph.arrays()
    # Types have columns of their own, so that theirs are copied.
    typed = two_types()
    typed["user"].x = typed["user"].x.bfloat16()
    assert pyg.data(graph_of(typed))["user"].x.tolist() == typed["user"].x.tolist()


def test_no_second_copy_of_features_is_made_on_the_way() -> None:
    data = Data(edge_index=torch.tensor([[0], [1]]), x=torch.rand(4000, 128))
    size = data.x.numel() * 4
    graph_of(small())
    for x, copies in ((data.x, 0), (torch.rand(4000, 256)[:, ::2], 1)):
        data.x = x
        tracemalloc.start()
        graph_of(data)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert copies * size <= peak < (copies + 0.2) * size


@pytest.mark.parametrize("weighted", [False, True])
def test_an_adjacency_matrix_stands_for_edges_from_columns_to_rows(weighted: bool) -> None:
    transforms = pytest.importorskip("torch_geometric.transforms")
    data = small(edge_weight=torch.tensor([0.5, 2.0, 3.0, 4.0]) if weighted else None)
    expected = edges_of(data.edge_index, data.get("edge_weight") if hasattr(data, "get") else data.edge_weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        changed = transforms.ToSparseTensor(attr="edge_weight" if weighted else None)(data)
    assert "adj_t" in changed and "edge_index" not in changed
    back = pyg.data(graph_of(changed))
    assert edges_of(back.edge_index, back.edge_weight if weighted else None) == expected
    assert ("edge_weight" in back) == weighted


def test_edges_that_an_adjacency_matrix_lists_twice_are_one_and_weigh_nothing() -> None:
    ends = torch.tensor([[1, 1, 2], [0, 0, 1]])
    back = pyg.data(graph_of(Data(adj_t=torch.sparse_coo_tensor(ends, torch.ones(3), (3, 3)))))
    assert back.edge_index.tolist() == [[0, 1], [1, 2]] and "edge_weight" not in back


class Matrix:
    """What is used of torch_sparse's ``SparseTensor``, which has no wheel for the newest torch."""

    def __init__(self, rows: list[int], columns: list[int], values: Any, size: int) -> None:
        self.rows, self.columns, self.values, self.count = torch.tensor(rows), torch.tensor(columns), values, size

    def coo(self) -> tuple[Any, Any, Any]:
        return self.rows, self.columns, self.values

    def csr(self) -> tuple[Any, Any, Any]:
        ends = torch.bincount(self.rows, minlength=self.count).cumsum(0)
        return torch.cat([torch.zeros(1, dtype=torch.int64), ends]), self.columns, self.values

    def sparse_sizes(self) -> tuple[int, int]:
        return self.count, self.count

    def size(self, _: int) -> int:
        return self.count


def test_matrices_of_torch_sparse_are_read() -> None:
    data = Data(adj_t=Matrix([0, 1, 1], [2, 0, 2], None, 4), x=Matrix([0, 3], [1, 2], None, 4))
    back = pyg.data(graph_of(data))
    assert back.edge_index.tolist() == [[2, 0, 2], [0, 1, 1]] and "edge_weight" not in back
    assert back.x.to_dense().tolist() == [[0, 1, 0, 0], [0] * 4, [0] * 4, [0, 0, 1, 0]]
    data.adj_t.values = torch.tensor([1.0, 2.0, 3.0])
    assert pyg.data(graph_of(data)).edge_weight.tolist() == [1.0, 2.0, 3.0]


def test_features_of_edges_are_named_as_left_out() -> None:
    graph = graph_of(small(edge_attr=torch.rand(4, 3)))
    assert any("edge_attr" in line for line in graph.roles), graph.roles
    assert "edge_weight" not in pyg.data(graph)


def test_undirected_relations_get_a_relation_back() -> None:
    back = pyg.data(graph_of(two_types(), undirected=True))
    assert back.edge_types == [("user", "buys", "item"), ("item", "rev_buys", "user")]
    assert back["item", "rev_buys", "user"].edge_index.tolist() == [[0, 1, 1], [0, 1, 2]]


def test_nodes_of_types_are_called_by_type_and_row_or_id() -> None:
    data = two_types()
    assert graph_of(data).ids.tolist() == ["user/0", "user/1", "user/2", "item/0", "item/1"]
    data["item"].n_id = torch.tensor([40, 30])
    graph = graph_of(data)
    assert graph.ids.tolist()[3:] == ["item/40", "item/30"]
    assert pyg.data(graph)["item"].n_id.tolist() == [40, 30] and "n_id" not in pyg.data(graph)["user"]


def test_a_homogeneous_view_of_types_keeps_them_and_their_names() -> None:
    data = two_types()
    data["item"].x = torch.rand(2, 2)
    back = pyg.data(graph_of(data.to_homogeneous()))
    assert back.node_types == ["user", "item"] and back.edge_types == [("user", "buys", "item")]
    assert torch.equal(back["item"].x, data["item"].x) and torch.equal(back["user"].x, data["user"].x)


def changed(data: Any, **attributes: Any) -> Any:
    data = copy.copy(data)
    for name, value in attributes.items():
        data[name] = value
    return data


def of_types(change: Any) -> HeteroData:
    data = two_types()
    change(data)
    return data


BUYS = ("user", "buys", "item")
MISTAKES = {
    "x on a GPU": (lambda: changed(small(), x=torch.rand(3, 2, device="meta")), r"^x: .*meta; x\.cpu\(\)"),
    "edges on a GPU": (lambda: changed(small(), edge_index=torch.zeros(2, 3, device="meta")), r"edge_index\.cpu\(\)"),
    "no edges": (lambda: Data(x=torch.rand(3, 2)), "expected edges as edge_index or adj_t"),
    "transposed": (lambda: changed(small(), edge_index=torch.zeros(4, 2).long()), r"edge_index\.t\(\) has it"),
    "ends with fractions": (lambda: changed(small(), edge_index=torch.rand(2, 4)), "expected whole numbers"),
    "not PyG's": (lambda: {"edge_index": torch.zeros(2, 3)}, "expected a Data or HeteroData .* found dict"),
    "short mask": (lambda: changed(small(), train_mask=torch.ones(2).bool()), "train_mask"),
    "no count": (lambda: of_types(lambda d: d["item"].pop("num_nodes")), r"data\['item'\]\.num_nodes = "),
    "a type of ends only": (
        lambda: of_types(lambda d: d["user", "sees", "page"].update({"edge_index": torch.zeros(2, 1).long()})),
        r"data\['page'\]\.num_nodes = ",
    ),
    "ends beyond": (
        lambda: of_types(lambda d: d[BUYS].update({"edge_index": torch.tensor([[0], [2]])})),
        r"expected targets in 0\.\.2 \(item\), found 2",
    ),
    "labels of two types": (
        lambda: of_types(lambda d: (d["user"].update({"y": torch.ones(3)}), d["item"].update({"y": torch.ones(2)}))),
        r"labels of one type of nodes, found some of user, item; del data\['item'\]\.y",
    ),
    "weights of one relation": (
        lambda: of_types(
            lambda d: (
                d[BUYS].update({"edge_weight": torch.ones(3)}),
                d["user", "sees", "item"].update({"edge_index": torch.tensor([[0], [1]])}),
            )
        ),
        r"\('user', 'sees', 'item'\) has none",
    ),
    "rows of a type": (
        lambda: of_types(lambda d: d["user"].update({"train_mask": torch.ones(4).bool()})),
        r"data\['user'\]\.train_mask: expected 3 rows",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_name_the_attribute_and_the_fix(mistake: str) -> None:
    make, said = MISTAKES[mistake]
    with pytest.raises(lc.DataError, match=said):
        graph_of(make())


def test_a_dataset_is_told_from_its_graph() -> None:
    datasets = pytest.importorskip("torch_geometric.datasets")
    with pytest.raises(lc.DataError, match=r"dataset\[0\]"):
        graph_of(datasets.FakeDataset(num_graphs=1))


def test_what_is_given_is_not_changed() -> None:
    data = HeteroData()
    data["user", "buys", "item"].edge_index = torch.tensor([[0], [1]])
    with pytest.raises(lc.DataError, match="num_nodes"):
        graph_of(data)
    assert data.node_types == []
