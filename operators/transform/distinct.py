"""`distinct` in a transform: the first record in source order of each key survives.

The survivor keeps its own key. A key that loses its first record gets `-R` of that one and `+A` of the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from changelog.columns import column
from changelog.frames import united
from changelog.keys.spark import key_column
from changelog.lazy_imports import F
from cxl import Program, spark
from cxl.typed import tree
from cxl.typed.tree import Distinct
from operators.core.binding import Binding
from operators.core.context import OperatorContext
from operators.core.delta import Delta
from operators.core.evaluate import as_new, prepare
from operators.core.following import may_choose
from operators.core.operator import SHARED, Keyed, shared_number
from operators.core.provenance import of_lookup
from operators.core.row_type import RowType, is_inexact, key_parts
from operators.core.run_values import RunValues
from operators.core.settings import NodeSpec
from operators.transform.distinct_delta import KEYED, UNKEYED, FirstRecords
from operators.transform.first_rows import with_first_rows
from operators.transform.row_logic import RowLogic

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from cxl.spark import Applied, DistinctKey


class DistinctTransform(Keyed):
    """A transform whose program has a `distinct` statement.

    Its lookup key is the distinct key; that of a record that fails or is dropped before it came there is the record's own.
    """

    kind = "transform"

    def __init__(self, spec: NodeSpec, row: RowType, logic: RowLogic) -> None:
        super().__init__(spec.name, (row,), logic.output.carrying(["_lookup"]), logic.fingerprint())
        self.logic = logic
        self.deterministic = logic.deterministic
        logic.settle = self._settle

    def reads_source(self) -> frozenset[str]:
        """The provenance of a record that the program reads."""
        return self.logic.reads()

    def describe(self) -> Sequence[str]:
        """Emitted fields, checks, distinct keys."""
        keys = (", ".join(name for name, _ in one.keys) for one in self.logic.program.distinct)
        return (*self.logic.describe(), *(f"distinct: {names or 'nothing: one record stays'}" for names in keys))

    def lookup(self, frame: DataFrame, index: int, values: RunValues) -> DataFrame:
        """Each record's distinct key."""
        program = self.logic.program
        ready, context = prepare(frame, program.reads_system, self.inputs[0], values)
        applied = spark.apply(ready, program, context)
        return applied.frame.select(*map(column, frame.columns), self._place(applied).alias("_lookup"))

    def shared(self, index: int) -> Column | None:
        """The fields that the last statement compares, where they come from the input as they are."""
        keys = [key for _, key in self.logic.program.distinct[-1].keys]
        fields = [key for key in keys if isinstance(key, tree.Field)]
        return shared_number([(column(field.name), field.type) for field in fields]) if len(fields) == len(keys) else None

    def _place(self, applied: Applied) -> Column:
        return place(applied.distinct[-1], self.logic.program.distinct[-1])

    def _settle(self, applied: Applied, values: RunValues) -> Applied:
        kept = first_of_each(applied, self.logic.program.distinct, in_tasks=values.in_tasks)
        return replace(kept, frame=kept.frame.withColumn("_lookup", self._place(applied)))

    def origins(self, rows: DataFrame, inputs: Sequence[DataFrame], values: RunValues, reads: frozenset[str]) -> list[DataFrame]:
        """All records of the distinct key: without the first of them the next would stand."""
        return [of_lookup(rows, self.lookup(as_new(inputs[0]), 0, values))]

    def placed(self, frame: DataFrame, values: RunValues) -> DataFrame | None:
        """The records with their distinct key."""
        return self.lookup(as_new(frame), 0, values)

    def answer(self, context: OperatorContext) -> Delta:
        """Follow the first record of each key. Live records are read only for keys that their first record left."""
        if context.first or not (self._leaves_rows and may_choose(self, context)):
            return super().answer(context)
        delta = context.delta(0)
        assert delta is not None  # a node with one input answers to it
        changes = context.materialized(self.lookup(self.hashed(delta.frame, 0), 0, context.values))
        prior = self.prior(context, changes.distinct(["_lookup"]))
        if not (changes.are_here and prior.are_here):
            return super().answer(context)
        firsts = FirstRecords.of(changes.as_table(), prior.as_table())
        records = context.rows(firsts.came).without("_lookup", SHARED).as_frame()
        if firsts.left.num_rows:
            others = self.of_affected(context, 0, context.rows(firsts.left)).drop("_lookup")
            records = united(others, records.join(others.select("_key"), "_key", "left_anti").select(*map(column, others.columns)))
        return Delta.between(context.rows(firsts.prior), self._whole_rows(context, self.compute([records], context.values)))

    @property
    def _leaves_rows(self) -> bool:
        """Whether the first record of each key leaves a row, if only a reject: nothing behind the statement drops it."""
        kinds = [type(statement) for statement in self.logic.program.statements]
        return tree.Filter not in kinds[kinds.index(tree.Distinct) :]

    def compute(self, frames: Sequence[DataFrame], values: RunValues) -> DataFrame:
        """The program on all records, the first of each distinct key kept."""
        frame = as_new(frames[0]).withColumn("_lookup", F.lit(None).cast("binary"))
        return self.logic.images(frame, self.inputs[0], self.output, values).rows


def place(key: DistinctKey, statement: Distinct) -> Column:
    """The bytes of a record's key at a statement."""
    own = F.concat(F.lit(UNKEYED), F.col("_key"))
    return F.when(F.col(key.reached), F.concat(F.lit(KEYED), _key_bytes(key, statement))).otherwise(own)


def refuses_distinct(program: Program, binding: Binding) -> bool:
    """Whether a program has `distinct` beside `emit each`: which of a record's rows would be compared is not defined (E254)."""
    if program.fans_out:
        help_text = "put 'distinct' into a transform of its own, behind this one"
        binding.problems.report("E254", "'distinct' cannot stand in one program with 'emit each'", ("config", "cxl"), help=help_text)
    return program.fans_out


def first_of_each(applied: Applied, statements: Sequence[Distinct], *, in_tasks: bool) -> Applied:
    """The applied program without the records that its distinct statements drop, in the order of the statements."""
    frame = applied.frame
    for key, statement in zip(applied.distinct, statements, strict=True):
        same = _same(key, statement)
        frame = with_first_rows(frame.withColumns(same) if same else frame, list(same), key.reached, in_tasks=in_tasks).drop(*same)
    return replace(applied, frame=frame)


def _same(key: DistinctKey, statement: Distinct) -> dict[str, Column]:
    """The columns that records of one key share, by new names: the values themselves, which engines sort quicker than bytes, where equal ones are the same."""
    pairs = enumerate(zip(key.columns, statement.keys, strict=True))
    return {
        f"__same{at}": key_column(key_parts(F.col(name), value.type)) if is_inexact(value.type) else F.col(name) for at, (name, (_, value)) in pairs
    }


def _key_bytes(key: DistinctKey, statement: Distinct) -> Column:
    pairs = zip(key.columns, statement.keys, strict=True)
    return key_column([part for name, (_, value) in pairs for part in key_parts(F.col(name), value.type)])
