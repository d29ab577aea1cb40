"""Tables: columns of one length by name, as NumPy arrays."""

from __future__ import annotations

import csv
import html
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pandas
    import polars

# Rows that a notebook shows of a long table: so many of its first, and so many of its last.
_SHOWN = 5

# Rows that are read at once.
_BLOCK = 4096


class Table(Mapping[str, "np.ndarray"]):
    """Columns of one length by name: ``table["bytes"]`` is an array, ``len(table)`` the number of rows.

    Whole numbers are ``int64``, other numbers ``float64`` (missing ones NaN), texts are NumPy's texts, all else is
    objects (missing ones None). As with data frames, and unlike other mappings, the length is that of the columns:
    ``len(table.columns)`` counts those.
    """

    __slots__ = ("_columns", "_rows")

    def __init__(self, columns: Mapping[str, Any]) -> None:
        """A table of arrays, ``[rows]`` each.

        Raises:
            ValueError: if they are not of one length, or of more than one dimension; the message names the column.
        """
        import numpy as np

        self._columns = {name: np.asarray(column) for name, column in columns.items()}
        self._rows = 0
        for place, (name, column) in enumerate(self._columns.items()):
            if column.ndim != 1:
                raise ValueError(f"column {name!r}: expected one dimension, found the shape {list(column.shape)}")
            if place == 0:
                self._rows = len(column)
            elif len(column) != self._rows:
                raise ValueError(f"column {name!r}: expected {self._rows} rows as in the others, found {len(column)}")

    @classmethod
    def read_csv(cls, path: str | os.PathLike[str]) -> Table:
        """Reads a file of a run's folder, such as ``ledger.csv``: names of columns, then rows. An empty cell among
        numbers is NaN.

        Raises:
            OSError: if there is no such file.
            ValueError: if a row has another number of cells than there are columns; the message has its line.
        """
        with open(path, encoding="utf-8", newline="") as file:
            lines = csv.reader(file)
            names = next(lines, [])
            cells: list[list[str]] = [[] for _ in names]
            # In blocks: a list for each row of a long ledger would cost several times as much memory and time.
            while block := list(itertools.islice(lines, _BLOCK)):
                for row in block:
                    if len(row) != len(names):
                        where = f"{os.fspath(path)}: line {lines.line_num}, or just before"
                        raise ValueError(f"{where}: expected {len(names)} cells, found {len(row)}")
                for column, more in zip(cells, zip(*block)):
                    column.extend(more)
        return cls({name: _of_texts(column) for name, column in zip(names, cells)})

    @classmethod
    def of_records(cls, records: Iterable[Mapping[str, Any]]) -> Table:
        """A table with a row for each dictionary. What is in a dictionary of a dictionary has a name with a dot:
        ``{"val": {"loss": 1.5}}`` is the column ``"val.loss"``. Columns are in the order in which they first come."""
        rows = [flat(record) for record in records]
        names = dict.fromkeys(name for row in rows for name in row)
        return cls({name: _of_values([row.get(name) for row in rows]) for name in names})

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._columns)

    def __getitem__(self, name: str) -> np.ndarray:
        try:
            return self._columns[name]
        except KeyError:
            raise KeyError(f"no column {name!r}; there are {', '.join(self._columns) or 'none'}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return self._rows

    # A mapping's own views would count rows, its own == would ask whether arrays are true.
    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def keys(self) -> Any:
        """The names of the columns."""
        return self._columns.keys()

    def values(self) -> Any:
        """The columns."""
        return self._columns.values()

    def items(self) -> Any:
        """The columns with their names."""
        return self._columns.items()

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a data frame of pandas.

        Raises:
            ImportError: if pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise ImportError("to_pandas() needs pandas: pip install pandas") from None
        return pandas.DataFrame(self._columns)

    def to_polars(self) -> polars.DataFrame:
        """The table as a data frame of polars.

        Raises:
            ImportError: if polars is not installed.
        """
        try:
            import polars
        except ImportError:
            raise ImportError("to_polars() needs polars: pip install polars") from None
        # polars keeps objects of NumPy as objects that it can do little with; of lists it finds out what they hold.
        return polars.DataFrame(
            {name: column.tolist() if column.dtype.kind == "O" else column for name, column in self._columns.items()}
        )

    def __repr__(self) -> str:
        return f"Table({self._rows} rows: {', '.join(self._columns)})"

    def _repr_html_(self) -> str:
        places = list(range(self._rows))
        gap = len(places) > 2 * _SHOWN
        if gap:
            places = places[:_SHOWN] + places[-_SHOWN:]
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self._columns)
        rows = ["".join(f"<td>{html.escape(_cell(of[at]))}</td>" for of in self._columns.values()) for at in places]
        if gap:
            rows.insert(_SHOWN, "<td>…</td>" * len(self._columns))
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        count = f"<p>{self._rows} rows, {len(self._columns)} columns</p>"
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{count}"


def flat(record: Mapping[str, Any], separator: str = ".") -> dict[str, Any]:
    """A dictionary of dictionaries as one, whose names have all names on the way between separators."""
    found: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            found.update({f"{name}{separator}{inner}": of for inner, of in flat(value, separator).items()})
        else:
            found[name] = value
    return found


def _of_texts(texts: Sequence[str]) -> np.ndarray:
    """The cells of a column as whole numbers if they all are, else as numbers, else as they are."""
    import numpy as np

    # Python reads 1_000 as a number.
    if any(texts) and not any("_" in text for text in texts):
        try:
            return np.fromiter(map(int, texts), dtype=np.int64, count=len(texts))
        except (ValueError, OverflowError):
            pass
        try:
            return np.fromiter((float(text or "nan") for text in texts), dtype=np.float64, count=len(texts))
        except ValueError:
            pass
    return np.array(texts, dtype=np.str_)


def _of_values(values: list[Any]) -> np.ndarray:
    """The values of a column, None where there is none."""
    import numpy as np

    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return np.array(values, dtype=np.bool_)
    if kinds == {str}:
        return np.array(values, dtype=np.str_)
    if kinds == {int}:
        try:
            return np.array(values, dtype=np.int64)
        except OverflowError:
            pass
    elif kinds and kinds <= {int, float, type(None)} and kinds != {type(None)}:
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    # Filled one by one: NumPy would make a second dimension of lists.
    column = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        column[place] = value
    return column


def _cell(value: Any) -> str:
    """A cell as people read it."""
    if isinstance(value, (list, dict)):
        return json.dumps(value)
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    return f"{value:.6g}" if kind == "f" else str(value)
