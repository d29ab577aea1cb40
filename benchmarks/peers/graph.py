"""Writes the synthetic graph that the peers' timing script trains on, as an interchange npz.

The graph has ogbn-arxiv's size: 169,343 nodes, 1,157,799 undirected edges with one end drawn with a Pareto-biased probability,
128 random features, 40 random classes, 54 % of the nodes in the training split. The same generator and seed give the same
edges as in the script, up to duplicate edges and self-loops, which are removed here.

usage: benchmarks/peers/graph.py OUT.npz
"""

import sys

import numpy as np

NODES, EDGES, FEATURES, CLASSES = 169_343, 1_157_799, 128, 40

rng = np.random.default_rng(0)
weight = rng.pareto(1.5, NODES) + 1
cumulative = np.cumsum(weight / weight.sum())
source = np.minimum(np.searchsorted(cumulative, rng.random(EDGES)), NODES - 1)
target = rng.integers(0, NODES, EDGES)
low, high = np.minimum(source, target), np.maximum(source, target)
edges = np.unique(np.stack([low, high])[:, low != high], axis=1).astype(np.int32)
role = rng.random(NODES)
np.savez(
    sys.argv[1],
    edge_index=edges,
    directed=np.array([0], np.uint8),
    num_nodes=np.array([NODES]),
    features=rng.standard_normal((NODES, FEATURES), dtype=np.float32),
    labels=rng.integers(0, CLASSES, NODES).astype(np.int32),
    train_mask=(role < 0.54).astype(np.uint8),
    val_mask=((role >= 0.54) & (role < 0.7)).astype(np.uint8),
    test_mask=(role >= 0.7).astype(np.uint8),
)
print(f"{NODES} nodes, {edges.shape[1]} undirected edges")
