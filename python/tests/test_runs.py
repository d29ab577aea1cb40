"""Runs from start to end: what stops them, what they leave, what they cost this process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import laconic_gnn as lc
import numpy as np
import pytest
from graphs import arrays, hears_of_ctrl_c, program, python


def test_a_callback_stops_a_run_and_what_it_raises_comes_back() -> None:
    graph = lc.Graph.from_numpy(**arrays())
    keys = {"epochs": 500, "train": {"eval_every": 1}}
    run = lc.train(graph, on_round=lambda round: round["round"] >= 5, **keys)
    assert 5 <= len(run.metrics) < 20 and run.interrupted

    def fails(_: object) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        lc.train(graph, on_round=[lambda _: False, fails], **keys)


def test_callbacks_hear_of_evaluated_rounds_alone_and_of_each_of_them() -> None:
    heard: list[int] = []
    graph = lc.Graph.from_numpy(**arrays())
    run = lc.train(graph, epochs=10, train={"eval_every": 5}, on_round=lambda round: heard.append(round["round"]))
    evaluated = ~np.isnan(run.metrics["val.accuracy"])
    assert heard == list(run.metrics["round"][evaluated]) and 2 <= len(heard) < 10


def test_runs_in_threads_at_once_are_those_of_runs_alone() -> None:
    graph = lc.Graph.from_numpy(**arrays())
    alone = [lc.train(graph, epochs=10, seed=seed).digest for seed in range(3)]
    found: dict[int, str] = {}

    def go(seed: int) -> None:
        found[seed] = lc.train(graph, epochs=10, seed=seed).digest

    threads = [threading.Thread(target=go, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[seed] for seed in range(3)] == alone


@pytest.mark.parametrize("transport", ["threads", "processes", "one worker"])
def test_ctrl_c_ends_the_round_and_what_it_leaves_goes_on_to_the_same_bits(transport: str, tmp_path: Path) -> None:
    given = arrays(2000)
    graph = lc.Graph.from_numpy(**given)
    graph.save(tmp_path / "graph.npz")
    parts, transport = (1, "threads") if transport == "one worker" else (2, transport)
    keys = {"parts": parts, "train": {"eval_every": 10}}
    code = (
        "import laconic_gnn as lc\n"
        f"graph = lc.Graph.read({str(tmp_path / 'graph.npz')!r})\n"
        f"lc.train(graph, epochs=100000, transport={transport!r}, out={str(tmp_path / 'out')!r}, **{keys!r})\n"
    )
    line = [sys.executable, "-c", code]
    run = subprocess.Popen(line, stderr=subprocess.PIPE, text=True, preexec_fn=hears_of_ctrl_c)
    metrics = tmp_path / "out" / "metrics.jsonl"
    until = time.monotonic() + 60
    while not (metrics.exists() and metrics.read_text().count("\n") >= 20) and time.monotonic() < until:
        time.sleep(0.1)
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors, errors
    assert (tmp_path / "out" / "checkpoint.safetensors").exists(), list((tmp_path / "out").iterdir())
    rounds = len(lc.Run(tmp_path / "out").metrics)
    resumed = lc.resume(tmp_path / "out", graph, epochs=rounds + 20)
    whole = lc.train(graph, epochs=rounds + 20, **keys)
    assert resumed.digest == whole.digest


def test_workers_that_are_processes_end_with_the_interpreter_that_is_killed(tmp_path: Path) -> None:
    lc.Graph.from_numpy(**arrays(2000)).save(tmp_path / "graph.npz")
    code = (
        "import laconic_gnn as lc\n"
        f"lc.train({str(tmp_path / 'graph.npz')!r}, epochs=1000000, parts=2, transport='processes', "
        f"train={{'eval_every': 10}}, out={str(tmp_path / 'out')!r})\n"
    )
    run = subprocess.Popen([sys.executable, "-c", code])
    metrics = tmp_path / "out" / "metrics.jsonl"

    def within(seconds: float, holds: Callable[[], bool]) -> bool:
        until = time.monotonic() + seconds
        while not holds() and time.monotonic() < until:
            time.sleep(0.1)
        return holds()

    assert within(60, lambda: metrics.exists() and metrics.read_text().count("\n") >= 20)
    run.kill()
    run.wait()
    assert within(60, lambda: (tmp_path / "out" / "checkpoint.safetensors").exists()), "nobody has stopped"
    assert within(60, lambda: not (tmp_path / "out" / "lock").exists())


def test_an_interpreter_that_ends_while_a_run_goes_on_ends() -> None:
    code = (
        "import threading, time, numpy as np, laconic_gnn as lc\n"
        "from graphs import arrays\n"
        "graph = lc.Graph.from_numpy(**arrays(2000))\n"
        "heard = threading.Event()\n"
        "def go(): lc.train(graph, parts=2, epochs=1000000, train={'eval_every': 1}, on_round=lambda _: heard.set())\n"
        "threading.Thread(target=go, daemon=True).start()\n"
        "assert heard.wait(30)\n"
        "print('leaves', flush=True)\n"
    )
    done = python(code)
    assert done.stdout == "leaves\n" and done.returncode == 0, (done.returncode, done.stderr)


def test_a_process_that_was_forked_after_a_run_says_so_and_does_not_hang() -> None:
    graph = lc.Graph.from_numpy(**arrays())
    reads, writes = os.pipe()
    with warnings.catch_warnings():
        # Newer Pythons warn of forks in processes with threads, which is what is tried here.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            lc.train(graph, parts=2, epochs=5)
        except lc.LaconicError as error:
            os.write(writes, str(error).encode())
        os._exit(0)
    os.close(writes)
    until = time.monotonic() + 60
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            pytest.fail("the forked process hangs")
        time.sleep(0.05)
    with os.fdopen(reads) as said:
        assert 'get_context("spawn")' in said.read()


def test_runs_one_after_another_do_not_grow() -> None:
    # Each run has 12 MB of features, so that what is kept of one shows.
    code = (
        "import numpy as np, laconic_gnn as lc\n"
        "from graphs import arrays, resident\n"
        "given = arrays(3000)\n"
        "def go():\n"
        "    given['x'] = np.ones((3000, 1000), np.float32)\n"
        "    lc.train(lc.Graph.from_numpy(**given), parts=2, epochs=1, model={'hidden': 8}).predictions()\n"
        "for _ in range(5): go()\n"
        "before = resident()\n"
        "for _ in range(20): go()\n"
        "print(resident() - before)\n"
    )
    done = python(code)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 60 << 20, f"20 runs of 12 MB grew by {int(done.stdout) / 2**20:.0f} MB"


def test_a_run_keeps_its_temporary_folder_and_takes_it_along() -> None:
    graph = lc.Graph.from_numpy(**arrays())
    run = lc.train(graph, epochs=2)
    folder = run.folder
    assert (folder / "summary.json").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        del run
    assert not folder.exists()


def test_own_folders_hold_what_the_program_reads(tmp_path: Path) -> None:
    graph = lc.Graph.from_numpy(**arrays())
    run = lc.train(graph, epochs=5, out=tmp_path / "run")
    assert lc.Run(tmp_path / "run").digest == run.digest
    done = program("report", str(tmp_path / "run"), "--json", "-q")
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)


class Halves:
    """Rows in half precision."""

    def bytes(self, rows: int, columns: int) -> int:
        return 2 * rows * columns

    def encode(self, rows: np.ndarray) -> bytes:
        return rows.astype(np.float16).tobytes()

    def decode(self, payload: bytes, rows: int, columns: int) -> np.ndarray:
        return np.frombuffer(payload, dtype=np.float16).reshape(rows, columns)


def test_an_own_codec_carries_rows_and_its_bytes_are_counted() -> None:
    graph = lc.Graph.from_numpy(**arrays())
    keys = {"parts": 3, "epochs": 6, "schedule": {"cache_inputs": False}}
    exact = lc.train(graph, **keys)
    halves = lc.train(graph, messages={"forward": Halves(), "backward": Halves()}, **keys)

    def rows(run: lc.Run) -> int:
        ledger = run.ledger
        passes = np.isin(ledger["kind"], ["features", "activations", "activation_gradients"])
        return int(ledger["payload_bytes"][passes].sum())

    assert 2 * rows(halves) == rows(exact) > 0
    assert halves.digest != exact.digest
    assert len(halves.predictions()) == graph.nodes


@pytest.mark.parametrize("method", ["bytes", "encode", "decode"])
def test_what_an_own_codec_raises_comes_back(method: str) -> None:
    class Broken(Halves):
        pass

    def fails(*_: object) -> None:
        raise ZeroDivisionError(method)

    setattr(Broken, method, fails)
    with pytest.raises(ZeroDivisionError, match=method):
        lc.train(lc.Graph.from_numpy(**arrays()), parts=2, epochs=3, messages={"forward": Broken()})


def test_a_codec_that_is_gone_is_not_another_one(tmp_path: Path) -> None:
    graph = lc.Graph.from_numpy(**arrays())
    run = lc.train(graph, parts=2, epochs=3, messages={"forward": Halves()}, out=tmp_path / "run")
    count = len(run.predictions())
    assert count == graph.nodes
    # The codec goes with the run.
    del run
    kept = lc.train(graph, parts=2, epochs=3, messages={"forward": Halves()})
    assert kept.bytes
    with pytest.raises(lc.ConfigError, match="object"):
        lc.Run(tmp_path / "run", graph).predictions()
    with pytest.raises(lc.ConfigError, match="in no folder: codec= hands it over"):
        lc.resume(tmp_path / "run", graph)


@pytest.mark.parametrize("from_file", [False, True])
def test_a_run_with_an_own_codec_goes_on_with_it_to_the_same_bits(from_file: bool, tmp_path: Path) -> None:
    graph = lc.Graph.from_numpy(**arrays())
    if from_file:
        graph.save(tmp_path / "graph.npz")
    given = tmp_path / "graph.npz" if from_file else graph
    keys = {"parts": 3, "epochs": 20, "train": {"eval_every": 5}, "schedule": {"cache_inputs": False}}
    whole = lc.train(given, messages={"forward": Halves(), "backward": Halves()}, **keys)
    stop = {"on_round": lambda round: round["round"] >= 5, "out": tmp_path / "run"}
    first = lc.train(given, messages={"forward": Halves(), "backward": Halves()}, **keys, **stop)
    assert first.interrupted and first.digest != whole.digest
    resumed = lc.resume(first, codec=Halves())
    assert resumed.digest == whole.digest and not resumed.interrupted
    # Each of them holds the codec, as long as it is there.
    del first
    assert np.array_equal(resumed.predictions().logits, whole.predictions().logits)
    del resumed
    with pytest.raises(lc.ConfigError, match="object"):
        lc.Run(tmp_path / "run", graph).predictions()


def test_a_codec_is_asked_for_where_there_is_one_and_what_it_raises_comes_back(tmp_path: Path) -> None:
    graph = lc.Graph.from_numpy(**arrays())
    stop = {"on_round": lambda round: round["round"] >= 5, "epochs": 20, "train": {"eval_every": 5}, "parts": 2}
    first = lc.train(graph, out=tmp_path / "plain", **stop)
    with pytest.raises(lc.ConfigError, match="^codec: .*names none"):
        lc.resume(first, codec=Halves())
    second = lc.train(graph, messages={"forward": Halves()}, out=tmp_path / "own", **stop)

    class Broken(Halves):
        def encode(self, rows: np.ndarray) -> bytes:
            raise ZeroDivisionError("encode")

    with pytest.raises(ZeroDivisionError, match="encode"):
        lc.resume(second, codec=Broken())


@pytest.mark.parametrize("graph", ["in memory", "a file"])
def test_a_file_that_asks_for_processes_gets_them(graph: str, tmp_path: Path) -> None:
    own = lc.Graph.from_numpy(**arrays())
    own.save(tmp_path / "graph.npz")
    data = "" if graph == "in memory" else f"[data]\npath = {json.dumps(str(tmp_path / 'graph.npz'))}\n"
    parts = "[partition]\nparts = 2\n[train]\nepochs = 3\n"
    (tmp_path / "run.toml").write_text(f'{data}{parts}[transport]\nkind = "processes"\n')
    given = {"graph": own if graph == "in memory" else None, "config": tmp_path / "run.toml"}
    run = lc.train(**given)
    assert run.summary["config"]["transport"]["kind"] == "processes" and run.summary["transport"] == "processes"
    assert run.digest == lc.train(**given, transport="threads").digest
    with pytest.raises(lc.ConfigError, match="on_round: workers that are processes"):
        lc.train(**given, on_round=print)
    with pytest.raises(lc.ConfigError, match="transport: a codec that is a Python object"):
        lc.train(**given, messages={"forward": Halves()})
    (tmp_path / "run.toml").write_text(f'{data}{parts}[transport]\nkind = "mpi"\n')
    with pytest.raises(lc.ConfigError, match="^out: workers of MPI"):
        lc.train(**given)


def test_errors_of_a_codec_in_several_workers_do_not_wait_for_each_other() -> None:
    class Slow:
        def __del__(self) -> None:
            time.sleep(0.2)

    class Broken(Halves):
        def encode(self, rows: np.ndarray) -> bytes:
            slow = Slow()
            raise ZeroDivisionError(slow)

    with pytest.raises(ZeroDivisionError):
        lc.train(lc.Graph.from_numpy(**arrays()), parts=4, epochs=3, messages={"forward": Broken()})


def test_plans_in_threads_at_once_share_the_file_of_the_graph() -> None:
    graph = lc.Graph.from_numpy(**arrays())
    with ThreadPoolExecutor(4) as pool:
        plans = list(pool.map(lambda parts: lc.plan(graph, parts=2 + parts % 2, epochs=2).bytes, range(8)))
    assert len(set(plans)) == 2


def test_an_own_codec_of_another_size_than_it_says_is_an_error() -> None:
    class Longer(Halves):
        def encode(self, rows: np.ndarray) -> bytes:
            return super().encode(rows) + b"!"

    with pytest.raises(lc.LaconicError, match="python"):
        lc.train(lc.Graph.from_numpy(**arrays()), parts=2, epochs=3, messages={"forward": Longer()})

    class Flat(Halves):
        def decode(self, payload: bytes, rows: int, columns: int) -> np.ndarray:
            return np.frombuffer(payload, dtype=np.float16)

    with pytest.raises(ValueError, match="decode: expected the shape"):
        lc.train(lc.Graph.from_numpy(**arrays()), parts=2, epochs=3, messages={"forward": Flat()})


def test_an_own_partitioner_says_who_owns_which_node() -> None:
    graph = lc.Graph.from_numpy(**arrays())
    run = lc.train(graph, parts=4, epochs=2, partitioner=lambda graph, parts: np.arange(graph.nodes) * parts // graph.nodes)
    assert run.summary["config"]["partition"]["method"] == "given"
    assert graph.partition(4).assignment.shape == (200,)
    for wrong in ([0, 1], np.zeros(graph.nodes)):
        with pytest.raises(lc.ConfigError, match=f"expected {graph.nodes} whole numbers"):
            lc.train(graph, parts=2, epochs=2, partitioner=lambda graph, parts: wrong)


def test_notes_and_warnings_reach_python() -> None:
    graph = lc.Graph.from_numpy(**arrays())
    run = lc.train(graph, parts=3, epochs=2, train={"threads": 1})
    assert all(isinstance(note, str) for note in run.notes)
    with pytest.raises(lc.ConfigError, match="on_round"):
        lc.train(graph, parts=2, transport="processes", on_round=print)
