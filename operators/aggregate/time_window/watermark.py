"""Watermarks: the progress of event time before each record of a node's input.

The watermark of a record is the least, over the sources, of the highest earlier event time less the source's `out_of_order`. It is judged in input order.
Rows are ordered within short *stretches* of the key range. The stretches are few; they are ordered by the highest times in each, the *peaks*. A node stores
the peaks, so that a delta is judged by the rows of few stretches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING

from changelog.columns import column
from changelog.lazy_imports import F, Window
from changelog.rows import Rows
from changelog.spark_algebra import undone
from operators.core.context import OperatorContext
from operators.core.evaluate import Narrow
from operators.core.provenance import source_name_of
from operators.core.row_type import KeyShape, RowType

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


WATERMARK = "__watermark"
"""Microseconds since 1970; null while some source has no record."""

LATEST = "__latest"
"""The watermark after the last record of a record's stretch."""

LEAST, UNDATED = "least", "undated"
"""Of a stretch: its lowest event time, and the number of rows without one."""

_STRETCH = "__stretch"
_LONGEST = 64
"""More bytes 0xff than any key has after its stretch."""
_LABELLED, _VALUED = 12, 8
"""Key bytes of a stretch: source, file and the upper four of a row label's six bytes, or the first bytes of a primary key."""


def sources_in(shape: KeyShape) -> tuple[str, ...]:
    """Return the sources whose records become rows; sources that are only looked up are left out."""
    if shape.kind == "source":
        return (shape.source,)
    parts = shape.parts if shape.kind == "merge" else shape.parts[:1]
    return tuple(dict.fromkeys(name for part in parts for name in sources_in(part)))


@dataclass(frozen=True, slots=True)
class Clock:
    """Tells the watermark before each row of a node's input."""

    row: RowType
    held: Mapping[str, int] = field(default_factory=dict)
    """By source how many microseconds its watermark is held back behind its highest event time; none for sources that are not in it."""

    @property
    def _bytes(self) -> int:
        return _stretch_bytes(self.row.key)

    @property
    def _rows(self) -> str:
        """The column of peaks that tells that a stretch has rows; named by the length of stretches, which follows the keys."""
        return f"rows_{self._bytes}"

    @property
    def _peaks(self) -> dict[str, Column]:
        """How far each source has come: a column of peaks each, and its value in a row, the event time less what the source's watermark is held back."""
        names = sources_in(self.row.key)
        times = {name: _time_of(name, self.row, alone=len(names) == 1) for name in names}
        return {f"peak:{name}": time - F.lit(self.held[name]) if name in self.held else time for name, time in times.items()}

    def _stretched(self, frame: DataFrame) -> DataFrame:
        return frame.withColumn(_STRETCH, F.substring(F.hex("_key"), 1, 2 * self._bytes))

    def within(self, stretches: Rows) -> Narrow:
        """Choose the rows of some stretches, which are few. The range of their keys chooses first, so that other files are skipped."""
        first, last = stretches.extremes(_STRETCH)
        beyond = bytes.fromhex(last or "") + b"\xff" * _LONGEST
        inside = F.col("_key").between(F.lit(bytes.fromhex(first or "")), F.lit(beyond))
        return lambda rows: self._stretched(rows.where(inside)).join(stretches.as_frame(), _STRETCH, "left_semi").drop(_STRETCH)

    def outside(self, frame: DataFrame, stretches: DataFrame) -> DataFrame:
        """Return the rows of all other stretches."""
        return self._stretched(frame).join(stretches, _STRETCH, "left_anti").drop(_STRETCH)

    def stretches(self, frame: DataFrame) -> DataFrame:
        """Return the distinct stretches of rows."""
        return self._stretched(frame).select(_STRETCH).distinct()

    def peaks(self, frame: DataFrame, *, spans: bool = False) -> DataFrame:
        """Return a row for each stretch: its first key bytes as `_key`, its number of rows, the highest time of each source; with `spans` also `LEAST` and `UNDATED`."""
        highest = {name: F.max(name) for name in self._peaks}
        others = {LEAST: F.min(F.unix_micros("_event_time")), UNDATED: F.count(F.when(F.col("_event_time").isNull(), 1))} if spans else {}
        totals = {self._rows: F.count(F.lit(1)), **highest, **others}
        found = self._stretched(frame).withColumns(self._peaks).groupBy(_STRETCH).agg(*(total.alias(name) for name, total in totals.items()))
        return found.select(F.unhex(_STRETCH).alias("_key"), *map(column, totals))

    def spans(self, peaks: DataFrame) -> DataFrame:
        """Each stretch with `LEAST`, `UNDATED`, and `WATERMARK` and `LATEST`, between which the watermarks of its rows lie. In: all `peaks` with spans."""
        return self.bounded(peaks.select("_key", LEAST, UNDATED), peaks)

    def marked(self, frame: DataFrame, peaks: DataFrame | None = None) -> DataFrame:
        """Return the rows of whole stretches with `WATERMARK`. `peaks`: peaks of all stretches, where these are not all rows."""
        times = {f"__{name}": time for name, time in self._peaks.items()}
        stretched = self._stretched(frame).withColumns(times)
        inside = Window.partitionBy(_STRETCH).orderBy("_key").rowsBetween(Window.unboundedPreceding, -1)
        running = stretched.withColumns({name: F.max(name).over(inside) for name in times})
        known = running.join(F.broadcast(self._before(self.peaks(frame) if peaks is None else peaks)), _STRETCH)
        pairs = [(column(name), column(before)) for name, before in zip(times, self._peaks, strict=True)]
        return known.withColumn(WATERMARK, _least(pairs)).drop(_STRETCH, *times, *self._peaks)

    def bounded(self, frame: DataFrame, peaks: DataFrame) -> DataFrame:
        """Return rows with the watermark before their stretch as `WATERMARK`, and with `LATEST`; their own watermark lies between. `peaks`: peaks of all stretches."""
        own = {name: f"__{name}" for name in self._peaks}
        inside = peaks.select(F.hex("_key").alias(_STRETCH), *(column(name).alias(mine) for name, mine in own.items()))
        known = self._stretched(frame).join(F.broadcast(self._before(peaks).join(inside, _STRETCH)), _STRETCH)
        none = F.lit(None).cast("bigint")
        marks = {WATERMARK: _least([(none, column(name)) for name in own]), LATEST: _least([(column(mine), column(name)) for name, mine in own.items()])}
        return known.withColumns(marks).drop(_STRETCH, *own.values(), *own)

    def _before(self, peaks: DataFrame) -> DataFrame:
        """The highest times of all stretches before each, under the names of peaks."""
        before = Window.partitionBy("__all").orderBy(_STRETCH).rowsBetween(Window.unboundedPreceding, -1)
        keyed = peaks.withColumns({_STRETCH: F.hex("_key"), "__all": F.lit(1)})
        return keyed.select(_STRETCH, *(F.max(column(name)).over(before).alias(name) for name in self._peaks))

    def follow(self, context: OperatorContext) -> Turn:
        """Bring the stored peaks up to a delta, which the live input includes."""
        delta = context.delta(0)
        assert delta is not None  # an answer has a delta
        affected = context.materialized(self.stretches(delta.frame), condensed=True)
        known = context.own_state()
        if known is None or self._rows not in known.columns:
            rows = context.live_input(0)
            before = context.materialized(self.peaks(undone(rows, delta.frame)), condensed=True).as_frame()
            now = context.keep_state(context.rows(self.peaks(rows)), anew=True).as_frame()
        else:
            before = context.materialized(self._kept(known.as_frame()), condensed=True).as_frame()
            keys = affected.as_frame().select(F.unhex(_STRETCH).alias("_key"))
            fresh = context.keep_state(context.rows(keys.join(self.peaks(context.live_input(0, self.within(affected))), "_key", "left")))
            now = context.materialized(before.join(keys, "_key", "left_anti").unionByName(fresh.as_frame()), condensed=True).as_frame()
        return Turn(before, now, context.materialized(self._moved(before, now).unionByName(affected.as_frame()).distinct(), condensed=True))

    def _kept(self, known: DataFrame) -> DataFrame:
        """Kept peaks with today's columns; a source that came since has none."""
        peaks = (column(name) if name in known.columns else F.lit(None).cast("bigint").alias(name) for name in self._peaks)
        return known.where(column(self._rows).isNotNull()).select("_key", column(self._rows), *peaks)

    def _moved(self, before: DataFrame, now: DataFrame) -> DataFrame:
        """Return the stretches whose rows find another watermark than before."""
        then = self._before(before).withColumnsRenamed({name: f"__{name}" for name in self._peaks})
        both = self._before(now).join(then, _STRETCH)
        same = (column(name).eqNullSafe(column(f"__{name}")) for name in self._peaks)
        return both.where(~reduce(lambda one, other: one & other, same)).select(_STRETCH)


@dataclass(frozen=True, slots=True)
class Turn:
    """The peaks before a delta and now; `moved`: the stretches in which a row changed or may have another watermark."""

    before: DataFrame
    now: DataFrame
    moved: Rows


def _time_of(name: str, row: RowType, *, alone: bool) -> Column:
    time = F.unix_micros("_event_time")
    return time if alone else F.when(source_name_of(row) == F.lit(name), time)


def _stretch_bytes(shape: KeyShape) -> int:
    if shape.kind == "source":
        return _LABELLED if shape.types is None else _VALUED
    return max(map(_stretch_bytes, shape.parts), default=_VALUED) + (shape.kind == "merge")


def _least(times: list[tuple[Column, Column]]) -> Column:
    """The least of the sources' times, null while one has none; each within its stretch and before it."""
    each = [F.coalesce(F.greatest(inside, before), inside, before) for inside, before in times]
    some_missing = reduce(lambda left, right: left | right, (time.isNull() for time in each))
    return F.when(~some_missing, F.least(*each) if len(each) > 1 else each[0])
