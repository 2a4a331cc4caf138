"""Expectations of all rows of a node: their number, and the newest time among them.

An aggregate keeps the figure, exactly and by deltas. A second node has one row while the figure is not as expected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from changelog.lazy_imports import pa
from changelog.ops import Op
from changelog.rows import Rows
from cxl import Program
from cxl.types.types import DATE_TIME, INT, Schema
from operators.aggregate.config import AggregateConfig
from operators.aggregate.operator import Aggregate
from operators.core.config import microseconds
from operators.core.context import OperatorContext
from operators.core.delta import Delta
from operators.core.operator import Operator
from operators.core.row_type import GROUP_KEY, RowType
from operators.core.run_values import RunValues
from operators.core.settings import NodeSpec
from operators.expect.config import Expectation, ExpectNode, Freshness, RowCount

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS, NEWEST = "rows", "newest"
KEY = b"\x01"
"""The key of the only row."""
MICROSECOND = timedelta(microseconds=1)
LATEST = datetime.max
"""No time is later, so what turns stale there never does."""


class Measure(Aggregate):
    """The number of rows, or the greatest time: an aggregate of all rows that rolls nothing back."""

    kind = "expect"
    relaxed = False

    def __init__(self, spec: NodeSpec, row: RowType, program: Program) -> None:
        super().__init__(replace(spec, config=AggregateConfig(cxl=program.text)), row, program)

    def describe(self) -> Sequence[str]:
        """The rows that are kept, in words."""
        return (f"keeps: {' '.join(self.program.text.split())}", *super().describe()[1:])


class _Measured(Operator):
    """Has one row while a figure is not as expected."""

    kind = "expect"
    explain_class = "linear"
    always_stored = True
    condenses = True

    def __init__(self, spec: NodeSpec, row: RowType, data: Schema, fingerprint: Mapping[str, Any]) -> None:
        contract: ExpectNode = spec.config
        [self.expected] = contract.placed
        super().__init__(spec.name, (row,), RowType(data, key=GROUP_KEY), fingerprint)

    def with_hidden(self, inputs: Sequence[RowType], wanted: frozenset[str]) -> _Measured:
        """The same: nothing that rides along goes on."""
        return self.with_attributes(inputs=tuple(inputs))

    @property
    def may_reject(self) -> bool:
        """A figure is no record."""
        return False

    def bound(self, changes: int, live: int) -> int | None:
        """One row, which may change."""
        return 2

    def describe(self) -> Sequence[str]:
        """The expectation."""
        return (f"has a row while this does not hold: {self.expected.expectation.text}",)

    def origins(self, rows: DataFrame, inputs: Sequence[DataFrame], values: RunValues, reads: frozenset[str]) -> list[DataFrame]:
        """The row with the figure."""
        return [rows.select("__of").distinct().crossJoin(inputs[0].select("_key"))]

    def answer(self, context: OperatorContext) -> Delta:
        """The row that there is now, in place of the one that was."""
        return self._between(context, "recompute")

    def rebuild(self, context: OperatorContext, cause: str = "logic") -> Delta:
        """The same by today's logic."""
        return self._between(context, cause)

    def _between(self, context: OperatorContext, cause: str) -> Delta:
        [now] = context.rows(context.live_input(0)).select(list(self.inputs[0].data)).on_driver().as_table().to_pylist() or [{}]
        row = self.failing(now, self._before(context), context)
        made = self._rows(context, row)
        return Delta.insertion(made, cause) if context.first else Delta.between(context.live_own().on_driver(), made, cause)

    def failing(self, now: Mapping[str, Any], before: Mapping[str, Any] | None, context: OperatorContext) -> Mapping[str, Any] | None:
        """The row for a figure that is not as expected; None where it is."""
        raise NotImplementedError

    def _before(self, context: OperatorContext) -> Mapping[str, Any] | None:
        """The figure of the epoch before, where it changes in this one."""
        delta = context.delta(0)
        taken = [] if delta is None else [row for row in delta.consolidated().on_driver().as_table().to_pylist() if row["_op"] in (Op.RETRACT, Op.CORRECT_FROM)]
        return taken[0] if taken else None

    def _rows(self, context: OperatorContext, row: Mapping[str, Any] | None) -> Rows:
        types = {"bigint": pa.int64(), "timestamp": pa.timestamp("us"), "date": pa.date32()}
        fields = [pa.field("_key", pa.binary()), *(pa.field(name, types[type_]) for name, type_ in self.output.columns().items())]
        return context.rows(pa.Table.from_pylist([] if row is None else [{"_key": KEY, **row}], schema=pa.schema(fields)))


class CountMeasured(_Measured):
    """Has a row while the number of rows is not as expected: the number now, and that of the epoch before where it is compared with it."""

    def __init__(self, spec: NodeSpec, row: RowType) -> None:
        contract: ExpectNode = spec.config
        count = _count(contract.placed[0].expectation)
        super().__init__(spec, row, Schema([(ROWS, INT), ("before", INT.or_null)]), {"row_count": count.model_dump()})
        self.count = count
        self.remembers = count.is_relative

    def failing(self, now: Mapping[str, Any], before: Mapping[str, Any] | None, context: OperatorContext) -> Mapping[str, Any] | None:
        """The row while the number is out of its bounds."""
        rows, known = int(now.get(ROWS, 0)), int(before[ROWS]) if before is not None and self.count.is_relative else None
        return {ROWS: rows, "before": known} if self._is_out(rows) or (known is not None and self._jumps(rows, known)) else None

    def _is_out(self, rows: int) -> bool:
        return (self.count.min is not None and rows < self.count.min) or (self.count.max is not None and rows > self.count.max)

    def _jumps(self, rows: int, before: int) -> bool:
        fell = self.count.fall is not None and before - rows > self.count.fall * before
        return fell or (self.count.rise is not None and rows - before > self.count.rise * before)


class FreshnessMeasured(_Measured):
    """Has a row while the newest time is too old at the begin of a run: that time, and when it became too old."""

    follows_clock = True
    remembers = True

    def __init__(self, spec: NodeSpec, row: RowType) -> None:
        contract: ExpectNode = spec.config
        fresh = _freshness(contract.placed[0].expectation)
        data = Schema([(NEWEST, row.data[NEWEST].or_null), ("stale_from", DATE_TIME.or_null)])
        super().__init__(spec, row, data, {"freshness": fresh.within, "column": fresh.column})
        self.within = microseconds(fresh.within) * MICROSECOND
        self.within_text = fresh.within

    def stale_from(self, newest: date | datetime | None) -> datetime | None:
        """When rows whose newest time this is are too old; None where there is no time, which is never fresh."""
        if newest is None:
            return None
        moment = newest if isinstance(newest, datetime) else datetime(newest.year, newest.month, newest.day)
        moment = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
        return LATEST if LATEST - moment < self.within else moment + self.within

    def failing(self, now: Mapping[str, Any], before: Mapping[str, Any] | None, context: OperatorContext) -> Mapping[str, Any] | None:
        """The row while the newest time is too old."""
        newest = now.get(NEWEST)
        due, began = self.stale_from(newest), context.values.values.get("pipeline.start_time")
        fresh = due is not None and (began is None or due >= began)
        return None if fresh else {NEWEST: newest, "stale_from": due}


def _count(one: Expectation) -> RowCount:
    assert one.row_count is not None  # the role says so
    return one.row_count


def _freshness(one: Expectation) -> Freshness:
    assert one.freshness is not None  # the role says so
    return one.freshness
