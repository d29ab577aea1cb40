"""What stays allocated after runs, graphs and errors: counted, since resident memory hides what is small."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable

import laconic_gnn as lc
import numpy as np
import pytest
from graphs import arrays

C_LIBRARY = ctypes.CDLL(None) if sys.platform.startswith("linux") else None
pytestmark = pytest.mark.skipif(not hasattr(C_LIBRARY, "mallinfo2"), reason="only glibc, from 2.33 on, counts live bytes")

GIVEN = arrays(600)
SMALL = {"parts": 2, "epochs": 2, "model": {"hidden": 8}}
# What may stay of one go, in bytes of malloc (the extension's, NumPy's, the interpreter's own large ones) and in blocks of
# the interpreter. An exception that stays has some ten blocks, and a thread, a ledger or a graph thousands of bytes.
BYTES, BLOCKS = 400, 10


class MallInfo2(ctypes.Structure):
    """What mallinfo2(3) says of all arenas: `uordblks` in use, `hblkhd` in maps of their own."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


def live() -> np.ndarray:
    """Live bytes and live blocks."""
    gc.collect()
    C_LIBRARY.mallinfo2.restype = MallInfo2
    info = C_LIBRARY.mallinfo2()
    return np.array([info.uordblks + info.hblkhd, sys.getallocatedblocks()])


def growth(go: Callable[[], object]) -> np.ndarray:
    """Bytes and blocks that stay of one go: of ten after ten others each, the least of four times. What other threads keep
    for a while, such as queues of work, comes and goes; what leaks grows each time."""
    for _ in range(5):
        go()
    counts = [live()]
    for _ in range(4):
        for _ in range(10):
            go()
        counts.append(live())
    return np.diff(counts, axis=0).min(axis=0) / 10


def graph() -> lc.Graph:
    """A graph with names."""
    return lc.Graph.from_numpy(**GIVEN, ids=[f"n{row}" for row in range(600)])


class Halves:
    """A codec."""

    def bytes(self, rows: int, columns: int) -> int:
        return 2 * rows * columns

    def encode(self, rows: np.ndarray) -> bytes:
        return rows.astype(np.float16).tobytes()

    def decode(self, payload: bytes, rows: int, columns: int) -> np.ndarray:
        return np.frombuffer(payload, dtype=np.float16).reshape(rows, columns)


class Broken(Halves):
    """A codec that fails where it reads."""

    def decode(self, payload: bytes, rows: int, columns: int) -> np.ndarray:
        raise ZeroDivisionError("decode")


def fails(error: type[Exception], go: Callable[[], object]) -> Callable[[], None]:
    """A go that ends with an error."""

    def tried() -> None:
        with pytest.raises(error):
            go()

    return tried


ONE = graph()
RUN = lc.train(ONE, **SMALL)

KINDS: dict[str, Callable[[], object]] = {
    "runs": lambda: lc.train(ONE, **SMALL),
    "lazy runs": lambda: lc.train(ONE, schedule="lazy", **SMALL),
    "averaging": lambda: lc.train(ONE, schedule="averaging", **SMALL),
    "batches": lambda: lc.train(ONE, batch={"size": 100, "fanouts": [5, 5]}, **SMALL),
    "graphs": lambda: graph().ids,
    "predictions": lambda: (RUN.predictions().table, RUN.predictions(ONE)),
    "runs that a callback stops": lambda: lc.train(
        ONE, **{**SMALL, "epochs": 50}, train={"eval_every": 1}, on_round=lambda round: round["round"] > 1
    ),
    "errors of callbacks": fails(ZeroDivisionError, lambda: lc.train(ONE, **SMALL, on_round=lambda _: 1 / 0)),
    "configurations that are refused": fails(lc.ConfigError, lambda: lc.train(ONE, **SMALL, train={"lr": "fast"})),
    "runs that are refused": fails(lc.LaconicError, lambda: lc.train(ONE, **{**SMALL, "parts": 601})),
    "graphs that are refused": fails(
        lc.DataError, lambda: lc.Graph.from_numpy([[0, 900], [1, 0]], np.zeros((600, 50), np.float32))
    ),
    "own codecs": lambda: lc.train(ONE, **SMALL, messages={"forward": Halves(), "backward": Halves()}),
    "errors of own codecs": fails(ZeroDivisionError, lambda: lc.train(ONE, **SMALL, messages={"forward": Broken()})),
}


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_stays_of_what_is_done_again_and_again(kind: str) -> None:
    bytes_each, blocks_each = growth(KINDS[kind])
    assert bytes_each < BYTES and blocks_each < BLOCKS, f"{kind}: {bytes_each} bytes and {blocks_each} blocks stay each time"


@pytest.mark.parametrize("what", [lambda: np.zeros(1000), lambda: [object() for _ in range(20)]])
def test_what_stays_is_counted(what: Callable[[], object]) -> None:
    kept: list[object] = []
    bytes_each, blocks_each = growth(lambda: kept.append(what()))
    assert bytes_each > BYTES or blocks_each > BLOCKS, (bytes_each, blocks_each)
