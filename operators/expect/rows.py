"""Expectations of single rows: a node that rejects what fails some of them, and one that has what fails one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from changelog.columns import column
from changelog.lazy_imports import F
from changelog.rows import Rows
from operators.core.evaluate import error_text, first_case, prepare, reject_key
from operators.core.operator import Linear
from operators.core.row_type import SYSTEM, RowType
from operators.core.run_values import RunValues
from operators.core.settings import NodeSpec
from operators.expect.checks import RowCheck
from operators.expect.config import ExpectNode

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from cxl import spark

CATEGORY = "expectation_failed"
"""The category of a dead letter that fails an expectation."""
WRONG = "__failed"
"""The number of the first expectation that a row fails, null where it fails none."""


def passed_on(row: RowType, *hidden: str) -> RowType:
    """The rows of a node that passes rows on, without the hidden columns that do not travel."""
    return replace(row, hidden=hidden, riders={})


class Accepted(Linear):
    """Passes rows on. A row that fails an expectation becomes a reject, and comes back when it is repaired."""

    kind = "expect"

    def __init__(self, spec: NodeSpec, row: RowType, checks: Sequence[RowCheck]) -> None:
        contract: ExpectNode = spec.config
        super().__init__(spec.name, (row,), passed_on(row, "_error"), {"rejects": [[one.name, one.message, one.logic] for one in checks]})
        self.of = contract.of
        self.checks = tuple(checks)

    def reads_source(self) -> frozenset[str]:
        """The provenance of a record that the predicates read."""
        return frozenset().union(*(one.reads for one in self.checks))

    def describe(self) -> Sequence[str]:
        """The expectations."""
        return tuple(f"rejects what fails {one.message.removeprefix('expectation ')}".replace(" failed:", ":") for one in self.checks)

    def images(self, rows: Rows, index: int, values: RunValues) -> Rows:
        """Each op row, or its reject."""
        marked, names = self._marked(rows.as_frame(), values)
        bad = F.col(WRONG).isNotNull()
        numbers = [F.col(WRONG) == at for at in range(len(self.checks))]
        texts = [error_text(CATEGORY, F.lit(one.message), self.of, F.lit(one.name)) for one in self.checks]
        error = first_case(list(zip(numbers, texts, strict=True)), F.lit(None).cast("string"))
        made: dict[str, Column] = {"_key": F.when(bad, reject_key()).otherwise(F.col("_key")), "_error": error}
        made |= {name: F.when(~bad, column(name)) for name in self.output.data}
        shaped = self.output.shaped(marked.select(*(made[name].alias(name) if name in made else column(name) for name in names)), names)
        good = marked.where(~bad).select(*(F.lit(None).cast("string").alias(name) if name == "_error" else column(name) for name in names))
        return Rows(rows.engine, frame=shaped, good=self.output.shaped(good, names))

    def _marked(self, frame: DataFrame, values: RunValues) -> tuple[DataFrame, list[str]]:
        """The rows with `WRONG`, and the names of the columns that come out."""
        names = [*(name for name in frame.columns if name in (*SYSTEM, "_epoch")), *self.output.columns()]
        ready, context = prepare(frame, self.reads_source(), self.inputs[0], values)
        return ready.withColumn(WRONG, first_failing(self.checks, context)), names


def first_failing(checks: Sequence[RowCheck], context: spark.Context) -> Column:
    """The number of the first check that a row fails, null where it fails none."""
    return first_case([(one.failing(context), F.lit(at)) for at, one in enumerate(checks)], F.lit(None).cast("int"))


class Failing(Linear):
    """Has the rows that fail one expectation, as they are."""

    kind = "expect"
    always_stored = True

    def __init__(self, spec: NodeSpec, row: RowType, check: RowCheck) -> None:
        super().__init__(spec.name, (row,), passed_on(row), {"fails": check.logic})
        self.check = check

    @property
    def may_reject(self) -> bool:
        """A row that cannot be judged is a failing one."""
        return False

    def reads_source(self) -> frozenset[str]:
        """The provenance of a record that the predicate reads."""
        return self.check.reads

    def describe(self) -> Sequence[str]:
        """The expectation."""
        return (f"has the rows that fail {self.check.message.removeprefix('expectation ')}".replace(" failed:", ":"),)

    def images(self, rows: Rows, index: int, values: RunValues) -> Rows:
        """The op rows that fail."""
        return rows.through(lambda frame: self._failing(frame, values))

    def _failing(self, frame: DataFrame, values: RunValues) -> DataFrame:
        names = [*(name for name in frame.columns if name in (*SYSTEM, "_epoch")), *self.output.columns()]
        ready, context = prepare(frame, self.check.reads, self.inputs[0], values)
        return self.output.shaped(ready.where(self.check.failing(context)), names)
