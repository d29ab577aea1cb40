"""Parquet as engines write it in one file: lists, types of columns, ids (trials 1-10, 21-42)."""
import datetime
import decimal
import uuid
import numpy as np
import duckdb
import fastparquet
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from sample import BARE, DST, EDGES, IDS, LABEL, N, SPLIT, SRC, WEIGHT, X, truth
from trial import Case, Truth, trial

ROWS = pa.table({"id": IDS, "x": pa.array([x.tolist() for x in X], pa.list_(pa.float32())), "label": LABEL,
                 "split": SPLIT})
LISTS = {
    1: ("pages 1.0, snappy", {"data_page_version": "1.0"}),
    2: ("pages 2.0, zstd", {"data_page_version": "2.0", "compression": "zstd"}),
    3: ("gzip, row groups of 3", {"compression": "gzip", "row_group_size": 3}),
    4: ("none, row groups of 1000", {"compression": "none", "row_group_size": 1000}),
    5: ("byte stream split", {"use_byte_stream_split": ["x.list.element"], "use_dictionary": False}),
}


def edges(name="edges.parquet"):
    pq.write_table(pa.table({"src": SRC, "dst": DST, "weight": WEIGHT}), name)


def nodes(split=True, **columns):
    """`nodes.parquet` by pyarrow, with these columns for the features."""
    more = {"label": LABEL, "split": SPLIT} if split else {"label": LABEL}
    pq.write_table(pa.table({"id": IDS, **columns, **more}), "nodes.parquet")


for number, (how, options) in LISTS.items():
    def lists(options=options):
        edges()
        pq.write_table(ROWS, "nodes.parquet", **options)
        yield Case("edges.parquet", truth=truth())
    trial(number, f"pyarrow lists: {how}")(lists)


@trial(6, "Polars arrays of fixed length, zstd")
def polars_arrays():
    pl.DataFrame({"src": SRC, "dst": DST, "weight": WEIGHT}).write_parquet("edges.parquet")
    x = pl.Series("x", X, dtype=pl.Array(pl.Float32, 4))
    pl.DataFrame({"id": IDS, "x": x, "label": LABEL, "split": SPLIT}).write_parquet("nodes.parquet")
    yield Case("edges.parquet", truth=truth())


@trial(7, "pandas lists")
def pandas_lists():
    pd.DataFrame({"src": SRC, "dst": DST, "weight": WEIGHT}).to_parquet("edges.parquet")
    pd.DataFrame({"id": IDS, "x": list(X), "label": LABEL, "split": SPLIT}).to_parquet("nodes.parquet")
    yield Case("edges.parquet", truth=truth())


def duckdb_copy(options):
    quiet = duckdb.connect()
    quiet.register("rows", ROWS)
    quiet.register("payments", pa.table({"src": SRC, "dst": DST, "weight": WEIGHT}))
    quiet.execute(f"copy payments to 'edges.parquet' (format parquet{options})")
    quiet.execute(f"copy rows to 'nodes.parquet' (format parquet{options})")
    yield Case("edges.parquet", truth=truth())


trial(8, "DuckDB lists")(lambda: duckdb_copy(""))
trial(9, "DuckDB lists, parquet_version v2")(lambda: duckdb_copy(", parquet_version v2"))


@trial(10, "pyarrow lists of fixed length, zstd")
def fixed():
    edges()
    nodes(x=pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 4))
    yield Case("edges.parquet", truth=truth())


@trial(22, "DuckDB ids of DECIMAL(38,0) and (18,0)")
def decimal_ids():
    for width in (38, 18):
        duckdb.sql(f"copy (select i::decimal({width},0) as src, ((i * 7 + 3) % 20)::decimal({width},0) as dst "
                   f"from range(20) r(i)) to 'ids{width}.parquet'")
        yield Case(f"ids{width}.parquet", truth=Truth([(i, (i * 7 + 3) % 20) for i in range(20)], range(20)))


@trial(23, "DuckDB weights of DECIMAL")
def decimal_weights():
    duckdb.sql("copy (select i as src, (i * 7 + 3) % 20 as dst, (i * 1.25 + 1)::decimal(18,2) as weight "
               "from range(20) r(i)) to 'edges.parquet'")
    yield Case("edges.parquet", truth=Truth([(i, (i * 7 + 3) % 20, i * 1.25 + 1) for i in range(20)], range(20)))


@trial(24, "Polars, DuckDB, pyarrow features of DECIMAL")
def decimal_features():
    edges()
    money = [decimal.Decimal(f"{i}.25") for i in range(N)]
    right = truth(x=[[float(value)] for value in money])
    pl.DataFrame({"id": IDS, "money": pl.Series(money, dtype=pl.Decimal(10, 2)), "label": LABEL, "split": SPLIT}
                 ).write_parquet("polars.parquet")
    table = pa.table({"id": IDS, "money": pa.array(money, pa.decimal128(38, 2)), "label": LABEL, "split": SPLIT})
    pq.write_table(table, "pyarrow.parquet")
    duckdb.sql("copy (from 'pyarrow.parquet') to 'duckdb.parquet'")
    pq.write_table(table.set_column(1, "money", pa.array(money, pa.decimal128(9, 2))), "short.parquet",
                   store_decimal_as_integer=True)
    for name in ("polars", "pyarrow", "duckdb", "short"):
        yield Case("edges.parquet", "--nodes", f"{name}.parquet", truth=right)


@trial(25, "DuckDB ids of type UUID")
def uuids():
    ids = [str(uuid.uuid5(uuid.NAMESPACE_DNS, str(i))) for i in range(10)]
    rows = pa.table({"src": ids, "dst": ids[1:] + ids[:1]})
    quiet = duckdb.connect()
    quiet.register("rows", rows)
    quiet.execute("copy (select src::uuid as src, dst::uuid as dst from rows) to 'edges.parquet'")
    quiet.execute("copy (select src::uuid as id, 1 as label from rows) to 'nodes.parquet'")
    yield Case("edges.parquet", truth=Truth(list(zip(ids, ids[1:] + ids[:1])), ids, y={i: "1" for i in ids}))


@trial(26, "pyarrow and Polars features in half precision, lists and columns")
def halves():
    edges()
    half = X.astype(np.float16)
    nodes(emb=pa.array(list(half), pa.list_(pa.float16())))
    yield Case("edges.parquet", truth=truth())
    nodes(**{f"f{at}": pa.array(half[:, at]) for at in range(4)})
    yield Case("edges.parquet", truth=truth())
    pl.DataFrame({"id": IDS, "emb": pl.Series(half, dtype=pl.Array(pl.Float16, 4)), "label": LABEL, "split": SPLIT}
                 ).write_parquet("nodes.parquet")
    yield Case("edges.parquet", truth=truth())


@trial(27, "pyarrow lists of unsigned numbers")
def unsigned():
    edges()
    for kind, value in ((pa.uint8(), 200), (pa.uint32(), 4_000_000_000), (pa.uint64(), 2**63 + 2**40)):
        nodes(sig=pa.array([[value, i] for i in range(N)], pa.list_(kind)))
        yield Case("edges.parquet", truth=truth(x=[[value, i] for i in range(N)]))


@trial(28, "DuckDB ids of HUGEINT, which its file holds as doubles")
def hugeint():
    far = 9007199254740992  # nine ids are five doubles
    duckdb.sql(f"copy (select ({far}::hugeint + i) as src, ({far}::hugeint + i + 1) as dst from range(8) r(i)) "
               "to 'edges.parquet'")
    lost = [int(float(far + i)) for i in range(9)]
    yield Case("edges.parquet", truth=Truth(list(zip(lost, lost[1:])), lost), told=["2^53"])


@trial(29, "Polars ids from hash(), whole numbers without a sign")
def hashes():
    ids = pl.Series(IDS).hash()
    place = dict(zip(IDS, ids))
    pl.DataFrame({"src": [place[a] for a in SRC], "dst": [place[b] for b in DST]},
                 schema={"src": pl.UInt64, "dst": pl.UInt64}).write_parquet("edges.parquet")
    yield Case("edges.parquet", truth=Truth([(place[a], place[b]) for a, b in BARE]))


@trial(30, "times of day: TIME by DuckDB and Polars")
def times():
    edges()
    duckdb.sql("copy (select 'u' || i as id, (time '08:00:00' + to_seconds(i * 60)) as seen, i % 2 as label "
               "from range(20) r(i)) to 'duckdb.parquet'")
    pl.DataFrame({"id": IDS, "seen": [datetime.time(8, i) for i in range(N)], "label": [i % 2 for i in range(N)]}
                 ).write_parquet("polars.parquet")
    y, days = [i % 2 for i in range(N)], [[(480 + i) / 1440] for i in range(N)]
    for name in ("duckdb.parquet", "polars.parquet"):
        yield Case("edges.parquet", "--nodes", name, truth=truth(x=False, y=y, split=None), says=["'seen'"])
        yield Case("edges.parquet", "--nodes", name, "--dates", "days", truth=truth(x=days, y=y, split=None))


@trial(31, "DuckDB INTERVAL, BIT, BOOLEAN, UTINYINT, and nothing but NULL")
def kinds():
    edges()
    duckdb.sql("copy (select 'u' || i as id, to_days(i::int) as gap, '0101'::bit as bits, i % 2 = 0 as yes, "
               "(200 + i)::utinyint as tiny, null::int as nothing, i % 2 as label from range(20) r(i)) "
               "to 'nodes.parquet'")
    yield Case("edges.parquet", truth=truth(x=[[i % 2 == 0, 200 + i] for i in range(N)], y=[i % 2 for i in range(N)],
                                            split=None), says=["gap", "bits", "nothing"])


@trial(32, "a column of bytes that are no text beside features (GeoParquet)")
def geometry():
    edges()
    nodes(x=pa.array(X[:, 0]), geom=pa.array([b"\x01\x01\x00\x00\x00\xff\xfe"] * N))
    yield Case("edges.parquet", truth=truth(x=X[:, :1]), says=["geom"])


@trial(33, "bytes of fixed length, lists of lists, lists of truth values")
def odd_lists():
    edges()
    nodes(x=pa.array(X[:, 0]), raw=pa.array([b"\xff\x00\x01\x02"] * N, pa.binary(4)))
    yield Case("edges.parquet", truth=truth(x=X[:, :1]), says=["raw"])
    nodes(x=pa.array(X[:, 0]), deep=pa.array([[[1.0, 2.0], [3.0]]] * N))
    yield Case("edges.parquet", truth=truth(x=X[:, :1]), remedy=["--ignore", "deep"])
    nodes(x=pa.array([[i % 2 == 0, i % 3 == 0] for i in range(N)]))
    yield Case("edges.parquet", truth=truth(x=[[i % 2 == 0, i % 3 == 0] for i in range(N)]))


@trial(34, "lists that are null, empty, or hold nulls")
def null_lists():
    edges()
    rows = [[1.5, float(i)] for i in range(N)]
    nodes(x=pa.array([None, [None, 2.0], *rows[2:]], pa.list_(pa.float64())))
    right = [[0, 0, 1], [0, 0, 1], *([*row, 0] for row in rows[2:])]  # a list with a null has no value
    yield Case("edges.parquet", truth=truth(x=right), remedy=["--missing", "zero"])
    nodes(x=pa.array([[], *rows[1:]], pa.list_(pa.float64())))
    yield Case("edges.parquet", "--missing", "zero", truth=truth(x=[[0, 0, 1], *([*row, 0] for row in rows[1:])]))


@trial(35, "lists of different lengths")
def ragged():
    edges()
    nodes(f=pa.array(X[:, 0]), x=pa.array([[1.0]] + [[1.0, 2.0]] * (N - 1)))
    yield Case("edges.parquet", truth=truth(x=X[:, :1]), remedy=["--ignore", "x"])


@trial(36, "ids from dictionaries and views of pyarrow, Polars' Enum, pandas' Categorical")
def categories():
    pq.write_table(pa.table({"src": pa.array(SRC).dictionary_encode(), "dst": pa.array(DST, pa.string_view()),
                             "weight": WEIGHT}), "pyarrow.parquet")
    kind = pl.Enum(IDS)
    pl.DataFrame({"src": pl.Series(SRC, dtype=kind), "dst": pl.Series(DST, dtype=kind), "weight": WEIGHT}
                 ).write_parquet("polars.parquet")
    pd.DataFrame({"src": pd.Categorical(SRC), "dst": pd.Categorical(DST), "weight": WEIGHT}
                 ).to_parquet("pandas.parquet")
    for name in ("pyarrow", "polars", "pandas"):
        yield Case(f"{name}.parquet", truth=Truth(EDGES, IDS))


@trial(37, "pandas' Int64 and boolean with missing values")
def nullable():
    edges()
    ages = [None if i == 3 else 20 + i for i in range(N)]
    pd.DataFrame({"id": IDS, "age": pd.array(ages, dtype="Int64"), "yes": pd.array([i % 2 == 0 for i in range(N)],
                  dtype="boolean"), "label": LABEL, "split": SPLIT}).to_parquet("nodes.parquet")
    right = [[0 if i == 3 else 20 + i, i == 3, i % 2 == 0] for i in range(N)]
    yield Case("edges.parquet", truth=truth(x=right), remedy=["--missing", "zero"])


@trial(38, "pandas: texts as the index, in Parquet")
def index_in_parquet():
    edges()
    frame = pd.DataFrame({"x": X[:, 0], "label": LABEL, "split": SPLIT}, index=IDS)
    frame.to_parquet("nodes.parquet")
    yield Case("edges.parquet", truth=truth(x=X[:, :1]))
    frame.rename_axis("customer").to_parquet("nodes.parquet")
    yield Case("edges.parquet", truth=truth(x=X[:, :1]), remedy=["--id", "customer"])


@trial(39, "pandas: texts as the index, in CSV (scanpy's obs)")
def index_in_csv():
    pd.DataFrame({"src": SRC, "dst": DST, "weight": WEIGHT}).to_csv("edges.csv", index=False)
    pd.DataFrame({"x": X[:, 0], "label": LABEL, "split": SPLIT}, index=IDS).to_csv("nodes.csv")
    for flags in ((), ("--id", ""), ("--id", "Unnamed: 0")):
        yield Case("edges.csv", *flags, truth=truth(x=X[:, :1]))


@trial(40, "fastparquet's column of lists, which are JSON in bytes")
def json_lists():
    edges()
    frame = pd.DataFrame({"id": pd.Series(IDS, dtype=object), "x": [x.tolist() for x in X],
                          "label": pd.Series(LABEL, dtype=object), "split": pd.Series(SPLIT, dtype=object)})
    fastparquet.write("nodes.parquet", frame, object_encoding={"id": "utf8", "x": "json", "label": "utf8",
                                                              "split": "utf8"})
    yield Case("edges.parquet", truth=truth())


@trial(41, "fastparquet's edges")
def fast_edges():
    frame = pd.DataFrame({"src": pd.Series(SRC, dtype=object), "dst": pd.Series(DST, dtype=object), "weight": WEIGHT})
    fastparquet.write("edges.parquet", frame)
    yield Case("edges.parquet", truth=Truth(EDGES, IDS))
