"""How far a run is, on a terminal or in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

# Seconds between two lines where each stays: the program's own.
_LINE_EVERY = 4.0
# Seconds between two states of a line that is overwritten.
_REDRAW_EVERY = 0.1


class Progress:
    """Shows rounds, the validation figure and bytes so far: by tqdm where it is installed, else as a line of its own.

    Attributes:
        rounds: how many there will be in all stages together, 0 if that is not known. May be set at any time.
    """

    def __init__(self, show: bool | None = None, rounds: int = 0) -> None:
        """Args:
            show: None: where standard error is a terminal, and in a notebook; True: in any case; False: never.
            rounds: as above.
        """
        self.rounds = rounds
        self._bar: _Bar | _Line | None = None
        self._val, self._sent = "", ""
        lively = _in_notebook() or _in_terminal()
        if show or (show is None and lively):
            # Here and not with the first round, which another thread tells: a notebook shows what began in its own.
            self._bar = _Bar() if _has_tqdm() else _Line(lively)

    def __call__(self, round: Mapping[str, Any]) -> None:
        """Shows a round, as ``on_round`` of :func:`laconic_gnn.train` gets them; those between may be told or not."""
        if self._bar is None:
            return
        figures = [(name, value) for name, value in (round.get("val") or {}).items() if name != "loss"]
        if figures and isinstance(figures[0][1], (int, float)):
            self._val = f"val {figures[0][0]} {figures[0][1]:.4f}"
        if round.get("bytes") is not None:
            self._sent = f"sent {human_bytes(round['bytes'])}"
        loss = round.get("loss")
        texts = [f"loss {loss:.4f}" if isinstance(loss, (int, float)) else "", self._val, self._sent]
        self._bar.show(round["round"], self.rounds, ", ".join(text for text in texts if text))

    def close(self) -> None:
        """Ends the line. May be called again."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class _Bar:
    """Progress by tqdm."""

    def __init__(self) -> None:
        import warnings

        with warnings.catch_warnings():
            # A notebook without widgets gets a plain bar, and would be told to install them with every program.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
        self._bar = tqdm(total=None, unit="round", dynamic_ncols=True)

    def show(self, round: int, rounds: int, text: str) -> None:
        if rounds and self._bar.total != rounds:
            # This alone tells a notebook's bar; it starts the clock anew, with the first round as the rest of it.
            self._bar.reset(total=rounds)
        self._bar.set_postfix_str(text, refresh=False)
        self._bar.update(round - self._bar.n)

    def close(self) -> None:
        # The last text may not have been shown yet.
        self._bar.refresh()
        self._bar.close()


class _Line:
    """Progress as one line that is overwritten; as lines now and then where that cannot be."""

    def __init__(self, lively: bool) -> None:
        self._lively = lively
        self._start = time.monotonic()
        self._shown = float("-inf")
        self._text = ""
        self._width = 0
        # What was not shown yet.
        self._late = False

    def show(self, round: int, rounds: int, text: str) -> None:
        so_far = time.monotonic() - self._start
        self._text = f"round {round}" + (f" of {rounds}" if rounds else "") + f", {text}, {so_far:.0f} s"
        self._late = True
        if so_far - self._shown >= (_REDRAW_EVERY if self._lively else _LINE_EVERY):
            self._shown = so_far
            self._write()

    def close(self) -> None:
        if self._late:
            self._write()
        if self._width:
            sys.stderr.write("\n")
            sys.stderr.flush()
            self._width = 0

    def _write(self) -> None:
        self._late = False
        if self._lively:
            # Blanks cover what is left of a longer line.
            sys.stderr.write("\r" + self._text.ljust(self._width))
            self._width = len(self._text)
        else:
            sys.stderr.write(self._text + "\n")
        sys.stderr.flush()


def human_bytes(count: int) -> str:
    """Bytes as people read them: ``1.32 MB``."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.0f} B" if unit == "B" else f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.4g} TB"


def _has_tqdm() -> bool:
    import importlib.util

    return importlib.util.find_spec("tqdm") is not None


def _in_terminal() -> bool:
    # There is none in a program with windows alone.
    return sys.stderr is not None and sys.stderr.isatty()


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    # A terminal's IPython has no kernel.
    return shell is not None and hasattr(shell, "kernel")
