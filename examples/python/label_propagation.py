"""Label propagation, which a reader of any transductive result should ask for first: no features, no training.

    python label_propagation.py ogbn_arxiv.npz [--divide]

Each step replaces the class shares F of every node by a * S F + (1 - a) * Y, where Y has the training labels and S is
the adjacency matrix, symmetric, divided by the roots of both degrees (Zhou et al., 2003). Prints accuracy after each
step; the one with the best validation accuracy counts. With --divide a row is divided by its sum and 0.05 after each
step, so that neighbours of whom much is known count for no more than others. The graph is an npz as docs/formats.md has it ("Interchange
npz"), with one class a node. Needs NumPy and SciPy.
"""

import argparse

import numpy as np
import scipy.sparse as sparse


def propagate(adjacency, targets, share, divides):
    """Class shares [nodes, classes] after each step, without end; `targets` are the training labels, one-hot."""
    degrees = np.asarray(adjacency.sum(axis=1)).ravel()
    roots = sparse.diags(1 / np.sqrt(np.maximum(degrees, 1)))
    step = roots @ adjacency @ roots
    found = targets
    while True:
        found = share * (step @ found) + (1 - share) * targets
        if divides:
            found = found / (found.sum(axis=1, keepdims=True) + 0.05)
        yield found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--share", type=float, default=0.9, help="what neighbours count for beside own labels")
    parser.add_argument("--divide", action="store_true", help="divide rows by their sums after each step")
    arguments = parser.parse_args()
    arrays = np.load(arguments.graph)
    labels = arrays["labels"].astype(int)
    masks = {name: arrays[f"{name}_mask"].astype(bool) & (labels >= 0) for name in ("train", "val", "test")}
    sources, targets = arrays["edge_index"]
    keep = sources != targets
    sources, targets = sources[keep], targets[keep]
    size = (len(labels), len(labels))
    adjacency = sparse.coo_matrix((np.ones(len(sources)), (targets, sources)), shape=size).tocsr()
    adjacency = ((adjacency + adjacency.T) > 0).astype(float)
    known = np.zeros((len(labels), labels.max() + 1))
    known[masks["train"], labels[masks["train"]]] = 1
    best = (-1.0, 0.0, 0)
    steps = propagate(adjacency, known, arguments.share, arguments.divide)
    for step, found in zip(range(1, arguments.steps + 1), steps, strict=False):
        right = found.argmax(axis=1) == labels
        val, test = (right[masks[name]].mean() for name in ("val", "test"))
        print(f"step {step}: validation {val:.4f}, test {test:.4f}")
        best = max(best, (val, test, step))
    print(f"best by validation: step {best[2]}, test {best[1]:.4f}")


if __name__ == "__main__":
    main()
