"""Graphs of igraph."""

from __future__ import annotations

from typing import Any

from .networkx import edge_weights, features, truths
from .numpy import split as masks_of_words


def arguments(
    graph: Any,
    x: Any = None,
    y: Any = None,
    *,
    ids: Any = None,
    weight: str | None = "weight",
    split: str | None = None,
    **masks: Any,
) -> dict[str, Any]:
    """Keyword arguments of ``Graph.from_numpy``.

    Args:
        graph: an ``igraph.Graph``. Parallel edges are one edge with the sum of their weights; edges of a graph without
            directions lead both ways.
        x: an array ``[nodes, columns]``, or the name of an attribute of vertices, or a list of names: of numbers or
            vectors, which every vertex has.
        y: an array of labels, or the name of an attribute; vertices without it have none.
        ids: an array, or the name of an attribute; without it ``name``, where vertices have that.
        weight: the attribute of edges that is their weight. An edge without one among others that have one weighs 1.
        split: the attribute of vertices that is train, val or test.
        masks: ``train_mask`` and so on: arrays, or names of attributes.

    Raises:
        DataError: if a vertex lacks an attribute, or it is no number.
    """
    import numpy as np

    known = graph.vs.attributes()
    if ids is None and "name" in known:
        ids = "name"
    columns = [graph.vs[name] for name in known]
    attributes = [dict(zip(known, row)) for row in zip(*columns)] or [{} for _ in range(graph.vcount())]
    weights = graph.es[weight] if weight in graph.es.attributes() else []
    return {
        "edge_index": np.array(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2).T,
        "edge_weight": edge_weights(weights),
        "num_nodes": graph.vcount(),
        "ids": [of.get(ids) for of in attributes] if isinstance(ids, str) else ids,
        "undirected": not graph.is_directed(),
        **features(x, attributes, range(graph.vcount())),
        "y": [of.get(y) for of in attributes] if isinstance(y, str) else y,
        **({} if split is None else masks_of_words(of.get(split) for of in attributes)),
        **{name: truths(of, attributes) if isinstance(of, str) else of for name, of in masks.items()},
    }
