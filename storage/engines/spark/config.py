"""Settings of a Spark driver: lean on one machine, quiet, in UTC, with Delta."""

import os
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from storage.engines.choice import EngineChoice
from storage.engines.connect import SESSION_SETTINGS
from storage.engines.machine import machine_memory

__all__ = ["SERVER", "is_local_master", "python_path", "secrets", "session_settings", "spark_settings"]

MEGABYTE = 1 << 20
SMALLEST_HEAP = 1024 * MEGABYTE
LARGEST_HEAP = 8192 * MEGABYTE

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",  # our logs are small; the default reads a log with 50 tasks
}
QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.authenticate": "true",  # else every user of this machine reaches the driver's ports, and can have it read objects of any class
}
FOR_EVER = "30d"  # a session must outlive every pause of its process
SERVER = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    "spark.connect.session.manager.defaultSessionTimeout": FOR_EVER,
    "spark.connect.session.manager.maintenanceInterval": FOR_EVER,
}
"""Settings of the Spark Connect server in the driver, which lives as long as its process."""
ARROW = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
}
OPTIMIZER = {"spark.sql.constraintPropagation.enabled": "false"}  # takes time quadratic in the expressions: minutes for a window's
OBJECT_STORES = {"spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"}  # `s3://`, as delta-rs spells it


def is_local_master(master: str) -> bool:
    """Return whether driver and tasks share one JVM."""
    return master == "local" or master.startswith("local[")


def spark_settings(choice: EngineChoice, jars: Sequence[Path], java_options: Sequence[str], scratch: Path) -> dict[str, str]:
    """Return all settings of the driver. `scratch` is a folder of this process for the files that Spark leaves."""
    master = choice.master or f"local[{choice.threads or '*'}]"
    return {
        "spark.master": master,
        "spark.app.name": "errata",
        "spark.driver.memory": f"{(choice.memory or _heap()) // MEGABYTE}m",
        "spark.driver.extraJavaOptions": " ".join([*java_options, *_logging(scratch)]),
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        "spark.sql.shuffle.partitions": str(choice.threads or os.cpu_count() or 1),
        **SESSION_SETTINGS,
        **DELTA,
        **QUIET,
        **ARROW,
        **OPTIMIZER,
        **OBJECT_STORES,
        **_endpoint(),
        **({"spark.local.dir": str(choice.spill)} if choice.spill else {}),
        **(_in_process(jars) if is_local_master(master) else _elsewhere(jars, choice)),
    }


def secrets(master: str, token: str) -> dict[str, str]:
    """Return the settings that nobody else may read: the token of the Spark Connect server, and the password of executors on this machine.

    Spark makes the password itself for a driver without executors. On a cluster the administrator sets it.
    """
    executors = {"spark.authenticate.secret": token} if master.startswith("local-cluster") else {}
    return {"spark.connect.authenticate.token": token, **executors}


def session_settings() -> dict[str, str]:
    """Return the settings that Errata needs in a session that somebody else made."""
    return {**SESSION_SETTINGS, **ARROW, **OPTIMIZER}


def _in_process(jars: Sequence[Path]) -> dict[str, str]:
    return {**LOCAL, "spark.driver.extraClassPath": ":".join(map(str, jars)), "spark.executorEnv.PYTHONPATH": python_path()}


def _elsewhere(jars: Sequence[Path], choice: EngineChoice) -> dict[str, str]:
    shared = {"spark.jars": ",".join(map(str, jars)), "spark.executorEnv.PYTHONPATH": python_path()}
    local_cluster = (choice.master or "").startswith("local-cluster")
    return {
        **shared,
        **(LOCAL if local_cluster else {}),
        **({"spark.executor.memory": f"{choice.memory // MEGABYTE}m"} if choice.memory else {}),
    }


def python_path() -> str:
    """Return the path on which Python workers find Errata's functions, followed by the user's own path."""
    root = str(Path(str(resources.files("storage"))).parent)
    return os.pathsep.join(dict.fromkeys([root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]))


def _logging(scratch: Path) -> list[str]:
    return [f"-Dderby.system.home={scratch}", f"-Djava.io.tmpdir={scratch}"]


def _endpoint() -> dict[str, str]:
    """Return the settings for the S3 endpoint in the variable that delta-rs and Sail read too."""
    url = os.environ.get("AWS_ENDPOINT_URL")
    return {"spark.hadoop.fs.s3a.endpoint": url, "spark.hadoop.fs.s3a.path.style.access": "true"} if url else {}


def _heap() -> int:
    return max(SMALLEST_HEAP, min(LARGEST_HEAP, machine_memory() // 2))
