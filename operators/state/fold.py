"""The records of one scope pass a state node one at a time, in the engine's Python workers. Imports no pyspark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from changelog.lazy_imports import pa, pl
from cxl.runtime.context import Context
from cxl.runtime.evaluate import Frame, build
from cxl.spark.worker import arrow_type, decoded, encode
from cxl.syntax.nesting_limit import ensure_room
from cxl.typed.tree import AggregateUse, Expr
from cxl.types.types import Kind, Type
from cxl.values.decimals import exactly
from cxl.values.failure import CxlFailure
from operators.state.running_aggregates import State, running

WHY = "__why"
"""The column that says why a record failed, as JSON text; null where it did not."""
_PYTHON: Mapping[Kind, tuple[type, ...]] = {
    Kind.INT: (int,), Kind.FLOAT: (float, int), Kind.DECIMAL: (Decimal, int), Kind.STRING: (str,), Kind.BOOL: (bool,), Kind.DATE: (date,), Kind.DATE_TIME: (datetime,),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Assigned:
    """One assignment: the variable's dotted name and type, the expression, its aggregate calls."""

    variable: str
    type: Type
    expression: Expr
    calls: tuple[AggregateUse, ...]
    slots: int


@dataclass(frozen=True, slots=True)
class Given:
    """An input of the assignments: the column that holds it, whether it is a `field` or a `system` variable, its name and type."""

    column: str
    source: str
    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Fold:
    """The assignments of a node over the records of a scope. `start` holds the variables before the first record.

    `forgets`: each record starts anew, as in record scope.
    """

    assigned: tuple[Assigned, ...]
    given: tuple[Given, ...]
    start: Mapping[str, Any]
    kept: tuple[str, ...]
    results: Mapping[str, str]
    forgets: bool = False

    def table(self, table: pa.Table) -> pa.Table:
        """All records of one scope, in any order, with the variables as each record's pass left them."""
        keys = pl.DataFrame({"_key": table.column("_key")}).with_row_index("at").sort("_key")["at"]
        ordered = table.take(keys.to_arrow()).combine_chunks()
        return pa.Table.from_arrays(self._columns(ordered), names=[*self.kept, *self.results.values(), WHY])

    def batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same batch by batch, for records that have nothing to do with each other."""
        for batch in batches:
            yield pa.RecordBatch.from_arrays(self._columns(batch), [*self.kept, *self.results.values(), WHY])

    def _columns(self, records: Any) -> list[Any]:
        left = list(self._passed(records))
        types = {one.variable: one.type for one in self.assigned}
        made = [pa.array([encode(values.get(name), types[name]) for values, _ in left], arrow_type(types[name])) for name in self.results]
        return [*(records.column(name) for name in self.kept), *made, pa.array([why for _, why in left], pa.string())]

    def _passed(self, records: Any) -> Iterator[tuple[Mapping[str, Any], str | None]]:
        """The variables behind each record, and why it failed: then it left them as they were."""
        ensure_room()
        walk = _Walk.of(self)
        columns = [decoded(_flat(records.column(one.column)), one.type) for one in self.given]
        for values in zip(*columns, strict=True) if columns else iter([()] * records.num_rows):
            try:
                walk.go(values)
                yield walk.variables, None
            except CxlFailure as failure:
                yield walk.variables, json.dumps({"category": failure.category, "detail": failure.message}, ensure_ascii=False)


def _flat(column: Any) -> Any:
    return column.combine_chunks() if hasattr(column, "combine_chunks") else column


class _Walk:
    """The variables and aggregates on the way through the records."""

    def __init__(self, fold: Fold, states: Sequence[Sequence[State]]) -> None:
        self.fold = fold
        self.variables = dict(fold.start)
        self.calls = [[(use, running(use), [build(arg) for arg in use.args]) for use in one.calls] for one in fold.assigned]
        self.states = [list(one) for one in states]
        self.expressions = [build(one.expression) for one in fold.assigned]

    @classmethod
    def of(cls, fold: Fold) -> _Walk:
        """A walk that is at its beginning."""
        return cls(fold, [[running(use).start for use in one.calls] for one in fold.assigned])

    def go(self, values: Sequence[Any]) -> None:
        """Pass one record. Raises CxlFailure; then nothing has changed."""
        if self.fold.forgets:
            self.variables = dict(self.fold.start)
            self.states = [[running(use).start for use in one.calls] for one in self.fold.assigned]
        record = {one.name: value for one, value in zip(self.fold.given, values, strict=True) if one.source == "field"}
        system = {one.name: value for one, value in zip(self.fold.given, values, strict=True) if one.source == "system"}
        variables, states = {**self.variables, **system}, []
        for index, one in enumerate(self.fold.assigned):
            frame = Frame(dict(record), one.slots, Context(variables))
            states.append(self._aggregated(index, frame))
            variables[one.variable] = fitted(self.expressions[index](frame), one)
        self.variables = {name: variables.get(name) for name in {*self.variables, *self.fold.results}}
        self.states = states

    def _aggregated(self, index: int, frame: Frame) -> list[State]:
        """The states of an assignment's aggregates with this record; their values go into the frame."""
        states = []
        for state, (_, aggregate, args) in zip(self.states[index], self.calls[index], strict=True):
            states.append(aggregate.step(state, [arg(frame) for arg in args]))
        for state, (use, aggregate, _) in zip(states, self.calls[index], strict=True):
            frame.record[use.column] = aggregate.value(state)  # type: ignore[index]  # made for this frame
        return states


def fitted(value: Any, one: Assigned) -> Any:
    """A value as the variable's type holds it. Raises CxlFailure for one of another type."""
    kind = one.type.kind
    wrong = not isinstance(value, _PYTHON[kind]) or (isinstance(value, bool) and kind is not Kind.BOOL) or (isinstance(value, datetime) and kind is Kind.DATE)
    if value is not None and wrong:
        raise CxlFailure(f"the value of '${one.variable}' is no {one.type.base}")
    converted: Any = value
    if kind is Kind.DECIMAL and value is not None:
        return _at_scale(converted, one)
    return float(converted) if kind is Kind.FLOAT and value is not None else value


def _at_scale(value: Decimal | int, one: Assigned) -> Decimal:
    found = exactly(value, one.type.scale)
    if found is None:
        raise CxlFailure(f"the value of '${one.variable}' does not fit {one.type.base}: round it to {one.type.scale} digits")
    return found
