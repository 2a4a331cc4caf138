"""What the storage layer raises when the outside does not answer as it should (exit code 4 of CONTRACT.md)."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Damaged", "Overtaken", "StorageError", "damaged", "engine_failures", "first_line", "storing", "unreadable"]

DISK_TROUBLE = ("No space left", "Permission denied", "Read-only file system", "Disk quota", "AccessDenied")
FILE_TROUBLE = ("Parquet error", "Object Store error", "FAILED_READ_FILE", "is not a Parquet file")
"""What engines say of a file that is lost or damaged."""
ARROW_PREFIX = "C Data interface error: "
"""What Arrow puts before each error that it hands from one library to the other."""


class StorageError(Exception):
    """A table, file or folder cannot be read or written. `place` is its path or URI, `reason` what the system said."""

    def __init__(self, place: str, reason: str) -> None:
        self.place = place
        self.reason = reason
        super().__init__(f"{place}: {reason}")


class Damaged(StorageError):
    """A table of the state is not what the ledger's last epoch committed."""

    def __init__(self, place: str, version: int, reason: str) -> None:
        super().__init__(place, f"{reason}, the ledger says version {version}; put it back from a copy, or let --full-refresh make all tables anew")


class Overtaken(Exception):
    """Another run took the pipeline over, or wrote to a table that this run alone was to write. `place` says where that was seen."""

    def __init__(self, place: str) -> None:
        self.place = place
        super().__init__(f"{place}: another run wrote here")


@contextmanager
def damaged(place: str, version: int) -> Iterator[None]:
    """Turn whatever opening a table raises into `Damaged`."""
    try:
        yield
    except Damaged:
        raise
    except Exception as problem:
        raise Damaged(place, version, f"the table cannot be opened ({first_line(problem)})") from problem


@contextmanager
def storing(place: str) -> Iterator[None]:
    """Turn what the file system, delta-rs and the engine's disk say into `StorageError`; other failures of the engine pass."""
    from deltalake.exceptions import DeltaError

    from storage.files.object_stores import settings_missing

    try:
        yield
    except (DeltaError, OSError) as problem:
        missing = settings_missing(place)
        raise StorageError(place, f"{first_line(problem)} ({missing})" if missing else first_line(problem)) from problem
    except engine_failures() as problem:
        trouble = next((line for line in str(problem).splitlines() if any(word in line for word in DISK_TROUBLE)), None)
        if trouble is None:
            raise
        raise StorageError(place, trouble.strip()) from problem


def engine_failures(*others: type[Exception]) -> tuple[type[Exception], ...]:
    """The engines' exceptions behind some others, where pyspark is loaded at all: loading it takes longer than reading a small table."""
    raised = getattr(sys.modules.get("pyspark.errors"), "PySparkException", None)  # another thread may be importing pyspark
    return others if raised is None else (*others, raised)


def unreadable(told: str) -> str | None:
    """The line of an engine's failure that says which file of a table is lost or damaged; None where none does."""
    return next((line.strip() for line in told.splitlines() if any(word in line for word in FILE_TROUBLE)), None)


def first_line(problem: Exception) -> str:
    """The first line of what an error says, without what libraries put before it."""
    told = (str(problem).splitlines() or [type(problem).__name__])[0]
    return told.removeprefix(ARROW_PREFIX) or "its data cannot be decoded"
