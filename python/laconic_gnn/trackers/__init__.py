"""Callbacks that tell experiment trackers about a run: a module each for MLflow, Weights & Biases and TensorBoard.

    from laconic_gnn.trackers.mlflow import MlflowTracker

    with MlflowTracker() as tracker:
        run = lc.train(graph, on_round=tracker, train={"eval_every": 5})
        tracker.finish(run)

All of them are told the same. After each evaluated round come its figures, under names such as ``val/accuracy``,
``loss`` and ``bytes`` (sent so far, by all workers together), with the round as the step. At the end come the
configuration, the figures of the best round as ``best/...``, what was sent as ``sent/total`` and ``sent/KIND`` in
bytes, and the digests of parameters and data. A tracker never stops a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..tables import flat

if TYPE_CHECKING:
    from types import TracebackType

    from ..run import Run


class Tracker:
    """What trackers have in common: they are called with rounds, are told of the end, and are closed by ``with``."""

    def __call__(self, round: Mapping[str, Any]) -> None:
        """Logs the figures of a round, as ``on_round`` of :func:`laconic_gnn.train` gets them."""
        raise NotImplementedError

    def finish(self, run: Run) -> None:
        """Logs what is known of the whole run. Call it once, after :func:`laconic_gnn.train`."""
        raise NotImplementedError

    def close(self, failed: bool = False) -> None:
        """Ends what this tracker has begun; ``with`` does so. May be called again."""
        raise NotImplementedError

    def __enter__(self) -> Tracker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close(failed=kind is not None)


def round_figures(round: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a round but its own, by names such as ``val/accuracy``."""
    return {name: value for name, value in _numbers(round).items() if name != "round"}


def run_figures(run: Run) -> dict[str, float]:
    """The numbers of a whole run: ``best/...`` of its best round, ``sent/...`` bytes, seconds and memory."""
    summary = run.summary
    metrics = dict(summary["metrics"])
    best = {"round": metrics.pop("best_round", None), **metrics}
    sent = {"total": summary["bytes"]["total"], **summary["bytes"]["by_kind"]}
    peak = summary.get("memory", {}).get("peak_bytes")
    rest = {"rounds": summary["rounds"], "seconds": summary["seconds"]["total"], "peak_memory_bytes": peak}
    return _numbers({"best": best, "sent": sent, "run": rest})


def run_parameters(run: Run) -> dict[str, Any]:
    """Every key of a run's configuration, by its name with dots."""
    return flat(run.summary["config"])


def run_texts(run: Run) -> dict[str, str]:
    """What says which run it is: digests of parameters and of data, and the version."""
    summary = run.summary
    return {
        "laconic.parameters": summary["parameters"]["digest"],
        "laconic.data": summary["data_digest"],
        "laconic.version": summary["version"],
    }


def _numbers(record: Mapping[str, Any]) -> dict[str, float]:
    """The numbers in dictionaries of dictionaries, by names with strokes; what is true, a text or not known is none."""
    return {
        name: value
        for name, value in flat(record, "/").items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
