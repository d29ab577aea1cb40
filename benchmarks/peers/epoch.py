"""Times full-graph training epochs of DGL or PyTorch Geometric on the graph that graph.py writes, on the CPU.

usage: benchmarks/peers/epoch.py PEER.npz dgl|pyg sage|gcn|gat [epochs]

Needs torch with dgl or torch-geometric. Three layers, hidden width 256, LayerNorm, ReLU and dropout 0.5 between them, Adam with
rate 0.01: what benchmarks/peers/graph.toml trains, save for dropout on the first layer's input.
"""

import resource
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional

HIDDEN, HEADS, LAYERS = 256, 8, 3

path, library, arch = sys.argv[1:4]
epochs = int(sys.argv[4]) if len(sys.argv) > 4 else 5
data = np.load(path)
nodes = int(data["num_nodes"][0])
low, high = torch.from_numpy(data["edge_index"].astype(np.int64))
source, target = torch.cat([low, high]), torch.cat([high, low])
x = torch.from_numpy(data["features"])
y = torch.from_numpy(data["labels"].astype(np.int64))
train = torch.from_numpy(data["train_mask"].astype(bool))
classes = int(y.max()) + 1
widths = [x.shape[1]] + [HIDDEN] * (LAYERS - 1) + [classes]
shapes = list(zip(widths, widths[1:]))

if library == "dgl":
    import dgl
    from dgl.nn import GATConv, GraphConv, SAGEConv

    graph = dgl.graph((source, target), num_nodes=nodes)
    if arch != "sage":
        graph = dgl.add_self_loop(graph)
    graph.create_formats_()

    def layer(inputs, outputs):
        heads = HEADS if outputs == HIDDEN else 1
        make = {
            "sage": lambda: SAGEConv(inputs, outputs, "mean"),
            "gcn": lambda: GraphConv(inputs, outputs),
            "gat": lambda: GATConv(inputs, outputs // heads, heads),
        }
        return make[arch]()

    def call(conv, h):
        return conv(graph, h).flatten(1)
else:
    from torch_geometric.nn import GATConv, GCNConv, SAGEConv

    edges = torch.stack([source, target])
    if arch != "gat":
        ones = torch.ones(source.numel())
        edges = torch.sparse_coo_tensor(torch.stack([target, source]), ones, (nodes, nodes)).coalesce().to_sparse_csr()

    def layer(inputs, outputs):
        heads = HEADS if outputs == HIDDEN else 1
        make = {
            "sage": lambda: SAGEConv(inputs, outputs),
            "gcn": lambda: GCNConv(inputs, outputs, cached=True),
            "gat": lambda: GATConv(inputs, outputs // heads, heads),
        }
        return make[arch]()

    def call(conv, h):
        return conv(h, edges)


torch.manual_seed(0)
layers = nn.ModuleList(layer(*shape) for shape in shapes)
norms = nn.ModuleList(nn.LayerNorm(HIDDEN) for _ in shapes[:-1])
optimiser = torch.optim.Adam([*layers.parameters(), *norms.parameters()], lr=0.01)


def epoch():
    h = call(layers[0], x)
    for norm, conv in zip(norms, layers[1:]):
        h = call(conv, functional.dropout(functional.relu(norm(h)), 0.5))
    loss = functional.cross_entropy(h[train], y[train])
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()


epoch()
seconds = []
for _ in range(epochs):
    start = time.perf_counter()
    epoch()
    seconds.append(time.perf_counter() - start)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
print(f"{library} {arch}: median {np.median(seconds):.2f} s an epoch, {torch.get_num_threads()} threads, peak {peak:.2f} GB")
