"""Several threads at once where no lock of the interpreter keeps them apart."""

from __future__ import annotations

import sys
import sysconfig
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import laconic_gnn as lc
import numpy as np
import pytest
from graphs import arrays

pytestmark = pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this interpreter is not a free-threaded one"
)

THREADS = 6


class Halves:
    """A codec that all runs share; it counts."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.calls = 0

    def bytes(self, rows: int, columns: int) -> int:
        return 2 * rows * columns

    def encode(self, rows: np.ndarray) -> bytes:
        with self.lock:
            self.calls += 1
        return rows.astype(np.float16).tobytes()

    def decode(self, payload: bytes, rows: int, columns: int) -> np.ndarray:
        return np.frombuffer(payload, dtype=np.float16).reshape(rows, columns)


def at_once(works: list[Callable[[], object]]) -> list[object]:
    """What works come to that begin together, a thread each."""
    barrier = threading.Barrier(len(works))

    def go(work: Callable[[], object]) -> object:
        barrier.wait(60)
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return [found.result(300) for found in [pool.submit(go, work) for work in works]]


def test_the_package_leaves_the_lock_out() -> None:
    assert not sys._is_gil_enabled()  # type: ignore[attr-defined]


def test_threads_train_and_read_one_graph_and_one_run_at_once_as_alone(tmp_path: Path) -> None:
    graph = lc.Graph.from_numpy(**arrays(), ids=[f"n{row}" for row in range(200)])
    codec = Halves()
    keys = {"parts": 2, "epochs": 6, "model": {"hidden": 8}, "train": {"eval_every": 1}}
    shared = lc.train(graph, **keys)

    def trained(seed: int) -> tuple[str, int]:
        heard: list[int] = []
        more = {"messages": {"forward": codec}} if seed % 2 else {}
        run = lc.train(graph, seed=seed, on_round=lambda round: heard.append(round["round"]), **more, **keys)
        return run.digest, len(heard)

    def fails(_: int) -> str:
        with pytest.raises(ZeroDivisionError):
            lc.train(graph, on_round=lambda _: 1 / 0, **keys)
        with pytest.raises(lc.ConfigError, match="lr"):
            lc.train(graph, train={"lr": "fast"})
        return "failed"

    def reads(_: int) -> list[object]:
        # A run that nobody has read yet: what is read once is read by all at once.
        run = lc.Run(shared.folder, graph)
        found = run.predictions()
        tables = [len(run.metrics), int(run.ledger["framed_bytes"].sum()), len(run.lanes), sorted(run.weights)]
        own = lc.Graph.from_numpy(**arrays()).arrays()
        return [*tables, found.logits.tolist(), list(graph.ids), graph.roles, {key: of.tolist() for key, of in own.items()}]

    works: list[Callable[[], object]] = []
    for place in range(THREADS):
        for work in (trained, reads, fails):
            works.append(lambda work=work, place=place: work(place))  # type: ignore[misc]
    alone = [work() for work in works]
    calls = codec.calls
    assert at_once(works) == alone
    assert codec.calls == 2 * calls > 0


def test_threads_read_one_run_for_the_first_time_together() -> None:
    graph = lc.Graph.from_numpy(**arrays())
    run = lc.train(graph, parts=2, epochs=6, model={"hidden": 8})
    for what in ("metrics", "ledger", "lanes", "weights"):
        found = at_once([lambda: sorted(map(str, getattr(run, what)))] * (2 * THREADS))
        assert all(of == found[0] for of in found)
    logits = at_once([lambda: run.predictions().logits.tolist()] * THREADS)
    assert all(of == logits[0] for of in logits)
    # The file of a graph in memory is written once.
    assert len({str(of) for of in at_once([graph._file] * (2 * THREADS))}) == 1


def test_threads_that_drop_runs_and_codecs_at_once_leave_what_others_use() -> None:
    graph = lc.Graph.from_numpy(**arrays())
    keys = {"parts": 2, "epochs": 2, "model": {"hidden": 8}}

    def goes() -> str:
        run = lc.train(graph, messages={"forward": Halves()}, **keys)
        run.predictions()
        return run.digest

    assert len(set(at_once([goes] * THREADS))) == 1
