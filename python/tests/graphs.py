"""What several tests need."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np


def arrays(nodes: int = 200) -> dict[str, np.ndarray]:
    """Three communities; features that say a little of them."""
    draw = np.random.default_rng(1)
    y = draw.integers(0, 3, nodes)
    edges = draw.integers(0, nodes, (2, 12 * nodes))
    edges = edges[:, (y[edges[0]] == y[edges[1]]) | (draw.random(edges.shape[1]) < 0.2)]
    x = (np.eye(3)[y] + draw.normal(size=(nodes, 3))).astype(np.float32)
    role = draw.random(nodes)
    return {
        "edge_index": edges,
        "x": x,
        "y": y,
        "train_mask": role < 0.5,
        "val_mask": (role >= 0.5) & (role < 0.7),
        "test_mask": role >= 0.7,
    }


def program(*words: str) -> subprocess.CompletedProcess[str]:
    """The program, as the package has it."""
    return subprocess.run([sys.executable, "-m", "laconic_gnn", *words], capture_output=True, text=True, check=False)


def python(code: str) -> subprocess.CompletedProcess[str]:
    """An interpreter of its own, which may import this file."""
    here = os.path.dirname(os.path.abspath(__file__))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])}
    line = [sys.executable, "-c", code]
    return subprocess.run(line, capture_output=True, text=True, check=False, env=environment, timeout=120)


def hears_of_ctrl_c() -> None:
    """For a process about to start: one that was started in the background ignores Ctrl-C, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def resident() -> int:
    """The memory of this process, in bytes."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
