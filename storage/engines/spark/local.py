"""Apache Spark, the `spark` engine: a driver in a JVM of its own, on this machine or on a cluster named by its master.

This process talks to the JVM through a Spark Connect server on the loopback interface, with a token made for it. A query is then one
message. A classic session asks the JVM for every column, and analyses the query at every step.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from uuid import uuid4

from storage.engines.base import CLIENT
from storage.engines.choice import EngineChoice
from storage.engines.connect import open_connect
from storage.engines.spark.appcds import archive
from storage.engines.spark.config import SERVER, is_local_master, python_path, secrets, spark_settings
from storage.engines.spark.jars import delta_jars, spark_home
from storage.engines.spark.java import any_java, find_java
from storage.engines.spark.jobs import SparkEngine
from storage.engines.spark.user_jars import UserJars, user_jars
from storage.engines.waiting import ExecutorWatch
from storage.errors import EngineUnavailable
from storage.process_folders import temporary_folder

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

__all__ = ["Spark"]

LOG_LINES = 20
PATIENT_COMPILER = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
"""Ten times the JVM's defaults. A short run ends before the slow compiler pays off; a long run still gets compiled."""
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""For work that fits in memory: only the quick compiler, and one thread for garbage. A small run takes 10 to 25 % less processor time."""
_leaving: list[Any] = []
"""JVMs that were released. One may still be writing its class archive, and nobody waits for it."""


class Spark(SparkEngine):
    """A driver in a JVM that ends with the engine."""

    libraries = ("pyspark.java_gateway", "py4j.protocol", *CLIENT)

    def __init__(self, choice: EngineChoice) -> None:
        super().__init__(speaks_connect=True)
        self._choice = choice
        self._scratch: Path | None = None
        self._watch: ExecutorWatch | None = None

    @property
    def cores(self) -> int:
        """Cores of all executors of a running session, else the cores that the master will have."""
        return super().cores if self.started else self._choice.threads or os.cpu_count() or 1

    def _open(self) -> "SparkSession":
        java = find_java()
        if java is None:
            raise EngineUnavailable.no_java(_what_was_found())
        jars = delta_jars(java)
        self._scratch = temporary_folder("spark")
        given = user_jars(spark_home())
        kept = archive(java, f"{spark_home()} {jars} {dict(given.settings) or ''} connect")
        token = str(uuid4())
        settings = spark_settings(self._choice, jars, (*jvm_options(self._choice), *kept.options()), self._scratch) | SERVER
        settings = given.joined(settings)
        master = settings["spark.master"]
        with tempfile.TemporaryFile() as log, _launch_environment(master, given):
            self.context, port = _served(settings, secrets(master, token), log)
        if not is_local_master(master):
            self._watch = ExecutorWatch(self.context, master, self._choice.patience, self.awaits)
        return open_connect(f"sc://localhost:{port}/;token={token}", near=True)

    def _shut(self, session: "SparkSession") -> None:
        if self._watch is not None:
            self._watch.stop()
        session.stop()
        context, self.context = self.context, None
        if context is not None:
            try:
                context.stop()
            except OSError:  # the JVM is gone, and the context has forgotten it
                context.stop()  # what else it has, so that it is no longer the session of this process
        self._end_jvm()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _end_jvm(self) -> None:
        """Release the JVM, so that the next session of this process may have other JVM settings."""
        from pyspark import SparkContext

        gateway = SparkContext._gateway  # noqa: SLF001  # there is no public way to end the JVM
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001  # else the next session is given the dead one
        if gateway is not None:
            gateway.shutdown()
            if gateway.proc is not None:  # else spark-submit started the JVM, and ends it
                gateway.proc.stdin.close()
                _leaving.append(gateway.proc)


def jvm_options(choice: EngineChoice) -> tuple[str, ...]:
    """Return how the JVM compiles and collects garbage; for a short run where the work is small and on this machine."""
    return QUICK if choice.small and is_local_master(choice.master or "local") else PATIENT_COMPILER


def _what_was_found() -> str:
    java = any_java()
    return "none was found" if java is None else f"{java.path} is version {java.major}"


def _served(settings: dict[str, str], secrets: dict[str, str], log: IO[bytes]) -> "tuple[SparkContext, int]":
    """Start a JVM. Return its context, and the port of its Spark Connect server.

    Settings are arguments of the JVM, which every user of the machine can read. Secrets travel through the gateway, which has a password.
    """
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    try:
        gateway = launch_gateway(conf, popen_kwargs={"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]  # pyspark does not say
        context = SparkContext(conf=conf.setAll(list(secrets.items())), gateway=gateway)
        server = getattr(gateway.jvm.org.apache.spark.sql.connect.service, "SparkConnectService$").__getattr__("MODULE$")
        server.start(context._jsc.sc())  # noqa: SLF001  # the server's own way to share a context
        return context, int(server.localPort())
    except (PySparkRuntimeError, Py4JError, OSError) as problem:
        raise EngineUnavailable.spark_failed(str(problem).splitlines()[0], _end_of(log)) from problem


def _end_of(log: IO[bytes]) -> str:
    log.seek(0)
    return "\n".join(log.read().decode(errors="replace").splitlines()[-LOG_LINES:])


@contextmanager
def _launch_environment(master: str, given: UserJars) -> Iterator[None]:
    """Set the environment of the JVM and of the Python workers that it starts."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    wanted = (
        {"PYTHONPATH": python_path(), "SPARK_LOCAL_IP": "127.0.0.1"}
        if is_local_master(master) or master.startswith("local-cluster")
        else {}
    )
    wanted["PYSPARK_SUBMIT_ARGS"] = given.submit_arguments
    before = {name: os.environ.get(name) for name in (*wanted, "SPARK_HOME", "SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE")}
    os.environ.update({**wanted, "SPARK_HOME": str(spark_home())})
    for name in ("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE"):
        os.environ.pop(name, None)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
