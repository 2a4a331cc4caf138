"""Aggregates: accumulating where every function can be retracted, else keyed by the group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

from changelog.algebra import insertions
from changelog.columns import column
from changelog.exact.ranges import value_ranges
from changelog.exact.rounding import with_totals
from changelog.frames import any_of, mapped, united
from changelog.keys.encoding import decode_key
from changelog.keys.spark import key_column
from changelog.lazy_imports import F, Window, pa
from changelog.ops import weight
from changelog.rows import Rows, begins, is_null
from changelog.spark_algebra import as_appends
from cxl import Program
from cxl.types.types import STRING, Kind, Schema, Type
from operators.aggregate import best_lists, small_deltas
from operators.aggregate.accumulators import Accumulator, added_once, bests_of, retractable, rounded, within
from operators.aggregate.best_values import RECORD, BestValues, best_values
from operators.aggregate.config import AggregateConfig
from operators.aggregate.first_lists import ListSize, first_sizes, refilled_size
from operators.aggregate.group_functions import first_true, grouped, wrongs
from operators.aggregate.numeric_arguments import numbers_only
from operators.aggregate.terms import ROWS
from operators.core.context import OperatorContext
from operators.core.delta import Delta
from operators.core.evaluate import FINALIZE, Evaluated, as_it_is, as_new, error_start, error_text, evaluate, reject_key, reject_keys
from operators.core.following import outweighs
from operators.core.operator import SHARED, Keyed, compared, shared_number
from operators.core.provenance import of_lookup
from operators.core.row_type import (
    CK,
    KeyShape,
    RowType,
    by_value,
    is_inexact,
    key_parts,
    key_types,
    may_have_many_spellings,
    spelling,
    values_of_parts,
)
from operators.core.run_values import RunValues
from operators.core.settings import NodeSpec

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


FROM_STATES = is_null("_error") | begins("_error", error_start(FINALIZE))
"""Whether a live row of an aggregate was made from accumulators. All others are rejected records."""


WAS = "__was:"
"""The prefix of state columns before a delta."""


class Aggregate(Keyed):
    """Groups by fields. `accumulators` is set when every call can be retracted: then only deltas are read."""

    kind = "aggregate"
    condenses = True

    def __init__(self, spec: NodeSpec, row: RowType, program: Program) -> None:
        config: AggregateConfig = spec.config
        groups = {name: row.data[name] for name in config.group_by}
        data = Schema({**groups, **dict(program.output.items())}.items())
        fingerprint: dict[str, Any] = {"group_by": config.group_by, "cxl": program.normal_text(), "strategy": config.strategy}
        fingerprint |= {"rejects": 2}  # a state whose rejected records may have the keys of groups is made anew
        if config.time_window is None and any(map(best_values, program.calls)) and all(map(retractable, program.calls)):
            fingerprint |= {"best_values": 1}  # a state without them is made anew
        self.many_spellings = any(map(may_have_many_spellings, groups.values()))
        fingerprint |= spelling(groups.values())
        shape = KeyShape("group", spec.name, tuple(chain.from_iterable(map(key_types, groups.values()))))
        super().__init__(spec.name, (row,), RowType(data, ("_lookup", "_error"), key=shape, sorted_by=tuple(config.group_by)), fingerprint)
        self.program = program
        self.groups = groups
        self.deterministic = program.deterministic
        self.wide_sums = False

    def with_hidden(self, inputs: Sequence[RowType], wanted: frozenset[str]) -> Self:
        """Return the aggregate with the correlation keys that its groups cover; a relaxed one adds its own. No other hidden column goes on."""
        made = self.with_attributes(inputs=tuple(inputs))
        riders = {CK + name: self.groups[name] for name in correlation_fields(inputs[0]) if name in self.groups}
        own = {made.synthetic: STRING.or_null} if made.relaxed else {}
        return made.with_attributes(output=replace(self.output, riders=riders | own))

    @property
    def relaxed(self) -> bool:
        """Whether the groups leave out a correlation key that is visible upstream, so that one of its groups may span several rows here."""
        return bool(self.omitted)

    @property
    def omitted(self) -> list[str]:
        """The correlation keys visible upstream that the groups leave out."""
        return [name for name in correlation_fields(self.inputs[0]) if name not in self.groups]

    @property
    def synthetic(self) -> str:
        """The column that leads a relaxed aggregate's row back to its group: the group's key in hexadecimal digits."""
        return f"{CK}aggregate.{self.name}"

    @property
    def reversible(self) -> bool:
        """Whether each call takes a single contribution back, by the documents' table."""
        return all(use.function.name in ("sum", "count", "collect", "any") for use in self.program.calls)

    @property
    def accumulators(self) -> list[Accumulator] | None:
        """One accumulator a call, None where some call needs the rows, as sums do that met values beyond their limbs."""
        found = [retractable(use) for use in self.program.calls]
        return None if self.wide_sums or self.many_spellings or any(one is None for one in found) else [one for one in found if one is not None]

    @property
    def explain_class(self) -> str:  # type: ignore[override]  # decided by the functions
        """`accumulator` or `affected-key`."""
        return "affected-key" if self.accumulators is None else "accumulator"

    @property
    def keeps_state(self) -> bool:
        """Accumulators, where there are some."""
        return self.accumulators is not None

    @property
    def always_has_rows(self) -> bool:
        """A global aggregate has its row even over nothing."""
        return not self.groups

    def reads_source(self) -> frozenset[str]:
        """The provenance of a record that the program reads."""
        return self.program.reads_system

    def describe(self) -> Sequence[str]:
        """Group fields, functions, strategy."""
        calls = ", ".join(dict.fromkeys(use.function.name for use in self.program.calls))
        kept = "exact accumulators, retracted by weight" if not any(map(best_values, self.program.calls)) else "exact accumulators and best values, retracted by weight"
        how = kept if self.accumulators is not None else "rows of the touched groups are read again"
        return (f"group by: {', '.join(self.groups) or '(all rows)'}", f"functions: {calls or 'none'} ({how})")

    def bound(self, changes: int, live: int) -> int | None:
        """With accumulators each changed row touches one group, which is taken back and comes anew; the group of all rows may do so by itself."""
        return super().bound(changes, live) if self.accumulators is None else 2 * changes + 2

    def is_outweighed(self, context: OperatorContext) -> bool:
        """With accumulators where more op rows come than there are live rows; few of them are added up on the driver."""
        if self.accumulators is None:
            return super().is_outweighed(context)
        return not context.limits.are_small(context.changed_rows(0)) and outweighs(context, [0], 1.0)

    def needed(self, frame: DataFrame, index: int) -> DataFrame:
        """Return the fields of groups and calls, and the metadata columns."""
        row = self.inputs[0]
        fields = [name for name in row.data if name in self.groups or name in self.program.reads]
        return frame.select("_epoch", "_key", *map(column, (*row.carried(), *fields)))

    def shared(self, index: int) -> Column | None:
        """The group's fields."""
        return shared_number([(column(name), type_) for name, type_ in self.groups.items()])

    def lookup(self, frame: DataFrame, index: int, values: RunValues) -> DataFrame:
        """The group's key, from its fields."""
        return frame.withColumn("_lookup", self._lookup_key())

    def _lookup_key(self) -> Column:
        return self._key()

    def _key(self) -> Column:
        return key_column(self._group_parts())

    def _group_parts(self) -> list[tuple[Column, str]]:
        return [part for name, type_ in self.groups.items() for part in key_parts(column(name), type_)]

    @property
    def key_values(self) -> Mapping[str, Type]:
        """The values in keys: their names and types, in order."""
        return self.groups

    def values_in(self, key: bytes) -> dict[str, Any]:
        """Return the values in the key of a row by name, as `values_of_parts` returns them."""
        values = values_of_parts(decode_key(key, self.output.key.types or ()), self.key_values.values())
        return dict(zip(self.key_values, values, strict=True))

    def origins(self, rows: DataFrame, inputs: Sequence[DataFrame], values: RunValues, reads: frozenset[str]) -> list[DataFrame]:
        """Return the records of the groups, without filtered and failed ones."""
        return [of_lookup(rows, self.members(inputs[0], values))]

    def placed(self, frame: DataFrame, values: RunValues) -> DataFrame | None:
        """The records that count, with the key of their group."""
        return self.lookup(self._arguments(as_new(frame), values).good, 0, values)

    def members(self, frame: DataFrame, values: RunValues) -> DataFrame:
        """The live input rows that count, with the key of the output row that each counts in as `_lookup`; a row for each of them."""
        return self.lookup(self._arguments(as_appends(frame, "recompute"), values).good, 0, values)

    def compute(self, frames: Sequence[DataFrame], values: RunValues) -> DataFrame:
        """One row a group, and a reject for each record whose arguments fail."""
        before = self._arguments(as_appends(frames[0], "recompute"), values)
        rows = grouped(self._in_one_spelling(before.good), list(self.groups), self.program.calls, wide=bool(self.wide_sums), settle=values.settle)
        return self._with_rejects(self._finished(rows, [*self.groups], values), before.bad)

    def answer(self, context: OperatorContext) -> Delta:
        """By accumulators where all functions have one, else by the rows of the touched groups."""
        accumulators = self.accumulators
        if accumulators is None:
            return super().answer(context)
        delta = context.delta(0)
        frame = delta.frame if delta is not None else as_appends(context.live_input(0), "recompute")
        before = self._arguments(frame, context.values)
        record = [F.col("_key").alias(RECORD)] if any(one.by_key for one in bests_of(accumulators)) else []
        rows = context.to_driver_if_small(before.good.select("_op", self._key().alias("_key"), *record, *map(column, self.groups), *self._arguments_left()))
        if rows.are_here:
            made = self._of_few(context, rows.as_table(), accumulators)
        else:
            made = self._of_many(context, self._change(context, before.good, accumulators, whole=context.first), accumulators)
        if before.bad is None:
            return made
        bad = context.rows(self._failed_records(self.lookup(before.bad, 0, context.values)))
        return Delta(made.rows.union(insertions(bad, "recompute")), signed=False) if context.first else made.union(bad)

    def rebuild(self, context: OperatorContext, cause: str = "logic") -> Delta:
        """Compute all rows and accumulators again, and compare the rows with the prior ones."""
        accumulators = self.accumulators
        if accumulators is None:
            return super().rebuild(context, cause)
        every = as_appends(context.live_input(0), cause)
        bad = self._arguments(every, context.values).bad
        rows = self._of_all(context, every, accumulators)
        return compared(context, rows if bad is None else rows.through(lambda frame: self._with_rejects(frame, bad)), cause)

    def _arguments(self, frame: DataFrame, values: RunValues) -> Evaluated:
        assert self.program.before is not None  # programs of mode aggregate have it
        inexact = {name: type_ for name, type_ in self.groups.items() if is_inexact(type_) and not may_have_many_spellings(type_)}
        numbers = {name: by_value(column(name), type_) for name, type_ in inexact.items()}
        done = numbers_only(evaluate(frame, self.program.before, self.inputs[0], self.name, values), self.program.calls, frame, self.name)
        return replace(done, good=done.good.withColumns(numbers)) if numbers else done

    def _in_one_spelling(self, rows: DataFrame, *beside: str) -> DataFrame:
        """Rows in which equal group values with Decimals are written alike: as the one with the most digits.

        Args:
            rows: Rows with the group fields.
            beside: Further columns that rows of a group have in common.
        """
        if not self.many_spellings:
            return rows
        group = Window.partitionBy(*map(column, beside), *(by_value(column(name), type_) for name, type_ in self.groups.items()))
        several = [name for name, type_ in self.groups.items() if may_have_many_spellings(type_)]
        longest = {name: F.first(column(name)).over(group.orderBy(F.length(column(name)).desc(), column(name).desc())) for name in several}
        return rows.withColumns(longest)

    def _change(self, context: OperatorContext, good: DataFrame, accumulators: Sequence[Accumulator], *, whole: bool) -> DataFrame:
        """The terms of op rows in the states of their groups, with lists of best values, or with `BestValues.changes`.

        Args:
            context: What the operator may look up.
            good: Op rows with the arguments of the calls.
            accumulators: One a call.
            whole: Whether the op rows are all there are. It then pays to see first how far their floats reach.
        """
        reaching = {use.columns[0] for use in self.program.calls if use.function.name in ("sum", "avg") and use.args[0].type.kind is Kind.FLOAT}
        ranges = value_ranges(good, sorted(reaching)) if whole else {}
        sources, known = added_once(accumulators, ranges), [within(one, ranges) for one in accumulators]
        sign, bests = F.lit(1).cast("bigint") if whole else weight(F.col("_op")), bests_of(known)
        parts = [part for one in known for name, part in zip(one.columns, one.contributions(sign), strict=True) if sources[name] == name]
        ready = good.select(*map(column, self.groups), *parts, *self._ranked(bests), sign.alias(ROWS))
        if whole:
            sizes = first_sizes(good, [*self.groups], bests, context.live_rows(0) or 0, self._list_size(context))
            return self._sums(ready, sources, _lists_in(sizes), _lists_of(sizes))
        changes = [made for one in bests for made in one.changed(column(ROWS))]
        return self._sums(ready, sources, changes, [column(name) for one in bests for name in one.changes])

    def _ranked(self, bests: Sequence[BestValues]) -> list[Column]:
        """The columns that best values are found in."""
        values = [column(name) for name in dict.fromkeys(one.value for one in bests) if name not in self.groups]
        return [*values, F.col("_key").alias(RECORD)] if any(one.by_key for one in bests) else values

    def _list_size(self, context: OperatorContext) -> int:
        """How many best values of a group are found where the whole input is read: the best one only where sorting takes too much memory."""
        rows = context.live_rows(0)
        return context.limits.best_values if rows is not None and rows <= context.limits.sorted_rows else 1

    def _sums(self, frame: DataFrame, sources: Mapping[str, str | None], more: Sequence[Column] = (), made_of_it: Sequence[Column] = ()) -> DataFrame:
        """States added up by group: `_key`, group fields, state columns, `__rows`, further columns.

        Args:
            frame: Rows with group fields and the columns to add up.
            sources: See `added_once`.
            more: Further aggregates.
            made_of_it: Further columns, made of these.
        """
        names = [*(name for name, source in sources.items() if name == source), ROWS]
        sums = [F.sum(column(name)).alias(name) for name in names]
        zero = F.lit(0).cast("bigint")
        added = frame.groupBy(*map(column, self.groups)).agg(*sums, *more) if self.groups else frame.agg(*sums, *more)
        totals = {name: column(name) if self.groups else F.coalesce(column(name), zero) for name in names}  # over nothing, too
        states = [(zero if source is None else totals[source]).alias(name) for name, source in (*sources.items(), (ROWS, ROWS))]
        return added.select(self._key().alias("_key"), *map(column, self.groups), *states, *made_of_it)

    def _carried(self, state: DataFrame, accumulators: Sequence[Accumulator]) -> DataFrame:
        """States in the one form in which they are stored."""
        carried = [part for one in accumulators for part in one.carried()]
        lists = [column(name) for one in bests_of(accumulators) for name in one.lists]
        return state.select("_key", *map(column, self.groups), *carried, column(ROWS), *lists)

    def _of_many(self, context: OperatorContext, change: DataFrame, accumulators: Sequence[Accumulator]) -> Delta:
        """The delta of the groups of a change: sums of op rows as `_sums` gives them."""
        if context.first:
            state = context.keep_state(context.rows(self._carried(change, accumulators)), bounds=True)
            return Delta.insertion(context.rows(self._accumulated(state.as_frame(), accumulators, context.values)))
        state = context.keep_state(self._merged(context, context.materialized(change), accumulators), bounds=True)
        prior = context.live_own(state.select(["_key"]).renamed({"_key": "_lookup"})).where(FROM_STATES)
        return Delta.between(prior, context.rows(self._accumulated(state.as_frame(), accumulators, context.values)))

    def _of_all(self, context: OperatorContext, every: DataFrame, accumulators: Sequence[Accumulator]) -> Rows:
        """The rows of all groups. The states are made anew from all live rows of the input."""
        change = self._change(context, self._arguments(every, context.values).good, accumulators, whole=True)
        state = context.keep_state(context.rows(self._carried(change, accumulators)), anew=True, bounds=True)
        return context.rows(self._accumulated(state.as_frame(), accumulators, context.values))

    def _of_few(self, context: OperatorContext, op_rows: pa.Table, accumulators: Sequence[Accumulator]) -> Delta:
        """The same for op rows on the driver: states are added up and prior rows taken back there."""
        change, bests = small_deltas.change(op_rows, list(self.groups), accumulators), bests_of(accumulators)
        keys = context.rows(change.select(["_key"]))
        known = None if context.first else context.own_state(keys)
        before = None if known is None else known.as_table()
        states = best_lists.followed(small_deltas.added(change, before, accumulators), before, op_rows, bests, context.limits)
        empty = states.filter(pa.array(best_lists.run_out(states, bests)))
        if empty.num_rows:
            states = best_lists.refilled(states, context.rows(self._read_lists(context, context.rows(empty), bests)).as_table(), bests, context.limits)
        context.keep_state(context.rows(states), bounds=True)
        shown = small_deltas.totalled(best_lists.first_ones(small_deltas.with_rows(states) if self.groups else states, bests), accumulators)
        rows = context.rows(self._results(context.rows(shown).as_frame(), accumulators, replace(context.values, settle=as_it_is)))
        if context.first:
            return Delta.insertion(rows)
        own = change.column("_key")
        wanted = [*own.chunks, *(reject_keys(own).chunks if context.may_have_rejects else ())]
        prior = context.live_own(context.rows(pa.table({"_key": pa.chunked_array(wanted, pa.binary())})), "_key")
        return Delta.between(prior.on_driver().where(FROM_STATES), rows)

    def _merged(self, context: OperatorContext, change: Rows, accumulators: Sequence[Accumulator]) -> Rows:
        """The states of the affected groups after the delta."""
        before, bests = context.own_state(change.select(["_key"])), bests_of(accumulators)
        names = [name for one in accumulators for name in one.columns]
        if bests:
            added = self._with_lists(context, change.as_frame(), before, names, bests)
        elif before is None:
            added = change.as_frame()
        else:
            added = self._sums(change.union(before.select(change.columns)).as_frame(), dict(zip(names, names, strict=True)))
        return context.rows(self._carried(added, accumulators))

    def _with_lists(self, context: OperatorContext, change: DataFrame, before: Rows | None, names: Sequence[str], bests: Sequence[BestValues]) -> DataFrame:
        """The same with lists of best values. Only after retractions may a list have run out. It is read anew."""
        from pyspark.sql.types import StructType

        sums, lists = [*names, ROWS], [name for one in bests for name in one.lists]
        joined = self._beside_lists(change, before, sums, bests)
        kept = ["_key", *self.groups, *sums, *lists]
        types = {field.name: field for field in joined.schema}
        merged = mapped(joined, best_lists.merging(bests, context.limits, kept), StructType([types[name] for name in kept]))
        delta = context.delta(0)
        if delta is None or not delta.signed:
            return merged
        settled = context.materialized(merged)
        empty = context.materialized(settled.as_frame().where(any_of([one.has_run_out() for one in bests])))
        return settled.as_frame() if empty.are_empty() else self._refilled(settled.as_frame(), self._read_lists(context, empty, bests), lists)

    def _beside_lists(self, change: DataFrame, before: Rows | None, sums: Sequence[str], bests: Sequence[BestValues]) -> DataFrame:
        """The sums of the affected groups after the delta, with their lists before it and the changes of these."""
        if before is None:
            beside = [F.lit(None).cast(kind).alias(name) for one in bests for name, kind in zip(one.lists, one.list_types, strict=True)]
            return change.select("*", *beside)
        lists = [column(name) for one in bests for name in one.lists]
        was = before.as_frame().select(F.col("_key").alias("__known"), *(column(name).alias(f"{WAS}{name}") for name in sums), *lists)
        totals = [(column(name) + F.coalesce(column(f"{WAS}{name}"), F.lit(0).cast("bigint"))).alias(name) for name in sums]
        changes = [column(name) for one in bests for name in one.changes]
        met = change.join(was, F.col("_key") == F.col("__known"), "left")
        return met.select("_key", *map(column, self.groups), *totals, *lists, *changes)

    def _refilled(self, states: DataFrame, read: DataFrame, lists: Sequence[str]) -> DataFrame:
        """States with lists that were read anew in the place of theirs."""
        new = read.select(F.col("_key").alias("__known"), *(column(name).alias(f"{WAS}{name}") for name in lists))
        was = F.col("__known").isNotNull()
        chosen = [F.when(was, column(f"{WAS}{name}")).otherwise(column(name)).alias(name) if name in lists else column(name) for name in states.columns]
        return states.join(new, F.col("_key") == F.col("__known"), "left").select(*chosen)

    def _read_lists(self, context: OperatorContext, states: Rows, bests: Sequence[BestValues]) -> DataFrame:
        """The lists of best values of some groups, from one pass over the live rows of the input: `_key` and the lists."""
        groups = self.hashed(states.select(["_key", *self.groups]).as_frame().withColumnRenamed("_key", "_lookup"), 0)
        live = self.read_once(context, 0, context.materialized(groups.select("_lookup", SHARED))).drop("_lookup")
        good = self._arguments(as_appends(live, "recompute"), context.values).good
        sizes = [ListSize(one, refilled_size(states, self._list_size(context), context.limits)) for one in bests]
        ready = good.select(*map(column, self.groups), *self._ranked(bests), F.lit(1).cast("bigint").alias(ROWS))
        return self._sums(ready, {}, _lists_in(sizes), _lists_of(sizes)).drop(ROWS, *self.groups)

    def _accumulated(self, state: DataFrame, accumulators: Sequence[Accumulator], values: RunValues) -> DataFrame:
        """The output rows of states: groups that have rows."""
        alive = state.where(column(ROWS) > 0) if self.groups else state
        if bests := bests_of(accumulators):
            lists = {name for one in bests for name in one.lists}
            alive = alive.select(*(column(name) for name in alive.columns if name not in lists), *(one.first_one() for one in bests))
        return self._results(with_totals(alive, rounded(accumulators)), accumulators, values)

    def _results(self, totals: DataFrame, accumulators: Sequence[Accumulator], values: RunValues) -> DataFrame:
        """The output rows of states with their totals."""
        results = [one.result().alias(use.column) for one, use in zip(accumulators, self.program.calls, strict=True)]
        wrong = first_true(wrongs(accumulators))
        return self._finished(values.settle(totals.select(*map(column, self.groups), *results, wrong.alias("__wrong"))), [*self.groups], values)

    def _finished(self, groups: DataFrame, fields: Sequence[str], values: RunValues) -> DataFrame:
        """Rows of the output from group fields (`fields`), `__agg_<i>` and `__wrong` (the detail of what cannot be finalized, or null)."""
        envelope = [F.lit(0).cast("tinyint").alias("_op"), self._key().alias("_key"), F.lit("recompute").alias("_cause")]
        results = [*fields, *(use.column for use in self.program.calls), "__wrong"]
        names = ["_op", "_key", "_cause", "_lookup", *self.output.riders, *results]
        keyed = groups.select(*envelope, self._lookup_key().alias("_lookup"), *self._riding(), *map(column, results))
        assert self.program.after is not None  # programs of mode aggregate have it
        wrong = F.when(column("__wrong").isNotNull(), error_text(FINALIZE, column("__wrong"), self.name))
        done = evaluate(keyed, self.program.after, self.output, self.name, values, category=FINALIZE, names=names, inline=True, refused=wrong)
        columns = done.made([*self.output.riders, *self.output.data])
        rows = self.output.shaped(done.good.withColumns(columns), ["_key", "_lookup", "_error", *self.output.riders, *self.output.data])
        return rows if done.bad is None else united(rows, self._rejected(done.bad))

    def _riding(self) -> list[Column]:
        """The correlation keys of the output."""
        return [
            F.lower(F.hex(self._key())).alias(name) if name == self.synthetic else column(name.removeprefix(CK)).alias(name) for name in self.output.riders
        ]

    def _rejected(self, bad: DataFrame) -> DataFrame:
        """Rejects in the shape of the output: data columns are null."""
        empty = [F.lit(None).cast(kind).alias(name) for name, kind in self.output.columns().items() if name not in ("_lookup", "_error")]
        return bad.select("_op", "_key", "_cause", "_lookup", "_error", *empty)

    def _failed_records(self, bad: DataFrame) -> DataFrame:
        """The same for records, whose keys close with one byte more: a group that fails may have the key of a record."""
        return self._rejected(bad.withColumn("_key", reject_key()))

    def _arguments_left(self) -> list[Column]:
        """The columns that the calls add up."""
        return [column(name) for name in dict.fromkeys(name for use in self.program.calls for name in use.columns) if name not in self.groups]

    def _with_rejects(self, rows: DataFrame, bad: DataFrame | None) -> DataFrame:
        if bad is None:
            return rows
        found = self._failed_records(self.lookup(bad, 0, RunValues.none()))
        return united(rows, found.select(*map(column, rows.columns)))


def _lists_in(sizes: Sequence[ListSize]) -> list[Column]:
    """The aggregates that lists are made of."""
    return [made for one in sizes for made in one.aggregates()]


def _lists_of(sizes: Sequence[ListSize]) -> list[Column]:
    """The lists, from these aggregates."""
    return [made for one in sizes for made in one.listed()]


def correlation_fields(row: RowType) -> list[str]:
    """Return the correlation keys of sources that are visible in rows; keys made by aggregates are left out."""
    return [name for name in row.riding(CK) if not name.startswith("aggregate.")]
