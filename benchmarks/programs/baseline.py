"""The work of the benchmark as hand-written programs: PySpark on either engine, and DuckDB.

Read the CSV files, write the records to a Delta table, derive `total`, add up by account, write one CSV file.
DuckDB keeps the records in a database file of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    from benchmarks.job import Job

SCHEMA = "id BIGINT, account STRING, quantity BIGINT, price DOUBLE, day DATE"
DELTA = "io.delta:delta-spark_4.2_2.13:4.4.0"
# Delta needs one jar beside its own; the others that its description names are for the catalogs of clouds.
NOT_NEEDED = "org.antlr:*,org.apache.*:*,com.*:*,org.slf4j:*,org.jetbrains:*,org.codehaus.*:*,io.unitycatalog:*"


def pyspark(job: Job) -> None:
    """The PySpark program several times in one process: the first time everything is cold, then it is warm."""
    with session(job) as spark:
        for name, folder in job.first_runs():
            with job.lap(name):
                totals_by_account(spark, job.data, folder)


def totals_by_account(spark: SparkSession, data: Path, folder: Path) -> None:
    """CSV files -> Delta table of the records -> derived column -> 1000 groups -> one CSV file."""
    from pyspark.sql import functions as F

    records = spark.read.csv(str(data), schema=SCHEMA, header=True)
    records.write.format("delta").save(str(folder / "records"))
    stored = spark.read.format("delta").load(str(folder / "records"))
    derived = stored.withColumn("total", F.col("price") * F.col("quantity"))
    groups = derived.groupBy("account").agg(F.sum("total").alias("total"), F.count("*").alias("sales"))
    groups.orderBy("account").coalesce(1).write.csv(str(folder / "totals"), header=True)


@contextmanager
def session(job: Job) -> Iterator[SparkSession]:
    """A session on the job's engine, its start reported as `session`."""
    started = time.perf_counter()
    server = sail_server() if job.engine == "sail" else None
    opened = sail_session(server) if server else spark_session()
    job.report("session", time.perf_counter() - started)
    try:
        yield opened
    finally:
        opened.stop()
        if server:
            server.stop()


def spark_session() -> SparkSession:
    """Apache Spark in this process with the Delta jars and an otherwise plain configuration for a single machine."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.jars.packages": DELTA,
        "spark.jars.excludes": NOT_NEEDED,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.memory": "4g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[*]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def sail_server() -> SparkConnectServer:
    """The Spark Connect server of pysail in this process, listening."""
    from pysail.spark import SparkConnectServer

    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    return server


def sail_session(server: SparkConnectServer) -> SparkSession:
    """A client session to a Sail server."""
    from pyspark.sql import SparkSession

    _, port = server.listening_address
    return SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()


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
            records = connection.read_csv(str(job.data), header=True)
            records.create("records")
            derived = connection.table("records").project("account, price * quantity AS total")
            groups = derived.aggregate("account, sum(total) AS total, count(*) AS sales", "account").order("account")
            groups.write_csv(str(folder / "totals.csv"), header=True)
