"""Times the dense products of Laconic, PyTorch (MKL) and NumPy (OpenBLAS) on the CPU, in turn, in f32 and on as many rows.

usage: benchmarks/peers/products.py LACONIC [TURNS [THREADS [SECONDS]]]

LACONIC is the program. Of each shape (columns of the rows, columns of what they become) the three products of a linear layer:
forward, gradient of the inputs, gradient of the weights, into memory that is there. Each turn is a process of its own for each
library, in random order. The last two columns are Laconic's rate by that of the faster library: by the best time of all turns, and by
the median of the turns' medians.

Needs numpy; torch is left out where it is missing.
"""

import json
import os
import random
import statistics
import subprocess
import sys
import time

NAMES = {"dense": "forward", "dense input gradient": "input gradient", "dense weight gradient": "weight gradient"}


def timed(product, seconds):
    """Best and median seconds of `product`, after once that does not count."""
    product()
    times, start = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - start < seconds:
        before = time.perf_counter()
        product()
        times.append(time.perf_counter() - before)
    return min(times), statistics.median(times)


def library(name, rows, shapes, seconds):
    """Best and median seconds of each product, by the key that Laconic has for it."""
    import numpy as np

    draw = np.random.default_rng(0)
    if name == "torch":
        import torch

        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        of, multiply = torch.from_numpy, lambda left, right, out: torch.mm(left, right, out=out)
    else:
        of, multiply = lambda array: array, lambda left, right, out: np.matmul(left, right, out=out)
    found = {}
    for shape in shapes:
        inputs, outputs = map(int, shape.split("x"))
        x, dz, w = (
            of(draw.standard_normal(size, dtype=np.float32))
            for size in [(rows, inputs), (rows, outputs), (inputs, outputs)]
        )
        y, dx, dw = (of(np.empty(size, np.float32)) for size in [(rows, outputs), (rows, inputs), (inputs, outputs)])
        found[f"forward {shape}"] = timed(lambda: multiply(x, w, y), seconds)
        found[f"input gradient {shape}"] = timed(lambda: multiply(dz, w.T, dx), seconds)
        found[f"weight gradient {shape}"] = timed(lambda: multiply(x.T, dz, dw), seconds)
    return found


def laconic(program, threads, seconds):
    """The same of Laconic, and the number of rows."""
    command = [program, "bench", "kernels", "dense", "--json", "--threads", threads, "--seconds", seconds]
    result = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
    found = {
        f"{NAMES[kernel['name']]} {kernel['shape']}": (kernel["best_seconds"], kernel["median_seconds"])
        for kernel in result["kernels"]
        if kernel["name"] in NAMES
    }
    return found, result["nodes"]


def main():
    program = sys.argv[1]
    turns, threads, seconds = (
        sys.argv[at] if len(sys.argv) > at else default for at, default in [(2, "3"), (3, str(os.cpu_count())), (4, "0.5")]
    )
    found, rows = laconic(program, threads, "0.1")
    shapes = list(dict.fromkeys(key.split()[-1] for key in found))
    flops = {key: 2 * rows * int(key.split()[-1].split("x")[0]) * int(key.split("x")[-1]) for key in found}
    times = {}
    for _ in range(int(turns)):
        for who in random.sample(["laconic", "torch", "numpy"], 3):
            if who == "laconic":
                found, _ = laconic(program, threads, seconds)
            else:
                limits = {name: threads for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
                command = [sys.executable, __file__, "--library", who, str(rows), seconds, *shapes]
                run = subprocess.run(command, env=os.environ | limits, stdout=subprocess.PIPE)
                if run.returncode:
                    print(f"{who} is left out", file=sys.stderr)
                    continue
                found = json.loads(run.stdout)
            for key, pair in found.items():
                times.setdefault(key, {}).setdefault(who, []).append(pair)
    if any(len(whose) < 2 for whose in times.values()):
        sys.exit("there is no library to compare with")
    print(f"{rows} rows, {threads} threads, {turns} turns; best (median) GFLOP/s")
    for key, whose in times.items():
        best = {who: min(pair[0] for pair in pairs) for who, pairs in whose.items()}
        median = {who: statistics.median(pair[1] for pair in pairs) for who, pairs in whose.items()}
        cells = [f"{who} {flops[key] / best[who] / 1e9:.0f} ({flops[key] / median[who] / 1e9:.0f})" for who in sorted(best)]
        shares = [min(s for who, s in of.items() if who != "laconic") / of["laconic"] for of in (best, median)]
        print(f"{key:24} " + ", ".join(cells) + f": {shares[0]:.0%}, {shares[1]:.0%}")


if sys.argv[1:2] == ["--library"]:
    print(json.dumps(library(sys.argv[2], int(sys.argv[3]), sys.argv[5:], float(sys.argv[4]))))
else:
    main()
