"""Graphs of NetworkX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import checks
from ..errors import DataError
from .numpy import split as masks_of_words


def arguments(
    graph: Any, x: Any = None, y: Any = None, *, weight: str | None = "weight", split: str | None = None, **masks: Any
) -> dict[str, Any]:
    """Keyword arguments of ``Graph.from_numpy``; nodes are the ids, in the order of the graph.

    Args:
        graph: a ``Graph``, ``DiGraph``, ``MultiGraph`` or ``MultiDiGraph``. Parallel edges are one edge with the sum of
            their weights; edges of a graph without directions lead both ways.
        x: an array ``[nodes, columns]``, or the name of an attribute, or a list of names: of numbers or vectors, which
            every node has.
        y: an array of labels, or the name of an attribute; nodes without it have none.
        weight: the attribute of edges that is their weight. An edge without one among others that have one weighs 1.
        split: the attribute of nodes that is train, val or test.
        masks: ``train_mask`` and so on: arrays, or names of attributes; nodes without one are not in it.

    Raises:
        DataError: if a node lacks an attribute, or it is no number.
    """
    import numpy as np

    nodes = list(graph.nodes)
    place = {node: number for number, node in enumerate(nodes)}
    ends = np.array([(place[a], place[b]) for a, b in graph.edges()], dtype=np.int64).reshape(-1, 2)
    weights = [] if weight is None else [of for _, _, of in graph.edges(data=weight)]
    attributes = [graph.nodes[node] for node in nodes]
    return {
        "edge_index": ends.T,
        "edge_weight": edge_weights(weights),
        "num_nodes": len(nodes),
        "ids": nodes,
        "undirected": not graph.is_directed(),
        **features(x, attributes, nodes),
        "y": [of.get(y) for of in attributes] if isinstance(y, str) else y,
        **({} if split is None else masks_of_words(of.get(split) for of in attributes)),
        **{name: truths(of, attributes) if isinstance(of, str) else of for name, of in masks.items()},
    }


def edge_weights(found: Sequence[Any]) -> Any:
    """Weights of edges, 1 where there is none among others; None where there are none at all."""
    import numpy as np

    if all(of is None for of in found):
        return None
    return checks.numbers("edge_weight", np.array([1 if of is None else of for of in found]))


def features(x: Any, attributes: Sequence[Mapping[str, Any]], nodes: Sequence[Any]) -> dict[str, Any]:
    """Features from attributes of nodes, if names are given, and what their columns are called."""
    import numpy as np

    names = [x] if isinstance(x, str) else x
    if not isinstance(names, (list, tuple)) or not names or not all(isinstance(name, str) for name in names):
        return {"x": x}
    columns, called = [], []
    for name in names:
        bare = [node for node, of in zip(nodes, attributes) if of.get(name) is None]
        if bare:
            raise DataError(f"x: {len(bare)} of {len(nodes)} nodes have no attribute {name!r}, such as {bare[0]!r}")
        column = checks.numbers(f"x: attribute {name!r}", np.array([of[name] for of in attributes]))
        column = column.reshape(len(nodes), -1)
        columns.append(column)
        called += [name] if column.shape[1] == 1 else [f"{name}.{number}" for number in range(column.shape[1])]
    return {"x": np.concatenate(columns, axis=1), "feature_names": called}


def truths(name: str, attributes: Sequence[Mapping[str, Any]]) -> list[bool]:
    """Who has an attribute that is true."""
    return [bool(of.get(name, False)) for of in attributes]
