"""Mistakes that are made from Python: errors that name the argument and the fix, and notes on what is odd but works."""

from __future__ import annotations

import difflib
import os
import re
import sys
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any

from .errors import DataError, LaconicWarning

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from types import FrameType

    import numpy as np

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep

# By the package that an object is of: the function that takes it.
_TAKES = {
    "anndata": "from_anndata",
    "dgl": "from_dgl",
    "igraph": "from_igraph",
    "networkx": "from_networkx",
    "pandas": "from_arrow",
    "polars": "from_arrow",
    "pyarrow": "from_arrow",
    "scipy": "from_scipy",
    "torch_geometric": "from_pyg",
}
# Names of other libraries for what is called otherwise here.
_FOREIGN = {
    "feat": "x= takes features",
    "label": "y= takes labels",
    "weight": "edge_weight= takes a number an edge",
}


def note(text: str) -> None:
    """Warns whoever called the package from outside."""
    depth = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(text, LaconicWarning, stacklevel=depth)


def names(given: Collection[str], known: Collection[str]) -> None:
    """Refuses arguments of unknown names.

    Raises:
        DataError: with the nearest name.
    """
    for name in given:
        if name in known:
            continue
        near = difflib.get_close_matches(name, known, n=1)
        meant = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(known)}"
        raise DataError(f"{name}: no argument or array has this name; {_FOREIGN.get(name, meant)}")


def edges(value: Any, array: np.ndarray) -> None:
    """Refuses ends of edges that are not two rows of numbers.

    Args:
        value: what was given.
        array: the same as an array.

    Raises:
        DataError: with what makes ``[2, edges]`` of it.
    """
    pairs = isinstance(value, list) and len(value) > 0 and all(isinstance(pair, tuple) for pair in value)
    if pairs and array.shape == (2, 2):
        raise DataError(
            "edge_index: two pairs are read as a row of sources and a row of targets; "
            "np.array(edge_index).T makes an edge of each pair, np.array(edge_index) takes them as rows"
        )
    if array.ndim != 2 or array.shape[0] != 2:
        raise DataError(f"edge_index: expected the shape [2, edges], found {list(array.shape)}{_way(value, array)}")
    if array.dtype.kind in "USO":
        raise DataError(
            f"edge_index: expected whole numbers from 0, found {_such_as(array)}; "
            "names, rows = np.unique(edge_index, return_inverse=True) has both: "
            "from_numpy(rows.reshape(2, -1), ids=names)"
        )
    if array.dtype.kind == "b" and array.size:
        what = "expected whole numbers from 0, found truth values"
        raise DataError(f"edge_index: {what}; of a matrix of adjacency np.stack(np.nonzero(matrix)) has it")


def items(name: str, array: np.ndarray) -> None:
    """Refuses items that are neither numbers nor texts nor objects.

    Raises:
        DataError: with what makes numbers of them.
    """
    kind = array.dtype.kind
    if kind == "c":
        both = f"np.concatenate([{name}.real, {name}.imag], axis=1) has both parts as columns"
        way = both if name in ("x", "features") else f"{name}.real has one part"
    elif kind in "mM":
        way = f"{name}.astype(np.int64) counts their unit"
    elif array.dtype.names is not None:
        way = f"np.lib.recfunctions.structured_to_unstructured({name}) has the fields as columns"
    else:
        return
    found = "records" if array.dtype.names is not None else array.dtype.name
    raise DataError(f"{name}: expected numbers, found {found}; {way}")


def _way(value: Any, array: np.ndarray) -> str:
    takes = _TAKES.get(type(value).__module__.partition(".")[0])
    if takes is not None:
        return f"; Graph.{takes} takes a {type(value).__name__}"
    if array.ndim == 2 and array.shape[1] == 2:
        given = "np.array(edge_index).T" if isinstance(value, (list, tuple)) else "edge_index.T"
        return f"; {given} has it"
    if array.ndim == 2 and array.shape[0] == array.shape[1]:
        return "; of a matrix of adjacency np.stack(np.nonzero(matrix)) has it"
    return ""


def numbers(name: str, array: np.ndarray) -> np.ndarray:
    """Numbers; objects that all are some become them, None is NaN.

    Raises:
        DataError: if there are texts or other objects; it names the first column that has some.
    """
    import numpy as np

    if array.dtype.kind in "US":
        raise DataError(f"{name}: expected numbers, found {_such_as(array)}; {_of_texts(name)}")
    if array.dtype.kind != "O":
        return array
    has_texts = any(isinstance(item, str) for item in array.flat)
    try:
        # float("1") would do as well, but nobody has said that texts are numbers.
        if not has_texts:
            return array.astype(np.float64)
    except (TypeError, ValueError):
        pass
    where = ""
    if array.ndim == 2:
        is_number = [all(isinstance(item, (int, float, np.number)) for item in column) for column in array.T]
        where = f" in column {is_number.index(False)}" if False in is_number else ""
    way = _of_texts(name) if has_texts else "each has to be one"
    if name in ("x", "features"):
        way = f"Graph.from_arrow(edges, nodes) makes features of a table's columns of texts, {way}"
    raise DataError(f"{name}: expected numbers, found {_such_as(array)}{where}; {way}")


def _of_texts(name: str) -> str:
    if name.endswith("_mask"):
        return f"np.isin(names, {name}) has a truth value a node, of the names of all nodes"
    return f"{name}.astype(np.float32) reads texts of numbers"


def _such_as(array: np.ndarray) -> str:
    """What kind of items these are, and the first that is no number."""
    items = (item for item in array.flat if not isinstance(item, (int, float)))
    item = next(items, array.flat[0] if array.size else None)
    return f"{'texts' if isinstance(item, (str, bytes)) else 'objects'} such as {_shown(item)}"


def _shown(item: object) -> str:
    text = repr(item.item() if hasattr(item, "item") else item)
    return text if len(text) <= 40 else f"{text[:40]}…"


def rows(shapes: Mapping[str, tuple[int, ...]], num_nodes: int | None) -> None:
    """Refuses arrays of nodes that have not all as many rows.

    Args:
        shapes: of each array by its name.
        num_nodes: how many nodes there are, where that is said.

    Raises:
        DataError: which array has other rows than most.
    """
    counts = {name: shape[0] for name, shape in shapes.items() if shape}
    if num_nodes is not None:
        nodes, why = num_nodes, "num_nodes says"
    elif counts:
        # One number a node cannot be transposed.
        order = sorted(counts, key=lambda name: len(shapes[name]))
        often = Counter(counts.values())
        name = max(order, key=lambda name: often[counts[name]])
        nodes, why = counts[name], f"{name} has"
    for name, shape in shapes.items():
        if not shape:
            raise DataError(f"{name}: expected an array, a row a node, found one value")
        if shape[0] != nodes:
            way = f"; {name}.T has it" if len(shape) == 2 and shape[1] == nodes else ""
            raise DataError(f"{name}: expected {nodes} rows, one a node as {why}, found the shape {list(shape)}{way}")


def roles(masks: Mapping[str, np.ndarray]) -> None:
    """Notes masks that share nodes."""
    found = list(masks.items())
    for place, (name, mask) in enumerate(found):
        for other, beside in found[:place]:
            if mask.shape == beside.shape and (shared := int(((mask != 0) & (beside != 0)).sum())):
                note(
                    f"{other} and {name} share {shared} nodes, and a run refuses them; "
                    f"{other} & ~{name} leaves them to {name}"
                )


def classes(y: np.ndarray) -> None:
    """Notes classes that no node is of."""
    import numpy as np

    known = y[y >= 0]
    if not known.size:
        return
    if y.dtype.kind == "f" and not np.all(known == np.floor(known)) or known.max() > 1 << 20:
        return  # refused for that
    absent = np.flatnonzero(np.bincount(known.astype(np.int64)) == 0)
    if absent.size:
        some = ", ".join(map(str, absent[:3])) + (", …" if absent.size > 3 else "")
        note(
            f"y: of {int(known.max()) + 1} classes {absent.size} have no node ({some}); "
            "class_names, y = np.unique(y, return_inverse=True) numbers those that are there"
        )


def one_way(edges: np.ndarray) -> None:
    """Notes edges that all lead to the larger number, or to the smaller one: undirected graphs are often stored so."""
    if edges.shape[1] < 2 or edges.dtype.kind not in "iu":
        return
    # A few first tell nearly always.
    for few in (edges[:, :64], edges):
        if not ((few[0] <= few[1]).all() or (few[0] >= few[1]).all()):
            return
    if (edges[0] != edges[1]).any():
        note(
            "edge_index: no edge is there in both directions, as where each edge of an undirected graph is listed "
            "once; undirected=True adds the other directions, undirected=False says that edges lead one way"
        )


def explained(text: str, arrays: Mapping[str, np.ndarray], shapes: Mapping[str, tuple[int, ...]]) -> str:
    """What an error of the extension means for arrays of Python: it knows files, and says what it looked at last.

    Args:
        text: what it says.
        arrays: what it was given.
        shapes: of each array of nodes its shape.
    """
    import numpy as np

    text = re.sub(r"^data: [^\n]*?: array '(\w+)': ", r"\1: ", text)
    if "the label of node" in text:
        return (
            f"{text}; class_names, y = np.unique(y, return_inverse=True) makes classes of any values, "
            "np.digitize(y, limits) of ranges; targets of a regression are not learned"
        )
    ends = arrays["edge_index"]
    if not ends.size or ends.dtype.kind not in "iu":
        return text
    low, high = int(ends.min()), int(ends.max())
    if low < 0:
        return (
            f"edge_index: expected whole numbers from 0, found {low}; "
            "edge_index[:, (edge_index >= 0).all(axis=0)] leaves out edges to no node"
        )
    if "num_nodes" in arrays:
        nodes, why = int(arrays["num_nodes"][0]), "num_nodes"
    elif shapes:
        why = next(iter(shapes))
        nodes = shapes[why][0]
    else:
        return text
    if high < nodes:
        return text
    said = f"edge_index: expected nodes from 0 to {nodes - 1}, as {why} has {nodes}, found {high}"
    if low >= 1 and high == nodes:
        return f"{said}; it counts from 1: edge_index - 1 counts from 0"
    if "ids" in arrays and np.isin(ends, arrays["ids"]).all():
        return (
            f"{said}; these are ids, and edges are between rows: order = np.argsort(ids), "
            "order[np.searchsorted(ids, edge_index, sorter=order)] has them"
        )
    return f"{said}; edge_index[:, (edge_index < {nodes}).all(axis=0)] leaves out edges of other nodes"
