"""TensorBoard: event files with a scalar for each figure.

Written by tensorboardX, which is small (NumPy and protobuf are all it needs) and whose writer is the one that
``torch.utils.tensorboard`` has, too: the writer of TensorBoard itself is marked as experimental and knows no texts, and
PyTorch's needs PyTorch and TensorBoard.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import Tracker, round_figures, run_figures, run_parameters, run_texts

if TYPE_CHECKING:
    from ..run import Run


class TensorBoardTracker(Tracker):
    """Writes event files into a folder, which ``tensorboard --logdir FOLDER`` shows.

    Attributes:
        writer: the ``SummaryWriter``.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, *, writer: Any = None) -> None:
        """Args:
            folder: where to write, a folder for each run.
            writer: instead of it a ``SummaryWriter`` of yours, tensorboardX's or PyTorch's, which you will close.

        Raises:
            ImportError: if tensorboardX is not installed and no writer is given.
            ValueError: if neither or both are given.
        """
        if (folder is None) == (writer is None):
            raise ValueError("TensorBoardTracker: give a folder to write into, or a writer")
        self._began = writer is None
        if folder is not None:
            try:
                from tensorboardX import SummaryWriter
            except ImportError:
                raise ImportError(
                    "TensorBoardTracker(folder) needs tensorboardX: pip install tensorboardX; "
                    "or TensorBoardTracker(writer=torch.utils.tensorboard.SummaryWriter(folder))"
                ) from None
            writer = SummaryWriter(os.fspath(folder))
        self.writer = writer

    def __call__(self, round: Mapping[str, Any]) -> None:
        self._scalars(round_figures(round), round["round"])

    def finish(self, run: Run) -> None:
        self._scalars(run_figures(run), run.summary["rounds"])
        # Indented text is shown as it is.
        lines = [f"    {name} = {value}" for name, value in run_parameters(run).items()]
        self.writer.add_text("config", "\n".join(lines))
        for name, text in run_texts(run).items():
            self.writer.add_text(name, text)
        self.writer.flush()

    def close(self, failed: bool = False) -> None:
        if self._began:
            self._began = False
            self.writer.close()

    def _scalars(self, figures: Mapping[str, float], step: int) -> None:
        for name, value in figures.items():
            # TensorBoard has no @ in names: hits@10 is hits_at_10.
            self.writer.add_scalar(name.replace("@", "_at_"), value, step)
