"""Sessions for `cxl eval --backend spark`: Sail in this process, or Apache Spark. They live as long as the process."""

import atexit
import os
from functools import cache
from importlib.util import find_spec
from typing import Any, cast

from pyspark.sql import SparkSession

_SETTINGS = {"spark.sql.session.timeZone": "UTC", "spark.sql.caseSensitive": "true"}
_LOCAL = {
    "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "4", "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR", "spark.sql.execution.arrow.pyspark.enabled": "true",
}  # fmt: skip
_CONNECT = "SPARK_CONNECT_MODE_ENABLED"


def session(engine: str) -> SparkSession:
    """Return the session of an engine, `sail`, `spark` or `auto` (Sail where it is installed), and make it the current one."""
    kind = ("sail" if find_spec("pysail") else "spark") if engine == "auto" else engine
    if kind == "sail":
        os.environ[_CONNECT] = "1"
        return _sail()
    os.environ.pop(_CONNECT, None)
    return _spark()


@cache
def _sail() -> SparkSession:
    os.environ.setdefault("RUST_LOG", "off")
    from pysail.spark import SparkConnectServer
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    host, port = server.listening_address
    opened = ConnectSession.builder.remote(f"sc://{host}:{port}").create()
    for name, value in _SETTINGS.items():
        opened.conf.set(name, value)
    atexit.register(_close, opened, server)
    return cast("SparkSession", opened)


def _close(opened: Any, server: Any) -> None:
    opened.stop()
    server.stop()


@cache
def _spark() -> SparkSession:
    import sys

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[*]").appName("cxl")
    for name, value in (_SETTINGS | _LOCAL).items():
        builder = builder.config(name, value)
    opened = builder.getOrCreate()
    for name, value in _SETTINGS.items():
        opened.conf.set(name, value)
    atexit.register(opened.stop)
    return opened
