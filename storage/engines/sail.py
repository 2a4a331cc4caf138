"""Sail, the `sail` engine: a Spark Connect server inside this process, without a JVM."""

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from changelog.lazy_imports import pa
from storage.durable import undoing
from storage.engines.arrow import MESSAGE_BYTES, frame_from_file, plain
from storage.engines.base import CLIENT, Engine
from storage.engines.choice import EngineChoice
from storage.engines.connect import open_connect
from storage.engines.private_port import PrivatePort, files_to_come, others_logged_on
from storage.errors import EngineUnavailable

if TYPE_CHECKING:
    from pysail.spark import SparkConnectServer
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Sail"]

IDLE_SECONDS = 30 * 24 * 3600
"""A session must outlive every pause of its process. The server's default is 15 minutes."""


class Sail(Engine):
    """The in-process server of pysail, and a client session for it."""

    name = "sail"
    libraries = ("pysail.spark", *CLIENT)
    constants_hide_nan = True
    loses_versions = True

    def __init__(self, choice: EngineChoice) -> None:
        super().__init__(speaks_connect=True)
        self._choice = choice
        self._server: SparkConnectServer | None = None
        self._port: PrivatePort | None = None

    @property
    def cores(self) -> int:
        """Threads of the choice, else cores of the machine."""
        return self._choice.threads or os.cpu_count() or 1

    @property
    def jobs(self) -> None:
        """Sail does not count jobs."""
        return None

    @property
    def python_is_near(self) -> bool:
        """Tasks run Python in this process. A limit of memory is one for Sail's own sorts."""
        return self._choice.memory is None

    def from_arrow(self, table: "pa.Table") -> "DataFrame":
        """Return a DataFrame of an Arrow table's rows. Large tables go by way of a file, because Sail takes a table in a single message."""
        large = frame_from_file(lambda: self.session, table, self._choice.spill) if table.nbytes > MESSAGE_BYTES else None
        return super().from_arrow(table) if large is None else large

    def spread(self, work: "pa.Table") -> "DataFrame":
        """Return rows spread over as many tasks as cores. More tasks wait for the interpreter, which took a third of their time."""
        return self.from_arrow(work).repartition(max(1, min(work.num_rows, self.cores)))

    def side_by_side(self, *frames: "DataFrame") -> "list[pa.Table]":
        """Return the rows of all DataFrames, read at the same time: files that Python parses leave cores for tables."""
        with ThreadPoolExecutor(len(frames)) as pool:
            return list(pool.map(self.to_arrow, frames))

    def in_order(self, frame: "DataFrame", make: "Callable[[pa.RecordBatch], bytes]") -> Iterator[bytes]:
        """Yield `make` of each batch, called on the driver, where Sail runs. Its optimizer would remove a sort before rows that go to Python."""
        for table in _tables(frame):
            yield from map(make, table.to_batches())

    def _open(self) -> "SparkSession":
        from pysail.spark import SparkConnectServer

        with _environment(server_settings(self._choice)):
            server = SparkConnectServer("127.0.0.1", 0)
            files = files_to_come()
            server.start(background=True)
        with undoing(server.stop):
            address = server.listening_address or ("127.0.0.1", 0)
            port = _closed(address, files, self._choice)
            with undoing(port.close if port else lambda: None):
                session = open_connect("sc://{}:{}".format(*address), near=True, connect=port.connect if port else None)
        self._server, self._port = server, port
        session.conf.set("spark.sql.ansi.enabled", "false")  # its checks of divisors are evaluated where no row needs them
        return session

    def _shut(self, session: "SparkSession") -> None:
        session.stop()  # before its server: a client whose server is gone tries for minutes to say good-bye
        if self._port is not None:
            self._port.close()
        if self._server is not None:
            self._server.stop()
        self._port = self._server = None


def _tables(frame: "DataFrame") -> "Iterator[pa.Table]":
    """Yield the rows of a frame in tables, as they come."""
    connected = cast("Any", frame)  # nothing public gives the batches of a frame one by one
    client, plan = connected._session.client, connected._plan  # noqa: SLF001
    for answer in client.to_table_as_iterator(plan.to_proto(client), plan.observations):
        if isinstance(answer, pa.Table):
            yield plain(answer)


def _closed(address: tuple[str, int], files: range, choice: EngineChoice) -> PrivatePort | None:
    """Close the server's port to other users. None where the system cannot close it and nobody else is logged on.

    Raises EngineUnavailable where others are logged on and the choice does not allow a shared host.
    """
    try:
        return PrivatePort(address, files)
    except OSError as problem:
        others = () if choice.shared_host else others_logged_on()
        if others:
            raise EngineUnavailable.open_port(others) from problem
        return None


def server_settings(choice: EngineChoice) -> dict[str, str]:
    """Return the environment variables that the server reads when it starts: quiet, patient, and within the wanted memory and threads.

    `SAIL_PARQUET__PUSHDOWN_FILTERS` stays off. It would filter rows while files are decoded, also by the keys that a join found.
    Sail groups binary keys as `LargeBinary`, and passes such a filter through the grouping without changing its types. So the query would fail.
    """
    settings = {"RUST_LOG": "off", "SAIL_SPARK__SESSION_TIMEOUT_SECS": str(IDLE_SECONDS)}
    if choice.threads:
        settings["SAIL_EXECUTION__DEFAULT_PARALLELISM"] = str(choice.threads)
    if choice.memory:
        settings |= {"SAIL_RUNTIME__MEMORY_POOL__TYPE": "fair", "SAIL_RUNTIME__MEMORY_POOL__FAIR__MAX_SIZE": str(choice.memory)}
    if choice.spill:
        settings["SAIL_RUNTIME__TEMPORARY_FILES__PATHS"] = f'["{choice.spill}"]'
    if choice.spill_cap is not None:
        settings["SAIL_RUNTIME__TEMPORARY_FILES__MAX_SIZE"] = str(choice.spill_cap)
    return settings


@contextmanager
def _environment(settings: Mapping[str, str]) -> Iterator[None]:
    """Set variables that the user has not set, while the server reads them."""
    added = {name: value for name, value in settings.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
