"""The commonest mistakes from Python end in an error that names the argument and the fix, a note, or what was meant."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import laconic_gnn as lc
import numpy as np
import pytest
from laconic_gnn.sources import numpy as source
from mistakes import MISTAKES, Mistake, is_as_expected, names, outcome

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("mistake", MISTAKES, ids=[mistake.name for mistake in MISTAKES])
def test_a_mistake_ends_as_the_table_says(mistake: Mistake) -> None:
    if mistake.needs:
        pytest.importorskip(mistake.needs)
    kind, said, result = outcome(mistake)
    assert is_as_expected(mistake, kind, said, result), f"{kind}: {said}"
    assert "--" not in said, "no flags of the command line"


# What messages say would do, and what it has to come to.
FIXES = {
    "edge_index.T": "lc.Graph.from_numpy(edge_index.T.copy().T, x, y)",
    "pairs": "lc.Graph.from_numpy(np.array([*zip(*edge_index.tolist())]).T, x, y)",
    "a matrix": "lc.Graph.from_numpy(np.stack(np.nonzero(matrix)), x, y)",
    "names": "lc.Graph.from_numpy(rows.reshape(2, -1), x, y, ids=names)",
    "ids": "lc.Graph.from_numpy(order[np.searchsorted(ids, ids[edge_index], sorter=order)], x, y, ids=ids)",
    "others": "lc.Graph.from_numpy(more[:, (more < 6).all(axis=0)], x, y)",
    "nobody": "lc.Graph.from_numpy(less[:, (less >= 0).all(axis=0)], x, y)",
    "labels": "lc.Graph.from_numpy(edge_index, x, np.unique(y * 5, return_inverse=True)[1])",
    "ranges": "lc.Graph.from_numpy(edge_index, x, np.digitize(y + 0.5, [1.0]))",
    "texts": "lc.Graph.from_numpy(edge_index, x.astype(str).astype(np.float32), y)",
}


@pytest.mark.parametrize("fix", FIXES)
def test_what_a_message_proposes_does(fix: str) -> None:
    place = names()
    edges, ids = place["edge_index"], np.array([30, 10, 50, 20, 60, 40])
    place["matrix"] = np.zeros((6, 6))
    place["matrix"][tuple(edges)] = 1
    place["names"], place["rows"] = np.unique(np.array(list("abcdef"))[edges], return_inverse=True)
    place["ids"], place["order"] = ids, np.argsort(ids)
    place["more"] = np.concatenate([edges, [[7, 0], [1, 9]]], axis=1)
    place["less"] = np.concatenate([edges, [[-1, 0], [1, -1]]], axis=1)
    found, expected = (eval(code, place).arrays() for code in (FIXES[fix], "graph"))  # noqa: S307
    for name in ("edge_index", "features", "labels"):
        assert found[name].tolist() == expected[name].tolist(), name


def test_every_array_of_the_format_is_known_and_no_other() -> None:
    lines = (DOCS / "formats.md").read_text(encoding="utf-8").partition("## Interchange npz")[2].partition("### ")[0]
    rows = [line.split("|") for line in lines.splitlines() if line.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row[1] + row[3]) if name in source.NAMES}
    first = {name for row in rows for name in re.findall(r"`(\w+)`", row[1])}
    assert first <= set(source.NAMES)
    assert {name for name in source.NAMES if not name.startswith("valid_")} <= listed


def test_right_arrays_are_no_reason_for_a_note() -> None:
    given = names()
    with warnings.catch_warnings():
        warnings.simplefilter("error", lc.LaconicWarning)
        lc.Graph.from_numpy(given["edge_index"], given["x"], given["y"], **given["masks"])
        several = np.array([[0, 1], [1, 1], [0, 0], [0, 1], [1, 0], [0, 1]])
        lc.Graph.from_numpy(given["edge_index"], given["x"], several, **given["masks"])
        lc.Graph.from_numpy([[0, 1], [1, 2]], undirected=False)
        lc.Graph.from_numpy([[0, 1], [1, 2]], undirected=True)
        back = lc.Graph.from_numpy(**lc.Graph.from_numpy([[0, 1], [1, 2]], undirected=False).arrays())
    assert back.edges == 2


def test_a_note_points_at_the_line_of_the_caller() -> None:
    with pytest.warns(lc.LaconicWarning) as noted:
        lc.Graph.from_numpy([[0, 1], [1, 2]])
    assert [note.filename for note in noted] == [__file__]


@pytest.mark.filterwarnings("ignore:y. each row has a single 1")
@pytest.mark.parametrize("labels", ["labels", "y"])
def test_columns_of_one_class_each_are_kept_by_the_name_of_the_format(labels: str) -> None:
    graph = lc.Graph.from_numpy([[0, 1], [1, 0]], **{labels: np.eye(2)})
    assert graph.arrays()["labels"].ndim == (2 if labels == "labels" else 1)


@pytest.mark.parametrize(
    ("y", "labels", "called"),
    [
        (["10", "2", "NA", "2"], [1, 0, -1, 0], ["2", "10"]),
        (["0", "1", "2", "1"], [0, 1, 2, 1], ["0", "1", "2"]),
        (["01", "1", "b", float("nan")], [0, 1, 2, -1], ["01", "1", "b"]),
        (np.array([b"b", b"a", b"b", b"a"]), [1, 0, 1, 0], ["a", "b"]),
        ([[0], [1], [1], [0]], [0, 1, 1, 0], ["0", "1"]),
        ([True, False, None, True], [1, 0, -1, 1], ["0", "1"]),
        ([-1, 2, 1, 0], [-1, 2, 1, 0], ["0", "1", "2"]),
    ],
)
def test_labels_become_the_classes_that_tables_of_the_program_would_have(y: list, labels: list, called: list) -> None:
    graph = lc.Graph.from_numpy([[0, 1], [1, 0]], y=y, num_nodes=4)
    assert graph.arrays()["labels"].tolist() == labels
    assert graph.class_names == called


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ([], [0, 0, 0]),
        (range(2), [1, 1, 0]),
        (np.array([0, 255, 0], dtype=np.uint8), [0, 1, 0]),
        ([True, None, float("nan")], [1, 0, 0]),
        ([0.0, 1.0, 1.0], [0, 1, 1]),
        ([1, 0, 1], [1, 0, 1]),
        ([2], [0, 0, 1]),
        (np.eye(3, dtype=bool), np.eye(3).tolist()),
    ],
)
def test_masks_are_truth_values_or_numbers_of_nodes(mask: list, expected: list) -> None:
    graph = lc.Graph.from_numpy([[0, 1, 2], [1, 2, 0]], y=[0, 1, 0], train_mask=mask)
    assert graph.arrays()["train_mask"].tolist() == expected


def test_texts_take_the_numbers_that_class_names_say() -> None:
    graph = lc.Graph.from_numpy([[0, 1], [1, 0]], y=["b", "a", None], num_nodes=3, class_names=["b", "a", "c"])
    assert graph.arrays()["labels"].tolist() == [0, 1, -1] and graph.class_names == ["b", "a", "c"]
    with pytest.raises(lc.DataError, match="y: 'd' is none of class_names, which are a, b"):
        lc.Graph.from_numpy([[0, 1], [1, 0]], y=["a", "d"], class_names=["a", "b"])


def test_texts_are_the_classes_that_data_convert_makes_of_them(tmp_path: Path) -> None:
    cells = ["ü", "a", "B", "", "NA", "z", "a", "10", "Zz", "_"]
    rows = "".join(f"{number},{cell}\n" for number, cell in enumerate(cells))
    (tmp_path / "nodes.csv").write_text(f"id,label\n{rows}", encoding="utf-8")
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"{n},{(n + 1) % 10}\n" for n in range(10)))
    table = lc.Graph.read(tmp_path / "edges.csv", nodes=str(tmp_path / "nodes.csv"))
    graph = lc.Graph.from_numpy([[*range(10)], [*range(1, 10), 0]], y=cells, ids=range(10), undirected=False)
    assert graph.class_names == table.class_names
    order = np.argsort(table.ids.astype(int))
    assert graph.arrays()["labels"].tolist() == table.arrays()["labels"][order].tolist()
