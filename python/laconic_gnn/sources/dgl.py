"""Graphs of DGL, of one type or of several."""

from __future__ import annotations

from typing import Any

from .. import checks
from ..errors import DataError
from . import pyg
from .numpy import MASKS, array

_WEIGHTS = ("weight", "w", "edge_weight")
# What DGL itself adds: the type of each node and edge, and their numbers before.
_TYPE, _ID = "_TYPE", "_ID"


def arguments(graph: Any, x: str = "feat", y: str = "label", *, weight: str | None = None) -> dict[str, Any]:
    """Keyword arguments of ``Graph.from_numpy``.

    Edges are as DGL has them, each one way. ``train_mask``, ``val_mask`` and ``test_mask`` of nodes are the split.
    ``etype`` of edges, or ``_TYPE`` as ``dgl.to_homogeneous`` leaves it, are relations.

    The types of a graph of several come one after the other, in their order: its nodes are called ``TYPE/ROW``, its
    relations ``SOURCE__NAME__TARGET``, and every type has feature columns of its own.

    Args:
        graph: a ``DGLGraph``; it is not changed.
        x: the features among the data of nodes.
        y: the labels among them.
        weight: the weights among the data of edges; without it ``weight``, ``w`` or ``edge_weight``, if there is one.

    Raises:
        DataError: if the graph is on a GPU, or has no data of a name that was given.
    """
    if graph.device.type != "cpu":
        raise DataError(f"graph: expected a graph in main memory, found one on {graph.device}; graph.cpu() is one")
    names = {"x": x, "y": y}
    for name, column in names.items():
        stores = [graph.nodes[kind].data for kind in graph.ntypes]
        if not any(column in store for store in stores):
            known = sorted({key for store in stores for key in store} - {*MASKS, _TYPE, _ID, x, y})
            if column not in ("feat", "label"):
                raise DataError(f"{name}: expected one of {', '.join(known) or 'nothing'}, found {column!r}")
            if known:
                checks.note(f"{name}: no node has {column!r}, but there are {', '.join(known)}; {name}= names one")
    if len(graph.ntypes) > 1 or len(graph.canonical_etypes) > 1:
        return pyg.of_types(_Types(graph, names, weight))
    return _of_one(graph, names, weight)


def _of_one(graph: Any, names: dict[str, str], weight: str | None) -> dict[str, Any]:
    import numpy as np

    nodes, edges = graph.ndata, graph.edata
    found: dict[str, Any] = {
        "edge_index": np.stack([array("edge_index", ends) for ends in graph.edges(order="eid")]),
        "num_nodes": graph.num_nodes(),
        **{name: nodes[column] for name, column in names.items() if column in nodes},
        **{mask: nodes[mask] for mask in MASKS if mask in nodes},
        "edge_weight": _weights(edges, weight, graph.num_edges()),
    }
    types = next((edges[key] for key in ("etype", _TYPE) if key in edges), None)
    if types is not None:
        found["edge_type"] = array("edge_type", types).reshape(-1)
    if _TYPE in nodes:
        # The numbers of nodes are then those among their type.
        found["node_type"] = array("node_type", nodes[_TYPE])
    elif _ID in nodes:
        found["ids"] = array("ids", nodes[_ID])
    return found


def _weights(edges: Any, weight: str | None, count: int) -> Any:
    if weight is not None and weight not in edges:
        raise DataError(f"weight: expected one of {', '.join(edges) or 'nothing'}, found {weight!r}")
    for key in (weight,) if weight else _WEIGHTS:
        if key in edges:
            values = array("edge_weight", edges[key])
            if values.size == count:
                return values.reshape(-1)
            if weight:
                raise DataError(f"weight: expected one number an edge, found the shape {list(values.shape)}")
    return None


class _Types:
    """A graph of several types as PyTorch Geometric's ``HeteroData`` is asked for them."""

    def __init__(self, graph: Any, names: dict[str, str], weight: str | None) -> None:
        self.node_types = list(graph.ntypes)
        self.edge_types = list(graph.canonical_etypes)
        self._graph, self._names, self._weight = graph, names, weight

    def __getitem__(self, key: Any) -> dict[str, Any]:
        import torch

        graph = self._graph
        if isinstance(key, tuple):
            ends = torch.stack(graph.edges(etype=key, order="eid"))
            # A weight that only some relations have is that of these.
            weight = self._weight if self._weight in graph.edges[key].data else None
            return {"edge_index": ends, "edge_weight": _weights(graph.edges[key].data, weight, ends.shape[1])}
        data = graph.nodes[key].data
        columns = {**self._names, **{mask: mask for mask in MASKS}}
        return {
            "num_nodes": graph.num_nodes(key),
            **{name: data[column] for name, column in columns.items() if column in data},
        }
