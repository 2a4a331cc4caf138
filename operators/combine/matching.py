"""The matches of a combine: one join for each step, with misses and failures kept apart.

A frame of matches has the driver's `_key` and hidden columns, the fields of the inputs as `qualifier.name`, and `ID`, the key of the output row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Protocol

from changelog.columns import column
from changelog.frames import united
from changelog.keys.spark import key_column
from changelog.lazy_imports import F, Window
from cxl import Program, spark
from cxl.typed import tree
from cxl.types.types import Kind, Type
from operators.combine.join_plan import Chain, Part, Step
from operators.combine.range_join import in_buckets
from operators.core.decimal_columns import at_scale
from operators.core.evaluate import WRONG, Narrow, as_it_is, error_text, explained, first_case
from operators.core.json_columns import maps_text
from operators.core.operator import among

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


ID, FROM, RANK, ERROR = "__id", "__from", "__rank", "__error"
"""Working columns: key of the output row, key of the build row, place among a driver's matches, why a row is rejected."""
ENDED = "__ended"
"""Working column: whether a driver's turn ends by a failure here."""
LEFT, RIGHT = "__left", "__right"
"""Beginnings of the names of the join keys of either side; the first key is null where a row can match nothing."""
MISS = b"\xff"
"""Part of the key of an `all` row where an input has no match."""
MISSING = "combine_missing_match"
FAILED = "combine_output_row"
COLLECT_LIMIT = 10_000
"""Matches that `collect` returns for a driver, at most; the others are left out."""


class Live(Protocol):
    """Returns the live rows of an input by its number, filtered by `narrow` (`operators.core.context.OperatorContext.live_input`)."""

    def __call__(self, index: int, narrow: Narrow = as_it_is) -> DataFrame:
        """The live rows of an input."""


@dataclass(frozen=True, slots=True)
class Side:
    """An input: its number, its qualifier, and the columns that the combine reads of it (name to type); `extras` are metadata columns."""

    number: int
    qualifier: str
    fields: Mapping[str, Type]
    extras: Mapping[str, Type] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Its columns in a frame of matches."""
        return [self.named(name) for name in (*self.fields, *self.extras)]

    def named(self, name: str) -> str:
        """The column of a field in a frame of matches."""
        return f"{self.qualifier}.{name}"

    def qualified(self) -> list[Column]:
        """The columns under their names in a frame of matches."""
        return [column(name).alias(self.named(name)) for name in (*self.fields, *self.extras)]

    def lookup(self) -> Column:
        """The bytes under which rows that come of this input's record are looked up."""
        return F.concat(F.lit(bytes([self.number])), F.col("_key"))


@dataclass(frozen=True, slots=True)
class Predicate:
    """The `where` of a combine, and how its matches are used."""

    name: str
    program: Program
    chain: Chain
    sides: Mapping[str, Side]
    match: str
    on_miss: str
    partitioned: bool = False

    @property
    def open(self) -> frozenset[str]:
        """Builds whose first row is known only after the last step."""
        return self.chain.open(self.match, self.on_miss)


@dataclass(slots=True)
class Matching:
    """One computation of matches. `rejected` gathers frames of `_lookup` and `_error`.

    `narrow`: the driver's rows are few, so builds are cut to the rows that can match; `settle` computes a frame of few rows once.
    """

    predicate: Predicate
    context: spark.Context
    narrow: bool = False
    few: bool = False
    """Whether the driver has few rows, so that a query that saves work costs more than the work."""
    settle: Callable[[DataFrame], DataFrame] = as_it_is
    rejected: list[DataFrame] = field(default_factory=list)
    traced: bool = False
    """Whether the keys of the build rows are kept: in columns `from_column(number)`, under `collect` in `pairs` (`ID`, `FROM`) by number."""
    pairs: dict[int, DataFrame] = field(default_factory=dict)
    failed: dict[int, DataFrame] = field(default_factory=dict)
    """By input number, the keys of the build rows (`FROM`) with which a condition failed; empty where keys are not stored."""
    failures: list[DataFrame] = field(default_factory=list)
    """Where some builds are open: what would reject a driver if its turn came so far: `_key`, `ID`, `_lookup`, `_error`."""

    def run(self, rows: DataFrame, builds: Live) -> DataFrame:
        """Join every build to the driver's rows, which have `_key`, hidden columns and the driver's fields by qualifier.

        Rows that are rejected without being evaluated say why in `ERROR`.
        """
        rows = rows.withColumns({ID: F.col("_key"), ERROR: F.lit(None).cast("string")})
        for step in self.predicate.chain.steps:
            rows = self._step(rows, builds, step)
        return self._closed(rows) if self.predicate.open else rows

    @property
    def _driver(self) -> Side:
        return self.predicate.sides[self.predicate.chain.driver]

    def _step(self, rows: DataFrame, builds: Live, step: Step) -> DataFrame:
        side = self.predicate.sides[step.build]
        left = self._keyed(rows, step.left, LEFT, self._driver)
        names = key_names(step.keys, RIGHT)
        chosen: Narrow = as_it_is
        if self.narrow and step.keys:
            left = self.settle(left)
            wanted = left.select(*(F.col(one).alias(name) for one, name in zip(key_names(step.keys, LEFT), names, strict=True))).distinct()
            chosen = among(wanted, *names)
        right = self._right(builds, step, side, chosen)
        if self.predicate.partitioned and step.keys and not step.pairs:
            right = right.hint("shuffle_hash")
        tests = [spark.column(expr, self.context) for expr in step.pairs]
        if any(failed is not None for _, failed in tests):
            joined = self._checked(left, right, step, tests)
        else:
            joined = self._joined(left, right, step, [value for value, _ in tests])
        if self.traced:
            joined = joined.withColumn(from_column(side.number), F.col(FROM))
        return self._missed(joined, step).drop(*key_names(step.keys, LEFT), *names, FROM)

    def _right(self, builds: Live, step: Step, side: Side, chosen: Narrow) -> DataFrame:
        """The rows of a build that can match and that are chosen by their join keys: `FROM`, its fields by qualifier, the keys."""

        def keyed(rows: DataFrame) -> DataFrame:
            return self._keyed(rows, step.right, RIGHT, side).where(F.col(f"{RIGHT}0").isNotNull())

        if any(spark.column(part.expr, self.context)[1] is not None for part in step.right):  # the live rows alone may be rejected
            found = chosen(keyed(builds(side.number).select("_key", *side.qualified())))
        else:
            found = builds(side.number, lambda rows: chosen(keyed(rows.select("_epoch", "_key", *side.qualified()))))
        return found.select(F.col("_key").alias(FROM), *map(column, side.names), *key_names(step.keys, RIGHT))

    def _keyed(self, frame: DataFrame, parts: Sequence[Part], name: str, side: Side) -> DataFrame:
        """The frame with its join keys; rows on which a part fails are rejected."""
        tests = [spark.column(part.expr, self.context) for part in parts]
        guards = [F.coalesce(value, F.lit(False)) for part, (value, _) in zip(parts, tests, strict=True) if not part.is_key]
        keys = [(value, part) for part, (value, _) in zip(parts, tests, strict=True) if part.is_key]
        if any(failed is not None for _, failed in tests):
            marked = frame.withColumn(WRONG, _first_failure(parts, tests))
            self._reject(marked.where(F.col(WRONG).isNotNull()), [part.expr for part in parts], side)
            frame = marked.where(F.col(WRONG).isNull()).drop(WRONG)
        return frame.withColumns(dict(zip(key_names(len(keys), name), join_keys(keys, guards), strict=True)))

    def _reject(self, bad: DataFrame, expressions: Sequence[tree.Expr], side: Side) -> None:
        """Reject the records of an input on which the expression with number `WRONG` failed."""
        programs = {number: replace(self.predicate.program, expression=expr) for number, expr in enumerate(expressions)}
        explained_rows, _, detail = explained(bad, programs, self.context)
        columns = [side.lookup().alias("_lookup"), error_text(FAILED, detail, self.predicate.name).alias("_error")]
        if self.predicate.open and side is self._driver:
            self.failures.append(explained_rows.select("_key", ID, *columns))
        else:
            self.rejected.append(explained_rows.select(*columns))

    def _joined(self, left: DataFrame, right: DataFrame, step: Step, conditions: Sequence[Column]) -> DataFrame:
        """Each left row with its matches, where no condition can fail."""
        if self.predicate.match == "collect":
            return self._collected(left, self._met(left, right, step, conditions, "inner"), step)
        first, every = self._takes_first(step), not step.keys or bool(conditions)
        alone = first and bool(step.keys) and not (self.narrow or self.few) and _are_unique(right, key_names(step.keys, RIGHT))
        if first and not every and not alone:
            right = _first_of(right, key_names(step.keys, RIGHT))
        joined = self._met(left, right, step, conditions, "left")
        return _first_of(joined, [ID]) if first and every and not alone else self._named(joined, step)

    def _takes_first(self, step: Step) -> bool:
        """Return whether the first match of a step counts."""
        return self.predicate.match == "first" and step.build not in self.predicate.open

    def _met(self, left: DataFrame, right: DataFrame, step: Step, conditions: Sequence[Column], how: str) -> DataFrame:
        """The join of a step: by its equalities, else by buckets where ranges bound both sides, else each with each."""
        holds = _joins(step, conditions)
        if step.band is None:
            return left.join(right, holds, how)
        return in_buckets(left, right, step.band, lambda expr: spark.column(expr, self.context)[0], holds=holds, how=how, key=ID)

    def _checked(self, left: DataFrame, right: DataFrame, step: Step, tests: Sequence[tuple[Column, Column | None]]) -> DataFrame:
        """Each left row with its matches, where conditions over pairs can fail: then the driver's record is rejected.

        `first` looks at the pairs of a driver up to the first match, `all` and `collect` at every one.
        """
        holds = reduce(lambda one, other: one & other, [F.coalesce(value, F.lit(False)) for value, _ in tests])
        marks = {WRONG: _first_failure([Part(expr, False) for expr in step.pairs], tests), "__holds": holds}
        pairs = left.join(right, _joins(step, []), "inner").withColumns(marks)
        pairs = pairs.where(F.col(WRONG).isNotNull() | F.col("__holds"))
        if self._takes_first(step):
            pairs = _first_of(pairs, [ID])
        bad = pairs.where(F.col(WRONG).isNotNull())
        if self.traced:
            self.failed[self.predicate.sides[step.build].number] = bad.select(FROM)
        good = pairs.where(F.col(WRONG).isNull())
        if self.predicate.open:
            self._reject(self._named(bad, step), step.pairs, self._driver)
            kept = left
        else:
            self._reject(_first_of(bad, ["_key"], ID), step.pairs, self._driver)
            kept = left.join(bad.select("_key").distinct(), "_key", "left_anti")
        if self.predicate.match == "collect":
            return self._collected(kept, good, step)
        return self._named(kept.join(good.select(ID, FROM, *map(column, self.predicate.sides[step.build].names)), ID, "left"), step)

    def _closed(self, rows: DataFrame) -> DataFrame:
        """Of each driver the first row for which the whole predicate holds, else the first that misses; a failure before it rejects the driver."""
        misses = F.col(ERROR).isNotNull()
        if not self.failures:
            return _first_of(rows, ["_key"], misses, ID).withColumn(ID, F.col("_key"))
        failures = united(*self.failures)
        ends = failures.select("_key", ID, F.lit(False).alias(ERROR), F.lit(True).alias(ENDED))
        turns = united(rows.select("_key", ID, misses.alias(ERROR), F.lit(False).alias(ENDED)), ends)
        last = _first_of(turns, ["_key"], ERROR, ID).select(ID, ENDED)
        self.rejected.append(failures.join(last.where(ENDED), ID, "left_semi").select("_lookup", "_error"))
        return rows.join(last.where(~F.col(ENDED)), ID, "left_semi").withColumn(ID, F.col("_key"))

    def _named(self, joined: DataFrame, step: Step) -> DataFrame:
        """The rows under the keys of their output rows: under `all`, and as long as a build is open, the build row's key is added."""
        if self.predicate.match != "all" and step.build not in self.predicate.open:
            return joined
        return joined.withColumn(ID, F.concat(F.col(ID), F.coalesce(F.col(FROM), F.lit(MISS))))

    def _collected(self, left: DataFrame, pairs: DataFrame, step: Step) -> DataFrame:
        """Each left row with its matches as an array of maps under the build's qualifier, in build order: as many as the limit lets."""
        side = self.predicate.sides[step.build]
        if self.traced:
            self.pairs[side.number] = pairs.select(ID, FROM)
        members = [column(side.named(name)).alias(f"m{index}") for index, name in enumerate(side.fields)]
        extras = [column(side.named(name)).alias(f"x{index}") for index, name in enumerate(side.extras)]
        rows = F.sort_array(F.collect_list(F.struct(F.col(FROM), *members, *extras)))
        grouped = pairs.groupBy(ID).agg(rows.alias("__rows"))
        # A key that hangs on the array too: Sail fails where it takes a filter by a key of bytes, that a join finds while it runs, to below the grouping.
        joined = left.join(grouped.withColumn(ID, F.when(F.size("__rows") > 0, F.col(ID))), ID, "left")
        first = F.element_at("__rows", 1)
        lifted = {side.named(name): first.getField(f"x{index}") for index, name in enumerate(side.extras)}
        marked = joined.withColumns({FROM: first.getField(FROM), **lifted})
        text = F.coalesce(maps_text(F.slice("__rows", 1, COLLECT_LIMIT), side.fields), F.lit("[]"))
        return marked.withColumn(side.qualifier, text).drop("__rows")

    def _missed(self, joined: DataFrame, step: Step) -> DataFrame:
        """The rows with `on_miss` applied to those without match."""
        if self.predicate.on_miss == "skip":
            return joined.where(F.col(FROM).isNotNull() | F.col(ERROR).isNotNull())
        if self.predicate.on_miss == "null_fields":
            return joined
        detail = F.lit(f"on_miss: error: a record of '{self._driver.qualifier}' has no match in '{step.build}'")
        error = F.when(F.col(FROM).isNull(), error_text(MISSING, detail, self.predicate.name))
        return joined.withColumn(ERROR, F.coalesce(ERROR, error))


def from_column(number: int) -> str:
    """The column of the keys of a build's rows, where they are kept."""
    return f"{FROM}_{number}"


def key_names(count: int, side: str) -> list[str]:
    """The columns of the join keys of one side; there is one also where no equality is."""
    return [f"{side}{index}" for index in range(max(count, 1))]


def join_keys(keys: Sequence[tuple[Column, Part]], guards: Sequence[Column] = ()) -> list[Column]:
    """Values that engines compare as CXL's `==` does; the first is null where one is null or NaN, or a guard does not hold."""
    present = [value.isNotNull() & ~F.isnan(value) if part.expr.type.kind is Kind.FLOAT else value.isNotNull() for value, part in keys]
    values = [_compared(value, part) for value, part in keys] or [F.lit(0)]
    conditions = [*guards, *present]
    return [F.when(reduce(lambda one, other: one & other, conditions), values[0]), *values[1:]] if conditions else values


def _compared(value: Column, part: Part) -> Column:
    """A value as engines compare it: floats without the sign of zero, Decimals of several scales and Ints by the bytes of their values."""
    if part.by_value:
        return key_column([(at_scale(value, part.expr.type, part.expr.type.scale), "decimal")])
    return value + F.lit(0.0) if part.expr.type.kind is Kind.FLOAT else value


def _joins(step: Step, conditions: Sequence[Column]) -> Column:
    """The condition of a step's join: keys are equal where there are any, and what else must hold of a pair."""
    pairs = [(F.col(one), F.col(other)) for one, other in zip(key_names(step.keys, LEFT), key_names(step.keys, RIGHT), strict=True)]
    same = [one == other if step.keys else one.isNotNull() & other.isNotNull() for one, other in pairs]
    return reduce(lambda one, other: one & other, [*same, *conditions])


def _first_failure(parts: Sequence[Part], tests: Sequence[tuple[Column, Column | None]]) -> Column:
    """The number of the first part that fails and is looked at: no condition before it is false."""
    cases: list[tuple[Column, Column]] = []
    for number, (part, (value, failed)) in enumerate(zip(parts, tests, strict=True)):
        cases += [] if failed is None else [(failed, F.lit(number))]
        cases += [] if part.is_key else [(~F.coalesce(value, F.lit(True)), F.lit(None).cast("int"))]
    return first_case(cases, F.lit(None).cast("int"))


def _are_unique(rows: DataFrame, names: Sequence[str]) -> bool:
    """Return whether no two rows have the same keys. Then no driver has several matches, among which the first one were to be found: that takes far longer."""
    return bool(rows.groupBy(*names).agg(F.count(F.lit(1)).alias("__rows")).where(F.col("__rows") > 1).isEmpty())


def _first_of(frame: DataFrame, by: Sequence[str], *order: str | Column) -> DataFrame:
    """The first row for each value of some columns: in build order, or in that of others."""
    rank = F.row_number().over(Window.partitionBy(*by).orderBy(*(order or (FROM,))).rowsBetween(Window.unboundedPreceding, Window.currentRow))
    return frame.withColumn(RANK, rank).where(F.col(RANK) == 1).drop(RANK)
