"""Laconic beside PyTorch Geometric on the CPU: the same model on the same graph, from import to the last epoch.

    python against_pyg.py ogbn_arxiv.npz --features ogbn_arxiv.prone128.npz --epochs 100 --turns 2

Each contender is a process of its own, one after the other, and says as a line of JSON how many seconds it took from
its first import to the accuracy after the last epoch, and how much memory it held at most; behind these lines stands a
table of medians over the turns, and of what they are to Laconic's. Needs laconic_gnn, torch and torch_geometric.

The model: two layers of GraphSAGE with the mean of neighbours, 256 columns between them, LayerNorm, ReLU, dropout of
0.3 on what each layer reads; cross entropy over the training nodes, Adam with rate 0.003 and L2 penalty 5e-4. All nodes
are one batch, and every edge leads both ways. Nothing is evaluated but once at the end. The graph is an npz as
docs/formats.md has it ("Interchange npz").
"""

import time

START = time.perf_counter()  # before what takes time to import

import argparse  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import resource  # noqa: E402
import statistics  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402

HIDDEN, DROPOUT, RATE, PENALTY = 256, 0.3, 0.003, 5e-4
# glibc keeps what torch gives back, which it otherwise asks the system for again and again.
KEPT = {"MALLOC_MMAP_THRESHOLD_": "8589934592", "MALLOC_TRIM_THRESHOLD_": "17179869184"}


def read(graph, features):
    """Ends of edges as they are listed, features, labels and masks."""
    import numpy as np

    arrays = np.load(graph)
    x = np.load(features)["features"] if features else arrays["features"]
    masks = {name: arrays[name].astype(bool) for name in ("train_mask", "test_mask")}
    return arrays["edge_index"], x, arrays["labels"], masks


def laconic(graph, features, epochs):
    """laconic_gnn, with the threads that the machine has."""
    import laconic_gnn as lc

    edge_index, x, y, masks = read(graph, features)
    data = lc.Graph.from_numpy(edge_index, x, y, **masks, undirected=True)
    del edge_index
    model = {"arch": "sage", "layers": 2, "hidden": HIDDEN, "dropout": DROPOUT, "norm": "layer"}
    train = {"epochs": epochs, "lr": RATE, "weight_decay": PENALTY, "eval_every": 0}
    run = lc.train(data, parts=1, model=model, train=train, progress=False)
    return run.accuracy, {"laconic_gnn": lc.__version__}


def pyg(graph, features, epochs, compiled=False):
    """PyTorch Geometric's SAGEConv on an adjacency matrix in sparse rows, which is its fastest way on a CPU."""
    import numpy as np
    import torch
    import torch_geometric
    from torch.nn import functional
    from torch_geometric.nn import SAGEConv
    from torch_geometric.utils import to_torch_csr_tensor

    edge_index, x, y, masks = read(graph, features)
    ends = torch.from_numpy(np.concatenate([edge_index, edge_index[::-1]], axis=1).astype(np.int64))
    x, y = torch.from_numpy(x), torch.from_numpy(y.astype(np.int64))
    train, test = (torch.from_numpy(masks[name]) for name in ("train_mask", "test_mask"))
    # A row a target; edges that are listed twice are one.
    adjacency = to_torch_csr_tensor(ends.flip(0), size=(len(x), len(x)))
    del ends, edge_index

    class Sage(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = SAGEConv(x.shape[1], HIDDEN), SAGEConv(HIDDEN, int(y.max()) + 1)
            self.norm = torch.nn.LayerNorm(HIDDEN)

        def forward(self, x, adjacency):
            x = functional.dropout(x, DROPOUT, self.training)
            x = self.norm(self.first(x, adjacency)).relu()
            return self.last(functional.dropout(x, DROPOUT, self.training), adjacency)

    torch.manual_seed(0)
    model = Sage()
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE, weight_decay=PENALTY)
    called = torch.compile(model) if compiled else model
    for _ in range(epochs):
        optimiser.zero_grad()
        functional.cross_entropy(called(x, adjacency)[train], y[train]).backward()
        optimiser.step()
    model.eval()
    with torch.no_grad():
        # Uncompiled: another graph of operations would be compiled for this one time.
        accuracy = (model(x, adjacency).argmax(1) == y)[test].float().mean().item()
    return accuracy, {"torch": torch.__version__, "torch_geometric": torch_geometric.__version__}


def pyg_compiled(graph, features, epochs):
    """The same by torch.compile."""
    return pyg(graph, features, epochs, compiled=True)


# What each is called, the function, and what stands in its environment.
CONTENDERS = {
    "laconic": (laconic, {}),
    "pyg": (pyg, {}),
    "pyg, memory kept": (pyg, KEPT),
    "pyg, compiled": (pyg_compiled, {}),
}


def alone(name, arguments):
    """Runs a contender in this process; its line."""
    accuracy, versions = CONTENDERS[name][0](arguments.graph, arguments.features, arguments.epochs)
    # Of Linux in units of 1024 bytes.
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = time.perf_counter() - START
    found = {"contender": name, "epochs": arguments.epochs, "seconds": round(seconds, 3), "peak_bytes": peak}
    return {**found, "accuracy": accuracy, "versions": versions}


def in_turn(arguments):
    """Runs every contender as a process of its own, as often as there are turns; what each has said."""
    said = {name: [] for name in arguments.only}
    given = [arguments.graph, *(["--features", arguments.features] if arguments.features else [])]
    for _ in range(arguments.turns):
        for name in said:
            words = [sys.executable, "-W", "ignore", __file__, *given, "--epochs", str(arguments.epochs)]
            words += ["--alone", name]
            environment = {**os.environ, **CONTENDERS[name][1]}
            done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True)
            if done.returncode:
                print(f"{name}: ended with {done.returncode}", file=sys.stderr)
                continue
            print(done.stdout.strip().splitlines()[-1], flush=True)
            said[name].append(json.loads(done.stdout.splitlines()[-1]))
    return {name: lines for name, lines in said.items() if lines}


def table(said):
    """Medians, and what they are to Laconic's."""
    middle = {name: {key: statistics.median(line[key] for line in lines)
                     for key in ("seconds", "peak_bytes", "accuracy")} for name, lines in said.items()}
    own = middle.get("laconic")
    lines = ["| | seconds in all | to Laconic's | peak, GB | to Laconic's | accuracy |"]
    lines.append("| --- | --: | --: | --: | --: | --: |")
    for name, found in middle.items():
        times, sizes = ((f"{found[key] / own[key]:.2f}" if own else "") for key in ("seconds", "peak_bytes"))
        size = found["peak_bytes"] / 1e9
        lines.append(f"| {name} | {found['seconds']:.1f} | {times} | {size:.2f} | {sizes} | {found['accuracy']:.3f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", help="an npz of the interchange format")
    parser.add_argument("--features", help="an npz with features, where the graph has none")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--turns", type=int, default=1, help="how often each runs; medians are shown")
    parser.add_argument("--only", nargs="+", choices=list(CONTENDERS), default=list(CONTENDERS))
    parser.add_argument("--alone", choices=list(CONTENDERS), help="run this one in this process, and say its line")
    arguments = parser.parse_args()
    if arguments.alone:
        print(json.dumps(alone(arguments.alone, arguments)))
        return
    said = in_turn(arguments)
    print("\n" + table(said))
    sys.exit(0 if len(said) == len(arguments.only) else 1)


if __name__ == "__main__":
    main()
