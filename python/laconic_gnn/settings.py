"""Keyword arguments as the keys of a configuration."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .errors import ConfigError

if TYPE_CHECKING:
    from .graph import Graph

# Words for keys that are typed often.
_SHORT = {
    "arch": "model.arch",
    "epochs": "train.epochs",
    "parts": "partition.parts",
    "schedule": "schedule.kind",
    "seed": "train.seed",
    "transport": "transport.kind",
}

# Arguments that are of one function.
OTHERS = {
    "force": "train",
    "on_round": "train",
    "out": "train and compare",
    "partitioner": "train",
    "progress": "train, resume and compare",
}


def dotted(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Keys with their sections: ``train={"lr": 0.1}`` is ``train.lr``, ``arch="gcn"`` is ``model.arch``."""
    found: dict[str, Any] = {}

    def add(key: str, value: Any) -> None:
        if key in found:
            raise ConfigError(f"{key}: given twice, as {found[key]!r} and as {value!r}")
        found[key] = value

    for key, value in keys.items():
        if isinstance(value, Mapping) and "." not in key:
            for inner, of in value.items():
                add(f"{key}.{inner}", of)
        elif isinstance(value, Mapping) or "." in key or key in _SHORT or (key, value) == ("messages", "auto"):
            add(_SHORT.get(key, key), value)
        elif key in OTHERS:
            raise ConfigError(f"{key}: an argument of {OTHERS[key]}, not of this function")
        else:
            raise ConfigError(f"{key}: unknown argument{_meant(key)}")
    for key, value in found.items():
        above = key.rpartition(".")[0]
        if above in found:
            raise ConfigError(f"{key}: given twice, as {value!r} and in {above}")
    return {key: value for key, value in found.items() if value is not None}


def _meant(key: str) -> str:
    """What an argument that is no section may have meant."""
    import difflib

    from .work import keys as known

    last = {name.rpartition(".")[2]: name for name in known()}
    near = difflib.get_close_matches(key, [*_SHORT, *last], n=1)
    if not near:
        return "; lc.keys() lists the configuration's keys"
    meant = near[0] if near[0] in _SHORT else _nested(last[near[0]])
    return f"; did you mean {meant}?"


def _nested(key: str) -> str:
    """A key as an argument: ``model.hidden`` is ``model={"hidden": …}``."""
    section, _, inner = key.partition(".")
    return f'{section}={{"{inner}": …}}'


def words(found: Mapping[str, Any]) -> list[str]:
    """Keys as the program reads them, KEY=VALUE."""
    return [f"{key}={toml(key, value)}" for key, value in found.items()]


def toml(key: str, value: Any) -> str:
    """A value as TOML has it.

    Raises:
        ConfigError: if TOML has no such value.
    """
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        # A number of NumPy.
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(str(name))} = {toml(key, of)}" for name, of in value.items()) + " }"
    if isinstance(value, (list, tuple)) or hasattr(value, "tolist"):
        return "[" + ", ".join(toml(key, of) for of in value) + "]"
    if isinstance(value, os.PathLike):
        return json.dumps(os.fspath(value))
    if isinstance(value, str):
        # As JSON has it, but for what TOML calls otherwise.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (int, float)):
        return repr(value)
    raise ConfigError(f"{key}: expected text, a number, a list or a dictionary, found {type(value).__name__}")


@contextlib.contextmanager
def file(
    graph: Graph | None, found: Mapping[str, Any], config: str | os.PathLike[str] | None
) -> Iterator[list[str]]:
    """The words of a command line that names a configuration: a file and what is set over it."""
    found = {**({} if graph is None else graph._keys()), **found}
    with tempfile.TemporaryDirectory(prefix="laconic-") as folder:
        if config is None:
            config = os.path.join(folder, "run.toml")
            with open(config, "w", encoding="utf-8"):
                pass
        yield [os.fspath(config), *(word for setting in words(found) for word in ("--set", setting))]
