"""Sessions of PySpark for the hand-written programs, on either engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from benchmarks.usage import processor_seconds

if TYPE_CHECKING:
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    from benchmarks.job import Job

DELTA: Final = "io.delta:delta-spark_4.2_2.13:4.4.0"
# Delta needs one jar beside its own; the others that its description names are for the catalogs of clouds.
NOT_NEEDED: Final = "org.antlr:*,org.apache.*:*,com.*:*,org.slf4j:*,org.jetbrains:*,org.codehaus.*:*,io.unitycatalog:*"


@contextmanager
def session(job: Job) -> Iterator[SparkSession]:
    """A session on the job's engine, its start reported as `session`."""
    began = processor_seconds()
    server = sail_server() if job.engine == "sail" else None
    opened = sail_session(server) if server else spark_session()
    job.report("session", processor_seconds() - began)
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
