#!/usr/bin/env python3
"""Holds runs in which sums cross in the place of rows (`messages.selection = "vertex_cover"`) to plain NumPy.

    python3 tests/parity/vertex_cover.py [target/release/laconic] [--cases 20]

Random small graphs whose edges lead both ways, some with weights, in two to four parts. The least number of rows of each
cut is found by another way than the program's: one augmenting path after the other (Kuhn). Bytes of rows that cross have
to be those, in every round. Then the parameters of some rounds of gradient descent, each from the gradient of the whole
graph made with dense matrices, have to be those of the run, to 1e-5 of the largest. Needs NumPy.
"""

import argparse
import csv
import json
import tempfile
from pathlib import Path

import numpy as np
from told_inputs import TOLERANCE, run, tensors

ROUNDS, RATE, HIDDEN = 3, 0.5, 5


class Graph:
    """Nodes in parts, with symmetric weights: 0 where there is no edge."""

    def __init__(self, draw):
        self.nodes, self.classes, columns = int(draw.integers(12, 40)), 3, 7
        edges = np.triu(draw.random((self.nodes, self.nodes)) < draw.uniform(0.05, 0.4), 1)
        self.is_weighted = draw.random() < 0.5
        weights = draw.uniform(0.25, 2, edges.shape).astype(np.float32) if self.is_weighted else np.float32(1)
        upper = np.where(edges, weights, np.float32(0))
        self.weights = (upper + upper.T).astype(np.float32)
        self.features = draw.normal(size=(self.nodes, columns)).astype(np.float32)
        self.labels = draw.integers(0, self.classes, self.nodes)
        self.trains = draw.random(self.nodes) < 0.6
        self.trains[:3] = True, False, False
        self.parts = draw.integers(0, int(draw.integers(2, 5)), self.nodes)
        # No part is without nodes.
        self.parts[: self.parts.max() + 1] = np.arange(self.parts.max() + 1)

    def write(self, folder):
        target, source = np.nonzero(self.weights)
        arrays = {
            "edge_index": np.stack([source, target]),
            "x": self.features,
            "y": self.labels,
            "train_mask": self.trains,
            "val_mask": ~self.trains & (np.arange(self.nodes) % 2 == 0),
            "test_mask": ~self.trains & (np.arange(self.nodes) % 2 == 1),
        }
        if self.is_weighted:
            arrays["edge_weight"] = self.weights[target, source]
        np.savez(folder / "graph.npz", **arrays)
        (folder / "parts.txt").write_text("\n".join(map(str, self.parts)) + "\n", encoding="utf-8")


def matching(edges):
    """The size of a maximum matching of a bipartite graph, rows × columns."""
    partner = np.full(edges.shape[1], -1)

    def finds(left, seen):
        for right in np.nonzero(edges[left])[0]:
            if right not in seen:
                seen.add(right)
                if partner[right] < 0 or finds(partner[right], seen):
                    partner[right] = left
                    return True
        return False

    return sum(finds(left, set()) for left in range(edges.shape[0]))


def rows_that_cross(graph):
    """Of all ordered pairs of parts: as many as a minimum vertex cover has, which is as large as a matching."""
    parts = [graph.parts == part for part in range(graph.parts.max() + 1)]
    pairs = [(one, other) for one in range(len(parts)) for other in range(one)]
    return 2 * sum(matching(graph.weights[np.ix_(parts[one], parts[other])] > 0) for one, other in pairs)


def gradient(graph, adjacency, parameters):
    """Of the mean cross entropy over training nodes, for two graph convolutions with a ReLU between them."""
    (first, first_bias), (second, second_bias) = parameters
    folded = adjacency @ graph.features
    before = folded @ first.T + first_bias
    hidden = np.maximum(before, 0)
    again = adjacency @ hidden
    logits = again @ second.T + second_bias
    shares = np.exp(logits - logits.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    dlogits = (shares - np.eye(graph.classes)[graph.labels]) * graph.trains[:, None] / graph.trains.sum()
    dhidden = (adjacency.T @ (dlogits @ second)) * (before > 0)
    return [(dhidden.T @ folded, dhidden.sum(0)), (dlogits.T @ again, dlogits.sum(0))]


def parameters(folder):
    found = tensors(folder / "model.safetensors")
    return [
        (found[f"convs.{layer}.lin.weight"].astype(float), found[f"convs.{layer}.bias"].astype(float))
        for layer in range(2)
    ]


def check(program, seed):
    """By how much parameters differ at most, as a share of the largest."""
    graph = Graph(np.random.default_rng(seed))
    settings = {
        "data.path": "graph.npz",
        "data.features": "given",
        "partition.method": "given",
        "partition.file": "parts.txt",
        "partition.parts": int(graph.parts.max()) + 1,
        "schedule.cache_inputs": seed % 2 == 0,
        "model.arch": "gcn",
        "model.hidden": HIDDEN,
        "model.norm": "none",
        "model.dropout": 0.0,
        "messages.selection": "vertex_cover",
        "train.optimiser": "sgd",
        "train.momentum": 0.0,
        "train.weight_decay": 0.0,
        "train.lr": RATE,
        "train.eval_every": 0,
    }
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        graph.write(folder)
        (folder / "run.toml").write_text("", encoding="utf-8")
        sets = [f"--set={key}={json.dumps(value)}" for key, value in settings.items()]
        found = {}
        for rounds in [1, 1 + ROUNDS]:
            out = f"run{rounds}"
            run(program, folder, "train", "run.toml", "--out", out, "--quiet", *sets, f"--set=train.epochs={rounds}")
            found[rounds] = parameters(folder / out)
        with (folder / out / "ledger.csv").open(encoding="utf-8") as ledger:
            sent = [line for line in csv.DictReader(ledger) if line["kind"] in ("activations", "activation_gradients")]
    # Products with the second layer's weights cross, which are narrower than hidden rows; and their gradients.
    expected = 2 * (1 + ROUNDS) * rows_that_cross(graph) * graph.classes * 4
    if sum(int(line["payload_bytes"]) for line in sent) != expected:
        raise SystemExit(f"case {seed}: {sum(int(line['payload_bytes']) for line in sent)} bytes of rows, not {expected}")
    adjacency = graph.weights.astype(float) + np.eye(graph.nodes)
    degrees = adjacency.sum(1)
    adjacency /= np.sqrt(degrees[:, None] * degrees[None, :])
    played = found[1]
    for _ in range(ROUNDS):
        steps = gradient(graph, adjacency, played)
        played = [tuple(a - RATE * b for a, b in zip(*pair, strict=True)) for pair in zip(played, steps, strict=True)]
    of_all = [np.concatenate([array.ravel() for pair in layers for array in pair]) for layers in (played, found[1 + ROUNDS])]
    return np.abs(of_all[0] - of_all[1]).max() / np.abs(of_all[0]).max()


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
            raise SystemExit(f"case {seed}: parameters differ by {differs}")
    print(f"{arguments.cases} covers: parameters differ by {furthest:.1e} of the largest at most")


if __name__ == "__main__":
    main()
