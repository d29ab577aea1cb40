"""The commonest mistakes from Python, and what comes of each: an error, a note, or what was meant.

`tools/python_mistakes.py` prints the table of docs/guide/python-mistakes.md from this list; `test_mistakes.py` checks
it.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from dataclasses import dataclass
from typing import Any

import laconic_gnn as lc
import numpy as np


@dataclass(frozen=True)
class Mistake:
    """A mistake.

    Attributes:
        name: what is wrong, for people.
        code: one expression of Python, with the names of `names`.
        expected: the class of the error; `note` for a warning; `works`.
        words: words that the message has, in their order; where it works, what is true of the `result`.
        needs: the package without which it cannot be made.
    """

    name: str
    code: str
    expected: str
    words: tuple[str, ...]
    needs: str = ""


def names() -> dict[str, Any]:
    """What the expressions are about: six nodes in two triangles, which are two classes."""
    edge_index = np.array([[0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3]])
    edge_index = np.concatenate([edge_index, edge_index[::-1]], axis=1)
    x = np.array([[1, 0], [2, 0], [1, 1], [0, 1], [0, 2], [0.5, 1]], dtype=np.float32)
    y = np.array([0, 0, 0, 1, 1, 1])
    roles = np.array([0, 1, 2, 0, 1, 2])
    train, val, test = (roles == role for role in range(3))
    masks = {"train_mask": train, "val_mask": val, "test_mask": test}
    graph = lc.Graph.from_numpy(edge_index, x, y, **masks)
    return {"lc": lc, "np": np, "edge_index": edge_index, "x": x, "y": y, "masks": masks, "graph": graph, **masks}


def outcome(mistake: Mistake) -> tuple[str, str, Any]:
    """What comes of a mistake: the class of its error, `note` or `works`; the message; the result."""
    place = names()
    if mistake.needs:
        place[mistake.needs] = __import__(mistake.needs)
    with warnings.catch_warnings(record=True) as noted, contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("always")
        try:
            result = eval(mistake.code, place)  # noqa: S307
        except Exception as error:  # noqa: BLE001
            return type(error).__name__, str(error), None
    said = [str(note.message) for note in noted if issubclass(note.category, lc.LaconicWarning)]
    return ("note" if said else "works"), re.sub(r"\s+", " ", "; ".join(said)), result


def is_as_expected(mistake: Mistake, kind: str, said: str, result: Any) -> bool:
    """Whether this is what the list says."""
    if kind != mistake.expected:
        return False
    if kind == "works":
        return all(eval(words, {"np": np, "result": result}) for words in mistake.words)  # noqa: S307
    return re.search(".*".join(map(re.escape, mistake.words)), said, re.DOTALL) is not None


def _of(what: str, code: str, expected: str, *words: str, needs: str = "") -> Mistake:
    return Mistake(what, code, expected, words, needs)


MISTAKES = [
    _of(
        "edge_index transposed",
        "lc.Graph.from_numpy(edge_index.T, x, y)",
        "DataError",
        "edge_index: expected the shape [2, edges], found [14, 2]; edge_index.T has it",
    ),
    _of(
        "a list of pairs",
        "lc.Graph.from_numpy([(0, 1), (1, 2), (2, 5)], x, y)",
        "DataError",
        "edge_index: expected the shape [2, edges], found [3, 2]; np.array(edge_index).T has it",
    ),
    _of(
        "two pairs, which look like rows",
        "lc.Graph.from_numpy([(0, 1), (2, 5)], x, y)",
        "DataError",
        "np.array(edge_index).T makes an edge of each pair",
    ),
    _of(
        "a matrix of adjacency for edge_index",
        "lc.Graph.from_numpy(np.eye(6), x, y)",
        "DataError",
        "found [6, 6]; of a matrix of adjacency np.stack(np.nonzero(matrix)) has it",
    ),
    _of(
        "another library's graph for edge_index",
        "lc.Graph.from_numpy(networkx.path_graph(6), x, y)",
        "DataError",
        "edge_index: ",
        "Graph.from_networkx takes a Graph",
        needs="networkx",
    ),
    _of(
        "edges between names",
        "lc.Graph.from_numpy([['ann', 'bob'], ['bob', 'cem']])",
        "DataError",
        "edge_index: expected whole numbers from 0, found texts such as 'ann'",
        "np.unique(edge_index, return_inverse=True)",
    ),
    _of(
        "edges between ids in the place of rows",
        "lc.Graph.from_numpy(edge_index + 100, x, y, ids=np.arange(100, 106))",
        "DataError",
        "edge_index: expected nodes from 0 to 5",
        "these are ids",
        "np.searchsorted(ids, edge_index",
    ),
    _of(
        "nodes beyond the last one",
        "lc.Graph.from_numpy(np.where(edge_index == 5, 90, edge_index), x, y)",
        "DataError",
        "edge_index: expected nodes from 0 to 5, as x has 6, found 90",
        "(edge_index < 6)",
    ),
    _of(
        "edges that count from 1",
        "lc.Graph.from_numpy(edge_index + 1, x, y)",
        "DataError",
        "found 6; it counts from 1: edge_index - 1 counts from 0",
    ),
    _of(
        "negative ends of edges",
        "lc.Graph.from_numpy(edge_index - 1, x, y)",
        "DataError",
        "edge_index: expected whole numbers from 0, found -1",
        "(edge_index >= 0)",
    ),
    _of(
        "edges of one direction where both are meant",
        "lc.Graph.from_numpy([[0, 1, 0], [1, 2, 2]])",
        "note",
        "edge_index: no edge is there in both directions",
        "undirected=True adds the other directions",
    ),
    _of(
        "features of fewer nodes",
        "lc.Graph.from_numpy(edge_index, x[:-3], y, **masks)",
        "DataError",
        "x: expected 6 rows, one a node as y has, found the shape [3, 2]",
    ),
    _of(
        "features transposed",
        "lc.Graph.from_numpy(edge_index, x.T, y)",
        "DataError",
        "x: expected 6 rows",
        "found the shape [2, 6]; x.T has it",
    ),
    _of(
        "NaN among features",
        "lc.train(lc.Graph.from_numpy(edge_index, np.where(x == 2, np.nan, x), y, **masks))",
        "DataError",
        "2 feature values are not finite, the first at node 1, column 0",
    ),
    _of(
        "numbers as texts",
        "lc.Graph.from_numpy(edge_index, x.astype(str), y)",
        "DataError",
        "x: expected numbers, found texts such as '1.0'; x.astype(np.float32)",
    ),
    _of(
        "an array of objects that are numbers",
        "lc.Graph.from_numpy(edge_index, x.astype(object), y)",
        "works",
        "result.features == 2",
    ),
    _of(
        "an array of objects, some of them texts",
        "lc.Graph.from_numpy(edge_index, np.array([[1, 'fr'], [2, 'de']] * 3, dtype=object), y)",
        "DataError",
        "x: expected numbers, found texts such as 'fr' in column 1; Graph.from_arrow(edges, nodes)",
    ),
    _of(
        "features of several dimensions",
        "lc.Graph.from_numpy(edge_index, x.reshape(6, 2, 1), y)",
        "DataError",
        "x: expected [nodes, columns], found [6, 2, 1]; x.reshape(6, -1) has them so",
    ),
    _of(
        "complex features",
        "lc.Graph.from_numpy(edge_index, x + 1j, y)",
        "DataError",
        "x: expected numbers, found complex64; np.concatenate([x.real, x.imag], axis=1)",
    ),
    _of(
        "times among features",
        "lc.Graph.from_numpy(edge_index, x.astype('datetime64[s]'), y)",
        "DataError",
        "x: expected numbers, found datetime64[s]; x.astype(np.int64) counts their unit",
    ),
    _of(
        "records of named fields",
        "lc.Graph.from_numpy(edge_index, np.zeros(6, dtype=[('age', 'f4'), ('size', 'f4')]), y)",
        "DataError",
        "x: expected numbers, found records",
        "structured_to_unstructured(x)",
    ),
    _of(
        "two rows of truth values for edges",
        "lc.Graph.from_numpy(edge_index > 2, x, y)",
        "DataError",
        "edge_index: expected whole numbers from 0, found truth values",
        "np.stack(np.nonzero(matrix))",
    ),
    _of(
        "names of nodes for a mask",
        "lc.Graph.from_numpy(edge_index, x, y, train_mask=['ann', 'bob'])",
        "DataError",
        "train_mask: expected numbers, found texts such as 'ann'; np.isin(names, train_mask)",
    ),
    _of(
        "a tensor that is not in main memory",
        "lc.Graph.from_numpy(edge_index, torch.ones(6, 2, device='meta'), y)",
        "DataError",
        "x: expected an array in main memory, found one on meta; x.cpu() is one",
        needs="torch",
    ),
    _of(
        "a tensor with a gradient, of bfloat16",
        "lc.Graph.from_numpy(edge_index, torch.ones(6, 2, dtype=torch.bfloat16, requires_grad=True), y)",
        "works",
        "result.features == 2",
        needs="torch",
    ),
    _of(
        "labels of 32 bits",
        "lc.Graph.from_numpy(edge_index, x, y.astype(np.int32))",
        "works",
        "result.classes == 2",
    ),
    _of(
        "labels as floats, NaN where unknown",
        "lc.Graph.from_numpy(edge_index, x, [0.0, 1.0, np.nan, 1.0, 0.0, np.nan])",
        "works",
        "result.arrays()['labels'].tolist() == [0, 1, -1, 1, 0, -1]",
    ),
    _of(
        "targets of a regression as labels",
        "lc.Graph.from_numpy(edge_index, x, y + 0.5)",
        "DataError",
        "y: the label of node 0 is 0.5",
        "np.digitize(y, limits)",
        "targets of a regression are not learned",
    ),
    _of(
        "one-hot labels",
        "lc.Graph.from_numpy(edge_index, x, np.eye(2)[y])",
        "note",
        "y: each row has a single 1 and is read as one class a node",
        "labels= takes the columns as classes",
    ),
    _of(
        "labels as texts, None where unknown",
        "lc.Graph.from_numpy(edge_index, x, ['ok', 'bad', None, 'bad', 'ok', ''])",
        "works",
        "result.class_names == ['bad', 'ok']",
        "result.arrays()['labels'].tolist() == [1, 0, -1, 0, 1, -1]",
    ),
    _of(
        "a column of texts of pandas as labels",
        "lc.Graph.from_numpy(edge_index, x, pandas.Series(['ok', 'bad', None, 'bad', 'ok', 'bad']))",
        "works",
        "result.class_names == ['bad', 'ok']",
        needs="pandas",
    ),
    _of(
        "classes that no node is of",
        "lc.Graph.from_numpy(edge_index, x, [0, 5, 7, 0, 5, 7])",
        "note",
        "y: of 8 classes 5 have no node (1, 2, 3, …)",
        "np.unique(y, return_inverse=True)",
    ),
    _of(
        "too few names of classes",
        "lc.Graph.from_numpy(edge_index, x, y, class_names=['good'])",
        "DataError",
        "class_names: expected 2 names, one a class of y, found 1",
    ),
    _of(
        "labels without masks",
        "lc.train(lc.Graph.from_numpy(edge_index, x, y))",
        "ConfigError",
        "no node is in the training split",
    ),
    _of(
        "a train mask of nobody",
        "lc.train(lc.Graph.from_numpy(edge_index, x, y, train_mask=y > 5, val_mask=val_mask))",
        "ConfigError",
        "no node is in the training split",
    ),
    _of(
        "masks as numbers of nodes",
        "lc.Graph.from_numpy(edge_index, x, y, train_mask=np.array([0, 3]), val_mask=[1, 4])",
        "works",
        "result.arrays()['train_mask'].tolist() == [1, 0, 0, 1, 0, 0]",
        "result.arrays()['val_mask'].tolist() == [0, 1, 0, 0, 1, 0]",
    ),
    _of(
        "masks of numbers beyond the last node",
        "lc.Graph.from_numpy(edge_index, x, y, train_mask=np.array([0, 6]))",
        "DataError",
        "train_mask: expected a truth value a node, or the numbers of nodes from 0 to 5, found 6",
    ),
    _of(
        "masks that overlap",
        "lc.Graph.from_numpy(edge_index, x, y, train_mask=train_mask, test_mask=~val_mask)",
        "note",
        "train_mask and test_mask share 2 nodes",
        "train_mask & ~test_mask leaves them to test_mask",
    ),
    _of(
        "a mask of other nodes",
        "lc.Graph.from_numpy(edge_index, x, y, train_mask=np.ones(7, bool))",
        "DataError",
        "train_mask: expected 6 rows, one a node as",
        "found the shape [7]",
    ),
    _of(
        "weights of other edges",
        "lc.Graph.from_numpy(edge_index, x, y, edge_weight=np.ones(7))",
        "DataError",
        "edge_weight: expected 14 values, one an edge",
    ),
    _of(
        "several numbers an edge",
        "lc.Graph.from_numpy(edge_index, x, y, edge_attr=np.ones((14, 3)))",
        "note",
        "edge_attr: edges have no features here",
        "edge_weight= takes one number an edge",
    ),
    _of(
        "two nodes of one id",
        "lc.Graph.from_numpy(edge_index, x, y, ids=['a', 'b', 'c', 'a', 'e', 'f'])",
        "DataError",
        "ids: expected an id of its own for each node, found 'a' at several",
    ),
    _of(
        "a text where a count is meant",
        "lc.Graph.from_numpy(edge_index, x, y, num_nodes='6')",
        "DataError",
        "num_nodes: expected a whole number, found '6'",
    ),
    _of(
        "an array misspelt",
        "lc.Graph.from_numpy(edge_index, x, y, trian_mask=train_mask)",
        "DataError",
        "trian_mask: no argument or array has this name; did you mean 'train_mask'?",
    ),
    _of(
        "another library's name of an array",
        "lc.Graph.from_numpy(edge_index, feat=x)",
        "DataError",
        "feat: no argument or array has this name; x= takes features",
    ),
    _of(
        "a key misspelt",
        "lc.train(graph, archs='sage')",
        "ConfigError",
        "archs",
        "did you mean",
    ),
    _of(
        "a key without its section",
        "lc.train(graph, epochs=5)",
        "works",
        "result.summary['rounds'] == 5",
    ),
    _of(
        "a key of a section misspelt",
        "lc.train(graph, model={'hiden': 8})",
        "ConfigError",
        "model.hiden",
        "did you mean",
        "model.hidden",
    ),
    _of(
        "a text where a number is meant",
        "lc.train(graph, train={'lr': '0.01'})",
        "ConfigError",
        'train.lr = "0.01": expected a number',
    ),
    _of(
        "an architecture that there is not",
        "lc.train(graph, arch='graphsage')",
        "ConfigError",
        'model.arch = "graphsage": expected one of gcn, sage',
        'did you mean "sage"?',
    ),
    _of(
        "more parts than nodes",
        "lc.train(graph, parts=7)",
        "DataError",
        "cannot make 7 parts of 6 nodes",
    ),
    _of(
        "a path that is not there",
        "lc.Graph.read('croa.npz')",
        "DataError",
        "croa.npz: No such file or directory",
    ),
]
