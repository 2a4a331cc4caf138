"""The work on sales as hand-written programs: PySpark on either engine, DuckDB, and Polars.

Read the CSV files, write the records to a Delta table, derive `total`, aggregate by account, write one CSV file.
DuckDB keeps the records in a database file, Polars in a Parquet file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.answers import Answer, difference
from benchmarks.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from benchmarks.job import Job

SCHEMA: Final = "id BIGINT, account STRING, quantity BIGINT, price DOUBLE, day DATE"
TOTALS: Final = "account, sum(total) AS total, avg(total) AS mean, count(*) AS sales, max(total) AS largest"


def pyspark(job: Job) -> None:
    """The PySpark program several times in one process: the first time everything is cold, then it is warm."""
    with session(job) as spark:
        for name, folder in job.first_runs():
            with job.lap(name):
                totals_by_account(spark, job.data, folder)
            check(folder / "totals", job.data)


def totals_by_account(spark: SparkSession, data: Path, folder: Path) -> None:
    """CSV files -> Delta table of the records -> derived column -> 1000 groups -> one CSV file."""
    from pyspark.sql import functions as F

    records = spark.read.csv(str(data), schema=SCHEMA, header=True)
    records.write.format("delta").save(str(folder / "records"))
    stored = spark.read.format("delta").load(str(folder / "records"))
    derived = stored.withColumn("total", F.col("price") * F.col("quantity"))
    totals = (F.sum("total").alias("total"), F.avg("total").alias("mean"), F.count("*").alias("sales"), F.max("total").alias("largest"))
    derived.groupBy("account").agg(*totals).orderBy("account").coalesce(1).write.csv(str(folder / "totals"), header=True)


def bare_script(job: Job) -> None:
    """The least that a PySpark program with Delta does: open a session, append one table, read it back."""
    with job.lap("small, new process"), session(job) as spark:
        table = str(job.folder() / "table")
        spark.range(10_000).write.format("delta").mode("append").save(table)
        spark.read.format("delta").load(table).count()


def duckdb(job: Job) -> None:
    """The same in DuckDB, the records kept in a table of a database file."""
    import duckdb as database

    for name, folder in job.first_runs():
        with job.lap(name), database.connect(folder / "records.duckdb") as connection:
            connection.read_csv(str(job.data), header=True).create("records")
            derived = connection.table("records").project("account, price * quantity AS total")
            derived.aggregate(TOTALS, "account").order("account").write_csv(str(folder / "totals.csv"), header=True)


def duckdb_from_files(job: Job) -> None:
    """The same in DuckDB without a table of the records: the least that computes the totals anew."""
    for name, folder in job.first_runs():
        with job.lap(name):
            totals_by_duckdb(str(job.data), folder / "totals.csv")


def totals_by_duckdb(files: str, place: Path) -> Answer:
    """Aggregate the sales of files in DuckDB, and write a CSV file."""
    import duckdb as database

    with database.connect() as connection:
        derived = connection.read_csv(files, header=True).project("account, price * quantity AS total")
        totals = derived.aggregate(TOTALS, "account").order("account")
        totals.write_csv(str(place), header=True)
        return Answer(place, tuple(map(str, totals.types)))


def polars(job: Job) -> None:
    """The same in Polars, lazily, the records kept in a Parquet file."""
    import polars as pl

    for name, folder in job.first_runs():
        with job.lap(name):
            pl.scan_csv(job.data, try_parse_dates=True).sink_parquet(folder / "records.parquet")
            total = pl.col("total")
            derived = pl.scan_parquet(folder / "records.parquet").select("account", total=pl.col("price") * pl.col("quantity"))
            totals = derived.group_by("account").agg(total.sum(), total.mean().alias("mean"), pl.len().alias("sales"), total.max().alias("largest"))
            totals.sort("account").sink_csv(folder / "totals.csv")
        check(folder / "totals.csv", job.data)


def check(found: Path, *files: Path) -> None:
    """Raise SystemExit where the totals in a file, or a folder, are not DuckDB's over the files of sales."""
    expected = totals_by_duckdb(str(files[0]) if len(files) == 1 else str(files[0].parent / "*.csv"), found.with_name("expected.csv"))
    if differs := difference(found, expected, ordered=False):
        raise SystemExit(f"{found}: {differs}")
