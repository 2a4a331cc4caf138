"""Apache Spark: in this process, on a cluster by its master, or behind a Spark Connect server (the `spark` engine)."""

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from storage.engines.appcds import archive
from storage.engines.base import Engine
from storage.engines.choice import EngineChoice
from storage.engines.connect import open_connect
from storage.engines.failure import EngineUnavailable
from storage.engines.jars import delta_jars, spark_home
from storage.engines.java import any_java, find_java
from storage.engines.spark_settings import is_local_master, python_path, session_settings, spark_settings

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["RemoteSpark", "Spark"]

LOG_LINES = 20
LITTLE_ROWS = 50_000
LITTLE = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
CONNECT_PORT = 15002
KNOCK_SECONDS = 10.0
_leaving: list[Any] = []  # JVMs that were let go; one may still be writing its class archive, and nobody waits for that


class Spark(Engine):
    """A classic session: its driver is a JVM beside this process. A session that the process has already is shared."""

    name = "spark"

    def __init__(self, choice: EngineChoice) -> None:
        super().__init__(speaks_connect=False)
        self._choice = choice
        self._shared = False
        self._scratch: Path | None = None

    @property
    def cores(self) -> int:
        """The cores of all executors where the session runs, else what the master will have."""
        if self.started:
            return int(self.session.sparkContext.defaultParallelism)
        return self._choice.threads or os.cpu_count() or 1

    @property
    def jobs(self) -> int:
        """The jobs that Spark has run since the session started."""
        if not self.started:
            return 0
        return int(self.session.sparkContext._jsc.sc().dagScheduler().numTotalJobs())  # noqa: SLF001  # the only place that counts them all

    @contextmanager
    def sized(self, rows: int | None) -> Iterator[None]:
        """Few rows are interpreted in one partition: to compile a query, and to plan it anew after each shuffle, takes longer than to run it."""
        settings = LITTLE if rows is not None and rows <= LITTLE_ROWS else {}
        conf = self.session.conf
        before = {name: conf.get(name, None) for name in settings}
        try:
            for name, value in settings.items():
                conf.set(name, value)
            yield
        finally:
            for name, former in before.items():
                conf.set(name, former) if former is not None else conf.unset(name)

    def few(self, frame: "DataFrame", limit: int) -> "pa.Table | DataFrame":
        """On the driver where they are few: a commit to a Delta table costs Spark several jobs, delta-rs none. Else kept, so that it is computed once."""
        kept = frame.persist()
        self._kept.append(kept)
        rows = self.to_arrow(kept.limit(limit + 1).repartition(1))  # a limit by itself looks through the partitions job by job
        return rows if rows.num_rows <= limit else kept

    def _open(self) -> "SparkSession":
        from pyspark import SparkContext

        if SparkContext._active_spark_context is not None:  # noqa: SLF001  # `getOrCreate` would make one
            self._shared = True
            return _shared_session()
        return self._launched()

    def _launched(self) -> "SparkSession":
        java = find_java()
        if java is None:
            raise EngineUnavailable.no_java(_what_was_found())
        jars = delta_jars(java)
        self._scratch = Path(tempfile.mkdtemp(prefix="errata-spark-"))
        fast = ("-XX:TieredStopAtLevel=1",) if self._choice.small else ()
        kept = archive(java, f"{spark_home()} {jars}")
        settings = spark_settings(self._choice, jars, (*fast, *kept.options()), self._scratch)
        with tempfile.TemporaryFile() as log, _launch_environment(settings["spark.master"]):
            return _classic_session(settings, log)

    def _shut(self, session: "SparkSession") -> None:
        if self._shared:
            return
        session.stop()
        self._end_jvm()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _end_jvm(self) -> None:
        """Let the JVM go, so that another session of this process may have other settings of the JVM."""
        from pyspark import SparkContext

        gateway = SparkContext._gateway  # noqa: SLF001  # there is no public way to end the JVM
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001  # else the next session is given the dead one
        if gateway is not None:
            gateway.shutdown()
            if gateway.proc is not None:  # else spark-submit started the JVM, and ends it
                gateway.proc.stdin.close()
                _leaving.append(gateway.proc)


class RemoteSpark(Engine):
    """A Spark Connect server elsewhere (`--remote sc://…`)."""

    name = "spark"

    def __init__(self, url: str) -> None:
        super().__init__(speaks_connect=True)
        self._url = url

    @property
    def cores(self) -> int:
        """What the server says of its parallelism, 8 where it says nothing."""
        return int(self.session.conf.get("spark.default.parallelism", "8") or 8)

    @property
    def jobs(self) -> None:
        """A remote server does not say."""
        return None

    def _open(self) -> "SparkSession":
        from pyspark.errors import PySparkException

        try:
            _knock(self._url)
            return open_connect(self._url)
        except (PySparkException, OSError, ValueError) as problem:
            raise EngineUnavailable.no_remote(self._url, str(problem).splitlines()[0]) from problem

    def _shut(self, session: "SparkSession") -> None:
        session.stop()


def _knock(url: str) -> None:
    """Raise OSError where nobody listens: a client of Spark Connect would try for minutes."""
    place = urlsplit(url)
    socket.create_connection((place.hostname or "", place.port or CONNECT_PORT), timeout=KNOCK_SECONDS).close()


def _what_was_found() -> str:
    java = any_java()
    return "none was found" if java is None else f"{java.path} is version {java.major}"


def _shared_session() -> "SparkSession":
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession() or SparkSession(SparkContext.getOrCreate())
    if "Delta" not in str(active.conf.get("spark.sql.extensions", "")):
        raise EngineUnavailable.spark_failed("the session of this process was made without Delta Lake", "")
    session = active.newSession()
    for name, value in session_settings().items():
        session.conf.set(name, value)
    return session


def _classic_session(settings: dict[str, str], log: IO[bytes]) -> "SparkSession":
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    try:
        gateway = launch_gateway(conf, popen_kwargs={"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]  # pyspark does not say
        return SparkSession(SparkContext(conf=conf, gateway=gateway))
    except (PySparkRuntimeError, Py4JError, OSError) as problem:
        raise EngineUnavailable.spark_failed(str(problem).splitlines()[0], _end_of(log)) from problem


def _end_of(log: IO[bytes]) -> str:
    log.seek(0)
    return "\n".join(log.read().decode(errors="replace").splitlines()[-LOG_LINES:])


@contextmanager
def _launch_environment(master: str) -> Iterator[None]:
    """What the JVM, and the Python workers that it starts, see of the environment."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    wanted = (
        {"PYTHONPATH": python_path(), "SPARK_LOCAL_IP": "127.0.0.1"}
        if is_local_master(master) or master.startswith("local-cluster")
        else {}
    )
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
