"""Analytic windows: `$window` functions over the rows of a partition.

Rows keep their key. The partition key is the lookup key: a change recomputes the affected partitions. Where these are large, only the rows that a change
can reach are compared with the prior ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from changelog.columns import column
from changelog.frames import chosen, of_keys, united
from changelog.keys.spark import key_column
from changelog.lazy_imports import F
from changelog.ops import is_negative, is_positive
from changelog.rows import Rows
from changelog.spark_algebra import NET, uncancelled
from cxl import Program
from cxl.typed.program import WindowLayer
from cxl.types.types import Kind, Type
from operators.aggregate.numeric_arguments import numbers_only
from operators.core.binding import Binding
from operators.core.context import OperatorContext
from operators.core.decimal_columns import at_scale
from operators.core.delta import Delta
from operators.core.evaluate import FINALIZE, Evaluated, as_new, as_output, error_text, evaluate, reject_key, rejects
from operators.core.following import Outgrown, may_choose, require_few, require_share
from operators.core.operator import Keyed, shared_number
from operators.core.provenance import ASKER, by_key, of_lookup
from operators.core.row_type import RowType, is_hashed, is_inexact, key_parts, spelling
from operators.core.run_values import RunValues
from operators.core.settings import NodeSpec
from operators.transform.config import AnalyticWindow, TransformConfig
from operators.transform.distinct import first_of_each
from operators.transform.row_logic import RECORD, RowLogic
from operators.transform.window.changed_rows import GROUP, ChangedRows
from operators.transform.window.columns import POSITIONAL, WRONG, is_listed, may_fail, offset, over_nothing, reach, windowed
from operators.transform.window.frames import PART, Frames, Ordering

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


_NOW, _OWN = "__now", "__own"
"""Columns: whether a row shows its record after the run, not before it; and 1 for a record that came, -1 for one that went, 0 where a function has no value after the run, else null."""


class AnalyticTransform(Keyed):
    """A transform with `$window` calls, over its own input or (two inputs) over the rows of another node."""

    kind = "transform"

    def __init__(self, spec: NodeSpec, inputs: Sequence[RowType], logic: RowLogic, partition: Sequence[Sequence[str]], frames: Frames) -> None:
        window = logic.config.analytic_window
        fingerprint = logic.fingerprint() | {"window": window.model_dump(mode="json") if window else None}
        fingerprint |= spelling(row.data[name] for row, names in zip(inputs, partition, strict=True) for name in names)
        super().__init__(spec.name, inputs, logic.output.carrying(["_lookup"]), fingerprint)
        self.logic = logic
        self.partition = partition
        self.frames = frames
        self.deterministic = logic.deterministic
        self.wide_sums = False
        if logic.program.distinct:
            logic.settle = lambda applied, values: first_of_each(applied, logic.program.distinct, in_tasks=values.in_tasks)

    def with_hidden(self, inputs: Sequence[RowType], wanted: frozenset[str]) -> Self:
        """Return the transform with the hidden columns of the records themselves, not of the window's node."""
        return super().with_hidden(inputs[:1], wanted).with_attributes(inputs=tuple(inputs))

    def reads_source(self) -> frozenset[str]:
        """The provenance of a record that the program reads."""
        return self.logic.reads()

    def describe(self) -> Sequence[str]:
        """Emitted fields, checks, partition, order, functions."""
        order = ", ".join(f"{one.field} {'desc' if one.descending else 'asc'}" for one in self.frames.order) or "source order"
        calls = ", ".join(dict.fromkeys(use.function.name for use in self.logic.program.windows))
        return (*self.logic.describe(), f"partition by: {', '.join(self.partition[-1]) or '(all rows)'}, in {order}", f"window functions: {calls}")

    def lookup(self, frame: DataFrame, index: int, values: RunValues) -> DataFrame:
        """The partition of each row; with `distinct` behind the window, which looks at all of them, one for all rows."""
        return frame.withColumn("_lookup", F.lit(b"") if self.logic.program.distinct else self._part(index))

    def shared(self, index: int) -> Column | None:
        """The partition's fields, without fields that are inexact on either side."""
        inexact = {at for side in self._sides(index) for at, (_, type_) in enumerate(self._typed(side)) if not is_hashed(type_)}
        whole = bool(self.logic.program.distinct)  # one key for all rows
        return None if whole else shared_number([(column(name), type_) for at, (name, type_) in enumerate(self._typed(index)) if at not in inexact])

    def _part(self, index: int) -> Column:
        """Bytes of the partition fields; ints are floats, or Decimals, where the other side has these."""
        columns: list[tuple[Column, str]] = []
        for here, *others in zip(*(self._typed(at) for at in self._sides(index)), strict=True):
            name, type_ = here
            kinds = {other.kind for _, other in others} if type_.kind is Kind.INT else set()
            if Kind.FLOAT in kinds:
                columns.append((column(name).cast("double"), "float"))
            elif Kind.DECIMAL in kinds:
                columns.append((at_scale(column(name), type_, 0), "decimal"))
            else:
                columns += key_parts(column(name), type_)
        return key_column(columns)

    def _sides(self, index: int) -> list[int]:
        return [index, *(at for at in range(len(self.partition)) if at != index)]

    def _typed(self, index: int) -> list[tuple[str, Type]]:
        return [(name, self.inputs[index].data[name]) for name in self.partition[index]]

    def origins(self, rows: DataFrame, inputs: Sequence[DataFrame], values: RunValues, reads: frozenset[str]) -> list[DataFrame]:
        """Each record itself, and what its functions see: of its own partition the rows in reach, of another node's the whole partition."""
        own = by_key(rows, self.output.key, self.inputs[0].key)
        placed = [as_new(frame).select("*", self._part(at).alias(PART)) for at, frame in enumerate(inputs)]
        mine = placed[0].select("_key", PART).join(own, "_key")
        if len(placed) > 1:
            return [own, of_lookup(mine, placed[1], PART)]
        numbered = placed[0].join(mine.select(PART).distinct(), PART, "left_semi").select("_key", PART, self.frames.number.alias("__number"))
        behind, ahead = reach(self.logic.program.windows)
        ends = numbered.join(own, "_key").select(ASKER, F.col(PART).alias("__within"), F.col("__number").alias("__here"))
        first = F.lit(1) if behind is None else F.col("__here") - F.lit(behind)
        seen = (F.col(PART) == F.col("__within")) & F.col("__number").between(first, F.col("__here") + F.lit(ahead))
        return [numbered.join(ends, seen).select(ASKER, "_key").distinct()]

    def compute(self, frames: Sequence[DataFrame], values: RunValues) -> DataFrame:
        """The program on each record, with the values of its window."""
        placed = self._placed(frames)
        ready, bad = self._beside(placed, values) if len(placed) > 1 else self._within(placed[0], values)
        return self._rows(values.settle(ready), bad, values)

    def _placed(self, frames: Sequence[DataFrame]) -> list[DataFrame]:
        """Live rows of the inputs, with their partitions."""
        return [as_new(frame).withColumns({"_lookup": F.lit(None).cast("binary"), PART: self._part(at)}) for at, frame in enumerate(frames)]

    def _rows(self, ready: DataFrame, bad: Sequence[DataFrame], values: RunValues) -> DataFrame:
        """The program on records with the values of their windows, and rejects of those whose arguments fail."""
        refused = F.when(column(WRONG).isNotNull(), error_text(FINALIZE, column(WRONG), self.name))
        # the key that is looked up comes behind the windows, which so carry a column less
        marked = self.lookup(ready, 0, values).withColumn(RECORD, F.col("_key"))
        rows = self.logic.images(marked, self.inputs[0], self.output, values, refused).rows
        for rejected in bad:
            rows = united(rows, as_output(self.lookup(rejected, len(self.inputs) - 1, values), rows.columns, self.output))
        return rows

    def answer(self, context: OperatorContext) -> Delta:
        """Compute the changed partitions again. Where their order tells which rows a change can reach, only these are compared with the prior ones."""
        return self.of_reached(context) if self._sees_in_order and may_choose(self, context) else super().answer(context)

    @property
    def _sees_in_order(self) -> bool:
        """Whether the rows that a row sees follow from its place in its own partition, and its rows have its key.

        With several layers of windows, an unchanged record may begin to fail in an argument, and leave the windows of others.
        """
        program = self.logic.program
        return not (self.frames.whole or program.distinct or program.fans_out or len(program.layers) > 1)

    @property
    def _changed_rows(self) -> ChangedRows:
        return ChangedRows(self.frames, *reach(self.logic.program.windows))

    def of_reached(self, context: OperatorContext) -> Delta:
        """The delta of the rows that changes can reach. Raises `Outgrown` where these are many.

        The rows of the changed partitions are held, and computed again. A large delta leads to more of them than are held: then only values of windows are
        compared. Prior rows are found by their keys: records that came last lie in few files.
        """
        changed, delta = self._changed_rows, context.delta(0)
        assert delta is not None  # a node without other inputs answers to this one
        bounds = context.materialized(changed.bounds(self._grouped(delta.frame))).as_frame()
        if self._has_few_values and are_many(context):
            return self._of_other_values(context, delta, bounds)
        found = context.materialized(context.live_input(0, lambda rows: changed.marked(self._grouped(rows), bounds)))
        if self._has_few_values and not found.are_here:
            return self._of_other_values(context, delta, bounds)
        self._require_few_between(context, found)
        ready, bad = self._within(self._placed([found.as_frame()])[0], context.values)
        ready = context.materialized(changed.reached(ready)).as_frame()
        records = united(*(rows.select("_key") for rows in (ready, delta.frame, *bad)))
        keys = context.materialized(united(records, records.select(reject_key().alias("_key"))).distinct())
        prior = context.materialized(context.live_own(keys, "_key"))
        return Delta.between(prior, self._whole_rows(context, self._rows(ready, bad, context.values)))

    @property
    def _has_few_values(self) -> bool:
        """Whether no value of a window is a list, which Python makes for each key once."""
        return not any(is_listed(use, wide=bool(self.wide_sums)) for use in self.logic.program.windows)

    def _of_other_values(self, context: OperatorContext, delta: Delta, bounds: DataFrame) -> Delta:
        """The same by the values of windows as they were and as they are: whole records are read only where a value or the record itself is another.

        One pass over the few columns that windows read has both, so that nothing wide is sorted. Raises `Outgrown` where the changed partitions have many
        of the rows: to sort these as they were and as they are takes as long as to sort all as they are. Other values that are not held take longer still, as
        each of their readers computes them anew.
        """
        values, [layer], live = context.values, self.logic.program.layers, context.live_rows(0)
        count = context.live_input(0, lambda rows: of_keys(_known_by(self._grouped(rows), ["_key", GROUP]), bounds.select(GROUP), GROUP)).count()
        require_share(self, context, count, live, self.most_affected)
        came, went = (delta.frame.where(condition(F.col("_op"))) for condition in (is_positive, is_negative))
        results = [use.column for use in layer.uses] + ([WRONG] if may_fail(layer.uses) else [])
        both = self._both(context, came, went, bounds).select("_key", _NOW, *map(column, results), _OWN)
        found = context.materialized(_differing(both, [*results, _OWN]), narrow=True)
        if not found.are_here:
            raise Outgrown(self.name)
        others = found.as_frame()
        wrong = [] if WRONG in results else [F.lit(None).cast("string").alias(WRONG)]
        shifted = others.where(F.col(_OWN).isNull() | (F.col(_OWN) == 0)).select("_key").distinct()
        names = ["_key", *self.inputs[0].carried(), *self.inputs[0].data]
        records = united(chosen(came, names), chosen(context.live_input(0, lambda rows: of_keys(rows, shifted, "_key")), names))
        new = self._placed([records])[0].join(others.where(F.col(_NOW)).select("_key", *map(column, results), *wrong), "_key")
        failed = self._arguments(self._placed([came])[0], layer, 0, values).bad
        keys = united(others.where(~F.col(_NOW)).select("_key"), went.select("_key")).distinct()  # of all others there are no prior rows
        if context.may_have_rejects:
            keys = united(keys, keys.select(reject_key().alias("_key")))
        prior = context.live_own(context.materialized(keys, narrow=True), "_key")
        return Delta.between(prior, self._whole_rows(context, self._rows(new, [] if failed is None else [failed], values)))

    def _both(self, context: OperatorContext, came: DataFrame, went: DataFrame, bounds: DataFrame) -> DataFrame:
        """The records of the changed partitions with the values of their windows, as they were and as they are. `_OWN` keeps what must not cancel."""
        changed, names = self._changed_rows, self._read_by_windows()

        def marked(rows: DataFrame) -> DataFrame:
            return changed.marked(self._grouped(_known_by(rows, names)), bounds)

        live = context.live_input(0, marked).join(came.select("_key", F.lit(1).alias(_OWN)), "_key", "left")
        sides = F.when(F.col(_OWN).isNull(), F.array(F.lit(True), F.lit(False))).otherwise(F.array(F.lit(True)))
        both = united(live.withColumn(_NOW, F.explode(sides)), marked(went).withColumns({_OWN: F.lit(-1), _NOW: F.lit(False)}))
        apart = replace(self.frames, fields=(*self.frames.fields, _NOW))
        ready, _ = self._layer(self._placed([both])[0], self.logic.program.layers[0], context.values, apart)
        noticed = F.when(F.col(_NOW) & F.col(WRONG).isNotNull(), F.lit(0))
        return changed.not_ahead(ready).withColumn(_OWN, F.coalesce(F.col(_OWN), noticed))

    def _read_by_windows(self) -> list[str]:
        """The columns of the input that partitions, their order and the arguments of the functions are made of, and hidden ones."""
        row, layer = self.inputs[0], self.logic.program.layers[0]
        read = {*self.partition[0], *(one.field for one in self.frames.order), *layer.before.reads, *(use.read_field for use in layer.uses)}
        return ["_key", *row.carried(), *(name for name in row.data if name in read)]

    def _require_few_between(self, context: OperatorContext, found: Rows) -> None:
        """Raise `Outgrown` where the marked rows are many, and those between the first and the last change are too."""
        try:
            require_few(self, context, found, context.live_rows(0), self.most_affected)
        except Outgrown:
            between = context.materialized(self._changed_rows.between(found.as_frame()).select("_key"))
            require_few(self, context, between, context.live_rows(0), self.most_affected)

    def _grouped(self, rows: DataFrame) -> DataFrame:
        """Rows with the number that their partition has, or its bytes where it has none."""
        number = self.shared(0)
        return rows.withColumn(GROUP, self._part(0) if number is None else number)

    def _within(self, frame: DataFrame, values: RunValues) -> tuple[DataFrame, list[DataFrame]]:
        """The records with their window columns, and those whose arguments fail."""
        first, *others = self.logic.program.layers
        ready, bad = self._layer(frame, first, values)
        for layer in others:
            ready, failed = self._parted(values.settle(ready))
            ready, refused = self._layer(ready, layer, values)
            bad += [failed, *refused]
        return ready, bad

    def _layer(self, frame: DataFrame, layer: WindowLayer, values: RunValues, frames: Frames | None = None) -> tuple[DataFrame, list[DataFrame]]:
        """The records with the columns of a layer's calls, and those whose arguments fail."""
        before = self._arguments(frame, layer, 0, values)
        return windowed(before.good, layer.uses, frames or self.frames, wide=bool(self.wide_sums), in_tasks=values.in_tasks), [] if before.bad is None else [before.bad]

    def _parted(self, ready: DataFrame) -> tuple[DataFrame, DataFrame]:
        """The records that have the values of their windows, and rejects of the others, which the next windows do not see."""
        failed = rejects(ready.where(column(WRONG).isNotNull()), FINALIZE, column(WRONG), self.name)
        return ready.where(column(WRONG).isNull()).drop(WRONG), failed.drop(WRONG)

    def _beside(self, placed: Sequence[DataFrame], values: RunValues) -> tuple[DataFrame, list[DataFrame]]:
        """The records with the window columns of the other node's rows that have their partition key."""
        [layer] = self.logic.program.layers  # names are fields of the other node's rows alone
        uses = layer.uses
        before = self._arguments(placed[1], layer, 1, values)
        over = windowed(before.good, uses, self.frames, wide=bool(self.wide_sums)).withColumn("__number", self.frames.number)
        found = over.where(F.col("__number") == 1).select(PART, F.lit(True).alias("__found"), *(column(use.column) for use in uses), WRONG)
        joined = placed[0].join(found, PART, "left")
        filled = [F.when(F.col("__found"), column(use.column)).otherwise(F.lit(over_nothing(use))).alias(use.column) for use in uses]
        kept = [column(name) for name in placed[0].columns]
        return joined.select(*kept, *filled, column(WRONG)), [] if before.bad is None else [before.bad]

    def _arguments(self, frame: DataFrame, layer: WindowLayer, index: int, values: RunValues) -> Evaluated:
        """The rows whose arguments are there and such as their functions take, and rejects of the others."""
        done = evaluate(frame, layer.before, self.inputs[index], self.name, values) if layer.before.output else Evaluated(frame, None)
        return numbers_only(done, layer.uses, frame, self.name)


def are_many(context: OperatorContext) -> bool:
    """Whether a delta is so large that the rows of the partitions that it changes are probably more than are held."""
    return not context.limits.are_small(context.changed_rows(0))


def _known_by(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """Some columns of rows, and their epoch where they have it."""
    return chosen(rows, [*(name for name in ("_epoch",) if name in rows.columns), *names])


def _differing(both: DataFrame, names: Sequence[str]) -> DataFrame:
    """The rows of records that are not the same before and after (`_NOW`) in some columns."""
    left, values = uncancelled(both, names, F.when(F.col(_NOW), F.lit(1)).otherwise(F.lit(-1)))
    return left.select("_key", (F.col(NET) > 0).alias(_NOW), *values)


def bind_window(spec: NodeSpec, binding: Binding, logic: RowLogic) -> AnalyticTransform:
    """The operator of a transform with `$window` calls whose window was checked."""
    config: TransformConfig = spec.config
    window = config.analytic_window
    assert window is not None  # the compiler refuses `$window` without it
    partition = _partition(window, binding)
    over = binding.inputs[-1]
    order = tuple(Ordering(key.field, over.data[key.field], key.order == "desc", key.null_order == "first") for key in window.sort_by)
    plain = len(binding.inputs) == 1 and bool(partition[0]) and all(not is_inexact(over.data[name]) for name in partition[0])
    frames = Frames(order, whole=len(binding.inputs) > 1, fields=partition[0] if plain else (PART,))
    return AnalyticTransform(spec, binding.inputs, logic, partition, frames)


def check_window(window: AnalyticWindow, program: Program | None, binding: Binding) -> bool:
    """Whether the fields of a window are there, and the calls of the program (None: it has problems itself) may stand over it; reports what is not so (E252, E253, E255, E256)."""
    partition = _partition(window, binding)
    known = _known(window, partition, binding)
    good = [known, _sortable(window, binding.inputs[-1], binding), program is None or _placed(program, binding), not known or _alike(partition, binding)]
    return all(good)


def _partition(window: AnalyticWindow, binding: Binding) -> tuple[tuple[str, ...], ...]:
    """The partition fields as each input names them."""
    if len(binding.inputs) == 1:
        return (window.fields,)
    fields = window.fields or ((window.on,) if window.on is not None else ())
    own = (window.on,) if window.on is not None and len(fields) == 1 else fields
    return own, fields


def _known(window: AnalyticWindow, partition: Sequence[Sequence[str]], binding: Binding) -> bool:
    place = ("config", "analytic_window", "group_by" if window.group_by else "partition_by" if window.partition_by else "on")
    good = True
    for row, names in zip(binding.inputs, partition, strict=True):
        for name in dict.fromkeys(names):
            if name not in row.data:
                where = ("config", "analytic_window", "on") if name == window.on and row is binding.input else place
                help_text = binding.problems.similar(name, list(row.data))
                binding.problems.report("E252", f"partition field '{name}' is not in the rows of the window", where, help=help_text)
                good = False
    return good


def _sortable(window: AnalyticWindow, over: RowType, binding: Binding) -> bool:
    good = True
    for index, key in enumerate(window.sort_by):
        place = ("config", "analytic_window", "sort_by", index)
        if key.field not in over.data:
            help_text = binding.problems.similar(key.field, list(over.data))
            binding.problems.report("E253", f"sort field '{key.field}' is not in the rows of the window", place, help=help_text)
        elif key.null_order == "drop":
            help_text = "use null_order: first or last, or filter in a transform before"
            binding.problems.report("E253", "null_order 'drop' would leave records without a place in their window", place, help=help_text)
        else:
            continue
        good = False
    return good


def _placed(program: Program, binding: Binding) -> bool:
    """Offsets are constants, and functions of the current row's place stand over its own rows."""
    good = True
    for use in program.windows:
        name = use.function.name
        if name in ("lag", "lead") and offset(use) is None:
            binding.problems.report("E255", f"the offset of '$window.{name}' must be a whole number", ("config", "cxl"), help=f"write a constant, such as $window.{name}(amount, 1)")
        elif len(binding.inputs) > 1 and name in POSITIONAL:
            help_text = "the rows of another source have no current one: use first(), last() or an aggregate function"
            binding.problems.report("E255", f"'$window.{name}' has no meaning over another source", ("config", "cxl"), help=help_text)
        else:
            continue
        good = False
    return good


def _alike(partition: Sequence[Sequence[str]], binding: Binding) -> bool:
    """Whether the partition fields of both sides can be equal."""
    if len(partition) == 1 or any(row.guessed for row in binding.inputs):
        return True
    good = True
    for name, other in zip(*partition, strict=True):
        kinds = {binding.inputs[0].data[name].kind, binding.inputs[1].data[other].kind}
        if len(kinds) > 1 and kinds not in ({Kind.INT, Kind.FLOAT}, {Kind.INT, Kind.DECIMAL}):
            shown = f"{binding.inputs[0].data[name].base} and {binding.inputs[1].data[other].base}"
            binding.problems.report("E256", f"partition field '{name}' is {shown} on the two sides", ("config", "analytic_window"), help="convert one of them in a transform ahead of the window")
            good = False
    return good
