"""A trained model as a module of PyTorch."""

from __future__ import annotations

import hashlib
import importlib.abc
import importlib.util
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _program

if TYPE_CHECKING:
    from types import ModuleType

    import torch


# The texts of modules that were made of one, by their names.
_TEXTS: dict[str, str] = {}


def module(folder: Path) -> torch.nn.Module:
    """The model of a run's folder: layers of PyTorch Geometric with the weights of the best round, ``eval()`` already.

    It is what ``laconic export FOLDER --to pyg`` writes, loaded; nothing of that stays on the disk.

    ``model(x, edge_index)`` gives logits, ``[nodes, classes]``, in the order of the run's classes;
    ``model.probabilities(x, edge_index)`` what they stand for. A model of links gives embeddings, and
    ``model.score(embeddings, pairs)`` the logit of each column of ``pairs``. A third argument is ``edge_weight`` where
    the run had weights that its layer reads, and ``edge_type`` with ``rgcn``. A layer that PyTorch Geometric does not
    have with weights (sage, gin) is one of our own in plain PyTorch.

    - ``x`` are features as they were given to the run, dense float32, ``[nodes, columns]``: what was done to them
      (standardised, rows normalised) is done in the model, in 64 bits. Where nodes have types they are the columns of
      all types side by side (``features`` of :meth:`Graph.arrays <laconic_gnn.Graph.arrays>`).
    - ``edge_index`` holds each edge once, in both directions where the run had both, without edges from a node to
      itself: as :meth:`Graph.to_pyg <laconic_gnn.Graph.to_pyg>` gives it. Other lists give other logits.
    - ``state_dict()`` has the names that PyTorch Geometric gives (``convs.0.lin_l.weight``), those of
      :attr:`Run.weights <laconic_gnn.Run.weights>`, and besides ``scale.mean`` and ``scale.deviation`` (float64) where
      features were standardised.
    - ``train()`` and further training work, on a GPU too; dropout is not part of it, and batch norms then take the
      statistics of what they are given. ``half()`` and ``bfloat16()`` do not go with standardised features.
    - ``copy.deepcopy``, ``pickle`` and ``torch.save`` keep the whole model, with its code; whoever loads it
      (``torch.load(file, weights_only=False)``) needs laconic_gnn and what the model is made of.

    Args:
        folder: a run's, with ``config.toml`` and ``model.safetensors``.

    Raises:
        ImportError: without torch, or without torch_geometric where the model has layers of it; of that 2.5 and newer
            will do (2.3 for all layers but gat).
        ConfigError: for a model that has no form there, such as rgcn with weights of edges.
        FileError: if the folder is not a run's.
    """
    with tempfile.TemporaryDirectory(prefix="laconic-") as out:
        _program.call("export", folder, "--to", "pyg", "--out", out)
        loaded = _loaded((Path(out) / "load.py").read_text(encoding="utf-8"))
        try:
            built: torch.nn.Module = loaded.load(Path(out) / "model.safetensors")
        except RuntimeError as error:
            what = "torch_geometric: layers of this version have other parameters (GATConv before 2.5)"
            raise ImportError(f"{what}; pip install --upgrade torch_geometric") from error
        return built


def _loaded(text: str) -> ModuleType:
    """The module of a ``load.py``, once for each text. Its classes are pickled with the text, so that another process
    can have them."""
    name = f"{__package__}._model_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    import torch

    spec = importlib.util.spec_from_loader(name, _Text(text))
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(made)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        what = f"the model is made of {package}, which is not installed"
        raise ImportError(f"{what}: pip install {package}") from error
    for kind in vars(made).values():
        if isinstance(kind, type) and issubclass(kind, torch.nn.Module) and kind.__module__ == name:
            setattr(kind, "__reduce_ex__", _reduce)  # noqa: B010
    sys.modules[name], _TEXTS[name] = made, text
    return made


class _Text(importlib.abc.ExecutionLoader):
    """What imports a module from a text, and shows its lines to tracebacks and ``inspect``."""

    def __init__(self, text: str) -> None:
        self.text = text

    def get_source(self, fullname: str) -> str:
        return self.text

    def get_filename(self, fullname: str) -> str:
        return f"<{fullname}>/load.py"


def _reduce(self: torch.nn.Module, protocol: int) -> tuple[Any, ...]:
    """How ``pickle`` keeps an object whose class is in no file."""
    return _empty, (_TEXTS[type(self).__module__], type(self).__name__), self.__dict__


def _empty(text: str, name: str) -> torch.nn.Module:
    """An object of a class of a ``load.py`` before its attributes are set."""
    kind = getattr(_loaded(text), name)
    made: torch.nn.Module = kind.__new__(kind)
    return made
