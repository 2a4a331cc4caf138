"""The changes of a run at a port: op rows that come in, op rows that an operator answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from changelog.algebra import consolidate, diff, insertions, repair, replacement
from changelog.rows import Rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Delta:
    """Op rows, rejects among them (`_error` is not null).

    Attributes:
        rows: The op rows.
        signed: Whether retractions may be among them.
        net: Makes the consolidated rows by a plan of the engine; None where `rows` are consolidated.
        apart: Columns such that the two images of each correction differ in one of them at least; None where that is not known.
    """

    rows: Rows
    signed: bool
    net: Callable[[], Rows] | None = None
    apart: frozenset[str] | None = None

    @classmethod
    def insertion(cls, live_rows: Rows, cause: str = "recompute") -> Delta:
        """The delta that brings live rows in where there were none."""
        return cls(insertions(live_rows, cause), signed=False)

    @classmethod
    def loose(cls, rows: Rows) -> Delta:
        """Op rows that may cancel each other."""
        return cls(rows, True, lambda: consolidate(rows))

    @classmethod
    def mapped(cls, rows: Rows) -> Delta:
        """Op rows that may cancel each other, with at most one of each sign a key: what a row-wise map makes of a delta."""
        return cls(rows, True, lambda: repair(rows))

    @classmethod
    def between(cls, old: Rows, new: Rows, cause: str = "recompute") -> Delta:
        """The delta from old live rows to new ones."""
        return cls(replacement(old, new, cause), True, lambda: diff(old, new, cause))

    @property
    def frame(self) -> DataFrame:
        """The op rows in the engine."""
        return self.rows.as_frame()

    def union(self, other: Rows) -> Delta:
        """The same with op rows of other keys."""
        return Delta(self.rows.union(other), True, lambda: (self.rows if self.net is None else self.net()).union(consolidate(other)))

    def select(self, names: Sequence[str]) -> Delta:
        """Columns of the op rows."""
        net = self.net
        return replace(self, rows=self.rows.select(names), net=None if net is None else lambda: net().select(names))

    def on_driver(self, limit: int | None = None) -> Delta:
        """The op rows on the driver, unless there are more than `limit`."""
        return replace(self, rows=self.rows.on_driver(limit))

    def consolidated(self) -> Rows:
        """The net change of each key: on the driver where all rows are there, else by the engine."""
        if self.net is None:
            return self.rows
        return consolidate(self.rows) if self.rows.are_here else self.net()
