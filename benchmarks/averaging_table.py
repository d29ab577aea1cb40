"""Independent trainers beside each other: the methods of RandomTMA's comparison, and frozen aggregates, by equal time on
the simulated clock.

    python benchmarks/averaging_table.py target/release/laconic facebook_pages.npz --features features.npz --links

Each method trains for the same time: full local graphs, a mean every `--interval` seconds, `--limit` seconds in all, over
`--shape` links. A trainer of the whole graph takes `--speed` steps a second, and one of a part as many more as its nodes
and edges together are fewer than the whole graph's. ggs shares each step among all and takes as many as its largest part
allows; what its messages would take of the time is not counted, so its figures are those of a network that costs nothing.
With `--equal-steps` everybody takes `--speed` steps a second, whatever the part. With
`--drop`, each part is left out in turn (the published protocol of failed trainers), and the mean loss is shown.
*By equal bytes* is the test figure of the best mean that had come before `--megabytes` had crossed (if not given: as many
as the first method took). Of each partition the edges inside its parts are counted and how far gradients of a small
model differ between parts over the length of their mean, or, without labels, the largest distance of a part's clusters of
features from those of all (total variation).
A line of JSON a run goes to standard output as it ends; the table comes last. Runs may be made apart, by method and seed:
`--lines FILE...` makes the table of the lines that they left.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

TRAINERS = "schedule.kind=averaging"
# Rows in four bits, told again after every fourth mean.
STALE = ["schedule.halo=stale", "schedule.refresh=4", 'messages.forward={ codec = "quantised", bits = 4 }']
METHODS = {
    "SuperTMA": [TRAINERS, "partition.method=super_node"],
    "RandomTMA": [TRAINERS, "partition.method=random"],
    "PSGD-PA": ["schedule.kind=psgd_pa", "partition.method=multilevel"],
    "LLCG": ["schedule.kind=llcg", "partition.method=multilevel"],
    "GGS": ["schedule.kind=ggs", "partition.method=multilevel"],
    "single trainer": [TRAINERS, "partition.parts=1"],
    "single, frozen": [TRAINERS, "partition.parts=1", "schedule.halo=frozen"],
    "random, frozen": [TRAINERS, "partition.method=random", "schedule.halo=frozen"],
    "multilevel, frozen": [TRAINERS, "partition.method=multilevel", "schedule.halo=frozen"],
    "random, stale": [TRAINERS, "partition.method=random", *STALE],
    "multilevel, stale": [TRAINERS, "partition.method=multilevel", *STALE],
    "given": [TRAINERS, "partition.method=given"],
    "given, frozen": [TRAINERS, "partition.method=given", "schedule.halo=frozen"],
}


def speeds(args, method, cut):
    """Steps a second of each trainer, by part; `cut` says what parts hold, and is None where there is one."""
    if args.equal_steps or cut is None:
        return [args.speed]
    # Who exchanges rows reads edges from other parts, too; who does not has lost the share that is cut, in the mean.
    alone = not any(word in method for word in ("frozen", "stale", "GGS"))
    kept = 1 - cut["cut_share"] if alone else 1.0
    whole = sum(part["nodes"] + part["edges"] for part in cut["parts"])
    return [round(args.speed * whole / max(1.0, part["nodes"] + kept * part["edges"]), 3) for part in cut["parts"]]


def keys(args, method, seed, drop, cut):
    """The keys of one run."""
    rates = speeds(args, method, cut)
    # A step that all take together waits for the slowest.
    steps = int(min(rates) * args.limit)
    interval = int(min(rates) * args.interval)
    sets = [
        f"data.path={args.data}",
        f"partition.parts={args.trainers}",
        # Given parts are drawn from nothing.
        *([] if "given" in method else [f"partition.seed={seed}"]),
        f"train.seed={seed}",
        "train.threads=1",
        *METHODS[method],
        # Of a key that is said twice the last counts.
        *args.set,
    ]
    if args.features:
        sets.append(f"data.features_path={args.features}")
    if args.file:
        sets += [f"partition.file={args.file}"] if "given" in method else []
    if args.links:
        sets += ["task.kind=link_prediction", "train.metrics=[\"mrr\", \"hits@50\"]"]
    if method == "GGS":
        sets += [f"train.epochs={steps}", f"train.eval_every={interval}"]
        return sets
    stages = 2 if "frozen" in method else 1
    sets += [
        "transport.kind=simulated",
        f"transport.speeds={rates}",
        f"transport.shape={args.shape}",
        f"schedule.interval={args.interval}s",
        # Stages share the time.
        f"schedule.limit={args.limit / stages}s",
    ]
    if args.links:
        sets.append("task.negatives=local")
    if drop is not None:
        sets.append(f"averaging.drop=[{drop}]")
    return sets


def run(args, method, seed, cut, drop=None):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "run"
        command = [args.laconic, "train", "--out", out, "--quiet"]
        for key in keys(args, method, seed, drop, cut):
            command += ["--set", key]
        # An empty configuration: all is said by keys.
        empty = pathlib.Path(folder) / "run.toml"
        empty.write_text("")
        command.insert(2, empty)
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            print(json.dumps({"method": method, "seed": seed, "drop": drop, "failed": done.stderr[-300:]}), flush=True)
            return None
        summary = json.loads((out / "summary.json").read_text())
        curve = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    metric = "mrr" if args.links else next(iter(k for k in summary["metrics"]["test"] if k != "loss"))
    averaging = summary.get("averaging") or {}
    told = {
        "method": method,
        "seed": seed,
        "drop": drop,
        "val": summary["metrics"]["val"][metric],
        "test": summary["metrics"]["test"][metric],
        "bytes": summary["bytes"]["total"],
        "means": averaging.get("means"),
        "convergence": averaging.get("convergence_seconds"),
        "seconds": summary["seconds"]["total"],
        # Of stages the last alone has the model that is wanted.
        "curve": [
            (line["bytes"], line["val"][metric], line["test"][metric])
            for line in curve
            if "val" in line and line["stage"] == curve[-1]["stage"]
        ],
    }
    print(json.dumps(told), flush=True)
    return told


def within(told, limit):
    """The test figure of the mean that was best in validation before so many bytes had crossed."""
    there = [(val, test) for crossed, val, test in told["curve"] if crossed <= limit]
    # Of equally good ones the first, as the run chooses.
    return max(there, key=lambda mean: mean[0])[1] if there else None


def partition(args, method, seed):
    """What a method's parts keep of the edges, and how far they differ."""
    if method.startswith("single"):
        return None
    cut = next(key.split("=")[1] for key in METHODS[method] if key.startswith("partition.method"))
    command = [args.laconic, "partition", args.data, "--parts", str(args.trainers), "--method", cut, "--measure", "--json"]
    if cut == "given":
        command += ["--file", args.file]
    else:
        command += ["--seed", str(seed)]
    if args.features:
        command += ["--features-path", args.features]
    for key in args.set:
        if key.startswith("data.split="):
            pairs = key.split("=", 1)[1].strip("{ }").split(",")
            command += ["--split", ",".join(pair.replace(" ", "") for pair in pairs)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(json.dumps({"partition": method, "seed": seed, "failed": done.stderr[-300:]}), flush=True)
        return None
    cut = json.loads(done.stdout)
    measured = cut.get("measured") or {}
    differ = measured.get("gradient_discrepancy")
    if differ is None:
        differ = max(measured.get("distances", [0.0]))
    told = {"partition": method, "seed": seed, "kept": 1 - cut["cut_share"], "differ": differ}
    print(json.dumps(told), flush=True)
    return {**told, "cut_share": cut["cut_share"], "parts": cut["parts"]}


def spread(values, digits=4):
    values = [value for value in values if value is not None]
    if not values:
        return ""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.{digits}f} ± {deviation:.{digits}f}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("laconic")
    parser.add_argument("data")
    parser.add_argument("--features")
    parser.add_argument("--file", help="the parts that the data come in, for the methods called given")
    parser.add_argument("--links", action="store_true")
    parser.add_argument("--trainers", type=int, default=3)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=[m for m in METHODS if "given" not in m])
    parser.add_argument("--speed", type=float, default=10.0, help="steps a second on the whole graph")
    parser.add_argument("--equal-steps", action="store_true", help="as many for everybody, whatever the part")
    parser.add_argument("--interval", type=float, default=2.0)
    parser.add_argument("--limit", type=float, default=40.0)
    parser.add_argument("--shape", default="wan-100mbit-40ms")
    parser.add_argument("--drop", action="store_true")
    parser.add_argument("--megabytes", type=float, help="what may cross, for the column of equal bytes")
    parser.add_argument("--set", nargs="*", default=[])
    parser.add_argument("--lines", nargs="+", default=[], help="files with the lines of runs that were made already")
    args = parser.parse_args()
    told = [json.loads(line) for file in args.lines for line in open(file) if line.startswith("{")]
    rows = []
    for method in args.methods:
        if told:
            runs = [line for line in told if line.get("method") == method and "test" in line and line["drop"] is None]
            whole = {line["seed"]: line for line in runs}
            losses = [whole[line["seed"]]["test"] - line["test"] for line in told
                      if line.get("method") == method and "test" in line and line["drop"] is not None]
            rows.append((method, runs, losses, [line for line in told if line.get("partition") == method and "kept" in line]))
            continue
        cut_by = {seed: partition(args, method, seed) for seed in args.seeds}
        runs = [run(args, method, seed, cut) for seed, cut in cut_by.items()]
        runs = [told for told in runs if told]
        losses = []
        if args.drop and method != "GGS" and not method.startswith("single"):
            for told in runs:
                seed = told["seed"]
                dropped = [run(args, method, seed, cut_by[seed], drop) for drop in range(args.trainers)]
                losses += [told["test"] - other["test"] for other in dropped if other]
        cuts = [cut for cut in cut_by.values() if cut]
        rows.append((method, runs, losses, cuts))
    first = next((runs for _, runs, _, _ in rows if runs), None)
    limit = args.megabytes * 1e6 if args.megabytes else max(told["bytes"] for told in first) if first else 0
    head = ["method", "val", "test", "converged after, s", "bytes", f"by equal bytes ({limit / 1e6:.1f} MB)", "edges kept",
            "parts differ", "test lost with a part dropped"]
    head = head if args.drop else head[:-1]
    print("\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for method, runs, losses, cuts in rows:
        of = lambda name: [told[name] for told in runs]
        bytes_ = f"{statistics.mean(of('bytes')) / 1e6:.1f} MB" if runs else ""
        mean = lambda name: f"{statistics.mean(cut[name] for cut in cuts):.3f}" if cuts else ""
        cells = [method, spread(of("val")), spread(of("test")), spread(of("convergence"), 1), bytes_,
                 spread([within(told, limit) for told in runs]), mean("kept"), mean("differ"), spread(losses)]
        print("| " + " | ".join(cells[: len(head)]) + " |")


if __name__ == "__main__":
    main()
