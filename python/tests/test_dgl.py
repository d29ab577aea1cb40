"""Graphs of DGL. Its newest wheel, 2.1.0, opens with torch 2.2.1 at most: `pip install dgl==2.1.0 torch==2.2.1
torchdata==0.7.1 "numpy<2" "pandas<3" pydantic pyyaml "setuptools<81"` on Python 3.11."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import laconic_gnn as lc
import numpy as np
import pytest

try:
    import dgl
    import torch
except (ImportError, OSError) as error:
    pytest.skip(f"dgl does not open here: {error}", allow_module_level=True)


def edges_of(arrays: dict[str, np.ndarray]) -> Counter[tuple[Any, ...]]:
    columns = [*arrays["edge_index"].tolist()]
    columns += [arrays[name].tolist() for name in ("edge_type", "edge_weight") if name in arrays]
    return Counter(zip(*columns))


def drawn(seed: int) -> Any:
    torch.manual_seed(seed)
    draw = np.random.default_rng(seed)
    nodes = int(draw.integers(2, 40))
    pairs = {tuple(pair) for pair in draw.integers(0, nodes, (4 * nodes, 2)).tolist() if pair[0] != pair[1]}
    ends = torch.tensor(sorted(pairs, key=lambda _: draw.random())).T
    graph = dgl.graph((ends[0], ends[1]), num_nodes=nodes)
    graph.ndata["feat"] = torch.randn(nodes, 3)
    graph.ndata["label"] = torch.randint(-1, 4, (nodes,), dtype=torch.int32)
    for word in ("train", "val", "test"):
        graph.ndata[f"{word}_mask"] = torch.rand(nodes) < 0.3
    graph.ndata["test_mask"] &= ~graph.ndata["train_mask"] & ~graph.ndata["val_mask"]
    graph.ndata["val_mask"] &= ~graph.ndata["train_mask"]
    graph.edata["w"] = torch.randint(1, 64, (len(pairs), 1)) / 8
    return graph


@pytest.mark.parametrize("seed", range(12))
def test_a_graph_keeps_edges_weights_ids_labels_masks_and_bits_of_features(seed: int) -> None:
    graph = drawn(seed)
    sub = dgl.node_subgraph(graph, torch.randperm(graph.num_nodes()))
    arrays = lc.Graph.from_dgl(sub).arrays()
    assert edges_of(arrays) == Counter(
        zip(*(ends.tolist() for ends in sub.edges()), sub.edata["w"].reshape(-1).tolist())
    )
    assert arrays["features"].tobytes() == sub.ndata["feat"].numpy().tobytes()
    assert arrays["labels"].tolist() == sub.ndata["label"].tolist()
    assert arrays["ids"].tolist() == sub.ndata[dgl.NID].tolist()
    for mask in ("train_mask", "val_mask", "test_mask"):
        assert (arrays[mask] != 0).tolist() == sub.ndata[mask].tolist(), mask


@pytest.mark.filterwarnings("ignore:y. no node has 'label'")
def test_relations_of_edges_are_read_and_names_can_be_others() -> None:
    graph = dgl.graph(([0, 0, 1], [1, 1, 2]))
    graph.edata["etype"] = torch.tensor([1, 0, 2])
    graph.edata["cost"], graph.ndata["h"], graph.ndata["class"] = torch.ones(3) / 4, torch.randn(3, 2), torch.arange(3)
    arrays = lc.Graph.from_dgl(graph, "h", "class", weight="cost").arrays()
    assert edges_of(arrays) == Counter([(0, 1, 1, 0.25), (0, 1, 0, 0.25), (1, 2, 2, 0.25)])
    assert arrays["features"].tobytes() == graph.ndata["h"].numpy().tobytes()
    assert arrays["labels"].tolist() == [0, 1, 2]
    with pytest.warns(lc.LaconicWarning, match="x: no node has 'feat', but there are class, h; x= names one"):
        assert lc.Graph.from_dgl(graph).features == 0
    with pytest.raises(lc.DataError, match="x: expected one of class, h, found 'hh'"):
        lc.Graph.from_dgl(graph, "hh")
    with pytest.raises(lc.DataError, match="weight: expected one of etype, cost, found 'price'"):
        lc.Graph.from_dgl(graph, "h", "class", weight="price")


def test_several_types_keep_edges_features_labels_and_masks_of_each() -> None:
    follows, plays = ([0, 1, 2], [1, 2, 0]), ([0, 2, 2], [1, 0, 1])
    graph = dgl.heterograph({("user", "follows", "user"): follows, ("user", "plays", "game"): plays})
    graph.nodes["user"].data["feat"], graph.nodes["game"].data["feat"] = torch.randn(3, 4), torch.randn(2, 1)
    graph.nodes["user"].data["label"] = torch.tensor([1, -1, 0])
    graph.nodes["user"].data["train_mask"] = torch.tensor([True, False, False])
    arrays = lc.Graph.from_dgl(graph).arrays()
    about = json.loads(arrays["about"].tobytes())
    # Games come first, as they do in DGL.
    assert about["relations"] == ["user__follows__user", "user__plays__game"]
    assert about["node_types"] == [{"name": "game", "columns": 2}, {"name": "user", "columns": 5}]
    assert arrays["node_type"].tolist() == [0, 0, 1, 1, 1]
    user = [(2 + a, 2 + b, 0) for a, b in zip(*follows)]
    assert edges_of(arrays) == Counter(user + [(2 + a, b, 1) for a, b in zip(*plays)])
    rows = arrays["features_data"].tolist()
    game, person = graph.nodes["game"].data["feat"].tolist(), graph.nodes["user"].data["feat"].tolist()
    assert rows == [value for row in game + person for value in [*row, 1.0]]
    assert arrays["labels"].tolist() == [-1, -1, 1, -1, 0]
    assert arrays["train_mask"].tolist() == [0, 0, 1, 0, 0]


def test_a_graph_made_of_one_type_keeps_the_types_that_it_had() -> None:
    graph = dgl.heterograph({("a", "to", "b"): ([0, 1], [0, 0]), ("b", "to", "a"): ([0], [1])})
    graph.nodes["a"].data["feat"], graph.nodes["b"].data["feat"] = torch.ones(2, 2), torch.ones(1, 2)
    arrays = lc.Graph.from_dgl(dgl.to_homogeneous(graph, ndata=["feat"])).arrays()
    assert arrays["node_type"].tolist() == [0, 0, 1]
    assert edges_of(arrays) == Counter([(0, 2, 0), (1, 2, 0), (2, 1, 1)])
