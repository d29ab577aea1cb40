"""``Data`` and ``HeteroData`` of PyTorch Geometric, as arrays of the interchange format and back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..errors import DataError
from .numpy import MASKS, array, features, labels, widened

if TYPE_CHECKING:
    import numpy as np

    from ..graph import Graph

# Links to be predicted, and pairs that are none, under the names of the interchange format.
_HELD = ("edge_index", "edge_type", "neg_edge_index", "neg_targets")
HELD_OUT = tuple(f"{split}_{name}" for split in ("val", "test") for name in _HELD)


def arguments(data: Any) -> dict[str, Any]:
    """Keyword arguments for :meth:`Graph.from_numpy <laconic_gnn.Graph.from_numpy>`.

    ======================================================  =========================================================
    attribute                                               what becomes of it
    ======================================================  =========================================================
    ``edge_index``, or else ``adj_t``                       edges; a sparse tensor's values that are not all 1 weigh
    ``edge_weight``, or else ``edge_attr`` of one number    the weight of each edge
    ``edge_attr`` of several numbers                        is named in ``roles`` as left out: edges have no features
    ``x``, dense or sparse (CSR, CSC, COO, SparseTensor)    features
    ``y``                                                   a class a node, or a column of 0 and 1 for each class
    ``train_mask``, ``val_mask``, ``test_mask``             the split; with a column each, several splits
    ``edge_type``, ``node_type``                            relations of edges and types of nodes
    ``n_id``                                                the nodes' ids
    ``val_edge_index`` …                                    links that are held out, as in the interchange format
    ======================================================  =========================================================

    Other attributes are not read. ``x`` that is C-contiguous float32 or bfloat16 stays where it is, all else is copied
    once on its way into the graph; the types of 8 bits become float32 in that copy.

    The types of a ``HeteroData`` come one after the other, in their order. Its nodes are called ``TYPE/ROW``
    (``TYPE/ID`` with ``n_id``), its relations ``SOURCE__NAME__TARGET``, and every type of nodes has its own feature
    columns and one more that is 1 for its nodes, as wherever the program reads types.

    Args:
        data: a ``torch_geometric.data.Data`` or ``HeteroData``; it is not changed.

    Raises:
        DataError: for tensors on a GPU, ends of edges that are no nodes, types without a count of nodes, labels of two
            types, weights of some relations only; and what :meth:`Graph.from_numpy` refuses.
    """
    from torch_geometric.data import Data, HeteroData

    if isinstance(data, HeteroData):
        return of_types(data)
    if not isinstance(data, Data):
        hint = "; dataset[0] is one of a dataset's graphs" if hasattr(data, "get_summary") else ""
        raise DataError(f"expected a Data or HeteroData of torch_geometric, found {type(data).__name__}{hint}")
    store = data.stores[0]
    ends, weights, size = _ends(store, "data")
    found: dict[str, Any] = {"edge_index": ends, "edge_weight": weights}
    found["num_nodes"] = int(store["num_nodes"]) if _given(store, "num_nodes") else size
    if _given(store, "x"):
        found.update(_features("x", store["x"]))
    for name in ("y", *MASKS, "node_type", *HELD_OUT):
        found[name] = store[name] if _given(store, name) else None
    if _given(store, "edge_type"):
        found["edge_type"] = array("edge_type", store["edge_type"]).reshape(-1)
        if not found["edge_type"].size:
            # Without edges nothing else says how many there are.
            found["num_relations"] = len(getattr(store, "_edge_type_names", None) or [0])
    if _given(store, "n_id"):
        found["ids"] = array("n_id", store["n_id"])
    if weights is None and _given(store, "edge_attr"):
        found["edge_attr"] = store["edge_attr"]
    # As HeteroData.to_homogeneous() leaves them.
    if getattr(store, "_edge_type_names", None):
        found["relation_names"] = ["__".join(name) for name in store._edge_type_names]
    if getattr(store, "_node_type_names", None):
        found["node_type_names"] = list(store._node_type_names)
    return {name: value for name, value in found.items() if value is not None}


def of_types(data: Any) -> dict[str, Any]:
    """The same of a ``HeteroData``."""
    import numpy as np

    kinds = list(dict.fromkeys([*data.node_types, *(end for s, _, t in data.edge_types for end in (s, t))]))
    counts = [_count(data[kind] if kind in data.node_types else {}, kind) for kind in kinds]
    starts = dict(zip(kinds, np.cumsum([0, *counts]).tolist()))
    stores = {kind: data[kind] for kind in data.node_types}
    found: dict[str, Any] = {"num_nodes": sum(counts), "node_type": np.repeat(np.arange(len(kinds)), counts)}
    found.update(_edges_by_types(data, starts, dict(zip(kinds, counts))))
    columns: list[int] = []
    names: list[str] = []
    parts = []
    for kind, count in zip(kinds, counts):
        store = stores.get(kind, {})
        x = _features(f"data[{kind!r}].x", store["x"]) if _given(store, "x") else {}
        indptr, indices, values, width = _rows(x, count, kind)
        parts.append((indptr, indices + sum(columns), values))
        columns.append(width)
        names += [*(f"{kind}.{column}" for column in range(width - 1)), kind]
    found["features_indptr"] = np.cumsum(np.concatenate([[0], *(np.diff(part[0]) for part in parts)]), dtype=np.int64)
    found["features_indices"] = np.concatenate([part[1] for part in parts])
    found["features_data"] = np.concatenate([part[2] for part in parts])
    found["features_shape"] = np.array([sum(counts), sum(columns)])
    about = {
        "relations": ["__".join(name) for name in data.edge_types],
        "node_types": [{"name": kind, "columns": width} for kind, width in zip(kinds, columns)],
        "features": names,
    }
    found["about"] = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    found["ids"] = []
    for kind, count in zip(kinds, counts):
        store = stores.get(kind, {})
        rows = _own("n_id", store, kind, count).tolist() if _given(store, "n_id") else range(count)
        found["ids"] += [f"{kind}/{row}" for row in rows]
    labelled = [kind for kind in stores if _given(stores[kind], "y")]
    if len(labelled) > 1:
        last = labelled[-1]
        what = f"y: expected labels of one type of nodes, found some of {', '.join(labelled)}"
        raise DataError(f"{what}; del data[{last!r}].y leaves one out")
    for kind in labelled:
        y = labels(_own("y", stores[kind], kind, counts[kinds.index(kind)]))["y"]
        found["y"] = _spread(y if y.ndim == 2 and y.shape[1] > 1 else y.reshape(-1), starts[kind], sum(counts))
    for mask in MASKS:
        masked = [kind for kind in stores if _given(stores[kind], mask)]
        of = {kind: _own(mask, stores[kind], kind, counts[kinds.index(kind)]) for kind in masked}
        if of:
            splits = {each.shape[1] for each in of.values() if each.ndim == 2 and each.shape[1] != 1} or {1}
            if len(splits) > 1:
                raise DataError(f"{mask}: expected as many splits of each type of nodes, found {sorted(splits)}")
            every = np.zeros((sum(counts), *splits), dtype=bool)
            for kind, each in of.items():
                every[starts[kind] : starts[kind] + len(each)] = each.reshape(len(each), -1)
            found[mask] = every if every.shape[1] > 1 else every[:, 0]
    return found


def _edges_by_types(data: Any, starts: dict[str, int], counts: dict[str, int]) -> dict[str, Any]:
    """The edges of all relations, by the rows of all nodes."""
    import numpy as np

    ends, weights = [], []
    for relation in data.edge_types:
        where = f"data[{relation!r}]"
        of, weight, _ = _ends(data[relation], where)
        source, _, target = relation
        for row, kind in enumerate((source, target)):
            if of.shape[1] and not 0 <= of[row].min() <= of[row].max() < counts[kind]:
                outside = of[row].min() if of[row].min() < 0 else of[row].max()
                side = ("sources", "targets")[row]
                raise DataError(f"{where}: expected {side} in 0..{counts[kind]} ({kind}), found {outside}")
        ends.append(of.astype(np.int64) + np.array([[starts[source]], [starts[target]]]))
        weights.append(weight)
    there = [weight for weight in weights if weight is not None]
    bare = [relation for relation, weight in zip(data.edge_types, weights) if weight is None]
    if there and bare:
        what = f"edge_weight: expected weights of all relations or of none; {bare[0]!r} has none"
        raise DataError(f"{what}: data[{bare[0]!r}].edge_weight = torch.ones(...) gives it some")
    return {
        "edge_index": np.concatenate([np.empty((2, 0), dtype=np.int64), *ends], axis=1),
        "edge_type": np.repeat(np.arange(len(ends)), [of.shape[1] for of in ends]),
        "num_relations": len(ends),
        **({"edge_weight": np.concatenate(there)} if there else {}),
    }


def data(graph: Graph) -> Any:
    """The graph as a ``torch_geometric.data.Data``, or as a ``HeteroData`` where types of nodes are told apart.

    Edges are those that the program trains on: each once, in both directions where it was read as undirected, those
    from a node to itself left out unless the graph was told to keep them, and edges that were listed several times as
    one, with the sum of their weights. They ascend by target and, of one target, by source (and relation).

    ``edge_index``, ``edge_type`` and a class a node are int64, weights and features float32 (features float64 where 32
    bits would lose too much of them), several classes a node float32 columns of 0 and 1 with NaN where unknown, masks
    bool. All three masks are there where one was. Sparse features of a ``Data`` are a ``torch.sparse_csr`` tensor,
    those of types dense. Ids that are numbers, and not just rows, are ``n_id``.

    A type of a ``HeteroData`` has ``y`` if a label of it is known, and masks if one of its nodes is in a split.

    Returns:
        tensors of its own: to change them does not change the graph.
    """
    import torch
    from torch_geometric.data import Data

    arrays = graph.arrays()
    about = json.loads(arrays["about"].tobytes()) if "about" in arrays else {}
    if about.get("node_types") and "node_type" in arrays:
        return _to_types(arrays, about)
    found = Data(edge_index=torch.from_numpy(arrays["edge_index"]).long())
    if "edge_weight" in arrays:
        found.edge_weight = torch.from_numpy(arrays["edge_weight"])
    if "features" in arrays:
        found.x = torch.from_numpy(arrays["features"])
    elif "features_data" in arrays:
        indptr, indices, values = (torch.from_numpy(arrays[f"features_{of}"]) for of in ("indptr", "indices", "data"))
        size = arrays["features_shape"].tolist()
        found.x = torch.sparse_csr_tensor(indptr, indices, values, size=size, check_invariants=False)
    else:
        found.num_nodes = int(arrays["num_nodes"][0])
    if "labels" in arrays:
        found.y = _labels(arrays["labels"])
    for mask in MASKS:
        if mask in arrays:
            found[mask] = torch.from_numpy(arrays[mask] != 0)
    for name in ("edge_type", *HELD_OUT):
        if name in arrays:
            found[name] = torch.from_numpy(arrays[name]).long()
    if "ids" in arrays:
        found.n_id = torch.from_numpy(arrays["ids"])
    return found


def _to_types(arrays: dict[str, np.ndarray], about: dict[str, Any]) -> Any:
    """The same of nodes of several types."""
    import numpy as np
    import torch
    from torch_geometric.data import HeteroData

    of, kinds = arrays["node_type"], [kind["name"] for kind in about["node_types"]]
    rows = [np.flatnonzero(of == number) for number in range(len(kinds))]
    # The place of each node among those of its type.
    place = np.empty(len(of), dtype=np.int64)
    for own in rows:
        place[own] = np.arange(len(own))
    found, end = HeteroData(), 0
    for kind, described, own in zip(kinds, about["node_types"], rows):
        store, start, end = found[kind], end, end + described["columns"]
        if described["columns"] > 1:
            store.x = torch.from_numpy(_own_columns(arrays, own, start, end - 1))
        else:
            store.num_nodes = len(own)
        if "labels" in arrays:
            own_labels = arrays["labels"][own]
            if (own_labels >= 0).any():
                store.y = _labels(own_labels)
        masks = {mask: arrays[mask][own] != 0 for mask in MASKS if mask in arrays}
        if any(mask.any() for mask in masks.values()):
            for mask, each in masks.items():
                store[mask] = torch.from_numpy(each)
        ids = _own_ids(arrays, own, kind)
        if ids is not None and not np.array_equal(ids, np.arange(len(own))):
            store.n_id = torch.from_numpy(ids)
    _add_relations(found, arrays, about.get("relations", []), (kinds, place))
    return found


def _add_relations(found: Any, arrays: dict[str, np.ndarray], names: list[str], nodes: tuple[list[str], Any]) -> None:
    """Gives a ``HeteroData`` its edges; a relation between several pairs of types becomes one for each pair."""
    import numpy as np
    import torch

    (kinds, place), of, ends = nodes, arrays["node_type"], arrays["edge_index"]
    relations = arrays.get("edge_type", np.zeros(ends.shape[1], dtype=np.int64))
    count = int(arrays["num_relations"][0]) if "num_relations" in arrays else 1
    pairs = of[ends].astype(np.int64)
    pair = pairs[0] * len(kinds) + pairs[1]
    for number in range(count):
        name = names[number] if number < len(names) else str(number) if "edge_type" in arrays else "to"
        here = np.flatnonzero(relations == number)
        between = [(kinds[both // len(kinds)], kinds[both % len(kinds)]) for both in np.unique(pair[here]).tolist()]
        # Without edges the name alone says between which types it is.
        every = [(source, target) for source in kinds for target in kinds]
        for source, target in between or [both for both in every if _short(name, *both) != name][:1]:
            own = here[(pairs[0][here] == kinds.index(source)) & (pairs[1][here] == kinds.index(target))]
            short = _short(name, source, target)
            relation = (source, name if (source, short, target) in found.edge_types else short, target)
            found[relation].edge_index = torch.from_numpy(place[ends[:, own]])
            if "edge_weight" in arrays:
                found[relation].edge_weight = torch.from_numpy(arrays["edge_weight"][own])


def _short(name: str, source: str, target: str) -> str:
    """What a relation between these types is called within them."""
    for before, (first, last) in (("", (source, target)), ("rev_", (target, source))):
        begin, finish = f"{before}{first}__", f"__{last}"
        if name.startswith(begin) and name.endswith(finish) and len(name) > len(begin) + len(finish):
            return before + name[len(begin) : -len(finish)]
    return name


def _own_columns(arrays: dict[str, np.ndarray], own: np.ndarray, start: int, end: int) -> np.ndarray:
    """Some columns of some nodes' features, dense."""
    import numpy as np

    if "features" in arrays:
        return np.ascontiguousarray(arrays["features"][own, start:end])
    indptr, indices, values = (arrays[f"features_{part}"] for part in ("indptr", "indices", "data"))
    dense = np.zeros((len(own), end - start), dtype=values.dtype)
    place = np.full(len(indptr) - 1, -1, dtype=np.int64)
    place[own] = np.arange(len(own))
    rows = np.repeat(place, np.diff(indptr))
    kept = (rows >= 0) & (indices >= start) & (indices < end)
    dense[rows[kept], indices[kept] - start] = values[kept]
    return dense


def _own_ids(arrays: dict[str, np.ndarray], own: np.ndarray, kind: str) -> np.ndarray | None:
    """The ids of some nodes, if they are numbers; ``TYPE/NUMBER`` is one."""
    import numpy as np

    if "ids" in arrays:
        numbers: np.ndarray = arrays["ids"][own]
        return numbers
    if "ids_data" not in arrays:
        return None
    text, ends = arrays["ids_data"].tobytes(), arrays["ids_offsets"]
    ids = [text[ends[row] : ends[row + 1]].decode().removeprefix(f"{kind}/") for row in own.tolist()]
    is_number = all(name.removeprefix("-").isdecimal() for name in ids)
    return np.array([int(name) for name in ids], dtype=np.int64) if is_number else None


def _labels(labels: np.ndarray) -> Any:
    """Labels as PyTorch's losses take them."""
    import torch

    values = torch.from_numpy(labels)
    return values.long() if labels.ndim == 1 else values.float()


def _given(store: Any, name: str) -> bool:
    return name in store and store[name] is not None


def _features(name: str, x: Any) -> dict[str, Any]:
    """Features as one dense array under their name, or as the arrays of sparse rows."""
    import numpy as np

    if not hasattr(x, "csr"):
        return features(name, x)
    # torch_sparse's SparseTensor, whose values may be left out where all are 1.
    indptr, indices, values = x.csr()
    indices = array(name, indices)
    return {
        "features_data": np.ones(len(indices), dtype=np.float32) if values is None else array(name, values),
        "features_indices": indices,
        "features_indptr": array(name, indptr),
        "features_shape": np.array(x.sparse_sizes(), dtype=np.int64),
    }


def _rows(x: dict[str, Any], count: int, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Sparse rows of one type of nodes without zeros, each with a 1 at its end; and how many columns they have."""
    import numpy as np

    if len(x) == 1:
        [dense] = x.values()
        dense = widened(_sized("x", dense, count, kind))
        dense = dense.reshape(count, -1) if dense.ndim != 2 else dense
        rows, indices = np.nonzero(dense)
        values, columns = dense[rows, indices], dense.shape[1]
    elif x:
        _sized("x", x["features_indptr"][1:], count, kind)
        rows = np.repeat(np.arange(count), np.diff(x["features_indptr"]))
        kept = x["features_data"] != 0
        rows, indices, values = rows[kept], x["features_indices"][kept], x["features_data"][kept]
        columns = int(x["features_shape"][1])
    else:
        rows, indices, columns = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), 0
        values = np.empty(0, dtype=np.float32)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count) + 1)])
    flags = indptr[1:] - 1
    among = np.ones(len(values) + count, dtype=bool)
    among[flags] = False
    all_indices = np.full(len(among), columns, dtype=np.int64)
    all_values = np.ones(len(among), dtype=np.float32 if values.dtype == bool else values.dtype)
    all_indices[among], all_values[among] = indices, values
    return indptr, all_indices, all_values, columns + 1


def _ends(store: Any, where: str) -> tuple[np.ndarray, np.ndarray | None, int | None]:
    """Ends of edges, ``[2, edges]``, their weights, and how many nodes an adjacency matrix has."""
    size = None
    if _given(store, "edge_index"):
        ends, weights = array(f"{where}.edge_index", store["edge_index"]), None
        if ends.ndim != 2 or ends.shape[0] != 2 or ends.size and ends.dtype.kind not in "iu":
            hint = "; edge_index.t() has it" if ends.ndim == 2 and ends.shape[1] == 2 else ""
            found = f"{list(ends.shape)} of {ends.dtype}"
            raise DataError(f"{where}.edge_index: expected whole numbers, [2, edges], found {found}{hint}")
    elif _given(store, "adj_t"):
        ends, weights, size = _entries(store["adj_t"], f"{where}.adj_t")
    else:
        raise DataError(f"{where}: expected edges as edge_index or adj_t, found neither")
    if _given(store, "edge_weight"):
        weights = array(f"{where}.edge_weight", store["edge_weight"]).reshape(-1)
    elif weights is None and _given(store, "edge_attr"):
        attributes = array(f"{where}.edge_attr", store["edge_attr"])
        if attributes.ndim == 1 or attributes.ndim == 2 and attributes.shape[1] == 1:
            weights = attributes.reshape(-1)
    return ends, weights, size


def _entries(matrix: Any, name: str) -> tuple[np.ndarray, np.ndarray | None, int]:
    """Edges of an adjacency matrix with a row a target, and their weights unless all are 1."""
    import numpy as np
    import torch

    if isinstance(matrix, torch.Tensor):
        # Not coalesced: an edge that is listed twice would weigh 2, though none was said to have a weight.
        entries = matrix.detach().to_sparse()
        (targets, sources), values = entries._indices(), entries._values()
    else:
        targets, sources, values = matrix.coo()
    ends = np.stack([array(name, sources), array(name, targets)])
    weights = None if values is None else array(name, values).reshape(ends.shape[1], -1)
    is_weight = weights is not None and weights.shape[1] == 1 and not np.all(weights == 1)
    return ends, weights.reshape(-1) if weights is not None and is_weight else None, int(matrix.size(0))


def _count(store: Any, kind: str) -> int:
    """How many nodes of a type there are."""
    if _given(store, "num_nodes"):
        return int(store["num_nodes"])
    for name in ("x", "y", *MASKS, "n_id"):
        if _given(store, name):
            value = store[name]
            return int(value.size(0)) if callable(getattr(value, "size", None)) else len(value)
    what = f"nothing says how many nodes of type {kind!r} there are"
    raise DataError(f"num_nodes: {what}; data[{kind!r}].num_nodes = COUNT does")


def _own(name: str, store: Any, kind: str, count: int) -> np.ndarray:
    """An array of nodes of one type."""
    return _sized(name, array(f"data[{kind!r}].{name}", store[name]), count, kind)


def _sized(name: str, array: np.ndarray, count: int, kind: str) -> np.ndarray:
    """The array, which has a row a node."""
    if array.ndim == 0 or len(array) != count:
        found = f"found the shape {list(array.shape)}"
        raise DataError(f"data[{kind!r}].{name}: expected {count} rows, one a node, {found}")
    return array


def _spread(labels: np.ndarray, start: int, nodes: int) -> np.ndarray:
    """Labels of one type among those of all nodes, of which the others are unknown."""
    import numpy as np

    unknown, dtype = (-1, np.int64) if labels.dtype.kind in "iub" and labels.ndim == 1 else (np.nan, np.float64)
    every = np.full((nodes, *labels.shape[1:]), unknown, dtype=dtype)
    every[start : start + len(labels)] = labels
    return every
