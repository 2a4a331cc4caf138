"""Errors of the storage layer, and how exceptions of libraries become one of them.

    OutsideError                something outside of Errata failed
    ├── StorageError            a table, file or folder cannot be read or written (exit code 4)
    │   ├── Damaged             a table differs from what the ledger committed
    │   └── LedgerMoved         another run committed first (exit code 6)
    ├── EngineUnavailable       no engine of the wanted kind (exit code 4)
    └── Overtaken               another run took the pipeline over (exit code 6)

`exhausted` names the limit that an engine's message reports: memory, the spill cap or the spill volume.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from storage.lazy_deltalake import deltalake
from storage.uris import settings_missing

__all__ = [
    "ConnectionFault", "Damaged", "EngineUnavailable", "LedgerMoved", "OutsideError", "Overtaken", "StorageError",
    "damaged", "engine_failures", "exhausted", "first_line", "storing", "unreadable",
]  # fmt: skip

DISK_TROUBLE = ("No space left", "Permission denied", "Read-only file system", "Disk quota", "AccessDenied")
FILE_TROUBLE = ("Parquet error", "Object Store error", "FAILED_READ_FILE", "is not a Parquet file")
"""Words in an engine's message about a lost or damaged file."""
ARROW_PREFIX = "C Data interface error: "
"""Prefix that Arrow adds to errors that it passes from one library to another."""
_QUERY = re.compile(r"(https?://[^\s?]+)\?\S*")
_NO_S3 = re.compile(r"(ClassNotFoundException|NoClassDefFoundError).*(S3AFileSystem|software[./]amazon)|No FileSystem for scheme \"?s3")
NO_EXECUTORS = "no executor"
ENDED = ("StatusCode.UNAVAILABLE", "SparkContext was shut down", "stopped SparkContext", "INVALID_HANDLE.SESSION")
"""Words in the message of an engine that has ended, or that restarted without the session."""
WAITING = ("look at the cluster, then run again", "`--engine-wait SECONDS` waits longer")

Limit = Literal["memory", "spill cap", "spill volume"]
_LIMITS: tuple[tuple[Limit, tuple[str, ...]], ...] = (
    ("spill cap", ("exceeded the allowable limit",)),
    ("memory", ("Failed to allocate additional", "java.lang.OutOfMemoryError", "UNABLE_TO_ACQUIRE_MEMORY", "SparkOutOfMemoryError")),
    ("spill volume", ("No space left on device",)),
)
_TABLE_FILES = ("LocalFileSystem", "_delta_log")
"""Words in messages about files of tables, which are not spill files."""


class OutsideError(Exception):
    """Something outside of Errata failed: a file system, an engine, or another run."""


class StorageError(OutsideError):
    """A table, file or folder cannot be read or written. `place` is its path or URI, `reason` the system's message."""

    def __init__(self, place: str, reason: str) -> None:
        self.place = place
        self.reason = reason
        super().__init__(f"{place}: {reason}")


class Damaged(StorageError):
    """A table of the state differs from what the ledger's last epoch committed."""

    def __init__(self, place: str, version: int, reason: str) -> None:
        super().__init__(place, f"{reason}, the ledger says version {version}; put it back from a copy, or let --full-refresh make all tables anew")


class LedgerMoved(StorageError):
    """Another run has committed since this run read the head of the ledger."""

    def __init__(self, place: str, expected: int | None) -> None:
        super().__init__(place, f"another run has committed after epoch {expected or 0}")


class Overtaken(OutsideError):
    """Another run took the pipeline over, or wrote to a table that only this run may write. `place` is where that was seen."""

    def __init__(self, place: str) -> None:
        self.place = place
        super().__init__(f"{place}: another run wrote here")


class ConnectionFault(Exception):
    """A connection whose configuration cannot be used: the code, the message and the way out of a diagnostic."""

    def __init__(self, code: str, message: str, help: str = "") -> None:
        self.code, self.message, self.help = code, message, help
        super().__init__(f"{code}: {message}")


class EngineUnavailable(OutsideError):
    """No engine of the wanted kind.

    `reason` is one sentence, `ways_out` lists remedies, `log` is the end of the engine's own output. `again`: the same run can succeed unchanged.
    """

    def __init__(self, reason: str, ways_out: tuple[str, ...] = (), log: str = "", *, again: bool = False) -> None:
        self.reason = reason
        self.ways_out = ways_out
        self.log = log
        self.again = again
        super().__init__(reason)

    def __str__(self) -> str:
        return "\n".join([self.reason, *(f"  = help: {way}" for way in self.ways_out), *([self.log] if self.log else [])])

    @classmethod
    def no_java(cls, found: str) -> "EngineUnavailable":
        """Return the error for a Spark engine without a suitable Java. `found` says which Java there is."""
        return cls(
            f"Apache Spark needs Java 17 or later, and {found}",
            ("install Java 17 or 21 and put it on PATH, or name it in JAVA_HOME", "run with `--engine sail`, which needs no Java"),
        )

    @classmethod
    def no_remote(cls, url: str, cause: str) -> "EngineUnavailable":
        """Return the error for a Spark Connect server that does not answer."""
        return cls(f"no Spark Connect server answers at {url}: {cause}", ("check the address and that the server runs", "run without `--remote`"))

    @classmethod
    def no_jars(cls, cause: str) -> "EngineUnavailable":
        """Return the error for Delta jars that are neither cached nor downloadable."""
        return cls(
            f"the Delta Lake jars for Spark could not be fetched: {cause}",
            (
                "connect to the network once; later runs work off-line",
                "set ERRATA_DELTA_JARS to a folder that holds them",
                "run with `--engine sail`, which needs none",
            ),
        )

    @classmethod
    def spark_failed(cls, cause: str, log: str) -> "EngineUnavailable":
        """Return the error for a Spark session that did not start."""
        return cls(f"Apache Spark did not start: {cause}", ("`errata doctor` shows what is there", "run with `--engine sail`"), log)

    @classmethod
    def stranger(cls) -> "EngineUnavailable":
        """Return the error for another process that connected to the engine's port before the port was closed."""
        return cls("another process of this machine connected to the engine while it started", ("see who else is at work here, and run again",), again=True)

    @classmethod
    def silent(cls) -> "EngineUnavailable":
        """Return the error for a server that was started and does not answer."""
        return cls("the engine was started and does not answer", ("run again", "`errata doctor` shows what is there"), again=True)

    @classmethod
    def open_port(cls, others: Sequence[str]) -> "EngineUnavailable":
        """Return the error for an engine that other users of this machine could use. `others` are their names."""
        return cls(
            f"this system cannot keep other users from the port of the engine, and others are logged on: {', '.join(others)}",
            (
                "where they may read and write whatever you may, set `shared_host = true` under `[engine]` in errata.toml",
                "run with `--engine spark`, which asks for a token",
            ),
        )

    @classmethod
    def no_executors(cls, master: str, seconds: float) -> "EngineUnavailable":
        """Return the error for a cluster whose executors took no work."""
        return cls(f"{NO_EXECUTORS} of {master} took work for {seconds:.0f} s", WAITING, again=True)

    @classmethod
    def no_answer(cls, url: str, seconds: float) -> "EngineUnavailable":
        """Return the error for a server that stopped answering."""
        return cls(f"the Spark Connect server at {url} gave no answer for {seconds:.0f} s", WAITING, again=True)

    @classmethod
    def too_little(cls, has: str, command: str, needed: str) -> "EngineUnavailable":
        """Return the error for a resource limit of the system that is too low for tables or an engine."""
        return cls(f"the system lets this process have {has} (`{command}`), and it needs {needed}", (f"raise the limit, or lift it with `{command} unlimited`",))

    @classmethod
    def without_s3(cls, cause: str) -> "EngineUnavailable | None":
        """Return the error for Spark whose driver or executors lack jars for S3, by the text of a failure. None for other failures."""
        if _NO_S3.search(cause) is None:
            return None
        ways = ('a cluster and a Spark Connect server need them on every machine: docs/how-to/deploy.md, "State on S3"', "run with `--engine sail`, which needs none")
        return cls("Apache Spark has no jars for S3", ways)

    @classmethod
    def gone(cls, cause: str) -> "EngineUnavailable | None":
        """Return the error for a server that ended or became unreachable, by the text of a failure. None for other failures."""
        awaited = re.search(f"{NO_EXECUTORS} of .* s$", cause, re.MULTILINE)
        if awaited:
            return cls(awaited[0], WAITING, again=True)
        if not any(sign in cause for sign in ENDED):
            return None
        return cls(
            "the engine ended in the middle of its work, or cannot be reached any more",
            ("run again; where the system ended it for want of memory, `--memory-limit` has it take less",),
            again=True,
        )


@contextmanager
def damaged(place: str, version: int) -> Iterator[None]:
    """Turn every exception of opening a table into `Damaged`."""
    try:
        yield
    except Damaged:
        raise
    except Exception as problem:
        raise Damaged(place, version, f"the table cannot be opened ({first_line(problem)})") from problem


@contextmanager
def storing(place: str) -> Iterator[None]:
    """Turn exceptions of the file system, of delta-rs and of the engine's disk into `StorageError`. Other failures of the engine pass."""
    try:
        yield
    except (deltalake.exceptions.DeltaError, OSError) as problem:
        missing = settings_missing(place)
        raise StorageError(place, f"{first_line(problem)} ({missing})" if missing else first_line(problem)) from problem
    except engine_failures() as problem:
        trouble = next((line for line in str(problem).splitlines() if any(word in line for word in DISK_TROUBLE)), None)
        if trouble is None:
            raise
        raise StorageError(place, trouble.strip()) from problem


def engine_failures(*others: type[Exception]) -> tuple[type[Exception], ...]:
    """Return `others` and PySpark's exceptions, for an `except` clause. Does not load PySpark, which takes longer than reading a small table."""
    raised = getattr(sys.modules.get("pyspark.errors"), "PySparkException", None)  # another thread may be importing pyspark
    return others if raised is None else (*others, raised)


def unreadable(message: str) -> str | None:
    """Return the line of an engine's message that names a lost or damaged file of a table. None where there is none."""
    return next((line.strip() for line in message.splitlines() if any(word in line for word in FILE_TROUBLE)), None)


def exhausted(message: str) -> Limit | None:
    """Return the limit that a query exceeded, by the engine's message. None for other failures."""
    found = next((limit for limit, words in _LIMITS if any(word in message for word in words)), None)
    return None if found == "spill volume" and any(word in message for word in _TABLE_FILES) else found


def first_line(problem: Exception) -> str:
    """Return the first line of an error's message, without the prefixes of libraries and without the queries of addresses, which may be signatures."""
    line = _QUERY.sub(r"\1", (str(problem).splitlines() or [type(problem).__name__])[0])
    return line.removeprefix(ARROW_PREFIX) or "its data cannot be decoded"
