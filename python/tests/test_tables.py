"""Tables: what a run's folder holds, as arrays and data frames."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import laconic_gnn as lc
import numpy as np
import pytest
from graphs import arrays
from laconic_gnn.tables import Table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of local SGD, which has every table."""
    out = tmp_path_factory.mktemp("runs") / "averaging"
    graph = lc.Graph.from_numpy(**arrays(), undirected=True)
    lc.train(graph, parts=3, schedule={"kind": "averaging"}, train={"epochs": 4}, out=out)
    return out


def test_a_ledger_has_the_bytes_of_the_summary_by_kind(folder: Path) -> None:
    ledger = Table.read_csv(folder / "ledger.csv")
    said = json.loads((folder / "summary.json").read_text())["bytes"]
    assert ledger["framed_bytes"].sum() == said["total"] > 0
    by_kind = {str(kind): ledger["framed_bytes"][ledger["kind"] == kind].sum() for kind in np.unique(ledger["kind"])}
    assert by_kind == {kind: count for kind, count in said["by_kind"].items() if count}


@pytest.mark.parametrize("name", ["ledger.csv", "lanes.csv"])
def test_a_table_has_every_cell_of_its_file(name: str, folder: Path) -> None:
    with (folder / name).open(newline="") as file:
        rows = list(csv.DictReader(file))
    table = Table.read_csv(folder / name)
    assert table.columns == list(rows[0]) and len(table) == len(rows) > 0
    for column, values in table.items():
        assert values.dtype.kind in "ifU" and values.dtype.itemsize >= 8
        assert [type(values[0].item())(row[column]) for row in rows] == values.tolist()
    whole = [column for column in table if table[column].dtype == np.int64]
    assert set(whole) == {*table} - {"kind", "direction", "doing", "start_s", "end_s"}


def test_rounds_become_columns_with_nan_where_nothing_was_measured() -> None:
    table = Table.of_records([{"round": 1, "loss": 2.0}, {"round": 2, "loss": 1.5, "val": {"f": {"1": 7}}, "bytes": 9}])
    assert table.columns == ["round", "loss", "val.f.1", "bytes"]
    assert table["round"].dtype == np.int64 and table["bytes"].dtype == np.float64
    np.testing.assert_equal(table["val.f.1"], [np.nan, 7.0])
    np.testing.assert_equal(table["bytes"], [np.nan, 9.0])


def test_each_kind_of_value_has_its_kind_of_column() -> None:
    long, members = 2**63, [[0, 1], [2, 3]]
    records = [
        {"text": "a", "truth": True, "members": members[0], "some": "x", "long": long, "both": 1, "unknown": None},
        {"text": "bc", "truth": False, "members": members[1], "some": None, "long": 1, "both": 0.5, "unknown": None},
    ]
    table = Table.of_records(records)
    assert [table[name].dtype.kind for name in table] == ["U", "b", "O", "O", "O", "f", "O"]
    # Lists of one length do not become a second dimension, nor whole numbers others.
    assert table["members"].tolist() == members and table["long"].tolist() == [long, 1]
    assert table["some"].tolist() == ["x", None] and table["unknown"].tolist() == [None, None]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "-2"], np.array([1, -2])),
        (["1", ""], np.array([1.0, np.nan])),
        (["1", "2.5e-3"], np.array([1.0, 0.0025])),
        (["1_0", "2"], np.array(["1_0", "2"])),
        (["", ""], np.array(["", ""])),
        (["1", "a,b"], np.array(["1", "a,b"])),
        (["1", str(2**63)], np.array([1.0, 2.0**63])),
    ],
)
def test_cells_are_whole_numbers_or_numbers_or_texts(cells: list[str], expected: np.ndarray, tmp_path: Path) -> None:
    with (tmp_path / "cells.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["place", "cell"], *enumerate(cells)])
    found = Table.read_csv(tmp_path / "cells.csv")["cell"]
    assert found.dtype == expected.dtype
    np.testing.assert_equal(found, expected)


def test_a_file_of_names_alone_is_a_table_without_rows(tmp_path: Path) -> None:
    (tmp_path / "none.csv").write_text("part,doing\n")
    table = Table.read_csv(tmp_path / "none.csv")
    assert table.columns == ["part", "doing"] and len(table) == 0
    assert Table.of_records([]).columns == []


def test_a_row_with_other_cells_is_an_error_that_names_the_file_and_the_line(tmp_path: Path) -> None:
    (tmp_path / "cut.csv").write_text("a,b\n1,2\n3\n")
    with pytest.raises(ValueError, match=r"cut.csv: line 3.*expected 2 cells, found 1"):
        Table.read_csv(tmp_path / "cut.csv")


def test_columns_of_several_lengths_or_dimensions_are_errors_that_name_the_column() -> None:
    with pytest.raises(ValueError, match="column 'b': expected 2 rows"):
        Table({"a": [1, 2], "b": [1]})
    with pytest.raises(ValueError, match=r"column 'a': expected one dimension.*\[1, 2\]"):
        Table({"a": [[1, 2]]})


def test_a_table_is_a_mapping_of_columns_whose_length_is_that_of_a_column() -> None:
    table = Table({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    assert len(table) == 3 and list(table) == ["a", "b"] == list(table.keys())
    assert len(table.keys()) == len(table.values()) == len(table.items()) == len(dict(table)) == 2
    assert "a" in table and "c" not in table and table.get("c") is None
    assert table == table and table != Table({"a": [1]})
    with pytest.raises(KeyError, match="no column 'c'; there are a, b"):
        table["c"]


def test_data_frames_of_pandas_have_the_columns_of_the_table(folder: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = Table.read_csv(folder / "ledger.csv").to_pandas()
    pandas.testing.assert_frame_equal(frame, pandas.read_csv(folder / "ledger.csv"))
    frame = Table.of_records([{"who": [1, 2], "loss": 0.5}, {"who": None}]).to_pandas()
    assert frame["who"].tolist() == [[1, 2], None] and frame["loss"].isna().tolist() == [False, True]


def test_data_frames_of_polars_have_the_columns_of_the_table(folder: Path) -> None:
    polars = pytest.importorskip("polars")
    from polars.testing import assert_frame_equal

    assert_frame_equal(Table.read_csv(folder / "ledger.csv").to_polars(), polars.read_csv(folder / "ledger.csv"))
    frame = Table.of_records([{"who": [1, 2], "some": "x"}, {"who": None, "some": None}]).to_polars()
    assert frame.schema == {"who": polars.List(polars.Int64), "some": polars.String}
    assert frame["who"].to_list() == [[1, 2], None]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_without_a_library_its_frames_are_errors_that_say_what_to_install(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=f"pip install {library}"):
        getattr(Table({"a": [1]}), f"to_{library}")()


def test_a_notebook_shows_the_ends_of_a_long_table_and_no_markup_of_its_cells() -> None:
    shown = Table({"<b>": np.arange(1000), "loss": np.full(1000, 1 / 3)})._repr_html_()
    assert "<b>" not in shown and "&lt;b&gt;" in shown
    assert shown.count("<tr>") == 12 and "<td>999</td>" in shown and "<td>500</td>" not in shown
    assert "<td>0.333333</td>" in shown and "1000 rows, 2 columns" in shown
    assert Table({"a": np.arange(10)})._repr_html_().count("<tr>") == 11
    assert Table({"a": [1, 2]}).__repr__() == "Table(2 rows: a)"
