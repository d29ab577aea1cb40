"""Train graph neural networks on graphs that live in several places, sending as little as possible over the network.

    import laconic_gnn as lc

    graph = lc.Graph.read("cora.npz")
    run = lc.train(graph, arch="sage", schedule="lazy", parts=4)
    print(run.accuracy, run.bytes)

Nothing but NumPy is needed. PyTorch Geometric, SciPy, pandas and others are imported when a function of theirs is used.
"""

from __future__ import annotations

from ._laconic import __version__
from .errors import (
    BudgetError,
    ConfigError,
    DataError,
    DivergedError,
    FileError,
    LaconicError,
    LaconicWarning,
    MemoryRefused,
    PeerLost,
    PolicyError,
)
from .graph import Graph, Partition
from .run import Predictions, Run, predict, resume, train
from .tables import Table
from .work import Comparison, Plan, compare, generate, keys, partition, plan, verify

__all__ = [
    "BudgetError",
    "Comparison",
    "ConfigError",
    "DataError",
    "DivergedError",
    "FileError",
    "Graph",
    "LaconicClassifier",
    "LaconicError",
    "LaconicWarning",
    "MemoryRefused",
    "Partition",
    "PeerLost",
    "Plan",
    "PolicyError",
    "Predictions",
    "Run",
    "Table",
    "__version__",
    "compare",
    "generate",
    "keys",
    "partition",
    "plan",
    "predict",
    "resume",
    "train",
    "verify",
]


def __getattr__(name: str) -> object:
    # The estimator is seldom wanted, and looks for scikit-learn.
    if name == "LaconicClassifier":
        from .classifier import LaconicClassifier

        return LaconicClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
