"""Rollback cursors: up to which row each source came through, and what a run reads that begins there (SPEC-DECISIONS, The engine 18)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from errata.correlation_settled import COMBINE

if TYPE_CHECKING:
    from errata.correlation_settled import Settled
    from errata.rejects import Reject


def cursor_of(source: str, rows: int, settled: Settled, rejects: Sequence[Reject]) -> int:
    """The highest row of a source of so many `rows` that came through, ahead of a group that overflowed or a combine row that failed; 0 for none."""
    bad = {one.number for one in rejects if one.source == source}
    while rows and rows in bad:
        rows -= 1
    floors = [one.number for one in rejects if one.source == source and one.category == COMBINE and one.number]
    return min([rows, *(floor - 1 for floor in (*floors, settled.floors.get(source)) if floor is not None)])
