"""The package as users meet it, and the program in it."""

from __future__ import annotations

import json
from pathlib import Path

import laconic_gnn as lc
import numpy as np
import pytest
from graphs import arrays, program, python
from laconic_gnn import settings

METHODS = {
    "synchronous": {},
    "one worker": {"parts": 1},
    "lazy": {"schedule": "lazy"},
    "pipelined": {"schedule": "pipelined"},
    "two bits": {"messages": {"forward": {"codec": "quantised", "bits": 2}}},
    "masked": {"messages": {"forward": {"codec": "masked", "ratio": 4}, "backward": {"codec": "masked", "ratio": 4}}},
    "local": {"train": {"sync_every": 3}},
    "averaging": {"schedule": "averaging"},
    "gat": {"arch": "gat"},
    "batches": {"batch": {"size": 40}},
    "links": {"task": {"kind": "link_prediction"}},
    "relations": {"arch": "rgcn"},
}


@pytest.mark.parametrize("method", METHODS)
def test_a_run_has_the_parameters_and_bytes_of_the_program(method: str, tmp_path: Path) -> None:
    given = arrays()
    if method == "relations":
        given["edge_type"] = np.arange(given["edge_index"].shape[1]) % 3
    graph = lc.Graph.from_numpy(**given, undirected=True)
    keys = settings.dotted({"parts": 3, "epochs": 12, "seed": 2, "model": {"hidden": 8}})
    keys.update(settings.dotted(METHODS[method]))
    run = lc.train(graph, **keys)
    np.savez(tmp_path / "graph.npz", directed=np.array([1]), **given)
    more = {"data.path": tmp_path / "graph.npz", "data.symmetrise": True, "data.typed": method == "relations"}
    (tmp_path / "run.toml").write_text("\n".join(settings.words({**keys, **more})))
    done = program("train", str(tmp_path / "run.toml"), "--out", str(tmp_path / "out"), "-q")
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert run.digest == summary["parameters"]["digest"]
    assert run.bytes == summary["bytes"]["total"]


def test_nothing_is_imported_before_it_is_used() -> None:
    heavy = ["numpy", "torch", "pandas", "polars", "scipy", "sklearn", "tqdm", "matplotlib"]
    code = f"import sys, laconic_gnn; print([name for name in {heavy} if name in sys.modules])"
    done = python(code)
    assert done.stdout.strip() == "[]", done.stderr


def test_every_public_name_is_there_and_says_what_it_is() -> None:
    for name in lc.__all__:
        if name != "LaconicClassifier":
            assert name.startswith("__") or getattr(lc, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        lc.trian  # noqa: B018


def test_a_graph_keeps_the_array_of_features_alive_and_changes_with_it() -> None:
    given = arrays()
    graph = lc.Graph.from_numpy(**given)
    x = given.pop("x")
    digest = lc.train(graph, epochs=3).digest
    x *= -1
    assert lc.train(graph, epochs=3).digest != digest


def test_keys_about_reading_are_refused_for_a_graph_and_obeyed_for_a_path(tmp_path: Path) -> None:
    graph = lc.Graph.from_numpy(**arrays(), undirected=False)
    with pytest.raises(lc.ConfigError, match="data.symmetrise: about how files are read"):
        lc.train(graph, epochs=1, data={"symmetrise": True})
    graph.save(tmp_path / "train.npz")
    both = lc.train(tmp_path / "train.npz", epochs=2, data={"symmetrise": True})
    assert both.digest == lc.train(lc.Graph.from_numpy(**arrays(), undirected=True), epochs=2).digest
    assert both.predictions().logits.shape == (graph.nodes, 3)
    # What a file says about the reading of another graph is not said in the run's folder.
    (tmp_path / "run.toml").write_text('data.path = "elsewhere.npz"\ndata.symmetrise = true\ntrain.epochs = 2\n')
    run = lc.train(graph, config=tmp_path / "run.toml", out=tmp_path / "run")
    assert run.summary["config"]["data"]["symmetrise"] is False and not run.summary["config"]["data"].get("path")


def test_another_graph_than_the_run_s_is_refused_as_its_own(tmp_path: Path) -> None:
    graph = lc.Graph.from_numpy(**arrays())
    run = lc.train(graph, epochs=2, out=tmp_path / "run")
    other = lc.Graph.from_numpy(**{**arrays(), "x": arrays()["x"] + 1})
    assert np.array_equal(lc.Run(tmp_path / "run", graph).predictions().logits, run.predictions().logits)
    with pytest.raises(lc.ConfigError, match="not the graph"):
        lc.Run(tmp_path / "run", other).predictions()
    assert run.predictions(other).logits.shape == (graph.nodes, 3)


def test_names_of_graphs_are_kept() -> None:
    assert lc.Graph.from_numpy(**arrays(), name="cora.v2/a").name == "cora.v2/a"


def test_self_loops_come_back_where_they_are_asked_for(tmp_path: Path) -> None:
    graph = lc.Graph.from_numpy([[0, 1, 1], [1, 1, 0]], np.eye(2, dtype=np.float32), keep_self_loops=True)
    graph.save(tmp_path / "loops.npz")
    counts = [lc.Graph.read(tmp_path / "loops.npz", keep_self_loops=keep).edges for keep in (False, True)]
    assert counts == [2, 3] and graph.info()["edges"] == 3


def test_a_run_says_of_self_loops_that_they_are_kept_only_where_there_are_some(tmp_path: Path) -> None:
    for ends, keeps in (([[0, 1], [1, 0]], False), ([[0, 1, 1], [1, 1, 0]], True)):
        x, y = np.eye(2, dtype=np.float32), np.arange(2)
        graph = lc.Graph.from_numpy(ends, x, y, train_mask=y == 0, test_mask=y == 1, keep_self_loops=True)
        run = lc.train(graph, epochs=1, out=tmp_path / str(keeps))
        assert ("keep_self_loops = true" in (run.folder / "config.toml").read_text()) == keeps


def test_errors_name_the_file_and_not_a_key_that_is_called_alike(tmp_path: Path) -> None:
    for name in ("train.csv", "my data/edges.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("source,target\n0\n")
        with pytest.raises(lc.DataError) as found:
            lc.Graph.read(tmp_path / name)
        assert (found.value.key, found.value.file) == (None, str(tmp_path / name))


def test_a_setting_that_is_given_twice_is_refused() -> None:
    graph = lc.Graph.from_numpy(**arrays())
    for twice in ({"epochs": 3, "train": {"epochs": 4}}, {"messages": {"forward": "half"}, "messages.forward": "exact"}):
        with pytest.raises(lc.ConfigError, match="given twice"):
            lc.train(graph, **twice)


def test_unknown_keys_are_errors_with_what_was_meant() -> None:
    graph = lc.Graph.from_numpy(**arrays())
    with pytest.raises(lc.ConfigError, match="did you mean") as found:
        lc.train(graph, model={"hiden": 4})
    assert (found.value.key, found.value.suggestion) == ("model.hiden", "model.hidden")
    with pytest.raises(lc.ConfigError, match="sage") as found:
        lc.train(graph, arch="sagee")
    assert (found.value.key, found.value.suggestion) == ("model.arch", "sage")
    with pytest.raises(lc.ConfigError, match='model={"hidden": …}'):
        lc.train(graph, hidden=4)
    with pytest.raises(lc.ConfigError, match="epochs"):
        lc.train(graph, epoch=4)


def test_errors_are_of_the_class_that_their_exit_code_stands_for() -> None:
    graph = lc.Graph.from_numpy(**arrays())
    with pytest.raises(lc.BudgetError) as found:
        lc.train(graph, parts=3, messages={"budget": "1 kB"})
    assert isinstance(found.value, lc.ConfigError) and found.value.key == "messages.budget"
    with pytest.raises(lc.DataError) as found:
        lc.Graph.read("/nowhere/graph.npz")
    assert found.value.file == "/nowhere/graph.npz"
    with pytest.raises(lc.PolicyError):
        lc.train(graph, parts=3, policy={"deny": ["features"]})
    with pytest.raises(lc.DivergedError):
        lc.train(graph, epochs=200, train={"lr": 1e30})
    with pytest.raises(lc.FileError):
        lc.resume("/nowhere")


def test_memory_that_is_not_there_is_refused_with_the_way_round_it() -> None:
    graph = lc.Graph.from_numpy(**arrays())
    with pytest.raises(lc.MemoryRefused, match="force=True"):
        lc.train(graph, model={"hidden": 65536, "layers": 6})


def test_configurations_may_come_from_a_file_with_keys_over_it(tmp_path: Path) -> None:
    graph = lc.Graph.from_numpy(**arrays())
    (tmp_path / "run.toml").write_text("model.hidden = 8\ntrain.epochs = 9\n")
    run = lc.train(graph, config=tmp_path / "run.toml", epochs=4)
    config = run.summary["config"]
    assert (config["model"]["hidden"], config["train"]["epochs"]) == (8, 4)


VALUES = {"text": 'a "b" \\ ü', "flag": True, "whole": 3, "number": 0.1, "list": [1, 2.5], "numpy": np.float32(0.5)}


@pytest.mark.parametrize("kind", VALUES)
def test_values_of_python_are_those_of_toml(kind: str) -> None:
    tomllib = pytest.importorskip("tomllib")
    value = VALUES[kind]
    read = tomllib.loads("key = " + settings.toml("key", {"inner": value}))["key"]["inner"]
    assert read == (value.item() if hasattr(value, "item") else value)


def test_a_plan_says_the_bytes_and_what_leaves() -> None:
    graph = lc.Graph.from_numpy(**arrays())
    plan = lc.plan(graph, parts=3, epochs=4)
    assert plan.bytes == lc.train(graph, parts=3, epochs=4).bytes > 0
    assert any("features" in line for line in plan.leaves)


def test_one_worker_and_several_agree() -> None:
    assert lc.verify(lc.Graph.from_numpy(**arrays()), parts=3, rounds=3)["agrees"]


def test_a_comparison_has_a_row_a_method_and_its_runs(tmp_path: Path) -> None:
    graph = lc.generate(nodes=300, features=8, classes=3, seed=1)
    methods = {"standard": {}, "halves": {"messages": {"forward": "half", "backward": "half"}}}
    compared = lc.compare(graph, methods, seeds=2, parts=3, epochs=5, out=tmp_path / "compared")
    table = compared.table
    assert list(table["name"]) == ["standard", "halves"] and list(table["runs"]) == [2, 2]
    assert table["bytes"][1] < table["bytes"][0]
    assert len(compared.runs) == 4 and set(compared.front) <= {"standard", "halves"}
    assert compared.run("halves", 1).summary["config"]["train"]["seed"] == 1
    assert "tabular" in compared.to_latex() and compared.to_markdown().startswith("| method |")
    for picture in [compared.plot(), compared.plot_curves(), compared.plot_time()]:
        assert picture._repr_svg_().count("<svg") == 1
    with pytest.raises(KeyError, match="halves"):
        compared.run("halfs")
    with pytest.raises(lc.ConfigError, match='^methods: .*"retexoo"; did you mean "RETEXO"') as wrong:
        lc.compare(graph, ["standard", "retexoo"], parts=2)
    assert wrong.value.file is None and wrong.value.suggestion == "RETEXO"


def test_pages_and_pictures_are_the_program_s() -> None:
    run = lc.train(lc.Graph.from_numpy(**arrays()), parts=3, epochs=4)
    assert "<iframe" in run.report()._repr_html_()
    for picture, count in [(run.plot_curves(), 2), (run.plot_bytes(), 2)]:
        assert len(picture.svgs) >= count and all(svg.startswith("<svg ") for svg in picture.svgs)
        picture.save(run.folder / "picture.svg")
        saved = (run.folder / "picture.svg").read_text()
        import xml.etree.ElementTree as tree

        assert tree.fromstring(saved).tag == "{http://www.w3.org/2000/svg}svg"


def test_predictions_are_by_class_name_and_by_the_ids_of_the_graph() -> None:
    given = arrays()
    graph = lc.Graph.from_numpy(
        **given, ids=[f"n{node}" for node in range(len(given["y"]))], class_names=["red", "green", "blue"]
    )
    run = lc.train(graph, epochs=30, parts=2)
    predicted = run.predictions()
    test = given["test_mask"]
    assert predicted.measure(lambda y, found: (y == found).mean(), given["y"], test) == run.accuracy
    assert list(predicted.table["id"][:2]) == ["n0", "n1"] and set(predicted.names) <= {"red", "green", "blue"}
    assert np.allclose(predicted.probabilities.sum(axis=1), 1)
    # The same graph as if it were another: one worker, features prepared by what the model remembers.
    assert np.allclose(run.predictions(graph).logits, predicted.logits, atol=1e-4)
    assert run.embeddings().shape == (graph.nodes, 256)


def test_models_of_links_score_pairs() -> None:
    graph = lc.Graph.from_numpy(**arrays(), undirected=True)
    run = lc.train(graph, parts=2, epochs=5, task={"kind": "link_prediction"}, model={"hidden": 8})
    scores = run.scores([(0, 1), (2, 3), (4, 5)])
    assert list(scores["source"]) == [0, 2, 4] and len(scores["score"]) == 3
    rows = run.embeddings()
    assert rows.shape == (graph.nodes, 8)
    assert np.allclose(scores["score"], [rows[0] @ rows[1], rows[2] @ rows[3], rows[4] @ rows[5]], rtol=1e-3, atol=1e-4)
    with pytest.raises(lc.ConfigError, match="scores"):
        run.predictions()


def test_generated_graphs_are_those_of_the_program() -> None:
    graph = lc.generate(nodes=500, classes=4, seed=3)
    assert (graph.nodes, graph.classes) == (500, 4)
    assert np.array_equal(graph.arrays()["labels"], lc.generate(nodes=500, classes=4, seed=3).arrays()["labels"])
    with pytest.raises(lc.LaconicError, match="notes"):
        lc.generate(notes=500)


def test_tables_of_other_libraries_become_graphs_by_the_rules_of_the_program(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    edges = pandas.DataFrame({"caller": ["ann", "bob", "cy"], "callee": ["bob", "cy", "ann"], "weight": [1.0, 2.0, 3.0]})
    nodes = pandas.DataFrame({"id": ["ann", "bob", "cy"], "age": [30, 40, 50], "genre": ["rock", "folk", "rock"]})
    graph = lc.Graph.from_arrow(edges, nodes, label="genre", undirected=True, name="calls")
    assert (graph.name, graph.nodes, graph.edges, graph.features) == ("calls", 3, 6, 1)
    assert list(graph.ids) == ["ann", "bob", "cy"] and set(graph.class_names) == {"rock", "folk"}
    assert any("genre" in role for role in graph.roles)
    edges.to_csv(tmp_path / "edges.csv", index=False)
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    read = lc.Graph.read(tmp_path / "edges.csv", nodes=tmp_path / "nodes.csv", label="genre", undirected=True)
    assert {key: value.tolist() for key, value in read.arrays().items()} == {
        key: value.tolist() for key, value in graph.arrays().items()
    }
    assert {role.partition(":")[0] for role in graph.roles} == {"nodes", "edges"}
    with pytest.raises(lc.DataError, match="^nodes: .*gender"):
        lc.Graph.from_arrow(edges, nodes, label="gender")
    with pytest.raises(lc.DataError, match="^nodes: .*'age'.* missing=\"mean\" or \"zero\" fills .*ignore=") as missing:
        lc.Graph.from_arrow(edges, nodes.assign(age=[1.0, None, 2.0]))
    assert missing.value.file is None and "parquet" not in str(missing.value)
    with pytest.raises(lc.DataError, match="^edges: .*list"):
        lc.Graph.from_arrow([(0, 1)])


def test_tables_are_read_like_those_of_a_run_and_predicted_as_by_the_program(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    draw = np.random.default_rng(0)
    ids = np.array([f"p{row}" for row in range(200)])
    people = pandas.DataFrame({"id": ids, "age": draw.normal(size=200), "city": draw.choice(["a", "b", "c"], 200)})
    trained = people.assign(plan=draw.choice(["x", "y"], 200), split=draw.choice(["train", "val", "test"], 200))
    calls = pandas.DataFrame({"caller": draw.choice(ids, 900), "callee": draw.choice(ids, 900)})
    # A run on a graph in memory keeps the edges that it has, and with it the program those from a node to itself.
    calls = calls[calls["caller"] != calls["callee"]]
    graph = lc.Graph.from_arrow(calls, trained, label="plan", undirected=True)
    run = lc.train(graph, parts=2, epochs=5, model={"hidden": 8}, out=tmp_path / "run")
    # One text that the run does not know, and none of one that it knows; no labels and no split.
    people.loc[people["city"] == "b", "city"] = "elsewhere"
    with pytest.raises(lc.DataError, match="like=run of Graph.from_arrow"):
        run.predictions(lc.Graph.from_arrow(calls, people, undirected=True))
    with pytest.warns(lc.LaconicWarning, match="nodes: .*'elsewhere'"):
        other = lc.Graph.from_arrow(calls, people, undirected=True, like=run)
    found = run.predictions(other)
    calls.to_parquet(tmp_path / "calls.parquet")
    people.to_parquet(tmp_path / "people.parquet")
    data = ["--data", str(tmp_path / "calls.parquet"), "--nodes", str(tmp_path / "people.parquet"), "--symmetrise"]
    done = program("predict", str(tmp_path / "run"), *data, "--out", str(tmp_path / "said.csv"))
    assert done.returncode == 0, done.stderr
    said = pandas.read_csv(tmp_path / "said.csv").set_index("id").loc[found.ids]
    assert np.allclose(said["prob_0"], found.probabilities[:, 0], atol=1e-6) and list(said["class"]) == list(found.names)
    with pytest.warns(lc.LaconicWarning):
        flags = {"nodes": tmp_path / "people.parquet", "undirected": True, "like": tmp_path / "run"}
        read = lc.Graph.read(tmp_path / "calls.parquet", **flags)
    assert np.array_equal(run.predictions(read).logits, found.logits)
    other.save(tmp_path / "other.npz")
    with pytest.raises(lc.ConfigError, match="^like is for tables"):
        lc.Graph.read(tmp_path / "other.npz", like=run)
    with pytest.raises(lc.ConfigError, match="the model decides"):
        lc.Graph.from_arrow(calls, people, missing="mean", like=run)


def test_partitions_say_who_owns_what_and_what_it_costs() -> None:
    graph = lc.Graph.from_numpy(**arrays())
    cut = graph.partition(3, "multilevel", seed=1)
    assert cut.assignment.shape == (graph.nodes,) and set(cut.assignment) == {0, 1, 2}
    edges = graph.arrays()["edge_index"]
    crossing = (cut.assignment[edges[0]] != cut.assignment[edges[1]]).sum()
    assert crossing == cut.report["cut_edges"]


def test_the_program_comes_with_the_package() -> None:
    done = program("--version")
    assert done.returncode == 0 and lc.__version__ in done.stdout
    done = program("train", "absent.toml")
    assert done.returncode == 5 and "absent.toml" in done.stderr
