"""Checks of expectations against the rows of their node, and the choice of operators."""

from __future__ import annotations

from pydantic import BaseModel

from cxl.syntax.tables import readable
from cxl.types.types import Kind, type_name
from operators.core.binding import Binding, ConfigPath
from operators.core.operator import Operator
from operators.core.registry import node_type
from operators.core.settings import NodeSpec
from operators.expect.checks import has_columns, row_check
from operators.expect.config import Expectation, ExpectNode
from operators.expect.measures import CountMeasured, FreshnessMeasured, Measure
from operators.expect.rows import Accepted, Failing
from operators.expect.unique import AcceptedUnique, FailingUnique


@node_type("expect", BaseModel, config_optional=True, made=True)
def bind(spec: NodeSpec, binding: Binding) -> Operator | None:
    """Check the expectations of a node and give the operator of its role."""
    contract: ExpectNode = spec.config
    match contract.role:
        case "accepted" | "failing":
            return _of_rows(spec, contract, binding)
        case "accepted_unique" | "failing_unique":
            [placed] = contract.placed
            if not has_columns(placed.expectation, _place(contract, placed.position), binding):
                return None
            return AcceptedUnique(spec, binding.input) if contract.role == "accepted_unique" else FailingUnique(spec, binding.input)
        case "measure":
            return _measure(spec, contract, binding)
        case "measured":
            counts = contract.placed[0].expectation.row_count is not None
            return CountMeasured(spec, binding.input) if counts else FreshnessMeasured(spec, binding.input)


def _place(contract: ExpectNode, position: int) -> ConfigPath:
    """The path of an expectation from the node's path on."""
    return () if contract.beside else (position,)


def _of_rows(spec: NodeSpec, contract: ExpectNode, binding: Binding) -> Operator | None:
    """The operator for expectations of single rows."""
    checks = [row_check(spec, placed, _place(contract, placed.position), binding) for placed in contract.placed]
    sound = [one for one in checks if one is not None]
    if len(sound) < len(checks):
        return None
    return Accepted(spec, binding.input, sound) if contract.role == "accepted" else Failing(spec, binding.input, sound[0])


def _measure(spec: NodeSpec, contract: ExpectNode, binding: Binding) -> Operator | None:
    """The aggregate that keeps a figure."""
    [placed] = contract.placed
    one, place = placed.expectation, _place(contract, placed.position)
    text = "emit rows = count(*)"
    if one.freshness is not None:
        if not has_columns(one, place, binding) or not _is_time(one, place, binding):
            return None
        text = f"emit newest = max({one.freshness.column})"
    program = binding.compile(spec, place, text, "aggregate", group_by=(), generated=True)
    return None if program is None else Measure(spec, binding.input, program)


def _is_time(one: Expectation, place: ConfigPath, binding: Binding) -> bool:
    """Whether the column of a freshness holds times and CXL can name it; reports why not."""
    [name] = one.columns
    type_ = binding.input.data[name]
    good = type_.kind in (Kind.DATE, Kind.DATE_TIME) and readable(name)
    if not good and not binding.input.guessed:
        message = f"freshness needs a column of type date or date_time, and '{name}' is {type_name(type_)}"
        if type_.kind in (Kind.DATE, Kind.DATE_TIME):
            message = f"'{name}' is no name that CXL can read, which freshness needs"
        binding.problems.report("E283", message, (*place, "freshness", "column"), help="name another column, or make one in a transform")
    return good
