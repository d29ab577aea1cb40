#!/usr/bin/env python3
"""Makes a case for `pyg_parity.rs`: a small random graph, and what PyTorch Geometric computes on it.

    python tests/parity/pyg_case.py --arch gat --layers 3 --hidden 32 --heads 8 --norm --out case.npz
    cargo run --release --example pyg_parity -- case.npz --workers 3 --partition multilevel

Needs torch and torch-geometric (made with 2.2.2 and 2.8.1). The same arguments give the same file.

The model is conv -> [LayerNorm] -> ReLU -> ... -> conv, without dropout; `mlp` has linear layers for convs. With `--residual`
what goes into a conv is added to what comes out, as it is where widths agree, else through a linear map without bias: in gat
that of GATConv(residual=True), in others one of our own. BatchNorm, PReLU (one slope for all layers) and JumpingKnowledge are
those of PyTorch Geometric's `GCN` and `GraphSAGE`, and put together alike around other layers. The file holds:

    edge_index    i64 [2, edges]          sources, targets; no edge twice, but with distmult some in two relations
    x             f32 [nodes, features]
    y             i64 [nodes]
    edge_type     i64 [edges]             rgcn, distmult: the relation of each edge
    train_mask    u8  [nodes]             1 where a node counts in the loss (mean cross-entropy)
    param/NAME    f32                     initial weights: `convs.I.*` (`lins.I.*` for mlp), `norms.I.*`, `act.weight`, `lin.*`
    logits        f32 [nodes, classes]    with the initial weights
    grad/NAME     f32                     gradient of the loss with the initial weights
    losses        f32 [steps]             the loss before each of ten steps of Adam
    after/NAME    f32                     the weights after as many plain steps along the gradient, from the initial ones
    largest       u8  [1]                 there if JumpingKnowledge takes the largest
    residual      u8  [1]                 there if what goes into a layer is added to what comes out
    links         u8  [1]                 there if links are learned: all edges but loops, and a pair that is none for each

With `--decoder` the model's rows are embeddings, `logits` holds them, and the loss is that of links: weighted binary cross
entropy of the decoder's scores (`param/decoder.*`). The pairs that are no edges are those that Laconic draws for seed 0: round 0
for gradients, rounds 1 to 10 for losses. With distmult each has the relation of its edge, which has a part in the draw.

Weights and features are single precision; all that is computed from them is computed in double precision and then rounded, so
that differences are the other side's. Weights that PyTorch Geometric starts at a constant (biases, norms, GIN's learned eps) are
moved off it: a bias of 0 or a norm of 1 would hide mistakes. With BatchNorm `logits` are those of evaluation, and gradients and
losses those of training.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from torch_geometric.nn import GCN, GATConv, GraphSAGE, GCNConv, GINConv, RGCNConv, SAGEConv
from torch_geometric.nn.models.basic_gnn import BasicGNN

from pyg_links import PURPOSE_NEGATIVES, below, fold, root

STEPS = 10
LEARNING_RATE = 0.01
SGD_LEARNING_RATE = 0.05
TRAIN_FRACTION = 0.55
# Fraction of nodes that get no in-edge, and of the others that get a self-loop where wanted.
SOURCE_ONLY_FRACTION = 0.1
SELF_LOOP_FRACTION = 0.25
PARALLEL_FRACTION = 0.25


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Make a case for pyg_parity with PyTorch Geometric",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--arch", required=True, choices=["gcn", "sage", "sage-pool", "gin", "gat", "rgcn", "mlp"])
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=16, help="width of hidden layers, all heads together if concatenated")
    parser.add_argument("--heads", type=int, default=1, help="attention heads (gat)")
    parser.add_argument(
        "--head-merge",
        choices=["concat", "mean"],
        default="concat",
        help="concat: the last layer has one head; mean: every layer has all heads, each of the layer's full width",
    )
    parser.add_argument(
        "--norm", nargs="?", const="layer", choices=["layer", "batch"], help="LayerNorm or BatchNorm after every hidden layer"
    )
    parser.add_argument("--act", choices=["relu", "prelu"], default="relu", help="what follows hidden layers and norms")
    parser.add_argument("--jk", choices=["last", "cat", "max"], help="JumpingKnowledge: what a last linear map reads")
    parser.add_argument(
        "--residual", action="store_true", help="residual connections: what goes into a layer is added to what comes out"
    )
    parser.add_argument("--no-eps", action="store_true", help="fix eps at 0 rather than learn it (gin)")
    parser.add_argument("--relations", type=int, default=3, help="relations of edges (rgcn, distmult)")
    parser.add_argument("--bases", type=int, default=0, help="bases that relations are mixed of, 0: none (rgcn)")
    parser.add_argument("--nodes", type=int, default=70)
    parser.add_argument("--edges", type=int, default=350, help="number of edges, self-loops included")
    parser.add_argument("--self-loops", action="store_true", help="let some nodes have a self-loop in the input")
    parser.add_argument("--features", type=int, default=8)
    parser.add_argument("--classes", type=int, default=4)
    parser.add_argument("--decoder", choices=["dot", "mlp", "distmult"], help="learn links, with --classes columns of embeddings")
    parser.add_argument("--decoder-layers", type=int, default=1, help="hidden layers of the mlp decoder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="the file to write (.npz)")
    arguments = parser.parse_args()
    for name in ["layers", "hidden", "heads", "features", "classes"]:
        if getattr(arguments, name) < 1:
            parser.error(f"--{name}: expected at least 1")
    if arguments.nodes < 20:
        parser.error("--nodes: expected at least 20")
    if arguments.arch == "gat" and arguments.head_merge == "concat" and arguments.hidden % arguments.heads != 0:
        parser.error(f"--hidden: expected a multiple of --heads {arguments.heads}")
    return arguments


def random_edges(rng: np.random.Generator, nodes: int, edges: int, self_loops: bool) -> np.ndarray:
    """A directed graph, [2, edges], in random order and without duplicates. Some nodes have no in-edge."""
    with_in_edges = np.sort(rng.permutation(nodes)[int(SOURCE_ONLY_FRACTION * nodes) :])
    loops = rng.choice(with_in_edges, int(SELF_LOOP_FRACTION * len(with_in_edges)) if self_loops else 0, replace=False)
    # A pair is a target and one of the nodes - 1 other nodes.
    others = nodes - 1
    pairs = len(with_in_edges) * others
    if not len(loops) <= edges <= len(loops) + pairs:
        raise SystemExit(f"--edges: expected {len(loops)} to {len(loops) + pairs} with {nodes} nodes")
    drawn = rng.choice(pairs, edges - len(loops), replace=False)
    targets = with_in_edges[drawn // others]
    sources = (targets + 1 + drawn % others) % nodes
    both = np.stack([np.concatenate([sources, loops]), np.concatenate([targets, loops])])
    return both[:, rng.permutation(edges)].astype(np.int64)


class Model(nn.Module):
    """conv -> [LayerNorm] -> ReLU -> ... -> conv, named as in PyTorch Geometric's `BasicGNN` (its `MLP` for mlp)."""

    def __init__(self, arguments: argparse.Namespace):
        super().__init__()
        hidden = arguments.layers - 1
        widths = [arguments.features] + [arguments.hidden] * hidden
        widths.append(arguments.hidden if arguments.jk else arguments.classes)
        layers = nn.ModuleList(
            layer(arguments, inputs, outputs, last=index == hidden and not arguments.jk)
            for index, (inputs, outputs) in enumerate(zip(widths, widths[1:]))
        )
        self.reads_edges, self.reads_types = arguments.arch != "mlp", arguments.arch == "rgcn"
        self.add_module("convs" if self.reads_edges else "lins", layers)
        self.residual = arguments.residual
        mapped = [(index, ends) for index, ends in enumerate(zip(widths, widths[1:])) if ends[0] != ends[1]]
        maps = {str(index): nn.Linear(*ends, bias=False) for index, ends in mapped if arguments.residual}
        # GATConv has its own where it has one.
        self.residuals = nn.ModuleDict(maps if arguments.arch != "gat" else {})
        norm = nn.BatchNorm1d if arguments.norm == "batch" else nn.LayerNorm
        hidden += arguments.jk is not None
        self.norms = nn.ModuleList(norm(arguments.hidden) for _ in range(hidden if arguments.norm else 0))
        self.act = nn.PReLU() if arguments.act == "prelu" else nn.ReLU()
        self.jk = arguments.jk
        if self.jk:
            self.lin = nn.Linear(arguments.hidden * (arguments.layers if self.jk == "cat" else 1), arguments.classes)
        if arguments.decoder:
            self.decoder = Decoder(arguments)

    def forward(self, x: Tensor, edge_index: Tensor, edge_type: Tensor) -> Tensor:
        edges = (edge_index, edge_type) if self.reads_types else (edge_index,)
        layers = self.convs if self.reads_edges else self.lins
        xs = []
        for index, layer in enumerate(layers):
            z = layer(x, *edges) if self.reads_edges else layer(x)
            if str(index) in self.residuals:
                z = z + self.residuals[str(index)](x)
            elif self.residual and z.shape == x.shape:
                z = z + x
            x = z
            if index + 1 < len(layers) or self.jk:
                x = self.act(self.norms[index](x) if self.norms else x)
            xs.append(x)
        if self.jk == "cat":
            x = torch.cat(xs, dim=1)
        elif self.jk == "max":
            x = torch.stack(xs).max(dim=0)[0]
        return self.lin(x) if self.jk else x


def model_of(arguments: argparse.Namespace) -> nn.Module:
    """PyTorch Geometric's own model where it has the option, else one that is named alike."""
    basic = {"gcn": GCN, "sage": GraphSAGE}.get(arguments.arch)
    has_option = arguments.norm == "batch" or arguments.act != "relu" or arguments.jk
    if basic is None or not has_option or arguments.residual or arguments.decoder:
        return Model(arguments)
    norm = nn.LayerNorm(arguments.hidden) if arguments.norm == "layer" else arguments.norm and "batch_norm"
    widths = arguments.features, arguments.hidden, arguments.layers, arguments.classes
    return basic(*widths, act=arguments.act, norm=norm, jk=arguments.jk)


class Decoder(nn.Module):
    """Scores of pairs: the sum over the product of both embeddings, and of a vector a relation, or a perceptron on it."""

    def __init__(self, arguments: argparse.Namespace):
        super().__init__()
        hidden = arguments.decoder_layers if arguments.decoder == "mlp" else 0
        width = arguments.classes
        if arguments.decoder == "mlp":
            self.lins = nn.ModuleList([nn.Linear(width, width) for _ in range(hidden)] + [nn.Linear(width, 1)])
            self.acts = nn.ModuleList(nn.PReLU() for _ in range(hidden))
        if arguments.decoder == "distmult":
            self.relations = nn.Parameter(torch.randn(arguments.relations, width))

    def forward(self, sources: Tensor, targets: Tensor, types: Tensor) -> Tensor:
        x = sources * targets
        if hasattr(self, "relations"):
            x = x * self.relations[types]
        if not hasattr(self, "lins"):
            return x.sum(1)
        for lin, act in zip(self.lins, self.acts):
            x = act(lin(x))
        return self.lins[-1](x).squeeze(1)


def pairs(edge_index: np.ndarray, types: np.ndarray | None, nodes: int, round_: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sources, targets, relations and truth of a round's pairs: edges but loops, then one that is none for each. `types` are
    the relations of edges where the decoder reads them."""
    joins = edge_index[0] != edge_index[1]
    edges, of = edge_index[:, joins], np.zeros(joins.sum(), dtype=np.int64) if types is None else types[joins]
    u = np.uint64
    key = fold(root(0, PURPOSE_NEGATIVES), u(1 + round_))
    key = fold(fold(key, edges[0].astype(u)), edges[1].astype(u))
    if types is not None:
        key = fold(key, of.astype(u))
    drawn = below(fold(key, u(0)), nodes).astype(np.int64)
    keep = drawn != edges[0]
    sources, targets = np.concatenate([edges[0], edges[0][keep]]), np.concatenate([edges[1], drawn[keep]])
    truth = torch.zeros(len(sources), dtype=torch.double)
    truth[: edges.shape[1]] = 1
    return *map(torch.from_numpy, [sources, targets, np.concatenate([of, of[keep]])]), truth


def link_loss(model: nn.Module, rows: Tensor, sources: Tensor, targets: Tensor, types: Tensor, truth: Tensor) -> Tensor:
    weight = (truth == 0).sum() / (truth == 1).sum()
    scores = model.decoder(rows[sources], rows[targets], types)
    return binary_cross_entropy_with_logits(scores, truth, pos_weight=weight)


def layer(arguments: argparse.Namespace, inputs: int, outputs: int, last: bool) -> nn.Module:
    """One layer of the model; PyTorch Geometric's defaults unless said otherwise here."""
    residual = arguments.residual and inputs != outputs
    match arguments.arch:
        case "gcn":
            return GCNConv(inputs, outputs)
        case "sage":
            return SAGEConv(inputs, outputs, aggr="mean")
        case "sage-pool":
            return SAGEConv(inputs, outputs, aggr="max", project=True)
        case "gin":
            inner = nn.Sequential(nn.Linear(inputs, arguments.hidden), nn.ReLU(), nn.Linear(arguments.hidden, outputs))
            return GINConv(inner, train_eps=not arguments.no_eps)
        case "gat" if arguments.head_merge == "mean":
            return GATConv(inputs, outputs, heads=arguments.heads, concat=False, residual=residual)
        case "gat":
            heads = 1 if last else arguments.heads
            return GATConv(inputs, outputs // heads, heads=heads, residual=residual)
        case "rgcn":
            return RGCNConv(inputs, outputs, arguments.relations, num_bases=arguments.bases or None)
        case "mlp":
            return nn.Linear(inputs, outputs)
        case arch:
            raise ValueError(f"no layer for {arch}")


def name_of(parameter: str) -> str:
    """The name in the file: the matrices of residual connections are in a list of their own, GATConv's too, and PyTorch
    Geometric's BatchNorm is PyTorch's."""
    parameter = parameter.replace(".module.", ".")
    list_, _, rest = parameter.partition(".")
    index, _, part = rest.partition(".")
    return f"residuals.{index}.weight" if list_ == "convs" and part == "res.weight" else parameter


def move_constants(model: nn.Module) -> None:
    """Moves every parameter whose values are all the same (0 or 1) off that constant."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.min() == parameter.max():
                parameter += 0.2 * torch.randn_like(parameter)


def make_case(arguments: argparse.Namespace) -> dict[str, np.ndarray]:
    """The arrays of the file by name."""
    rng = np.random.default_rng(arguments.seed)
    edge_index = random_edges(rng, arguments.nodes, arguments.edges, arguments.self_loops)
    x = rng.standard_normal((arguments.nodes, arguments.features), dtype=np.float32)
    y = rng.integers(arguments.classes, size=arguments.nodes)
    train_mask = (rng.permutation(arguments.nodes) < TRAIN_FRACTION * arguments.nodes).astype(np.uint8)
    arrays = {"edge_index": edge_index, "x": x, "y": y, "train_mask": train_mask}
    edge_type = np.zeros(edge_index.shape[1], dtype=np.int64)
    if arguments.arch == "rgcn" or arguments.decoder == "distmult":
        edge_type = rng.integers(arguments.relations, size=edge_index.shape[1])
        if arguments.decoder == "distmult" and arguments.relations > 1:
            # Some edges are of two relations.
            twice = rng.random(edge_index.shape[1]) < PARALLEL_FRACTION
            edge_index = np.concatenate([edge_index, edge_index[:, twice]], axis=1)
            edge_type = np.concatenate([edge_type, (edge_type[twice] + 1) % arguments.relations])
            arrays["edge_index"] = edge_index
        arrays["edge_type"] = edge_type

    torch.manual_seed(arguments.seed)
    model = model_of(arguments)
    move_constants(model)
    running = {name: values for name, values in model.named_buffers() if values.is_floating_point()}
    for name, values in running.items():
        values += 0.2 * torch.randn_like(values) if name.endswith("mean") else torch.rand_like(values)
        arrays[f"param/{name_of(name)}"] = values.numpy().copy()
    for name, parameter in model.named_parameters():
        arrays[f"param/{name_of(name)}"] = parameter.detach().numpy().copy()

    model.double()
    inputs = torch.from_numpy(x).double(), torch.from_numpy(edge_index), torch.from_numpy(edge_type)
    train, labels = torch.from_numpy(train_mask).bool(), torch.from_numpy(y)
    running = {name: values for name, values in model.named_buffers() if name in running}
    values_of = lambda: {name: values for name, values in [*model.named_parameters(), *running.items()]}
    started = {name: values.detach().clone() for name, values in values_of().items()}
    if isinstance(model, BasicGNN):
        inputs = inputs[:2]

    def loss_of(logits: Tensor, round_: int) -> Tensor:
        if arguments.decoder:
            types = edge_type if arguments.decoder == "distmult" and arguments.relations > 1 else None
            return link_loss(model, logits, *pairs(edge_index, types, arguments.nodes, round_))
        return cross_entropy(logits[train], labels[train])

    model.eval()
    arrays["logits"] = model(*inputs).detach().numpy().astype(np.float32)
    model.train()
    loss_of(model(*inputs), 0).backward()
    for name, parameter in model.named_parameters():
        arrays[f"grad/{name_of(name)}"] = parameter.grad.numpy().astype(np.float32)
    if arguments.decoder:
        arrays["links"] = np.ones(1, dtype=np.uint8)
    if arguments.jk == "max":
        arrays["largest"] = np.ones(1, dtype=np.uint8)
    if arguments.residual:
        arrays["residual"] = np.ones(1, dtype=np.uint8)

    def steps(optimiser: torch.optim.Optimizer) -> list[float]:
        """The loss before each step, from the initial weights."""
        with torch.no_grad():
            for name, values in values_of().items():
                values.copy_(started[name])
        losses = []
        for step in range(STEPS):
            loss = loss_of(model(*inputs), 1 + step)
            optimiser.zero_grad()
            loss.backward()
            losses.append(loss.item())
            optimiser.step()
        return losses

    losses = steps(torch.optim.Adam(model.parameters(), lr=LEARNING_RATE))
    arrays["losses"] = np.array(losses, dtype=np.float32)
    steps(torch.optim.SGD(model.parameters(), lr=SGD_LEARNING_RATE))
    for name, values in values_of().items():
        arrays[f"after/{name_of(name)}"] = values.detach().numpy().astype(np.float32)
    return arrays


def main() -> None:
    arguments = parse_arguments()
    torch.set_num_threads(1)  # sums in one order: the same file everywhere
    arrays = make_case(arguments)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(arguments.out, **arrays)
    losses = arrays["losses"]
    print(f"{arguments.out}: {arguments.out.stat().st_size} bytes, loss {losses[0]:.4f} to {losses[-1]:.4f}")


if __name__ == "__main__":
    main()
