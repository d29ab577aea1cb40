"""The Python package beside the program: the same run from arrays of NumPy and from a file.

    python benchmarks/python_package.py GRAPH.npz [--features FEATURES.npz] [--epochs 100] [--repeats 5]

Needs the package installed, and nothing else running. Prints seconds of rounds and in all, and the largest memory; runs
take turns, and the median counts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KEYS = {"parts": 1, "model": {"hidden": 256}, "train": {"eval_every": 0}}

PYTHON = """
import json, resource, sys, time
started = time.perf_counter()
import numpy as np
import laconic_gnn as lc
path, epochs, keys, features = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4]
with np.load(path) as file:
    kept = ("edge_index", "directed", "features", "labels", "train_mask", "val_mask", "test_mask")
    arrays = {name: file[name] for name in kept if name in file.files}
if features:
    with np.load(features) as file:
        arrays["features"] = file["features"]
arrays["x"] = arrays.pop("features", arrays.pop("x", None))
arrays["y"] = arrays.pop("labels", arrays.pop("y", None))
undirected = not int(arrays.pop("directed", [1])[0])
graph = lc.Graph.from_numpy(**arrays, undirected=undirected)
del arrays
run = lc.train(graph, epochs=epochs, progress=False, **keys)
print(json.dumps({
    "rounds": float(sum(run.metrics["seconds"])), "all": time.perf_counter() - started, "digest": run.digest,
    "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
}))
"""

PROGRAM = """
import json, os, resource, subprocess, sys, time
started = time.perf_counter()
subprocess.run([sys.executable, "-m", "laconic_gnn", *sys.argv[1:]], check=True, stdout=subprocess.DEVNULL)
print(json.dumps({
    "all": time.perf_counter() - started, "memory": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024,
}))
"""


def from_python(path: Path, epochs: int, features: Path | None) -> dict[str, float]:
    line = [sys.executable, "-c", PYTHON, str(path), str(epochs), json.dumps(KEYS), str(features or "")]
    return json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)


def from_the_program(path: Path, epochs: int, features: Path | None) -> dict[str, float]:
    from laconic_gnn import settings

    with tempfile.TemporaryDirectory() as folder:
        config, out = Path(folder, "run.toml"), Path(folder, "run")
        data = {"data.path": path, **({"data.features_path": features} if features else {})}
        words = settings.words({**settings.dotted({"epochs": epochs, **KEYS}), **data})
        config.write_text("\n".join(words) + "\n")
        line = [sys.executable, "-c", PROGRAM, "train", str(config), "--out", str(out), "-q"]
        done = json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)
        rounds = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        digest = json.loads((out / "summary.json").read_text())["parameters"]["digest"]
        return {**done, "rounds": sum(line["seconds"] for line in rounds), "digest": digest}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--features", type=Path)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    found: dict[str, list[dict[str, float]]] = {"python": [], "program": []}
    for _ in range(asked.repeats):
        for name, run in (("python", from_python), ("program", from_the_program)):
            started = time.monotonic()
            found[name].append(run(asked.data.resolve(), asked.epochs, asked.features and asked.features.resolve()))
            print(f"{name}: {time.monotonic() - started:.1f} s", file=sys.stderr)
    assert len({run["digest"] for runs in found.values() for run in runs}) == 1, "other parameters"
    print("| | rounds (s) | spread | in all (s) | peak (MB) |\n|---|--:|--:|--:|--:|")
    for name, runs in found.items():
        rounds = [run["rounds"] for run in runs]
        spread = f"{min(rounds):.2f} to {max(rounds):.2f}"
        whole, peak = (statistics.median(run[of] for run in runs) for of in ("all", "memory"))
        print(f"| {name} | {statistics.median(rounds):.2f} | {spread} | {whole:.2f} | {peak / 1e6:.0f} |")


if __name__ == "__main__":
    main()
