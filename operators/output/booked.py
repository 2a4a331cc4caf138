"""Outputs whose closed periods stay as they were published. Later differences are booked as rows of the open period.

Rows of three kinds are live. *Published* rows are what the output said of closed periods when they were closed: they are its own rows of before, and
nothing upstream can change them. *Ordinary* rows are the input's rows of open periods. *Booked* rows are the differences: for each input key, and for
each value of all columns that are no figures, what the input says now of closed periods, less all that is published.

So published and booked rows together add up to what the input says, whatever came in which order. A booked row of a period that closes is
published from then on, and the next difference is booked against it too. A difference that becomes nothing leaves no row.

`_lookup` is the key of the input row. `_key` is that key too. Where a published row has it already, what names the period follows; of a booked row, what it is booked
as, the open period, and a hash of the columns that are no figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Final

from changelog.columns import column
from changelog.equality import parts, whole
from changelog.exact.decimals import DecimalSum, limb_columns
from changelog.exact.rounding import with_totals
from changelog.frames import united
from changelog.keys.spark import key_column
from changelog.lazy_imports import F
from changelog.ops import is_positive
from cxl import spark
from cxl.types.types import MOST_DIGITS, Kind, Type
from operators.core.context import OperatorContext
from operators.core.delta import Delta
from operators.core.evaluate import as_new, as_output, error_text, prepare, reject_key
from operators.core.json_columns import member_keys
from operators.core.operator import Keyed
from operators.core.provenance import of_lookup
from operators.core.row_type import GROUP_KEY, RowType, key_parts, key_type, physical_type
from operators.core.run_values import RunValues
from operators.core.settings import NodeSpec
from operators.output.booking import EPOCH, KIND, Booking
from operators.output.operator import Output, Place, sort_bytes
from operators.output.projection import Projection

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

DIFFERENCE, REVERSAL, ENTRY = "difference", "reversal", "entry"
"""How a row is booked: as the difference of figures, as a published row taken back, as a row that was not published."""
OVERFLOW: Final = "figure_overflow"
_CLOSED, _COUNT, _WRONG, _TAKEN = "__closed", "__count", "__wrong", "__taken"
_ORDINARY, _BOOKED = b"\x00", b"\x01"
_MOST_INT: Final = 1 << 63
_HASH_DIGITS: Final = 32


class BookedOutput(Output, Keyed):
    """An output that books changes of closed periods into the open one."""

    ordered_by = "_sorted"
    remembers = True
    keeps_periods = True
    reopened = False
    """Whether closed periods are published again in this run, which leaves nothing booked."""

    def __init__(self, spec: NodeSpec, row: RowType, projection: Projection, booking: Booking, place: Place) -> None:
        super().__init__(spec, row, booking.extended(projection), place, booking.fingerprint())
        self.taken = projection.written
        self.booking = booking
        self.closed = booking.closed
        self.added = tuple(booking.types(projection.data))
        self.output = RowType(self.output.data, self.output.hidden, key=GROUP_KEY).carrying(["_lookup", "_sorted", "_error"])

    @property
    def may_reject(self) -> bool:
        """A difference may have too many digits."""
        return True

    def reads_source(self) -> frozenset[str]:
        """The columns that an output reads, and the variables of the predicate."""
        return super().reads_source() | self.booking.closed.reads_system

    def describe(self) -> Sequence[str]:
        """The description of an output, with the place where it books."""
        into = ", ".join(f"{name} {value}" for name, value in self.booking.into.items())
        return (*super().describe(), f"late changes are booked into {into}: differences of {', '.join(self.booking.figures)}")

    # -- the input's rows

    def lookup(self, frame: DataFrame, index: int, values: RunValues) -> DataFrame:
        """Each row by itself."""
        return frame.withColumn("_lookup", F.col("_key"))

    def origins(self, rows: DataFrame, inputs: Sequence[DataFrame], values: RunValues, reads: frozenset[str]) -> list[DataFrame]:
        """The input's row of the same key."""
        return [of_lookup(rows, self.lookup(as_new(inputs[0]), 0, values))]

    def placed(self, frame: DataFrame, values: RunValues) -> DataFrame | None:
        """The rows with their key."""
        return self.lookup(as_new(frame), 0, values)

    def compute(self, frames: Sequence[DataFrame], values: RunValues) -> DataFrame:
        """The rows as a first publication has them."""
        return self._ordinary(self._shown(frames[0])).select(*map(column, self._names))

    @property
    def _names(self) -> list[str]:
        return ["_key", *self.output.columns()]

    def _shown(self, frame: DataFrame) -> DataFrame:
        """Live rows of the input as they are written, by their key as `_lookup`."""
        rows = self.projected(frame, [F.col("_key").alias("_lookup")])
        return rows.select("_lookup", *map(column, [*self._texts, *self.booking.figures]))

    @property
    def _texts(self) -> list[str]:
        """The columns that are compared and not added up: the written ones that are no figures, and the hidden ones that are written."""
        hidden = [name for name in ("_widened", "_split") if name in self.output.hidden]
        return [*hidden, *(name for name, _, _ in self.taken if name not in self.booking.figures)]

    def _judged(self, rows: DataFrame, values: RunValues) -> DataFrame:
        """Rows with whether they are of a closed period (`_CLOSED`). Where nobody can say, they are."""
        program = self.booking.closed
        assert program.expression is not None  # a predicate
        ready, context = prepare(rows, program.reads_system, self.output, values)
        value, failed = spark.column(program.expression, context)
        meets = F.coalesce(value, F.lit(False))
        return ready.withColumn(_CLOSED, meets if failed is None else meets | failed)

    def _ordinary(self, rows: DataFrame, keys: Column | None = None) -> DataFrame:
        """Shown rows as rows that are not booked."""
        types = self.output.columns()
        nothing = {name: F.lit(None).cast(types[name]) for name in self.added}
        return self._placed(rows.withColumns({"_key": F.col("_lookup") if keys is None else keys, "_error": F.lit(None).cast("string"), **nothing}), _ORDINARY)

    def _placed(self, rows: DataFrame, mark: bytes | Column) -> DataFrame:
        """Rows with the bytes of their place in the file: by the order of the output, then published and ordinary rows before booked ones."""
        last = F.lit(mark) if isinstance(mark, bytes) else mark
        return rows.withColumn("_sorted", F.concat(*self._order_of_written(), last) if self.config.sort_order else last)

    def _order_of_written(self) -> Iterator[Column]:
        shown = {source: name for name, source, _ in reversed(self.taken)}
        for key in self.config.sort_order:
            if key.field in self.undeclared:
                value = member_keys(column("_widened"), key.field)
                yield sort_bytes(key, value, value)
            else:
                name = shown[key.field]
                yield sort_bytes(key, column(name), key_column(key_parts(column(name), self.output.data[name])))

    # -- deltas

    def answer(self, context: OperatorContext) -> Delta:
        """Book the changes of closed periods; other changes go through."""
        delta = context.delta(0)
        if context.first or delta is None:
            return Delta.insertion(self._whole_rows(context, self.compute([context.live_input(0) if delta is None else delta.frame], context.values)))
        net = context.materialized(delta.consolidated()).as_frame()
        lookups = context.materialized(net.select(F.col("_key").alias("_lookup")).distinct())
        prior = self.prior(context, lookups)
        return self._booked_delta(context, prior.as_frame(), net.where(is_positive(F.col("_op"))), "recompute")

    def rebuild(self, context: OperatorContext, cause: str = "logic") -> Delta:
        """Look at all rows. What was published of closed periods stays, unless they are reopened."""
        if context.first:
            return Delta.insertion(self._whole_rows(context, self.compute([context.live_input(0)], context.values)), cause)
        prior = context.materialized(context.live_own())
        if self.reopened:
            return Delta.between(prior, self._whole_rows(context, self.compute([context.live_input(0)], context.values)), cause)
        return self._booked_delta(context, prior.as_frame(), context.live_input(0), cause)

    def _booked_delta(self, context: OperatorContext, prior: DataFrame, frame: DataFrame, cause: str) -> Delta:
        """The delta from prior rows to what the input's rows of the same keys make of them."""
        before = context.rows(self.output.shaped(prior, self._names))
        rows = self._settled(self._known(before.as_frame()), self._shown(frame), context.values)
        return Delta.between(before, self._whole_rows(context, rows.select(*map(column, self._names))), cause)

    def _known(self, prior: DataFrame) -> DataFrame:
        """Prior rows without rejects. Rows that an output without bookings wrote lack their place, and have their own key."""
        rows = prior.where(F.col("_error").isNull())
        return rows.withColumn("_lookup", F.when(F.col("_sorted").isNull(), F.col("_key")).otherwise(F.col("_lookup")))

    def _settled(self, prior: DataFrame, shown: DataFrame, values: RunValues) -> DataFrame:
        """The rows after this run: published ones, ordinary ones, booked ones and rejects."""
        judged = self._judged(prior, values)
        published = judged.where(_CLOSED)
        now = self._judged(shown, values)
        mark = F.when(column(KIND).isNull(), F.lit(_ORDINARY)).otherwise(F.lit(_BOOKED))
        booked, refused = self._bookings(published, now.where(_CLOSED), judged.where(~F.col(_CLOSED) & column(KIND).isNotNull()), values)
        return united(self._placed(published.drop(_CLOSED), mark), self._of_open_periods(now, published), booked, refused)

    def _of_open_periods(self, now: DataFrame, published: DataFrame) -> DataFrame:
        """The rows of open periods. One whose key a published row has, since it came out of a closed period, has the period behind its key."""
        taken = published.select(F.col("_key").alias("_lookup"), F.lit(True).alias(_TAKEN))
        rows = now.where(~F.col(_CLOSED)).join(taken, "_lookup", "left")
        period = self._key_of(dict.fromkeys([*self.booking.into, *sorted(self.booking.closed.reads)]))
        return self._ordinary(rows, F.when(column(_TAKEN).isNull(), F.col("_lookup")).otherwise(F.concat("_lookup", period))).drop(_CLOSED, _TAKEN)

    def _key_of(self, names: Iterator[str] | Mapping[str, None]) -> Column:
        """The bytes of a key of columns, by their exact values."""
        return key_column([part for name in names for part in _exact(column(name), self.output.data[name])])

    def unexplained(self, rows: DataFrame, shown: DataFrame) -> DataFrame:
        """The difference that live rows leave: the rows that a booking of it would have, as `_lookup` and sums.

        Args:
            rows: Live rows of the output, rejects among them.
            shown: The rows of a first publication.
        """
        refused = rows.where(F.col("_error").isNotNull()).select("_lookup")
        left = self._differences(self._known(rows), self._known(shown))
        return left.join(refused, "_lookup", "left_anti")

    # -- bookings

    def _bookings(self, published: DataFrame, now: DataFrame, standing: DataFrame, values: RunValues) -> tuple[DataFrame, DataFrame]:
        """The booked rows, and the rejects: what is said now of closed periods less what is published.

        Args:
            published: Rows that stay.
            now: What the input says of closed periods.
            standing: The booked rows of before that do not stay.
            values: The values of the run.
        """
        left = with_totals(self._differences(published, now), [one for _, one in self._sums])
        wrong = reduce(or_, (self._beyond(name, one) for name, one in self._sums))
        values_of = {name: F.when(wrong, F.lit(None)).otherwise(column(one.value)).cast(physical_type(self.output.data[name])) for name, one in self._sums}
        differences = left.withColumns({_WRONG: wrong, **values_of}).drop(*(made for _, one in self._sums for made in (*one.columns, one.value, f"{one.prefix}_n")))
        refused = self._refused(differences.where(_WRONG).select("_lookup").distinct())
        return self._dated(self._as_rows(differences.where(~F.col(_WRONG))), standing, values), refused

    @property
    def _sums(self) -> list[tuple[str, DecimalSum]]:
        """The exact sum of each figure: a sum of decimals of many digits fits nowhere else on the way."""
        return [(name, DecimalSum(f"__figure{at}", self.output.data[name].scale)) for at, name in enumerate(self.booking.figures)]

    def _differences(self, published: DataFrame, now: DataFrame) -> DataFrame:
        """For each input key and each value of the columns that are no figures: the number of rows, and the figures, that are said now and not published."""
        texts = self._texts
        originals = {name: F.when(column(KIND).isNull(), column(name)).otherwise(column(original)) for name, original in self.booking.originals.items()}
        published = published.withColumns({_COUNT: F.when(column(KIND).isNull() | (column(KIND) == ENTRY), -1).when(column(KIND) == REVERSAL, 1).otherwise(0), **originals})
        sides = [(published, -1), (now.withColumn(_COUNT, F.lit(1)), 1)]
        both = united(*(side.select("_lookup", *map(column, texts), *self._contributions(F.lit(sign).cast("bigint"))) for side, sign in sides))
        split = {f"__part{at}": part for at, part in enumerate(parts(both, texts))}
        added = [_COUNT, *(made for _, one in self._sums for made in (*one.columns, f"{one.prefix}_n"))]
        sums = both.withColumns(split).groupBy("_lookup", *split).agg(*(F.sum(name).alias(name) for name in added))
        carried = [made for _, one in self._sums for made in (*one.carried(), F.col(f"{one.prefix}_n"))]
        found = sums.select("_lookup", _COUNT, *whole(both, texts, list(split)), *carried)
        nothing = reduce(and_, (one.is_zero() for _, one in self._sums), F.col(_COUNT) == 0)
        return found.where(~nothing)

    def _contributions(self, sign: Column) -> Iterator[Column]:
        """The terms of a row in the sums."""
        yield F.col(_COUNT).cast("bigint").alias(_COUNT)
        for name, one in self._sums:
            value = column(name).cast(f"decimal({MOST_DIGITS},{one.scale})")
            yield from one.weighted(limb_columns(value), sign)
            yield F.when(value.isNotNull(), 1).otherwise(0).cast("bigint").alias(f"{one.prefix}_n")

    def _beyond(self, name: str, one: DecimalSum) -> Column:
        """Whether the type of a figure does not hold its difference."""
        value = column(one.value)
        beyond = value.isNull() & (column(f"{one.prefix}_n") > 0)
        if self.output.data[name].kind is Kind.DECIMAL:
            return beyond
        most = F.lit(str(_MOST_INT)).cast(f"decimal({MOST_DIGITS},0)")
        return beyond | F.coalesce((value >= most) | (value < F.lit(str(-_MOST_INT)).cast(f"decimal({MOST_DIGITS},0)")), F.lit(False))

    def _refused(self, lookups: DataFrame) -> DataFrame:
        """The rejects of input keys whose difference has too many digits."""
        message = F.lit("the difference from what is published has too many digits")
        rows = lookups.withColumns({"_key": F.col("_lookup"), "_sorted": F.lit(_BOOKED), "_error": error_text(OVERFLOW, message, f"output:{self.name}")})
        return as_output(rows.withColumn("_key", reject_key()), self._names, self.output)

    def _as_rows(self, sums: DataFrame) -> DataFrame:
        """Differences as rows of the open period."""
        types = self.output.columns()
        kind = F.when(F.col(_COUNT) > 0, ENTRY).when(F.col(_COUNT) < 0, REVERSAL).otherwise(DIFFERENCE)
        order = F.when(F.col(_COUNT) > 0, F.lit(b"\x03")).when(F.col(_COUNT) < 0, F.lit(b"\x01")).otherwise(F.lit(b"\x02"))
        period = key_column([part for name, value in self.booking.into.items() for part in _exact(F.lit(value).cast(types[name]), self.output.data[name])])
        texts = F.unhex(F.substring(F.sha2(key_column([part for name in self._texts for part in _exact(column(name), self._type(name))]), 256), 1, _HASH_DIGITS))
        rows = sums.withColumns({
            "_key": F.concat("_lookup", order, period, texts), KIND: kind, "_error": F.lit(None).cast("string"),
            **{original: column(name) for name, original in self.booking.originals.items()},
        })  # fmt: skip
        return self._placed(rows.withColumns({name: F.lit(value).cast(types[name]) for name, value in self.booking.into.items()}), _BOOKED)

    def _type(self, name: str) -> Type | None:
        """The type of a written column; None for a hidden one."""
        return self.output.data.get(name)

    def _dated(self, rows: DataFrame, standing: DataFrame, values: RunValues) -> DataFrame:
        """Booked rows with the epoch in which they were booked: the present one, unless they stand already."""
        figures = self.booking.figures
        before = standing.select("_key", column(EPOCH).alias("__since"), *(column(name).alias(f"__was{at}") for at, name in enumerate(figures)))
        same = reduce(and_, (column(name).eqNullSafe(F.col(f"__was{at}")) for at, name in enumerate(figures)))
        since = F.when(same & F.col("__since").isNotNull(), F.col("__since")).otherwise(F.lit(values.epoch)).cast("bigint")
        return rows.join(before, "_key", "left").withColumn(EPOCH, since)


def _exact(value: Column, type_: Type | None) -> list[tuple[Column, str]]:
    """A value as parts of a key that are the same exactly where the value prints the same; a hidden column, which has no type, by its bytes."""
    if type_ is None:
        return [(F.hex(value), "string")]
    if type_.kind is Kind.FLOAT:
        return [(value, "float"), (F.when(value == 0.0, value.cast("string")), "string")]
    return [(value, key_type(type_))]
