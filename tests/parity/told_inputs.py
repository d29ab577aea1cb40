#!/usr/bin/env python3
"""Holds the columns that workers make of labels and codewords to plain NumPy, over random small graphs.

    python3 tests/parity/told_inputs.py [target/release/laconic] [--cases 20]

Each case is a small random graph in one to four parts, with edges that lead both ways or one way. An `mlp` of two
layers is trained on it for a few rounds that reads `labels` and `codewords` beside features, by workers in step or by
independent trainers in turn. Then the columns are computed here, from the graph and the formulas of
docs/guide/methods.md alone. What the first layer of the trained weights makes of them has to be what
`laconic predict --embeddings` writes, to 1e-5, and what the model makes of them has to be right as often as the run
says. Every other graph with edges both ways is told `label_sums` in their place. No peer gets
more than 64 rows, so each of them has a codeword of its own, and which that is does not depend on how codewords are
searched for. Needs NumPy.
"""

import argparse
import csv
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

TOLERANCE = 1e-5
# What a neighbour counts for by the power of two that its degree lies above, and what is added to every sum.
WEIGHTS = (64, 37, 26, 18, 13, 7)
LITTLE = 3.2
HIDDEN = 24


class Graph:
    """A graph in parts, as its owners see it together."""

    def __init__(self, draw):
        self.nodes, self.classes = int(draw.integers(20, 90)), int(draw.integers(2, 7))
        edges = draw.integers(0, self.nodes, (2, int(self.nodes * draw.uniform(0.5, 4))))
        # Nodes with many neighbours count for less.
        many = draw.permutation(self.nodes)[: draw.integers(16, 60)]
        edges = np.concatenate([edges, [many, np.ones_like(many)]], axis=1)
        self.both_ways = bool(draw.integers(2))
        if self.both_ways:
            edges = np.concatenate([edges, edges[::-1]], axis=1)
        self.edges = np.unique(edges, axis=1)
        self.labels = draw.integers(0, self.classes, self.nodes)
        self.labels[0] = self.classes - 1
        role = draw.integers(0, 4, self.nodes)
        role[:3] = 0, 2, 3
        self.masks = {"train": role <= 1, "val": role == 2, "test": role == 3}
        self.features = draw.normal(size=(self.nodes, 3)).astype(np.float32)
        self.parts = draw.integers(0, int(draw.integers(1, 5)), self.nodes)
        # Each part has a node, and one that trains.
        count = int(self.parts.max()) + 1
        self.parts[:count] = self.parts[4 : 4 + count] = range(count)
        self.masks["train"][4:8], self.masks["val"][4:8], self.masks["test"][4:8] = True, False, False
        sources, targets = self.edges
        self.near = [sorted(set(sources[targets == node].tolist()) - {node}) for node in range(self.nodes)]
        degrees = [max(len(near), 1) for near in self.near]
        self.weight = [WEIGHTS[min(degree.bit_length() - 1, 5)] for degree in degrees]

    def write(self, folder):
        """The graph as `laconic` reads it."""
        masks = {f"{name}_mask": mask for name, mask in self.masks.items()}
        arrays = {"edge_index": self.edges, "features": self.features, "labels": self.labels, **masks}
        np.savez(folder / "graph.npz", num_nodes=self.nodes, directed=1, **arrays)
        (folder / "parts.txt").write_text("".join(f"{part}\n" for part in self.parts), encoding="utf-8")

    def counts(self, nodes):
        """What each class counts for among these nodes."""
        counts = np.zeros(self.classes)
        for node in nodes:
            if self.masks["train"][node]:
                counts[self.labels[node]] += self.weight[node]
        return counts

    def column_values(self, counts):
        """Shares times the root of the number of classes."""
        return counts / (counts.sum() + LITTLE) * np.sqrt(self.classes)

    def told(self, node, peer):
        """What a peer learns of what is around another's node: counts, and what they are shares of."""
        counts = self.counts(other for other in self.near[node] if self.parts[other] != peer)
        mass = np.float32(counts.sum()) + np.float32(LITTLE)
        # The book has roots in 255ths.
        roots = np.round(np.sqrt(counts.astype(np.float32) / mass) * np.float32(255))
        return (roots.astype(float) / 255) ** 2 * float(mass), float(mass)

    def around(self, node, of):
        """What is around a neighbour `of` of a node, without the node: shares of classes."""
        peer = self.parts[node]
        if self.parts[of] == peer:
            counts = self.counts(self.near[of])
            mass, sees_node = counts.sum() + LITTLE, node in self.near[of]
        else:
            counts, mass = self.told(of, peer)
            mine = np.flatnonzero(self.parts == peer)
            own = self.counts(other for other in mine if of in self.near[other])
            counts, mass, sees_node = counts + own, mass + own.sum(), True
        if sees_node and self.masks["train"][node]:
            counts[self.labels[node]] -= self.weight[node]
            mass -= self.weight[node]
        return np.maximum(counts, 0) / mass

    def summed(self, node, least):
        """Counts around a node, without those of other owners of whose nodes too few train."""
        counts = np.zeros(self.classes)
        for part in range(int(self.parts.max()) + 1):
            near = [other for other in self.near[node] if self.parts[other] == part and self.masks["train"][other]]
            if part == self.parts[node] or len(near) >= least:
                counts += self.counts(near)
        return counts

    def columns_of_sums(self, least):
        """What the first layer reads of each node where labels are told as sums."""
        told = [self.column_values(self.summed(node, least)) for node in range(self.nodes)]
        return np.concatenate([self.features, told], axis=1)

    def columns(self):
        """What the first layer reads of each node."""
        rows = []
        for node, near in enumerate(self.near):
            codewords = sum((self.weight[other] * self.around(node, other) for other in near), np.zeros(self.classes))
            labels = self.counts(near)
            told = self.column_values(labels), self.column_values(codewords)
            rows.append(np.concatenate([self.features[node], *told]))
        return np.array(rows)


def run(program, folder, *words):
    """Runs the program, which has to succeed."""
    ran = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    if ran.returncode:
        raise SystemExit(f"exit status {ran.returncode}: {' '.join(words)}\n{ran.stdout}{ran.stderr}")


def tensors(path):
    """The arrays of a safetensors file by name."""
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:start])
    header.pop("__metadata__", None)
    ends = {name: [start + at for at in about["data_offsets"]] for name, about in header.items()}
    cut = {name: raw[first:last] for name, (first, last) in ends.items()}
    return {name: np.frombuffer(cut[name], np.float32).reshape(about["shape"]) for name, about in header.items()}


def accuracies(graph, logits):
    """Which share of nodes of each split has the largest score in its own class."""
    right = logits.argmax(axis=1) == graph.labels
    return {split: right[graph.masks[split]].mean() for split in ("train", "val", "test")}


TRAINERS = {
    "schedule.kind": "averaging",
    "schedule.evaluator": "workers",
    "schedule.interval": "2 steps",
    "schedule.limit": "6 steps",
}


def check(program, seed):
    """By how much hidden rows differ at most, and how large the largest is."""
    draw = np.random.default_rng(seed)
    graph = Graph(draw)
    settings = {
        "data.path": "graph.npz",
        "data.features": "given",
        "partition.method": "given",
        "partition.file": "parts.txt",
        "partition.parts": int(graph.parts.max()) + 1,
        "model.arch": "mlp",
        "model.norm": "none",
        "model.hidden": HIDDEN,
        "model.inputs": ["features", "labels", "codewords"],
        "policy.allow": ["labels"],
        "train.seed": seed,
        **(TRAINERS if seed % 2 else {"train.epochs": 5}),
    }
    # Sums take edges that lead both ways.
    least = 1 + seed % 4 if graph.both_ways and seed % 3 else None
    if least:
        settings |= {"model.inputs": ["features", "label_sums"], "policy.label_group": least}
    columns = graph.columns_of_sums(least) if least else graph.columns()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        graph.write(folder)
        (folder / "run.toml").write_text("", encoding="utf-8")
        sets = [f"--set={key}={json.dumps(value)}" for key, value in settings.items()]
        run(program, folder, "train", "run.toml", "--out", "run", "--quiet", *sets)
        run(program, folder, "predict", "run", "--out", "table.csv", "--embeddings", "--quiet")
        weights = tensors(folder / "run/model.safetensors")
        figures = json.loads((folder / "run/summary.json").read_text(encoding="utf-8"))["metrics"]
        with open(folder / "table.csv", encoding="utf-8", newline="") as file:
            table = {int(row["id"]): row for row in csv.DictReader(file)}
    found = np.array([[float(table[node][f"emb_{column}"]) for column in range(HIDDEN)] for node in range(graph.nodes)])
    expected = np.maximum(columns @ weights["lins.0.weight"].T.astype(float) + weights["lins.0.bias"], 0)
    logits = expected @ weights["lins.1.weight"].T.astype(float) + weights["lins.1.bias"]
    for split, accuracy in accuracies(graph, logits).items():
        if abs(figures[split]["accuracy"] - accuracy) > TOLERANCE:
            raise SystemExit(f"case {seed}: accuracy of {split}: {figures[split]['accuracy']}, expected {accuracy}")
    return np.abs(found - expected).max(), np.abs(expected).max()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default="target/release/laconic")
    parser.add_argument("--cases", type=int, default=20)
    arguments = parser.parse_args()
    program = str(Path(arguments.program).resolve())
    furthest = 0.0
    for seed in range(arguments.cases):
        differs, largest = check(program, seed)
        furthest = max(furthest, differs)
        if not differs < TOLERANCE or largest < 0.1:
            raise SystemExit(f"case {seed}: hidden rows differ by {differs}, and are {largest} at most")
    print(f"{arguments.cases} graphs: hidden rows differ by {furthest:.1e} at most")


if __name__ == "__main__":
    main()
