"""What is asked before a run, instead of one, or of several."""

from __future__ import annotations

import json
import operator
import os
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from . import _laconic, _program, settings
from .errors import ConfigError, FileError
from .figures import Page, Picture
from .folders import Folder
from .graph import Graph, Partition, file_name, taken
from .run import Run
from .tables import Table

Given: TypeAlias = Graph | str | os.PathLike[str] | None
Methods: TypeAlias = Mapping[str, Mapping[str, Any]] | Sequence[str]


class Plan(dict[str, Any]):
    """What a run will send, to the byte, and the memory that it will take: what ``laconic plan --json`` prints
    (``docs/json.md``), as a dictionary."""

    @property
    def bytes(self) -> int:
        """What all workers will send, framing included; with ``messages="auto"`` in all runs of the ladder together."""
        return self["bytes"]

    @property
    def leaves(self) -> list[str]:
        """What leaves each worker, and to whom, a line each."""
        return [f"worker {line['worker']} to {line['to']}: {line['words']}" for line in self.get("leaves", [])]

    def __repr__(self) -> str:
        return f"Plan({self.bytes:,} bytes, {self['workers']} workers)"


def plan(graph: Given = None, *, config: str | os.PathLike[str] | None = None, **keys: Any) -> Plan:
    """Predicts bytes and memory of a run; nothing runs. Arguments are those of :func:`train`.

    Raises:
        ConfigError: if a key is unknown or makes no sense; a :class:`BudgetError` if ``messages.budget`` is too small.

    Example:
        print(lc.plan(graph, schedule="lazy", parts=4).bytes)
    """
    with settings.file(*taken(graph, settings.dotted(keys)), config) as words:
        return Plan(_program.call("plan", *words))


def verify(
    graph: Given = None, *, config: str | os.PathLike[str] | None = None, rounds: int = 10, **keys: Any
) -> dict[str, Any]:
    """Trains on one worker and on several, and compares parameters and bytes. Arguments are those of :func:`train`;
    ``rounds`` is how many rounds of each stage there are.

    Returns:
        what ``laconic verify --json`` prints (``docs/json.md``): ``agrees`` says whether they do, ``worst`` how far
        apart they are, ``ledger_is_exact`` whether the bytes are those that were predicted.

    Example:
        assert lc.verify(graph, parts=4, rounds=3)["agrees"]
    """
    with settings.file(*taken(graph, settings.dotted(keys)), config) as words:
        return _program.call("verify", *words, "--rounds", str(rounds))


def keys(word: str | None = None) -> dict[str, str]:
    """The keys of a configuration with their meaning and, in brackets, their default; or those with a word.

    Example:
        print(lc.keys("dropout"))
    """
    if word is None:
        return dict(_all_keys())
    return {key: text for key, text in _program.call("keys", word).items() if "." in key}


@lru_cache(maxsize=1)
def _all_keys() -> dict[str, str]:
    return {key: text for key, text in _program.call("keys").items() if "." in key}


def generate(kind: str = "sbm", *, name: str = "generated", **flags: Any) -> Graph:
    """Draws a graph.

    Args:
        kind: ``"sbm"``: communities that are the classes, with features that follow them; ``"rmat"``: hubs without
            communities, whose labels mean nothing.
        name: what messages and reports call the graph.
        flags: those of ``laconic data synth`` with underscores, such as ``nodes=20000``, ``classes=10``, ``seed=1``. The
            same flags give the same graph on every machine.

    Raises:
        ConfigError: if there is no such kind or flag.

    Example:
        graph = lc.generate(nodes=2000, classes=5, seed=1)
    """
    if kind not in ("rmat", "sbm"):
        raise ConfigError(f"kind: expected 'sbm' or 'rmat', found {kind!r}")
    with tempfile.TemporaryDirectory(prefix="laconic-") as folder:
        file = os.path.join(folder, f"{file_name(name)}.npz")
        _program.call("data", "synth", kind, "--out", file, *_program.flags(flags))
        # As one in memory: its file goes.
        return Graph(_laconic.Graph.read(file, keep_self_loops=True))


def partition(graph: Graph, parts: int, method: str = "random", **flags: Any) -> Partition:
    """Who would own which node, and what that costs; see :meth:`Graph.partition`."""
    return graph.partition(parts, method, **flags)


class Comparison:
    """Methods over seeds on one graph, as the folder of ``laconic compare`` has them.

    ``Comparison("runs/compared")`` opens such a folder.

    Attributes:
        folder: the folder. A temporary one is gone when nothing refers to the comparison any more.
        graph: the graph in memory that was trained on, or None.
        summary: ``compare.json``, as ``laconic compare --json`` prints it (``docs/json.md``).
    """

    def __init__(self, folder: str | os.PathLike[str], graph: Graph | None = None) -> None:
        self.folder = Path(folder)
        self.graph = graph
        self._kept: Folder | None = None
        try:
            self.summary: dict[str, Any] = json.loads((self.folder / "compare.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise FileError(f"{self.folder}: no compare.json: this is not the folder of a comparison that has ended") from None

    @cached_property
    def table(self) -> Table:
        """A row a method: means over its runs. ``test`` is the figure of test nodes, ``test_sd`` its standard deviation
        (None of one run), ``bytes`` all bytes, ``fewer`` how many times fewer than the baseline sends (evaluation left
        out), ``seconds`` those of training, ``front`` whether it is on the front. ``holds_graph`` is who had to hold the
        whole graph, ``saw_labels``, ``saw_features``, ``saw_scores`` and ``saw_models`` who saw these of others,
        ``round_trips`` how often somebody waited in training (None where it is not known)."""
        parties = ("holds_graph", "saw_labels", "saw_features", "saw_scores", "saw_models")
        kept = ("bytes", "fewer", "boundary", "parameters", "evaluation", "seconds", "memory", "front")
        rows = []
        for method in self.summary["methods"]:
            test, runs = method["test"], len(method["runs"])
            figures = {"name": method["name"], "runs": runs, "test": test["mean"], "test_sd": test["sd"]}
            account = method["account"] or {}
            seen = {key: account.get(key) for key in parties}
            seen["round_trips"] = (account.get("round_trips") or {}).get("training")
            rows.append({**figures, **{key: method[key] for key in kept}, **seen})
        return Table.of_records(rows)

    @cached_property
    def runs(self) -> Table:
        """A row a run: method, seed, figures, bytes by what they are for, seconds, memory in bytes."""
        return Table.read_csv(self.folder / "compare.csv")

    @property
    def front(self) -> list[str]:
        """The methods that no other beats in both the figure and the bytes, the fewest bytes first."""
        best = [method for method in self.summary["methods"] if method["front"]]
        return [method["name"] for method in sorted(best, key=lambda method: method["bytes"])]

    def run(self, method: str, seed: int = 0) -> Run:
        """One of the runs.

        Raises:
            KeyError: if there is none of this method and seed; the message lists the methods.
        """
        for found in self.summary["methods"]:
            for run in found["runs"]:
                if found["name"] == method and run["seed"] == seed:
                    return Run(self.folder / run["folder"], self.graph)
        names = ", ".join(found["name"] for found in self.summary["methods"])
        raise KeyError(f"no run of {method!r} with seed {seed}; methods are {names}")

    def to_markdown(self) -> str:
        """The table of means for a page."""
        return (self.folder / "compare.md").read_text(encoding="utf-8")

    def to_latex(self) -> str:
        """The table of means for a paper."""
        return (self.folder / "compare.tex").read_text(encoding="utf-8")

    def plot(self) -> Picture:
        """What each method comes to: the figure against bytes."""
        return self._picture("compare.svg")

    def plot_curves(self) -> Picture:
        """The figure against bytes over the rounds."""
        return self._picture("compare_curves.svg")

    def plot_time(self) -> Picture:
        """What each method comes to: the figure against seconds."""
        return self._picture("compare_time.svg")

    def _picture(self, name: str) -> Picture:
        return Picture([(self.folder / name).read_text(encoding="utf-8")])

    def report(self, path: str | os.PathLike[str] | None = None) -> Page:
        """The page about the comparison, written to ``path`` or into its folder; a notebook shows it."""
        path = Path(path) if path is not None else self.folder / "report.html"
        _program.call("report", self.folder, "--out", path)
        return Page(path)

    def __repr__(self) -> str:
        return f"Comparison({', '.join(method['name'] for method in self.summary['methods'])})"

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def compare(
    graph: Given = None,
    methods: Methods | None = None,
    seeds: int | Sequence[int] = 1,
    *,
    config: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    link: str | None = None,
    progress: bool | None = None,
    **keys: Any,
) -> Comparison:
    """Compares methods over seeds on one graph; each run has a process of its own.

    Args:
        graph: the graph, or the path of one; without, what ``data.path`` of the configuration names.
        methods: the keys of each by its name, ``{"lazy": {"schedule": "lazy"}, …}``, the first the baseline; or names of
            those of papers (``["standard", "RETEXO", "AdaQP"]``); otherwise all of those.
        seeds: so many, from 0, or which ones.
        config: a configuration file of the program, under ``keys``.
        out: the folder; runs that are in it already are kept. Otherwise a temporary one, which goes with the result.
        link: a named network link, on whose clock time is taken, such as ``"wan-100mbit-40ms"``.
        progress: whether the program says how far it is, on standard error.
        keys: those of all methods, as in :func:`train`.

    Raises:
        ConfigError: if a method or key is unknown or makes no sense.

    Example:
        comparison = lc.compare(graph, {"standard": {}, "lazy": {"schedule": "lazy"}}, parts=4, epochs=5)
        print(comparison.to_markdown(), comparison.front)
    """
    graph, found = taken(graph, settings.dotted(keys))
    methods = [methods] if isinstance(methods, str) else methods
    seeds = operator.index(seeds) if hasattr(seeds, "__index__") else [operator.index(seed) for seed in seeds]
    kept = None
    if out is None:
        kept = Folder()
        out = kept.path("compare")
    folder = os.fspath(out)
    with tempfile.TemporaryDirectory(prefix="laconic-") as aside, settings.file(graph, found, config) as words:
        more = _program.flags({"link": link})
        if isinstance(methods, Mapping):
            file = os.path.join(aside, "methods.toml")
            Path(file).write_text(_methods(methods, seeds), encoding="utf-8")
            more += ["--runs", file]
        else:
            more += [] if methods is None else ["--methods", ",".join(methods)]
            if not isinstance(seeds, int):
                raise ConfigError("seeds: which ones can be said where methods are a dictionary; else how many")
            more += ["--seeds", str(seeds)]
        _program.call("compare", *words, *more, "--out", folder, loud=bool(progress))
    comparison = Comparison(folder, graph)
    comparison._kept = kept
    return comparison


def _methods(methods: Mapping[str, Mapping[str, Any]], seeds: int | Sequence[int]) -> str:
    """Methods as the program reads them."""
    numbers = list(range(seeds)) if isinstance(seeds, int) else [int(seed) for seed in seeds]
    blocks = [f"seeds = {numbers}\n"]
    for name, keys in methods.items():
        words = settings.words(settings.dotted(keys))
        blocks.append(f"[[method]]\nname = {settings.toml('methods', name)}\nset = {settings.toml(name, words)}\n")
    return "\n".join(blocks)
