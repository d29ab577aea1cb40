"""Times epochs of training on sampled neighbourhoods with Laconic, DGL and PyTorch Geometric on the CPU, in turn.

usage: benchmarks/peers/batches.py GRAPH.npz FEATURES.npz LACONIC [--turns N] [--threads N] [--only WORDS]
           [--accuracy EPOCHS] [--seed N]

LACONIC is the program that `cargo build --release` leaves in target/release. Everybody trains what
examples/configs/ogbn_arxiv.toml does with three layers: sage of width 256 with LayerNorm and ReLU between layers, dropout
0.3 before each layer (the first one included), Adam with rate 0.003 and an L2 penalty of 5e-4, in batches of 1,024
training nodes with fanouts 15, 10 and 5 (the first layer's first). An epoch is sampling, features, forward, backward and
step. The other libraries run in several of their users' ways, and the fastest counts; with --only, those that have these
words in their names. With --accuracy each library's last way and Laconic train for so many epochs, and the test accuracy
in the epoch with the best validation accuracy is printed; evaluations read all neighbours.

Needs torch with dgl, or torch-geometric and one of its samplers (pyg-lib, torch-sparse); what is missing is left out.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

SIZE, FANOUTS, HIDDEN, DROPOUT = 1024, [15, 10, 5], 256, 0.3
RUN = Path(__file__).resolve().parents[2] / "examples/configs/ogbn_arxiv.toml"

parser = argparse.ArgumentParser()
[parser.add_argument(name) for name in ["graph", "features", "laconic"]]
parser.add_argument("--turns", type=int, default=3)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--only", default="")
parser.add_argument("--accuracy", type=int, default=0)
parser.add_argument("--seed", type=int, default=0)
given = parser.parse_args()
path, features, threads = given.graph, given.features, given.threads
torch.set_num_threads(threads)
torch.manual_seed(given.seed)

data = np.load(path)
nodes = int(data["num_nodes"][0])
ends = data["edge_index"].astype(np.int64)
source, target = np.concatenate([ends, ends[::-1]], axis=1)
pairs = np.unique(target * nodes + source)
source, target = torch.from_numpy(pairs % nodes), torch.from_numpy(pairs // nodes)
x = torch.from_numpy(np.load(features)["features"])
y = torch.from_numpy(data["labels"].astype(np.int64))
train, val, test = (torch.from_numpy(np.flatnonzero(data[f"{split}_mask"])) for split in ["train", "val", "test"])
classes = int(y.max()) + 1
widths = [x.shape[1]] + [HIDDEN] * (len(FANOUTS) - 1) + [classes]


class Model(nn.Module):
    """Layers of one library; `call(layer, edges, rows)` runs one on a batch's edges of that layer."""

    def __init__(self, make, call):
        super().__init__()
        self.layers = nn.ModuleList(make(*shape) for shape in zip(widths, widths[1:]))
        self.norms = nn.ModuleList(nn.LayerNorm(HIDDEN) for _ in widths[1:-1])
        self.call = call
        self.optimiser = torch.optim.Adam(self.parameters(), lr=0.003, weight_decay=5e-4)

    def forward(self, blocks, h):
        for index, (layer, edges) in enumerate(zip(self.layers, blocks)):
            h = self.call(layer, edges, functional.dropout(h, DROPOUT, self.training))
            if index < len(self.norms):
                h = functional.relu(self.norms[index](h))
        return h

    def step(self, blocks, rows, seeds):
        self.optimiser.zero_grad()
        functional.cross_entropy(self(blocks, x[rows]), y[seeds]).backward()
        self.optimiser.step()


def shuffled():
    return train[torch.randperm(len(train))].split(SIZE)


def dgl_ways():
    import dgl
    from dgl.nn import SAGEConv

    wide = dgl.graph(("csc", (indptr(), source, torch.tensor([], dtype=torch.int64))), num_nodes=nodes)
    sampler = dgl.dataloading.NeighborSampler(FANOUTS)

    def model():
        return Model(lambda inputs, outputs: SAGEConv(inputs, outputs, "mean"), lambda layer, block, h: layer(block, h))

    def loader(model, workers):
        batched = dict(batch_size=SIZE, shuffle=True, num_workers=workers)
        for inputs, outputs, blocks in dgl.dataloading.DataLoader(wide, train, sampler, **batched):
            model.step(blocks, inputs, outputs)

    def ahead(model, graph):
        def sample(seeds):
            inputs, outputs, blocks = sampler.sample_blocks(graph, seeds.to(graph.idtype))
            # Layers on blocks with 32-bit ids end DGL 2.1.0 with a segmentation fault.
            return inputs.long(), outputs.long(), [block.long() for block in blocks]

        with ThreadPoolExecutor(1, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            batches = shuffled()
            waiting = [pool.submit(sample, seeds) for seeds in batches[:2]]
            for at in range(len(batches)):
                inputs, outputs, blocks = waiting.pop(0).result()
                if at + 2 < len(batches):
                    waiting.append(pool.submit(sample, batches[at + 2]))
                model.step(blocks, inputs, outputs)

    def everything(model):
        return model([wide] * len(FANOUTS), x)

    for workers, how in [(0, "a loader without workers"), (1, "a loader with one worker process")]:
        yield how, model, lambda m, workers=workers: loader(m, workers), everything
    for bits, graph in [(64, wide), (32, wide.int())]:
        yield f"sampling ahead on a thread, {bits}-bit ids", model, lambda m, graph=graph: ahead(m, graph), everything


def pyg_ways():
    import torch_geometric.typing as has
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader
    from torch_geometric.nn import SAGEConv
    from torch_geometric.utils import trim_to_layer

    if not (has.WITH_PYG_LIB or has.WITH_TORCH_SPARSE):
        raise ImportError("neither pyg-lib nor torch-sparse")
    graph = Data(x=x, y=y, edge_index=torch.stack([source, target]), num_nodes=nodes)

    class Trimmed(Model):
        """Layers behind the first read the part of a batch that they need, where the sampler tells which."""

        def forward(self, batch, h):
            edges = batch.edge_index
            for index, layer in enumerate(self.layers):
                if getattr(batch, "num_sampled_nodes", None) is not None:
                    counts = batch.num_sampled_nodes, batch.num_sampled_edges
                    h, edges, _ = trim_to_layer(index, *counts, h, edges)
                h = layer(functional.dropout(h, DROPOUT, self.training), edges)
                if index < len(self.norms):
                    h = functional.relu(self.norms[index](h))
            return h

    def model():
        return Trimmed(SAGEConv, None)

    def loader(model, workers):
        batched = dict(batch_size=SIZE, input_nodes=train, shuffle=True, num_workers=workers)
        for batch in NeighborLoader(graph, FANOUTS[::-1], **batched):
            model.optimiser.zero_grad()
            out = model(batch, batch.x)[: batch.batch_size]
            functional.cross_entropy(out, batch.y[: batch.batch_size]).backward()
            model.optimiser.step()

    def everything(model):
        return model(graph, x)

    yield "a loader without workers", model, lambda m: loader(m, 0), everything
    yield "a loader with one worker process", model, lambda m: loader(m, 1), everything


def indptr():
    starts = torch.zeros(nodes + 1, dtype=torch.int64)
    starts[1:] = torch.bincount(target, minlength=nodes).cumsum(0)
    return starts


def ours(count, seed, *options):
    """Seconds of each epoch of a run, and what its summary says."""
    fanouts = ", ".join(map(str, FANOUTS))
    keys = {
        "data.path": path,
        "data.features_path": features,
        "partition.parts": 1,
        "model.layers": len(FANOUTS),
        "batch.size": SIZE,
        "batch.fanouts": f"[{fanouts}]",
        "train.epochs": count,
        "train.seed": seed,
        "train.threads": threads,
    }
    options = [*(f"{key}={value}" for key, value in keys.items()), *options]
    with tempfile.TemporaryDirectory() as folder:
        command = [given.laconic, "train", str(RUN), "--quiet", "--out", f"{folder}/run"]
        subprocess.run([*command, *(word for option in options for word in ("--set", option))], check=True)
        rounds = [json.loads(line) for line in open(f"{folder}/run/metrics.jsonl")]
        summary = json.load(open(f"{folder}/run/summary.json"))
    seconds = [line["seconds"] for line in rounds]
    each = len(seconds) // count
    return [sum(seconds[at * each : (at + 1) * each]) for at in range(count)], summary


def libraries():
    for name, make in [("dgl", dgl_ways), ("pyg", pyg_ways)]:
        try:
            for how, *rest in make():
                if given.only in how:
                    yield (name, how), *rest
        except ImportError as error:
            print(f"without {name}: {error}")


def turns():
    ways = [(way, model(), epoch) for way, model, epoch, _ in libraries()]
    seconds = {}
    for turn in range(given.turns):
        best, _ = ours(1, 0, "train.eval_every=0")
        seconds.setdefault(("laconic", "batches sampled ahead"), []).extend(best)
        for way, model, epoch in ways:
            start = time.perf_counter()
            epoch(model)
            seconds.setdefault(way, []).append(time.perf_counter() - start)
        print(f"turn {turn + 1}: " + ", ".join(f"{values[-1]:.1f}" for values in seconds.values()), flush=True)
    print(f"\nseconds an epoch of {len(train.split(SIZE))} batches, by turns; the median; {threads} threads")
    for (name, how), values in seconds.items():
        print(f"{name:8} {how:44} {' '.join(f'{v:6.2f}' for v in values)}   {statistics.median(values):6.2f}")
    best = {name: min(statistics.median(v) for (n, _), v in seconds.items() if n == name) for name, _ in seconds}
    for name, value in best.items():
        print(f"{name:8} fastest way {value:6.2f}, {value / best['laconic']:.2f} times Laconic's")


def accuracy():
    _, summary = ours(given.accuracy, given.seed, "train.eval_every=1")
    print(f"laconic  test {summary['test']} in round {summary['best_round']}", flush=True)
    last = {}
    for (name, how), model, epoch, everything in libraries():
        last[name] = (how, model, epoch, everything)
    for name, (how, model, epoch, everything) in last.items():
        model, best = model(), (0.0, 0.0, 0)
        for count in range(1, given.accuracy + 1):
            model.train()
            epoch(model)
            model.eval()
            with torch.no_grad():
                right = everything(model).argmax(1) == y
            scores = [right[split].float().mean().item() for split in (val, test)]
            best = max(best, (*scores, count))
        print(f"{name:8} {how}: val {best[0]:.4f}, test {best[1]:.4f} in epoch {best[2]}", flush=True)


accuracy() if given.accuracy else turns()
