"""The program `laconic` in a process of its own, for what is not worth a second way in."""

from __future__ import annotations

import json
import os
import signal
import site
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from . import errors

# Names the pipe that ends with the process that has started the program.
PARENT = "LACONIC_PARENT"

# What starts the program once more.
AGAIN = [sys.executable, "-m", "laconic_gnn"]


def rank() -> int:
    """The number of this process among those that a launcher of MPI has started; 0 where there is none."""
    for variable in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"):
        if os.environ.get(variable, "").isdigit():
            return int(os.environ[variable])
    return 0


def call(*words: str | os.PathLike[str], where: str | os.PathLike[str] | None = None, loud: bool = False) -> Any:
    """Runs the program and returns the document that it prints.

    Args:
        words: a command and its arguments.
        where: the folder to run it in.
        loud: whether its progress goes to standard error.

    Raises:
        LaconicError: with the program's text, of the class that its exit code stands for.
        KeyboardInterrupt: if it was stopped; what trains has left a checkpoint.
    """
    line = [*AGAIN, *(os.fspath(word) for word in words), "--json", *([] if loud else ["--quiet"])]
    # In a session of its own it hears of Ctrl-C once, from here, whoever has sent it: a terminal or a notebook. Where this
    # process goes without a word, the pipe between them ends, and the program stops as by Ctrl-C.
    ends, holds = os.pipe()
    try:
        child = subprocess.Popen(
            line,
            cwd=where,
            stdout=subprocess.PIPE,
            stderr=None if loud else subprocess.PIPE,
            text=True,
            env={**_environment(), PARENT: str(ends)},
            start_new_session=True,
            pass_fds=[ends],
        )
        while True:
            try:
                said, told = child.communicate()
                break
            except KeyboardInterrupt:
                # The program ends the round and writes a checkpoint; told twice it ends at once.
                child.send_signal(signal.SIGINT)
    finally:
        os.close(holds)
        os.close(ends)
    if child.returncode == 130:
        raise KeyboardInterrupt
    try:
        document = json.loads(said)
    except ValueError:
        last = (said.strip() or (told or "").strip()).splitlines()[-1:]
        raise errors.of(child.returncode, *last or [f"laconic ended with {child.returncode}"]) from None
    # A check that did not pass is a result.
    if child.returncode in (0, 1) and "error" not in document:
        return document
    raise errors.of(child.returncode, document["error"]["message"])


def flags(given: Mapping[str, Any]) -> list[str]:
    """Keyword arguments as flags: ``label_column="y"`` is ``--label-column y``, True alone a flag, False and None none."""
    words: list[str] = []
    for name, value in given.items():
        if value is None or value is False:
            continue
        flag = "--" + _FLAGS.get(name, name).replace("_", "-")
        if value is True:
            words.append(flag)
        elif isinstance(value, (list, tuple)):
            words.append(f"{flag}={','.join(map(str, value))}")
        else:
            words.append(f"{flag}={value}")
    return words


# Flags that Python calls otherwise.
_FLAGS = {"undirected": "symmetrise"}


def _environment() -> dict[str, str]:
    """This process's, with the place of this package where a new interpreter would not look. What lies in the current
    folder is none of its modules."""
    found = {**os.environ, "PYTHONSAFEPATH": "1"}
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if home not in map(os.path.abspath, [*site.getsitepackages(), site.getusersitepackages()]):
        before = os.environ.get("PYTHONPATH")
        found["PYTHONPATH"] = home if not before else os.pathsep.join([home, before])
    return found
