"""MLflow: metrics of rounds, parameters and tags of a run of its."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import Tracker, round_figures, run_figures, run_parameters, run_texts

if TYPE_CHECKING:
    from ..run import Run

# The most parameters that MLflow takes at once, and the longest.
_AT_ONCE = 100
_LONGEST = 6000


class MlflowTracker(Tracker):
    """Logs to the active run of MLflow, or begins one, which ``close`` ends.

    Attributes:
        run_id: the run of MLflow.
    """

    def __init__(self, **start: Any) -> None:
        """Args:
            start: for ``mlflow.start_run`` where no run is active, such as ``run_name="lazy"``.

        Raises:
            ImportError: if MLflow is not installed.
        """
        try:
            import mlflow
        except ImportError:
            raise ImportError("MlflowTracker needs MLflow: pip install mlflow") from None
        active = mlflow.active_run()
        self._began = active is None
        self.run_id: str = (active or mlflow.start_run(**start)).info.run_id
        # Rounds are told from a thread of the run, and MLflow's functions log to the run that is active in their own
        # thread: there they would begin another one.
        self._client = mlflow.MlflowClient()

    def __call__(self, round: Mapping[str, Any]) -> None:
        self._metrics(round_figures(round), round["round"])

    def finish(self, run: Run) -> None:
        from mlflow.entities import Param, RunTag

        self._metrics(run_figures(run), run.summary["rounds"])
        texts = [Param(_name(name), str(value)[:_LONGEST]) for name, value in run_parameters(run).items()]
        left = iter(texts)
        while some := list(itertools.islice(left, _AT_ONCE)):
            self._client.log_batch(self.run_id, params=some)
        self._client.log_batch(self.run_id, tags=[RunTag(name, text) for name, text in run_texts(run).items()])

    def close(self, failed: bool = False) -> None:
        if self._began:
            import mlflow

            self._began = False
            mlflow.end_run("FAILED" if failed else "FINISHED")

    def _metrics(self, figures: Mapping[str, float], step: int) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        metrics = [Metric(_name(name), float(value), now, step) for name, value in figures.items()]
        self._client.log_batch(self.run_id, metrics=metrics)


def _name(name: str) -> str:
    """A name as MLflow takes it: ``hits@10`` is ``hits_at_10``."""
    return re.sub(r"[^\w\-./ ]", "_", name.replace("@", "_at_"))
