"""A node whose work does not fit: E310, E320 and E321 (user guide, "Spill aborts"), with the setting that gives it more room."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from errata.core.failures import StorageFailed
from storage.errors import StorageError, engine_failures, exhausted

_TOLD = {
    "memory": (
        "E310: the engine needs more memory than it was given",
        "raise memory.limit or --memory-limit, run on Spark (--engine spark), or reduce what the node holds at a time",
    ),
    "spill cap": (
        "E320: more would be spilled than storage.spill.disk_cap_bytes allows",
        "raise storage.spill.disk_cap_bytes, or reduce what is spilled: more memory, a partitioned input",
    ),
    "spill volume": (
        "E321: the disk that the engine spills to is full",
        "free space there, or point storage.spill.dir of errata.toml at a larger volume",
    ),
}


@contextmanager
def within_limits(node: str) -> Iterator[None]:
    """Work of a node. Raises StorageFailed where the engine ran out of memory, or of room to spill to; what else goes wrong passes."""
    try:
        yield
    except _failures() as problem:
        _tell(node, problem)
        raise


def _failures() -> tuple[type[Exception], ...]:
    return (StorageError, *engine_failures())


def _tell(node: str, problem: Exception) -> None:
    """Raise StorageFailed for a problem that tells of a limit."""
    limit = exhausted(str(problem))
    if limit is not None:
        what, help_line = _TOLD[limit]
        raise StorageFailed(f"node '{node}': {what}", help=help_line) from problem
