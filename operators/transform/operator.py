"""Transforms that map each record by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from changelog.lazy_imports import F
from changelog.rows import Rows
from operators.core.evaluate import as_new
from operators.core.operator import Keyed, Linear
from operators.core.row_type import RowType
from operators.core.run_values import RunValues
from operators.core.settings import NodeSpec
from operators.transform.row_logic import RowLogic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Transform(Linear):
    """A transform whose program gives the same answer in every run."""

    kind = "transform"

    def __init__(self, spec: NodeSpec, row: RowType, logic: RowLogic) -> None:
        super().__init__(spec.name, (row,), logic.output, logic.fingerprint())
        self.logic = logic

    def reads_source(self) -> frozenset[str]:
        """The provenance of a record that the program reads."""
        return self.logic.reads()

    def bound(self, changes: int, live: int) -> int | None:
        """Each record gives at most one, unless it fans out."""
        return None if self.logic.program.fans_out else changes

    def describe(self) -> Sequence[str]:
        """Emitted fields and checks."""
        return self.logic.describe()

    def images(self, rows: Rows, index: int, values: RunValues) -> Rows:
        """The program on each op row."""
        made = self.logic.images(rows.as_frame(), self.inputs[0], self.output, values)
        return Rows(rows.engine, frame=made.rows, good=made.accepted)


class VolatileTransform(Keyed):
    """A transform that reads the clock or the run: each output row is computed once and retracted as it was written."""

    kind = "transform"
    deterministic = False

    def __init__(self, spec: NodeSpec, row: RowType, logic: RowLogic) -> None:
        super().__init__(spec.name, (row,), logic.output.carrying(["_lookup"]), logic.fingerprint())
        self.logic = logic

    reads_source = Transform.reads_source
    describe = Transform.describe

    def lookup(self, frame: DataFrame, index: int, values: RunValues) -> DataFrame:
        """Each record by itself."""
        return frame.withColumn("_lookup", F.col("_key"))

    def compute(self, frames: Sequence[DataFrame], values: RunValues) -> DataFrame:
        """The program on each live record."""
        frame = as_new(frames[0])
        return self.logic.images(frame.withColumn("_lookup", F.col("_key")), self.inputs[0], self.output, values).rows
