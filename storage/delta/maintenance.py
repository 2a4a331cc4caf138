"""Settings and limits of maintenance that keep the hundredth small run as fast as the tenth."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["MANY_FILES", "PROPERTIES", "SMALL_FILE", "WHOLE_FILE", "is_fragmented"]

PROPERTIES = {
    "delta.dataSkippingNumIndexedCols": "3",  # `_epoch`, `_op`, `_error`: readers skip files by them, and counts come from them
    "delta.enableExpiredLogCleanup": "false",  # the version that the ledger names must stay restorable
    "delta.checkpointInterval": "10",  # a run opens a table a few times, and each time reads the log since the last checkpoint
}
"""Properties of the tables of a state."""
MANY_FILES = 10
"""A table with more small files than this is compacted."""
SMALL_FILE = 4 << 20
"""Bytes below which a file counts as small: to write it anew costs less than to open it in every run."""
WHOLE_FILE = 32 << 20
"""Bytes from which `errata compact` leaves a file alone."""


def is_fragmented(sizes: Iterable[int]) -> bool:
    """Return whether files of these sizes (bytes) include too many small ones."""
    return sum(size < SMALL_FILE for size in sizes) > MANY_FILES
