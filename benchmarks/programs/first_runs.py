"""Stateful nodes: the cost of the first run of each, beside a hand-written program on the same engine.

Read the rows, write them to a Delta table, compute the node, write its rows to a Delta table. The rows have 20 of a key, or, where they
are skewed, every other one has the same key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from benchmarks.benchmark import Benchmark, Program
from benchmarks.cells import ratio, rows_of, seconds, section, table
from benchmarks.job import WARM
from benchmarks.programs.growth import NODES, PIPELINE, PREFIX, SKEWED, lay_out, load, write
from benchmarks.session import session

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from benchmarks.job import Job
    from benchmarks.results import Results

ROWS, ITEMS = "id BIGINT, k BIGINT, v DOUBLE, day DATE, note STRING", "k BIGINT, label STRING"
ERRATA, BASELINE, DUCKDB = "first-", "by-hand-", "duckdb-"


def with_errata(node: str, job: Job) -> None:
    """First runs of a node's pipeline."""
    for name, folder in job.first_runs():
        lay_out(NODES[node], job.data, folder)
        job.run(name, folder / PIPELINE)


def baseline(node: str, job: Job) -> None:
    """First runs of a node's program."""
    with session(job) as spark:
        for name, folder in job.first_runs():
            lay_out(NODES[node], job.data, folder)
            with job.lap(name):
                rows = stored(spark, folder, "rows", ROWS)
                found = WRITTEN[node](rows, partial(stored, spark, folder, "items", ITEMS))
                found.write.format("delta").save(str(folder / "node"))


def stored(spark: SparkSession, folder: Path, name: str, schema: str) -> DataFrame:
    """The records of a source, read and written to a Delta table."""
    table = str(folder / f"{name}.delta")
    spark.read.csv(str(folder / name), schema=schema, header=True).write.format("delta").save(table)
    return spark.read.format("delta").load(table)


def sums(rows: DataFrame, _: Callable[[], DataFrame]) -> DataFrame:
    """Sum and mean of a key."""
    from pyspark.sql import functions as F

    return rows.groupBy("k").agg(F.sum("v").alias("total"), F.avg("v").alias("mean"))


def extremes(rows: DataFrame, _: Callable[[], DataFrame]) -> DataFrame:
    """Least and greatest value of a key."""
    from pyspark.sql import functions as F

    return rows.groupBy("k").agg(F.min("v").alias("low"), F.max("v").alias("high"))


def distinct(rows: DataFrame, _: Callable[[], DataFrame]) -> DataFrame:
    """The first record of a key."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    numbered = rows.withColumn("place", F.row_number().over(Window.partitionBy("k").orderBy("id")))
    return numbered.where(F.col("place") == 1).drop("place")


def analytic_window(rows: DataFrame, _: Callable[[], DataFrame]) -> DataFrame:
    """Each record with the sum of its key so far."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    so_far = Window.partitionBy("k").orderBy("id").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return rows.withColumn("so_far", F.sum("v").over(so_far))


def time_window(rows: DataFrame, _: Callable[[], DataFrame]) -> DataFrame:
    """How many records a key has on a day."""
    from pyspark.sql import functions as F

    return rows.groupBy("day", "k").agg(F.count("*").alias("n"))


def combine(rows: DataFrame, items: Callable[[], DataFrame]) -> DataFrame:
    """Each record with its item's label."""
    return rows.join(items(), "k", "left").select("id", "label")


WRITTEN: Final[dict[str, Callable[[DataFrame, Callable[[], DataFrame]], DataFrame]]] = {
    "growth-sums": sums,
    "growth-extremes": extremes,
    "growth-distinct": distinct,
    "growth-analytic-window": analytic_window,
    "growth-time-window": time_window,
    "growth-combine": combine,
}
def in_duckdb(node: str, job: Job) -> None:
    """First runs of a node's program in DuckDB: the records, and the rows of the node, are tables of a database file."""
    import duckdb

    for name, folder in job.first_runs():
        lay_out(NODES[node], job.data, folder)
        with job.lap(name), duckdb.connect(folder / "node.duckdb") as connection:
            load(connection, folder)
            connection.sql(NODES[node].statement).create("node")


def programs() -> Iterator[tuple[str, Program]]:
    """The programs of each node, of uniform and of skewed keys, side by side."""
    for node in WRITTEN:
        for shape in ("", SKEWED):
            name = f"{node.removeprefix(PREFIX)}{shape}"
            yield f"{DUCKDB}{name}", Program(partial(in_duckdb, node), ("duckdb",))
            yield f"{BASELINE}{name}", Program(partial(baseline, node))
            yield f"{ERRATA}{name}", Program(partial(with_errata, node))


TEXT: Final = (
    "First runs, warm, of a source and one stateful node: 20 rows a key, or every other row of one key (skewed). The hand-written program: read the rows, write them to a Delta",
    "table, compute the node, write its rows to a Delta table; in DuckDB the tables lie in a database file. Promised is at most 1.3 times as much as DuckDB takes.",
)


def show(results: Results) -> Iterator[str]:
    """The first run of a stateful node beside programs that do the same work."""
    yield from section("Stateful nodes", TEXT)
    measured = results.among(program for program in PROGRAMS if program.startswith(ERRATA))
    rows = []
    for one in measured:
        node = one.program.removeprefix(ERRATA)
        ours, by_hand = one.part(WARM), results.part(BASELINE + node, one.engine, one.size, WARM)
        duckdb = results.part(DUCKDB + node, "duckdb", one.size, WARM)
        keys = "skewed" if node.endswith(SKEWED) else "uniform"
        figures = (seconds(ours), seconds(by_hand), seconds(duckdb), ratio(ours, by_hand), ratio(ours, duckdb))
        rows.append((rows_of(one.size), one.engine, node.removesuffix(SKEWED), keys, *figures))
    yield from table(("rows", "engine", "node", "keys", "Errata", "PySpark", "DuckDB", "/ PySpark", "/ DuckDB"), rows, measured)


PROGRAMS: Final = dict(programs())
BENCHMARK: Final = Benchmark("stateful", PROGRAMS, (5_000_000,), write, show)
