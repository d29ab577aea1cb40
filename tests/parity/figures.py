#!/usr/bin/env python3
"""Holds every figure that a run reports to scikit-learn and NumPy, over random small cases.

    python3 tests/parity/figures.py [target/release/laconic] [--cases 200] [--only N] [--write docs/results/figures.md]

Each case is a small random graph with what makes figures hard: classes that nobody has, nodes without labels, splits
that are small or empty, scores that are the same, several labels a node of which some are unknown, pairs of equal
score. It is trained for a few rounds; then `laconic predict` writes what the model says of every node or pair, and
scikit-learn, or a few lines of NumPy, make the figures of that. Both have to agree to 1e-6, or neither has a figure.
`roc_auc`, which comes from counts in bins, has to lie as near as its note says. Needs numpy and scikit-learn.
"""

import argparse
import csv
import datetime
import json
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from sklearn import metrics as sk

TOLERANCE = 1e-6
# What `roc_auc` may be off without a note.
BINNED = 5e-4
# Log odds that are as close may have been in another order before probabilities were rounded.
CLOSE = 2e-6
# What a probability near 1 may be off, being stored in 32 bits.
HALF_A_STEP = 2.0**-24
SPLITS = ("train", "val", "test")
LAYERS = ("gcn", "sage", "gat", "gin", "mlp")


class Program:
    """The program, run in one folder."""

    def __init__(self, path, folder):
        self.path, self.folder = path, folder

    def __call__(self, *words):
        command = [self.path, *map(str, words)]
        ran = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=300)
        if ran.returncode:
            raise RuntimeError(f"exit status {ran.returncode}: {' '.join(command)}\n{ran.stdout}{ran.stderr}")

    def train(self, **settings):
        """Trains on case.npz, and returns the figures of the summary."""
        words = [f"--set={key}={json.dumps(value)}" for key, value in settings.items()]
        (self.folder / "run.toml").write_text('[data]\npath = "case.npz"\n', encoding="utf-8")
        self("train", "run.toml", "--out", "run", "--quiet", *words)
        return json.loads((self.folder / "run/summary.json").read_text(encoding="utf-8"))["metrics"]

    def probabilities(self, columns):
        """What the model says of every node."""
        return np.array([[float(row[f"prob_{c}"]) for c in range(columns)] for row in self.table()])

    def table(self, *words):
        """What `predict` writes."""
        self("predict", "run", "--out", "table.csv", "--quiet", "--force", *words)
        with open(self.folder / "table.csv", encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))


def random_graph(draw):
    """Number of nodes and random edges."""
    nodes = int(draw.integers(3, 60))
    edges = draw.integers(0, nodes, (2, int(draw.integers(0, 4 * nodes))))
    return nodes, edges


def random_features(draw, nodes):
    """Random columns; sometimes the same ones for many nodes, so that scores are equal."""
    rows = draw.normal(size=(nodes, 4)).astype(np.float32)
    kind = draw.integers(4)
    if kind == 0:
        rows[:] = rows[0]
    elif kind == 1:
        rows = rows[draw.integers(0, 3, nodes) % nodes]
    return rows


def random_masks(draw, nodes):
    """A split of the nodes; any but training may be empty, or a single node."""
    role = draw.integers(0, 5, nodes)
    masks = {"train": role <= 1, "val": role == 2, "test": role == 3}
    for name in ("val", "test"):
        kind = draw.integers(6)
        if kind == 0:
            masks[name] = np.zeros(nodes, bool)
        elif kind == 1:
            masks[name] = np.arange(nodes) == np.flatnonzero(masks[name])[:1].sum()
            masks["train"] = masks["train"] & ~masks[name]
            for other in ("val", "test"):
                masks[other] = masks[other] & ~masks[name] if other != name else masks[other]
    if not masks["train"].any():
        masks["train"] = ~(masks["val"] | masks["test"])
    return masks


def random_parts(draw, nodes, folder):
    """Which part each node is in; none is empty."""
    count = int(draw.integers(1, 4))
    parts = draw.integers(0, count, nodes)
    parts[:count] = range(count)
    (folder / "parts.txt").write_text("".join(f"{part}\n" for part in parts), encoding="utf-8")
    return parts


def common(draw, parts):
    """Settings of any case."""
    arch = str(draw.choice(LAYERS))
    return {
        **({"model.heads": 1} if arch == "gat" else {}),
        "model.arch": arch,
        "model.hidden": int(draw.integers(2, 9)),
        "model.layers": int(draw.integers(1, 4)),
        "train.epochs": int(draw.integers(1, 8)),
        "train.lr": float(draw.choice([0.003, 0.05, 0.3])),
        "partition.parts": int(parts.max()) + 1,
        "partition.method": "given",
        "partition.file": "parts.txt",
    }


def mean_of_defined(values):
    """The mean of those that are numbers; None where none is."""
    defined = [value for value in values if value is not None]
    return float(np.mean(defined)) if defined else None


def area(truth, score, apart=0.0):
    """The exact area under the ROC curve; None where one truth is missing. Of scores that are less `apart` than this,
    the order is not known: +1 and -1 times it give both ends."""
    if not 0 < truth.sum() < len(truth):
        return None
    return float(sk.roc_auc_score(truth, score + apart * truth))


def cross_entropy(right):
    """The mean loss of what the right answers were given; both ends of it where rounding to 32 bits leaves it open."""
    low, exact, high = (float(-np.log(np.clip(right + off, 1e-45, 1)).mean()) for off in (HALF_A_STEP, 0, -HALF_A_STEP))
    return exact if high - low < TOLERANCE else (low, high)


def ends(areas):
    """The least and the largest area that probabilities allow, which are rounded where the logits are not."""
    return tuple(areas(apart) for apart in (-CLOSE, CLOSE))


def or_none(value):
    """scikit-learn's answer to 0/0, where it is asked for a NaN, as ours."""
    return None if np.isnan(value) else float(value)


def class_row(truth, guess):
    """What is said of one class, or label."""
    undefined = {"zero_division": np.nan}
    return {
        "support": int(truth.sum()),
        "predicted": int(guess.sum()),
        "precision": or_none(sk.precision_score(truth, guess, **undefined)) if len(truth) else None,
        "recall": or_none(sk.recall_score(truth, guess, **undefined)) if len(truth) else None,
        "f1": f1_or_none(truth, guess) if len(truth) else None,
    }


def expected_of(masks, parts, figures, by_class, confusion=None):
    """All that the summary says: of each split, of its parts, of classes."""
    expected = {name: figures(mask) for name, mask in masks.items()}
    judged = {name: mask for name, mask in masks.items() if name != "train" and expected[name]}
    expected["parts"] = {name: of_parts(mask, parts, figures) for name, mask in judged.items()}
    expected["classes"] = {name: by_class(mask) for name, mask in judged.items()}
    if confusion:
        expected["confusion"] = {name: confusion(mask) for name, mask in judged.items()}
    return expected


def of_parts(mask, parts, figures):
    """Figures of each part, their mean, spread and worst."""
    each = [figures(mask & (parts == part)) for part in range(parts.max() + 1)]
    names = {name for of in each for name in of}
    return {name: spread_of([of.get(name) for of in each], name) for name in names}


def spread_of(of, name):
    """Each part's figure, with mean, sample deviation and the worst of those that have one."""
    if any(isinstance(value, tuple) for value in of):
        return {"of": [None if value in (None, (None, None)) else value for value in of]}
    defined = [(value, part) for part, value in enumerate(of) if value is not None]
    values = [value for value, _ in defined]
    worst = max(values) if name == "loss" else min(values) if values else None
    return {
        "of": of,
        "mean": mean_of_defined(values),
        "spread": float(np.std(values, ddof=1)) if len(values) > 1 else None,
        "worst": worst,
    }


def f1_or_none(truth, guess):
    """F1 of yes and no; None for 0/0, which scikit-learn answers as it is asked to."""
    return or_none(sk.f1_score(truth, guess, zero_division=np.nan))


def classes_case(draw, program):
    """One label a node."""
    nodes, edges = random_graph(draw)
    classes = int(draw.integers(2, 7))
    have = draw.choice(classes, int(draw.integers(1, classes + 1)), replace=False)
    labels = draw.choice(have, nodes)
    labels[draw.random(nodes) < draw.choice([0.0, 0.3])] = -1
    masks = random_masks(draw, nodes)
    if not (masks["train"] & (labels >= 0)).any():
        labels[np.flatnonzero(masks["train"])[0]] = have[0]
    features = random_features(draw, nodes)
    arrays = {f"{name}_mask": mask for name, mask in masks.items()}
    np.savez(program.folder / "case.npz", edge_index=edges, num_nodes=[nodes], features=features, labels=labels,
             num_classes=[classes], directed=[int(draw.integers(2))], **arrays)
    asked = ["accuracy", "micro_f1", "macro_f1"]
    if classes == 2:
        asked = [*draw.permutation([*asked, "roc_auc", "roc_auc_exact"])]
    parts = random_parts(draw, nodes, program.folder)
    found = program.train(**common(draw, parts), **{"train.metrics": [str(name) for name in asked]})
    said = program.probabilities(classes)
    guess = said.argmax(1)

    def figures(at):
        at = at & (labels >= 0)
        if not at.any():
            return {}
        truth, of = labels[at], guess[at]
        found = {
            "loss": cross_entropy(said[at, truth]),
            "accuracy": float(sk.accuracy_score(truth, of)),
            "micro_f1": float(sk.f1_score(truth, of, average="micro")),
            "macro_f1": float(sk.f1_score(truth, of, average="macro")),
        }
        if classes == 2:
            score = np.log(said[at, 1]) - np.log(said[at, 0])
            areas = ends(lambda apart: area(truth == 1, score, apart))
            found["roc_auc"] = found["roc_auc_exact"] = areas
        return found

    def by_class(at):
        at = at & (labels >= 0)
        return [class_row(labels[at] == c, guess[at] == c) for c in range(classes)]

    def confusion(at):
        at = at & (labels >= 0)
        return sk.confusion_matrix(labels[at], guess[at], labels=range(classes)).tolist()

    return found, expected_of(masks, parts, figures, by_class, confusion)


def sets_case(draw, program):
    """Several labels a node."""
    nodes, edges = random_graph(draw)
    # A single column would be one label a node.
    width = int(draw.integers(2, 6))
    labels = (draw.random((nodes, width)) < draw.choice([0.1, 0.5, 0.9])).astype(np.float32)
    for column in range(width):
        if draw.random() < 0.25:
            labels[:, column] = draw.integers(2)
    unknown = draw.random((nodes, width)) < draw.choice([0.0, 0.3])
    labels[unknown] = np.nan
    if width > 1 and (np.nansum(labels, 1) == 1).all():
        labels[0] = 1
    masks = random_masks(draw, nodes)
    if np.isnan(labels[masks["train"]]).all():
        labels[np.flatnonzero(masks["train"])[0]] = 0
    arrays = {f"{name}_mask": mask for name, mask in masks.items()}
    np.savez(program.folder / "case.npz", edge_index=edges, num_nodes=[nodes], labels=labels,
             features=random_features(draw, nodes), directed=[int(draw.integers(2))], **arrays)
    asked = [str(name) for name in draw.permutation(["accuracy", "micro_f1", "macro_f1", "roc_auc", "roc_auc_exact"])]
    parts = random_parts(draw, nodes, program.folder)
    found = program.train(**common(draw, parts), **{"train.metrics": asked})
    said = program.probabilities(width)
    known = ~np.isnan(labels)

    def figures(at):
        at = at[:, None] & known
        if not at.any():
            return {}
        truth, of = labels[at] == 1, said[at] > 0.5
        columns = [(labels[at[:, c], c] == 1, said[at[:, c], c]) for c in range(width)]
        odds = [(t, np.log(s) - np.log1p(-s)) for t, s in columns if len(t)]
        areas = ends(lambda apart: mean_of_defined([area(*column, apart) for column in odds]))
        return {
            "loss": cross_entropy(np.where(truth, said[at], 1 - said[at])),
            "accuracy": float(sk.accuracy_score(truth, of)),
            "micro_f1": f1_or_none(truth, of),
            "macro_f1": mean_of_defined([f1_or_none(t, s > 0.5) for t, s in columns if len(t)]),
            "roc_auc": areas,
            "roc_auc_exact": areas,
        }

    def by_class(at):
        each = [at & known[:, c] for c in range(width)]
        return [class_row(labels[at, c] == 1, said[at, c] > 0.5) for c, at in enumerate(each)]

    return found, expected_of(masks, parts, figures, by_class)


def links_case(draw, program):
    """Held-out edges among pairs that the data give: one pool, or targets of each edge's own."""
    nodes = int(draw.integers(5, 40))
    pairs = np.unique(draw.integers(0, nodes, (int(draw.integers(nodes, 5 * nodes)), 2)), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    role = draw.integers(0, 5, len(pairs))
    # Something to learn from, and to judge by: data without any are refused.
    role[:3] = [0, 3, 4][: len(role)]
    held = {"val": pairs[role == 3], "test": pairs[role == 4]}
    pools = draw.random() < 0.5
    if pools and draw.random() < 0.2:
        held["val"] = held["val"][:0]
    arrays, negatives = {}, {}
    for name, edges in held.items():
        arrays[f"{name}_edge_index"] = edges.T
        if pools:
            count = int(draw.choice([3, 30, 200]))
            negatives[name] = draw.integers(0, nodes, (count, 2))
            arrays[f"{name}_neg_edge_index"] = negatives[name].T
        else:
            targets = draw.integers(0, nodes, (len(edges), int(draw.choice([1, 5, 120]))))
            targets[draw.random(len(edges)) < draw.choice([0.0, 0.2])] = -1
            arrays[f"{name}_neg_targets"] = negatives[name] = targets
    np.savez(program.folder / "case.npz", edge_index=pairs[role < 3].T, num_nodes=[nodes], directed=[0],
             features=random_features(draw, nodes), **arrays)
    tops = [int(top) for top in draw.permutation([10, 20, 50, 100])[: draw.integers(1, 5)]]
    by_top = [f"{kind}@{top}" for top in tops for kind in ("hits", "recall", "ndcg")]
    asked = ["mrr", "roc_auc", "roc_auc_exact", *by_top]
    parts = random_parts(draw, nodes, program.folder)
    settings = common(draw, parts)
    found = program.train(**settings, **{
        "train.metrics": [str(name) for name in draw.permutation(asked)],
        "task.kind": "link_prediction",
        "task.decoder": str(draw.choice(["dot", "mlp"])),
        "task.split": "given",
        "task.eval_negatives": "given",
    })
    expected = {"train": found["train"], "parts": {}, "classes": None}
    for name, edges in held.items():
        judged = edges if pools else edges[(negatives[name] >= 0).all(1)]
        if not len(judged):
            expected[name] = {}
            continue
        if pools:
            # Of a graph without directions both of each held-out edge are judged by a pool.
            judged = np.concatenate([judged, judged[:, ::-1]])
            positive = scores(program, judged)
            pool = scores(program, negatives[name])
            ranks = [1 + (pool >= score).sum() for score in positive] if len(pool) else []
        else:
            positive = scores(program, judged)
            own = negatives[name][(negatives[name] >= 0).all(1)]
            each = np.repeat(judged[:, 0], own.shape[1])
            pool = scores(program, np.stack([each, own.ravel()], 1))
            ranks = [1 + (row >= score).sum() for row, score in zip(pool.reshape(own.shape), positive)]
        ranks = np.array(ranks, float)
        truth = np.r_[np.ones(len(positive), bool), np.zeros(len(pool), bool)]
        ordered = np.sort(pool)[::-1]
        expected[name] = {
            **of_ranks(ranks, positive, ordered, tops),
            "roc_auc": area(truth, np.r_[positive, pool]),
            "roc_auc_exact": area(truth, np.r_[positive, pool]),
            "loss": float(np.logaddexp(0, np.where(truth, -1, 1) * np.r_[positive, pool]).mean()),
        }
        owners = [parts[judged[:, 1]] == part for part in range(parts.max() + 1)]
        each = [of_ranks(ranks[at], positive[at], ordered, tops) if at.any() else {} for at in owners]
        names = {figure for of in each for figure in of}
        expected["parts"][name] = {figure: spread_of([of.get(figure) for of in each], figure) for figure in names}
    return found, expected


def of_ranks(ranks, positive, pool, tops):
    """Figures of edges with these ranks and scores, above a pool from the best pair on."""
    figures = {"mrr": float(np.mean(1 / ranks)) if len(ranks) else None}
    for top in tops:
        found_by = ranks <= top
        gains = np.where(found_by, 1 / np.log2(1 + ranks), 0)
        figures[f"recall@{top}"] = float(found_by.mean()) if len(ranks) else None
        figures[f"ndcg@{top}"] = float(gains.mean()) if len(ranks) else None
        figures[f"hits@{top}"] = float((positive > pool[top - 1]).mean()) if len(pool) >= top else None
    return figures


def scores(program, pairs):
    """What the model scores these pairs, from `predict --pairs`."""
    if not len(pairs):
        return np.zeros(0)
    lines = "".join(f"{source},{target}\n" for source, target in pairs)
    (program.folder / "pairs.csv").write_text(lines, encoding="utf-8")
    return np.array([float(row["score"]) for row in program.table("--pairs", "pairs.csv")])


def differences(found, expected, allowed):
    """What does not agree, a line each, and how many figures were compared, by name and whether they are defined."""
    wrong, seen = [], Counter()

    def compare(where, name, split, other, value):
        low, high = value if isinstance(value, tuple) else (value, value)
        seen[name, low is not None] += 1
        if (other is None) != (low is None):
            wrong.append(f"{where}: {other}, expected {low}")
        elif low is not None:
            off = allowed(name, split, low)
            if not low - off <= other <= high + off:
                wrong.append(f"{where}: {other}, expected {low} to {high}")

    for split in SPLITS:
        said, right = found.get(split) or {}, expected[split]
        if set(said) != set(right):
            wrong.append(f"{split}: figures {sorted(said)}, expected {sorted(right)}")
            continue
        for name, value in right.items():
            compare(f"{split} {name}", name, split, said[name], value)
    for split, figures in (expected["parts"] or {}).items():
        for name, right in figures.items():
            said = found["parts"][split]["figures"][name]
            worst = said["worst"] and said["worst"]["figure"]
            for part, value in enumerate(right["of"]):
                compare(f"{split} {name} of part {part}", f"{name}, a part", split, said["of"][part], value)
            for what, value in (("mean", said["mean"]), ("spread", said["spread"]), ("worst", worst)):
                if what in right:
                    compare(f"{split} {name}, {what}", f"{what} of parts", split, value, right[what])
    for split, classes in (expected["classes"] or {}).items():
        for right, said in zip(classes, found["classes"][split], strict=True):
            for name, value in right.items():
                compare(f"{split} {name} of class {said['class']}", f"{name} of a class", split, said[name], value)
    for split, right in expected.get("confusion", {}).items():
        seen["confusion matrix", True] += 1
        if found["confusion"][split] != right:
            wrong.append(f"{split} confusion: {found['confusion'][split]}, expected {right}")
    return wrong, seen


def tolerance(found):
    """How far figures may be off: `roc_auc` as its note says."""
    def allowed(name, split, value):
        if not name.startswith("roc_auc") or name.startswith("roc_auc_exact"):
            return TOLERANCE * max(1.0, abs(value))
        if name != "roc_auc":
            # Of few nodes a bin holds many; the note is about all parts together.
            return 1.0
        spelled = {"train": "training", "val": "validation", "test": "test"}[split]
        for note in found.get("notes", []):
            if note.startswith(f"roc_auc of {spelled}") and "is within " in note:
                return float(note.split("is within ")[1].split()[0]) + 1e-4
        return BINNED + TOLERANCE
    return allowed


KINDS = {"one label a node": classes_case, "several labels a node": sets_case, "links": links_case}


def run_case(number, path):
    """One case: its kind, what is wrong, what was compared."""
    kind = list(KINDS)[number % len(KINDS)]
    draw = np.random.default_rng([20261127, number])
    with tempfile.TemporaryDirectory() as folder:
        program = Program(path, Path(folder))
        try:
            found, expected = KINDS[kind](draw, program)
        except RuntimeError as error:
            return kind, [str(error)], Counter()
        wrong, seen = differences(found, expected, tolerance(found))
        return kind, wrong, seen


def page(command, cases, seen):
    """The page of results."""
    lines = [
        "# Every figure against scikit-learn and NumPy",
        "",
        f"`{command}`, {datetime.date.today()}, 2 cores of an AMD EPYC: {cases} random small cases, with classes",
        "that nobody has, nodes without labels, splits that are empty, equal scores, several labels a node and up to three",
        "parts. A figure agrees with the independent one to 1e-6 (`roc_auc`, which comes from counts in bins: to what",
        "its note says, or 0.0005; of single parts only whether there is one), or neither has one: 0/0, `null` in the",
        "summary and `-` in tables.",
        "",
        "| figure | compared | absent in both |",
        "|---|--:|--:|",
    ]
    for name in sorted({name for name, _ in seen}):
        lines.append(f"| `{name}` | {seen[name, True]} | {seen[name, False]} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default="target/release/laconic")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--only", type=int, help="this case alone")
    parser.add_argument("--write", type=Path, help="write the table of what was compared to this file")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", module="sklearn")
    path = str(Path(options.program).resolve())
    numbers = range(options.cases) if options.only is None else [options.only]
    seen, failed, kinds = Counter(), 0, Counter()
    for number in numbers:
        kind, wrong, of_case = run_case(number, path)
        kinds[kind] += 1
        seen += of_case
        if wrong:
            failed += 1
            print(f"case {number}, {kind}:")
            print("".join(f"  {line}\n" for line in wrong), end="", flush=True)
    print(", ".join(f"{count} of {kind}" for kind, count in kinds.items()))
    print(f"{sum(seen.values())} figures compared, {failed} of {len(numbers)} cases differ")
    if options.write and not failed:
        options.write.write_text(page(f"python3 tests/parity/figures.py --cases {options.cases}", len(numbers), seen))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
