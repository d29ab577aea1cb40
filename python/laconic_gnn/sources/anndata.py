"""Cells with their neighbours, as AnnData has them."""

from __future__ import annotations

from typing import Any

from ..errors import DataError
from . import scipy
from .numpy import split as masks_of_words


def arguments(
    cells: Any,
    label: str | None = None,
    *,
    key: str = "connectivities",
    features: str | None = None,
    split: str | None = None,
) -> dict[str, Any]:
    """Keyword arguments of ``Graph.from_numpy``; ``obs_names`` are the ids.

    Args:
        cells: an ``AnnData`` with a matrix of neighbours, such as ``scanpy.pp.neighbors`` adds.
        label: the column of ``obs`` with the classes, such as ``"cell_type"``; those of categories keep their order.
        key: the matrix of ``obsp`` whose entries are edges and their weights.
        features: the matrix of ``obsm`` with the features, or ``"X"``; without it ``X_pca`` where it is there, else
            ``X``.
        split: the column of ``obs`` that is train, val or test.

    Raises:
        DataError: if there is no such matrix or column; the message lists those there are.
    """
    matrix = _of(cells.obsp, "key", key, "scanpy.pp.neighbors(cells) adds connectivities")
    if features is None:
        features = "X_pca" if "X_pca" in cells.obsm else "X"
    found: dict[str, Any] = {
        **scipy.arguments(matrix),
        "x": cells.X if features == "X" else _of(cells.obsm, "features", features, '"X" is the matrix itself'),
        "ids": [str(name) for name in cells.obs_names],
    }
    if features == "X":
        found["feature_names"] = [str(name) for name in cells.var_names]
    if label is not None:
        found["y"] = _of(cells.obs, "label", label, "these are the columns of obs")
    if split is not None:
        found.update(masks_of_words(_of(cells.obs, "split", split, "these are the columns of obs")))
    return found


def _of(things: Any, argument: str, name: str, way: str) -> Any:
    if name not in things:
        there = ", ".join(map(str, things.keys())) or "nothing"
        raise DataError(f"{argument}: expected one of {there}, found {name!r}; {way}")
    return things[name]
