"""A run's model as a module of PyTorch: the same logits as the program's, and a module like any other."""

from __future__ import annotations

import copy
import inspect
import itertools
import os
import pickle
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import laconic_gnn as lc
import numpy as np
import pytest

pytest.importorskip("torch_geometric", reason="needs torch_geometric")
torch = pytest.importorskip("torch", reason="needs torch")

pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")

NODES, COLUMNS, CLASSES = 90, 5, 4
# Differences are relative to the largest logit.
TOLERANCE = 1e-5

LAYERS: dict[str, dict[str, Any]] = {
    "gcn": {"arch": "gcn"},
    "sage": {"arch": "sage"},
    "sage, max": {"arch": "sage", "aggregator": "max"},
    "gin": {"arch": "gin"},
    "gat": {"arch": "gat", "heads": 2},
    "gat, mean": {"arch": "gat", "heads": 2, "head_merge": "mean"},
    "rgcn": {"arch": "rgcn"},
    "mlp": {"arch": "mlp"},
}
NORMS = ["none", "layer", "batch"]
JOINS = ["none", "last", "cat", "max"]
RESIDUALS = [False, True]
SCALES = ["given", "row-normalised", "standardised"]


def choices(layer: str) -> list[tuple[str, bool, str]]:
    """Of a layer every norm, residual and jumping knowledge. Every combination of these occurs with some layer, and
    with each where ``LACONIC_TESTS=all``, which takes a minute."""
    if os.environ.get("LACONIC_TESTS") == "all":
        return list(itertools.product(NORMS, RESIDUALS, JOINS))
    number = list(LAYERS).index(layer)
    return [(NORMS[(k + number) % 3], RESIDUALS[(k + number // 3) % 2], join) for k, join in enumerate(JOINS)]


def arrays(kind: str = "plain") -> dict[str, Any]:
    """Arcs between nodes of four classes, some without any; features far from 0; a split."""
    draw = np.random.default_rng(3)
    y = draw.integers(0, CLASSES, NODES)
    ends = np.unique(draw.integers(0, NODES, (2, 400)), axis=1)
    ends = ends[:, (ends[0] != ends[1]) & (ends[1] % 11 != 3)]
    role = draw.random(NODES)
    found = {
        "edge_index": ends,
        "x": (draw.gamma(2.0, 3.0, (NODES, COLUMNS)) + 5 * (y[:, None] == np.arange(COLUMNS)) + 10).astype(np.float32),
        "y": y,
        "train_mask": role < 0.5,
        "val_mask": (role >= 0.5) & (role < 0.7),
        "test_mask": role >= 0.7,
    }
    if kind == "weighted":
        found["edge_weight"] = (draw.gamma(1.0, 1.0, ends.shape[1]) + 0.05).astype(np.float32)
    if kind == "typed":
        found["edge_type"] = draw.integers(0, 3, ends.shape[1])
    if kind == "several":
        found["labels"] = (draw.random((NODES, CLASSES)) < 0.4).astype(np.uint8)
        del found["y"]
    return found


@cache
def graph(kind: str = "plain") -> lc.Graph:
    return lc.Graph.from_numpy(**arrays(kind), undirected=False)


def trained(on: lc.Graph, model: dict[str, Any], **keys: Any) -> lc.Run:
    """A few rounds on three parts, so that no weight is as it began."""
    model = {"layers": 2, "hidden": 8, **model}
    return lc.train(on, model=model, parts=3, train={"epochs": 4, "lr": 0.05}, progress=False, **keys)


def inputs(on: lc.Graph, model: torch.nn.Module) -> list[Any]:
    """What a model asks for, from the graph as PyTorch Geometric has it."""
    data = on.to_pyg()
    return [getattr(data, name) for name in inspect.signature(type(model).forward).parameters if name != "self"]


def logits(model: torch.nn.Module, given: list[Any]) -> np.ndarray:
    with torch.no_grad():
        return model(*given).numpy()


def assert_equal(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.shape == expected.shape and np.isfinite(expected).all()
    assert np.abs(found - expected).max() <= TOLERANCE * np.abs(expected).max()
    # And they are no constant.
    assert np.ptp(expected, axis=0).max() > 100 * TOLERANCE * np.abs(expected).max()


@pytest.mark.parametrize("layer", LAYERS)
def test_logits_are_the_programs_for_every_norm_residual_and_jumping_knowledge(layer: str) -> None:
    model = LAYERS[layer]
    on = graph("typed" if model["arch"] == "rgcn" else "plain")
    for number, (norm, residual, join) in enumerate(choices(layer)):
        choice = {"norm": norm, "residual": residual, "jumping_knowledge": join, "layers": 2 + number % 2}
        run = trained(on, {**model, **choice}, data={"features": SCALES[number % 3]})
        assert_equal(logits(built := run.module(), inputs(on, built)), run.predictions().logits)


ONCE = {
    "gcn, no loops": ("plain", {"arch": "gcn", "self_loops": False}, {}),
    "sage, loops": ("plain", {"arch": "sage", "self_loops": True}, {}),
    "gin, no epsilon": ("plain", {"arch": "gin", "learn_epsilon": False}, {}),
    "gat, no loops": ("plain", {"arch": "gat", "heads": 2, "self_loops": False}, {}),
    "rgcn, bases": ("typed", {"arch": "rgcn", "bases": 2}, {}),
    "weighted gcn": ("weighted", {"arch": "gcn"}, {}),
    "weighted sage": ("weighted", {"arch": "sage", "self_loops": True}, {}),
    "weighted gin": ("weighted", {"arch": "gin"}, {}),
    "weighted gat": ("weighted", {"arch": "gat", "heads": 2}, {}),
    "several labels": ("several", {"arch": "sage"}, {}),
    "prelu": ("plain", {"arch": "gcn", "activation": "prelu", "layers": 3}, {}),
    "input width": ("plain", {"arch": "sage", "input_width": 6}, {}),
    "one layer": ("plain", {"arch": "gcn", "layers": 1}, {}),
    "lazy": ("plain", {"arch": "sage"}, {"schedule": "lazy"}),
    "lazy from mlp": ("plain", {"arch": "gat", "heads": 2}, {"schedule": {"kind": "lazy", "start": "mlp"}}),
    "lazy, scores": ("plain", {"arch": "gcn"}, {"schedule": {"kind": "lazy", "hand_on": "scores"}}),
}


@pytest.mark.parametrize("case", ONCE)
def test_logits_are_the_programs_with_weights_several_labels_and_lazy_stages(case: str) -> None:
    kind, model, keys = ONCE[case]
    run = trained(graph(kind), model, data={"features": "standardised"}, **keys)
    assert_equal(logits(built := run.module(), inputs(graph(kind), built)), run.predictions().logits)


def test_logits_are_those_of_the_program_by_its_command_line(tmp_path: Path) -> None:
    """What ``laconic predict`` writes are embeddings, and probabilities, which say what logits are but for a number a
    row."""
    run = trained(graph(), {"arch": "sage"}, data={"features": "standardised"}, out=tmp_path / "run")
    graph().save(tmp_path / "graph.npz")
    words = ["predict", tmp_path / "run", "--data", tmp_path / "graph.npz", "--out", tmp_path / "p.csv", "--embeddings"]
    subprocess.run([sys.executable, "-m", "laconic_gnn", *words, "-q"], check=True)
    table = np.genfromtxt(tmp_path / "p.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    columns = {name: np.stack([table[of] for of in table.dtype.names if of.startswith(name)], axis=1)
               for name in ("prob_", "emb_")}
    model, read = run.module(), []
    model.convs["1"].register_forward_pre_hook(lambda _, given: read.append(given[0]))
    found = torch.from_numpy(logits(model, inputs(graph(), model)))
    assert_equal(found.log_softmax(1).numpy(), np.log(columns["prob_"]))
    assert_equal(read[0].numpy(), columns["emb_"])


def test_types_of_nodes_are_columns_side_by_side() -> None:
    data = pytest.importorskip("torch_geometric.data").HeteroData()
    given = arrays()
    halves = NODES // 2
    data["a"].x, data["b"].x = torch.from_numpy(given["x"][:halves]), torch.from_numpy(given["x"][halves:, :2])
    data["a"].y, data["a"].train_mask = torch.from_numpy(given["y"][:halves]), torch.ones(halves).bool()
    ends = torch.from_numpy(given["edge_index"])
    for relation, source, target in (("in", 0, 0), ("to", 0, 1), ("from", 1, 0)):
        own = ends[:, (ends[0] >= halves).eq(source) & (ends[1] >= halves).eq(target)]
        names = ("a" if source == 0 else "b", relation, "a" if target == 0 else "b")
        data[names].edge_index = own % halves
    from laconic_gnn.sources import pyg

    on = lc.Graph.from_numpy(**pyg.arguments(data), undirected=False)
    run = trained(on, {"arch": "rgcn"}, data={"features": "standardised"})
    of = on.arrays()
    sparse = [torch.from_numpy(of[f"features_{part}"]) for part in ("indptr", "indices", "data")]
    x = torch.sparse_csr_tensor(*sparse, size=of["features_shape"].tolist(), check_invariants=False).to_dense()
    edges = [torch.from_numpy(of[name]).long() for name in ("edge_index", "edge_type")]
    assert_equal(logits(run.module(), [x, *edges]), run.predictions().logits)


def test_names_of_parameters_are_those_of_the_run() -> None:
    run = trained(graph(), {"arch": "gat", "heads": 2}, data={"features": "standardised"})
    state = run.module().state_dict()
    scale = {"scale.mean", "scale.deviation"}
    assert set(state) - scale == set(run.weights) and scale < set(state)
    for name, values in run.weights.items():
        assert np.array_equal(state[name].numpy(), values)


def test_they_are_the_names_of_pytorch_geometrics_own_models() -> None:
    nn = pytest.importorskip("torch_geometric.nn")
    run = trained(graph(), {"arch": "sage", "norm": "none"})
    own = nn.GraphSAGE(COLUMNS, 8, 2, CLASSES)
    own.load_state_dict(run.module().state_dict())
    data = graph().to_pyg()
    assert_equal(logits(own.eval(), [data.x, data.edge_index]), run.predictions().logits)


def test_it_trains_on(tmp_path: Path) -> None:
    model, data = trained(graph(), {"arch": "sage", "norm": "batch"}).module(), graph().to_pyg()
    assert not model.training
    model.train()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(30):
        optimiser.zero_grad()
        found = model(data.x, data.edge_index)[data.train_mask]
        lost = torch.nn.functional.cross_entropy(found, data.y[data.train_mask])
        lost.backward()
        optimiser.step()
        losses.append(lost.item())
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.parametrize("kind", ["plain", "weighted"])
def test_copies_and_pickles_are_models_of_their_own(kind: str) -> None:
    model = trained(graph(kind), {"arch": "sage"}, data={"features": "standardised"}).module()
    given = inputs(graph(kind), model)
    expected = logits(model, given)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(logits(other, given), expected)
        with torch.no_grad():
            next(other.parameters()).zero_()
    assert np.array_equal(logits(model, given), expected)


def test_another_process_loads_what_is_saved(tmp_path: Path) -> None:
    """Of weighted sage each layer is of a class that is in no file."""
    model = trained(graph("weighted"), {"arch": "sage"}, data={"features": "standardised"}).module()
    given = inputs(graph("weighted"), model)
    torch.save({"model": model, "given": given, "expected": logits(model, given)}, tmp_path / "kept.pt")
    code = (
        "import sys, torch\n"
        "kept = torch.load(sys.argv[1], weights_only=False)\n"
        "assert (kept['model'](*kept['given']).detach().numpy() == kept['expected']).all()\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "kept.pt")], check=True)


def test_nothing_stays_on_the_disk_and_the_code_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = trained(graph(), {"arch": "sage"}, out=tmp_path / "run")
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    model = run.module()
    assert sorted(tmp_path.rglob("*")) == before
    assert "def forward" in inspect.getsource(type(model))
    assert type(run.module()) is type(model)


@pytest.mark.parametrize("decoder", ["dot", "mlp", "distmult"])
def test_links_are_scored_as_the_program_scores_them(decoder: str) -> None:
    task = {"kind": "link_prediction", "decoder": decoder, "split": {"val": 0.0, "test": 0.0}}
    run = trained(graph(), {"arch": "gcn"}, task=task, data={"features": "standardised"})
    pairs = [(1, 2), (3, 4), (50, 60), (7, 8), (89, 0)]
    model, expected = run.module(), np.array(run.scores(pairs)["score"], dtype=np.float32)
    with torch.no_grad():
        found = model.score(model(*inputs(graph(), model)), torch.tensor(pairs).T).numpy()
    assert_equal(found, expected)


def test_without_the_package_that_it_is_made_of_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    run = trained(graph(), {"arch": "sage", "input_width": 4})
    monkeypatch.setitem(sys.modules, "torch_geometric.nn", None)
    with pytest.raises(ImportError, match="pip install torch_geometric$"):
        run.module()
