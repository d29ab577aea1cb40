#!/usr/bin/env python3
"""Puts undefined and degenerate situations to the program and writes what it says as a table in Markdown.

    python3 tests/acceptance/degenerate.py target/release/laconic [docs/results/degenerate.md]

Each situation is a small graph and a configuration. `data check`, `plan`, `train`, `predict`, `compare` and `report`
run on it. Exit code 1 where one of them ends in another way than `laconic --help` lists, where JSON holds what JSON has
no number for, where a figure is out of its range, where one is missing and nobody says why, and where a model is no
better than the largest class, or gives all nodes one, and that is not said.
"""

import json
import math
import re
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

import numpy as np

# What `laconic --help` lists, but for errors of the program itself and for being stopped.
CODES = {0, 1, 2, 3, 4, 5, 6}
SECONDS = 120
SPLITS = {"train": "training", "val": "validation", "test": "test"}

RUN = """[data]
path = "graph.npz"
[partition]
parts = 3
[model]
hidden = 8
[train]
epochs = 4
lr = 0.05
"""
METHODS = '[[method]]\nname = "as it is"\n[[method]]\nname = "longer"\nset = ["train.epochs=6"]\n'
TRAINERS = ["schedule.interval=1 step", "schedule.limit=4 steps"]
LINKS = ["task.kind=link_prediction", "task.split={ val = 0.2, test = 0.2, seed = 1 }", "task.eval_negatives=5"]
FILTERED = LINKS + ["task.filter_negatives=true"]


def ring(nodes, chords=3):
    """Every node with the next few."""
    ends = [(a, (a + by) % nodes) for a in range(nodes) for by in range(1, chords + 1) if (a + by) % nodes != a]
    return np.array(ends, dtype=np.int64).reshape(-1, 2).T


def complete(nodes):
    """Everybody with everybody."""
    return np.array([(a, b) for a in range(nodes) for b in range(a + 1, nodes)], dtype=np.int64).reshape(-1, 2).T


def bipartite(nodes):
    """Two halves, each node with some of the other one."""
    half = nodes // 2
    return np.array([(a, half + (a * 3 + by) % half) for a in range(half) for by in range(3)], dtype=np.int64).T


def graph(nodes=48, classes=2, edges=None, **changes):
    """Arrays of a graph in which classes can be learned; `changes` replace some, None takes one away."""
    draw = np.random.default_rng(7)
    labels = np.arange(nodes) % classes
    features = draw.normal(size=(nodes, 4)).astype(np.float32)
    features[:, 0] += 2 * labels
    role = np.arange(nodes) // classes % 4
    arrays = {
        "edge_index": ring(nodes) if edges is None else edges,
        "directed": [0],
        "num_nodes": [nodes],
        "features": features,
        "labels": labels,
        "train_mask": role < 2,
        "val_mask": role == 2,
        "test_mask": role == 3,
    }
    arrays.update(changes)
    return {name: np.asarray(array) for name, array in arrays.items() if array is not None}


def split(arrays, name):
    return arrays[name + "_mask"].astype(bool)


def relabelled(where, label, **more):
    """A graph in which the nodes of some splits have this label."""
    arrays = graph(**more)
    for name in where:
        arrays["labels"][split(arrays, name)] = label
    return arrays


def without(*where, **more):
    """A graph in which these splits are empty."""
    arrays = graph(**more)
    for name in where:
        arrays[name + "_mask"][:] = False
    return arrays


def several(change=None, nodes=48, labels=3):
    """Several labels a node."""
    arrays = graph(nodes=nodes)
    draw = np.random.default_rng(3)
    arrays["labels"] = draw.integers(0, 2, size=(nodes, labels)).astype(np.uint8)
    if change:
        change(arrays)
    return arrays


def lacking(where):
    """A graph of three classes, the last of which no node of this split has."""
    arrays = graph(classes=3)
    arrays["labels"][split(arrays, where) & (arrays["labels"] == 2)] = 0
    return arrays


def assign(name, value, rows=slice(None)):
    """Sets rows of an array."""
    def change(arrays):
        arrays[name][rows] = value
    return change


def one_label(arrays):
    """A label that everybody has in validation and nobody in testing."""
    arrays["labels"][split(arrays, "val"), :] = 1
    arrays["labels"][split(arrays, "test"), :] = 0


def negatives(count):
    """Held-out edges with a pool of so few pairs."""
    arrays = graph()
    edges = arrays["edge_index"]
    arrays["val_edge_index"], arrays["test_edge_index"] = edges[:, :10], edges[:, 10:20]
    pool = np.array([[n, (n + 20) % 48] for n in range(count)], dtype=np.int64).reshape(-1, 2).T
    arrays["val_neg_edge_index"] = arrays["test_neg_edge_index"] = pool
    return arrays


def metric(*names):
    return ["train.metrics=" + json.dumps(list(names))]


AREA = metric("roc_auc")
EVERY = metric("accuracy", "macro_f1", "micro_f1")
GIVEN = ["task.kind=link_prediction", "task.split=given", "task.eval_negatives=given"]
HALF_NAN = np.where(np.arange(48)[:, None] % 5 == 0, np.nan, 1.0) * np.ones((48, 4))

# What is unusual, the arrays, the keys that are set, and how `train` is to end.
SITUATIONS = [
    ("nothing unusual", graph(), [], 0),
    ("nothing unusual, one worker", graph(), ["partition.parts=1"], 0),
    ("one class in validation, roc_auc", relabelled(["val"], 1), AREA, 0),
    ("one class in testing, roc_auc", relabelled(["test"], 0), AREA, 0),
    ("one class in both, roc_auc", relabelled(["val", "test"], 1), AREA, 0),
    ("one class in both, roc_auc_exact", relabelled(["val", "test"], 1), metric("roc_auc_exact"), 0),
    ("one class in both, roc_auc, one worker", relabelled(["val", "test"], 1), AREA + ["partition.parts=1"], 0),
    ("one class in training", relabelled(["train"], 1), AREA, 0),
    ("one class everywhere", relabelled(SPLITS, 0), EVERY, 0),
    ("one class everywhere, roc_auc", relabelled(SPLITS, 1), AREA, 0),
    ("a single class", graph(classes=1), EVERY, None),
    ("roc_auc of three classes", graph(classes=3), AREA, 2),
    ("none labelled", graph(labels=np.full(48, -1)), EVERY, None),
    ("no labels at all", graph(labels=None), [], 2),
    ("none labelled in validation", relabelled(["val"], -1), EVERY, None),
    ("none labelled in testing", relabelled(["test"], -1), EVERY, None),
    ("no training nodes", without("train"), [], None),
    ("no validation nodes", without("val"), AREA, 0),
    ("no validation nodes, patience 1", without("val"), AREA + ["train.patience=1"], 0),
    ("no test nodes", without("test"), EVERY, 0),
    ("neither validation nor test nodes", without("val", "test"), EVERY, 0),
    ("no split at all", graph(train_mask=None, val_mask=None, test_mask=None), [], None),
    ("no edges", graph(edges=np.zeros((2, 0), dtype=np.int64)), EVERY, 0),
    ("no edges, gcn", graph(edges=np.zeros((2, 0), dtype=np.int64)), ["model.arch=gcn"], 0),
    ("no edges, gat", graph(edges=np.zeros((2, 0), dtype=np.int64)), ["model.arch=gat"], 0),
    ("self loops only", graph(edges=np.array([np.arange(48)] * 2)), ["data.keep_self_loops=true"], 0),
    ("self loops only, left out", graph(edges=np.array([np.arange(48)] * 2)), [], 0),
    ("most nodes isolated", graph(edges=np.array([[0, 1], [1, 2]])), EVERY, 0),
    ("duplicate edges", graph(edges=np.tile(ring(48), 3)), [], 0),
    ("zero weights", graph(edge_weight=np.zeros(144)), [], 0),
    ("zero weights, gcn", graph(edge_weight=np.zeros(144)), ["model.arch=gcn"], 0),
    ("signed weights, sage", graph(edge_weight=np.where(np.arange(144) % 2, 1.0, -1.0)), [], 2),
    ("signed weights, gin", graph(edge_weight=np.where(np.arange(144) % 2, 1.0, -1.0)), ["model.arch=gin"], 0),
    ("weights that are no numbers", graph(edge_weight=np.full(144, np.nan)), [], 3),
    ("constant features", graph(features=np.ones((48, 4))), EVERY, 0),
    ("constant features, no neighbours read", graph(features=np.ones((48, 4))), ["model.arch=mlp"], 0),
    ("all features 0", graph(features=np.zeros((48, 4))), AREA, 0),
    ("features that are no numbers", graph(features=HALF_NAN), [], 3),
    ("infinite features", graph(features=np.full((48, 4), np.inf)), [], 3),
    ("features of 1e30", graph(features=np.full((48, 4), 1e30)), [], None),
    ("no features", graph(features=None), [], None),
    ("features of no columns", graph(features=np.zeros((48, 0))), [], None),
    ("one node", graph(nodes=1, edges=np.zeros((2, 0), dtype=np.int64)), ["partition.parts=1"], None),
    ("two nodes", graph(nodes=2, edges=np.array([[0], [1]]), train_mask=[1, 0], val_mask=[0, 0], test_mask=[0, 1]),
     ["partition.parts=2"], 0),
    ("one node, more parts", graph(nodes=1, edges=np.zeros((2, 0), dtype=np.int64)), [], None),
    ("more parts than nodes", graph(nodes=4, edges=ring(4, 1), train_mask=[1, 1, 0, 0], val_mask=[0, 0, 1, 0],
                                    test_mask=[0, 0, 0, 1]), ["partition.parts=9"], None),
    ("a class absent from validation", lacking("val"), EVERY, 0),
    ("a class absent from testing", lacking("test"), EVERY, 0),
    ("a class absent from training", lacking("train"), EVERY, 0),
    ("num_classes above the largest label", graph(num_classes=[7]), EVERY, 0),
    ("num_classes below the largest label", graph(classes=3, num_classes=[2]), EVERY, 3),
    ("all labels in one worker's part", graph(train_mask=np.arange(48) < 8, val_mask=(np.arange(48) >= 8) & (
        np.arange(48) < 12), test_mask=(np.arange(48) >= 12) & (np.arange(48) < 16)),
     ["partition.method=given", "partition.file=parts.txt"] + EVERY, 0),
    ("one class in a split, 3 workers, areas and F1", relabelled(["test"], 1), metric("roc_auc", "macro_f1"), 0),
    ("zero epochs", graph(), ["train.epochs=0"], 2),
    ("one epoch, patience 1, one class in validation", relabelled(["val"], 1),
     AREA + ["train.epochs=1", "train.patience=1"], 0),
    ("patience 1 on a figure that is not defined", relabelled(["val"], 1), AREA + ["train.patience=1"], 0),
    ("nothing learned (rate 1e-30)", graph(), ["train.lr=1e-30"] + EVERY, 0),
    ("a rate of 1e30", graph(), ["train.lr=1e30", "train.optimiser=sgd"], None),
    ("hidden of 1", graph(), ["model.hidden=1"], 0),
    ("one layer", graph(), ["model.layers=1"], 0),
    ("balanced classes, one absent from training", lacking("train"), ["train.class_weights=balanced"] + EVERY, None),
    ("a batch of 1", graph(), ["batch.size=1"], 0),
    ("a batch larger than everything", graph(), ["batch.size=1000"], 0),
    ("batches, one class in validation", relabelled(["val"], 1), AREA + ["batch.size=4"], 0),
    ("inductive, no edge between training nodes", graph(edges=np.array([[0, 2], [4, 5]])), ["data.inductive=true"], 0),
    ("lazy, one class in validation", relabelled(["val"], 1), AREA + ["schedule.kind=lazy"], 0),
    ("lazy, no validation nodes", without("val"), ["schedule.kind=lazy"], 0),
    ("lazy, no edges", graph(edges=np.zeros((2, 0), dtype=np.int64)), ["schedule.kind=lazy"], 0),
    ("pipelined, one class in validation", relabelled(["val"], 1), AREA + ["schedule.kind=pipelined"], 0),
    ("averaging, one class in validation", relabelled(["val"], 1), AREA + ["schedule.kind=averaging"] + TRAINERS, 0),
    ("averaging, no validation nodes", without("val"), ["schedule.kind=averaging"] + TRAINERS, 0),
    ("averaging, frozen halo, one class", relabelled(["val"], 1),
     AREA + ["schedule.kind=averaging", "schedule.halo=frozen"] + TRAINERS, 0),
    ("averaging, stale halo, one class", relabelled(["val"], 1),
     AREA + ["schedule.kind=averaging", "schedule.halo=stale"] + TRAINERS, 0),
    ("psgd_pa, one class in validation", relabelled(["val"], 1), AREA + ["schedule.kind=psgd_pa"] + TRAINERS, 0),
    ("llcg, one class in validation", relabelled(["val"], 1), AREA + ["schedule.kind=llcg"] + TRAINERS, 0),
    ("averaging, no edges", graph(edges=np.zeros((2, 0), dtype=np.int64)), ["schedule.kind=averaging"] + TRAINERS, 0),
    ("several labels", several(), metric("micro_f1", "macro_f1", "roc_auc"), 0),
    ("several labels, one that nobody has", several(lambda a: a["labels"].__setitem__((slice(None), 1), 0)),
     metric("macro_f1", "roc_auc"), 0),
    ("several labels, all alike in each split", several(one_label), metric("roc_auc", "macro_f1"), 0),
    ("several labels, none anywhere", several(assign("labels", 0)), metric("micro_f1", "macro_f1", "roc_auc"), 0),
    ("several labels, a node with none known", several(lambda a: a.__setitem__("labels", np.where(
        np.arange(48)[:, None] == 5, -1, a["labels"].astype(np.int64)))), metric("micro_f1"), None),
    ("one-hot labels", several(lambda a: a.__setitem__("labels", np.eye(3, dtype=np.uint8)[np.arange(48) % 3])),
     metric("micro_f1"), 0),
    ("links", graph(), LINKS + metric("mrr", "hits@10", "roc_auc"), 0),
    ("links, no negatives left", graph(nodes=12, edges=complete(12)), FILTERED + metric("mrr", "hits@10", "roc_auc"),
     0),
    ("links, no negatives left, hits@10 first", graph(nodes=12, edges=complete(12)), FILTERED + metric("hits@10"), 0),
    ("links, complete graph, nothing filtered", graph(nodes=12, edges=complete(12)), LINKS + metric("mrr"), 0),
    ("links, a single edge", graph(nodes=4, edges=np.array([[0], [1]])), LINKS + metric("mrr"), None),
    ("links, no edges", graph(edges=np.zeros((2, 0), dtype=np.int64)), LINKS, 2),
    ("links, no edge held out", graph(),
     ["task.kind=link_prediction", "task.split={ val = 0.0, test = 0.0, seed = 1 }"], 0),
    ("links, none for validation", graph(), ["task.kind=link_prediction",
                                             "task.split={ val = 0.0, test = 0.3, seed = 1 }"], 0),
    ("links, bipartite", graph(edges=bipartite(48)), LINKS + metric("roc_auc", "mrr"), 0),
    ("links, hits@100 with 3 negatives", negatives(3), GIVEN + metric("hits@100", "roc_auc"), 0),
    ("links, hits@10 with 10 negatives", negatives(10), GIVEN + metric("hits@10", "mrr"), 0),
    ("links, an empty pool", negatives(0), GIVEN + metric("hits@10", "mrr"), None),
    ("links, all scores alike", graph(features=np.ones((48, 4))), LINKS + ["model.arch=mlp"] + metric("mrr"), 0),
    ("links, all scores alike, roc_auc", graph(features=np.ones((48, 4))), LINKS + ["model.arch=mlp"] + AREA, 0),
    ("links, batch of 1", graph(), LINKS + ["batch.size=1"] + metric("mrr"), 0),
    ("links, averaging, no negatives left", graph(nodes=12, edges=complete(12)),
     FILTERED + ["schedule.kind=averaging"] + TRAINERS + metric("mrr"), None),
    ("links, no edge within a part", graph(nodes=12, edges=bipartite(12)),
     LINKS + ["partition.method=given", "partition.file=parts.txt", "messages.selection=none"] + metric("mrr"), None),
]


class Faults(list):
    """What is wrong in a situation."""

    def check(self, holds, what):
        if not holds:
            self.append(what)


def strict(text):
    """JSON with what JSON has numbers for, and no other."""
    def refuse(word):
        raise ValueError(f"{word} is no JSON")
    return json.loads(text, parse_constant=refuse)


def figures_of(scores, said, text, faults):
    """Holds figures to their ranges, and those that are missing to a reason."""
    missing = []
    for split_name, noun in SPLITS.items():
        for name, value in scores.get(split_name, {}).items():
            where = f"{name} of {noun}"
            if value is None:
                missing.append(f"{split_name}.{name}")
                faults.check(where in said, f"{where} is null and nobody says why")
                line = next((line for line in text.splitlines() if line.startswith(f"  {split_name:<6} ")), "")
                faults.check(f"{name} -" in line, f"{where} is null and no dash in: {line}")
            else:
                most = math.inf if name == "loss" else 1 + 1e-9
                faults.check(math.isfinite(value) and 0 <= value <= most, f"{where} is {value}")
    return missing


class Place:
    """A folder to run the program in."""

    def __init__(self, binary, folder, faults):
        self.binary, self.folder, self.faults = binary, folder, faults

    def run(self, *arguments):
        try:
            ran = subprocess.run([self.binary, *arguments], cwd=self.folder, capture_output=True, text=True,
                                 timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.faults.append(f"{arguments[0]} did not end within {SECONDS} s")
            return None
        command = arguments[0]
        self.faults.check(ran.returncode in CODES, f"{command} ended with {ran.returncode}: {ran.stderr[-300:]}")
        self.faults.check("panicked" not in ran.stderr + ran.stdout, f"{command}: {ran.stderr[-300:]}")
        refused = ran.returncode > 1
        self.faults.check(not refused or "laconic: " in ran.stderr or '"error"' in ran.stdout,
                          f"{command} ended with {ran.returncode} and no word")
        return ran

    def read(self, name):
        try:
            return strict((self.folder / name).read_text())
        except (OSError, ValueError) as error:
            self.faults.append(f"{name}: {error}")
            return {}


def short(text, most=110):
    text = re.sub(r"\s+", " ", text.strip()).replace("|", "\\|")
    return text if len(text) <= most else text[:most - 1].rstrip() + "…"


def refusal(ran):
    lines = [line for line in ran.stderr.splitlines() if line.startswith("laconic: ")] or ran.stderr.splitlines()
    said = lines[-1].removeprefix("laconic: ") if lines else ""
    return f"{ran.returncode}: " + short(re.sub(r"/[^ ]*/graph\.npz", "graph.npz", said))


def held_to_labels(arrays, summary, said, faults):
    """Whether `train` says what follows from the labels alone: who is no better than the largest class."""
    labels, metrics = arrays.get("labels"), summary["config"]["train"]["metrics"] or ["accuracy"]
    is_of_nodes = summary["config"]["task"]["kind"] == "node_classification"
    if not is_of_nodes or labels is None or labels.ndim > 1 or metrics[0] != "accuracy":
        return
    for name, noun in (("val", "validation"), ("test", "test")):
        known = labels[split(arrays, name) & (labels >= 0)]
        accuracy = summary["metrics"].get(name, {}).get("accuracy")
        if accuracy is None:
            continue
        is_constant = accuracy <= np.bincount(known).max() / len(known) + 1e-9
        says = f"accuracy of {noun} is {accuracy:.4f}, no better than" in said
        faults.check(is_constant == says, f"accuracy of {noun} is {accuracy}: no better is said {says}")


def trained(place, arrays, keys, code):
    """What `train` and its `summary.json` say: two cells and what comes of it; nothing where it was refused."""
    ran = place.run("train", "run.toml", "--out", "run", *keys)
    if ran is None:
        return None, "-", "-"
    what = f"train ended with {ran.returncode}, expected {code}: {ran.stderr[-200:]}"
    place.faults.check(code is None or ran.returncode == code, what)
    if ran.returncode != 0:
        return None, refusal(ran), "-"
    summary = place.read("run/summary.json")
    scores = summary.get("metrics", {})
    said = "\n".join(summary.get("notes", []) + scores.get("notes", []))
    missing = figures_of(scores, said, ran.stdout, place.faults)
    held_to_labels(arrays, summary, said, place.faults)
    for note in summary.get("notes", []):
        place.faults.check(f"note: {note}" in ran.stdout, f"train does not print: {note}")
    test = "; ".join(f"{name} " + ("-" if value is None else f"{value:.3f}")
                     for name, value in scores.get("test", {}).items())
    telling = [note for note in summary.get("notes", []) if re.search(
        "not defined|whatever is learned|no better|predicts|nothing is labelled|no edge|mean over|leaves out|absent|no node", note)]
    cell = f"{test or 'no figure of test'}" + (f"<br>{short(telling[-1])}" if telling else "")
    return summary, cell, ", ".join(f"{name} null" for name in missing) or "all numbers"


def predicted(place, is_of_links):
    asked = ["--best", "2", "--of", "0", "--out", "out.csv"] if is_of_links else ["--out", "out.csv"]
    ran = place.run("predict", "run", *asked, "--json")
    if ran is None or ran.returncode != 0:
        return "-" if ran is None else refusal(ran)
    try:
        answer = strict(ran.stdout)
    except ValueError as error:
        place.faults.append(f"predict: {error}")
        return "-"
    table = (place.folder / "out.csv").read_text()
    place.faults.check(not re.search(r"\b(nan|inf)\b", table, re.IGNORECASE), "predict writes no numbers")
    for split_name, figures in answer.get("figures", {}).items():
        for name, value in figures.items():
            place.faults.check(value is None or 0 <= value <= 1, f"predict: {name} of {split_name} is {value}")
    rows = answer.get("nodes", answer.get("pairs"))
    notes = answer.get("notes", [])
    lines = [line.split(",") for line in table.splitlines()]
    if rows > 1 and not is_of_links and "pred" in lines[0]:
        answers = {line[lines[0].index("pred")] for line in lines[1:]}
        says = any("predicts" in note for note in notes)
        place.faults.check(says == (len(answers) == 1), f"predict gives {len(answers)} answers, alike is said: {says}")
    return f"{rows} rows" + (f"<br>{short(notes[0], 60)}" if notes else "")


def compared(place, keys):
    ran = place.run("compare", "run.toml", "--runs", "methods.toml", "--out", "both", *keys)
    if ran is None or ran.returncode != 0:
        return "-" if ran is None else refusal(ran)
    found = place.read("both/compare.json")
    csv = (place.folder / "both/compare.csv").read_text()
    for line in found.get("methods", []):
        for run in line["runs"]:
            place.faults.check(run["test"] is not None or found["metric"] is None or found.get("judged_by") == "loss",
                               "compare judges by a figure that a run lacks")
    undefined = sum(run["test"] is None for line in found.get("methods", []) for run in line["runs"])
    place.faults.check(not undefined or found["metric"] is None or ",-," in csv, "compare.csv has no dash")
    words = ran.stdout + csv + "".join((place.folder / "both" / name).read_text() for name in (
        "compare.md", "compare.tex", "compare.svg", "compare_time.svg", "compare_curves.svg"))
    place.faults.check(not re.search(r"\bNaN\b|\binf\b", words), "compare writes no numbers")
    if found.get("judged_by") == "loss":
        place.faults.check("is not defined in" in ran.stdout, "compare does not say that it goes by the loss")
    chance = sum(line["is_constant"] for line in found.get("methods", []))
    judged = found.get("judged_by") or "nothing tested"
    return f"{judged}" + (f"; chance {chance} of 2" if chance else "")


def reported(place):
    ran = place.run("report", "run", "--out", "page.html")
    if ran is None or ran.returncode != 0:
        return "-" if ran is None else refusal(ran)
    page = (place.folder / "page.html").read_text()
    place.faults.check(not re.search(r">\s*-?(NaN|inf)\b", page), "report writes no numbers")
    summary = place.read("run/summary.json")
    undefined = any(value is None for name in SPLITS for value in summary["metrics"].get(name, {}).values())
    place.faults.check(not undefined or ">-<" in page, "report has no dash for a figure that is null")
    return "dash" if undefined else "numbers"


def row(binary, situation):
    """The cells of a situation, and what is wrong."""
    name, arrays, keys, code = situation
    faults = Faults()
    with tempfile.TemporaryDirectory() as folder:
        place = Place(binary, Path(folder), faults)
        np.savez(place.folder / "graph.npz", **arrays)
        (place.folder / "run.toml").write_text(RUN)
        (place.folder / "methods.toml").write_text(METHODS)
        nodes = int(arrays["num_nodes"][0])
        # The first third is one worker's, which has all labels where the situation says so.
        parts = [min(node * 3 // nodes, 2) for node in range(nodes)]
        (place.folder / "parts.txt").write_text("".join(f"{part}\n" for part in parts))
        keys = [word for key in keys for word in ("--set", key)]
        check = place.run("data", "check", "graph.npz")
        said = check.stdout.splitlines() if check else []
        warned = [line for line in said if line.startswith(("warning", "error"))]
        plan = place.run("plan", "run.toml", *keys)
        summary, train, numbers = trained(place, arrays, keys, code)
        if plan is not None and summary is not None:
            faults.check(plan.returncode == 0, f"plan refuses what train does: {plan.stderr[-200:]}")
        rest = ["-"] * 3
        if summary is not None:
            is_of_links = summary["config"]["task"]["kind"] == "link_prediction"
            rest = [predicted(place, is_of_links), compared(place, keys), reported(place)]
    telling = [line for line in warned if re.search("defined|figure|no node|labelled|class", line)] or warned
    before = short(telling[0].replace("warning: ", "").replace("split 0: ", ""), 90) if telling else "-"
    return [name, before, train, *rest, numbers], faults


HEAD = ["situation", "`data check`", "`train`: test", "`predict`", "`compare` by", "`report`", "JSON"]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    binary = Path(sys.argv[1]).resolve()
    root = Path(__file__).resolve().parents[2]
    page = Path(sys.argv[2]) if len(sys.argv) > 2 else root / "docs/results/degenerate.md"
    lines, wrong = [], 0
    for situation in SITUATIONS:
        cells, faults = row(binary, situation)
        lines.append("| " + " | ".join(cells) + " |")
        for fault in faults:
            print(f"{situation[0]}: {fault}", flush=True)
        wrong += bool(faults)
    text = f"""# Undefined and degenerate situations, and what the program says

Date: {date.today()}. Machine: 2 cores of an AMD EPYC.

```sh
python3 tests/acceptance/degenerate.py target/release/laconic
```

{len(SITUATIONS)} small graphs and configurations, each with `data check`, `plan`, `train`, `predict`, `compare` (of two
methods) and `report`. The script fails where a command ends in a way that `laconic --help` does not list, where JSON
holds what JSON has no number for, where a figure is out of its range, where one is null without a dash in its place or
without a sentence that says why, and where a model is no better than the largest class, or gives all nodes one class,
and that is not said. A number and a colon in front: the command refused with this exit code. Figures are
of four rounds, so they say little of models. `data check` knows no configuration: it warns of every figure that could
be asked for.

| {" | ".join(HEAD)} |
|{"---|" * len(HEAD)}
""" + "\n".join(lines) + "\n"
    page.write_text(text)
    print(f"{len(SITUATIONS)} situations, {wrong} with faults; written to {page}")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
