"""What every engine offers: a session that starts when it is first asked for, and Arrow tables in and out."""

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

from changelog.lazy_imports import pa
from storage.engines.loading import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Engine"]

CONNECT_SWITCH = "SPARK_CONNECT_MODE_ENABLED"  # what pyspark.sql.functions looks at, in every call, to choose the kind of Column


class Engine(ABC):
    """A place where DataFrames are evaluated. Made by `storage.engines.engine`, kept for the life of the process.

    `name` is `spark` or `sail`; `speaks_connect` says whether its Columns are Spark Connect's.
    """

    name: ClassVar[str]
    libraries: ClassVar[tuple[str, ...]]
    """The modules that `_open` imports. They are loaded before the thread of the start begins."""
    constants_hide_nan: ClassVar[bool] = False
    """Whether a column of floats is read as the one value that a Delta file's statistics have for it, though NaN, which these leave out, stands beside it."""
    loses_versions: ClassVar[bool] = False
    """Whether a version of a Delta table may not be found once a checkpoint of a later one stands."""

    def __init__(self, *, speaks_connect: bool) -> None:
        self.speaks_connect = speaks_connect
        self._starting: Future[SparkSession] | None = None
        self._lock = threading.Lock()
        self._kept: list[DataFrame] = []
        self.tell: Callable[[str], None] = lambda text: None
        """The listener that gets the text of what the engine waits for."""

    def awaits(self, text: str) -> None:
        """Pass on what the engine waits for to whoever listens now."""
        self.tell(text)

    @property
    def session(self) -> "SparkSession":
        """The session; starts it, or waits for the start under way. Raises `EngineUnavailable`."""
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
        """Start the session in the background. What goes wrong is raised by `session`."""
        self._begin()

    def make_current(self) -> None:
        """From now on `pyspark.sql.functions` makes Columns for this engine."""
        if self.speaks_connect:
            os.environ[CONNECT_SWITCH] = "1"
        else:
            os.environ.pop(CONNECT_SWITCH, None)

    def from_arrow(self, table: "pa.Table") -> "DataFrame":
        """A DataFrame of an Arrow table's rows, in any order."""
        from changelog.columns import column
        from storage.engines.arrow import frame_of, row_of_nulls

        if table.num_rows == 0:  # a Spark Connect client takes no types from a table without rows
            # a filter, not a limit of 0: what Sail knows to be empty it takes out of joins, and then writes the columns of the
            # other side into every expression that reads them, which takes minutes to plan where those are computed ones
            nothing = frame_of(self.session, row_of_nulls(table.schema))
            return nothing.where(column(table.column_names[0]).isNotNull())
        return frame_of(self.session, table)

    def spread(self, work: "pa.Table") -> "DataFrame":
        """Rows of which each is work for a task."""
        return self.from_arrow(work).repartition(max(1, work.num_rows))

    def keys_frame(self, keys: "Iterable[bytes]", name: str = "_key") -> "DataFrame":
        """Bytes, each once, as a frame of one column."""
        return self.from_arrow(pa.table({name: pa.array(sorted(set(keys)), pa.binary())}))

    def to_arrow(self, frame: "DataFrame", limit: int | None = None) -> "pa.Table":
        """The rows of a DataFrame on the driver, at most `limit` of them; text, binary and timestamps in their plain Arrow types."""
        from storage.engines.arrow import collected, plain

        return plain(collected(frame if limit is None else frame.limit(limit)))

    def up_to(self, frame: "DataFrame", limit: int) -> "pa.Table | DataFrame":
        """The rows of a frame on the driver where they are no more than `limit`, else the frame."""
        rows = self.to_arrow(frame, limit + 1)
        return rows if rows.num_rows <= limit else frame

    def side_by_side(self, *frames: "DataFrame") -> "list[pa.Table]":
        """The rows of several DataFrames, read at a time where the engine has cores left over."""
        return [self.to_arrow(frame) for frame in frames]

    def few(self, frame: "DataFrame", limit: int) -> "pa.Table | DataFrame":
        """The rows of a frame that is expected to have at most `limit` on the driver, where it does and where that saves time; else the frame.

        What this keeps in memory meanwhile lasts until `release`.
        """
        return frame

    def release(self) -> None:
        """Let go of what `few` kept."""
        while self._kept:
            self._kept.pop().unpersist()

    def in_order(self, frame: "DataFrame", make: "Callable[[pa.RecordBatch], bytes]") -> "Iterator[bytes]":
        """What `make` makes of each batch of a sorted frame, in its order; the engine's tasks do the work."""
        from changelog.frames import mapped

        def work(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":

            for batch in batches:
                yield pa.RecordBatch.from_pydict({"blob": pa.array([make(batch)], pa.binary())})

        for row in mapped(frame, work, "blob binary").toLocalIterator():
            yield bytes(row["blob"])

    @contextmanager
    def sized(self, rows: int | None) -> Iterator[None]:
        """Set the engine up, for the body of a `with`, for tables of at most so many rows; None: it is not known."""
        yield

    def also_reads(self, rows: int | None) -> None:  # noqa: B027  # most engines need not know
        """Say, within `sized`, that the work under way reads a table of so many rows besides; None: it is not known."""

    @property
    @abstractmethod
    def cores(self) -> int:
        """The number of tasks that run at a time."""

    @property
    @abstractmethod
    def jobs(self) -> int | None:
        """How many jobs have run since the session started, where the engine can tell."""

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
        """End the session and what stands behind it."""

    def _begin(self) -> "Future[SparkSession]":
        """The start under way or done; a new one where there is none or the last one failed."""
        with self._lock:
            future = self._starting
            if future is None or (future.done() and future.exception() is not None):
                load(self.libraries)
                starter = ThreadPoolExecutor(1, thread_name_prefix="engine-start")
                future = self._starting = starter.submit(self._open)
                starter.shutdown(wait=False)
            return future
