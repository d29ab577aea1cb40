"""Link prediction as a plain PyTorch Geometric program: what `laconic train` with `task.kind = "link_prediction"` is
compared with.

    python tests/parity/pyg_links.py DATA.npz --arch gcn --decoder dot --rounds 100 --seeds 0 1 2

It reads the interchange npz, holds out edges as Laconic draws them (a pair's both directions together, by a key of the
seed and the two ids; the key is written out below from its description), trains on the whole graph of training edges
with one fresh negative an edge, and prints MRR and Hits@50 of the test edges in the round that is best by MRR on the
validation edges, a line of JSON a seed.

    python tests/parity/pyg_links.py DATA.npz --structure 64 --features FEATURES.npz

Data without features get some, from training edges alone: the leading singular vectors of the normalised adjacency
matrix, written to FEATURES.npz for `data.features_path`.
"""

import argparse
import json
import time

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
import torch
from torch_geometric.nn import GCNConv, SAGEConv

# Keys are numbers modulo 2^64.
np.seterr(over="ignore")
U = np.uint64
PURPOSE_EDGE_SPLIT, PURPOSE_NEGATIVES = 17, 18


def mix(z):
    z = (z ^ (z >> U(30))) * U(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> U(27))) * U(0x94D049BB133111EB)
    return z ^ (z >> U(31))


def fold(key, coordinate):
    """The key with one more coordinate, for arrays of keys and coordinates."""
    rotated = (key << U(23)) | (key >> U(41))
    return mix(rotated ^ mix(coordinate + U(0x9E3779B97F4A7C15)))


def root(seed, purpose):
    return fold(mix(np.array([seed], dtype=U) ^ U(0x1AC071C500000000)), U(purpose))


def bits(key):
    return mix(key ^ U(0x94D049BB133111EB))


def unit(key):
    return (bits(key) >> U(11)).astype(np.float64) * 2.0**-53


def below(key, bound):
    """The upper half of the 128-bit product of 64 random bits with the bound, which is below 2^32."""
    b, bound = bits(key), U(bound)
    low = ((b & U(0xFFFFFFFF)) * bound) >> U(32)
    return ((b >> U(32)) * bound + low) >> U(32)


def load(path, features_path):
    with np.load(path) as data:
        # Edges that the data hold out are edges like all others to a split that is drawn, in Laconic as well.
        held = ["edge_index", "val_edge_index", "valid_edge_index", "test_edge_index"]
        edges = np.concatenate([data[name] for name in held if name in data], axis=1).astype(np.int64)
        nodes = int(data["num_nodes"][0]) if "num_nodes" in data else int(edges.max()) + 1
        if "directed" in data and data["directed"][0] == 0:
            edges = np.concatenate([edges, edges[::-1]], axis=1)
        edges = np.unique(edges.T, axis=0).T
        source = data
        if features_path:
            source = np.load(features_path)
        if "features" in source:
            features = source["features"].astype(np.float32)
        elif "features_data" in source:
            parts = tuple(source[f"features_{name}"] for name in ["data", "indices", "indptr"])
            features = scipy.sparse.csr_matrix(parts, shape=tuple(source["features_shape"]))
        else:
            features = None
    return nodes, edges, features


def split(edges, val, test, seed):
    """Training, validation and test edges; those from a node to itself train and are not predicted."""
    low, high = edges.min(axis=0).astype(U), edges.max(axis=0).astype(U)
    drawn = unit(fold(fold(root(seed, PURPOSE_EDGE_SPLIT), low), high))
    loop = edges[0] == edges[1]
    is_val, is_test = (drawn < val) & ~loop, (drawn >= val) & (drawn < val + test) & ~loop
    return edges[:, ~is_val & ~is_test], edges[:, is_val], edges[:, is_test]


def evaluation_negatives(edges, nodes, number, seed, share):
    """For each edge `number` targets in place of its own, which of them stand for no edge of their own, and whether its
    first belongs to the pool of Hits@K, which takes this share of all."""
    key = fold(root(seed, PURPOSE_NEGATIVES), U(0))
    key = fold(fold(key, edges[0].astype(U)), edges[1].astype(U))
    targets = below(fold(key[:, None], np.arange(number, dtype=U)[None, :]), nodes).astype(np.int64)
    pooled = unit(fold(key, U(2**64 - 1))) < share
    return targets, (targets != edges[0][:, None]) & (targets != edges[1][:, None]), pooled


class Mlp(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lins = torch.nn.ModuleList([torch.nn.Linear(width, width), torch.nn.Linear(width, 1)])
        self.acts = torch.nn.ModuleList([torch.nn.PReLU()])

    def forward(self, s, d):
        return self.lins[1](self.acts[0](self.lins[0](s * d))).squeeze(1)


class Dot(torch.nn.Module):
    def __init__(self, _):
        super().__init__()

    def forward(self, s, d):
        return (s * d).sum(1)


class Encoder(torch.nn.Module):
    def __init__(self, arch, columns, hidden, layers):
        super().__init__()
        conv = {"gcn": GCNConv, "sage": SAGEConv}[arch]
        widths = [columns] + [hidden] * layers
        self.convs = torch.nn.ModuleList([conv(a, b) for a, b in zip(widths, widths[1:])])

    def forward(self, x, adjacency):
        for index, conv in enumerate(self.convs):
            x = conv(x, adjacency)
            if index + 1 < len(self.convs):
                x = x.relu()
        return x


PIECE = 1 << 17


@torch.no_grad()
def scores(decoder, z, sources, targets):
    pieces = zip(sources.split(PIECE), targets.split(PIECE))
    return torch.cat([decoder(z[s], z[t]) for s, t in pieces]) if len(sources) else torch.zeros(0)


def judge(decoder, z, edges, negatives, kept, pooled, tops):
    """MRR with ties against the edge that is, and OGB's Hits@K against one pool: the first negatives of edges."""
    sources, targets = torch.from_numpy(edges[0]), torch.from_numpy(edges[1])
    positive = scores(decoder, z, sources, targets)
    reciprocal, first = 0.0, []
    rows = max(1, PIECE // negatives.shape[1])
    for at in range(0, len(sources), rows):
        of = negatives[at : at + rows]
        mask = torch.from_numpy(kept[at : at + rows])
        s = sources[at : at + rows, None].expand(-1, of.shape[1]).reshape(-1)
        other = scores(decoder, z, s, torch.from_numpy(of).reshape(-1)).view(of.shape)
        above = ((other >= positive[at : at + rows, None]) & mask).sum(1)
        reciprocal += (1.0 / (1 + above).double()).sum().item()
        first.append(other[torch.arange(len(of)), mask.int().argmax(1)])
    pool = torch.cat(first)[torch.from_numpy(pooled)]
    figures = {"mrr": reciprocal / len(sources)}
    for top in tops:
        # Of fewer there is no K-th best.
        hit = positive > torch.topk(pool, top)[0][-1] if len(pool) >= top else None
        figures[f"hits@{top}"] = None if hit is None else hit.float().mean().item()
    return figures


def run(args, data, seed):
    nodes, x, train, val, test = data
    torch.manual_seed(seed)
    encoder = Encoder(args.arch, x.shape[1], args.hidden, args.layers)
    decoder = {"dot": Dot, "mlp": Mlp}[args.decoder](args.hidden)
    parameters = list(encoder.parameters()) + list(decoder.parameters())
    optimiser = torch.optim.Adam(parameters, lr=args.lr)
    adjacency = torch.from_numpy(train)
    positive = adjacency[:, adjacency[0] != adjacency[1]]
    best = {"val": {"mrr": -1.0}}
    for number in range(1, args.rounds + 1):
        drawn = torch.randint(nodes, (positive.shape[1],))
        keep = drawn != positive[0]
        sources = torch.cat([positive[0], positive[0][keep]])
        targets = torch.cat([positive[1], drawn[keep]])
        truth = torch.zeros(len(sources))
        truth[: positive.shape[1]] = 1.0
        weight = torch.tensor((len(sources) - positive.shape[1]) / positive.shape[1])
        optimiser.zero_grad()
        z = encoder(x, adjacency)
        ends = z.detach().requires_grad_()
        # Piece by piece: rows of all pairs at once would take gigabytes.
        for s, t, y in zip(sources.split(PIECE), targets.split(PIECE), truth.split(PIECE)):
            logits = decoder(ends[s], ends[t])
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, y, pos_weight=weight, reduction="sum")
            (loss / len(sources)).backward()
        z.backward(ends.grad)
        optimiser.step()
        if number % args.every == 0 or number == args.rounds:
            with torch.no_grad():
                z = encoder(x, adjacency)
            figures = judge(decoder, z, *val, [50])
            if figures["mrr"] > best["val"]["mrr"]:
                best = {"round": number, "val": figures, "test": judge(decoder, z, *test, [50])}
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--features")
    parser.add_argument("--structure", type=int)
    parser.add_argument("--arch", default="gcn")
    parser.add_argument("--decoder", default="dot")
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--val", type=float, default=0.05)
    parser.add_argument("--test", type=float, default=0.1)
    parser.add_argument("--split-seed", type=int, default=0)
    parser.add_argument("--negatives", type=int, default=100)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    nodes, edges, features = load(args.data, None if args.structure else args.features)
    train, val, test = split(edges, args.val, args.test, args.split_seed)
    print(json.dumps({"train": train.shape[1], "val": val.shape[1], "test": test.shape[1]}), flush=True)
    if args.structure:
        ones = np.ones(train.shape[1], dtype=np.float32)
        adjacency = scipy.sparse.csr_matrix((ones, (train[0], train[1])), shape=(nodes, nodes))
        degrees = np.maximum(np.asarray(adjacency.sum(1)).ravel(), 1.0)
        scale = scipy.sparse.diags(degrees**-0.5)
        start = np.random.default_rng(0).standard_normal(nodes)
        u, s, _ = scipy.sparse.linalg.svds(scale @ adjacency @ scale, k=args.structure, v0=start)
        rows = (u * np.sqrt(np.abs(s))).astype(np.float32) * np.sqrt(nodes)
        np.savez(args.features, features=rows.astype(np.float32))
        return
    if scipy.sparse.issparse(features):
        features = features.toarray()
    x = torch.from_numpy(np.ascontiguousarray(features, dtype=np.float32))
    least = min(args.val, args.test)
    shares = [(val, least / args.val), (test, least / args.test)]
    drawn = [evaluation_negatives(part, nodes, args.negatives, args.split_seed, share) for part, share in shares]
    held = [(val, *drawn[0]), (test, *drawn[1])]
    for seed in args.seeds:
        start = time.time()
        best = run(args, (nodes, x, train, *held), seed)
        told = {"arch": args.arch, "decoder": args.decoder, "seed": seed, **best}
        print(json.dumps({**told, "seconds": round(time.time() - start, 1)}), flush=True)


if __name__ == "__main__":
    main()
