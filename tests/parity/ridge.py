#!/usr/bin/env python3
"""Holds ridge regressions (`schedule.kind = "ridge"`) to plain NumPy, over random small graphs.

    python3 tests/parity/ridge.py [target/release/laconic] [--cases 20]

The graphs, and the columns that models read of them, are those of `told_inputs.py`: features alone, or labels and
codewords beside them, in one to four parts. Here the normal equations of all training nodes are made and solved in one
place, as docs/guide/methods.md says: one-hot labels, a penalty on all weights but the bias, rows that count for what
their class weighs. Weights have to be those of the run, to 1e-5 of the largest, and so the accuracies. Needs NumPy.
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
from told_inputs import TOLERANCE, Graph, accuracies, run, tensors


def solution(graph, rows, penalty, class_weights):
    """Weights with the bias behind them, classes × columns."""
    trains = graph.masks["train"]
    x = np.concatenate([rows, np.ones((graph.nodes, 1))], axis=1)[trains]
    y = np.eye(graph.classes)[graph.labels[trains]]
    counts = np.array(class_weights)[graph.labels[trains]]
    penalties = np.full(x.shape[1], penalty)
    penalties[-1] = 0
    return np.linalg.solve((x.T * counts) @ x + np.diag(penalties), (x.T * counts) @ y).T


def check(program, seed):
    """By how much weights differ at most, as a share of the largest."""
    draw = np.random.default_rng(seed)
    graph = Graph(draw)
    penalty, told = float(draw.uniform(0.1, 10)), seed % 2 == 1
    class_weights = [float(weight) for weight in draw.uniform(0.5, 2, graph.classes)]
    settings = {
        "data.path": "graph.npz",
        "data.features": "given",
        "partition.method": "given",
        "partition.file": "parts.txt",
        "partition.parts": int(graph.parts.max()) + 1,
        "schedule.kind": "ridge",
        "schedule.ridge": penalty,
        "model.arch": "mlp",
        "model.inputs": ["features", "labels", "codewords"] if told else ["features"],
        "policy.allow": ["labels"],
        "train.class_weights": class_weights,
    }
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        graph.write(folder)
        (folder / "run.toml").write_text("", encoding="utf-8")
        sets = [f"--set={key}={json.dumps(value)}" for key, value in settings.items()]
        run(program, folder, "train", "run.toml", "--out", "run", "--quiet", *sets)
        weights = tensors(folder / "run/model.safetensors")
        figures = json.loads((folder / "run/summary.json").read_text(encoding="utf-8"))["metrics"]
    rows = graph.columns() if told else graph.features.astype(float)
    expected = solution(graph, rows, penalty, class_weights)
    found = np.concatenate([weights["lins.0.weight"], weights["lins.0.bias"][:, None]], axis=1)
    for split, accuracy in accuracies(graph, rows @ expected[:, :-1].T + expected[:, -1]).items():
        if abs(figures[split]["accuracy"] - accuracy) > TOLERANCE:
            raise SystemExit(f"case {seed}: accuracy of {split}: {figures[split]['accuracy']}, expected {accuracy}")
    return np.abs(found - expected).max() / np.abs(expected).max()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default="target/release/laconic")
    parser.add_argument("--cases", type=int, default=20)
    arguments = parser.parse_args()
    program = str(Path(arguments.program).resolve())
    furthest = 0.0
    for seed in range(arguments.cases):
        differs = check(program, seed)
        furthest = max(furthest, differs)
        if not differs < TOLERANCE:
            raise SystemExit(f"case {seed}: weights differ by {differs}")
    print(f"{arguments.cases} regressions: weights differ by {furthest:.1e} of the largest at most")


if __name__ == "__main__":
    main()
