"""Several `distinct` statements in one transform: each has a lookup key of its own.

A record may lose its place at one statement and so leave its key at the next one to another record. A change is therefore followed from
statement to statement: the keys that it touches, the records that these keep or lose by it, the keys of those at the next statement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from changelog.columns import column
from changelog.lazy_imports import F, Window
from changelog.rows import Rows
from changelog.spark_algebra import undone
from cxl import spark
from operators.core.context import OperatorContext
from operators.core.delta import Delta
from operators.core.evaluate import as_new, prepare
from operators.core.provenance import ASKER
from operators.core.row_type import RowType
from operators.core.run_values import RunValues
from operators.core.settings import NodeSpec
from operators.transform.distinct import DistinctTransform, place
from operators.transform.row_logic import RowLogic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class DistinctChain(DistinctTransform):
    """A transform whose program has more than one `distinct` statement. Its rows carry their key at the last one."""

    most_changed = 0.005  # each statement is followed by itself, before and now

    def __init__(self, spec: NodeSpec, row: RowType, logic: RowLogic) -> None:
        super().__init__(spec, row, logic)
        self.fingerprint: dict[str, Any] = {**self.fingerprint, "lookup": "last"}

    @property
    def last(self) -> int:
        """The number of the last statement, from 0."""
        return len(self.logic.program.distinct) - 1

    def origins(self, rows: DataFrame, inputs: Sequence[DataFrame], values: RunValues, reads: frozenset[str]) -> list[DataFrame]:
        """Return the records that reach the last statement under the row's key, and the records that kept others from reaching it."""
        now = _Standing(self._places(as_new(inputs[0]), values), values.settle)
        asked = rows.select(ASKER, "_lookup").distinct()
        found = now.reaching(self.last, asked.select("_lookup").distinct()).join(_at(asked, self.last), _place(self.last))
        for stage in reversed(range(self.last)):
            asked = found.select(ASKER, _place(stage)).distinct()
            found = now.reaching(stage, _keys(found, stage)).join(asked, _place(stage))
        return [found.select(ASKER, "_key").distinct()]

    def answer(self, context: OperatorContext) -> Delta:
        """Follow the change to the last statement. Compute the records that reach it under affected keys, and compare them with the prior rows."""
        if context.first:
            return super().answer(context)
        live = context.live_input(0)
        now = _Standing(self._places(live, context.values), context.values.settle)
        affected = self._affected_last(context, live, now)
        prior = self.prior(context, affected)
        records = context.materialized(now.reaching(self.last, affected.as_frame()).select("_key")).as_frame()
        rows = self.compute([context.materialized(live.join(records, "_key", "left_semi")).as_frame()], context.values)
        return Delta.between(prior, context.rows(rows))

    def _affected_last(self, context: OperatorContext, live: DataFrame, now: _Standing) -> Rows:
        """The keys of the last statement whose records may have changed: `_lookup`, distinct."""
        delta = context.delta(0)
        assert delta is not None  # an answer has a delta
        before = _Standing(self._places(undone(live, delta.frame), context.values), context.values.settle)
        direct = context.materialized(self._places(delta.frame, context.values)).as_frame()
        affected = context.materialized(_keys(direct, 0))
        for stage in range(self.last):
            kept = now.behind(stage, affected.as_frame()).unionByName(before.behind(stage, affected.as_frame()))
            moved = kept.groupBy("_key").agg(F.count(F.lit(1)).alias("__sides"), F.first(_place(stage + 1)).alias(_place(stage + 1)))
            further = moved.where(F.col("__sides") == 1).transform(lambda rows, at=stage: _keys(rows, at + 1))
            affected = context.materialized(further.unionByName(_keys(direct, stage + 1)).distinct())
        return affected

    def _places(self, frame: DataFrame, values: RunValues) -> DataFrame:
        """`_key` and the key of each record at each statement."""
        program = self.logic.program
        ready, context = prepare(frame, program.reads_system, self.inputs[0], values)
        applied = spark.apply(ready, program, context)
        keys = zip(applied.distinct, program.distinct, strict=True)
        return applied.frame.select("_key", *(place(key, statement).alias(_place(at)) for at, (key, statement) in enumerate(keys)))


@dataclass(frozen=True, slots=True)
class _Standing:
    """Which of some records stay behind each statement. `placed`: `_key` and the keys of all records."""

    placed: DataFrame
    settled: Callable[[DataFrame], DataFrame]

    def reaching(self, stage: int, touched: DataFrame) -> DataFrame:
        """The records under these keys of a statement (`_lookup`) that no statement before it drops."""
        rows = self.placed.join(touched.withColumnRenamed("_lookup", _place(stage)), _place(stage), "left_semi")
        if not stage:
            return rows
        rows = self.settled(rows)  # what two branches of a plan read would be computed twice as often with each statement
        kept = self.behind(stage - 1, _keys(rows, stage - 1))
        return rows.join(kept.select("_key"), "_key", "left_semi")

    def behind(self, stage: int, touched: DataFrame) -> DataFrame:
        """The first record of each of these keys."""
        alike = Window.partitionBy(_place(stage)).orderBy("_key").rowsBetween(Window.unboundedPreceding, Window.currentRow)
        return self.reaching(stage, touched).withColumn("__rank", F.row_number().over(alike)).where(F.col("__rank") == 1).drop("__rank")


def _place(stage: int) -> str:
    return f"__place{stage}"


def _at(asked: DataFrame, stage: int) -> DataFrame:
    """Who asks for which keys of a statement."""
    return asked.select(ASKER, column("_lookup").alias(_place(stage)))


def _keys(rows: DataFrame, stage: int) -> DataFrame:
    """The keys of records at a statement: `_lookup`, distinct."""
    return rows.select(column(_place(stage)).alias("_lookup")).distinct()
