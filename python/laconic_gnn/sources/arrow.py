"""Tables of other libraries, written as Parquet by the library that they are of, or by one that reads them."""

from __future__ import annotations

import importlib.util
from typing import Any

from ..errors import DataError

# Methods that write Parquet, where a library needs no other for it.
_OWN = {"polars": "write_parquet", "duckdb": "write_parquet", "_duckdb": "write_parquet"}


def write(name: str, table: Any, path: str) -> None:
    """Writes a table as a Parquet file.

    Args:
        name: what the caller calls it.
        table: an object with ``__arrow_c_stream__``.
        path: the file.

    Raises:
        DataError: if it is no table.
        ImportError: if no package is installed that can write it.
    """
    if not hasattr(table, "__arrow_c_stream__"):
        usual = "a DataFrame of pandas or polars, a relation of DuckDB or a Table of pyarrow"
        raise DataError(f"{name}: expected a table such as {usual}, found {type(table).__name__}")
    own = _OWN.get(type(table).__module__.partition(".")[0])
    if own is not None and hasattr(table, own):
        getattr(table, own)(path)
    elif importlib.util.find_spec("pyarrow"):
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table(table), path)
    elif importlib.util.find_spec("polars"):
        import polars

        polars.DataFrame(table).write_parquet(path)
    else:
        raise ImportError("tables are handed on as Parquet: pip install pyarrow, or polars")
