"""Settings and limits of maintenance that keep the hundredth small run as fast as the tenth."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["MANY_FILES", "PROPERTIES", "SMALL_FILE", "WHOLE_FILE", "fragmented_below"]

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
_TIER = 4
"""A file is compacted with smaller ones whose sum is at least this part of it."""


def fragmented_below(sizes: Iterable[int]) -> int | None:
    """Return the size in bytes below which files are compacted into one; None where they include few small ones.

    This is size-tiered compaction: a file that is large beside the new ones waits until enough of them came. So a row is written anew a few
    times while its table grows, instead of in each compaction.

    Args:
        sizes: The size of each data file of a table, in bytes.
    """
    small = sorted(size for size in sizes if size < SMALL_FILE)
    if len(small) <= MANY_FILES:
        return None
    together = max(at for at, (size, smaller) in enumerate(zip(small, accumulate(small, initial=0), strict=False)) if size <= _TIER * smaller)
    return SMALL_FILE if together + 1 == len(small) else small[together + 1]
