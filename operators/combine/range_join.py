"""Range joins by buckets, for inputs that are related by intervals and by no equality.

The value line is cut into buckets of one width. A point lies in one bucket, an interval in each bucket that it touches. Rows of one bucket are joined by
equality, and the comparisons decide about each pair. Any width gives the same pairs; it is chosen from the data so that intervals touch few buckets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from changelog.columns import column
from changelog.lazy_imports import F
from cxl.typed import tree
from cxl.types.types import Kind
from operators.combine.join_plan import Band

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


FEW_PAIRS = 10_000_000
"""Pairs for which a nested loop is faster than buckets, at most."""
FINITE = 1e300
"""Values beyond are in the first or the last bucket."""
SPREAD = 4
"""How many buckets an interval touches in the mean, so that most of what meets in one matches; more where the other side's rows are many."""

_LOW, _HIGH = "__low", "__high"


@dataclass(frozen=True, slots=True)
class Grid:
    """Buckets of a width between two places; what lies outside is in the first or the last one."""

    start: float
    end: float
    width: float

    def bucket(self, place: Column) -> Column:
        """The number of the bucket of a place."""
        inside = F.least(F.greatest(place, F.lit(self.start)), F.lit(self.end))
        return F.when(place.isNotNull(), F.floor((inside - F.lit(self.start)) / F.lit(self.width)).cast("bigint"))


@dataclass(frozen=True, slots=True)
class Extent:
    """The extent of both sides: their rows, where they overlap, and how long their intervals are there, all together."""

    rows: tuple[int, int]
    start: float
    end: float
    lengths: tuple[float, float]

    def grid(self) -> Grid | None:
        """The buckets; None where pairs are so few that there is nothing to gain."""
        if self.rows[0] * self.rows[1] <= FEW_PAIRS:
            return None
        intervals = sum(rows for rows, length in zip(self.rows, self.lengths, strict=True) if length > 0)
        span = self.end - self.start
        width = sum(self.lengths) / max(SPREAD * intervals, sum(self.rows) // 8, 1)
        width = max(width if math.isfinite(width) else span, math.ldexp(span, -40))
        return Grid(self.start, self.end, width or 1.0)


def in_buckets(left: DataFrame, right: DataFrame, band: Band, value: Callable[[tree.Expr], Column], *, holds: Column, how: str, key: str) -> DataFrame:
    """`left.join(right, holds, how)` for `inner` and `left`, where `holds` implies that the intervals of a band meet.

    `value` gives the column of a field; `key` names the column that is unique on the left.
    """
    whole = _of_several_scales([*band.left, *band.right])
    sides = [_placed(frame, [_place(value(end), end.type.kind, whole=whole) for end in ends]) for frame, ends in ((left, band.left), (right, band.right))]
    grid = _extent(sides, band.points).grid()
    if grid is None:
        return left.join(right, holds, how)
    one, other = (_spread(frame, grid, point=point, name=name) for frame, point, name in zip(sides, band.points, ("left", "right"), strict=True))
    same = F.col("__bucket_left") == F.col("__bucket_right")
    if not any(band.points):
        same &= F.col("__bucket_left") == F.greatest("__first_left", "__first_right")  # intervals meet in several buckets, and are a pair in the first
    names = [*left.columns, *right.columns]
    if band.points[0] or how == "inner":
        return one.join(other, same & holds, how).select(*map(column, names))
    met = one.join(other, same & holds, "inner").select(column(key), *map(column, right.columns))
    return left.join(met, key, "left").select(*map(column, names))


def _of_several_scales(ends: Sequence[tree.Expr]) -> bool:
    """Whether some values are Decimals, and others of another scale or Ints: engines divide them into doubles by several ways."""
    return any(end.type.kind is Kind.DECIMAL for end in ends) and len({end.type.base for end in ends}) > 1


def _placed(frame: DataFrame, places: Sequence[Column]) -> DataFrame:
    """The frame with the places of the lower and the upper end, null where a row can meet nothing."""
    low, high = places
    known = low.isNotNull() & high.isNotNull()  # reversed ends meet intervals that contain both
    return frame.withColumns({_LOW: F.when(known, F.least(low, high)), _HIGH: F.when(known, F.greatest(low, high))})


def _place(value: Column, kind: Kind, *, whole: bool) -> Column:
    """A number that keeps the order of values: never does a greater value have a lesser place. `whole`: that of the whole number below a decimal."""
    if kind is Kind.DATE:
        return F.unix_date(value).cast("double")
    if kind is Kind.DATE_TIME:
        return F.unix_micros(value).cast("double")
    number = (F.floor(value) if kind is Kind.DECIMAL and whole else value).cast("double")
    return F.when(~F.isnan(number), number)


def _extent(sides: Sequence[DataFrame], points: Sequence[bool]) -> Extent:
    """The extent of both sides, by one query."""
    ends = [_ends(frame, at) for at, frame in enumerate(sides)]
    start = F.coalesce(F.greatest("min0", "min1"), F.lit(0.0))
    end = F.greatest(start, F.coalesce(F.least("max0", "max1"), F.lit(0.0)))
    both = ends[0].crossJoin(ends[1]).select("rows0", "rows1", start.alias("start"), end.alias("end"))
    found = both
    for at, (frame, point) in enumerate(zip(sides, points, strict=True)):
        found = found.crossJoin(_lengths(frame, both, at)) if not point else found.withColumn(f"length{at}", F.lit(0.0))
    [row] = found.collect()
    return Extent((row["rows0"], row["rows1"]), row["start"], row["end"], (row["length0"] or 0.0, row["length1"] or 0.0))


def _ends(frame: DataFrame, at: int) -> DataFrame:
    low, high = (F.when(F.abs(F.col(name)) < F.lit(FINITE), F.col(name)) for name in (_LOW, _HIGH))
    return frame.agg(F.count(_LOW).alias(f"rows{at}"), F.min(low).alias(f"min{at}"), F.max(high).alias(f"max{at}"))


def _lengths(frame: DataFrame, both: DataFrame, at: int) -> DataFrame:
    """How long the intervals of a side are where the sides overlap: an end that stays open says nothing of the others."""
    low, high = (F.least(F.greatest(F.col(name), F.col("start")), F.col("end")) for name in (_LOW, _HIGH))
    return frame.select(_LOW, _HIGH).crossJoin(F.broadcast(both.select("start", "end"))).agg(F.sum(high - low).alias(f"length{at}"))


def _spread(frame: DataFrame, grid: Grid, *, point: bool, name: str) -> DataFrame:
    """The rows with their buckets, an interval once for each."""
    first, last, bucket = (f"__{what}_{name}" for what in ("first", "last", "bucket"))
    if point:
        return frame.withColumn(bucket, grid.bucket(F.col(_LOW))).drop(_LOW, _HIGH)
    numbered = frame.withColumns({first: grid.bucket(F.col(_LOW)), last: grid.bucket(F.col(_HIGH))}).where(F.col(last).isNotNull())
    return numbered.withColumn(bucket, F.explode(F.sequence(first, last))).drop(_LOW, _HIGH, last)
