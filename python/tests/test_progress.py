"""Progress: what a person sees of a run, and what a file does not get to see."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import laconic_gnn as lc
import pytest
from graphs import arrays
from laconic_gnn.progress import Progress, human_bytes

ROUNDS: list[dict[str, Any]] = [
    {"round": 1, "stage": 0, "loss": 1.25, "seconds": 0.1},
    {"round": 2, "stage": 0, "loss": 1.0, "val": {"accuracy": 0.51, "loss": 2.0}, "bytes": 57213, "seconds": 0.1},
    {"round": 3, "stage": 1, "loss": 0.75, "seconds": 0.1},
    {"round": 4, "stage": 1, "loss": 0.5, "val": {"accuracy": 0.625, "loss": 1.0}, "bytes": 1321885, "seconds": 0.1},
]


class Terminal(io.StringIO):
    """What is written where a person looks."""

    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        """Each state of a line that is overwritten, and each that stays."""
        return [line.strip() for line in re.split(r"[\r\n]", self.getvalue()) if line.strip()]


def told(errors: io.StringIO, monkeypatch: pytest.MonkeyPatch, *, tqdm: bool, show: bool | None = None) -> str:
    """What is shown of all rounds."""
    monkeypatch.setattr(sys, "stderr", errors)
    if not tqdm:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    progress = Progress(show)
    progress.rounds = 4
    for round in ROUNDS:
        progress(round)
    progress.close()
    progress.close()
    return errors.getvalue()


@pytest.mark.parametrize("tqdm", [True, False])
def test_nothing_is_shown_where_nobody_looks_or_wants_it(tqdm: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(io.StringIO(), monkeypatch, tqdm=tqdm) == ""
    assert told(Terminal(), monkeypatch, tqdm=tqdm, show=False) == ""


def test_without_tqdm_a_terminal_has_one_line_that_is_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laconic_gnn.progress._REDRAW_EVERY", 0)
    terminal = Terminal()
    shown = told(terminal, monkeypatch, tqdm=False)
    assert shown.count("\n") == 1 and shown.endswith("\n")
    assert terminal.lines() == [
        "round 1 of 4, loss 1.2500, 0 s",
        "round 2 of 4, loss 1.0000, val accuracy 0.5100, sent 57.2 kB, 0 s",
        "round 3 of 4, loss 0.7500, val accuracy 0.5100, sent 57.2 kB, 0 s",
        "round 4 of 4, loss 0.5000, val accuracy 0.6250, sent 1.32 MB, 0 s",
    ]
    # A shorter line leaves nothing of a longer one.
    widths = [len(line) for line in shown.rstrip("\n").split("\r")]
    assert widths == sorted(widths)


def test_a_line_is_not_redrawn_for_every_round_and_ends_with_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    told(terminal, monkeypatch, tqdm=False)
    assert [line.split(",")[0] for line in terminal.lines()] == ["round 1 of 4", "round 4 of 4"]


def test_a_file_that_is_to_have_progress_has_whole_lines_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = told(io.StringIO(), monkeypatch, tqdm=False, show=True)
    assert "\r" not in shown
    assert [line.split(",")[0] for line in shown.splitlines()] == ["round 1 of 4", "round 4 of 4"]


def test_with_tqdm_its_bar_has_all_rounds_and_the_last_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tqdm")
    monkeypatch.setenv("COLUMNS", "160")
    terminal = Terminal()
    told(terminal, monkeypatch, tqdm=True)
    last = terminal.lines()[-1]
    assert last.startswith("100%") and "4/4" in last
    assert "loss 0.5000, val accuracy 0.6250, sent 1.32 MB" in last


def test_rounds_that_nobody_knows_the_end_of_are_shown_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    progress = Progress()
    progress({"round": 7, "stage": 0, "loss": None, "val": {"accuracy": None}, "bytes": 5})
    progress.close()
    assert terminal.lines() == ["round 7, sent 5 B, 0 s"]


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (57213, "57.2 kB"), (999_600, "1 MB"), (1_321_885, "1.32 MB"),
     (15_633_949_000, "15.6 GB"), (2**50, "1126 TB")],
)
def test_bytes_are_shown_to_three_figures(count: int, text: str) -> None:
    assert human_bytes(count) == text


def test_a_run_shows_all_rounds_of_its_stages_and_learns_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    graph = lc.Graph.from_numpy(**arrays(), undirected=True)
    keys: dict[str, Any] = {"parts": 2, "schedule": "lazy", "train": {"epochs": 5, "eval_every": 2}}
    quiet = lc.train(graph, **keys, progress=False)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    run = lc.train(graph, **keys, progress=True)
    assert run.digest == quiet.digest
    last = terminal.lines()[-1]
    assert last.startswith("round 10 of 10, loss ")
    assert f"val accuracy {run.metrics['val.accuracy'][-1]:.4f}" in last
    assert f"sent {human_bytes(int(run.metrics['bytes'][-1]))}" in last


def test_a_bar_ends_where_a_run_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    def fails(round: dict[str, Any]) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        lc.train(lc.Graph.from_numpy(**arrays()), train={"epochs": 9}, on_round=fails, progress=True)
    assert terminal.getvalue().endswith("\n")


def test_a_real_terminal_shows_a_run_unasked_and_a_pipe_does_not() -> None:
    pty = pytest.importorskip("pty")
    code = (
        "import sys; sys.modules['tqdm'] = None\n"
        "import laconic_gnn as lc\n"
        "from graphs import arrays\n"
        "lc.train(lc.Graph.from_numpy(**arrays()), epochs=3)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    master, slave = pty.openpty()
    subprocess.run([sys.executable, "-c", code], stderr=slave, env=environment, check=True)
    os.close(slave)
    shown = b""
    # Linux says so when nothing more comes.
    try:
        while more := os.read(master, 4096):
            shown += more
    except OSError:
        pass
    os.close(master)
    assert b"round 3 of 3, loss" in shown
    piped = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, check=True)
    assert piped.stderr == b""
