"""The interface of every engine: a session that starts on first use, and Arrow tables in and out."""

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from changelog.columns import column
from changelog.frames import mapped
from changelog.lazy_imports import pa
from changelog.rows import Limits
from storage.engines.arrow import collected, frame_of, plain, row_of_nulls
from storage.engines.machine import require_for_engines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["CLASSIC", "CLIENT", "Engine"]

CONNECT_SWITCH = "SPARK_CONNECT_MODE_ENABLED"
"""Environment variable that every call of `pyspark.sql.functions` reads to choose the kind of Column."""
CLASSIC = ("pyspark.sql", "pyspark.errors")
"""Modules of a session within this process."""
CLIENT = (*CLASSIC, "pyspark.sql.connect.session", "grpc._channel", "grpc._auth", "grpc._plugin_wrapping")
"""Modules of a Spark Connect client. gRPC imports its three when it opens a channel."""


class Engine(ABC):
    """A place where DataFrames are evaluated. `storage.engines.engine` makes it, and it lives as long as the process.

    `name` is `spark` or `sail`; `speaks_connect` says whether its Columns are Spark Connect's.
    """

    name: ClassVar[str]
    libraries: ClassVar[tuple[str, ...]]
    """The modules that `_open` imports. They are loaded before the thread of the start begins."""
    limits = Limits()
    """How many rows runs on this engine handle on the driver."""
    constants_hide_nan: ClassVar[bool] = False
    """Whether the engine reads a float column as a constant where the statistics of a Delta file have one value, although NaN, which they leave out, is there too."""
    loses_versions: ClassVar[bool] = False
    """Whether the engine may not find a version of a Delta table after a checkpoint of a later version."""

    def __init__(self, *, speaks_connect: bool) -> None:
        self.speaks_connect = speaks_connect
        self._starting: Future[SparkSession] | None = None
        self._lock = threading.Lock()
        self._cached: list[DataFrame] = []
        self.tell: Callable[[str], None] = lambda text: None
        """Listener for messages about what the engine waits for."""

    def awaits(self, text: str) -> None:
        """Pass a message about a wait to the present listener."""
        self.tell(text)

    @property
    def session(self) -> "SparkSession":
        """The session. Starts it, or waits for the start under way. Raises `EngineUnavailable`."""
        return self._begin().result()

    @property
    def started(self) -> bool:
        """Whether a session was asked for."""
        return self._starting is not None

    @property
    def starting(self) -> bool:
        """Whether a start is under way."""
        return self._starting is not None and not self._starting.done()

    def start(self) -> None:
        """Start the session in the background. `session` raises the errors of the start."""
        self._begin()

    def make_current(self) -> None:
        """Let `pyspark.sql.functions` make Columns for this engine from now on."""
        if self.speaks_connect:
            os.environ[CONNECT_SWITCH] = "1"
        else:
            os.environ.pop(CONNECT_SWITCH, None)

    def from_arrow(self, table: "pa.Table") -> "DataFrame":
        """Return a DataFrame of an Arrow table's rows, in any order."""
        if table.num_rows == 0:  # a Spark Connect client takes no types from a table without rows
            # A filter, not a limit of 0: Sail removes inputs that it knows to be empty from joins. It then copies the other side's columns
            # into every expression that reads them, which takes minutes to plan for computed columns.
            nothing = frame_of(self.session, row_of_nulls(table.schema))
            return nothing.where(column(table.column_names[0]).isNotNull())
        return frame_of(self.session, table)

    def spread(self, work: "pa.Table") -> "DataFrame":
        """Return the rows, each as the work of one task."""
        return self.from_arrow(work).repartition(max(1, work.num_rows))

    def keys_frame(self, keys: "Iterable[bytes]", name: str = "_key") -> "DataFrame":
        """Return the distinct keys as a frame with one binary column."""
        return self.from_arrow(pa.table({name: pa.array(sorted(set(keys)), pa.binary())}))

    def to_arrow(self, frame: "DataFrame", limit: int | None = None) -> "pa.Table":
        """Return the rows of a DataFrame on the driver, at most `limit` of them, in plain Arrow types."""
        return plain(collected(frame if limit is None else frame.limit(limit)))

    def up_to(self, frame: "DataFrame", limit: int) -> "pa.Table | DataFrame":
        """Return the rows on the driver where there are at most `limit`, else the frame."""
        rows = self.to_arrow(frame, limit + 1)
        return rows if rows.num_rows <= limit else frame

    def side_by_side(self, *frames: "DataFrame") -> "list[pa.Table]":
        """Return the rows of several DataFrames. Reads them at the same time where the engine has free cores."""
        return [self.to_arrow(frame) for frame in frames]

    def few(self, frame: "DataFrame", limit: int) -> "pa.Table | DataFrame":
        """Return the rows on the driver where there are at most `limit` and where that saves time, else the frame.

        Caches of this method last until `release`.
        """
        return frame

    def release(self) -> None:
        """Drop the caches of `few`."""
        while self._cached:
            self._cached.pop().unpersist()

    def in_order(self, frame: "DataFrame", make: "Callable[[pa.RecordBatch], bytes]") -> "Iterator[bytes]":
        """Yield `make` of each batch of a sorted frame, in its order. The tasks of the engine call `make`."""

        def work(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
            for batch in batches:
                yield pa.RecordBatch.from_pydict({"blob": pa.array([make(batch)], pa.binary())})

        for row in mapped(frame, work, "blob binary").toLocalIterator():
            yield bytes(row["blob"])

    @property
    def python_is_near(self) -> bool:
        """Whether tasks give Python their rows without a copy, and memory has no limit that the engine keeps by spilling."""
        return False

    @contextmanager
    def sized(self, rows: int | None) -> Iterator[None]:
        """Set the engine up for tables of at most `rows` rows, for the body of a `with`. None: unknown."""
        yield

    def also_reads(self, rows: int | None) -> None:  # noqa: B027  # most engines need not know
        """Say, within `sized`, that the present work also reads a table of `rows` rows. None: unknown."""

    @property
    @abstractmethod
    def cores(self) -> int:
        """Number of tasks that run at the same time."""

    @property
    @abstractmethod
    def jobs(self) -> int | None:
        """Number of jobs since the session started. None where the engine does not count them."""

    def stop(self) -> None:
        """End the session. A later `session` starts a new one."""
        with self._lock:
            starting, self._starting = self._starting, None
        if starting is not None and starting.exception() is None:
            self._shut(starting.result())

    @abstractmethod
    def _open(self) -> "SparkSession":
        """Make the session."""

    @abstractmethod
    def _shut(self, session: "SparkSession") -> None:
        """End the session and its server."""

    def _begin(self) -> "Future[SparkSession]":
        """Return the start under way or done. Begins a new one where there is none, or where the last one failed."""
        with self._lock:
            future = self._starting
            if future is None or (future.done() and future.exception() is not None):
                _load(self.libraries)
                starter = ThreadPoolExecutor(1, thread_name_prefix="engine-start")
                future = self._starting = starter.submit(self._open)
                starter.shutdown(wait=False)
            return future


def _load(modules: tuple[str, ...]) -> None:
    """Import modules in this thread.

    Modules of pyspark import each other in circles. Two threads that enter such a circle at different modules each see half a module.
    So the thread that asks for an engine imports everything, and the starting thread imports nothing.
    """
    require_for_engines()
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # else starting a JVM later makes gRPC warn on standard error
    for module in modules:
        import_module(module)
