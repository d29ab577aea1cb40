"""Training, and what comes of it."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _laconic, _program, settings
from .errors import ConfigError, FileError, LaconicError, LaconicWarning, of
from .figures import Page, Picture, pictures
from .folders import Folder
from .graph import Graph, taken
from .tables import Table
from .tensors import read_safetensors

if TYPE_CHECKING:
    import numpy as np
    import torch

Callback = Callable[[dict[str, Any]], object]


class Run:
    """A run that has ended, as its folder has it (``docs/reference/run-folder.md``).

    ``Run("runs/gcn")`` opens the folder of a run, of the program as well. Where it was trained on a graph in memory,
    predictions need that: ``Run("runs/gcn", graph)``.

    Attributes:
        folder: the folder. A temporary one is gone when nothing refers to the run any more.
        graph: the graph in memory that was trained on, or None.
        notes: what the run had to say before it began, a line each.
        summary: ``summary.json``, as ``laconic train --json`` prints it (``docs/json.md``): figures, bytes by what they
            are for, seconds, memory in bytes.

    Raises:
        OSError: if the folder has no ``summary.json``.
    """

    def __init__(self, folder: str | os.PathLike[str], graph: Graph | None = None, notes: Sequence[str] = ()) -> None:
        self.folder = Path(folder)
        self.graph = graph
        self.notes = list(notes)
        #: What goes with the run: its temporary folder, and codecs that its configuration names.
        self._kept: Any = None
        self.summary: dict[str, Any] = _summary(self.folder / "summary.json")

    @cached_property
    def metrics(self) -> Table:
        """A row a round: ``round``, ``stage``, ``loss``, ``lr``, ``seconds``; and where it was evaluated figures
        (``val.accuracy`` and so on) and ``bytes`` so far, NaN elsewhere."""
        lines = (self.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        return Table.of_records([json.loads(line) for line in lines])

    @cached_property
    def ledger(self) -> Table:
        """Every account of what was sent: ``round``, ``from``, ``to``, ``kind``, ``layer``, ``direction``, ``frames``,
        and bytes without and with framing, ``payload_bytes`` and ``framed_bytes``."""
        return Table.read_csv(self.folder / "ledger.csv")

    @cached_property
    def lanes(self) -> Table:
        """What each worker did from when until when, in seconds: of local SGD all along, otherwise in the middle round."""
        path = self.folder / "lanes.csv"
        return Table.read_csv(path if path.exists() else self.folder / "timeline.csv")

    @cached_property
    def weights(self) -> dict[str, np.ndarray]:
        """The weights of the best round, by PyTorch Geometric's names; linear maps are ``[outputs, inputs]``."""
        return read_safetensors(self.folder / "model.safetensors")

    @property
    def bytes(self) -> int:
        """What all workers have sent, framing included."""
        return self.summary["bytes"]["total"]

    @property
    def test(self) -> dict[str, float | None]:
        """Figures of test nodes, or of test edges, in the round that was best by validation, by name; None where one is
        not defined."""
        return self.summary["metrics"].get("test", {})

    @property
    def accuracy(self) -> float | None:
        """The accuracy of test nodes in the round that was best by validation; None where it was not measured."""
        return self.test.get("accuracy")

    @property
    def digest(self) -> str:
        """A hash of the parameters, ``blake3:...``: equal for equal bits."""
        return self.summary["parameters"]["digest"]

    @property
    def interrupted(self) -> bool:
        """Whether the run was stopped before its end; :func:`resume` goes on."""
        return bool(self.summary["interrupted"])

    def predictions(self, graph: Graph | None = None) -> Predictions:
        """What the model says about every node.

        Args:
            graph: another graph, without labels if need be; its features are prepared with the run's own means and
                deviations. Otherwise the graph of the run, with the messages that the run was judged with.

        Raises:
            ConfigError: if the graph does not suit the model, or the model is one of links.
        """
        if self._is_of_links:
            raise ConfigError("a model of links has no classes: Run.scores(pairs) scores pairs, Run.embeddings() has their rows")
        return self._predicted(graph)

    def _predicted(self, graph: Graph | None) -> Predictions:
        shown = graph or self.graph
        if shown is None and not self.summary["config"]["data"].get("path"):
            raise ConfigError("the run's graph was in memory: Run(folder, graph) says which it was")
        inner = None if shown is None else shown._graph
        logits, embeddings, classes, several = _laconic.predict(os.fspath(self.folder), inner, own=graph is None)
        return Predictions(logits, embeddings, classes, several, None if shown is None else shown.ids)

    @property
    def _is_of_links(self) -> bool:
        return self.summary["config"].get("task", {}).get("kind") == "link_prediction"

    def embeddings(self, graph: Graph | None = None) -> np.ndarray:
        """What the last layer reads, ``[nodes, columns]``; of a model of links what pairs are scored by. Of the graph of
        the run or another one, as :meth:`predictions`."""
        predicted = self._predicted(graph)
        embeddings = predicted.logits if self._is_of_links else predicted.embeddings
        if embeddings is None:
            raise ConfigError("a model of one layer has no embeddings: model.layers")
        return embeddings

    def scores(self, pairs: Sequence[tuple[Any, Any]]) -> Table:
        """Scores of pairs of nodes, of a model of links.

        Args:
            pairs: sources and targets by the ids of the graph, with a relation as the third where there are several.

        Returns:
            a row a pair, in their order: ``source``, ``target``, ``score`` (a logit), ``probability``.

        Raises:
            ConfigError: if the model is none of links.
            DataError: if a pair names a node that is not there.
        """
        if not self._is_of_links:
            raise ConfigError("scores: the model is one of classes: Run.predictions() has them")
        pairs = [tuple(pair) for pair in pairs]
        with tempfile.TemporaryDirectory(prefix="laconic-") as folder:
            names = ["source", "target", "relation"][: len(pairs[0]) if pairs else 2]
            with Path(folder, "pairs.csv").open("w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows([names, *pairs])
            data = [] if self.graph is None else ["--data", *self.graph._words(), "--edges", "training"]
            words = ["--pairs", "pairs.csv", "--out", "scores.csv", *data]
            _program.call("predict", self.folder.absolute(), *words, where=folder)
            scored = Table.read_csv(Path(folder, "scores.csv"))
        # Ids as they were given: a file has texts that may look like numbers.
        own = {name: [pair[place] for pair in pairs] for place, name in enumerate(names[:2])}
        return Table({name: own.get(name, column) for name, column in scored.items()})

    def module(self) -> torch.nn.Module:
        """The model as layers of PyTorch Geometric with these weights: the same logits."""
        from .module import module

        return module(self.folder)

    def report(self, path: str | os.PathLike[str] | None = None) -> Page:
        """The page about the run: what left which worker, learning, classes, one round. A notebook shows it.

        Args:
            path: where to write it, ``.html``; otherwise ``report.html`` in the run's folder.
        """
        path = Path(path) if path is not None else self.folder / "report.html"
        _program.call("report", self.folder, "--out", path)
        return Page(path)

    def plot_curves(self) -> Picture:
        """Loss and figures by round."""
        return pictures(self.report(), "by round")

    def plot_bytes(self) -> Picture:
        """Bytes by link, by what they hold, by layer and direction; of the whole run, all workers together."""
        return pictures(self.report(), "Bytes by")

    def __repr__(self) -> str:
        figures = [f"{name} {value:.4f}" for name, value in self.test.items() if name != "loss" and value is not None]
        figures += [f"{self.bytes:,} bytes", f"{self.summary['rounds']} rounds"]
        return f"Run({', '.join(figures + ['stopped'] * self.interrupted)})"


def _summary(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        what = "no such file: this is not the folder of a run that has ended; lc.resume(folder) goes on with one that was killed"
        raise FileError(f"{path}: {what}") from None


class Predictions:
    """What a model says about nodes.

    Attributes:
        logits: before softmax (one class a node) or sigmoid (several), ``[nodes, classes]``.
        embeddings: what the last layer reads, ``[nodes, columns]``; None for a model of one layer.
        classes: what classes are called, in the order of columns.
        ids: what nodes are called, ``[nodes]``; None where the graph is not known here.
    """

    def __init__(
        self,
        logits: np.ndarray,
        embeddings: np.ndarray | None,
        classes: list[str],
        several: bool,
        ids: np.ndarray | None,
    ) -> None:
        self.logits = logits
        self.embeddings = embeddings
        self.classes = classes
        self.several = several
        self.ids = ids

    @property
    def probabilities(self) -> np.ndarray:
        """How sure the model is, ``[nodes, classes]``: rows of one class a node add up to 1."""
        import numpy as np

        if self.several:
            return 1 / (1 + np.exp(-self.logits))
        raised = np.exp(self.logits - self.logits.max(axis=1, keepdims=True))
        return raised / raised.sum(axis=1, keepdims=True)

    @property
    def labels(self) -> np.ndarray:
        """The number of the likeliest class, ``[nodes]``; where nodes may have several, 0 and 1, ``[nodes, classes]``."""
        import numpy as np

        return (self.logits > 0).astype(np.int64) if self.several else self.logits.argmax(axis=1)

    @property
    def names(self) -> np.ndarray:
        """The name of the likeliest class, ``[nodes]``; where nodes may have several, a list of names each."""
        import numpy as np

        if self.several:
            names = [[self.classes[place] for place in np.flatnonzero(row)] for row in self.labels]
            return np.array([*names, None], dtype=object)[:-1]
        return np.array(self.classes)[self.labels]

    @property
    def table(self) -> Table:
        """A row a node: ``id``, ``pred`` (the number of the class), ``class`` (its name), ``prob_0``, …"""
        import numpy as np

        ids = np.arange(len(self.logits)) if self.ids is None else self.ids
        columns = {"id": ids}
        if not self.several:
            columns["pred"] = self.labels
        columns["class"] = self.names
        return Table({**columns, **{f"prob_{place}": column for place, column in enumerate(self.probabilities.T)}})

    def measure(self, metric: Callable[[Any, Any], float], y: Any, where: Any = None) -> float:
        """A figure of your own, ``metric(y, labels)``, such as one of ``sklearn.metrics``.

        Args:
            metric: takes true and predicted classes, ``[nodes]``.
            y: the true classes, ``[nodes]``; -1 where unknown, which are left out.
            where: which nodes count, a mask or places; otherwise all with a known class.

        Example:
            predictions = run.predictions()
            print(predictions.measure(lambda true, said: (true == said).mean(), y))
        """
        import numpy as np

        y, labels = np.asarray(y), self.labels
        if where is not None:
            y, labels = y[where], labels[where]
        known = y >= 0 if y.ndim == 1 else np.ones(len(y), dtype=bool)
        return float(metric(y[known], labels[known]))

    def __len__(self) -> int:
        return len(self.logits)

    def __repr__(self) -> str:
        return f"Predictions({len(self)} nodes, {len(self.classes)} classes)"


def train(
    graph: Graph | str | os.PathLike[str] | None = None,
    *,
    config: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    on_round: Callback | Sequence[Callback] = (),
    progress: bool | None = None,
    force: bool = False,
    transport: str | Mapping[str, Any] | None = None,
    partitioner: Callable[..., Any] | None = None,
    **keys: Any,
) -> Run:
    """Trains. Workers are threads of this process unless ``transport`` says otherwise.

    Args:
        graph: the graph, or the path of one; without, what ``data.path`` of the configuration names.
        config: a configuration file of the program, under ``keys``.
        out: the folder of the run, with checkpoints; otherwise a temporary one, which goes with the result.
        on_round: one function or several, called after each evaluated round with its figures (a line of
            ``metrics.jsonl``); something true stops the run as Ctrl-C does.
        progress: whether to show how far it is; by default in a terminal and in a notebook.
        force: starts although there may be too little memory.
        transport: ``"processes"``: each worker a process of its own, of this machine; ``"mpi"`` in a script that
            ``mpirun`` has started, of a package that was built with MPI, with an ``out`` that all machines see; or the
            keys of ``transport``.
        partitioner: who owns which node: called as ``partitioner(graph, parts)``, returns the number of each node's part,
            ``[nodes]``. It runs in Python, once, before the run.
        keys: the configuration's keys, which :func:`laconic_gnn.keys` lists: ``arch``, ``schedule``, ``parts`` and ``epochs`` for
            ``model.arch``, ``schedule.kind``, ``partition.parts`` and ``train.epochs``; others as dictionaries
            (``train={"lr": 0.01}``), or with dots (``**{"model.hidden": 64}``). A codec may be an object of your
            own with ``bytes(rows, columns)``, how long a message is, ``encode(rows)``, from an array
            ``[rows, columns]`` to bytes, and ``decode(payload, rows, columns)``, back: ``messages={"forward": mine}``. It is
            called for each message, under the interpreter's lock: slow, and enough to try an idea.

    Raises:
        ConfigError: if a key is unknown, a value makes no sense, or two cannot be combined.
        DataError: if the graph cannot be used.
        KeyboardInterrupt: after Ctrl-C, which ends the round and leaves a checkpoint in ``out``; :func:`resume` goes on.

    Example:
        run = lc.train(graph, schedule="lazy", parts=4, epochs=20, model={"hidden": 64})
        print(run.accuracy, run.bytes)
    """
    graph, found = taken(graph, settings.dotted(keys if transport is None else {**keys, "transport": transport}))
    found, codecs = _registered(found)
    # A file may say so, too.
    kind = _laconic.transport(None if config is None else os.fspath(config), settings.words(found))
    if kind == "mpi" and out is None:
        raise ConfigError("out: workers of MPI need the folder of the run to be named")
    if kind in ("processes", "mpi") and codecs:
        raise ConfigError("transport: a codec that is a Python object is in this process alone; leave transport out")
    kept = None
    if out is None:
        kept = Folder()
        out = kept.path("run")
    folder = os.fspath(out)
    if partitioner is not None:
        found.update(_assigned(partitioner, graph, found, folder))
    asked = [on_round] if callable(on_round) else list(on_round)
    if kind in ("processes", "mpi"):
        notes = _by_the_program(kind, (graph, found, config), folder, asked, progress, force)
    else:
        inner = None if graph is None else graph._graph
        file = None if config is None else os.fspath(config)
        words = settings.words(found)
        with _what_they_raise(codecs):
            notes = _in_this_process(
                lambda watch: _laconic.train(inner, file, words, folder, watch, force=force), asked, progress
            )
    if _program.rank() > 0:
        _await(Path(folder, "summary.json"))
    run = Run(folder, graph, notes)
    run._kept = (kept, codecs)
    return run


def _in_this_process(
    work: Callable[[Callable[[str, str], bool]], bool], asked: list[Callback], progress: bool | None
) -> list[str]:
    """Trains in this process, with threads or as a worker of MPI: ``work(watch)``; what there is to note."""
    from .progress import Progress

    notes: list[str] = []
    # Of the processes of MPI one shows it.
    shown = Progress(progress if _program.rank() == 0 else False)

    def watch(kind: str, text: str) -> bool:
        if kind == "warning":
            warnings.warn(text, LaconicWarning, stacklevel=2)
        elif kind == "note":
            notes.append(text)
        elif kind == "stages":
            shown.rounds = sum(json.loads(text))
        elif kind == "round":
            figures = json.loads(text)
            shown(figures)
            # Each is asked, though one stops the run.
            return any([bool(ask(figures)) for ask in asked])
        return False

    try:
        work(watch)
    finally:
        shown.close()
    return notes


def _by_the_program(
    kind: str,
    what: tuple[Graph | None, dict[str, Any], str | os.PathLike[str] | None],
    folder: str,
    asked: list[Callback],
    progress: bool | None,
    force: bool,
) -> list[str]:
    """Trains with workers that are processes, on a graph with keys over a file."""
    with settings.file(*what) as words:
        if kind == "mpi":
            # This process is one of the workers, and reads the graph from a file as all of them do.
            file, *given = words
            given = [word for word in given if word != "--set"]
            return _in_this_process(
                lambda watch: _laconic.train(None, file, given, folder, watch, force=force), asked, progress
            )
        if asked:
            raise ConfigError("on_round: workers that are processes call nothing here; leave transport, or on_round, out")
        words = ["train", *words, "--out", folder, *_program.flags({"force": force})]
        _program.call(*words, loud=bool(progress))
    return []


@contextlib.contextmanager
def _what_they_raise(codecs: list[_laconic.Registered]) -> Iterator[None]:
    """What a codec of the caller's has raised is what went wrong."""
    try:
        yield
    except LaconicError:
        for raised in filter(None, (codec.raised() for codec in codecs)):
            raise raised from None
        raise


def _await(path: Path) -> None:
    """Waits for what worker 0 writes as a run ends."""
    until = time.monotonic() + 60
    while not path.exists():
        if time.monotonic() > until:
            raise of(5, f"{path}: worker 0 has written nothing that is seen here; only there is the result")
        time.sleep(0.05)


def _registered(found: dict[str, Any]) -> tuple[dict[str, Any], list[_laconic.Registered]]:
    """The keys with numbers for codecs that are objects; and what keeps these."""
    kept: list[_laconic.Registered] = []
    return {key: _named(value, kept) for key, value in found.items()}, kept


def _named(value: Any, kept: list[_laconic.Registered]) -> Any:
    """The value with what stands for codecs in it."""
    if hasattr(value, "encode") and hasattr(value, "decode") and not isinstance(value, (str, bytes)):
        kept.append(_laconic.Registered(value))
        return {"codec": "python", "object": kept[-1].number}
    return {key: _named(of, kept) for key, of in value.items()} if isinstance(value, Mapping) else value


def _assigned(
    partitioner: Callable[..., Any], graph: Graph | None, found: Mapping[str, Any], folder: str
) -> dict[str, Any]:
    """Keys for the parts that a function gives. They are kept beside the run's folder, whose configuration names them."""
    import numpy as np

    if graph is None:
        raise ConfigError("partitioner: it is given the graph, so pass one: train(Graph.read(path), ...)")
    if "partition.parts" not in found:
        raise ConfigError("partitioner: say how many parts there are to be: parts=4")
    parts = found["partition.parts"]
    if not isinstance(parts, int) or parts < 1:
        raise ConfigError(f"partition.parts = {parts!r}: expected a whole number from 1")
    assignment = np.asarray(partitioner(graph, parts))
    if assignment.shape != (graph.nodes,) or assignment.dtype.kind not in "iu":
        what = f"{assignment.dtype} of the shape {list(assignment.shape)}"
        raise ConfigError(f"partitioner: expected {graph.nodes} whole numbers, a part for each node, found {what}")
    path = os.path.abspath(f"{folder}.assignment.txt")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    np.savetxt(path, assignment, fmt="%d")
    return {"partition.method": "given", "partition.file": path, "partition.parts": parts}


def resume(
    run: Run | str | os.PathLike[str],
    graph: Graph | None = None,
    *,
    codec: Any = None,
    progress: bool | None = None,
    **keys: Any,
) -> Run:
    """Goes on from the last checkpoint in a run's folder; the end has the parameters of a run that was never stopped,
    bit for bit.

    Args:
        run: the run's folder, ``out`` of :func:`train`; or a run that was stopped.
        graph: the graph of the run, where it was trained on one in memory.
        codec: the codec of the run, where that is an object of your own: no folder holds it. It stands for all that the run
            had, and is to say the same of the same rows.
        progress: whether to show how far it is, on standard error.
        keys: those that may be other from here on, such as ``epochs=200``.

    Raises:
        FileError: if there is no checkpoint.
        ConfigError: if a key may not change.

    Example:
        run = lc.train(graph, epochs=20, out="runs/first", on_round=lambda round: round["round"] >= 5)
        run = lc.resume("runs/first", graph)
    """
    kept = None
    if isinstance(run, Run):
        kept, graph, run = run._kept, graph or run.graph, run.folder
    found = settings.dotted(keys)
    file = Path(run, "config.toml")
    numbers = _numbers(file)
    if codec is None and numbers:
        raise ConfigError(f"{file}: the codec of this run is a Python object, which is in no folder: codec= hands it over")
    if codec is not None and not numbers:
        raise ConfigError(f"codec: {file} names none that is a Python object; leave codec out")
    codecs = [_laconic.Registered(codec, number) for number in numbers]
    if codecs:
        inner = None if graph is None else graph._graph
        folder, words = os.fspath(run), settings.words(found)
        with _what_they_raise(codecs):
            notes = _in_this_process(lambda watch: _laconic.resume(inner, folder, words, watch), [], bool(progress))
    else:
        found = {**({} if graph is None else {"data.path": graph._file()}), **found}
        words = [word for setting in settings.words(found) for word in ("--set", setting)]
        _program.call("resume", run, *words, loud=bool(progress))
        notes = []
    resumed = Run(run, graph, notes)
    resumed._kept = (kept, codecs)
    return resumed


def _numbers(path: Path) -> list[int]:
    """What a run's configuration calls codecs that are Python objects."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return sorted({int(number) for number in re.findall(r"^object = (\d+)(?:\.0)?$", text, re.MULTILINE)})


def predict(
    run: Run | str | os.PathLike[str], graph: Graph | None = None
) -> Predictions:
    """What the model of a run, or of a run's folder, says about every node; see :meth:`Run.predictions`."""
    return (run if isinstance(run, Run) else Run(run)).predictions(graph)
