"""Checks of a transform node, and the choice of its operator.

Programs with `distinct` are in `operators.transform.distinct`, those with `$window` calls in `operators.transform.window.operator`.
"""

from __future__ import annotations

from collections.abc import Sequence

from cxl import Program
from cxl.types.types import ANY, Kind, Schema
from operators.core.binding import Binding
from operators.core.operator import Operator
from operators.core.provisional import emitted, with_emitted
from operators.core.registry import node_type
from operators.core.row_type import RowType
from operators.core.settings import NodeSpec
from operators.transform.checks import condition, missing_argument, unreadable
from operators.transform.config import TransformConfig
from operators.transform.operator import Transform, VolatileTransform
from operators.transform.row_logic import Check, Directive, RowLogic


def _provisional(config: TransformConfig, inputs: Sequence[RowType]) -> Schema | None:
    found = emitted(config.cxl)
    return None if found is None else inputs[0].data.with_fields(found)


@node_type("transform", TransformConfig, provisional=_provisional)
def bind(spec: NodeSpec, binding: Binding) -> Operator | None:
    """Check a transform and give its operator."""
    config: TransformConfig = spec.config
    over = binding.inputs[1].data if len(binding.inputs) > 1 else None
    program = binding.compile(spec, ("config", "cxl"), config.cxl, "row", window=config.analytic_window is not None, window_schema=over)
    schema = with_emitted(binding.input.data, config.cxl) if program is None else binding.input.data.with_fields(program.output)
    checks = _compiled_checks(spec, config, schema, binding)
    directives = _compiled_directives(spec, config, schema, binding)
    if not _looks_well(config, program, binding) or program is None or checks is None or directives is None:
        return None
    logic = RowLogic(spec, binding.input, program, checks, directives)
    if program.distinct or program.windows:
        return _over_several(spec, binding, logic)
    return Transform(spec, binding.input, logic) if logic.deterministic else VolatileTransform(spec, binding.input, logic)


def _looks_well(config: TransformConfig, program: Program | None, binding: Binding) -> bool:
    """Whether a program may look at other records as it does: over the window that is there, by `distinct`. `program`: None where it has problems itself."""
    good = _window_stands(config, program, binding)
    if program is None or not program.distinct:
        return good
    from operators.transform.distinct import refuses_distinct

    return not refuses_distinct(program, binding) and good


def _window_stands(config: TransformConfig, program: Program | None, binding: Binding) -> bool:
    """Whether the fields of a window are there, and its calls may stand over them."""
    if config.analytic_window is None:
        return True
    if program is not None and not program.windows and config.analytic_window.source is not None:
        help_text = "leave 'source' out, or call a $window function"
        binding.problems.report("E255", "no $window call reads the rows of this window", ("config", "analytic_window", "source"), help=help_text)
        return False
    from operators.transform.window.operator import check_window

    return check_window(config.analytic_window, program, binding)


def _over_several(spec: NodeSpec, binding: Binding, logic: RowLogic) -> Operator:
    """The operator of a program that looks at other records too."""
    from operators.transform.distinct import DistinctTransform
    from operators.transform.distinct_chain import DistinctChain
    from operators.transform.window.operator import bind_window

    program = logic.program
    if program.windows:
        return bind_window(spec, binding, logic)
    return (DistinctChain if len(program.distinct) > 1 else DistinctTransform)(spec, binding.input, logic)


def _compiled_directives(spec: NodeSpec, config: TransformConfig, schema: Schema, binding: Binding) -> list[Directive] | None:
    """The log directives with their conditions, over the records that come out; None when problems were reported."""
    found: list[Directive] = []
    for index, item in enumerate(config.log):
        unknown = [at for at, name in enumerate(item.fields) if name not in schema]
        for at in unknown:
            known = binding.problems.similar(item.fields[at], list(schema))
            binding.problems.report("E250", f"there is no field '{item.fields[at]}'", ("config", "log", index, "fields", at), help=known)
        place = ("config", "log", index, "condition")
        condition = None if item.condition is None else binding.compile(spec, place, item.condition, "predicate", schema=schema)
        if not unknown and (condition is not None or item.condition is None):
            found.append((item, condition))
    return found if len(found) == len(config.log) else None


def _compiled_checks(spec: NodeSpec, config: TransformConfig, schema: Schema, binding: Binding) -> list[Check] | None:
    """The validations with their conditions, over the records that come out; None when problems were reported."""
    checks: list[Check] = []
    for index, item in enumerate(config.validations):
        path = ("config", "validations", index, "check")
        seen = schema
        if unknown := item.field is not None and item.field not in schema:
            known = binding.problems.similar(item.field, list(schema))
            binding.problems.report("E250", f"there is no field '{item.field}'", ("config", "validations", index, "field"), help=known)
            seen = schema.with_fields({item.field: ANY})
        lacking = missing_argument(item.check, item.field, item.args)
        if lacking is not None:
            place = ("config", "validations", index, *(("args",) if item.args else ()))
            binding.problems.report("CFG-002", f"check '{item.check}' needs the argument '{lacking}'", place, help=f"args: {{{lacking}: ...}}")
            continue
        if unreadable(item.check, item.field):
            message, way_out = f"'{item.field}' is no name that CXL can read, which the check '{item.check}' needs", "give the column another name, at the source with source_name"
            binding.problems.report("E250", message, ("config", "validations", index, "field"), help=way_out)
            continue
        exact = item.field is not None and schema.get(item.field, ANY).kind is Kind.DECIMAL
        text = condition(item.check, item.field, item.args, exact=exact)
        compiled = binding.compile(spec, path, text, "predicate", schema=seen, generated=text != item.check)
        if compiled is not None and not unknown:
            checks.append((item, compiled))
    return checks if len(checks) == len(config.validations) else None
