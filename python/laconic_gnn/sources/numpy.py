"""Arrays, and what others hand over in their place, as the extension takes them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .. import _laconic, checks
from ..errors import DataError

if TYPE_CHECKING:
    import numpy as np

# The arrays of the interchange format, as docs/formats.md lists them.
NAMES = (
    "edge_index",
    "directed",
    "num_nodes",
    "edge_weight",
    "edge_type",
    *(f"{split}_{name}" for split in ("val", "valid", "test") for name in ("edge_index", "neg_edge_index")),
    *(f"{split}_{name}" for split in ("val", "valid", "test") for name in ("neg_targets", "edge_type")),
    "num_relations",
    "relation_names",
    "node_type",
    "node_type_names",
    "features",
    "x",
    "features_data",
    "features_indices",
    "features_indptr",
    "features_shape",
    "labels",
    "y",
    "num_classes",
    "train_mask",
    "val_mask",
    "test_mask",
    "ids",
    "ids_data",
    "ids_offsets",
    "class_names",
    "feature_names",
    "about",
)
MASKS = ("train_mask", "val_mask", "test_mask")
_TEXTS = ("class_names", "feature_names", "relation_names", "node_type_names")

# What a cell says that says nothing, as in tables that the program reads.
_MISSING = {"", "NA", "N/A", "n/a", "na", "<NA>", "nan", "NaN", "NAN", "null", "NULL", "Null", "None"}
_SPLITS = {"train": 0, "training": 0, "val": 1, "valid": 1, "validation": 1, "dev": 1, "test": 2, "testing": 2}


def arguments(given: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Arrays by the names of the interchange format.

    Args:
        given: arrays, or what becomes one, by these names; None is not there.

    Raises:
        DataError: if something is no array of the right items and shape; the message names it.
    """
    import numpy as np

    given = {name: value for name, value in given.items() if value is not None}
    # Several numbers an edge, which the extension says that it leaves out.
    attributes = given.pop("edge_attr", None)
    checks.names(given, NAMES)
    for one, other in (("x", "features"), ("y", "labels")):
        if one in given and other in given:
            raise DataError(f"{other}: given twice, as {one}= and as {other}=")
    found: dict[str, np.ndarray] = {}
    if attributes is not None:
        checks.note("edge_attr: edges have no features here, so it is left out; edge_weight= takes one number an edge")
        found["edge_attr"] = contiguous(array("edge_attr", attributes))
    for name, value in given.items():
        if name in ("x", "features"):
            found.update(features(name, value))
        elif name == "ids":
            found.update(ids(value))
        elif name in _TEXTS:
            found[name] = np.array([str(text) for text in value], dtype=str)
        elif name == "num_nodes":
            found[name] = np.array([_count(value)])
        elif name not in ("y", *MASKS):
            found[name] = contiguous(array(name, value))
    checks.edges(given["edge_index"], found["edge_index"])
    if "y" in given:
        found.update(labels(given["y"], found.get("class_names"), "num_classes" not in given))
    found.update(masks({name: given[name] for name in MASKS if name in given}, found))
    _check_rows(found)
    _check_names(found)
    return found


def array(name: str, value: Any) -> np.ndarray:
    """Whatever it is as an array, without a copy where it lies in this machine's memory as NumPy has it.

    Tensors of PyTorch and everything that has DLPack or ``__array__`` will do. bfloat16 and the types of 8 bits, which
    NumPy has not, become float32.

    Raises:
        DataError: if it lies on a GPU, or rows have different lengths.
    """
    import numpy as np

    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise DataError(f"{name}: expected an array, found one with masked values; {name}.filled(0) has 0 in their place")
    device = getattr(value, "device", None)
    where = getattr(device, "type", "cpu")
    if where not in ("cpu", "") or hasattr(value, "__cuda_array_interface__"):
        brings = f"{name}.cpu()" if hasattr(value, "cpu") else "a copy in main memory"
        raise DataError(f"{name}: expected an array in main memory, found one on {device}; {brings} is one")
    if hasattr(value, "detach"):
        value = value.detach()
        try:
            found = np.asarray(value.numpy())
        except TypeError:
            found = np.asarray(value.float().numpy())
        checks.items(name, found)
        return found
    if hasattr(value, "tocsr"):
        way = "Graph.from_scipy takes it" if name == "edge_index" else f"{name}.toarray() is one"
        raise DataError(f"{name}: expected an array, found a sparse matrix; {way}")
    try:
        found = np.from_dlpack(value) if _has_dlpack_alone(value) else np.asarray(value)
    except (BufferError, RuntimeError, ValueError) as error:
        ragged = "rows of different lengths" if "inhomogeneous" in str(error) else str(error)
        raise DataError(f"{name}: expected an array, found {ragged}") from None
    # Types that other packages add to NumPy, such as ml_dtypes.bfloat16.
    if found.dtype.kind == "V" and found.dtype.names is None:
        return found.astype(np.float32)
    checks.items(name, found)
    return found


def bfloat16(value: Any) -> np.ndarray | None:
    """bfloat16 where it lies, as the extension knows it: records of 16 bits that are called so.

    Takes arrays of ml_dtypes, and what has DLPack, such as tensors. None of what is of another type, or not in this
    machine's memory.
    """
    import numpy as np

    record = np.dtype([("bfloat16", np.uint16)])
    kind = getattr(value, "dtype", "bfloat16")
    if isinstance(value, np.ndarray):
        return value.view(record) if kind == record or str(kind) == "bfloat16" else None
    if not hasattr(value, "__dlpack__") or not str(kind).endswith("bfloat16"):
        return None
    try:
        lent = _Bits(value.detach() if hasattr(value, "detach") else value)
    except (BufferError, RuntimeError, TypeError, ValueError):
        return None  # `array` says what is wrong with it.
    return np.from_dlpack(lent).view(record) if lent.are_bfloat16 else None


class _Bits:
    """What DLPack lends as bfloat16, which NumPy has not, as whole numbers of as many bits."""

    def __init__(self, lender: Any) -> None:
        self._device = lender.__dlpack_device__()
        self._capsule = lender.__dlpack__()
        self.are_bfloat16 = self._device[0] == 1 and _laconic.mark_bfloat16(self._capsule)

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> Any:
        return self._device


def widened(values: np.ndarray) -> np.ndarray:
    """The numbers of :func:`bfloat16` as float32, in new memory; other arrays as they are."""
    import numpy as np

    if values.dtype.names != ("bfloat16",):
        return values
    wide = values["bfloat16"].astype(np.uint32, order="C")
    wide <<= 16
    return wide.view(np.float32)


def _has_dlpack_alone(value: Any) -> bool:
    return hasattr(value, "__dlpack__") and not hasattr(value, "__array__")


def contiguous(values: np.ndarray) -> np.ndarray:
    """The array, copied if its items do not stand one behind the other."""
    import numpy as np

    is_contiguous = values.flags.c_contiguous or values.flags.f_contiguous
    # What is swapped or out of place is read all the same.
    return values if is_contiguous else np.ascontiguousarray(values)


def features(name: str, value: Any) -> dict[str, np.ndarray]:
    """Features as one dense array, or as the arrays of sparse rows.

    C-contiguous float32 and bfloat16 stay where they are. Other bfloat16 is copied once, as it is. Of what else is not
    C-contiguous numbers that float32 holds are copied once, as rows of float32; others are copied by the
    extension from where they are, which looks at what rounding would lose.
    """
    import numpy as np

    rows = None
    if hasattr(value, "tocsr"):
        rows = value.tocsr()
        rows = (rows.data, rows.indices, rows.indptr, rows.shape)
    elif str(getattr(value, "layout", "torch.strided")) != "torch.strided":
        tensor = value.detach().to_sparse_csr()
        rows = (tensor.values(), tensor.col_indices(), tensor.crow_indices(), tensor.shape)
    if rows is not None:
        parts = ("data", "indices", "indptr", "shape")
        return {f"features_{part}": contiguous(array(name, of)) for part, of in zip(parts, rows)}
    bits = bfloat16(value)
    if bits is not None:
        return {name: np.ascontiguousarray(bits) if bits.ndim == 2 else contiguous(widened(bits))}
    values = checks.numbers(name, array(name, value))
    if values.ndim > 2:
        shape = list(values.shape)
        raise DataError(f"{name}: expected [nodes, columns], found {shape}; {name}.reshape({shape[0]}, -1) has them so")
    is_narrow = values.dtype.itemsize <= 2 or values.dtype == np.float32
    if values.dtype.kind in "biuf" and is_narrow and not values.flags.c_contiguous:
        values = values.astype(np.float32, order="C")
    return {name: values}


def ids(value: Any) -> dict[str, np.ndarray]:
    """Ids as the interchange format has them: whole numbers, or the bytes of texts and where each ends.

    Raises:
        DataError: if two nodes have one id.
    """
    import numpy as np

    if getattr(getattr(value, "dtype", None), "kind", "") == "i" and getattr(value, "ndim", 0) == 1:
        numbers = np.asarray(value, dtype=np.int64)
        # What ascends needs no sorting to be known as distinct.
        if not (numbers[1:] > numbers[:-1]).all():
            _check_distinct(numbers.tolist())
        return {"ids": np.ascontiguousarray(numbers)}
    names = value.tolist() if hasattr(value, "tolist") else list(value)
    # Tuples would become rows, and numbers beside texts texts.
    if all(type(name) is int for name in names) and (not names or -(1 << 63) <= min(names) <= max(names) < 1 << 63):
        _check_distinct(names)
        return {"ids": np.array(names, dtype=np.int64)}
    texts = [name.decode(errors="replace") if isinstance(name, bytes) else str(name) for name in names]
    _check_distinct(texts)
    encoded = [text.encode(errors="replace") for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return {"ids_data": np.frombuffer(b"".join(encoded), dtype=np.uint8), "ids_offsets": ends}


def _check_distinct(names: list[Any]) -> None:
    if len(set(names)) == len(names):
        return
    twice = Counter(names).most_common(1)[0][0]
    raise DataError(
        f"ids: expected an id of its own for each node, found {twice!r} at several "
        "(numbers beside texts are texts, and 1 is '1')"
    )


def labels(y: Any, names: np.ndarray | None = None, may_count: bool = True) -> dict[str, np.ndarray]:
    """Labels as the interchange format has them, and what their classes are called.

    ===============================  ============================================================================
    ``y``                            what becomes of it
    ===============================  ============================================================================
    whole numbers, also as floats    classes; below 0, NaN and None are unknown
    texts                            classes in alphabetic order, or in that of ``class_names``; empty texts, None,
                                     NaN and words such as NA are unknown; texts of whole numbers sort as numbers
    categories of pandas             classes in the order of the categories
    rows of 0 and 1, one 1 in each   classes, with a note
    other rows of 0 and 1            several classes a node; NaN is unknown
    ===============================  ============================================================================

    Args:
        y: ``[nodes]`` or ``[nodes, classes]``.
        names: what classes are called, in the order of their numbers, where that is said.
        may_count: whether nothing else says how many classes there are.

    Raises:
        DataError: if a text is none of ``names``.
    """
    import numpy as np

    categories = y.cat if hasattr(y, "cat") else y
    if names is None and hasattr(categories, "categories") and hasattr(categories, "codes"):
        return {"y": np.array(categories.codes), **_named([str(name) for name in categories.categories])}
    values = array("y", y)
    if values.dtype.kind in "USO":
        texts = [None if _is_missing(item) else item for item in values.ravel().tolist()]
        if any(isinstance(item, (str, bytes)) for item in texts):
            if values.ndim != 1 and values.size != len(values):
                raise DataError(f"y: expected a text a node, [nodes], found the shape {list(values.shape)}")
            return _of_texts([None if item is None else _text(item) for item in texts], names)
        values = checks.numbers("y", np.array([np.nan if item is None else item for item in texts], dtype=object))
    if values.ndim == 2 and values.shape[1] > 1 and _is_one_hot(values):
        checks.note(
            "y: each row has a single 1 and is read as one class a node, y.argmax(axis=1); "
            "labels= takes the columns as classes that a node may have several of"
        )
        values = values.argmax(axis=1)
    if values.ndim == 1 and names is None and may_count and values.dtype.kind in "iuf":
        checks.classes(values)
    return {"y": contiguous(values)}


def _text(item: Any) -> str:
    return item.decode(errors="replace") if isinstance(item, bytes) else str(item)


def _is_missing(item: Any) -> bool:
    # NaN is not itself, and nobody knows of pandas' NA whether it is.
    return item is None or type(item).__name__ in ("NAType", "NaTType") or item != item or _text(item) in _MISSING


def _of_texts(texts: list[str | None], names: np.ndarray | None) -> dict[str, np.ndarray]:
    import numpy as np

    known = {text for text in texts if text is not None}
    are_numbers = all(re.fullmatch(r"-?(0|[1-9]\d*)", text) for text in known)
    order = sorted(known, key=int) if are_numbers else sorted(known)
    order = [text for text in order if not (are_numbers and text.startswith("-"))]
    if names is not None:
        order = names.tolist()
        if other := sorted(known - set(order)):
            raise DataError(f"y: {other[0]!r} is none of class_names, which are {', '.join(order[:8])}")
    place = {text: number for number, text in enumerate(order)}
    found = {"y": np.array([-1 if text is None else place.get(text, -1) for text in texts], dtype=np.int32)}
    return found if names is not None else {**found, **_named(order)}


def _named(names: list[str]) -> dict[str, np.ndarray]:
    """Names of classes, unless they are called by their numbers."""
    import numpy as np

    if names == [str(number) for number in range(len(names))]:
        return {}
    return {"class_names": np.array(names, dtype=str)}


def _is_one_hot(values: np.ndarray) -> bool:
    is_one = values == 1
    return bool((is_one | (values == 0)).all() and (is_one.sum(axis=1) == 1).all())


def masks(given: Mapping[str, Any], found: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Masks, ``[nodes]`` or ``[nodes, splits]``; the numbers of nodes become one.

    Args:
        given: masks by their names.
        found: what is known of nodes by now, which says how many there are.

    Raises:
        DataError: if a number is that of no node.
    """
    import numpy as np

    plain = {name: _truths(name, array(name, mask)) for name, mask in given.items()}
    nodes = _nodes(found, [mask for mask in plain.values() if mask.dtype.kind == "b"])
    for name, mask in plain.items():
        # Bytes are masks, also where 255 stands for true.
        may_be_rows = mask.ndim == 1 and (mask.dtype.kind in "iu" and mask.dtype.itemsize > 1 or not mask.size)
        if may_be_rows and (len(mask) != nodes or mask.size and mask.max() > 1):
            if mask.size and not 0 <= mask.min() <= mask.max() < nodes:
                beyond = mask.min() if mask.min() < 0 else mask.max()
                expected = f"expected a truth value a node, or the numbers of nodes from 0 to {nodes - 1}"
                raise DataError(f"{name}: {expected}, found {beyond}")
            plain[name] = np.zeros(nodes, dtype=bool)
            plain[name][mask.astype(np.int64)] = True
    checks.roles(plain)
    return {name: contiguous(mask) for name, mask in plain.items()}


def _truths(name: str, mask: np.ndarray) -> np.ndarray:
    """Truth values or numbers; who has none is not in the mask."""
    import numpy as np

    if mask.dtype.kind != "O":
        return checks.numbers(name, mask)
    items = [False if _is_missing(item) else item for item in mask.ravel().tolist()]
    return checks.numbers(name, np.array(items).reshape(mask.shape))


def split(words: Iterable[Any]) -> dict[str, np.ndarray]:
    """Masks of a word a node: train, val (or valid, validation, dev) or test; others are in no part of the split."""
    import numpy as np

    said = [_SPLITS.get(str(word).lower(), -1) for word in words]
    return {name: np.array(said) == number for number, name in enumerate(MASKS)}


def _nodes(found: Mapping[str, np.ndarray], truths: list[np.ndarray]) -> int:
    """How many nodes there are: what says so, or else as many as edges and arrays need."""
    if "num_nodes" in found:
        return int(found["num_nodes"][0])
    counts = [shape[0] for shape in shapes(found).values() if shape] + [len(mask) for mask in truths if mask.ndim]
    if counts:
        return max(counts)
    ends = found["edge_index"]
    return int(ends.max()) + 1 if ends.size else 0


def shapes(found: Mapping[str, np.ndarray]) -> dict[str, tuple[int, ...]]:
    """Of each array with a row a node its shape."""
    of = {
        name: found[name].shape
        for name in ("x", "features", "y", "labels", *MASKS, "ids", "node_type")
        if name in found
    }
    if "features_shape" in found:
        of["x"] = tuple(found["features_shape"].tolist())
    if "ids_offsets" in found:
        of["ids"] = (len(found["ids_offsets"]) - 1,)
    return of


def _check_rows(found: Mapping[str, np.ndarray]) -> None:
    checks.rows(shapes(found), int(found["num_nodes"][0]) if "num_nodes" in found else None)


def _check_names(found: dict[str, np.ndarray]) -> None:
    """Sees that names of classes are as many as these; there may be more of them than classes that nodes are of."""
    import numpy as np

    y = found.get("y")
    if "class_names" not in found or y is None or "num_classes" in found:
        return
    if y.ndim == 2 and y.shape[1] > 1:
        classes, names = y.shape[1], len(found["class_names"])
    else:
        known = y[y >= 0]
        classes, names = int(known.max()) + 1 if known.size else 0, len(found["class_names"])
        if classes <= names:
            found["num_classes"] = np.array([names])
            return
    if names != classes:
        raise DataError(f"class_names: expected {classes} names, one a class of y, found {names}")


def _count(value: Any) -> int:
    import numpy as np

    number = np.asarray(value)
    if number.size != 1 or number.dtype.kind not in "iuf" or number != np.floor(number) or number < 0:
        raise DataError(f"num_nodes: expected a whole number, found {value!r}")
    return int(number.flat[0])
