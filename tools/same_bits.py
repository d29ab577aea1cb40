#!/usr/bin/env python3
"""Runs two `laconic` binaries over a matrix of configurations and compares, bit by bit, what they leave.

    python3 tools/same_bits.py BEFORE AFTER --data DATA --jobs 2
    python3 tools/same_bits.py BEFORE AFTER --only resumed --keep kept
    python3 tools/same_bits.py BEFORE-MPI AFTER-MPI --mpi --only mpi

It is there to show that a re-ordering of the code changed no result. Every case is a line of `CASES`: each binary
trains it into a folder of its own, predicts every node (or scores the held-out edges) with the model and plans the
run, and then these must be equal:

    digest        of the parameters, from summary.json
    ledger        the bytes of ledger.csv
    summary       its objects bytes, metrics, bits, rounds, interrupted and parameters, one comparison each
    rounds        metrics.jsonl: losses, figures, learning rates and bytes of every round, but no seconds
    tensors       of model.safetensors: names, types, shapes and values, in whatever order the file has them
    predictions   the bytes of the Parquet file of `predict` with embeddings, which holds no time and no path; of links
                  those of the CSV file of scores
    plan          bytes by kind and link, frames and rows of `plan --json`, but no seconds and no memory
    lanes         of simulated trainers lanes.csv, what each did when by their clock

and the graphs that `data synth` and `data convert` make, and where a case asks for them the parts or the assignment
that `partition` makes. A resumed case lets worker 1 crash between two checkpoints and goes on with `resume`; what the
others had sent by then of the round that broke off is no two times alike, and no part of the comparison. No case
depends on time: ramps over seconds and measured costs are no two times alike, and neither are means that trainers on
threads take by seconds, or stale rows on threads. Without `--data`, a folder of graphs in the interchange format, cases
on real graphs are left out; without `--mpi`, for which both binaries need that feature and Open MPI has to be
installed, those under MPI.

A case sets only options that its members read. One that fails with both binaries is an error of the matrix.

Exit codes: 0 all equal, 1 something differs, 2 the command line or the matrix is wrong.
"""

import argparse
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

# What a case starts from; its keys come on top.
BASE = "[model]\nhidden = 16\n[train]\nepochs = 6\nthreads = 1\n"
# Under load a worker may wait long for its turn; nothing here is meant to take a minute.
TIMEOUT_S = 600
# The exit code of a run whose worker failed, as a rehearsed crash is.
WORKER_FAILED = 4
SUMMARY_FIELDS = ["bytes", "metrics", "bits", "rounds", "interrupted", "parameters"]
TIMES_OF_ROUNDS = ["seconds", "clock", "judged"]
PLAN_FIELDS = ["workers", "bytes", "payload", "frames", "by_kind", "by_link", "rows", "halo_rows", "is_bound", "budget"]

# Graphs that `data synth` generates, by name.
SYNTHESISED = {
    "sbm": "sbm --nodes 600 --mean-degree 10 --classes 4 --features 12 --seed 1",
    "wide": "sbm --nodes 500 --mean-degree 8 --classes 6 --features 48 --seed 2",
    "binary": "sbm --nodes 700 --mean-degree 8 --classes 2 --features 10 --feature-signal 1 --seed 3",
    # With this many rows a worker, kernels cut them into pieces, which threads share.
    "large": "sbm --nodes 6000 --mean-degree 6 --classes 5 --features 16 --seed 4",
    "hubs": "rmat --scale 10 --edge-factor 8 --features 16 --classes 4 --seed 5",
    "arcs": "rmat --scale 9 --edge-factor 6 --symmetric false --features 16 --classes 4 --seed 6",
}

# Graphs that `data convert` makes of tables that are written here, by name.
CONVERTED = {
    "relations": "relations.csv --nodes relations_nodes.csv --typed",
}

# All graphs that the program makes, and their commands.
MADE = {
    **{name: f"synth {how}" for name, how in SYNTHESISED.items()},
    **{name: f"convert {how}" for name, how in CONVERTED.items()},
}


class Case:
    """One configuration: a graph, the number of parts, and keys on top of `BASE`.

    crash: the round before which worker 1 crashes, to be resumed; 0: none
    mpi: whether it runs under MPI, one process a part
    cut: arguments of `partition --out`, whose folder of parts the run reads
    given: arguments of `partition --assignment`, whose assignment the run is given
    """

    def __init__(self, name, graph, parts, *keys, crash=0, mpi=False, cut=None, given=None):
        self.name, self.graph, self.parts = name, graph, parts
        self.keys = [key for text in keys for key in text.split()]
        self.crash, self.mpi, self.cut, self.given = crash, mpi, cut, given

    def has(self, key):
        """Whether this is one of its keys."""
        return key in self.keys

    def sends_time(self):
        """Whether a message holds seconds as text, whose length is no two times alike: a resumed run hands round its
        checkpoint, and that of ramps that read another clock than the epoch notes all clocks."""
        return self.crash > 0 and "clock=" in " ".join(self.keys)


def codec(name, options=""):
    """A codec with its options as TOML."""
    return "{" + ",".join(filter(None, [f'codec="{name}"', options])) + "}"


def forward(name, options=""):
    """The codec of features and activations."""
    return "messages.forward=" + codec(name, options)


def backward(name, options=""):
    """The codec of activation gradients."""
    return "messages.backward=" + codec(name, options)


def both(name, options=""):
    """One codec for both directions; two keys."""
    return forward(name, options) + " " + backward(name, options)


def evaluation(name, options=""):
    """The codec of evaluation passes."""
    return "messages.evaluation=" + codec(name, options)


def parameters(name, options=""):
    """The codec of gradients or averaged parameters."""
    return "messages.parameters=" + codec(name, options)


def sample(rate):
    """Boundary rows drawn anew in every round."""
    return 'messages.selection={kind="boundary_sample",rate=' + str(rate) + "}"


def skip(change, staleness):
    """Messages left out while their rows hardly move."""
    return "messages.skip={change=" + f"{change},staleness={staleness}" + "}"


def split(train, val, seed):
    """A split drawn at random."""
    return "data.split={train=" + f"{train},val={val},seed={seed}" + "}"


GCN, SAGE, GIN, GAT, MLP = (f"model.arch={arch}" for arch in ["gcn", "sage", "gin", "gat", "mlp"])
MAX = "model.arch=sage model.aggregator=max"
HEADS, MERGED = "model.arch=gat model.heads=4", "model.arch=gat model.heads=2 model.head_merge=mean"
DEEP, BARE = "model.layers=3", "model.norm=none"
UNCACHED, IN_TURN = "schedule.cache_inputs=false", "schedule.overlap=false"
PIPELINED = "schedule.kind=pipelined"
SMOOTHED = "schedule.kind=pipelined schedule.smooth_features=0.9 schedule.smooth_gradients=0.5"
LAZY, SCORES = "schedule.kind=lazy", "schedule.kind=lazy schedule.start=mlp"
RANDOM, ADAPTIVE = 'bits="random",period=2', 'bits="adaptive",period=2'
# All state of training: a rate that moves, a clipped gradient, a best round before the last.
STATE = "train.clip=0.5 train.lr_schedule=cosine train.warmup=2 train.lr=0.05 train.epochs=7"
MULTILEVEL = "partition.method=multilevel"
DRAWN = split(0.5, 0.2, 1)
BATCHES, CLUSTERS = "batch.size=64 train.epochs=3", "batch.size=64 batch.kind=clusters train.epochs=3"
LINKS = "task.kind=link_prediction task.eval_negatives=20"
LINK_BATCHES = LINKS + " batch.size=300 batch.fanouts=[4,3] train.epochs=2"
DOT, BY_MLP, DISTMULT = (f"task.decoder={decoder}" for decoder in ["dot", "mlp", "distmult"])
FILTERED, INCLUDED = "task.filter_negatives=true", "task.exclude_targets=false"
TYPED = "data.typed=true"
RGCN = TYPED + " model.arch=rgcn"
GIVEN_LINKS = "task.kind=link_prediction task.split=given task.eval_negatives=given"
# A trainer that other work on the machine holds up must be in each mean all the same.
PATIENT = " schedule.grace=600s"
AVERAGING, PSGD_PA, LLCG = (f"schedule.kind={kind}{PATIENT}" for kind in ["averaging", "psgd_pa", "llcg"])
GGS = "schedule.kind=ggs"
SIMULATED = "transport.kind=simulated"
FROZEN = AVERAGING + " schedule.halo=frozen"
# On threads rows are as old as the other trainers happened to be slow; simulated, that follows from their speeds.
STALE = f"{AVERAGING} schedule.halo=stale {SIMULATED}"
BY_STEPS = "schedule.interval=2steps schedule.limit=8steps"
UNEVEN = "transport.speeds=[4,1,2] transport.shape=wan-100mbit-40ms"
BF16 = "train.precision=bf16"

# Name, graph, parts, keys; a key's text may hold several keys with spaces between.
CASES = [
    # Architectures.
    Case("gcn", "sbm", 3, GCN),
    Case("gcn-3-layers", "sbm", 3, GCN, DEEP),
    Case("gcn-bare", "sbm", 2, GCN, BARE, "model.dropout=0"),
    Case("gcn-without-self-loops", "sbm", 3, GCN, "model.self_loops=false"),
    Case("gcn-1-layer", "sbm", 3, GCN, "model.layers=1"),
    Case("sage", "sbm", 3, SAGE),
    Case("sage-3-layers", "sbm", 5, SAGE, DEEP, BARE),
    Case("sage-self-loops", "sbm", 3, SAGE, "model.self_loops=true"),
    Case("sage-max", "sbm", 3, MAX),
    Case("sage-max-3-layers", "sbm", 2, MAX, DEEP, "model.self_loops=true"),
    Case("gin", "sbm", 3, GIN),
    Case("gin-fixed-epsilon", "sbm", 3, GIN, "model.learn_epsilon=false"),
    Case("gin-3-layers", "sbm", 2, GIN, DEEP, BARE),
    Case("gin-self-loops", "sbm", 3, GIN, "model.self_loops=true"),
    Case("gat", "sbm", 3, HEADS),
    Case("gat-1-head", "sbm", 3, GAT, "model.heads=1", DEEP),
    Case("gat-mean-heads", "sbm", 3, MERGED),
    Case("gat-mean-heads-3-layers", "sbm", 2, MERGED, DEEP, BARE),
    Case("gat-without-self-loops", "sbm", 3, HEADS, "model.self_loops=false"),
    Case("mlp", "sbm", 3, MLP),
    Case("mlp-3-layers", "sbm", 2, MLP, DEEP, BARE),
    # Parts, partitioners and threads.
    Case("1-part", "sbm", 1, SAGE),
    Case("1-part-gat-lazy", "sbm", 1, HEADS, LAZY),
    Case("5-parts", "sbm", 5, GCN),
    Case("random-seed", "sbm", 3, GCN, "partition.seed=7"),
    Case("multilevel", "sbm", 3, GCN, MULTILEVEL),
    Case("multilevel-volume", "sbm", 5, SAGE, MULTILEVEL, "partition.objective=volume partition.seed=2"),
    Case("multilevel-balanced", "hubs", 3, GIN, MULTILEVEL, "partition.balance_train=true partition.imbalance=0.1"),
    Case("given", "sbm", 3, SAGE, given="--method multilevel --seed 5"),
    Case("given-lazy", "hubs", 5, GCN, LAZY, given="--method random --seed 6"),
    Case("cut", "sbm", 3, GCN, cut="--method multilevel"),
    Case("cut-random-pipelined", "wide", 2, HEADS, SMOOTHED, cut="--method random --seed 3"),
    Case(
        "cut-prepared", "arcs", 3, SAGE,
        cut="--symmetrise --feature-preparation standardised --split train=0.4,val=0.3,seed=2",
    ),
    Case("cut-lazy", "hubs", 5, MAX, SCORES, cut="--method multilevel --objective volume --balance-train"),
    Case("2-threads-gcn", "large", 2, GCN, "train.threads=2 train.epochs=4"),
    Case("2-threads-sage-max", "large", 2, MAX, "train.threads=2 train.epochs=4"),
    Case("2-threads-gat", "large", 2, HEADS, "train.threads=2 train.epochs=4"),
    Case("2-threads-gin-pipelined", "large", 2, GIN, PIPELINED, "train.threads=2 train.epochs=4"),
    Case("2-threads-quantised", "large", 2, SAGE, both("quantised", "bits=4"), "train.threads=2 train.epochs=4"),
    Case("1-thread-large", "large", 2, SAGE, DEEP, "train.epochs=4"),
    # Data.
    Case("symmetrised", "arcs", 3, GCN, "data.symmetrise=true"),
    Case("directed", "arcs", 3, SAGE, DEEP),
    Case("directed-gat-lazy", "arcs", 3, HEADS, LAZY),
    Case("hubs-gat", "hubs", 3, HEADS),
    Case("row-normalised", "weighted", 3, GCN, "data.features=row-normalised data.symmetrise=true"),
    Case("standardised", "wide", 3, SAGE, "data.features=standardised"),
    Case("drawn-split", "wide", 3, GIN, split(0.6, 0.2, 3)),
    Case("drawn-split-per-class", "wide", 3, SAGE, split(20, 100, 4), "data.features=standardised"),
    Case("weighted-gcn", "weighted", 3, GCN),
    Case("weighted-sage", "weighted", 2, SAGE, LAZY),
    Case("weighted-gin", "weighted", 3, GIN, PIPELINED),
    Case("weighted-gat", "weighted", 3, HEADS, split(0.5, 0.25, 1)),
    Case("multi-label", "multi", 3, SAGE),
    Case("multi-label-gcn-lazy", "multi", 3, GCN, SCORES),
    Case("multi-label-auc", "multi", 2, HEADS, 'train.metrics=["roc_auc","macro_f1","micro_f1"]'),
    Case("multi-label-quantised", "multi", 3, GIN, both("quantised", "bits=2"), MULTILEVEL),
    # Training.
    Case("adamw", "sbm", 3, GCN, "train.optimiser=adamw train.weight_decay=0.01"),
    Case("sgd", "sbm", 3, SAGE, "train.optimiser=sgd train.lr=0.1"),
    Case("sgd-momentum", "sbm", 3, GIN, "train.optimiser=sgd train.momentum=0.5 train.lr=0.05 train.weight_decay=0"),
    Case("linear", "sbm", 3, GCN, "train.lr_schedule=linear train.warmup=3"),
    Case("cosine", "sbm", 3, SAGE, "train.lr_schedule=cosine train.optimiser=adamw"),
    Case("step", "sbm", 3, GCN, "train.lr_schedule=step train.lr_step=2 train.lr_factor=0.5"),
    Case("clip", "sbm", 3, SAGE, "train.clip=0.1 train.lr=0.05"),
    Case("state", "sbm", 3, HEADS, STATE),
    Case("patience", "sbm", 3, SAGE, "train.patience=2 train.lr=0.1 train.epochs=40"),
    Case("patience-lazy", "sbm", 3, GCN, LAZY, "train.patience=2 train.lr=0.1 train.epochs=20"),
    Case("macro-f1", "sbm", 3, GCN, 'train.metrics=["macro_f1","accuracy"]'),
    Case("roc-auc", "binary", 3, SAGE, 'train.metrics=["roc_auc_exact","roc_auc","accuracy","macro_f1"]'),
    Case("micro-f1-pipelined", "binary", 3, GIN, PIPELINED, 'train.metrics=["micro_f1","roc_auc"]'),
    Case("evaluated-at-the-end", "sbm", 3, GCN, "train.eval_every=0"),
    Case("evaluated-every-3", "sbm", 3, SAGE, "train.eval_every=3 train.epochs=8"),
    Case("evaluated-every-3-lazy", "sbm", 3, GCN, SCORES, "train.eval_every=3"),
    Case("seed", "sbm", 3, SAGE, "train.seed=11 model.dropout=0.5"),
    Case("checkpoints", "sbm", 3, SAGE, STATE, "out.checkpoint_every=2"),
    # Schedules.
    Case("uncached-gcn", "sbm", 3, GCN, UNCACHED),
    Case("uncached-sage-max", "sbm", 3, MAX, UNCACHED, DEEP),
    Case("uncached-gat", "sbm", 3, HEADS, UNCACHED),
    Case("uncached-gin", "sbm", 5, GIN, UNCACHED, IN_TURN),
    Case("in-turn", "sbm", 3, SAGE, IN_TURN, DEEP),
    Case("in-turn-gat", "sbm", 3, HEADS, IN_TURN),
    Case("pipelined-gcn", "sbm", 3, GCN, PIPELINED),
    Case("pipelined-sage-max", "sbm", 3, MAX, PIPELINED, DEEP),
    Case("pipelined-gat", "sbm", 2, HEADS, PIPELINED),
    Case("pipelined-in-turn", "sbm", 3, SAGE, PIPELINED, IN_TURN),
    Case("smoothed-gcn", "sbm", 3, GCN, SMOOTHED),
    Case("smoothed-gat", "sbm", 3, MERGED, SMOOTHED, DEEP),
    Case("smoothed-features", "sbm", 5, SAGE, PIPELINED, "schedule.smooth_features=0.95"),
    Case("smoothed-gradients", "sbm", 3, GIN, PIPELINED, "schedule.smooth_gradients=0.7"),
    Case("lazy-gcn", "sbm", 3, GCN, LAZY),
    Case("lazy-sage-3-layers", "sbm", 3, SAGE, DEEP, LAZY),
    Case("lazy-gat", "sbm", 3, HEADS, LAZY),
    Case("lazy-scores-gcn", "sbm", 3, GCN, SCORES),
    Case("lazy-scores-sage-max", "sbm", 2, MAX, SCORES),
    Case("lazy-scores-gin-3-layers", "sbm", 3, GIN, DEEP, SCORES),
    Case("lazy-scores-gat", "sbm", 5, MERGED, SCORES),
    Case("lazy-rounds", "sbm", 3, SAGE, DEEP, LAZY, "schedule.rounds=[3,5] schedule.lr=[0.05,0.02]"),
    Case("lazy-scores-rounds", "sbm", 3, GCN, SCORES, "schedule.rounds=[4,2,3] schedule.lr=[0.1]"),
    # Codecs.
    Case("exact-by-name", "sbm", 3, GCN, both("exact")),
    Case("half", "sbm", 3, GCN, both("half"), evaluation("half")),
    Case("half-lazy", "sbm", 3, SAGE, LAZY, forward("half")),
    Case("half-pipelined", "sbm", 3, HEADS, PIPELINED, both("half")),
    Case("1-and-2-bits", "wide", 3, GCN, forward("quantised", "bits=1"), backward("quantised", "bits=2")),
    Case("4-and-8-bits", "wide", 3, MAX, DEEP, forward("quantised", "bits=4"), backward("quantised", "bits=8")),
    Case("16-and-32-bits", "wide", 3, GIN, forward("quantised", "bits=16"), backward("quantised", "bits=32")),
    Case("2-bits-uncached", "wide", 5, SAGE, UNCACHED, both("quantised", "bits=2")),
    Case("4-bits-pipelined", "wide", 3, GCN, SMOOTHED, both("quantised", "bits=4")),
    Case("8-bits-lazy", "wide", 3, HEADS, LAZY, forward("quantised", "bits=8")),
    Case("1-bit-lazy-scores", "wide", 3, GCN, SCORES, forward("quantised", "bits=1")),
    Case("4-bits-gat", "wide", 3, HEADS, both("quantised", "bits=4")),
    Case("random-bits", "wide", 3, SAGE, both("quantised", RANDOM)),
    Case("random-bits-default-period", "wide", 3, GCN, both("quantised", 'bits="random"'), "train.epochs=12"),
    Case("random-bits-pipelined", "wide", 2, GIN, PIPELINED, both("quantised", RANDOM)),
    Case("random-bits-lazy", "wide", 3, SAGE, LAZY, forward("quantised", RANDOM)),
    Case("adaptive", "wide", 3, SAGE, both("quantised", ADAPTIVE)),
    Case("adaptive-lambda", "wide", 3, GCN, DEEP, both("quantised", ADAPTIVE + ",lambda=0.9")),
    Case("adaptive-one-way", "wide", 5, HEADS, backward("quantised", ADAPTIVE + ",lambda=0.1")),
    Case("adaptive-uncached", "wide", 3, GIN, UNCACHED, both("quantised", 'bits="adaptive",period=3')),
    Case("adaptive-pipelined", "wide", 3, SAGE, SMOOTHED, both("quantised", ADAPTIVE)),
    Case("adaptive-lazy", "wide", 3, GCN, LAZY, forward("quantised", ADAPTIVE)),
    Case("masked", "wide", 3, GCN, both("masked", "ratio=4")),
    Case("masked-gat", "wide", 3, HEADS, both("masked", "ratio=4,whole_last=false")),
    Case("masked-sage-max", "wide", 3, MAX, DEEP, both("masked", "ratio=3,whole_last=false")),
    Case("masked-rescaled", "wide", 3, GIN, both("masked", "ratio=3,rescale=true,whole_last=false")),
    Case("masked-prefix", "wide", 3, SAGE, both("masked", 'ratio=2,columns="prefix"')),
    Case(
        "masked-prefix-half", "wide", 3, GCN,
        forward("masked", 'ratio=2.5,columns="prefix",inner="half",whole_last=false'),
    ),
    Case("masked-exact", "wide", 2, SAGE, UNCACHED, both("masked", 'ratio=2,inner="exact"')),
    Case(
        "masked-quantised", "wide", 3, SAGE,
        forward("masked", 'ratio=2,inner="quantised",bits=2,whole_last=false,reveal=false'),
    ),
    Case("masked-random-bits", "wide", 3, GIN, forward("masked", 'ratio=2,inner="quantised",bits="random",period=1')),
    Case("masked-adaptive", "wide", 3, GCN, sample(0.5), forward("masked", f'ratio=2,inner="quantised",{ADAPTIVE}')),
    Case("masked-unrevealed", "wide", 3, SAGE, forward("masked", "ratio=4,reveal=false")),
    Case("masked-pipelined", "wide", 3, SAGE, PIPELINED, both("masked", "ratio=4,whole_last=false")),
    Case("masked-lazy", "wide", 3, GCN, LAZY, forward("masked", "ratio=4")),
    Case(
        "by-layer", "wide", 3, GCN,
        'messages.layers.0.forward={codec="quantised",bits=2} messages.layers.1.forward=half',
    ),
    Case(
        "by-layer-masked", "wide", 3, SAGE, DEEP, "messages.backward=half messages.layers.2.forward=exact",
        'messages.layers.1.backward={codec="masked",ratio=4,whole_last=false}',
    ),
    # Ramps.
    Case("ramp-fixed", "wide", 3, GCN, both("quantised", 'bits={law="fixed",from=4}')),
    Case("ramp-bits", "wide", 3, SAGE, forward("quantised", "bits={from=1,to=8}"), "messages.backward=half"),
    Case("ramp-bits-slope", "wide", 3, GIN, UNCACHED, both("quantised", "bits={from=2,to=16,slope=2}")),
    Case("ramp-exponential", "wide", 3, GCN, both("masked", 'ratio={law="exponential",from=8}')),
    Case("ramp-linear-mask", "wide", 3, HEADS, both("masked", "ratio={from=6,slope=1.5}")),
    Case("ramp-columns", "wide", 3, SAGE, forward("masked", 'ratio={law="columns",from=6},reveal=false')),
    Case("ramp-columns-end", "wide", 3, GCN, both("masked", 'ratio={law="columns",from=8,to=2},whole_last=false')),
    Case(
        "ramp-staircase", "wide", 3, SAGE,
        forward("quantised", 'bits={law="staircase",from=2,to=32,steps=3},reveal=false'),
    ),
    Case(
        "ramp-staircase-mask", "wide", 3, GIN, both("masked", 'ratio={law="staircase",from=12,steps=4}'),
        "train.epochs=10",
    ),
    Case(
        "ramp-columns-and-bits", "wide", 3, SAGE,
        forward("masked", 'ratio={from=4},inner="quantised",bits={from=2,to=8}'),
    ),
    Case(
        "ramp-lazy", "wide", 3, GCN, LAZY, forward("quantised", "bits={from=2,to=8,slope=2}"),
        "messages.evaluation=half",
    ),
    Case("ramp-lazy-mask", "wide", 3, SAGE, LAZY, forward("masked", "ratio={from=6,slope=2}")),
    Case("ramp-pipelined", "wide", 3, SAGE, PIPELINED, both("quantised", 'bits={law="exponential",from=2,to=16}')),
    Case("ramp-bytes", "wide", 3, GCN, both("masked", 'ratio={clock="bytes",from=8,limit=600000},whole_last=false')),
    Case("ramp-bytes-bits", "wide", 3, SAGE, forward("quantised", 'bits={clock="bytes",from=1,to=16,limit=400000}')),
    Case(
        "ramp-bytes-lazy", "wide", 3, GIN, LAZY, forward("quantised", 'bits={clock="bytes",from=1,to=8,limit=200000}'),
    ),
    Case("ramp-gradient", "wide", 3, SAGE, backward("masked", 'ratio={clock="gradient_norm",from=4},whole_last=false')),
    Case(
        "ramp-gradient-bits", "wide", 3, GCN,
        both("quantised", 'bits={clock="gradient_norm",law="exponential",from=2,to=32}'),
    ),
    # Which rows, and which messages.
    Case("all-by-name", "sbm", 3, SAGE, "messages.selection=all"),
    Case("none", "sbm", 3, GCN, "messages.selection=none"),
    Case("none-even-to-evaluate", "sbm", 3, SAGE, "messages.selection=none messages.evaluation=none"),
    Case("none-gat", "sbm", 3, HEADS, "messages.selection=none"),
    Case("sample", "sbm", 3, GCN, "messages.selection=boundary_sample"),
    Case("sample-0", "sbm", 3, SAGE, sample(0)),
    Case("sample-0.3-gat", "sbm", 3, HEADS, sample(0.3)),
    Case("sample-0.3-sage-max", "sbm", 3, MAX, DEEP, sample(0.3)),
    Case("sample-0.5-pipelined", "sbm", 3, GIN, PIPELINED, sample(0.5)),
    Case("sample-1", "sbm", 3, GCN, sample(1)),
    Case("sample-uncached", "sbm", 3, SAGE, UNCACHED, sample(0.2)),
    Case("sample-lazy", "sbm", 3, GCN, LAZY, sample(0.4)),
    Case(
        "sample-quantised", "wide", 3, SAGE, sample(0.2), forward("quantised", "bits={from=1,to=4}"),
        "messages.evaluation=none",
    ),
    Case("skip", "sbm", 3, SAGE, skip(0.3, 3), "train.epochs=10"),
    Case("skip-uncached-gat", "sbm", 3, HEADS, UNCACHED, skip(0.9, 4), "train.epochs=10"),
    Case("skip-quantised", "wide", 3, GCN, skip(0.5, 2), both("quantised", "bits=4"), "train.epochs=10"),
    Case("skip-adaptive", "wide", 3, SAGE, skip(0.2, 4), both("quantised", ADAPTIVE), "train.epochs=10"),
    Case("skip-averaged", "sbm", 3, GIN, skip(0.9, 3), "train.sync_every=2 train.epochs=10"),
    Case("skip-pipelined", "sbm", 3, SAGE, DEEP, PIPELINED, skip(0.3, 2), "train.epochs=10"),
    # Evaluation, parameters, averaging.
    Case("evaluation-none", "sbm", 3, GCN, "messages.evaluation=none"),
    Case("evaluation-none-lazy", "sbm", 3, SAGE, LAZY, "messages.evaluation=none"),
    Case("evaluation-half", "sbm", 3, HEADS, evaluation("half")),
    Case("evaluation-8-bits", "sbm", 3, MAX, evaluation("quantised", "bits=8"), parameters("half")),
    Case("evaluation-2-bits", "sbm", 5, GIN, evaluation("quantised", "bits=2"), UNCACHED),
    Case("parameters-half", "sbm", 3, GCN, parameters("half")),
    Case("parameters-half-forgotten", "sbm", 3, GCN, parameters("half"), "messages.error_feedback=false"),
    Case("parameters-4-bits", "sbm", 3, SAGE, parameters("quantised", "bits=4")),
    Case(
        "parameters-2-bits-forgotten", "sbm", 5, GIN, parameters("quantised", "bits=2"),
        "messages.error_feedback=false",
    ),
    Case("parameters-8-bits-lazy", "sbm", 3, HEADS, SCORES, parameters("quantised", "bits=8")),
    Case("averaged-2", "sbm", 3, GCN, "train.sync_every=2"),
    Case("averaged-3", "sbm", 3, SAGE, "train.sync_every=3 train.epochs=8"),
    Case("averaged-5-lazy", "sbm", 3, GIN, LAZY, "train.sync_every=5 train.epochs=10"),
    Case("averaged-3-pipelined", "sbm", 3, GCN, PIPELINED, "train.sync_every=3 train.optimiser=sgd train.momentum=0.8"),
    Case("averaged-3-8-bits", "sbm", 5, SAGE, "train.sync_every=3", parameters("quantised", "bits=8"), both("half")),
    Case("averaged-2-masked", "wide", 3, GCN, "train.sync_every=2", forward("masked", "ratio={from=4}")),
    Case("averaged-2-patience", "sbm", 2, HEADS, "train.sync_every=2 train.patience=3 train.lr=0.1 train.epochs=30"),
    # Budgets: from masks over few bits to nearly everything exact.
    Case("budget-least", "wide", 3, SAGE, "messages.budget=210kB train.epochs=10 train.eval_every=5"),
    Case("budget-middle", "wide", 3, SAGE, "messages.budget=350kB train.epochs=10 train.eval_every=5"),
    Case("budget-most", "wide", 3, SAGE, "messages.budget=900kB train.epochs=10 train.eval_every=5"),
    Case(
        "budget-gat-pipelined", "wide", 3, HEADS, PIPELINED,
        "messages.budget=220kB train.epochs=10 train.eval_every=5",
    ),
    Case("budget-lazy", "wide", 3, GCN, LAZY, "messages.budget=120KiB train.epochs=10 train.eval_every=5"),
    Case(
        "budget-named-forward", "wide", 3, GCN,
        "messages.forward=half messages.budget=340kB train.epochs=10 train.eval_every=5",
    ),
    Case(
        "budget-as-limit", "wide", 3, GCN, "messages.budget=900kB train.epochs=10 train.eval_every=5",
        forward("quantised", 'bits={clock="bytes",from=2,to=8}'),
    ),
    # Links.
    Case("shaped", "sbm", 3, SAGE, "transport.shape=wan-20mbit-80ms"),
    Case("shaped-pipelined", "sbm", 3, GCN, PIPELINED, "transport.shape=100mbit,40ms"),
    Case("shaped-adaptive", "wide", 3, SAGE, both("quantised", ADAPTIVE), "transport.shape=1mbit,1ms"),
    Case("shaped-lazy", "sbm", 5, HEADS, SCORES, "transport.shape=lan-1gbit-1ms"),
    # Stopped and gone on with.
    Case("resumed", "sbm", 3, SAGE, STATE, crash=4),
    Case("resumed-gat-uncached", "sbm", 3, HEADS, UNCACHED, STATE, crash=6),
    Case("resumed-patience", "sbm", 3, GCN, "train.patience=3 train.lr=0.1 train.epochs=40", crash=5),
    Case("resumed-pipelined", "sbm", 3, GCN, PIPELINED, STATE, crash=5),
    Case("resumed-smoothed", "sbm", 3, SAGE, DEEP, SMOOTHED, STATE, crash=6),
    Case("resumed-lazy-first-stage", "sbm", 3, GCN, LAZY, STATE, crash=4),
    Case("resumed-lazy-second-stage", "sbm", 3, GCN, LAZY, STATE, crash=11),
    Case("resumed-lazy-scores", "sbm", 3, SAGE, SCORES, "train.epochs=5 train.optimiser=sgd", crash=13),
    Case("resumed-quantised", "wide", 3, SAGE, both("quantised", "bits={from=1,to=8}"), STATE, crash=6),
    Case("resumed-random-bits", "wide", 3, GIN, both("quantised", RANDOM), STATE, crash=6),
    Case("resumed-masked", "wide", 3, GCN, both("masked", "ratio={from=6}"), STATE, crash=5),
    Case("resumed-adaptive", "wide", 3, SAGE, both("quantised", ADAPTIVE), STATE, crash=6),
    Case("resumed-adaptive-lazy", "wide", 3, GCN, LAZY, forward("quantised", ADAPTIVE), STATE, crash=11),
    Case("resumed-sample", "sbm", 3, SAGE, sample(0.3), STATE, crash=5),
    Case("resumed-skip", "sbm", 3, HEADS, skip(0.8, 3), STATE, crash=6),
    Case("resumed-skip-quantised", "wide", 3, SAGE, skip(0.6, 3), both("quantised", "bits=4"), STATE, crash=5),
    Case("resumed-error-feedback", "sbm", 3, SAGE, parameters("quantised", "bits=2"), STATE, crash=5),
    Case("resumed-averaged", "sbm", 3, GCN, STATE, "train.sync_every=2", crash=6),
    Case(
        "resumed-averaged-feedback", "sbm", 3, GIN, STATE, "train.sync_every=3", parameters("quantised", "bits=4"),
        crash=7,
    ),
    Case(
        "resumed-ramp-bytes", "wide", 3, SAGE, forward("quantised", 'bits={clock="bytes",from=1,to=16,limit=400000}'),
        STATE, crash=6,
    ),
    Case(
        "resumed-ramp-gradient", "wide", 3, GCN,
        backward("masked", 'ratio={clock="gradient_norm",from=4},whole_last=false'), STATE, crash=6,
    ),
    # What is sent twice is part of the budget, too.
    Case("resumed-budget", "wide", 3, GIN, "messages.budget=1MB train.epochs=8 train.eval_every=4", crash=4),
    Case("resumed-multi-label", "multi", 3, SAGE, STATE, crash=5),
    Case("resumed-cut", "sbm", 3, SAGE, STATE, crash=5, cut="--method multilevel"),
    # Mini-batches.
    Case("batches", "sbm", 3, SAGE, BATCHES),
    Case("batches-gcn-fanouts", "sbm", 3, GCN, BATCHES, "batch.fanouts=[5,3]"),
    Case("batches-gat", "sbm", 3, HEADS, BATCHES, "batch.fanouts=[4,4]"),
    Case("batches-gin-all-neighbours", "sbm", 2, GIN, BATCHES, "batch.fanouts=[-1,-1]"),
    Case("batches-sage-max-3-layers", "sbm", 5, MAX, DEEP, BATCHES, "batch.fanouts=[3,-1,2]"),
    Case("batches-1-layer", "sbm", 3, GCN, "model.layers=1", BATCHES, "batch.fanouts=[3]"),
    Case("batches-1-part", "sbm", 1, SAGE, BATCHES, "batch.fanouts=[3,2]"),
    Case("batches-mlp", "sbm", 3, MLP, BATCHES),
    Case("batches-no-cache", "wide", 3, SAGE, BATCHES, "batch.fanouts=[4,2] batch.cache=0"),
    Case("batches-small-cache", "wide", 3, GCN, BATCHES, "batch.fanouts=[4,2] batch.cache=4kB train.epochs=5"),
    Case("batches-redrawn-every-3", "wide", 3, SAGE, BATCHES, "batch.fanouts=[3,2] batch.redraw=3 batch.cache=8kB"),
    Case("batches-none-ahead", "sbm", 3, GIN, BATCHES, "batch.fanouts=[4,4] batch.ahead=0"),
    Case("batches-5-ahead", "sbm", 5, SAGE, BATCHES, "batch.fanouts=[4,4] batch.ahead=5 batch.redraw=2"),
    Case("batches-in-turn", "sbm", 3, SAGE, BATCHES, IN_TURN, "batch.fanouts=[5,5]"),
    Case("batches-2-threads", "large", 2, SAGE, "batch.size=1000 batch.fanouts=[5,3] train.threads=2 train.epochs=2"),
    Case("batches-own-nodes", "sbm", 3, GCN, BATCHES, "messages.selection=none batch.fanouts=[5,5]"),
    Case("batches-half", "wide", 3, SAGE, BATCHES, "batch.fanouts=[4,2]", forward("half"), parameters("half")),
    Case("batches-4-bits", "wide", 3, GCN, BATCHES, "batch.cache=0", forward("quantised", "bits=4")),
    Case("batches-state", "sbm", 3, HEADS, STATE, "batch.size=64 batch.fanouts=[3,3]"),
    Case("batches-averaged", "sbm", 3, SAGE, BATCHES, "train.sync_every=3", parameters("quantised", "bits=8")),
    Case("batches-evaluated-every-2", "sbm", 3, GCN, "batch.size=100 train.epochs=4 train.eval_every=2"),
    Case("batches-lazy", "sbm", 3, SAGE, LAZY, BATCHES, "batch.fanouts=[4,4]"),
    Case("batches-lazy-scores", "wide", 3, GCN, SCORES, BATCHES, "batch.fanouts=[4,4] batch.redraw=2"),
    Case("batches-multi-label", "multi", 3, SAGE, BATCHES, "batch.fanouts=[4,4]"),
    Case("batches-weighted", "weighted", 3, GCN, BATCHES, "batch.fanouts=[4,4]"),
    Case("batches-directed", "arcs", 3, SAGE, BATCHES, "batch.fanouts=[3,3] model.residual=true"),
    Case("batches-inductive", "sbm", 3, GIN, BATCHES, "batch.fanouts=[4,4] data.inductive=true"),
    Case("batches-ordered", "hubs", 3, SAGE, BATCHES, "batch.fanouts=[4,4] partition.order=locality"),
    Case("batches-cut-from-file", "wide", 3, SAGE, BATCHES, "data.features_in=file", cut="--method multilevel"),
    Case("batches-clusters", "sbm", 3, GCN, CLUSTERS),
    Case("batches-clusters-6", "sbm", 3, SAGE, CLUSTERS, "batch.clusters=6", MULTILEVEL),
    Case("batches-clusters-gat-lazy", "sbm", 2, HEADS, LAZY, CLUSTERS),
    Case("batches-resumed", "sbm", 3, SAGE, STATE, "batch.size=64 batch.fanouts=[3,3] train.epochs=3", crash=8),
    Case(
        "batches-resumed-redrawn", "wide", 3, GCN, STATE, BATCHES,
        "batch.fanouts=[3,3] batch.redraw=3 batch.cache=8kB", crash=6,
    ),
    Case("batches-resumed-clusters", "sbm", 3, GIN, STATE, CLUSTERS, crash=7),
    Case("ggs", "sbm", 3, SAGE, GGS),
    Case("ggs-uncached", "sbm", 3, GCN, GGS, UNCACHED),
    Case("ggs-batches", "sbm", 3, HEADS, GGS, BATCHES, "batch.fanouts=[4,4]"),
    Case("ggs-resumed", "sbm", 3, SAGE, GGS, STATE, BATCHES, crash=5),
    # Link prediction.
    Case("links", "sbm", 3, SAGE, LINKS),
    Case("links-dot-gcn", "sbm", 3, GCN, LINKS, DOT, 'train.metrics=["mrr","hits@10","hits@50"]'),
    Case("links-mlp", "sbm", 3, GIN, LINKS, BY_MLP),
    Case("links-mlp-2-layers", "sbm", 2, HEADS, LINKS, BY_MLP, "task.decoder_layers=2"),
    Case("links-distmult", "sbm", 3, SAGE, DEEP, LINKS, DISTMULT),
    Case("links-areas", "sbm", 3, SAGE, LINKS, 'train.metrics=["roc_auc_exact","roc_auc"]'),
    Case("links-recall", "hubs", 3, GCN, LINKS, 'train.metrics=["recall@10","ndcg@10","mrr"] train.epochs=3'),
    Case("links-filtered", "sbm", 3, SAGE, LINKS, FILTERED, "task.negatives_per_edge=3"),
    Case("links-local-pairs", "sbm", 3, GCN, LINKS, "task.negatives=local"),
    Case("links-local-filtered", "sbm", 5, GIN, LINKS, BY_MLP, FILTERED, "task.negatives=local"),
    Case("links-5-eval-pairs", "wide", 3, SAGE, LINKS, "task.eval_negatives=5 train.eval_every=2"),
    Case("links-drawn-otherwise", "wide", 3, HEADS, LINKS, "task.split={val=0.2,test=0.2,seed=3}"),
    Case("links-directed", "arcs", 3, SAGE, LINKS, BY_MLP, FILTERED),
    Case("links-weighted", "weighted", 2, GCN, LINKS),
    Case("links-multilevel", "sbm", 3, SAGE, LINKS, MULTILEVEL, "partition.balance_edges=true"),
    Case("links-none", "sbm", 3, GCN, LINKS, "messages.selection=none task.negatives=local"),
    Case("links-quantised", "wide", 3, SAGE, LINKS, both("quantised", "bits=4"), evaluation("half")),
    Case("links-uncached-in-turn", "sbm", 3, GCN, LINKS, UNCACHED, IN_TURN),
    Case("links-lazy", "sbm", 3, SAGE, LINKS, LAZY, "train.epochs=3"),
    Case("links-averaged", "sbm", 3, GIN, LINKS, BY_MLP, "train.sync_every=2"),
    Case("links-given-pool", "pool", 3, SAGE, GIVEN_LINKS, 'train.metrics=["mrr","hits@20","roc_auc"]'),
    Case("links-given-split", "pool", 2, GCN, LINKS, BY_MLP, "task.split=given"),
    Case("links-batches", "sbm", 3, SAGE, LINK_BATCHES),
    Case("links-batches-mlp", "sbm", 3, GCN, LINK_BATCHES, BY_MLP, INCLUDED, "batch.cache=2kB"),
    Case("links-batches-gat-local", "sbm", 2, HEADS, LINK_BATCHES, "task.negatives=local task.negatives_per_edge=2"),
    Case("links-batches-filtered", "wide", 5, GIN, LINK_BATCHES, FILTERED, "batch.redraw=2 batch.ahead=1"),
    Case("links-resumed", "sbm", 3, SAGE, LINKS, BY_MLP, STATE, crash=4),
    Case("links-batches-resumed", "sbm", 3, GCN, STATE, LINK_BATCHES, FILTERED, crash=9),
    # Edges of several relations.
    Case("relations", "relations", 3, RGCN),
    Case("relations-bases", "relations", 3, RGCN, DEEP, "model.bases=2"),
    Case("relations-symmetrised", "relations", 2, RGCN, "data.symmetrise=true"),
    Case("relations-uncached", "relations", 3, RGCN, UNCACHED, IN_TURN, MULTILEVEL),
    Case("relations-lazy", "relations", 3, RGCN, LAZY),
    Case("relations-lazy-scores", "relations", 5, RGCN, SCORES, "model.bases=3"),
    Case("relations-pipelined", "relations", 3, RGCN, SMOOTHED),
    Case("relations-quantised", "relations", 3, RGCN, both("quantised", "bits=4"), "train.threads=2"),
    Case("relations-sampled", "relations", 3, RGCN, "model.bases=2", sample(0.4)),
    Case("relations-batches", "relations", 3, RGCN, BATCHES, "batch.fanouts=[4,4]"),
    Case("relations-batches-clusters", "relations", 3, RGCN, "model.bases=2", CLUSTERS),
    Case("relations-resumed", "relations", 3, RGCN, "model.bases=2", STATE, crash=5),
    Case("relations-cut", "relations", 3, "model.arch=rgcn", cut="--typed --method multilevel"),
    Case("relations-unread", "relations", 3, SAGE),
    Case("relations-as-edges-gat", "relations", 3, HEADS, TYPED),
    Case("relations-links-distmult", "relations", 3, RGCN, LINKS, DISTMULT),
    Case("relations-links-filtered", "relations", 3, RGCN, "model.bases=2", LINKS, DISTMULT, FILTERED),
    Case("relations-links-dot", "relations", 2, RGCN, LINKS, DOT, FILTERED),
    Case("relations-links-sage", "relations", 3, SAGE, TYPED, LINKS, DISTMULT, "data.symmetrise=true"),
    Case("relations-links-lazy", "relations", 3, RGCN, LAZY, LINKS, DISTMULT, "train.epochs=3"),
    Case("relations-links-batches", "relations", 3, RGCN, LINK_BATCHES, DISTMULT, FILTERED),
    Case("relations-links-batches-included", "relations", 3, SAGE, TYPED, LINK_BATCHES, DISTMULT, INCLUDED),
    Case("relations-links-resumed", "relations", 3, RGCN, LINKS, DISTMULT, STATE, crash=5),
    Case("relations-links-given", "held", 3, RGCN, GIVEN_LINKS, DISTMULT),
    Case("relations-links-given-types", "held", 3, RGCN, GIVEN_LINKS, DISTMULT, FILTERED, "model.input_width=8"),
    # Independent trainers, whose models are averaged.
    Case("trainers", "sbm", 3, SAGE, AVERAGING),
    Case("trainers-simulated", "sbm", 3, SAGE, AVERAGING, SIMULATED),
    Case("trainers-by-steps", "sbm", 3, GCN, AVERAGING, BY_STEPS),
    Case("trainers-by-epochs", "sbm", 3, GIN, AVERAGING, "schedule.interval=2epochs schedule.limit=6epochs"),
    Case("trainers-by-rows", "sbm", 5, HEADS, AVERAGING, "schedule.mean=rows", MULTILEVEL),
    Case("trainers-batches", "sbm", 3, SAGE, AVERAGING, "batch.size=20 batch.fanouts=[3,3] train.epochs=3"),
    Case("trainers-batches-by-steps", "sbm", 3, GCN, AVERAGING, BY_STEPS, "batch.size=20 batch.redraw=2"),
    Case("trainers-clusters", "sbm", 2, GIN, AVERAGING, "batch.size=20 batch.kind=clusters train.epochs=3"),
    Case("trainers-half", "sbm", 3, GCN, AVERAGING, parameters("half")),
    Case("trainers-4-bits", "sbm", 3, SAGE, AVERAGING, BY_STEPS, parameters("quantised", "bits=4")),
    Case(
        "trainers-2-bits-forgotten", "sbm", 3, GIN, AVERAGING, parameters("quantised", "bits=2"),
        "messages.error_feedback=false",
    ),
    Case("trainers-aggregator-0", "sbm", 3, SAGE, AVERAGING, "schedule.aggregator=0"),
    Case("trainers-dropped", "sbm", 3, GCN, AVERAGING, "averaging.drop=[1]"),
    Case("trainers-multi-label", "multi", 3, SAGE, AVERAGING),
    Case("trainers-state", "sbm", 3, HEADS, AVERAGING, STATE),
    Case("trainers-patience", "sbm", 3, GCN, AVERAGING, SIMULATED, "train.patience=2 train.lr=0.1 train.epochs=40"),
    Case("trainers-super-node", "sbm", 3, SAGE, AVERAGING, "partition.method=super_node partition.clusters=30"),
    Case("trainers-lazy-scores", "sbm", 3, SAGE, FROZEN, "schedule.start=mlp schedule.hand_on=scores train.epochs=3"),
    Case("trainers-hidden", "sbm", 3, GCN, FROZEN, "schedule.start=mlp schedule.hand_on=hidden train.epochs=3"),
    Case("trainers-frozen", "sbm", 3, SAGE, FROZEN),
    Case("trainers-frozen-simulated", "sbm", 3, GCN, FROZEN, SIMULATED, UNEVEN, "schedule.mean=steps"),
    Case("trainers-frozen-rounds", "sbm", 3, GIN, FROZEN, "schedule.rounds=[3,4] schedule.lr=[0.05,0.02]"),
    Case("trainers-frozen-4-bits", "wide", 3, SAGE, FROZEN, forward("quantised", "bits=4")),
    Case("trainers-frozen-batches", "sbm", 3, HEADS, FROZEN, "batch.size=20 batch.fanouts=[3,3] train.epochs=2"),
    Case("trainers-stale", "sbm", 3, SAGE, STALE),
    Case("trainers-stale-gcn-3-layers", "sbm", 3, GCN, DEEP, STALE, UNEVEN, "schedule.refresh=2"),
    Case("trainers-stale-products", "sbm", 3, SAGE, STALE, BY_STEPS, "schedule.late=products"),
    Case("trainers-stale-gat", "sbm", 2, HEADS, STALE, "schedule.mean=rows"),
    Case("trainers-stale-8-bits", "wide", 3, GIN, STALE, forward("quantised", "bits=8")),
    Case("trainers-stale-masked", "wide", 3, GCN, STALE, forward("masked", "ratio=3,reveal=false,whole_last=false")),
    Case("trainers-stale-batches", "sbm", 3, SAGE, STALE, "batch.size=20 batch.fanouts=[3,3] train.epochs=3"),
    Case("trainers-uneven", "sbm", 3, SAGE, AVERAGING, SIMULATED, UNEVEN, BY_STEPS, "schedule.mean=steps"),
    Case(
        "trainers-impatient", "sbm", 3, GCN, AVERAGING, SIMULATED, UNEVEN, BY_STEPS,
        "schedule.grace=1s schedule.quorum=1",
    ),
    # Seconds of a simulated clock are no time that passes.
    Case(
        "trainers-by-seconds", "sbm", 3, SAGE, AVERAGING, SIMULATED, UNEVEN,
        "schedule.interval=3s schedule.limit=15s schedule.grace=2s",
    ),
    Case(
        "trainers-killed", "sbm", 3, SAGE, AVERAGING, SIMULATED, "train.epochs=10 schedule.grace=2s",
        'transport.faults=[{who=1,at="3s",kind="killed",back="6s"}]',
    ),
    Case(
        "trainers-stalled", "sbm", 3, GIN, STALE, "train.epochs=10 schedule.grace=2s",
        'transport.faults=[{who=2,at="4s",kind="stalled",back="7s"}]',
    ),
    Case("trainers-relations", "relations", 3, RGCN, AVERAGING),
    Case("trainers-relations-frozen", "relations", 3, RGCN, "model.bases=2", FROZEN),
    Case("trainers-relations-stale", "relations", 3, RGCN, STALE),
    Case("trainers-links", "sbm", 3, SAGE, LINKS, AVERAGING, "task.negatives=local"),
    Case("trainers-links-batches", "sbm", 3, GCN, LINK_BATCHES, BY_MLP, AVERAGING, "task.negatives=local"),
    Case("trainers-links-frozen", "sbm", 3, SAGE, LINKS, FROZEN, "task.negatives=local train.epochs=3"),
    Case("trainers-links-stale", "sbm", 3, GCN, LINKS, STALE, "task.negatives=local"),
    Case("trainers-psgd-pa", "sbm", 3, SAGE, PSGD_PA, BY_STEPS),
    Case("trainers-psgd-pa-simulated", "wide", 3, GCN, PSGD_PA, SIMULATED, UNEVEN),
    Case("trainers-psgd-pa-8-bits", "sbm", 5, GIN, PSGD_PA, parameters("quantised", "bits=8")),
    Case("trainers-llcg", "sbm", 3, SAGE, LLCG),
    Case("trainers-llcg-simulated", "sbm", 3, GCN, LLCG, SIMULATED, UNEVEN, "schedule.corrections=3"),
    Case("trainers-llcg-batches", "sbm", 3, GCN, LLCG, "batch.size=20 batch.fanouts=[3,3] train.epochs=2"),
    Case("trainers-llcg-by-rows", "sbm", 2, HEADS, LLCG, BY_STEPS, "schedule.mean=rows schedule.corrections=1"),
    Case("trainers-llcg-4-bits", "sbm", 3, GIN, LLCG, parameters("quantised", "bits=4")),
    # Rows that are stored in 16 bits.
    Case("bf16-gcn", "sbm", 3, GCN, BF16),
    Case("bf16-sage-3-layers", "sbm", 3, SAGE, DEEP, BF16, "model.residual=true"),
    Case("bf16-gin", "sbm", 3, GIN, BF16, UNCACHED),
    Case("bf16-gat", "sbm", 3, HEADS, BF16),
    Case("bf16-gat-mean-heads", "sbm", 2, MERGED, DEEP, BF16, "model.activation=prelu"),
    Case("bf16-mlp", "sbm", 3, MLP, BF16),
    Case("bf16-2-threads", "large", 2, SAGE, BF16, "train.threads=2 train.epochs=3"),
    Case("bf16-recomputed", "sbm", 3, GCN, DEEP, BF16, "train.recompute=true"),
    Case("bf16-weighted", "weighted", 3, GCN, BF16, IN_TURN),
    Case("bf16-multi-label", "multi", 3, SAGE, BF16, MULTILEVEL),
    Case("bf16-half", "wide", 3, SAGE, BF16, both("half"), evaluation("half")),
    Case("bf16-quantised", "wide", 3, GCN, BF16, both("quantised", "bits=4"), parameters("quantised", "bits=8")),
    Case("bf16-adaptive", "wide", 3, SAGE, BF16, both("quantised", ADAPTIVE)),
    Case("bf16-masked-sampled", "wide", 3, GIN, BF16, backward("masked", "ratio=3"), sample(0.5)),
    Case("bf16-pipelined", "sbm", 3, SAGE, SMOOTHED, BF16),
    Case("bf16-lazy", "sbm", 3, GCN, LAZY, BF16),
    Case("bf16-lazy-scores", "sbm", 5, HEADS, SCORES, BF16),
    Case("bf16-links", "sbm", 3, GCN, LINKS, BF16),
    Case("bf16-trainers", "sbm", 3, SAGE, AVERAGING, BF16),
    Case("bf16-trainers-frozen", "sbm", 3, GCN, FROZEN, SIMULATED, BF16),
    Case("bf16-llcg", "sbm", 3, GIN, LLCG, BF16),
    Case("bf16-ggs", "sbm", 3, SAGE, GGS, BF16),
    Case("bf16-resumed", "sbm", 3, SAGE, BF16, STATE, crash=4),
    # Real graphs.
    Case("cora-gcn", "cora", 3, GCN, "data.features=row-normalised train.epochs=5"),
    Case("cora-gat-multilevel", "cora", 5, HEADS, MULTILEVEL, "train.epochs=4"),
    Case("cora-lazy-scores", "cora", 3, SAGE, SCORES, "train.epochs=4"),
    Case("cora-masked-revealed", "cora", 3, GCN, both("masked", "ratio={from=16,slope=2}"), "train.epochs=5"),
    Case("cora-adaptive", "cora", 2, SAGE, both("quantised", ADAPTIVE), "train.epochs=5"),
    Case("cora-resumed-smoothed", "cora", 3, GIN, SMOOTHED, "train.epochs=5", crash=4),
    Case("cora-cut", "cora", 3, SAGE, "train.epochs=4", cut="--method multilevel --split train=20,val=500"),
    Case("citeseer-sage-max", "citeseer", 3, MAX, "train.epochs=3"),
    Case("citeseer-quantised", "citeseer", 2, GCN, both("quantised", "bits=2"), "train.epochs=3"),
    Case("texas-gin", "texas", 2, GIN, DEEP, "data.symmetrise=true data.split_index=3"),
    Case("texas-gat-lazy", "texas", 3, HEADS, LAZY),
    Case("texas-skip", "texas", 3, SAGE, skip(0.8, 3)),
    Case("texas-budget", "texas", 2, GCN, "messages.budget=2MB train.epochs=8"),
    Case("chameleon-gcn", "chameleon_filtered", 3, GCN, DEEP, "train.epochs=4"),
    Case("chameleon-sample", "chameleon_filtered", 5, SAGE, sample(0.3), "train.epochs=4"),
    Case("chameleon-standardised", "chameleon_filtered", 2, GAT, "data.features=standardised train.epochs=4"),
    Case("minesweeper-auc", "minesweeper", 3, SAGE, 'train.metrics=["roc_auc","accuracy"] train.epochs=4'),
    Case("minesweeper-pipelined", "minesweeper", 5, HEADS, PIPELINED, MULTILEVEL, "train.epochs=4"),
    Case("minesweeper-averaged", "minesweeper", 3, GCN, "train.sync_every=2 data.split_index=9 train.epochs=4"),
    Case("tolokers-gin", "tolokers", 3, GIN, 'train.metrics=["roc_auc"] train.epochs=3'),
    Case("tolokers-quantised", "tolokers", 2, SAGE, both("quantised", "bits=4"), "train.threads=2 train.epochs=3"),
    Case("tolokers-lazy", "tolokers", 5, GCN, SCORES, parameters("quantised", "bits=8"), "train.epochs=3"),
    Case("facebook-sage", "facebook_pages", 3, SAGE, DRAWN, "train.epochs=3 train.eval_every=3"),
    Case("facebook-lazy-scores", "facebook_pages", 2, GCN, SCORES, DRAWN, "train.epochs=3 train.eval_every=3"),
    # Under MPI, one process a part.
    Case("mpi-gcn", "sbm", 2, GCN, mpi=True),
    Case("mpi-sage-max", "sbm", 3, MAX, DEEP, mpi=True),
    Case("mpi-gat", "sbm", 3, HEADS, UNCACHED, mpi=True),
    Case("mpi-lazy", "sbm", 3, SAGE, LAZY, mpi=True),
    Case("mpi-lazy-scores", "sbm", 2, GCN, SCORES, parameters("quantised", "bits=8"), mpi=True),
    Case("mpi-pipelined", "sbm", 3, GIN, SMOOTHED, mpi=True),
    Case("mpi-quantised", "wide", 2, SAGE, both("quantised", "bits=4"), mpi=True),
    Case("mpi-adaptive", "wide", 3, SAGE, both("quantised", ADAPTIVE), mpi=True),
    Case("mpi-masked", "wide", 3, GCN, both("masked", 'ratio={from=8,slope=2},inner="quantised"'), mpi=True),
    Case("mpi-sample", "sbm", 3, SAGE, sample(0.3), mpi=True),
    Case("mpi-skip-averaged", "sbm", 2, GCN, skip(0.9, 3), "train.sync_every=2", mpi=True),
    Case("mpi-cut", "sbm", 3, SAGE, mpi=True, cut="--method multilevel"),
    Case("mpi-multi-label", "multi", 3, GIN, mpi=True),
    Case("mpi-budget", "wide", 3, SAGE, "messages.budget=250kB train.epochs=10 train.eval_every=5", mpi=True),
    # Before an even round: the last checkpoint is a whole round old, so that the abort cannot come while it is written.
    Case("mpi-resumed", "sbm", 3, SAGE, STATE, mpi=True, crash=6),
    Case(
        "mpi-resumed-pipelined-adaptive", "wide", 3, GCN, SMOOTHED, both("quantised", ADAPTIVE), STATE, mpi=True,
        crash=6,
    ),
]


class Failed(Exception):
    """A command that should have gone through did not; the text says with what."""


def run(arguments, folder, expected=0):
    """Runs a command in a folder and gives its standard output; `Failed` unless it ends with the expected code."""
    environment = dict(os.environ)
    # Open MPI asks root for confirmation; containers often run as root.
    environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    # Two mpiruns that start and end at a time would make and remove the same folder for their sockets.
    with tempfile.TemporaryDirectory(prefix="mpi-") as sockets:
        if arguments[0] == "mpirun":
            environment["TMPDIR"] = sockets
        try:
            done = subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise Failed(f"no end after {TIMEOUT_S} s") from None
    if done.returncode != expected:
        said = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip(" -")]
        said = [line for line in said if line.startswith("laconic:")] or said or ["nothing on standard error"]
        raise Failed(f"exit code {done.returncode}, expected {expected}: {said[0]}")
    return done.stdout


def npy(kind, shape, values):
    """An .npy file of little-endian values: `f` float32, `i` int32, `B` uint8, `q` int64."""
    of_numpy = {"f": "<f4", "i": "<i4", "B": "|u1", "q": "<i8"}[kind]
    header = f"{{'descr': '{of_numpy}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    start = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
    return start + struct.pack(f"<{len(values)}{kind}", *values)


def communities(nodes, classes, width, seed):
    """Classes, features around one mean a class, and weighted edges, two thirds of them within a class."""
    draw = random.Random(seed)
    labels = [draw.randrange(classes) for _ in range(nodes)]
    features = [[(label == column % classes) + draw.random() for column in range(width)] for label in labels]
    edges = {}
    while len(edges) < 5 * nodes:
        one, other = draw.randrange(nodes), draw.randrange(nodes)
        if one < other and (labels[one] == labels[other] or draw.random() < 0.2):
            edges[one, other] = draw.randrange(1, 16) / 4
    return labels, features, sorted(edges.items()), draw


def write_npz(path, members):
    """An npz of arrays, whose bytes are the same at any time of the day."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content)


def write_multi(path):
    """A graph whose nodes have several labels each and whose edges have weights, in the interchange format."""
    nodes, classes, width = 500, 5, 12
    labels, features, edges, draw = communities(nodes, classes, width, 7)
    several = [int(label == column or draw.random() < 0.2) for label in labels for column in range(classes)]
    masks = [draw.random() for _ in range(nodes)]
    members = {
        "edge_index": npy("i", [2, len(edges)], [one for (one, _), _ in edges] + [other for (_, other), _ in edges]),
        "edge_weight": npy("f", [len(edges)], [weight for _, weight in edges]),
        "directed": npy("B", [1], [0]),
        "num_nodes": npy("q", [1], [nodes]),
        "features": npy("f", [nodes, width], [value for row in features for value in row]),
        "labels": npy("B", [nodes, classes], several),
        "train_mask": npy("B", [nodes], [int(at < 0.5) for at in masks]),
        "val_mask": npy("B", [nodes], [int(0.5 <= at < 0.7) for at in masks]),
        "test_mask": npy("B", [nodes], [int(at >= 0.7) for at in masks]),
    }
    write_npz(path, members)


def pairs_of(pairs):
    """Pairs of nodes as an array of sources and one of targets."""
    return npy("i", [2, len(pairs)], [one for one, _ in pairs] + [other for _, other in pairs])


def write_held(path, pool):
    """A graph that says which edges are to be predicted, and among which pairs: a pool, or targets of each edge's own.

    With targets it has three relations of edges and two types of nodes, too.
    """
    nodes, width, relations = 300, 10, 3
    labels, features, edges, draw = communities(nodes, 4, width, 9)
    edges = [edge for edge, _ in edges]
    draw.shuffle(edges)
    members = {
        "edge_index": pairs_of(edges),
        "directed": npy("B", [1], [0]),
        "num_nodes": npy("q", [1], [nodes]),
        "features": npy("f", [nodes, width], [value for row in features for value in row]),
    }
    kinds, types = [draw.randrange(relations) for _ in edges], [label % 2 for label in labels]
    if not pool:
        members["edge_type"] = npy("i", [len(edges)], kinds)
        members["node_type"] = npy("i", [nodes], types)
    for name, start, end in [("val", 0, 90), ("test", 90, 240)]:
        members[f"{name}_edge_index"] = pairs_of(edges[start:end])
        if pool:
            ends = [(draw.randrange(nodes), draw.randrange(nodes)) for _ in range(80)]
            members[f"{name}_neg_edge_index"] = pairs_of([pair for pair in ends if pair[0] != pair[1]])
            continue
        members[f"{name}_edge_type"] = npy("i", [end - start], kinds[start:end])
        targets = []
        for edge in edges[start:end]:
            alike = [node for node in range(nodes) if node not in edge and types[node] == types[edge[1]]]
            targets += draw.sample(alike, 8)
        members[f"{name}_neg_targets"] = npy("i", [end - start, 8], targets)
    write_npz(path, members)


def write_nodes(path, labels, features, draw):
    """A node table whose ids are words, with a split."""
    rows = []
    for node, (label, row) in enumerate(zip(labels, features)):
        at = draw.random()
        part = "train" if at < 0.5 else "val" if at < 0.75 else "test"
        rows.append(",".join([f"n{node}", str(label), part, *(f"{value:.4f}" for value in row)]))
    columns = [f"x{column}" for column in range(len(features[0]))]
    path.write_text("\n".join([",".join(["id", "label", "split", *columns]), *rows]) + "\n")


def write_relations(edges_path, nodes_path):
    """A directed graph of four relations, some of them between the same nodes, as an edge list and a node table."""
    labels, features, edges, draw = communities(400, 4, 8, 10)
    arcs = []
    for (one, other), _ in edges:
        # Mostly that of the source's class, so that relations say something.
        kinds = {labels[one] if draw.random() < 0.7 else draw.randrange(4) for _ in range(2)}
        arcs += [f"n{one},n{other},r{kind}" for kind in sorted(kinds)]
    edges_path.write_text("\n".join(["source,target,relation", *arcs]) + "\n")
    write_nodes(nodes_path, labels, features, draw)


def write_weighted(edges_path, nodes_path):
    """A directed graph with weights, as an edge list and a node table whose ids are words."""
    labels, features, edges, draw = communities(400, 4, 8, 8)
    arcs = [f"n{one},n{other},{weight}" for (one, other), weight in edges]
    edges_path.write_text("\n".join(["source,target,weight", *arcs]) + "\n")
    write_nodes(nodes_path, labels, features, draw)


class Graphs:
    """The graphs of the matrix: where they are, and the commands whose graphs differ between the binaries."""

    def __init__(self, folder, data, binaries):
        self.folder, self.data = folder, data
        folder.mkdir()
        write_multi(folder / "multi.npz")
        write_held(folder / "held.npz", pool=False)
        write_held(folder / "pool.npz", pool=True)
        write_relations(folder / "relations.csv", folder / "relations_nodes.csv")
        write_weighted(folder / "weighted.csv", folder / "weighted_nodes.csv")
        self.differing = []
        for name, how in MADE.items():
            copies = [folder / f"{name}{end}" for end in [".npz", ".after.npz"]]
            for binary, path in zip(binaries, copies):
                run([binary, "data", *how.split(), "--out", path, "--quiet"], folder)
            if copies[0].read_bytes() != copies[1].read_bytes():
                self.differing.append(how)
            copies[1].unlink()

    def keys(self, name):
        """The keys that name the graph, or none where it is not there."""
        if name == "weighted":
            edges, nodes = self.folder / "weighted.csv", self.folder / "weighted_nodes.csv"
            return [f"data.path={edges}", f"data.nodes_path={nodes}"]
        for folder in filter(None, [self.folder, self.data]):
            if (folder / f"{name}.npz").exists():
                return [f"data.path={folder / f'{name}.npz'}"]
        return None


def overrides(keys):
    """Keys as arguments."""
    return [argument for key in keys for argument in ("--set", key)]


def tensors(path):
    """The tensors of a safetensors file by name: type, shape, bytes."""
    content = path.read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    header, data = json.loads(content[8 : 8 + size]), content[8 + size :]
    header.pop("__metadata__", None)
    return {name: [t["dtype"], t["shape"], data[slice(*t["data_offsets"])].hex()] for name, t in header.items()}


def rounds(path):
    """The lines of metrics.jsonl without what clocks say."""
    reports = [json.loads(line) for line in path.read_text().splitlines()]
    return [{key: value for key, value in report.items() if key not in TIMES_OF_ROUNDS} for report in reports]


def lines(path):
    """A text file with every byte of it, in pieces that a difference can be named by."""
    return path.read_bytes().decode("latin-1").splitlines(keepends=True)


def without_broken_round(found, sends_time):
    """Leaves out of a resumed run what the others had sent of the round in which worker 1 crashed, and all sums that it
    is part of; and the bytes of the first message behind it, the checkpoint, where that holds seconds as text.
    """
    said = found["summary.bytes"]
    before, behind = said["starts"]
    last = behind["after_round"]
    counted = ["start", "after_round", "frames", "workers"] if sends_time else list(behind)
    found["summary.bytes"] = {
        **{field: said.get(field) for field in ["is_bound", "straight", "straight_by_kind"]},
        "starts": [before["workers"], {field: behind[field] for field in counted}],
    }
    kept = []
    for line in found["ledger"]:
        cells = line.strip().split(",")
        broken = cells[-1] == "0" and cells[0].isdigit() and int(cells[0]) > last
        handed = sends_time and cells[0] == "0" and "parameters" in cells
        kept += [] if broken or handed else [line]
    found["ledger"] = kept
    for report in found["rounds"]:
        if sends_time or report["round"] > last:
            report.pop("bytes", None)


def prepare(binary, case, folder, keys):
    """Cuts the graph where the case asks for it; gives the keys of the run and what was made, to compare."""
    path = next(key for key in keys if key.startswith("data.path=")).removeprefix("data.path=")
    command = [binary, "partition", path, "--parts", str(case.parts), "--quiet"]
    if case.cut is not None:
        run([*command, *case.cut.split(), "--out", "parts"], folder)
        files = sorted(file for file in (folder / "parts").rglob("*") if file.is_file())
        made = {str(file.relative_to(folder)): file.read_bytes().hex() for file in files}
        return [f"data.path={folder / 'parts'}"], {"parts": made}
    if case.given is not None:
        run([*command, *case.given.split(), "--assignment", "assignment.txt"], folder)
        given = ["partition.method=given", f"partition.file={folder / 'assignment.txt'}"]
        return keys + given, {"assignment": lines(folder / "assignment.txt")}
    return keys, {}


def outcome(binary, case, folder, graph_keys):
    """Everything of a case that has to be the same, by the name of the comparison."""
    folder.mkdir(parents=True)
    (folder / "run.toml").write_text(BASE)
    graph_keys, found = prepare(binary, case, folder, graph_keys)
    keys = [*graph_keys, f"partition.parts={case.parts}", *case.keys]
    trained = [*keys, "transport.kind=mpi"] if case.mpi else keys
    launch = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(case.parts)] if case.mpi else []
    train = [*launch, binary, "train", "run.toml", "--out", "run", "--quiet", *overrides(trained)]
    if case.crash:
        fault = f'transport.fault={{rank=1,round={case.crash},kind="crash"}}'
        run([*train, *overrides(["out.checkpoint_every=2", fault])], folder, WORKER_FAILED)
        run([*launch, binary, "resume", "run", "--quiet"], folder)
    else:
        run(train, folder)
    out = folder / "run"
    summary = json.loads((out / "summary.json").read_text())
    found["digest"] = summary["parameters"]["digest"]
    found["ledger"] = lines(out / "ledger.csv")
    found.update({f"summary.{field}": summary.get(field) for field in SUMMARY_FIELDS})
    found["rounds"] = rounds(out / "metrics.jsonl")
    if case.crash:
        without_broken_round(found, case.sends_time())
    found["tensors"] = tensors(out / "model.safetensors")
    if case.has("transport.kind=simulated"):
        found["lanes"] = lines(out / "lanes.csv")
    if case.has("task.kind=link_prediction"):
        run([binary, "predict", "run", "--out", "predictions.csv", "--quiet"], folder)
        found["predictions"] = lines(folder / "predictions.csv")
    else:
        # What the last layer reads is the features themselves where it is the only one, and is refused.
        embeddings = [] if case.has("model.layers=1") else ["--embeddings"]
        run([binary, "predict", "run", "--out", "predictions.parquet", *embeddings, "--quiet"], folder)
        found["predictions"] = (folder / "predictions.parquet").read_bytes().hex()
    plan = json.loads(run([binary, "plan", "run.toml", "--json", "--quiet", *overrides(keys)], folder))
    found["plan"] = {field: plan.get(field) for field in PLAN_FIELDS}
    return found


def first_difference(before, after, place=""):
    """Where two values that are not the same first differ, and how."""
    if isinstance(before, dict) and isinstance(after, dict):
        steps = [(f"{place}.{key}", before.get(key), after.get(key)) for key in {**before, **after}]
    elif isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            return f"{place} has {len(before)} and {len(after)} entries"
        steps = [(f"{place}[{at}]", *pair) for at, pair in enumerate(zip(before, after))]
    elif isinstance(before, str) and isinstance(after, str) and max(len(before), len(after)) > 80:
        at = len(os.path.commonprefix([before, after]))
        return f"{place} from character {at} of {len(before)} and {len(after)}"
    else:
        return f"{place} {before!r} and {after!r}"
    return next(first_difference(one, other, at) for at, one, other in steps if not same(one, other))


def same(one, other):
    """Whether two values are written alike; unlike `==`, this tells 1 from 1.0, and 0.0 from -0.0."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@dataclass
class Verdict:
    """What became of a case."""

    case: Case
    comparisons: int
    differences: list
    # Why it failed with both binaries: then the matrix is wrong.
    error: str | None
    seconds: float

    def line(self):
        """Its line in the table."""
        what = f"FAILS with both: {self.error}" if self.error else "DIFFERS " + "; ".join(self.differences)
        result = what if self.error or self.differences else f"ok  {self.comparisons} comparisons, {self.seconds:.1f} s"
        return f"{self.case.name:32} {self.case.graph:20} {self.case.parts}  {result}"


def judge(case, binaries, folder, graph_keys):
    """Runs a case with both binaries and compares."""
    began, found, failures = time.monotonic(), [], []
    for binary, side in zip(binaries, ["before", "after"]):
        try:
            found.append(outcome(binary, case, folder / side, graph_keys))
        except Failed as failure:
            failures.append(f"{side} fails: {failure}")
    took = time.monotonic() - began
    if len(failures) == 2:
        return Verdict(case, 0, [], failures[0], took)
    if failures:
        return Verdict(case, 1, failures, None, took)
    before, after = found
    names = list({**before, **after})
    differing = [name for name in names if not same(before.get(name), after.get(name))]
    said = [first_difference(before.get(name), after.get(name), name) for name in differing]
    return Verdict(case, len(names), said, None, took)


def parse_arguments():
    parser = argparse.ArgumentParser(description="Compare two laconic binaries bit by bit over many configurations")
    parser.add_argument("before", type=Path, metavar="BEFORE", help="one binary")
    parser.add_argument("after", type=Path, metavar="AFTER", help="the other one")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of real graphs, NAME.npz")
    parser.add_argument("--mpi", action="store_true", help="also the cases under MPI, with mpirun of Open MPI")
    parser.add_argument("--jobs", type=int, default=2, help="cases that run at a time (default 2)")
    parser.add_argument("--only", metavar="TEXT", help="only cases whose name or graph contains this")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="a new folder in which all runs are kept")
    arguments = parser.parse_args()
    for binary in [arguments.before, arguments.after]:
        if not os.access(binary, os.X_OK) or binary.is_dir():
            parser.error(f"{binary} is not a program")
    if arguments.data and not arguments.data.is_dir():
        parser.error(f"{arguments.data} is not a folder")
    if arguments.keep and arguments.keep.exists():
        parser.error(f"{arguments.keep} is there already")
    if arguments.mpi and shutil.which("mpirun") is None:
        parser.error("--mpi needs mpirun")
    names = [case.name for case in CASES]
    for name in names:
        # Names are folders, in which graphs/ is taken.
        if names.count(name) > 1 or name == "graphs" or not re.fullmatch(r"[a-z0-9.-]+", name):
            parser.error(f"the case {name!r} of the matrix needs another name")
    return arguments


def compare(arguments, folder):
    """Runs the matrix in a folder, prints the table, and gives the exit code."""
    binaries = [arguments.before.resolve(), arguments.after.resolve()]
    graphs = Graphs(folder / "graphs", arguments.data and arguments.data.resolve(), binaries)
    text = arguments.only or ""
    named = [case for case in CASES if text in case.name or text in case.graph]
    wanted = [case for case in named if arguments.mpi or not case.mpi]
    there = [case for case in wanted if graphs.keys(case.graph) is not None]

    def work(case):
        place = folder / case.name
        verdict = judge(case, binaries, place, graphs.keys(case.graph))
        if not arguments.keep:
            shutil.rmtree(place)
        if sys.stderr.isatty():
            print(verdict.line(), file=sys.stderr)
        return verdict

    with ThreadPoolExecutor(max_workers=max(arguments.jobs, 1)) as pool:
        verdicts = list(pool.map(work, there))
    for verdict in verdicts:
        print(verdict.line())
    for how in graphs.differing:
        print(f"data {how}: DIFFERS")
    if left_out := len(wanted) - len(there):
        print(f"{left_out} cases left out: their graphs are not there (--data)")
    differing = sum(bool(verdict.differences) for verdict in verdicts) + len(graphs.differing)
    errors = sum(verdict.error is not None for verdict in verdicts)
    comparisons = sum(verdict.comparisons for verdict in verdicts) + len(MADE)
    counts = [(differing, "differ"), (errors, "fail with both")]
    result = ", ".join(f"{count} {what}" for count, what in counts if count) or "all equal"
    print(f"{len(verdicts)} cases, {comparisons} comparisons, {result}")
    return 1 if differing else 2 if errors or not verdicts else 0


def main():
    arguments = parse_arguments()
    if arguments.keep:
        arguments.keep.mkdir(parents=True)
        return compare(arguments, arguments.keep.resolve())
    with tempfile.TemporaryDirectory(prefix="same-bits-") as folder:
        return compare(arguments, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
