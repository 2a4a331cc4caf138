"""Checks of a combine node before it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cxl import Program
from cxl.syntax import ast
from cxl.types.types import ARRAY, OpenSchema, Schema, Type
from operators.combine.config import CombineConfig
from operators.combine.join_plan import Chain, make_chain, unplaced
from operators.combine.operator import Combine, Logic
from operators.core.binding import Binding
from operators.core.provisional import emitted
from operators.core.registry import node_type
from operators.core.row_type import RowType
from operators.core.settings import NodeSpec

MAX_INPUTS = 8


def _provisional(config: CombineConfig, inputs: Sequence[RowType]) -> Schema | None:
    found = emitted(config.cxl) if config.match != "collect" else None
    return Schema(found.items()) if found else None


@node_type("combine", CombineConfig, wiring="map", provisional=_provisional)
def bind(spec: NodeSpec, binding: Binding) -> Combine | None:
    """Check a combine and give its operator."""
    config: CombineConfig = spec.config
    qualifiers = [ref.qualifier or ref.node for ref in spec.inputs]
    driver = config.drive or qualifiers[0]
    good = [_few(qualifiers, binding), _good_driver(driver, qualifiers, binding), _good_body(spec, config, binding)]
    if not _good_names(qualifiers, binding):
        return None  # no expression can name such an input
    where, body = _compiled(spec, binding, qualifiers, driver)
    if where is None:
        return None
    chain = make_chain(where, qualifiers, driver if driver in qualifiers else qualifiers[0])
    good.append(_good_chain(spec, chain, where, binding, driven=driver in qualifiers))
    if not all(good) or (body is None and config.match != "collect"):
        return None
    data = _data(body, chain, dict(zip(qualifiers, binding.inputs, strict=True)), driver)
    return Combine(spec, binding.inputs, Logic(where, body, chain, data))


def _compiled(spec: NodeSpec, binding: Binding, qualifiers: Sequence[str], driver: str) -> tuple[Program | None, Program | None]:
    """Predicate and body; None for one that is wrong or not there."""
    config: CombineConfig = spec.config
    inputs = dict(zip(qualifiers, (row.data for row in binding.inputs), strict=True))
    where = binding.compile(spec, ("config", "where"), config.where, "predicate", schema=Schema(), inputs=inputs)
    if config.match == "collect" or not config.cxl.strip():
        return where, None
    if config.on_miss == "null_fields":
        inputs = {name: data if name == driver else data.with_fields({field: type_.or_null for field, type_ in data.items()}) for name, data in inputs.items()}
    body = binding.compile(spec, ("config", "cxl"), config.cxl, "combine", schema=Schema(), inputs=inputs)
    if body is not None and body.distinct:
        binding.problems.report("E312", "'distinct' does not belong into a combine's body", ("config", "cxl"), help="a transform behind the combine can drop duplicates")
        return where, None
    if body is not None and not body.output:
        binding.problems.report("E309", f"combine '{spec.name}' emits nothing", ("config", "cxl"), help="emit the fields of its output: emit name = qualifier.name")
        return where, None
    return where, body


def _few(qualifiers: Sequence[str], binding: Binding) -> bool:
    if len(qualifiers) > MAX_INPUTS:
        binding.problems.report("E300", f"{len(qualifiers)} inputs, {MAX_INPUTS} at most", ("input",), help="combine some of them ahead")
    return len(qualifiers) <= MAX_INPUTS


def _good_names(qualifiers: Sequence[str], binding: Binding) -> bool:
    wrong = [name for name in qualifiers if not (name.isidentifier() and name.isascii())]
    for name in wrong:
        binding.problems.report("E301", f"'{name}' cannot be the name of an input in CXL", ("input", name), help="letters, digits and _, not beginning with a digit", on_key=True)
    return not wrong


def _good_driver(driver: str, qualifiers: Sequence[str], binding: Binding) -> bool:
    if driver in qualifiers:
        return True
    known = f"inputs: {', '.join(qualifiers)}"
    binding.problems.report("E306", f"there is no input '{driver}' to drive the combine", ("config", "drive"), help=binding.problems.similar(driver, qualifiers) or known)
    return False


def _good_body(spec: NodeSpec, config: CombineConfig, binding: Binding) -> bool:
    """Whether there is a body exactly where there has to be one."""
    there = bool(config.cxl.strip())
    if config.match == "collect" and there:
        message = f"combine '{spec.name}': match: collect makes the output itself, so 'cxl' must be empty"
        binding.problems.report("E311", message, ("config", "cxl"), help="shape the collected rows in a transform behind the combine")
    if config.match != "collect" and not there and "match" not in spec.partial:  # it may have been meant as `collect`
        binding.problems.report("E309", f"combine '{spec.name}' emits nothing", ("config",), help="emit the fields of its output in 'cxl'")
    return there != (config.match == "collect")


def _good_chain(spec: NodeSpec, chain: Chain, where: Program, binding: Binding, *, driven: bool) -> bool:
    """Whether the predicate relates the inputs as it must. `driven`: whether the driver is one of them."""
    if chain.unrelated:
        names = ", ".join(f"'{name}'" for name in chain.unrelated)
        message = f"combine '{spec.name}': no comparison relates {names} to the other inputs"
        binding.problems.report("E305", message, ("config", "where"), help="compare a field with one of another input: a.id == b.id")
        return False
    if driven and spec.config.match == "collect" and any(True for _ in unplaced(chain, where)):
        message = f"combine '{spec.name}': under match: collect each input is compared with the driver '{chain.driver}' alone"
        binding.problems.report("E313", message, ("config", "where"))
        return False
    return True


def _data(body: Program | None, chain: Chain, inputs: Mapping[str, RowType], driver: str) -> Schema:
    """The output's columns: what the body emits, or the driver's columns and an array of rows for each build."""
    if body is None:
        return inputs[driver].data.with_fields({step.build: _array_of(inputs[step.build]) for step in chain.steps})
    whole = any(isinstance(one, ast.EmitAll) for one in body.syntax.statements)
    unknown = whole and any(isinstance(row.data, OpenSchema) for row in inputs.values())
    return OpenSchema(body.output.items()) if unknown else body.output


def _array_of(row: RowType) -> Type:
    """The type of an array of rows."""
    return replace(ARRAY, holds_decimals=any(type_.may_be_decimal for type_ in row.data.values()))
