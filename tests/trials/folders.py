"""Folders as engines write them (trials 11-20, 42, 43). Spark needs Java."""
import os
import shutil
import duckdb
import deltalake
import dask.dataframe
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
from sample import BARE, DST, EDGES, IDS, LABEL, N, SPLIT, SRC, WEIGHT, X, truth
from trial import Case, Missing, Truth, trial

PAYMENTS = pa.table({"src": SRC, "dst": DST, "weight": WEIGHT})
SESSIONS = []


def spark():
    """One session for all trials."""
    if not shutil.which("java"):
        raise Missing("Spark needs Java")
    if not SESSIONS:
        from pyspark.sql import SparkSession
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "OFF")
        SESSIONS.append(builder.getOrCreate())
    return SESSIONS[0]


def spark_edges(days=False):
    rows = [(a, b, w, f"2026-11-0{1 + at % 3}") if days else (a, b, w) for at, (a, b, w) in enumerate(EDGES)]
    return spark().createDataFrame(rows, ["src", "dst", "weight", "day"][:4 if days else 3])


def spark_nodes(*more):
    """Nodes with lists; `more` are names of columns and functions from a row's number to its value."""
    rows = [(IDS[i], X[i].tolist(), LABEL[i], SPLIT[i], *(make(i) for _, make in more)) for i in range(N)]
    return spark().createDataFrame(rows, ["id", "x", "label", "split", *(name for name, _ in more)])


@trial(11, "Spark folders with lists, decimals and timestamps (INT96)")
def spark_folders():
    import datetime
    import decimal
    spark_edges().repartition(3).write.parquet(os.path.abspath("edges.parquet"))
    more = (("money", lambda i: decimal.Decimal(f"{i}.5")), ("seen", lambda i: datetime.datetime(2026, 11, 1, i)))
    spark_nodes(*more).repartition(2).write.parquet(os.path.abspath("nodes.parquet"))
    x = np.column_stack([X, [i + 0.5 for i in range(N)]])
    yield Case("edges.parquet", "--nodes", "nodes.parquet", truth=truth(x=x), says=["seen"])


@trial(12, "Spark folders: gzip, zstd, uncompressed")
def spark_codecs():
    for codec in ("gzip", "zstd", "uncompressed"):
        spark_edges().write.option("compression", codec).parquet(os.path.abspath(f"{codec}/edges.parquet"))
        spark_nodes().write.option("compression", codec).parquet(os.path.abspath(f"{codec}/nodes.parquet"))
        yield Case(f"{codec}/edges.parquet", "--nodes", f"{codec}/nodes.parquet", truth=truth())


@trial(13, "Spark lz4 and lz4_raw; DuckDB lz4, lz4_raw and brotli; pyarrow lz4 and brotli")
def codecs():
    duck = duckdb.connect()
    duck.register("payments", PAYMENTS)
    for codec in ("lz4", "lz4_raw", "brotli"):
        duck.execute(f"copy payments to 'duckdb_{codec}.parquet' (format parquet, codec '{codec}')")
        yield Case(f"duckdb_{codec}.parquet", truth=Truth(EDGES, IDS))
    for codec in ("lz4", "brotli"):
        pq.write_table(PAYMENTS, f"pyarrow_{codec}.parquet", compression=codec)
        yield Case(f"pyarrow_{codec}.parquet", truth=Truth(EDGES, IDS))
    if shutil.which("java"):
        for codec in ("lz4", "lz4_raw"):
            spark_edges().write.option("compression", codec).parquet(os.path.abspath(f"spark_{codec}"))
            yield Case(f"spark_{codec}", truth=Truth(EDGES, IDS))


@trial(14, "Spark partitionBy: split of the nodes, day of the edges")
def partitioned():
    spark_edges(days=True).write.partitionBy("day").parquet(os.path.abspath("edges.parquet"))
    spark_nodes().write.partitionBy("split").parquet(os.path.abspath("nodes.parquet"))
    yield Case("edges.parquet", "--nodes", "nodes.parquet", truth=truth())


@trial(15, "Spark CSV, CSV with gzip, JSON, ORC")
def spark_texts():
    spark_edges().repartition(2).write.option("header", True).csv(os.path.abspath("plain"))
    yield Case("plain", truth=Truth(EDGES, IDS))
    packed = spark_edges().repartition(2).write.option("header", True).option("compression", "gzip")
    packed.csv(os.path.abspath("packed"))
    yield Case("packed", truth=Truth(EDGES, IDS))
    spark_edges().write.json(os.path.abspath("json"))
    yield Case("json", truth=Truth(EDGES, IDS), remedy=["read_json"], follow=lambda: as_parquet(
        pd.concat([pd.read_json(f"json/{name}", lines=True) for name in parts("json", ".json")])))
    spark_edges().write.orc(os.path.abspath("orc"))
    import pyarrow.orc
    yield Case("orc", truth=Truth(EDGES, IDS), remedy=["ORC", "write_table"], follow=lambda: as_parquet(
        pa.concat_tables([pyarrow.orc.read_table(f"orc/{name}") for name in parts("orc", ".orc")]).to_pandas()))


def parts(folder, ending):
    return sorted(name for name in os.listdir(folder) if name.endswith(ending))


def as_parquet(frame):
    frame.to_parquet("followed.parquet")
    return ["followed.parquet"]


@trial(16, "DuckDB per_thread_output; pyarrow write_to_dataset and hive partitions; Dask")
def other_folders():
    duck = duckdb.connect()
    duck.register("payments", PAYMENTS)
    duck.execute("copy payments to 'duckdb' (format parquet, per_thread_output true)")
    pq.write_to_dataset(PAYMENTS, "pyarrow")
    days = PAYMENTS.append_column("day", pa.array([f"2026-11-0{1 + at % 3}" for at in range(len(EDGES))]))
    pq.write_to_dataset(days, "hive", partition_cols=["day"])
    frame = dask.dataframe.from_pandas(PAYMENTS.to_pandas(), npartitions=3)
    frame.to_parquet("dask", write_index=False)
    for folder in ("duckdb", "pyarrow", "hive", "dask"):
        yield Case(folder, truth=Truth(EDGES, IDS))


@trial(17, "thousands of part files, as Spark jobs leave them")
def many():
    os.mkdir("many")
    for i in range(2100):
        pq.write_table(pa.table({"src": [i], "dst": [i + 1]}), f"many/part-{i:05}-0f-c000.snappy.parquet")
    yield Case("many", truth=Truth([(i, i + 1) for i in range(2100)]))


def delta_rows(path):
    rows = deltalake.DeltaTable(path).to_pyarrow_table().to_pylist()
    return [(row["src"], row["dst"], row["weight"]) for row in rows]


@trial(18, "Delta Lake after an overwrite")
def delta_overwritten():
    deltalake.write_deltalake("calls", PAYMENTS)
    deltalake.write_deltalake("calls", PAYMENTS.slice(5, 9), mode="overwrite")
    yield Case("calls", truth=Truth(delta_rows("calls")))


@trial(19, "Delta Lake: one row updated, others deleted, a checkpoint")
def delta_updated():
    deltalake.write_deltalake("calls", PAYMENTS)
    deltalake.DeltaTable("calls").update(predicate="src = 'u1'", updates={"weight": "100.0"})
    yield Case("calls", truth=Truth(delta_rows("calls")))
    deltalake.DeltaTable("calls").delete("src = 'u2'")
    yield Case("calls", truth=Truth(delta_rows("calls")))
    deltalake.DeltaTable("calls").create_checkpoint()
    deltalake.write_deltalake("calls", pa.table({"src": ["u2"], "dst": ["u3"], "weight": [2.0]}), mode="append")
    yield Case("calls", truth=Truth(delta_rows("calls")))


@trial(20, "Delta Lake: a table of nodes after an update")
def delta_nodes():
    deltalake.write_deltalake("calls", PAYMENTS)
    deltalake.write_deltalake("people", pa.table({"id": IDS, "x": X[:, 0], "label": LABEL, "split": SPLIT}))
    deltalake.DeltaTable("people").update(predicate="id = 'u4'", updates={"x": "99.0"})
    right = X[:, :1].copy()
    right[4] = 99
    yield Case("calls", "--nodes", "people", truth=truth(x=right))


@trial(21, "Spark ML vectors, dense and sparse, as features")
def vectors():
    spark()
    from pyspark.ml.linalg import Vectors
    spark_edges().write.parquet(os.path.abspath("edges.parquet"))
    sparse = [{at: float(value) for at, value in enumerate(row) if value > 0} for row in X]
    rows = [(IDS[i], Vectors.dense(X[i].tolist()) if i % 2 else Vectors.sparse(4, sparse[i]), LABEL[i], SPLIT[i])
            for i in range(N)]
    spark().createDataFrame(rows, ["id", "features", "label", "split"]).write.parquet(os.path.abspath("nodes.parquet"))
    x = [X[i] if i % 2 else np.maximum(X[i], 0) for i in range(N)]
    yield Case("edges.parquet", "--nodes", "nodes.parquet", truth=truth(x=x))


@trial(42, "parts with whole and with other numbers as weights, columns in another order")
def uneven():
    os.mkdir("parts")
    whole = pa.table({"src": SRC[:3], "dst": DST[:3], "weight": [1, 2, 3]})
    pq.write_table(whole, "parts/part-0.parquet")
    pq.write_table(PAYMENTS.slice(3).select(["weight", "dst", "src"]), "parts/part-1.parquet")
    right = [(*pair, float(at + 1)) for at, pair in enumerate(BARE[:3])] + EDGES[3:]
    yield Case("parts", truth=Truth(right, IDS))


@trial(43, "--id row on pyarrow's part-0 to part-11")
def rows_as_ids():
    table = pa.table({"x": np.arange(24.0), "label": np.arange(24) % 2})
    pyarrow.dataset.write_dataset(table, "nodes", format="parquet", max_rows_per_file=2, max_rows_per_group=2)
    pq.write_table(pa.table({"src": np.arange(23), "dst": np.arange(1, 24)}), "edges.parquet")
    ids = range(24)
    right = Truth([(i, i + 1) for i in range(23)], ids, x={i: [i] for i in ids}, y={i: i % 2 for i in ids})
    yield Case("edges.parquet", "--nodes", "nodes", "--id", "row", truth=right)
