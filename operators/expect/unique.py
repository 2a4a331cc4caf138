"""Expectation `unique`: of the rows with equal values the first in the node's order stands, the others fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from changelog.columns import column
from changelog.frames import any_of
from changelog.keys.spark import key_column
from changelog.lazy_imports import F, Window
from operators.core.evaluate import as_new, error_text, reject_key
from operators.core.operator import Keyed, shared_number
from operators.core.provenance import of_lookup
from operators.core.row_type import RowType, key_parts, spelling
from operators.core.run_values import RunValues
from operators.core.settings import NodeSpec
from operators.expect.config import ExpectNode
from operators.expect.rows import CATEGORY, passed_on

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_KEYED, _UNKEYED = b"\x01", b"\x00"
PLACE = "__place"
"""The position of a row among those with equal values, from 1."""


class _Unique(Keyed):
    """The base of both kinds of nodes: rows with equal values belong together."""

    kind = "expect"

    def __init__(self, spec: NodeSpec, row: RowType, output: RowType, fingerprint: dict[str, object]) -> None:
        contract: ExpectNode = spec.config
        [self.expected] = contract.placed
        self.of = contract.of
        self.columns = list(self.expected.expectation.columns)
        super().__init__(spec.name, (row,), output.carrying(["_lookup"]), {"unique": self.columns, **fingerprint} | spelling(row.data[name] for name in self.columns))

    def lookup(self, frame: DataFrame, index: int, values: RunValues) -> DataFrame:
        """The values of each row; a row with a null is alone."""
        data = self.inputs[0].data
        parts = [part for name in self.columns for part in key_parts(column(name), data[name])]
        alone = any_of([column(name).isNull() for name in self.columns])
        key = F.when(alone, F.concat(F.lit(_UNKEYED), F.col("_key"))).otherwise(F.concat(F.lit(_KEYED), key_column(parts)))
        return frame.withColumn("_lookup", key)

    def shared(self, index: int) -> Column | None:
        """A hash of the columns."""
        data = self.inputs[0].data
        return shared_number([(column(name), data[name]) for name in self.columns])

    def numbered(self, frame: DataFrame, values: RunValues) -> DataFrame:
        """All rows with `_lookup` and their position among equal ones."""
        alike = Window.partitionBy("_lookup").orderBy("_key").rowsBetween(Window.unboundedPreceding, Window.currentRow)
        return self.lookup(as_new(frame), 0, values).withColumn(PLACE, F.row_number().over(alike))


class AcceptedUnique(_Unique):
    """Passes rows on; a row behind the first with its values becomes a reject."""

    def __init__(self, spec: NodeSpec, row: RowType) -> None:
        contract: ExpectNode = spec.config
        [placed] = contract.placed
        super().__init__(spec, row, passed_on(row, "_error"), {"rejects": [placed.name, placed.message]})

    def describe(self) -> Sequence[str]:
        """The columns."""
        return (f"rejects rows behind the first with equal {', '.join(self.columns)} ({self.expected.name})",)

    def compute(self, frames: Sequence[DataFrame], values: RunValues) -> DataFrame:
        """Each row, or its reject."""
        marked = self.numbered(frames[0], values)
        bad = F.col(PLACE) > 1
        error = F.when(bad, error_text(CATEGORY, F.lit(self.expected.message), self.of, F.lit(self.expected.name)))
        made: dict[str, Column] = {"_key": F.when(bad, reject_key()).otherwise(F.col("_key")), "_error": error}
        made |= {name: F.when(~bad, column(name)) for name in self.output.data}
        return marked.select(*(made[name].alias(name) if name in made else column(name) for name in ("_key", *self.output.columns())))


class FailingUnique(_Unique):
    """Has the rows behind the first with their values."""

    def __init__(self, spec: NodeSpec, row: RowType) -> None:
        super().__init__(spec, row, passed_on(row), {})

    @property
    def may_reject(self) -> bool:
        """A row fails, or it does not."""
        return False

    def describe(self) -> Sequence[str]:
        """The columns."""
        return (f"has rows behind the first with equal {', '.join(self.columns)}",)

    def compute(self, frames: Sequence[DataFrame], values: RunValues) -> DataFrame:
        """The rows that fail."""
        return self.numbered(frames[0], values).where(F.col(PLACE) > 1)

    def origins(self, rows: DataFrame, inputs: Sequence[DataFrame], values: RunValues, reads: frozenset[str]) -> list[DataFrame]:
        """All rows with equal values: without the first of them another would stand."""
        return [of_lookup(rows, self.lookup(as_new(inputs[0]), 0, values))]

    def placed(self, frame: DataFrame, values: RunValues) -> DataFrame | None:
        """The rows with the key of their values."""
        return self.lookup(as_new(frame), 0, values)
