"""Sparse matrices and arrays of SciPy."""

from __future__ import annotations

from typing import Any

from ..errors import DataError


def arguments(adjacency: Any, x: Any = None, y: Any = None) -> dict[str, Any]:
    """Keyword arguments of ``Graph.from_numpy``.

    Args:
        adjacency: a matrix or an array, ``[nodes, nodes]``, of any sparse format; it is not changed. Each stored value
            of row ``i`` and column ``j``, also 0, is an edge from ``i`` to ``j``. Values are weights unless all are 1
            or true; those that are stored several times for one place are added, as SciPy does.
        x: features, ``[nodes, columns]``, dense or sparse.
        y: labels, as in ``Graph.from_numpy``.

    Raises:
        DataError: if the matrix is dense or not square.
    """
    import numpy as np

    if not hasattr(adjacency, "tocoo"):
        found, way = type(adjacency).__name__, "scipy.sparse.coo_array(adjacency) makes one"
        raise DataError(f"adjacency: expected a sparse matrix of SciPy, found {found}; {way}")
    if len(adjacency.shape) != 2 or adjacency.shape[0] != adjacency.shape[1]:
        shape = list(adjacency.shape)
        way = "of nodes of two kinds scipy.sparse.block_array([[None, adjacency], [adjacency.T, None]]) has both"
        raise DataError(f"adjacency: expected as many rows as columns, found {shape}; {way}")
    entries = adjacency.tocoo()
    if not entries.has_canonical_format:
        entries = entries.copy()
        entries.sum_duplicates()
    return {
        "edge_index": np.stack([entries.row, entries.col]),
        "edge_weight": None if np.all(entries.data == 1) else entries.data,
        "num_nodes": entries.shape[0],
        "x": x,
        "y": y,
    }
