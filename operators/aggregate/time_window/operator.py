"""Aggregates over windows of event time.

The key of a row is its window's start, its group and the window's end, so rows are ordered by window. Whether a record is late depends on the records
before it, of any group. A delta affects the windows of its records, and the windows of records that became late or are late no longer. The stored peaks
of event time show which (`operators.aggregate.time_window.watermark`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from changelog.columns import column
from changelog.frames import chosen, of_keys, united
from changelog.keys.spark import key_column
from changelog.lazy_imports import F
from changelog.rows import Rows
from changelog.spark_algebra import as_appends, undone
from cxl import Program
from cxl.types.types import DATE_TIME, INT, Type
from operators.aggregate.group_functions import grouped
from operators.aggregate.operator import Aggregate
from operators.aggregate.time_window.assign import END, LAST, START, in_sessions, in_windows
from operators.aggregate.time_window.config import FOREVER, TimeWindow
from operators.aggregate.time_window.watermark import LATEST, LEAST, UNDATED, WATERMARK, Clock, Turn, sources_in
from operators.core.binding import Binding
from operators.core.config import Watermark, microseconds
from operators.core.context import OperatorContext
from operators.core.delta import Delta
from operators.core.evaluate import rejects
from operators.core.operator import SHARED, compared, shared_number
from operators.core.provenance import ASKER, of_lookup
from operators.core.row_type import RowType
from operators.core.run_values import RunValues
from operators.core.settings import NodeSpec

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


_BOUNDS = {"window.start": START, "window.end": END}


class WindowedAggregate(Aggregate):
    """Groups by window of time and fields. The lookup key is that of the output row, of sessions the group."""

    most_changed = 0.04  # watermarks are followed in several passes

    def __init__(self, spec: NodeSpec, row: RowType, program: Program, held: Mapping[str, int]) -> None:
        super().__init__(spec, row, program)
        self.held = held
        self.window: TimeWindow = spec.config.time_window
        self.lateness: int | None = _microseconds(spec.config.allowed_lateness)
        shape = replace(self.output.key, types=("date_time", *(self.output.key.types or ()), "date_time"))
        self.output = replace(self.output, sorted_by=(), key=shape)
        self.fingerprint = {**self.fingerprint, "time_window": self.window.model_dump(mode="json"), "lateness": self.lateness}
        self.fingerprint |= {"held": dict(held)} if held and self.lateness is not None else {}

    def beside(self) -> Mapping[str, int]:
        """How long each source holds its watermark back, where records can be late."""
        return {f"'out_of_order' of source '{name}'": held for name, held in self.held.items() if self.lateness is not None}

    @property
    def key_values(self) -> Mapping[str, Type]:
        """The group's fields between the bounds of the window."""
        return {"$window.start": DATE_TIME, **super().key_values, "$window.end": DATE_TIME}

    @property
    def accumulators(self) -> None:
        """None: rows leave closed windows, so the rows are read."""
        return None

    @property
    def always_has_rows(self) -> bool:
        """Nothing falls into no window."""
        return False

    @property
    def by_session(self) -> bool:
        """Whether windows are made by the records themselves."""
        return self.window.session is not None

    def describe(self) -> Sequence[str]:
        """Group fields, functions, window."""
        [(kind, sizes)] = self.window.model_dump(exclude_none=True).items()
        shape = ", ".join([kind, *(f"{name} {value}" for name, value in sizes.items())])
        late = "late records are corrections" if self.lateness is None else f"allowed lateness: {self.lateness / 1_000_000:g} s"
        return (*super().describe(), f"window: {shape}", late)

    # Keys ---------------------------------------------------------------------------------------------------------------
    def _key(self) -> Column:
        return key_column([(F.col(START), "date_time"), *self._group_parts(), (F.col(END), "date_time")])

    def _lookup_key(self) -> Column:
        return key_column(self._group_parts()) if self.by_session else self._key()

    def lookup(self, frame: DataFrame, index: int, values: RunValues) -> DataFrame:
        """A row for each window of each record, with the window's bounds; for sessions the records themselves."""
        rows = frame.withColumn(LAST, F.lit(True)) if self.by_session else in_windows(frame, self.window)
        return rows.withColumn("_lookup", self._lookup_key())

    def shared(self, index: int) -> Column | None:
        """The fields of the group, and the window where a record is in one."""
        fields = [(column(name), type_) for name, type_ in self.groups.items()]
        if self.by_session:
            return shared_number(fields)
        time = F.unix_micros("_event_time")
        return shared_number([(time - F.pmod(time, F.lit(self.window.slide)), INT), *fields]) if self.window.tumbling else None

    def _placed(self, frame: DataFrame, peaks: DataFrame | None = None) -> DataFrame:
        """Records as `lookup` gives them, with the watermark before each. `peaks`: where the frame is not the whole input."""
        if self.lateness is None:
            return self._open(frame)
        return self.lookup(self.clock.marked(as_appends(frame, "recompute"), peaks), 0, RunValues.none())

    def _open(self, frame: DataFrame) -> DataFrame:
        """Records as `lookup` gives them that no window closes on, so that no watermark matters."""
        return self.lookup(as_appends(frame, "recompute").withColumn(WATERMARK, F.lit(None).cast("bigint")), 0, RunValues.none())

    @property
    def clock(self) -> Clock:
        """The clock of the input's watermarks."""
        return Clock(self.inputs[0], self.held)

    @property
    def timed_by(self) -> Sequence[str]:
        """The sources whose event times the windows go by."""
        return sources_in(self.inputs[0].key)

    @property
    def keeps_state(self) -> bool:
        """The peaks of event time, where records can be late."""
        return self.lateness is not None

    # Answers ------------------------------------------------------------------------------------------------------------
    def compute(self, frames: Sequence[DataFrame], values: RunValues) -> DataFrame:
        """The rows of all windows of the whole input."""
        return self._computed(self._placed(frames[0]), values)

    def answer(self, context: OperatorContext) -> Delta:
        """Compute the affected windows again and compare them with the prior rows."""
        if context.first:
            delta = context.delta(0)
            rows = delta.frame if delta is not None else context.live_input(0)
            return Delta.insertion(self._whole(context, rows))
        turn = None if self.lateness is None else self.clock.follow(context)
        affected = context.materialized(self._affected(context, turn))
        prior = self.prior(context, affected.distinct(["_lookup"]))
        taken = context.materialized(self._in_windows(context, affected, turn)).as_frame()
        return Delta.between(prior, context.rows(self._computed(taken, context.values)))

    def rebuild(self, context: OperatorContext, cause: str = "logic") -> Delta:
        """Compute all windows and compare them with the prior rows."""
        return compared(context, self._whole(context, context.live_input(0)), cause)

    def _whole(self, context: OperatorContext, rows: DataFrame) -> Rows:
        """The rows of all windows. All peaks are stored again; where they show that nothing is late, the watermarks of single records are not followed."""
        if not self.keeps_state:
            return context.rows(self._computed(self._open(rows), context.values, late=False))
        peaks = context.keep_state(context.rows(self.clock.peaks(rows, spans=True)), anew=True).as_frame()
        may_be_late = self._is_closed(self._first_end(F.col(LEAST)), LATEST)
        [found] = self.clock.spans(peaks).agg(F.max(may_be_late.cast("int")).alias("late"), F.sum(UNDATED).alias("undated")).collect()
        placed = self._placed(rows, peaks) if found["late"] else self._open(rows)
        return context.rows(self._computed(placed, context.values, late=bool(found["late"]), undated=bool(found["undated"])))

    def _first_end(self, time: Column) -> Column:
        """When the first of the windows of a record ends at the earliest."""
        size, slide = F.lit(self.window.size), F.lit(self.window.slide)
        return time + size if self.by_session else time - F.pmod(time - size, slide) + slide

    def _in_windows(self, context: OperatorContext, affected: Rows, turn: Turn | None) -> DataFrame:
        """Return the records of the affected windows, placed. Watermarks are followed record by record only where stretches do not decide."""
        found = self.of_affected(context, 0, affected)
        if turn is None:
            return as_appends(found, "recompute").withColumn(WATERMARK, F.lit(None).cast("bigint"))
        bounded = context.materialized(self.clock.bounded(found, turn.now)).as_frame()
        before, at_last = (self._is_closed(F.unix_micros(END), mark) for mark in (WATERMARK, LATEST))
        stretches = context.materialized(self.clock.stretches(bounded if self.by_session else bounded.where(before != at_last)), condensed=True)
        decided = as_appends(self.clock.outside(bounded, stretches.as_frame()).drop(LATEST), "recompute")
        if stretches.are_empty():
            return decided
        within = self.clock.within(stretches)
        placed = self._placed(context.live_input(0, lambda rows: within(self.needed(rows, 0))), turn.now)
        followed = of_keys(placed, affected.distinct(["_lookup"]).as_frame(), "_lookup")
        return followed if self.by_session else united(decided, followed)

    def _affected(self, context: OperatorContext, turn: Turn | None) -> DataFrame:
        """The windows of the delta's records, and of records that became late or are late no more: `_lookup` and `SHARED`, distinct."""
        delta = context.delta(0)
        assert delta is not None  # an answer has a delta
        direct = self.lookup(self.hashed(delta.frame, 0), 0, context.values).select("_lookup", SHARED)
        if turn is None:
            return direct.distinct()
        rows = context.materialized(context.live_input(0, self.clock.within(turn.moved))).as_frame()
        sides = ((rows, turn.now), (undone(rows, delta.frame), turn.before))
        now, before = (self._closed(self._placed(side, peaks)) for side, peaks in sides)
        changed = now.unionByName(before).groupBy("_lookup", SHARED, "_key", WATERMARK).agg(F.count(F.lit(1)).alias("__sides"))
        return direct.unionByName(changed.where(F.col("__sides") == 1).select("_lookup", SHARED)).distinct()

    def _closed(self, placed: DataFrame) -> DataFrame:
        """Records that meet a closed window; a session may have grown beyond that, so it is judged by the watermark."""
        end = F.unix_micros("_event_time") + F.lit(self.window.size) if self.by_session else F.unix_micros(END)
        mark = F.col(WATERMARK) if self.by_session else F.lit(0).cast("bigint").alias(WATERMARK)
        return self.hashed(placed.where(self._is_closed(end)), 0).select("_lookup", SHARED, "_key", mark)

    def _is_closed(self, end: Column, mark: str = WATERMARK) -> Column:
        return F.coalesce(F.col(mark) >= end + F.lit(self.lateness or 0), F.lit(False))

    # Rows ---------------------------------------------------------------------------------------------------------------
    def _computed(self, placed: DataFrame, values: RunValues, *, late: bool = True, undated: bool = True) -> DataFrame:
        """Return the rows of windows, and rejects. `late`, `undated`: whether such records may exist; each kind adds a branch to the plan."""
        bounded = self._bounded(values)
        before = self._arguments(placed, bounded)
        open_, closed = self._taken(before.good, late=late)
        fields = [START, END, *self.groups]
        rows = self._finished(grouped(self._in_one_spelling(open_, START, END), fields, self.program.calls, wide=bool(self.wide_sums), settle=bounded.settle), fields, bounded)
        without_time = before.good.where(F.col("_event_time").isNull()).transform(self._undated) if undated else None
        too_late = None if closed is None else closed.transform(self._late)
        for rejected in (one for one in (without_time, too_late, before.bad) if one is not None):
            rows = united(rows, chosen(self._failed_records(rejected.where(F.col(LAST))), rows.columns))
        return rows

    def _bounded(self, values: RunValues) -> RunValues:
        """Return the run's values, with the columns of the window bounds."""
        return replace(values, values={**values.values, **{name: F.col(at) for name, at in _BOUNDS.items()}})

    def _taken(self, good: DataFrame, *, late: bool = True) -> tuple[DataFrame, DataFrame | None]:
        """Return the records that their windows take, and the late ones; None where `late` is false."""
        dated = good.where(F.col("_event_time").isNotNull())
        inside = in_sessions(dated, self.window) if self.by_session else dated
        if not late:
            return inside, None
        closed = self._is_closed(F.unix_micros(END))
        open_ = in_sessions(inside.where(~closed), self.window) if self.by_session else inside.where(~closed)
        return open_, inside.where(closed)

    def members(self, frame: DataFrame, values: RunValues) -> DataFrame:
        """The records that the windows took, a row for each window."""
        taken, _ = self._taken(self._arguments(self._placed(frame), self._bounded(values)).good)
        return taken.withColumn("_lookup", self._key())

    def origins(self, rows: DataFrame, inputs: Sequence[DataFrame], values: RunValues, reads: frozenset[str]) -> list[DataFrame]:
        """The records that the windows took."""
        taken, _ = self._taken(self._arguments(self._placed(inputs[0]), self._bounded(values)).good)
        return [of_lookup(rows.select(ASKER, F.col("_key").alias("__window")), taken.withColumn("__window", self._key()), "__window")]

    def placed(self, frame: DataFrame, values: RunValues) -> DataFrame | None:
        """None: whether a window takes a record depends on the records before it."""
        return None

    def _late(self, frame: DataFrame) -> DataFrame:
        bounds = [part for at, after in ((START, ", "), (END, ")")) for part in (_nanoseconds(F.unix_micros(at)), F.lit(after))]
        detail = F.concat(F.lit("the window ["), *bounds, F.lit(" had closed (nanoseconds since 1970)"))
        return rejects(frame, "late_record", detail, f"time_window:{self.name}")

    def _undated(self, frame: DataFrame) -> DataFrame:
        return rejects(frame, "late_record", F.lit("the record has no event time, so no window takes it"), f"time_window:{self.name}")


def _nanoseconds(micros: Column) -> Column:
    """Return microseconds as the text of nanoseconds; a bigint covers 292 years before and after 1970 only."""
    return F.when(micros == 0, F.lit("0")).otherwise(F.concat(micros.cast("string"), F.lit("000")))


def _microseconds(lateness: str | None) -> int | None:
    """The grace of closed windows; None where they never close."""
    return None if lateness == FOREVER else microseconds(lateness) if lateness else 0


def bind_windowed(spec: NodeSpec, binding: Binding, program: Program) -> WindowedAggregate | None:
    """Check a time window and give its operator (E156, E242, E243)."""
    undated = list(_undated(binding))
    for message, help_text in undated:
        binding.problems.report("E156", message, ("config", "time_window"), help=help_text)
    dated = "_event_time" in binding.input.hidden
    if not dated and not undated:
        help_text = "put the time window before the aggregate that takes it away"
        binding.problems.report("E242", f"no event time reaches '{spec.name}'", ("config", "time_window"), help=help_text)
    early = program.before is not None and bool(program.before.reads_system & set(_BOUNDS)) and spec.config.time_window.session is not None
    if early:
        help_text = "read $window.start and $window.end outside of aggregate calls and filters"
        binding.problems.report("E243", "a session's bounds are known only when all of its records are", ("config", "cxl"), help=help_text)
    return WindowedAggregate(spec, binding.input, program, dict(_held(binding))) if dated and not undated and not early else None


def _undated(binding: Binding) -> Iterator[tuple[str, str]]:
    """Message and help for each source that keeps windows from closing, or whose records have no window to go to."""
    as_rows = sources_in(binding.input.key)
    for name, mark in binding.watermarks.items():
        if mark is None:
            without = "remove time_window" if name in as_rows else "'watermark: none' where its records have no time of their own"
            yield f"source '{name}' has no watermark, so no window could close", f"add 'watermark: {{ column: ... }}' to source '{name}', or {without}"
        elif mark == "none" and name in as_rows:
            help_text = f"add 'watermark: {{ column: ... }}' to source '{name}', or let a combine that another source drives look its records up"
            yield f"source '{name}' has 'watermark: none', so no window could take its records", help_text


def _held(binding: Binding) -> Iterator[tuple[str, int]]:
    """The sources whose watermarks are held back, and how many microseconds."""
    for name in sources_in(binding.input.key):
        mark = binding.watermarks.get(name)
        if isinstance(mark, Watermark) and mark.out_of_order is not None and (held := microseconds(mark.out_of_order)):
            yield name, held
