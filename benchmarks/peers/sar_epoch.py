"""Times full-graph training epochs of SAR (IntelLabs/SAR, on DGL) on the graph that graph.py writes: two processes of one
thread each, which talk to each other by gloo over the loopback device.

usage: benchmarks/peers/sar_epoch.py PEER.npz PARTS.txt [epochs]

Needs torch, dgl and sar (ifaddr, too). Nodes are given to the processes at random, and PARTS.txt gets the process of each
node, for `partition.method = "given"`. Three layers of GraphSAGE (mean), hidden width 256, LayerNorm, ReLU and dropout 0.5
between them, Adam with rate 0.01: what benchmarks/peers/graph.toml trains, save for dropout on the first layer's input.
Bytes are those that the loopback device has sent meanwhile, of both processes and with all headers: nothing else may talk
over it.

The name is not sar.py, which `import sar` would find in place of the library.
"""

import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import dgl
import numpy as np
import sar
import torch
from torch import multiprocessing, nn
from torch.nn import functional

HIDDEN, LAYERS, PROCESSES = 256, 3, 2
NAME = "peer"


def sent():
    """Bytes that the loopback device has sent so far."""
    return int(Path("/sys/class/net/lo/statistics/tx_bytes").read_text())


def cut(path, folder, parts):
    """Cuts the graph at random, as SAR reads it, and writes the part of each node to `parts`."""
    data = np.load(path)
    low, high = torch.from_numpy(data["edge_index"].astype(np.int64))
    graph = dgl.graph((torch.cat([low, high]), torch.cat([high, low])), num_nodes=int(data["num_nodes"][0]))
    graph.ndata["features"] = torch.from_numpy(data["features"])
    graph.ndata["labels"] = torch.from_numpy(data["labels"].astype(np.int64))
    graph.ndata["train_mask"] = torch.from_numpy(data["train_mask"].astype(bool))
    dgl.random.seed(0)
    places, _ = dgl.distributed.partition_graph(
        graph, NAME, PROCESSES, folder, part_method="random", num_hops=1, return_mapping=True
    )
    node_map = json.loads(Path(folder, f"{NAME}.json").read_text())["node_map"]
    ranges = next(iter(node_map.values())) if isinstance(node_map, dict) else node_map
    part = np.empty(graph.num_nodes(), np.int64)
    for number, (start, end) in enumerate(ranges):
        part[places[start:end].numpy()] = number
    np.savetxt(parts, part, fmt="%d")


def train(rank, folder, epochs):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    sar.initialize_comms(rank, PROCESSES, sar.nfs_ip_init(rank, f"{folder}/address"), "gloo")
    part = sar.load_dgl_partition_data(f"{folder}/{NAME}.json", rank, torch.device("cpu"))
    column = lambda key: sar.suffix_key_lookup(part.node_features, key)
    x, y, mask = column("features"), column("labels"), column("train_mask").bool()
    graph = sar.construct_full_graph(part)
    del part
    reduced = lambda value, how: sar.comm.all_reduce(value, how, move_to_comm_device=True)
    classes, samples = y.max() + 1, mask.sum()
    reduced(classes, torch.distributed.ReduceOp.MAX)
    reduced(samples, torch.distributed.ReduceOp.SUM)
    widths = [x.shape[1]] + [HIDDEN] * (LAYERS - 1) + [int(classes)]
    model = nn.Module()
    model.layers = nn.ModuleList(dgl.nn.SAGEConv(*shape, "mean") for shape in zip(widths, widths[1:]))
    model.norms = nn.ModuleList(nn.LayerNorm(HIDDEN) for _ in widths[2:])
    sar.sync_params(model)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)

    def epoch():
        h = model.layers[0](graph, x)
        for norm, layer in zip(model.norms, model.layers[1:]):
            h = layer(graph, functional.dropout(functional.relu(norm(h)), 0.5))
        loss = functional.cross_entropy(h[mask], y[mask], reduction="sum") / samples
        optimiser.zero_grad()
        loss.backward()
        sar.gather_grads(model)
        optimiser.step()
        whole = loss.detach().clone()
        reduced(whole, torch.distributed.ReduceOp.SUM)
        return float(whole)

    first = epoch()
    seconds, before = [], sent()
    for _ in range(epochs):
        start = time.perf_counter()
        last = epoch()
        seconds.append(time.perf_counter() - start)
    bytes_each = (sent() - before) / epochs
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"sar, process {rank}: median {np.median(seconds):.2f} s an epoch, {bytes_each / 1e6:.0f} MB sent by both, "
        f"peak {peak:.2f} GB, loss {first:.3f} to {last:.3f}",
        flush=True,
    )
    torch.distributed.barrier()


if __name__ == "__main__":
    path, parts = sys.argv[1:3]
    epochs = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    os.environ.update(OMP_NUM_THREADS="1", SAR_SOCKET_NAME="lo")
    with tempfile.TemporaryDirectory() as folder:
        cut(path, folder, parts)
        multiprocessing.spawn(train, (folder, epochs), nprocs=PROCESSES)
