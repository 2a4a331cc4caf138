"""A Spark cluster on this machine: a standalone master, workers and a Spark Connect server, each a process of its own on the loopback interface."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from socket import create_connection, socket
from typing import Any, TypeVar
from unittest import mock
from urllib.request import urlopen

from errata.core.options import EngineOptions
from storage.engines import stop_engines
from storage.engines.spark.config import DELTA, python_path
from storage.engines.spark.jars import delta_jars, spark_home
from storage.engines.spark.java import find_java

DEADLINE = 90.0
"""Seconds in which a process has to be ready, or a thing to happen."""
EXECUTOR = "CoarseGrainedExecutorBackend"
CORES = 2
"""Cores of each worker."""
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For JVMs that live for minutes."""

SMALL = [
    *("--conf", "spark.executor.memory=640m", "--conf", "spark.executor.cores=1", "--conf", f"spark.cores.max={CORES}"),
    *("--conf", f"spark.executor.extraJavaOptions={QUICK}"),
]
"""Two small executors, one for each worker."""

Found = TypeVar("Found")


def awaited(look: Callable[[], Found], what: str, *, every: float = 0.1) -> Found:
    """The first answer of `look` that is true. Fails after DEADLINE seconds."""
    end = time.monotonic() + DEADLINE
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < end, f"waited {DEADLINE:.0f} s for {what}"
        time.sleep(every)


@dataclass
class Server:
    """A process of the cluster, and what it writes to its log."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self.process.poll() is None

    def said(self, pattern: str) -> re.Match[str]:
        """The first match in its log, which is awaited. Fails where the process ends before."""

        def look() -> re.Match[str] | None:
            found = re.search(pattern, self.log.read_text(errors="replace"))
            assert found or self.alive, self.log.read_text(errors="replace")[-3000:]
            return found

        return awaited(look, pattern)

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait(DEADLINE)

    def executors(self) -> list[int]:
        """The processes of the executors that a worker started."""
        return [number for number in _children(self.process.pid) if EXECUTOR in _words(number)]


@dataclass
class Cluster:
    """A standalone master with workers."""

    folder: Path
    environment: Mapping[str, str]
    master: Server
    url: str
    page: str
    workers: list[Server] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)
    _connect: Server | None = None

    @property
    def options(self) -> EngineOptions:
        """The options of a run whose driver is this process."""
        return EngineOptions("spark", master=self.url)

    def add_workers(self, number: int) -> None:
        """Start workers and wait until the master knows them."""
        words = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", str(CORES), "--memory", "2g", self.url]
        new = [self._begun("worker", _class("worker.Worker", words)) for _ in range(number)]
        self.workers += new
        for worker in new:
            worker.said("Successfully registered with master")

    def lose(self, worker: Server) -> None:
        """End a worker and its executors at once, as a machine does that fails."""
        executors = worker.executors()
        worker.kill()
        kill(*executors)
        self.workers.remove(worker)

    def mend(self) -> None:
        """Have two workers again, and no application of a driver that has ended."""
        self.add_workers(2 - len(self.workers))
        awaited(lambda: self.state()["aliveworkers"] == 2, "two workers that the master knows")

    def executors(self) -> list[int]:
        """The processes of all executors."""
        return [number for worker in self.workers for number in worker.executors()]

    def state(self) -> dict[str, Any]:
        """The master's state, by its page for programs."""
        with urlopen(f"{self.page}/json/", timeout=DEADLINE) as answer:  # noqa: S310 - an address of this module
            found = json.load(answer)
        assert isinstance(found, dict)
        return found

    def connect(self, *settings: str) -> str:
        """The address of a Spark Connect server that uses this cluster; it is started where none runs. `settings` are words for spark-submit."""
        port = _free_port()
        java = find_java()
        assert java is not None
        words = [
            *("--master", self.url, "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
            *("--jars", ",".join(map(str, delta_jars(java))), "--driver-memory", "1g"),
            *(part for name, value in DELTA.items() for part in ("--conf", f"{name}={value}")),
            *("--conf", "spark.connect.grpc.binding.address=127.0.0.1", "--conf", f"spark.connect.grpc.binding.port={port}"),
            *("--conf", "spark.ui.enabled=false", *SMALL, *settings, "spark-internal"),
        ]
        environment = {name: value for name, value in self.environment.items() if not name.startswith("SPARK_DAEMON")}  # a server would take it for its own
        self._connect = self._begun("connect", [str(spark_home() / "bin" / "spark-submit"), *words], environment)
        self._connect.said("Spark Connect server started")
        with suppress(OSError), create_connection(("127.0.0.1", port), DEADLINE):
            return f"sc://127.0.0.1:{port}"
        raise AssertionError(f"no Spark Connect server at port {port}")

    def end_connect(self) -> None:
        """End the Spark Connect server at once."""
        if self._connect is not None:
            self._connect.kill()
            self._connect = None

    def end(self) -> None:
        """End all processes."""
        executors = self.executors()
        self.end_connect()
        for server in (*self.workers, self.master):
            server.kill()
        kill(*executors)

    def _begun(self, name: str, words: Sequence[str], environment: Mapping[str, str] | None = None) -> Server:
        return begin(words, self.folder / f"{name}-{next(self._numbers)}.log", environment or self.environment)


def begin(words: Sequence[str], log: Path, environment: Mapping[str, str]) -> Server:
    """Start a process that ends with this one, however this one ends."""
    with log.open("wb") as sink:
        return Server(subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *words], stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, env=environment), log)


def kill(*numbers: int) -> None:
    """End processes at once that may have ended."""
    for number in numbers:
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A cluster for the body of a `with`. Its files lie in `folder`. Engines that use it end before it does.

    Drivers that the body starts are on the loopback interface too, and their executors are small.
    """
    folder.mkdir(parents=True, exist_ok=True)
    here = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    given = {"SPARK_HOME": str(spark_home()), "SPARK_WORKER_DIR": str(folder / "work"), "SPARK_LOCAL_DIRS": str(folder / "local"), "PYTHONPATH": python_path()}
    daemons = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": QUICK}
    environment = {**os.environ, **here, **given, **daemons}
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder / "local", ignore_errors=True)
        master = begin(_class("master.Master", ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]), folder / "master.log", environment)
        stack.callback(master.kill)
        url = master.said(r"Starting Spark master at (spark://\S+)")[1]
        made = Cluster(folder, environment, master, url, master.said(r"MasterWebUI to .* started at (http://\S+)")[1])
        stack.callback(made.end)
        made.add_workers(workers)
        stack.enter_context(mock.patch.dict(os.environ, {**here, "PYSPARK_SUBMIT_ARGS": shlex.join([*SMALL, "pyspark-shell"])}))
        stack.callback(stop_engines)
        yield made


def _class(name: str, words: Sequence[str]) -> list[str]:
    return [str(spark_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *words]


def _free_port() -> int:
    with closing(socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _children(parent: int) -> list[int]:
    with suppress(OSError):
        return [int(word) for task in Path(f"/proc/{parent}/task").iterdir() for word in (task / "children").read_text().split()]
    return []


def _words(number: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{number}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""
