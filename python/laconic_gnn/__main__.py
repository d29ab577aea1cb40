"""The program `laconic`, as a script and as `python -m laconic_gnn`."""

from __future__ import annotations

import os
import signal
import sys
import threading


def main() -> int:
    """Runs the program with the words of the command line; returns its exit code."""
    from ._laconic import run_program
    from ._program import AGAIN, PARENT

    # The program has its own way with Ctrl-C; Python's would raise an error once it has ended.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = os.environ.pop(PARENT, None)
    if parent is not None:
        threading.Thread(target=_stop_with, args=(int(parent),), daemon=True).start()
    return run_program(sys.argv[1:], AGAIN)


def _stop_with(parent: int) -> None:
    """Ends the round, and then the program, once nobody holds the other end of this pipe."""
    os.read(parent, 1)
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main())
