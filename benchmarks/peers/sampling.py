"""Times neighbour sampling of Laconic, DGL and PyTorch Geometric on the CPU, in turn, on one graph.

usage: benchmarks/peers/sampling.py GRAPH.npz SAMPLING_SPEED [FANOUTS [THREADS [TURNS [BATCHES]]]]

SAMPLING_SPEED is the program that `cargo build --release -p laconic-graph --example sampling_speed` leaves in
target/release/examples. Fanouts such as 15,10,5: the first layer's first, so that seeds draw 5 neighbours.

Everybody makes what a model is fed with: relabelled blocks (of PyTorch Geometric, relabelled edges) for batches of 1,024
training nodes, without features. Each library is run in every way that its users have, and the fastest way counts. Edges
without replacement a second, because PyTorch Geometric lets a node draw once a batch and the others once a layer.

Needs torch with dgl and torch-geometric (and torch-sparse or pyg-lib); what is missing is left out.
"""

import json
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

SIZE = 1024

path, ours = sys.argv[1:3]
fanouts = [int(fanout) for fanout in (sys.argv[3] if len(sys.argv) > 3 else "15,10,5").split(",")]
threads, turns, most = (int(sys.argv[at]) if len(sys.argv) > at else default for at, default in [(4, 2), (5, 5), (6, 100)])
torch.set_num_threads(threads)

data = np.load(path)
nodes = int(data["num_nodes"][0])
ends = data["edge_index"].astype(np.int64)
source, target = np.concatenate([ends, ends[::-1]], axis=1)
pairs = np.unique(target * nodes + source)
source, target = torch.from_numpy(pairs % nodes), torch.from_numpy(pairs // nodes)
indptr = torch.zeros(nodes + 1, dtype=torch.int64)
indptr[1:] = torch.bincount(target, minlength=nodes).cumsum(0)
train = np.flatnonzero(data["train_mask"]) if "train_mask" in data else np.arange(nodes)
train = torch.from_numpy(np.random.default_rng(0).permutation(train))
batches = list(train[: len(train) // SIZE * SIZE].split(SIZE))[:most]
seeds = torch.cat(batches)
print(f"{nodes} nodes, {len(pairs)} directed edges, {len(batches)} batches, fanouts {fanouts}, {threads} threads")


def side_by_side(sample):
    """Each thread at a batch of its own."""
    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        return sum(pool.map(sample, batches))


def dgl_ways():
    import dgl

    graph = dgl.graph(("csc", (indptr, source, torch.tensor([], dtype=torch.int64))), num_nodes=nodes)
    small = graph.int()
    sampler = dgl.dataloading.NeighborSampler(fanouts)

    def edges(output):
        return sum(block.num_edges() for block in output[2])

    def loader():
        batched = dict(batch_size=SIZE, shuffle=False, drop_last=False, num_workers=threads)
        return sum(edges(output) for output in dgl.dataloading.DataLoader(graph, seeds, sampler, **batched))

    yield "all threads at a batch", lambda: sum(edges(sampler.sample_blocks(graph, batch)) for batch in batches)
    yield "all threads at a batch, 32-bit ids", lambda: sum(
        edges(sampler.sample_blocks(small, batch.int())) for batch in batches
    )
    yield "a batch for each thread", lambda: side_by_side(lambda batch: edges(sampler.sample_blocks(graph, batch)))
    yield "a batch for each thread, 32-bit ids", lambda: side_by_side(
        lambda batch: edges(sampler.sample_blocks(small, batch.int()))
    )
    yield "a loader with worker processes", loader


def graphbolt_ways():
    import dgl.graphbolt as gb

    graph = gb.fused_csc_sampling_graph(indptr, source)
    small = gb.fused_csc_sampling_graph(indptr, source.int())

    def loader(graph, ids, workers):
        pipe = gb.ItemSampler(gb.ItemSet(ids, names="seeds"), batch_size=SIZE)
        return gb.DataLoader(pipe.sample_neighbor(graph, fanouts), num_workers=workers)

    def edges(loader):
        return sum(sum(b.sampled_csc.indices.numel() for b in batch.sampled_subgraphs) for batch in loader)

    def run(graph, ids, workers):
        return edges(loader(graph, ids, workers))

    def halves(graph, ids):
        loaders = [loader(graph, part, 0) for part in ids.chunk(threads)]
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return sum(pool.map(edges, [iter(loader) for loader in loaders]))

    yield "a batch for each thread", lambda: halves(graph, seeds)
    yield "a batch for each thread, 32-bit ids", lambda: halves(small, seeds.int())
    yield "all threads at a batch", lambda: run(graph, seeds, 0)
    yield "all threads at a batch, 32-bit ids", lambda: run(small, seeds.int(), 0)
    yield "a loader with worker processes", lambda: run(graph, seeds, threads)
    yield "a loader with worker processes, 32-bit ids", lambda: run(small, seeds.int(), threads)


def pyg_ways():
    import torch_geometric.typing as has
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader

    if not (has.WITH_PYG_LIB or has.WITH_TORCH_SPARSE):
        raise ImportError("neither pyg-lib nor torch-sparse")
    outwards = fanouts[::-1]
    graph = Data(edge_index=torch.stack([source, target]), num_nodes=nodes)

    def loader():
        batched = dict(batch_size=SIZE, input_nodes=seeds, num_workers=threads)
        return sum(batch.edge_index.shape[1] for batch in NeighborLoader(graph, outwards, **batched))

    def sparse(batch):
        sampled = torch.ops.torch_sparse.neighbor_sample(indptr, source, batch, outwards, False, True)
        return sampled[1].numel()

    def lib(batch):
        import pyg_lib

        return pyg_lib.sampler.neighbor_sample(indptr, source, batch, outwards, csc=True)[0].numel()

    backend = "pyg-lib" if has.WITH_PYG_LIB else "torch-sparse"
    yield f"a loader with worker processes ({backend})", loader
    yield f"a batch for each thread ({backend})", lambda: side_by_side(lib if has.WITH_PYG_LIB else sparse)


def our_turn():
    """The best of its runs in this turn, for each way."""
    command = [ours, path, ",".join(map(str, fanouts)), str(threads), str(most)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    runs = [json.loads(line) for line in lines if line.startswith("{")]
    return {how: [run for run in runs if run["how"] == how] for how in dict.fromkeys(run["how"] for run in runs)}


ways = {}
for name, make in [("dgl", dgl_ways), ("dgl.graphbolt", graphbolt_ways), ("pyg", pyg_ways)]:
    try:
        ways.update({(name, how): run for how, run in make()})
    except ImportError as error:
        print(f"without {name}: {error}")

rates = {}
for turn in range(turns + 1):
    for how, runs in our_turn().items():
        rate = statistics.median(run["edges"] / run["seconds"] for run in runs)
        rates.setdefault(("laconic", how), []).append(rate)
    for way, run in ways.items():
        start = time.perf_counter()
        edges = run()
        rates.setdefault(way, []).append(edges / (time.perf_counter() - start))
    if turn == 0:
        rates = {}  # everybody warms up
print("\nmillion edges a second, by turns; the median")
for (name, how), values in rates.items():
    figures = " ".join(f"{value / 1e6:6.2f}" for value in values)
    print(f"{name:14} {how:44} {figures}   {statistics.median(values) / 1e6:6.2f}")
best = {name: max(statistics.median(v) for (n, _), v in rates.items() if n == name) for name, _ in rates}
for name, rate in best.items():
    print(f"{name:14} best way {rate / 1e6:6.2f}, laconic {best['laconic'] / rate:5.2f} times as fast")
