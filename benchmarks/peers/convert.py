#!/usr/bin/env python3
"""How fast tables become a graph: `laconic data convert` beside Polars, and beside SciPy, in turn.

    python3 -m venv v && v/bin/pip install numpy==2.4.6 polars==2.1.0 pyarrow==26.0.1 scipy==1.17.1
    v/bin/python benchmarks/peers/convert.py target/release/laconic

Makes two Parquet tables (20 million edges between a million nodes whose ids are texts of ten bytes) and a Matrix Market
file in a temporary folder. Polars reads the tables, joins the numbers of the nodes to both ends and writes an npz;
`convert` writes the same edges sorted, each once. SciPy reads the matrix, sorts it and writes an npz. All have two
threads and are run in turn, `--runs` times. Time is that of the whole process, memory its largest resident set. At last
the edges of both pairs of files are compared.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

POLARS = """
import sys
import numpy as np, polars as pl
edges, nodes, out = sys.argv[1:]
nodes, edges = pl.read_parquet(nodes), pl.read_parquet(edges)
ids = nodes.select("id").with_row_index("row")
for end in ("source", "target"):
    edges = edges.join(ids.rename({"id": end, "row": end + "_row"}), on=end, how="left", maintain_order="left")
ends = np.stack([edges["source_row"].to_numpy(), edges["target_row"].to_numpy()]).astype(np.int32)
features = nodes.select("f0", "f1", "f2", "f3").to_numpy()
np.savez(out, edge_index=ends, features=features, labels=nodes["label"].to_numpy())
"""

SCIPY = """
import sys
import scipy.io, scipy.sparse
matrix, out = sys.argv[1:]
matrix = scipy.io.mmread(matrix).tocsc()
matrix.sum_duplicates()
scipy.sparse.save_npz(out, matrix, compressed=False)
"""


def main():
    """Makes the files, runs both programs in turn and prints the table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("laconic", type=Path)
    arguments.add_argument("--edges", type=int, default=20_000_000)
    arguments.add_argument("--nodes", type=int, default=1_000_000)
    arguments.add_argument("--runs", type=int, default=5)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        print(f"making {given.edges} edges between {given.nodes} nodes", file=sys.stderr)
        # Apart: the memory of this process would count as that of those it starts.
        maker = multiprocessing.Process(target=make, args=(folder, given.nodes, given.edges))
        maker.start()
        maker.join()
        laconic = [given.laconic.resolve(), "data", "convert", "--force", "--out"]
        edges, nodes, matrix = folder / "edges.parquet", folder / "nodes.parquet", folder / "matrix" / "graph.mtx"
        commands = {
            "Polars": [sys.executable, "-c", POLARS, edges, nodes, folder / "polars.npz"],
            "laconic": [*laconic, folder / "laconic.npz", edges, "--nodes", nodes],
            "SciPy, .mtx": [sys.executable, "-c", SCIPY, matrix, folder / "scipy.npz"],
            "laconic, .mtx": [*laconic, folder / "mtx.npz", matrix],
        }
        seconds, memory = {name: [] for name in commands}, {}
        for _ in range(given.runs):
            for name, command in commands.items():
                taken, memory[name] = measured(command)
                seconds[name].append(taken)
        for name, taken in seconds.items():
            spread = f"{min(taken):.2f} to {max(taken):.2f} s"
            print(f"{name:14} {statistics.median(taken):6.2f} s ({spread}) {memory[name] / 1e9:5.2f} GB")
        for peer, own in (("Polars", "laconic"), ("SciPy, .mtx", "laconic, .mtx")):
            times = statistics.median(a / b for a, b in zip(seconds[peer], seconds[own]))
            print(f"{own} is {times:.2f} times as fast as {peer} in {memory[own] / memory[peer]:.2f} of the memory")
        size, taken = matrix.stat().st_size / 1e6, statistics.median(seconds["laconic, .mtx"])
        print(f".mtx: {size:.0f} MB, {size / taken:.0f} MB/s with all that follows")
        told = [laconic[0], "--json", *commands["laconic, .mtx"][1:]]
        reads = [size / json.loads(subprocess.check_output(told))["read_seconds"] for _ in range(given.runs)]
        spread = f"{min(reads):.0f} to {max(reads):.0f}"
        print(f"    read and sorted in memory: {statistics.median(reads):.0f} MB/s ({spread})")
        polars, scipy = np.load(folder / "polars.npz")["edge_index"], np.load(folder / "scipy.npz")
        compare(polars, folder / "laconic.npz", given.nodes)
        columns = np.repeat(np.arange(given.nodes), np.diff(scipy["indptr"]))
        compare(np.stack([scipy["indices"], columns]), folder / "mtx.npz", given.nodes)


def make(folder, nodes, edges):
    """Tables of nodes and edges, and other edges with weights as a matrix."""
    draw = np.random.default_rng(1)
    numbers = draw.permutation(nodes) * 997 % 10**9
    ids = pa.array([f"n{number:09d}" for number in numbers])
    columns = {"id": ids, "label": draw.integers(0, 10, nodes)}
    columns |= {f"f{column}": draw.random(nodes, dtype=np.float32) for column in range(4)}
    pq.write_table(pa.table(columns), folder / "nodes.parquet")
    ends = [draw.integers(0, nodes, edges) for _ in range(2)]
    table = {name: ids.take(pa.array(end)) for name, end in zip(("source", "target"), ends)}
    pq.write_table(pa.table(table), folder / "edges.parquet")
    # In a folder of its own: a table of nodes beside it would be read, too.
    (folder / "matrix").mkdir()
    with open(folder / "matrix" / "graph.mtx", "w", encoding="ascii") as matrix:
        matrix.write(f"%%MatrixMarket matrix coordinate real general\n{nodes} {nodes} {edges}\n")
        for start in range(0, edges, 1 << 20):
            some = [end[start : start + (1 << 20)] + 1 for end in ends]
            weights = draw.random(len(some[0])).round(4)
            matrix.writelines(f"{s} {t} {w}\n" for s, t, w in zip(*(x.tolist() for x in [*some, weights])))


def measured(command):
    """Seconds of a command, and its largest resident set in bytes."""
    threads = {"POLARS_MAX_THREADS": "2", "RAYON_NUM_THREADS": "2"}
    start = time.monotonic()
    process = subprocess.Popen(list(map(str, command)), env={**os.environ, **threads}, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"{command[0]} failed")
    return time.monotonic() - start, usage.ru_maxrss * 1024


def compare(ends, laconic, nodes):
    """Both have the same edges, once duplicates and edges from a node to itself are left out."""
    keys = []
    for source, target in (ends, np.load(laconic)["edge_index"]):
        source, target = source.astype(np.int64), target.astype(np.int64)
        keys.append(np.unique((source * nodes + target)[source != target]))
    print("the same edges" if np.array_equal(*keys) else sys.exit("the edges differ"))


if __name__ == "__main__":
    main()
