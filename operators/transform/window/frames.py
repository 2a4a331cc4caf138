"""The partitions of a window, the order of their rows, and the frame that each row sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from changelog.columns import column
from changelog.lazy_imports import F, Window
from cxl.types.types import Kind, Type

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.window import WindowSpec


PART = "__part"
"""A column with the bytes of a row's partition."""


@dataclass(frozen=True, slots=True)
class OrderPart:
    """A value of a row by which the rows of a partition are ordered."""

    value: Column
    descending: bool = False
    nulls_first: bool = False

    def placed(self, value: Column, *, backwards: bool = False) -> Column:
        """The column to order by, or `backwards` by which the order is turned around."""
        first = self.nulls_first != backwards
        if self.descending != backwards:
            return value.desc_nulls_first() if first else value.desc_nulls_last()
        return value.asc_nulls_first() if first else value.asc_nulls_last()

    def precedes(self, one: Column, other: Column) -> Column:
        """Whether a value comes ahead of another one, never null."""
        ahead = one > other if self.descending else one < other
        return F.when(one.isNull(), F.lit(self.nulls_first) & other.isNotNull()).when(other.isNull(), F.lit(not self.nulls_first)).otherwise(ahead)


@dataclass(frozen=True, slots=True)
class Ordering:
    """A field by which the rows of a partition are ordered."""

    field: str
    type: Type
    descending: bool = False
    nulls_first: bool = False

    def columns(self) -> list[Column]:
        """The columns to order by."""
        return [part.placed(part.value) for part in self.parts()]

    def parts(self) -> list[OrderPart]:
        """The parts that are compared, one after the other; -0.0 is 0.0, and of type any numbers are ahead of texts."""
        value = column(self.field)
        if self.type.kind is not Kind.ANY:
            exact = value.cast("double") + F.lit(0.0) if self.type.kind in (Kind.FLOAT, Kind.NUMERIC) else value
            return [OrderPart(exact, self.descending, self.nulls_first)]
        number, text = value.rlike("^-?[0-9]"), F.regexp_replace(value, '"$', "")
        parts = (F.when(number, value).cast("double") + F.lit(0.0), F.when(~number, text))
        return [OrderPart(value.isNull(), self.nulls_first), *(OrderPart(part, self.descending, self.descending) for part in parts)]


@dataclass(frozen=True, slots=True)
class Frames:
    """Partitions in their order: by the sort fields, ties by key. `whole`: a row's frame is its whole partition.

    `fields`: what the rows of a partition have in common, `PART` or fields that engines sort quicker than bytes.
    """

    order: tuple[Ordering, ...]
    whole: bool = False
    fields: tuple[str, ...] = (PART,)

    def _ordered(self, *last: Column) -> WindowSpec:
        return Window.partitionBy(*map(column, self.fields)).orderBy(*(part for one in self.order for part in one.columns()), *last)

    @property
    def parts(self) -> list[OrderPart]:
        """The parts by which places are compared: the sort fields; where there are none, the key."""
        return [part for one in self.order for part in one.parts()] or [OrderPart(F.hex("_key"))]

    @property
    def rows(self) -> WindowSpec:
        """The frame of each row."""
        end = Window.unboundedFollowing if self.whole else Window.currentRow
        return self._ordered(F.col("_key")).rowsBetween(Window.unboundedPreceding, end)

    @property
    def partition(self) -> WindowSpec:
        """The whole partition, in the order that `rows` has, so that an engine sorts once."""
        return self._ordered(F.col("_key")).rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)

    @property
    def places(self) -> WindowSpec:
        """The partition in its order, for lag and lead, which take no frame; without one an engine cannot order by bytes."""
        return self._ordered(F.hex("_key"))

    @property
    def number(self) -> Column:
        """A row's position in its partition, from 1."""
        return F.row_number().over(self._ordered(F.col("_key")).rowsBetween(Window.unboundedPreceding, Window.currentRow))

    @property
    def peers(self) -> WindowSpec:
        """The partition in the order of the sort fields alone; there must be some."""
        return self._ordered().rowsBetween(Window.unboundedPreceding, Window.currentRow)
