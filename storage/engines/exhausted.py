"""Which limit a query ran into, by what the engine says: the memory that it may use, the spill cap, or the disk that it spills to (user guide, "Spill aborts")."""

from __future__ import annotations

from typing import Literal

__all__ = ["exhausted"]

Limit = Literal["memory", "spill cap", "spill volume"]
_WORDS: tuple[tuple[Limit, tuple[str, ...]], ...] = (
    ("spill cap", ("exceeded the allowable limit",)),
    ("memory", ("Failed to allocate additional", "java.lang.OutOfMemoryError", "UNABLE_TO_ACQUIRE_MEMORY", "SparkOutOfMemoryError")),
    ("spill volume", ("No space left on device",)),
)
_TABLES = ("LocalFileSystem", "_delta_log")
"""What stands in messages about files of tables, which are not spilled ones."""


def exhausted(text: str) -> Limit | None:
    """The limit that the message of an engine tells of; None where it tells of something else."""
    found = next((limit for limit, words in _WORDS if any(word in text for word in words)), None)
    return None if found == "spill volume" and any(word in text for word in _TABLES) else found
