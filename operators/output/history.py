"""Outputs with a history: what was so, and since when.

By event time the rows of a key are its versions. Each holds from its own time until that of the next one. Only keys that a run touched are computed
again, as in every keyed operator.

By the time of recording, a row that is live is a version from the run that brought it in until the run that took it away. Earlier versions are
live rows of the output too: they stay, and nothing upstream can tell them again. With both times, the versions by event time are recorded.

`_key` is a mark of the kind of history, the key, the begins of the intervals, and where these may be the same the epoch and the key of the input row. So it
sorts as the output is written. `_lookup` is the mark and the key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Final

from changelog.columns import column
from changelog.equality import parts
from changelog.frames import united
from changelog.keys.spark import key_column, with_prefix
from changelog.lazy_imports import F, Window
from cxl import Program, spark
from cxl.types.types import BOOL, DATE_TIME, INT, Type
from operators.core.context import OperatorContext
from operators.core.delta import Delta
from operators.core.evaluate import as_new, as_output, error_text, prepare, reject_key
from operators.core.operator import Keyed, shared_number
from operators.core.provenance import of_lookup
from operators.core.row_type import GROUP_KEY, RowType, key_parts, key_type, physical_type, spelling
from operators.core.run_values import RunValues
from operators.core.settings import NodeSpec
from operators.output.operator import Output, Place
from operators.output.projection import Projection

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, WindowSpec

FROM, TO, CURRENT = "valid_from", "valid_to", "is_current"
RECORDED_FROM, RECORDED_TO = "recorded_from", "recorded_to"
NULL_TIME: Final = "null_event_time"
_TIME, _ENDS, _WHY, _PRIOR, _INPUT, _PAIR = "__time", "__ends", "__why", "__prior", "__input", "__pair"
_MIDNIGHT: Final = datetime(1970, 1, 1)  # as the values of runs are: UTC without saying so
_HASH, _BUCKET, _BUCKETS = "__hash", "__bucket", 256
"""The column and number of parts that keys are spread over: an engine handles a few large windows much faster than one for each key."""
_BEGIN_BYTES: Final = 9
"""The bytes of the begin of an interval in a key: a date, a date-time or an int."""
_EPOCH_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Times:
    """The subject of an output's history.

    Attributes:
        key: The columns of the input that name the thing.
        time: The column of the input with the time from which a row holds; None where there is none.
        recorded: Whether rows say when they were recorded: by the begin of the `run` or by its `epoch`.
        deleted: Tells the rows that say that the thing ended.
    """

    key: tuple[str, ...]
    time: str | None
    recorded: str | None
    deleted: Program | None = None

    @property
    def begin(self) -> str | None:
        """The column with the begin of recording; None where there is none."""
        return None if self.recorded is None else FROM if self.time is None else RECORDED_FROM

    @property
    def end(self) -> str:
        """The column with the end of recording, where there is one."""
        return TO if self.time is None else RECORDED_TO

    @property
    def mark(self) -> bytes:
        """The first byte of all keys: histories of several kinds have no rows in common."""
        return bytes([1 + (self.time is not None) + 2 * (None, "run", "epoch").index(self.recorded)])

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that a history adds."""
        both = self.time is not None and self.recorded is not None
        return (FROM, TO, *((RECORDED_FROM, RECORDED_TO) if both else ()), CURRENT)

    def types(self, row: RowType) -> dict[str, Type]:
        """The types of these columns, over input rows of some type."""
        moment = INT if self.recorded == "epoch" else DATE_TIME
        valid = moment if self.time is None else row.data[self.time]
        found = {FROM: valid, TO: valid.or_null, RECORDED_FROM: moment, RECORDED_TO: moment.or_null, CURRENT: BOOL}
        return {name: found[name] for name in self.names}

    def extended(self, projection: Projection, row: RowType) -> Projection:
        """The columns of a projection, and behind them the columns of the history. One that names the time `valid_from` already is there once."""
        there = projection.data
        sources = {FROM: self.time or "", TO: self.time or ""}
        own = ((name, sources.get(name, ""), type_) for name, type_ in self.types(row).items() if name not in there)
        return Projection((*projection.written, *own))

    def fingerprint(self) -> Mapping[str, Any]:
        """The settings of the history, for the node's fingerprint."""
        columns = {"key": list(self.key), "time": self.time, "recorded": self.recorded}
        return {"history": columns | ({} if self.deleted is None else {"deleted": self.deleted.normal_text()})}


class HistoryOutput(Output, Keyed):
    """An output that writes the history of its input's rows."""

    ordered_by = "_sorted"
    most_affected = 0.8  # comparing versions takes longer than finding the affected ones

    def __init__(self, spec: NodeSpec, row: RowType, projection: Projection, times: Times, place: Place) -> None:
        super().__init__(spec, row, times.extended(projection, row), place, {**times.fingerprint(), **spelling(row.data[name] for name in times.key)})
        self.taken = projection.written
        self.times = times
        self.added = tuple(name for name in times.names if name not in projection.data)
        self.remembers = times.recorded is not None
        self.deterministic = times.deleted is None or times.deleted.deterministic
        self.output = RowType(self.output.data, self.output.hidden, key=GROUP_KEY).carrying(["_lookup", *(["_error"] if self.may_reject else [])])

    @property
    def may_reject(self) -> bool:
        """Whether a row can lack its time, or `deleted` can fail."""
        return self.times.time is not None or self.times.deleted is not None

    @property
    def bytes_before_input(self) -> int | None:
        """How many bytes of `_key` are between `_lookup` and the key of the input's row; None where keys do not hold it."""
        if self.times.time is not None:
            return None
        return _BEGIN_BYTES + (_EPOCH_BYTES if self.times.recorded == "run" else 0)

    def reads_source(self) -> frozenset[str]:
        """The provenance that an output reads, and the variables of `deleted`."""
        return super().reads_source() | (frozenset() if self.times.deleted is None else self.times.deleted.reads_system)

    def describe(self) -> Sequence[str]:
        """The description of an output, with its history."""
        times = self.times
        by = [*([f"by {times.time}"] if times.time else []), *([f"by {'epoch' if times.recorded == 'epoch' else 'begin of the run'} of recording"] if times.recorded else [])]
        return (*super().describe(), f"history of {', '.join(times.key)}: {' and '.join(by)}")

    # -- what the input says now

    def lookup(self, frame: DataFrame, index: int, values: RunValues) -> DataFrame:
        """The key of the history that each row belongs to."""
        return frame.withColumn("_lookup", self._thing({name: column(name) for name in self.times.key}))

    def shared(self, index: int) -> Column | None:
        """The columns of the key."""
        return shared_number([(column(name), self.inputs[0].data[name]) for name in self.times.key])

    def _thing(self, columns: Mapping[str, Column]) -> Column:
        pairs = [part for name, value in columns.items() for part in key_parts(value, self.inputs[0].data[name])]
        return with_prefix(self.times.mark, key_column(pairs))

    def origins(self, rows: DataFrame, inputs: Sequence[DataFrame], values: RunValues, reads: frozenset[str]) -> list[DataFrame]:
        """All rows of the same key: each may move the bounds of the others."""
        return [of_lookup(rows, self.lookup(as_new(inputs[0]), 0, values))]

    def placed(self, frame: DataFrame, values: RunValues) -> DataFrame | None:
        """The rows with the key of their history."""
        return self.lookup(as_new(frame), 0, values)

    def compute(self, frames: Sequence[DataFrame], values: RunValues) -> DataFrame:
        """The versions of the keys of some live input rows as they are now, and the rows that have none."""
        good, bad = self._judged(self.lookup(as_new(frames[0]), 0, values), values)
        found = self._by_time(good) if self.times.time is not None else self._as_they_are(good, values)
        shown = found.select(*map(column, self._names))
        return shown if bad is None else united(shown, bad)

    @property
    def _names(self) -> list[str]:
        return ["_key", *self.output.columns()]

    def _judged(self, frame: DataFrame, values: RunValues) -> tuple[DataFrame, DataFrame | None]:
        """The projected rows with their time (`_TIME`) and whether they say that the thing ended (`_ENDS`), and the rejects."""
        ends, frame, failing = self._ended(frame, values)
        bad = [] if failing is None else [self._refused(failing, error_text(_member("category"), _member("message"), self._stage))]
        time = F.lit(0) if self.times.time is None else column(self.times.time)
        if self.times.time is not None:
            message = F.lit(f"{self.times.time} is null: nothing says from when the row holds")
            bad.append(self._refused(frame.where(time.isNull()), error_text(NULL_TIME, message, self._stage)))
            frame = frame.where(time.isNotNull())
        rows = self.projected(frame, [column("_lookup"), time.alias(_TIME), ends.alias(_ENDS)])
        return rows.withColumn("_error", F.lit(None).cast("string")), united(*bad) if bad else None

    @property
    def _stage(self) -> str:
        return f"output:{self.name}"

    def _refused(self, frame: DataFrame, why: Column) -> DataFrame:
        """Rows as rejects of this output."""
        rows = self.projected(frame, [column("_lookup"), why.alias("_error")])
        return as_output(rows.withColumn("_key", reject_key()), self._names, self.output)

    def _ended(self, frame: DataFrame, values: RunValues) -> tuple[Column, DataFrame, DataFrame | None]:
        """Whether each row says that the thing ended, the rows for which that can be said, and the others (None: there are none) with why not (`_WHY`)."""
        program = self.times.deleted
        if program is None:
            return F.lit(False), frame, None
        assert program.expression is not None  # a predicate
        own = self.inputs[0].data
        named = {name: column(source) for name, source, _ in self.taken if name not in own and source in own}
        frame = frame.withColumns(named) if named else frame
        ready, context = prepare(frame, program.reads_system, self.inputs[0], values)
        ends, failed = spark.column(program.expression, context)
        ends = F.coalesce(ends, F.lit(False))
        if failed is None:
            return ends, ready, None
        return ends, ready.where(~failed), spark.errors(ready.where(failed), program, context, _WHY)

    # -- by event time

    def _by_time(self, rows: DataFrame) -> DataFrame:
        """The versions of each key: of several at one time the last one, of several side by side that say the same the first one."""
        rows = _spread(rows, "_lookup")
        in_order = Window.partitionBy(_BUCKET).orderBy(_HASH, "_lookup", _TIME, "_key")  # an engine refuses windows that bytes order first

        def following() -> Column:
            """The time of the next row of the same key, else null."""
            return F.when(F.lead("_lookup").over(in_order) == F.col("_lookup"), F.lead(_TIME).over(in_order))

        last = rows.withColumn(_PAIR, following()).where(F.col(_PAIR).isNull() | (F.col(_PAIR) != F.col(_TIME))).drop(_PAIR)
        compared = [name for name, source, _ in self.taken if source != self.times.time]
        same = F.lag("_lookup").over(in_order).eqNullSafe(F.col("_lookup")) & F.lag(_ENDS).over(in_order).eqNullSafe(F.col(_ENDS))
        for part in self._compared_parts(last, compared):
            same = same & F.lag(part).over(in_order).eqNullSafe(part)
        begins = last.withColumn(_PAIR, same).where(~F.col(_PAIR)).withColumn(_PAIR, following())
        versions = begins.where(~F.col(_ENDS))
        bounds = {FROM: F.col(_TIME), TO: F.col(_PAIR), CURRENT: F.col(_PAIR).isNull()}
        key = F.concat(F.col("_lookup"), key_column([(F.col(_TIME), key_type(self.output.data[FROM]))]))
        return versions.withColumns({**bounds, "_key": key, **self._unrecorded()})

    def _unrecorded(self) -> dict[str, Column]:
        """The times of recording of rows that are not recorded yet."""
        types = self.output.data
        return {name: F.lit(None).cast(physical_type(types[name])) for name in (RECORDED_FROM, RECORDED_TO) if name in self.times.names}

    def _compared_parts(self, rows: DataFrame, names: Sequence[str]) -> list[Column]:
        """The values of rows as parts that compare exactly: columns, and the undeclared fields that are written."""
        return parts(rows, [*names, *(name for name in ("_widened",) if name in self.output.hidden)])

    # -- by the time of recording

    def _as_they_are(self, rows: DataFrame, values: RunValues) -> DataFrame:
        """The rows of things that have not ended, without times. `_key` is that of the input row."""
        kind = physical_type(self.output.data[FROM])
        nothing = F.lit(None).cast(kind)
        return rows.where(~F.col(_ENDS)).withColumns({FROM: nothing, TO: nothing, CURRENT: F.lit(True)})

    def answer(self, context: OperatorContext) -> Delta:
        """Compute the affected keys again; where the history is one of recording, close what is not so any more and open what is new."""
        if not self.remembers or context.first:
            return self._opened(context) if self.remembers else super().answer(context)
        affected = context.materialized(self.affected(context))
        lookups = affected.distinct(["_lookup"])
        prior = self.prior(context, lookups)
        frame = self.of_affected(context, 0, affected).drop("_lookup")
        return self._recorded(context, prior.as_frame(), frame, "recompute")

    def rebuild(self, context: OperatorContext, cause: str = "logic") -> Delta:
        """Compute everything again. A change of logic makes versions as a correction does: what was published stays."""
        if not self.remembers or context.first:
            return self._opened(context, cause) if self.remembers else super().rebuild(context, cause)
        return self._recorded(context, context.live_own().as_frame(), context.live_input(0), cause, rekeyed=True)

    def _opened(self, context: OperatorContext, cause: str = "recompute") -> Delta:
        """All rows, recorded in this run."""
        delta = context.delta(0)
        frame = context.live_input(0) if delta is None or cause != "recompute" else delta.frame
        rows = self._fresh(self.compute([frame], context.values), context.values)
        return Delta.insertion(context.rows(self.output.shaped(rows, self._names)), cause)

    def _fresh(self, rows: DataFrame, values: RunValues) -> DataFrame:
        """Rows of `compute` as recorded in this run; rejects stay."""
        begin = self.times.begin
        assert begin is not None  # the history is one of recording
        now, names = self._now(values), self.output.columns()
        behind = [key_column([(now, key_type(self.output.data[begin]))])]
        behind += [F.lit(values.epoch.to_bytes(_EPOCH_BYTES, "big"))] if self.times.recorded == "run" else []
        key = F.concat(F.col("_lookup"), *behind, F.col("_key")) if self.times.time is None else F.concat(F.col("_key"), *behind)
        if not self.may_reject:
            return rows.withColumns({"_key": key, begin: now})
        good = F.col("_error").isNull()
        begun = F.when(good, now).otherwise(F.lit(None).cast(names[begin]))
        return rows.withColumns({"_key": F.when(good, key).otherwise(F.col("_key")), begin: begun})

    def _now(self, values: RunValues) -> Column:
        if self.times.recorded == "epoch":
            return F.lit(values.epoch).cast("bigint")
        since = values.values["pipeline.start_time"] - _MIDNIGHT
        return F.timestamp_micros(F.lit(since // timedelta(microseconds=1)))

    def _recorded(self, context: OperatorContext, prior: DataFrame, frame: DataFrame, cause: str, *, rekeyed: bool = False) -> Delta:
        """The delta from prior rows to the rows that the input of the same keys makes of them."""
        end = self.times.end
        before = context.materialized(context.rows(self.output.shaped(prior, self._names)))
        live = self.rekeyed(before.as_frame()) if rekeyed else before.as_frame()
        good = F.col("_error").isNull() if self.may_reject else F.lit(True)
        closed = live.where(good & column(end).isNotNull())
        fresh = context.materialized(context.rows(self._fresh(self.compute([frame], context.values), context.values).select(*map(column, self._names))))
        rejects = [fresh.as_frame().where(~good)] if self.may_reject else []
        rows = united(closed, self._matched(live.where(good & column(end).isNull()), fresh.as_frame().where(good), context.values), *rejects)
        return Delta.between(before, context.rows(self.output.shaped(rows, self._names)), cause)

    def rekeyed(self, rows: DataFrame) -> DataFrame:
        """Prior rows of the same kind of history under the keys that they have by now: the columns of the key may be others."""
        shown = {source: name for name, source, _ in reversed(self.taken)}
        thing = self._thing({name: column(shown[name]) for name in self.times.key})
        tail = _behind(F.col("_key"), F.length("_lookup"))
        alike = F.startswith(F.hex(F.col("_lookup")), F.lit(self.times.mark.hex()))
        good = F.col("_error").isNull() if self.may_reject else F.lit(True)
        return rows.where(good & F.coalesce(alike, F.lit(False))).withColumn("__thing", thing).withColumns({"_key": F.concat(F.col("__thing"), tail), "_lookup": F.col("__thing")}).drop("__thing")

    def _matched(self, live: DataFrame, fresh: DataFrame, values: RunValues) -> DataFrame:
        """The open rows after this run: open still, ended now, or new.

        A row is matched with one that says the same, first with the one of the same input row.
        """
        begin, end = self.times.begin, self.times.end
        names = self._names
        before = self.bytes_before_input
        alone = before is None
        origin = F.lit(b"") if before is None else _behind(F.col("_key"), F.length("_lookup") + before)
        both = united(live.withColumn(_PRIOR, F.lit(1)), fresh.withColumn(_PRIOR, F.lit(0))).withColumn(_INPUT, origin)
        images = {f"__said{at}": part for at, part in enumerate(self._compared_parts(both, [name for name in self.output.data if name not in (begin, end, CURRENT)]))}
        same = ["_lookup", *images]
        spread = _spread(both.withColumns(images), "_lookup", _INPUT)
        beside = Window.partitionBy(_BUCKET).orderBy(_HASH, "_lookup", _INPUT, *images, _PRIOR)
        marked = spread.withColumn(_PAIR, _alike(F.lag, [*same, _INPUT], beside) | _alike(F.lead, [*same, _INPUT], beside))
        if not alone:
            rest = marked.where(~F.col(_PAIR))
            numbered = Window.partitionBy(*same, _PRIOR).orderBy("_key").rowsBetween(Window.unboundedPreceding, Window.currentRow)
            met = F.min(_PRIOR).over(again := Window.partitionBy(*same, "__at")) != F.max(_PRIOR).over(again)
            marked = united(marked.where(_PAIR), rest.withColumn("__at", F.row_number().over(numbered)).withColumn(_PAIR, met).drop("__at"))
        marked = marked.where((F.col(_PRIOR) == 1) | ~F.col(_PAIR))
        ends = (F.col(_PRIOR) == 1) & ~F.col(_PAIR)
        return marked.withColumns({end: F.when(ends, self._now(values)).otherwise(column(end)), CURRENT: column(CURRENT) & ~ends}).select(*map(column, names))


def _member(name: str) -> Column:
    """A member of what `spark.errors` tells."""
    return F.col(_WHY).getField(name)


def _spread(rows: DataFrame, *names: str) -> DataFrame:
    """Rows with the part that they belong to (`_BUCKET`) and a hash to sort by (`_HASH`), both of some columns."""
    return rows.withColumn(_HASH, F.xxhash64(*names)).withColumn(_BUCKET, F.pmod(F.col(_HASH), F.lit(_BUCKETS)))


def _alike(step: Callable[[str], Column], names: Sequence[str], order: WindowSpec) -> Column:
    """Whether a row has the same values in some columns as the one before it (`F.lag`) or behind it (`F.lead`)."""
    return reduce(and_, (step(name).over(order).eqNullSafe(F.col(name)) for name in names))


def _behind(key: Column, length: Column) -> Column:
    """The bytes of a key behind its first ones."""
    digits = F.hex(key)
    return F.unhex(F.substring(digits, 2 * length + 1, F.length(digits)))
