"""Which rows of a changed partition can have other window values than before.

A window sees the rows before its own row, and `lead` some behind it. So in the order of the window nothing changes ahead of the first changed row, less
the rows that functions look ahead; and where no function looks back farther than some rows, nothing changes farther behind the last changed one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from changelog.lazy_imports import F, Window
from operators.transform.window.columns import WRONG
from operators.transform.window.frames import Frames

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


GROUP = "__changed_group"
"""A column with what the rows of a partition have in common. Several partitions may share it; the rows of all of them are then in one group."""
_FROM, _UNTIL = "__changed_from", "__changed_until"
"""Columns: whether a row is not ahead of the first changed row of its group, and not behind the last one."""
_FIRST, _LAST, _NUMBER = "__first", "__last", "__changed_number"


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """The rows that changes can reach, by the order of the windows and how far their functions look."""

    frames: Frames
    behind: int | None
    """How many rows before their own one functions look at; None: all."""
    ahead: int
    """How many rows behind their own one."""

    def bounds(self, changes: DataFrame) -> DataFrame:
        """The first and the last place of the changed rows of each group.

        Args:
            changes: The changed rows as they were and as they are, with `GROUP`.
        """
        first = self._outermost(changes, _FIRST, backwards=False)
        return first if self.behind is None else first.join(self._outermost(changes, _LAST, backwards=True), GROUP)

    def _outermost(self, changes: DataFrame, prefix: str, *, backwards: bool) -> DataFrame:
        """The place of one row of each group: the first one, or `backwards` the last one."""
        parts = self.frames.parts
        placed = changes.select(GROUP, *(part.value.alias(f"{prefix}{at}") for at, part in enumerate(parts)))
        order = [part.placed(F.col(f"{prefix}{at}"), backwards=backwards) for at, part in enumerate(parts)]
        return placed.withColumn(_NUMBER, F.row_number().over(Window.partitionBy(GROUP).orderBy(*order))).where(F.col(_NUMBER) == 1).drop(_NUMBER)

    def marked(self, rows: DataFrame, bounds: DataFrame) -> DataFrame:
        """The rows of the groups that have changes, with marks for `reached`.

        Args:
            rows: Rows with `GROUP`.
            bounds: What `bounds` gives.
        """
        met = rows.join(bounds, GROUP).withColumn(_FROM, ~self._precedes(lambda at, own: (own, F.col(f"{_FIRST}{at}"))))
        if self.behind is not None:
            met = met.withColumn(_UNTIL, ~self._precedes(lambda at, own: (F.col(f"{_LAST}{at}"), own)))
        return met.drop(GROUP, *(name for name in bounds.columns if name != GROUP))

    def _precedes(self, pair: Callable[[int, Column], tuple[Column, Column]]) -> Column:
        """Whether one place is ahead of another one. Places with equal sort fields are not.

        Args:
            pair: Both values of a part of the order, from its number and the row's own value.
        """
        pairs = [(part, *pair(at, part.value)) for at, part in enumerate(self.frames.parts)]
        return reduce(lambda later, one: one[0].precedes(one[1], one[2]) | (one[1].eqNullSafe(one[2]) & later), reversed(pairs), F.lit(False))

    def not_ahead(self, rows: DataFrame) -> DataFrame:
        """The marked rows with the values of their windows, without those ahead of the first change, whose windows see no other rows than before."""
        kept = rows if self.ahead else rows.where(F.col(_FROM) | F.col(WRONG).isNotNull())
        return kept.drop(_FROM, _UNTIL)

    def between(self, rows: DataFrame) -> DataFrame:
        """The marked rows that lie between the first and the last change, before their windows are known. `reached` has a few more."""
        return rows.where(F.col(_FROM) if self.behind is None else F.col(_FROM) & F.col(_UNTIL))

    def reached(self, rows: DataFrame) -> DataFrame:
        """The rows that changes can reach, out of all marked rows with the values of their windows.

        Rows whose functions have no value are among them: a sum that columns do not hold is no longer right for the rows behind it.
        """
        places = self.frames.places
        marks = {_FROM: F.coalesce(F.lead(_FROM, self.ahead).over(places), F.lit(True)) if self.ahead else F.col(_FROM)}
        if self.behind is not None:
            marks[_UNTIL] = F.coalesce(F.lag(_UNTIL, self.behind).over(places), F.lit(True)) if self.behind else F.col(_UNTIL)
        within = reduce(lambda one, other: one & other, (F.col(name) for name in marks))
        return rows.withColumns(marks).where(within | F.col(WRONG).isNotNull()).drop(*marks)
