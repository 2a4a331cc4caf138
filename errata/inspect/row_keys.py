"""The columns that name a row to people (group fields of an aggregate, the primary key of a keyed source), and the columns whose totals say something."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from cxl.typed.lineage import copies, origins
from cxl.types.types import Kind, Type
from errata.core.column_names import names_calendar, names_identity
from operators.aggregate.operator import Aggregate
from operators.combine.operator import Combine
from operators.output.booked import BookedOutput
from operators.output.history import HistoryOutput
from operators.output.operator import Output

if TYPE_CHECKING:
    from cxl import Program
    from errata.plan.plan import Node, Plan
    from operators.source.node import SourceNode

_NUMBERS = frozenset({Kind.INT, Kind.FLOAT, Kind.DECIMAL})


def key_columns(plan: Plan, node: Node) -> tuple[str, ...] | None:
    """The columns of a node that name its rows; None where only the keys of its changelog do."""
    found = _named(plan, node)
    return None if found is None or not found.issubset(node.operator.output.data) else tuple(name for name in node.operator.output.data if name in found)


def figure_columns(plan: Plan, node: Node) -> dict[str, Type]:
    """The columns of numbers whose totals say something: names of rows, parts of dates and times of a history are left out."""
    if isinstance(node.operator, BookedOutput):
        return {name: node.operator.output.data[name] for name in node.operator.booking.figures}
    times = node.operator.times.names if isinstance(node.operator, HistoryOutput) else ()
    named = {*(key_columns(plan, node) or ()), *times, *_names_of_records(plan)}
    return {name: type_ for name, type_ in figures(node.operator.output.data).items() if name not in named}


def figures(columns: Mapping[str, Type]) -> dict[str, Type]:
    """The columns of numbers whose names say neither that they identify something nor that they are a part of a date."""
    return {name: type_ for name, type_ in columns.items() if type_.kind in _NUMBERS and not (type_.kind is Kind.INT and (names_identity(name) or names_calendar(name)))}


def _names_of_records(plan: Plan) -> Iterator[str]:
    """The columns by which sources name their records and correlate them."""
    for node in plan.of_kind("source"):
        source = cast("SourceNode", node.operator).config
        yield from (*source.merge.primary_key, *source.correlation_key)


def _named(plan: Plan, node: Node) -> frozenset[str] | None:
    if node.is_source:
        source = cast("SourceNode", node.operator)
        return frozenset(source.config.merge.primary_key) if source.config.merge.primary_key else None
    if isinstance(node.operator, Aggregate):
        return frozenset(node.operator.groups)
    driver = _driver(node)
    if driver is None:
        return None
    above = _named(plan, plan[node.inputs[driver][0]])
    return None if above is None else _kept(node.operator, above)


def _driver(node: Node) -> int | None:
    """The number of the input whose rows a node keeps, one by one; None where it makes others."""
    operator = node.operator
    if isinstance(operator, Combine):
        one_each = operator.config.match != "all" and operator.output.key.parts == (operator.inputs[operator.driver].key,)
        return operator.driver if one_each else None
    keeps = operator.output.key == operator.inputs[0].key and not operator.joins_inputs and not isinstance(operator, BookedOutput)
    return 0 if keeps else None


def _kept(operator: Any, names: Collection[str]) -> frozenset[str] | None:
    """The columns of an operator that maps row by row which are these columns of its input, of a combine its driver; None where it lacks one."""
    if isinstance(operator, Output):
        return _shown({name: source for name, source, _ in operator.projection.written}, names)
    if isinstance(operator, Combine):
        driver = operator.qualifiers[operator.driver]
        if operator.body is None:
            return None if any(name in operator.qualifiers for name in names) else frozenset(names)
        return _shown(copies(operator.body), [f"{driver}.{name}" for name in names])
    program: Program | None = getattr(getattr(operator, "logic", None), "program", None)
    made = {} if program is None else origins(program).keys() - {name for name, source in copies(program).items() if name == source}
    return None if any(name in made for name in names) else frozenset(names)


def _shown(written: Mapping[str, str], names: Collection[str]) -> frozenset[str] | None:
    """The columns that are these ones of the input, the first of several; None where one has none."""
    shown = {source: name for name, source in reversed([*written.items()])}
    found = [shown.get(name) for name in names]
    return None if None in found else frozenset(cast("list[str]", found))
