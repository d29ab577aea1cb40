"""`messages = "auto"` over graphs, partitions and seeds beside exact training: how many times fewer bytes, at what accuracy.

    python benchmarks/fewer_bytes.py target/release/laconic FOLDER --graphs cora facebook_pages --seeds 3 --lines lines.jsonl

FOLDER has a NAME.npz for each graph, with features in it or in NAME.prone128.npz or NAME.prone64.npz. Nothing is set for a
graph: the model is one of two layers of 64, dropout 0.3, rate 0.01, L2 penalty 5e-4 and 100 rounds, over four parts. A
graph that has a split keeps it; of others half of the nodes have labels, and a fifth are for validation. Figures are accuracies,
but areas under the ROC curve where there are two classes, of which one may be rare.

Each seed draws parts, splits and models anew, and is trained so: *exact*, synchronous gcn and mlp, with no label told and with labels and
codewords (`model.inputs`); and `auto`, with leave for labels and without. The best line is the largest test figure of
the exact ones that may read the same: without leave that has no label told. *Fewer* is how many times as many bytes
exact gcn without told labels sent, evaluations apart, as the run that is kept, and as all tries together. Figures are
those of test nodes at the round with the best validation figure, of the metric that decides.

A run leaves a line of JSON in `--lines`; what is there already is not run again, so a table may be made in several goes.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

GRAPHS = "cora coauthor_cs facebook_pages flickr_saint github_social oewn tolokers ogbn_arxiv".split()
BASE = """
[data]
path = "{path}"
symmetrise = true
{more}
[partition]
method = "{method}"
parts = {parts}
seed = {seed}
[model]
arch = "gcn"
hidden = 64
dropout = 0.3
[train]
epochs = 100
lr = 0.01
weight_decay = 5e-4
eval_every = 10
seed = {seed}
metrics = ["{metric}"]
"""
# An own split of whoever has none.
SPLIT = "split = {{ train = 0.5, val = 0.2, seed = {seed} }}\n"
# What decides, of the figures that a run may have: beside each of these stands its loss.
METRICS = ["roc_auc", "accuracy"]
ALLOW = 'policy.allow=["labels"]'
TOLD = 'model.inputs=["features", "labels", "codewords"]'
WAYS = {
    "exact gcn": [],
    "exact mlp": ["model.arch=mlp"],
    "exact gcn, labels": [TOLD, ALLOW],
    "exact mlp, labels": ["model.arch=mlp", TOLD, ALLOW],
    "auto": ["messages=auto"],
    "auto, labels": ["messages=auto", ALLOW],
}


def configuration(args, graph, method, seed):
    """The text of a run's configuration."""
    import numpy as np

    path = args.folder / f"{graph}.npz"
    more = ""
    with np.load(path) as arrays:
        labels = arrays["labels"]
        metric = "roc_auc" if labels.ndim == 1 and labels.max() == 1 else "accuracy"
        if "train_mask" not in arrays:
            more += SPLIT.format(seed=seed)
        elif arrays["train_mask"].ndim > 1:
            more += f"split_index = {seed}\n"
    for features in (f"{graph}.prone128.npz", f"{graph}.prone64.npz"):
        if (args.folder / features).exists():
            more += f'features_path = "{args.folder / features}"\n'
    return BASE.format(path=path, more=more, method=method, parts=args.parts, seed=seed, metric=metric)


def run(args, graph, method, seed, way):
    """Trains once; what is to be known of it."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "run.toml").write_text(configuration(args, graph, method, seed))
        sets = [word for key in WAYS[way] for word in ("--set", key)]
        line = [args.program, "train", folder / "run.toml", "--out", folder / "run", "--quiet", *sets]
        done = subprocess.run(line, capture_output=True, text=True)
        if done.returncode:
            return {"error": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else str(done.returncode)}
        summary = json.loads((folder / "run" / "summary.json").read_text())
        scores, auto = summary["metrics"]["test"], summary.get("auto")
        metric = next(name for name in METRICS if name in scores)
        kinds = summary["bytes"]["by_kind"]
        sent = summary["bytes"]["total"] - sum(kinds.get(kind, 0) for kind in ("evaluation", "evaluation_rows"))
        found = {"metric": metric, "figure": scores[metric], "sent": sent, "total": summary["bytes"]["total"]}
        return found | ({} if auto is None else {"kept": auto["chosen"], "tries": auto["tries"], "all": auto["bytes"]})


def table(lines):
    """The table of all lines, one row a graph, partition and leave."""
    print("| graph | parts | labels | best exact line | kept | fewer | all tries | what is kept |")
    print("|---|---|---|--:|--:|--:|--:|---|")
    cells = {}
    for line in lines:
        if "error" not in line:
            cells.setdefault((line["graph"], line["method"]), {}).setdefault(line["way"], {})[line["seed"]] = line
    for (graph, method), ways in cells.items():
        for way, may_read in (("auto, labels", list(WAYS)[:4]), ("auto", list(WAYS)[:2])):
            base, auto = ways.get("exact gcn", {}), ways.get(way, {})
            seeds = sorted(auto.keys() & base.keys())
            if not seeds:
                continue
            exact = {name: [ways[name][seed]["figure"] for seed in seeds] for name in may_read if ways.get(name, {}).keys() >= set(seeds)}
            best = max(exact, key=lambda name: statistics.mean(exact[name]))
            figures = [auto[seed]["figure"] for seed in seeds]
            fewer = [base[seed]["sent"] / auto[seed]["total"] for seed in seeds]
            of_all = [base[seed]["sent"] / auto[seed]["all"] for seed in seeds]
            kept = sorted({auto[seed]["kept"] for seed in seeds})
            label = "allowed" if way != "auto" else "denied"
            print(
                f"| {graph} | {method} | {label} | {said(exact[best])} ({best}) | {said(figures)} "
                f"| {times(fewer)} | {times(of_all)} | {'; '.join(kept)} |"
            )


def said(figures):
    """A mean of per cents, and its spread where there are several."""
    spread = f" ± {100 * statistics.stdev(figures):.1f}" if len(figures) > 1 else ""
    return f"{100 * statistics.mean(figures):.1f}{spread}"


def times(ratios):
    """The least and the largest."""
    low, high = (f"{round(ratio):,}" for ratio in (min(ratios), max(ratios)))
    return low if low == high else f"{low} to {high}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--graphs", nargs="+", default=GRAPHS)
    parser.add_argument("--methods", nargs="+", default=["random", "multilevel"], help="of partitions")
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--lines", type=pathlib.Path, required=True)
    args = parser.parse_args()
    args.program, args.folder = args.program.resolve(), args.folder.resolve()
    known = [json.loads(line) for line in args.lines.read_text().splitlines()] if args.lines.exists() else []
    done = {(line["graph"], line["method"], line["seed"], line["way"], line["parts"]) for line in known}
    with args.lines.open("a") as file:
        for seed in range(args.seeds):
            for graph in args.graphs:
                for method in args.methods:
                    for way in args.ways:
                        if (graph, method, seed, way, args.parts) in done:
                            continue
                        of = {"graph": graph, "method": method, "seed": seed, "way": way, "parts": args.parts}
                        line = of | run(args, graph, method, seed, way)
                        print(json.dumps(line), file=file, flush=True)
                        known.append(line)
    table([line for line in known if line["parts"] == args.parts])


if __name__ == "__main__":
    main()
