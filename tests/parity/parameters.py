#!/usr/bin/env python3
"""Holds what workers make of their models between means to plain NumPy, over random small data.

    python3 tests/parity/parameters.py [target/release/laconic] [--cases 4]

Each case is a set of points in two to four parts, and a softmax regression (an `mlp` of one layer) that workers train
by plain gradient steps, each on its own points. What `train.sync_every` averages is computed here from the formulas of
the papers alone: means by drift (`train.sync_drift`), the outer step of DiLoCo (`train.outer`), SCAFFOLD with option II
(`train.correction`), and models of which the largest values cross (`codec = "largest"`). So is what PowerSGD makes of
the gradients of each round (`train.power_sgd`), with means over workers and errors as the paper's program has them. The
parameters after the last round have to be those of `laconic train`, to 1e-5. Needs NumPy.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

TOLERANCE = 1e-5
ROUNDS = 12
RATE = 0.1
EVERY = 4
# What each case trains with, besides plain gradient steps.
WAYS = {
    "means": {},
    "drift": {"train.sync_drift": 0.27, "train.sync_least": 2},
    "outer": {"train.outer": {"lr": 0.7, "momentum": 0.9}},
    "scaffold": {"train.correction": "scaffold"},
    "largest": {"messages.parameters": {"codec": "largest", "share": 0.1, "sizes": 3}},
    "all": {
        "train.sync_drift": 0.2,
        "train.sync_least": 2,
        "train.outer": {"lr": 0.8, "momentum": 0.5},
        "train.correction": "scaffold",
        "messages.parameters": {"codec": "largest", "share": 0.2},
    },
    "power_sgd": {"train.sync_every": 1, "train.power_sgd": {"rank": 2}},
    "power_sgd_1": {"train.sync_every": 1, "train.power_sgd": {"rank": 1}},
}
# What directions are drawn for, among all that is random in a run.
DIRECTIONS = 21
WORD = 2**64 - 1


class Points:
    """Points in parts, and the loss of a softmax regression on them."""

    def __init__(self, draw):
        self.parts = int(draw.integers(2, 5))
        self.count, self.columns, self.classes = int(draw.integers(40, 90)), int(draw.integers(60, 150)), 5
        self.labels = draw.integers(0, self.classes, self.count)
        self.labels[: self.classes] = range(self.classes)
        # Parts are unlike each other, so that models drift apart.
        part = (self.labels + draw.integers(0, 2, self.count)) % self.parts
        part[: self.parts] = range(self.parts)
        self.part = part
        centres = draw.normal(size=(self.classes, self.columns)) * 0.3
        self.features = (centres[self.labels] + draw.normal(size=(self.count, self.columns))).astype(np.float32)
        self.trains = draw.integers(0, 4, self.count) > 0
        self.trains[: max(self.parts, self.classes)] = True
        self.trains[-2:] = False

    def write(self, folder):
        """The points as `laconic` reads them."""
        masks = {"train_mask": self.trains, "val_mask": ~self.trains, "test_mask": ~self.trains}
        masks["val_mask"] = np.arange(self.count) == self.count - 1
        masks["test_mask"] = np.arange(self.count) == self.count - 2
        edges = np.array([[0], [1]])
        arrays = {"edge_index": edges, "features": self.features, "labels": self.labels, **masks}
        np.savez(folder / "points.npz", num_nodes=self.count, directed=1, **arrays)
        (folder / "parts.txt").write_text("".join(f"{part}\n" for part in self.part), encoding="utf-8")

    def gradient(self, model, rows):
        """Of the mean cross entropy over these rows, by all parameters in one vector: weights, then biases."""
        weights = model[: -self.classes].reshape(self.classes, self.columns)
        scores = self.features[rows].astype(float) @ weights.T + model[-self.classes :]
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        shares[np.arange(len(rows)), self.labels[rows]] -= 1
        shares /= len(rows)
        return np.concatenate([(shares.T @ self.features[rows].astype(float)).ravel(), shares.sum(axis=0)])


def largest(values, share=0.02, sizes=2):
    """What arrives of a message: its largest values, each as one of a few sizes."""
    kept = int(np.ceil(share * len(values)))
    low = min(range(32), key=lambda low: kept * (low + 1) + ((len(values) - 1) >> low))
    width = 1 + int(np.ceil(np.log2(sizes)))
    bits = kept * (low + width) + kept + ((len(values) - 1) >> low)
    if 4 * sizes + -(-bits // 8) >= 4 * len(values):
        return values.copy()
    chosen = np.argsort(-np.abs(values), kind="stable")[:kept]
    ascending = np.sort(np.abs(values[chosen]))
    levels = np.array([ascending[(2 * size + 1) * kept // (2 * sizes)] for size in range(sizes)])
    for _ in range(8):
        near = np.abs(ascending[:, None] - levels[None]).argmin(axis=1)
        means = [ascending[near == size].mean() if (near == size).any() else levels[size] for size in range(sizes)]
        levels = np.array(means)
    arrived = np.zeros_like(values)
    near = np.abs(np.abs(values[chosen])[:, None] - levels[None]).argmin(axis=1)
    arrived[chosen] = np.sign(values[chosen]) * levels[near]
    return arrived


def coded(values, codec):
    """What arrives of a run of values: rows of 256 as one message, and the rest as another."""
    if codec is None:
        return values.copy()
    whole = len(values) - len(values) % 256
    return np.concatenate([largest(run, **codec) for run in (values[:whole], values[whole:]) if len(run)])


class Sums:
    """Sums over workers, of which each adds up one chunk, with error feedback at both ends."""

    def __init__(self, workers, codec):
        self.workers, self.codec, self.left, self.left_of_sums = workers, codec, None, {}

    def chunk(self, length, worker):
        each, more = divmod(length, self.workers)
        start = [rank * each + min(rank, more) for rank in (worker, worker + 1)]
        return slice(*start)

    def of(self, each):
        """The sum of one vector of each worker."""
        if self.left is None:
            self.left = [np.zeros_like(values) for values in each]
        each = [values + left for values, left in zip(each, self.left)]
        self.left = [np.zeros_like(values) for values in each]
        total = np.zeros_like(each[0])
        for owner in range(self.workers):
            place = self.chunk(len(total), owner)
            for worker in range(self.workers):
                values = each[worker][place]
                arrived = values if worker == owner else coded(values, self.codec)
                self.left[worker][place] = values - arrived
                total[place] += arrived
            wanted = total[place] + self.left_of_sums.get(owner, 0)
            total[place] = coded(wanted, self.codec)
            self.left_of_sums[owner] = wanted - total[place]
        return total


def trained(points, start, settings):
    """The parameters after the last round, and how often workers asked whether models had drifted, and had found so."""
    codec = settings.get("messages.parameters")
    codec = {key: value for key, value in codec.items() if key != "codec"} if codec else None
    outer, drift = settings.get("train.outer"), settings.get("train.sync_drift")
    corrects, least = "train.correction" in settings, settings.get("train.sync_least", 1)
    rows = [np.flatnonzero(points.trains & (points.part == part)) for part in range(points.parts)]
    share = [len(own) / points.trains.sum() for own in rows]
    sums = Sums(points.parts, codec)
    mean, velocity = start.copy(), np.zeros_like(start)
    models, asked = [mean.copy() for _ in rows], []
    controls, control, steps = [np.zeros_like(start) for _ in rows], np.zeros_like(start), 0
    for done in range(1, ROUNDS + 1):
        for worker, own in enumerate(rows):
            correction = control - controls[worker] if corrects else 0
            models[worker] = models[worker] - RATE * (points.gradient(models[worker], own) + correction)
        steps += 1
        due = done % EVERY == 0 or done == ROUNDS
        if drift and done % least == 0 and not due:
            due = max(np.linalg.norm(model - mean) for model in models) > drift * np.linalg.norm(mean)
            asked.append(due)
        if not due:
            continue
        told = [part * (model - mean) for part, model in zip(share, models)]
        if corrects:
            # Option II, with what the model has come from and gone to.
            fresh = [own - control + (mean - model) / (steps * RATE) for own, model in zip(controls, models)]
            changes = [part * (new - old) for part, new, old in zip(share, fresh, controls)]
            controls = fresh
            told = [np.concatenate(both) for both in zip(told, changes)]
        moved = sums.of(told)
        if corrects:
            control = control + moved[len(start) :]
            moved = moved[: len(start)]
        if outer:
            # Nesterov's momentum, as in PyTorch, of minus what has moved as the gradient.
            velocity = outer["momentum"] * velocity - moved
            moved = -outer["lr"] * (-moved + outer["momentum"] * velocity)
        mean = mean + moved
        models, steps = [mean.copy() for _ in rows], 0
    return mean, asked


def mixed(word):
    """The finaliser of SplitMix64."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & WORD
    return word ^ (word >> 31)


def folded(key, coordinate):
    """A key with one more coordinate."""
    turned = (key << 23 | key >> 41) & WORD
    return mixed(turned ^ mixed((coordinate + 0x9E3779B97F4A7C15) & WORD))


def unit(key):
    """A uniform number of a key."""
    return (mixed(key ^ 0x94D049BB133111EB) >> 11) / 2**53


def normal(key):
    """A normal number of a key."""
    return np.sqrt(-2 * np.log(1 - unit(folded(key, 0)))) * np.cos(2 * np.pi * unit(folded(key, 1)))


def drawn(seed, count):
    """The directions that the first matrix of the first layer begins with, one number after the other."""
    key = folded(mixed(seed ^ 0x1AC071C500000000), DIRECTIONS)
    key = folded(folded(key, 0), 0)
    return np.array([normal(folded(key, at)) for at in range(count)])


def orthonormal(columns):
    """What Gram-Schmidt makes of columns."""
    directions, upper = np.linalg.qr(columns)
    return directions * np.sign(np.diag(upper))


def by_factors(points, start, rank, seed):
    """The parameters after the last round of PowerSGD: compression, aggregation and errors in means over workers."""
    rows = [np.flatnonzero(points.trains & (points.part == part)) for part in range(points.parts)]
    share = [len(own) / points.trains.sum() for own in rows]
    shape = points.classes, points.columns
    across = drawn(seed, points.columns * rank).reshape(points.columns, rank)
    model, errors = start.copy(), [np.zeros(shape) for _ in rows]
    for _ in range(ROUNDS):
        # The mean of these is the gradient of the mean loss over all points.
        each = [points.parts * part * points.gradient(model, own) for part, own in zip(share, rows)]
        matrices = [own[: -points.classes].reshape(shape) + error for own, error in zip(each, errors)]
        down = orthonormal(np.mean([matrix @ across for matrix in matrices], axis=0))
        across = np.mean([matrix.T @ down for matrix in matrices], axis=0)
        arrived = down @ across.T
        errors = [matrix - arrived for matrix in matrices]
        biases = np.mean([own[-points.classes :] for own in each], axis=0)
        model = model - RATE * np.concatenate([arrived.ravel(), biases])
    return model


def run(program, folder, settings):
    """The parameters that the program ends with."""
    sets = [f"--set={key}={written(value)}" for key, value in settings.items()]
    words = [program, "train", "run.toml", "--out", "run", "--quiet", *sets]
    ran = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    if ran.returncode:
        raise SystemExit(f"exit status {ran.returncode}: {' '.join(words)}\n{ran.stdout}{ran.stderr}")
    raw = (folder / "run/model.safetensors").read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:start])
    values = []
    for name in ("lins.0.weight", "lins.0.bias"):
        first, last = (start + at for at in header[name]["data_offsets"])
        values.append(np.frombuffer(raw[first:last], np.float32))
    subprocess.run(["rm", "-r", str(folder / "run")], check=True)
    return np.concatenate(values).astype(float)


def written(value):
    """A value as TOML writes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {written(inner)}" for key, inner in value.items()) + "}"
    return json.dumps(value)


def check(program, seed, ways):
    """By how much parameters differ at most, by way."""
    points = Points(np.random.default_rng(seed))
    settings = {
        "data.path": "points.npz",
        "data.features": "given",
        "partition.method": "given",
        "partition.file": "parts.txt",
        "partition.parts": points.parts,
        "model.arch": "mlp",
        "model.layers": 1,
        "model.norm": "none",
        "model.dropout": 0.0,
        "train.optimiser": "sgd",
        "train.momentum": 0.0,
        "train.weight_decay": 0.0,
        "train.lr": RATE,
        "train.epochs": ROUNDS,
        "train.eval_every": 0,
        "train.sync_every": EVERY,
        "train.seed": seed,
    }
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        points.write(folder)
        (folder / "run.toml").write_text("", encoding="utf-8")
        # A step of 1e-30 changes no parameter of ordinary size in single precision.
        start = run(program, folder, {**settings, "train.epochs": 1, "train.lr": 1e-30})
        differs, answers = {}, []
        for way in ways:
            found = run(program, folder, {**settings, **WAYS[way]})
            power = WAYS[way].get("train.power_sgd")
            if power:
                expected, asked = by_factors(points, start, power["rank"], seed), []
            else:
                expected, asked = trained(points, start, WAYS[way])
            answers += asked
            differs[way] = np.abs(found - expected).max() / np.abs(expected).max()
            if np.abs(expected - start).max() < 0.01:
                raise SystemExit(f"case {seed}, {way}: nothing has been learned")
        return differs, answers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default="target/release/laconic")
    parser.add_argument("--cases", type=int, default=4)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    arguments = parser.parse_args()
    program = str(Path(arguments.program).resolve())
    furthest, answers = dict.fromkeys(arguments.ways, 0.0), []
    for seed in range(arguments.cases):
        found, asked = check(program, seed, arguments.ways)
        answers += asked
        for way, differs in found.items():
            furthest[way] = max(furthest[way], differs)
            if not differs < TOLERANCE:
                raise SystemExit(f"case {seed}, {way}: parameters differ by {differs}")
    if answers and (all(answers) or not any(answers)):
        raise SystemExit("whenever workers asked, the answer was the same")
    said = ", ".join(f"{way} {differs:.1e}" for way, differs in furthest.items())
    print(f"{arguments.cases} sets of points: parameters differ by {said} at most")


if __name__ == "__main__":
    main()
