"""Weights & Biases: history, configuration and summary of a run of its."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import Tracker, round_figures, run_figures, run_parameters, run_texts

if TYPE_CHECKING:
    import wandb

    from ..run import Run


class WandbTracker(Tracker):
    """Logs to a run of Weights & Biases, which stays on this machine unless you say otherwise.

    Attributes:
        run: the run of Weights & Biases.
    """

    def __init__(self, run: wandb.Run | None = None, **init: Any) -> None:
        """Args:
            run: a run that you have begun and will finish; otherwise one is begun here, which ``close`` finishes.
            init: for ``wandb.init`` then, such as ``project="sites"``. ``mode`` is ``"offline"`` unless given: nothing
                is uploaded before ``wandb sync``.

        Raises:
            ImportError: if wandb is not installed.
        """
        try:
            import wandb
        except ImportError:
            raise ImportError("WandbTracker needs Weights & Biases: pip install wandb") from None
        self._began = run is None
        self.run = wandb.init(**{"mode": "offline", **init}) if run is None else run

    def __call__(self, round: Mapping[str, Any]) -> None:
        self.run.log(round_figures(round), step=round["round"])

    def finish(self, run: Run) -> None:
        config: Any = self.run.config
        config.update(run_parameters(run))
        self.run.summary.update({**run_figures(run), **run_texts(run)})

    def close(self, failed: bool = False) -> None:
        if self._began:
            self._began = False
            self.run.finish(exit_code=int(failed))
