#!/usr/bin/env python3
"""Checks what `laconic export` writes: other programs give the probabilities that `laconic predict` gives.

    python tests/parity/check_export.py target/release/laconic

Needs numpy and torch, and torch_geometric, dgl and onnx with onnxruntime as far as these are to be checked (made with torch
2.2.2, PyTorch Geometric 2.8.1, DGL 2.1.0, onnxruntime 1.31.1); what is not installed is left out, and it says so.
Prints a table of the largest differences of a probability, of models of links of a score; exit code 1 where one is larger than
1e-5.
"""

import argparse
import csv
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

TOLERANCE = 1e-5
NODES, EDGES, COLUMNS, CLASSES, RELATIONS = 300, 1500, 6, 4, 3

# Keys of the run, for every case on both graphs.
ON_BOTH = [
    ("gcn", "arch=gcn"),
    ("gcn, self_loops=false", "arch=gcn self_loops=false"),
    ("sage, mean", "arch=sage"),
    ("sage, mean, self_loops=true", "arch=sage self_loops=true"),
    ("sage, max", "arch=sage aggregator=max"),
    ("sage, max, self_loops=true", "arch=sage aggregator=max self_loops=true"),
    ("gin", "arch=gin"),
    ("gin, learn_epsilon=false", "arch=gin learn_epsilon=false"),
    ("gin, self_loops=true", "arch=gin self_loops=true"),
    ("gat, concatenated", "arch=gat heads=4"),
    ("gat, averaged", "arch=gat heads=4 head_merge=mean"),
    ("gat, self_loops=false", "arch=gat heads=4 self_loops=false"),
    ("mlp", "arch=mlp"),
]
# And some once: the graph, the keys besides.
ONCE = [
    ("gcn, as given", "weighted", "arch=gcn", "data.features=given"),
    ("gcn, row-normalised", "weighted", "arch=gcn", "data.features=row-normalised"),
    ("sage, multi-label", "sets", "arch=sage", ""),
    ("gin, multi-label, weighted", "weighted sets", "arch=gin", ""),
    ("gat, lazy from mlp", "directed", "arch=gat heads=4", "schedule.kind=lazy schedule.start=mlp"),
    ("sage, lazy, scores handed on", "weighted", "arch=sage", "schedule.kind=lazy schedule.hand_on=scores"),
    ("gcn, no norm, 3 layers", "weighted", "arch=gcn norm=none layers=3", ""),
    ("gcn, batch norm, PReLU", "weighted", "arch=gcn norm=batch activation=prelu layers=3", ""),
    ("sage, lazy, batch norm, PReLU", "directed", "arch=sage norm=batch activation=prelu", "schedule.kind=lazy"),
    ("gcn, all layers side by side", "weighted", "arch=gcn jumping_knowledge=cat layers=3", ""),
    ("sage, the largest of all layers", "directed", "arch=sage jumping_knowledge=max input_width=7", ""),
    ("gin, last layer, PReLU", "weighted", "arch=gin jumping_knowledge=last activation=prelu", ""),
    ("sage, residual, 3 layers", "directed", "arch=sage residual=true layers=3", ""),
    ("gat, residual, lazy from mlp", "weighted", "arch=gat heads=4 residual=true", "schedule.kind=lazy schedule.start=mlp"),
]
# Models of links: layers and decoder. Scores of pairs are compared; rgcn is exported to PyTorch Geometric alone.
LINKS = [
    ("rgcn, distmult", "typed", "arch=rgcn", "distmult"),
    ("sage, distmult", "typed", "arch=sage", "distmult"),
    ("gcn, distmult", "directed", "arch=gcn", "distmult"),
    ("gat, mlp", "directed", "arch=gat heads=4", "mlp"),
    ("gcn, dot", "directed", "arch=gcn", "dot"),
]


def graphs(folder):
    """Directed graphs with shuffled ids, nodes without in-edges, features far from 0, and split and labels."""
    draw = np.random.default_rng(7)
    ends = draw.integers(0, NODES, (2, 4 * EDGES))
    ends = ends[:, (ends[0] != ends[1]) & (ends[1] % 11 != 3)]
    ends = np.unique(ends, axis=1)
    ends = ends[:, draw.permutation(ends.shape[1])[:EDGES]]
    classes = draw.integers(0, CLASSES, NODES)
    features = draw.gamma(2.0, 3.0, (NODES, COLUMNS)) + 5 * (classes[:, None] == np.arange(COLUMNS)) + 10
    roles = draw.integers(0, 3, NODES)
    weights = draw.gamma(1.0, 1.0, ends.shape[1]) + 0.05
    arrays = {
        "edge_index": ends,
        "directed": np.array(1, dtype=np.uint8),
        "features": features.astype(np.float32),
        "labels": classes,
        "ids": draw.permutation(NODES) * 3,
        **{f"{name}_mask": (roles == role).astype(np.uint8) for role, name in enumerate(["train", "val", "test"])},
    }
    sets = (draw.random((NODES, CLASSES)) < 0.3).astype(np.uint8)
    for name in ["directed", "weighted", "sets", "weighted sets"]:
        more = {"edge_weight": weights.astype(np.float32)} if "weighted" in name else {}
        more |= {"labels": sets} if "sets" in name else {}
        np.savez(folder / f"{name}.npz", **(arrays | more))
    types = draw.integers(0, RELATIONS, ends.shape[1])
    # Some edges are of two relations.
    twice = draw.random(ends.shape[1]) < 0.2
    ends = np.concatenate([ends, ends[:, twice]], axis=1)
    types = np.concatenate([types, (types[twice] + 1) % RELATIONS])
    typed = arrays | {"edge_index": ends, "edge_type": types}
    np.savez(folder / "typed.npz", **typed)
    return {"typed": typed}, arrays | {"edge_weight": weights.astype(np.float32)}


def loaded(folder):
    """The module that `export` has written."""
    spec = importlib.util.spec_from_file_location("load", folder / "load.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def by_torch(folder, inputs):
    return loaded(folder).load().probabilities(*inputs)


def by_dgl(folder, inputs):
    import dgl

    x, edge_index, *weight = inputs
    graph = dgl.graph((edge_index[0], edge_index[1]), num_nodes=x.size(0))
    return loaded(folder).load().probabilities(graph, x, *weight)


def by_onnx(folder, inputs):
    import onnxruntime

    loaded(folder).to_onnx(str(folder / "model.onnx"))
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    there = {entry.name for entry in session.get_inputs()}
    given = dict(zip(["x", "edge_index", "edge_weight"], inputs))
    logits = session.run(None, {name: value.numpy() for name, value in given.items() if name in there})[0]
    is_sets = "sigmoid" in (folder / "load.py").read_text()
    logits = torch.from_numpy(logits)
    return logits.sigmoid() if is_sets else logits.softmax(1)


PROGRAMS = {
    "pyg": ("torch_geometric", "pyg", by_torch),
    "torch": ("torch", "torch", by_torch),
    "dgl": ("dgl", "dgl", by_dgl),
    "onnx": ("onnxruntime", "torch", by_onnx),
}


def is_installed(package):
    try:
        __import__(package)
        return True
    except Exception as error:  # A package that cannot be loaded has other errors, too.
        print(f"left out: {package}: {error}", file=sys.stderr)
        return False


def check(laconic, folder, arrays, case, programs):
    """The largest differences for each program, and whether all agree."""
    name, graph, model, keys = case
    keys = [*(f"model.{key}" for key in model.split()), *keys.split()]
    if not any(key.startswith("data.features") for key in keys):
        keys.append("data.features=standardised")
    run = folder / "run"
    config = f'[data]\npath = "{folder / graph}.npz"\n[model]\nhidden = 16\n[train]\nepochs = 15\n[partition]\nparts = 3\n'
    (folder / "run.toml").write_text(config)

    def do(*words):
        subprocess.run([laconic, *words, "--quiet"], check=True, stdout=subprocess.DEVNULL)

    do("train", str(folder / "run.toml"), "--out", str(run), *(word for key in keys for word in ("--set", key)))
    do("predict", str(run), "--out", str(folder / "p.csv"), "--force")
    with open(folder / "p.csv", newline="") as file:
        rows = {int(row["id"]): row for row in csv.DictReader(file)}
    expected = np.array([[float(rows[i][f"prob_{c}"]) for c in range(CLASSES)] for i in arrays["ids"].tolist()])
    inputs = [torch.from_numpy(arrays["features"]), torch.from_numpy(arrays["edge_index"])]
    differences, agrees = [], True
    for to, call in programs:
        do("export", str(run), "--to", to)
        weighted = "edge_weight):" in (run / to / "load.py").read_text()
        given = [*inputs, torch.from_numpy(arrays["edge_weight"])] if weighted else inputs
        with torch.no_grad():
            found = call(run / to, given).numpy()
        difference = np.abs(found - expected).max()
        agrees &= bool(difference <= TOLERANCE)
        differences.append(f"{difference:.1e}")
    print(f"| {name} | {graph} | {' | '.join(differences)} |", flush=True)
    return agrees


def check_links(laconic, folder, arrays, case, programs):
    """The same of scores of pairs, all edges being seen by the model."""
    name, graph, model, decoder = case
    run, is_typed = folder / "run", graph == "typed"
    config = f'[data]\npath = "{folder / graph}.npz"\ntyped = {str(is_typed).lower()}\nfeatures = "standardised"\n'
    config += "[model]\nhidden = 16\n[train]\nepochs = 15\neval_every = 0\n[partition]\nparts = 3\n"
    config += f'[task]\nkind = "link_prediction"\ndecoder = "{decoder}"\nsplit = {{ val = 0.0, test = 0.0 }}\n'
    (folder / "run.toml").write_text(config)

    def do(*words):
        subprocess.run([laconic, *words, "--quiet"], check=True, stdout=subprocess.DEVNULL)

    keys = [word for key in model.split() for word in ("--set", f"model.{key}")]
    do("train", str(folder / "run.toml"), "--out", str(run), *keys)
    draw = np.random.default_rng(8)
    pairs, types = draw.integers(0, NODES, (2, 1000)), draw.integers(0, RELATIONS, 1000)
    columns = [*arrays["ids"][pairs], types] if is_typed and decoder == "distmult" else [*arrays["ids"][pairs]]
    np.savetxt(folder / "pairs.csv", np.stack(columns, axis=1), fmt="%d", delimiter=",")
    do("predict", str(run), "--pairs", str(folder / "pairs.csv"), "--out", str(folder / "scores.csv"), "--force")
    with open(folder / "scores.csv", newline="") as file:
        expected = np.array([float(row["score"]) for row in csv.DictReader(file)])
    inputs = [torch.from_numpy(arrays["features"]), torch.from_numpy(arrays["edge_index"])]
    differences, agrees = [], True
    for to, folder_of in programs:
        if to == "onnx" or to == "dgl" or (to == "torch" and "rgcn" in model):
            differences.append("-")
            continue
        do("export", str(run), "--to", folder_of)
        given = [torch.from_numpy(arrays["edge_type"])] if "rgcn" in model else []
        of_pairs = [torch.from_numpy(types)] if len(columns) == 3 else []
        with torch.no_grad():
            built = loaded(run / folder_of).load()
            found = built.score(built(*inputs, *given), torch.from_numpy(pairs), *of_pairs).numpy()
        difference = (np.abs(found - expected) / (1 + np.abs(expected))).max()
        agrees &= bool(difference <= TOLERANCE)
        differences.append(f"{difference:.1e}")
    print(f"| {name} | {graph} | {' | '.join(differences)} |", flush=True)
    return agrees


def main():
    parser = argparse.ArgumentParser(description="Check exported models against predictions")
    parser.add_argument("laconic", type=Path, help="the program")
    parser.add_argument("--to", nargs="*", choices=list(PROGRAMS), default=list(PROGRAMS), help="for which programs")
    arguments = parser.parse_args()
    chosen = [to for to in arguments.to if is_installed(PROGRAMS[to][0])]
    programs = [PROGRAMS[to][1:] for to in chosen]
    print(f"| model | graph | {' | '.join(chosen)} |\n| --- | --- |{' --: |' * len(chosen)}")
    cases = [(name, graph, model, "") for graph in ["directed", "weighted"] for name, model in ON_BOTH] + ONCE
    with tempfile.TemporaryDirectory() as folder:
        typed, arrays = graphs(Path(folder))
        agree = [check(arguments.laconic.resolve(), Path(folder), arrays, case, programs) for case in cases]
        of_links = [(to, PROGRAMS[to][1]) for to in chosen]
        for case in LINKS:
            of_graph = typed.get(case[1], arrays)
            agree.append(check_links(arguments.laconic.resolve(), Path(folder), of_graph, case, of_links))
    print(f"{sum(agree)} of {len(agree)} agree within {TOLERANCE}")
    sys.exit(0 if all(agree) else 1)


main()
