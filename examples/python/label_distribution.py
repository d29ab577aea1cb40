"""What a worker learns of another's labels from one averaged model: the distribution of its classes.

    python label_distribution.py graph.npz [--features columns.npz] [--program laconic] [--seeds 3] [--nodes 20000]

Nodes are spread over two and over four workers with other shares of classes each (Dirichlet, 0.5). Each trains an `mlp`
on its own for some rounds; then models are averaged, as the program does it. Worker 0 attacks: it knows how the model
began (all have the seed), its own model, its own nodes, and the mean, and takes its own movement from the mean's. What
remains is the movement of the other, or the sum of those of three others: all that a secure sum would show it.

After one step of gradient descent the last bias has moved by the difference of labels and answers, so the labels'
shares are read off. After many steps a model takes rows that say nothing for what it has seen most. Printed is the
total variation between the estimate and the true shares (0: known, 1: all wrong), beside that of a guess that others
have the same shares as oneself. Everything is read from what the program writes. Needs NumPy.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

STEP = {"train.optimiser": "sgd", "train.lr": 0.5, "train.epochs": 1}
MANY = {"train.optimiser": "adam", "train.lr": 0.01, "train.epochs": 60}
FOUR_BITS = ['--set=messages.parameters={ codec = "quantised", bits = 4 }']


def tensors(path):
    """The arrays of a safetensors file by name."""
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:start])
    header.pop("__metadata__", None)
    ends = {name: [start + at for at in about["data_offsets"]] for name, about in header.items()}
    flat = {name: np.frombuffer(raw[first:last], np.float32) for name, (first, last) in ends.items()}
    return {name: flat[name].reshape(header[name]["shape"]).astype(float) for name in flat}


class Workers:
    """A graph over so many workers with other shares of classes each."""

    def __init__(self, program, folder, graph, count, seed):
        self.program, self.folder, self.seed, self.runs = program, folder, seed, 0
        draw = np.random.default_rng(seed)
        classes = graph["labels"].max() + 1
        shares = draw.dirichlet(np.full(count, 0.5), classes)
        self.parts = np.array([draw.choice(count, p=shares[label]) for label in graph["labels"]])
        (folder / "parts.txt").write_text("".join(f"{part}\n" for part in self.parts), encoding="utf-8")
        trains = graph["train_mask"]
        of_part = [graph["labels"][trains & (self.parts == part)] for part in range(count)]
        self.sizes = np.array([len(labels) for labels in of_part])
        self.truth = [np.bincount(labels, minlength=classes) / max(len(labels), 1) for labels in of_part]
        self.own = graph["features"][trains & (self.parts == 0)]
        given = ["--parts", str(count), "--method", "given", "--file", "parts.txt"]
        self.run("partition", "graph.npz", *given, "--out", "parts")

    def run(self, *words):
        """Runs the program, which has to succeed."""
        command = [self.program, *words, "--quiet"]
        ran = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=3600)
        if ran.returncode:
            raise SystemExit(f"exit status {ran.returncode}: {' '.join(words)}\n{ran.stdout}{ran.stderr}")

    def model(self, settings, messages=()):
        """The weights that a run ends with."""
        rounds = settings["train.epochs"]
        usual = {
            "data.path": "parts",
            "model.arch": "mlp",
            "model.hidden": 64,
            "model.norm": "none",
            "model.dropout": 0,
            "train.seed": self.seed,
            "train.sync_every": rounds,
            "train.eval_every": rounds,
        }
        sets = [f"--set={key}={json.dumps(value)}" for key, value in {**usual, **settings}.items()]
        self.runs += 1
        self.run("train", "run.toml", "--out", f"run-{self.runs}", *sets, *messages)
        return tensors(self.folder / f"run-{self.runs}/model.safetensors")

    def others(self, training, messages):
        """How all models began, and the mean of the others' models as it follows."""
        begin = self.model({**training, "train.epochs": 1, "train.lr": 1e-30})
        own = self.model({**training, "data.part": 0})
        mean = self.model(training, messages)
        mine, others = self.sizes[0], self.sizes[1:].sum()
        share = mine / others
        # The mean is weighted by training nodes, which all know.
        return begin, {name: (1 + share) * mean[name] - share * own[name] for name in mean}


def answers(model, rows):
    """Class scores."""
    hidden = np.maximum(rows @ model["lins.0.weight"].T + model["lins.0.bias"], 0)
    return hidden @ model["lins.1.weight"].T + model["lins.1.bias"]


def softmax(scores):
    """Shares that add up to 1."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def from_step(begin, others, rows, rate):
    """Labels' shares after one step: the bias has moved by the rate times labels less answers."""
    shares = softmax(answers(begin, rows)).mean(axis=0) + (others["lins.1.bias"] - begin["lins.1.bias"]) / rate
    shares = np.maximum(shares, 0)
    return shares / shares.sum()


def from_answers(others, rows):
    """Labels' shares after many steps: what the model takes rows for whose columns are shuffled, and say nothing."""
    draw = np.random.default_rng(0)
    nothing = np.stack([draw.permutation(column) for column in rows.T], axis=1)
    return softmax(answers(others, nothing)).mean(axis=0)


def apart(one, other):
    """Total variation."""
    return np.abs(one - other).sum() / 2


def attack(workers, messages):
    """Errors of both attacks, and of the guess, against each other worker's shares."""
    truth, known = workers.truth, workers.truth[0]
    begin, others = workers.others(STEP, messages)
    step = from_step(begin, others, workers.own, STEP["train.lr"])
    _, others = workers.others(MANY, messages)
    many = from_answers(others, workers.own)
    return [np.mean([apart(found, true) for true in truth[1:]]) for found in (step, many, known)]


def read(arguments):
    """The graph with its features, or as many of its nodes as were asked for."""
    graph = dict(np.load(arguments.graph))
    if arguments.features:
        graph["features"] = np.load(arguments.features)["features"]
    labels = graph["labels"].astype(int)
    keep = np.flatnonzero(labels >= 0)
    keep = np.sort(np.random.default_rng(0).permutation(keep)[: arguments.nodes])
    mask = {name: graph[name].astype(bool)[keep] for name in ("train_mask", "val_mask", "test_mask")}
    # An mlp reads no edges; one keeps the graph one.
    return {"edge_index": np.array([[0], [1]]), "features": graph["features"][keep], "labels": labels[keep], **mask}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph")
    parser.add_argument("--features")
    parser.add_argument("--program", default="target/release/laconic")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=20000)
    arguments = parser.parse_args()
    graph, program = read(arguments), str(Path(arguments.program).resolve())
    print("| what worker 0 sees | after one step | after many | a guess |\n|---|--:|--:|--:|")
    cases = [("another's model", 2, []), ("the same in 4 bits", 2, FOUR_BITS), ("the sum of three models", 4, [])]
    for name, count, messages in cases:
        errors = []
        for seed in range(arguments.seeds):
            with tempfile.TemporaryDirectory() as folder:
                np.savez(Path(folder) / "graph.npz", **graph)
                (Path(folder) / "run.toml").write_text("", encoding="utf-8")
                errors.append(attack(Workers(program, Path(folder), graph, count, seed), messages))
        means, spreads = np.mean(errors, axis=0), np.std(errors, axis=0)
        cells = " | ".join(f"{mean:.3f} ± {spread:.3f}" for mean, spread in zip(means, spreads, strict=True))
        print(f"| {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
