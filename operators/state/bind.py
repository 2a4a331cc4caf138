"""State nodes: records pass unchanged and write scoped variables.

Each record carries a variable as its own pass left it. Where an assignment reads an earlier value (`$pipeline.total + this.v`, `first(this.f)`), the
records of a scope pass one at a time, in the order of their keys, and a change reaches all later records. All other assignments are functions of the record.
"""

from __future__ import annotations

from dataclasses import replace

from cxl import Program
from cxl.typed.target import PIPELINE, SOURCE
from cxl.types.types import Kind, Type
from operators.core.binding import Binding
from operators.core.registry import node_type
from operators.core.settings import NodeSpec
from operators.state.assignments import Writes, expression_of
from operators.state.config import StateConfig
from operators.state.operator import PassingState, PlainState

_BUILT_IN = {"pipeline": frozenset(PIPELINE), "source": frozenset(SOURCE), "record": frozenset()}


@node_type("state", StateConfig)
def bind(spec: NodeSpec, binding: Binding) -> PlainState | PassingState | None:
    """Check a state node and give its operator."""
    config: StateConfig = spec.config
    if config.phase == "init" and config.scope != "pipeline":
        binding.problems.report("E206", f"an init phase has no {config.scope} scope", ("config", "scope"), help="scope: pipeline")
    parts = _assignments(spec, binding)
    if len(parts) < len(config.set) or (config.phase == "init" and config.scope != "pipeline"):
        return None
    writes = Writes(spec.name, config.scope, tuple(parts))
    made = PlainState if writes.plain and writes.deterministic else PassingState
    return made(spec, binding.input, writes)


def _assignments(spec: NodeSpec, binding: Binding) -> list[tuple[str, Type, Program]]:
    """Return the assignments without problems. An unknown variable is reported where it is written, not where it is read as well."""
    config: StateConfig = spec.config
    known = binding.variables.of(config.scope)
    unknown = [name for name in config.variables if name not in known]
    for index, one in enumerate(config.set):
        if one.var in unknown:
            _unknown(binding, config.scope, one.var, ("config", "set", index, "var"))
    seeing = replace(binding, variables=binding.variables.taking(config.scope, unknown))
    return [part for index, one in enumerate(config.set) if (part := _assignment(spec, seeing, index, known.get(one.var))) is not None]


def _assignment(spec: NodeSpec, binding: Binding, index: int, type_: Type | None) -> tuple[str, Type, Program] | None:
    """A checked assignment to a variable of a type (None: there is no such variable); None when problems were reported."""
    config: StateConfig = spec.config
    one, place = config.set[index], ("config", "set", index)
    program = binding.compile(spec, (*place, "cxl"), one.cxl, "set", inputs={"this": binding.input.data})
    if program is None or type_ is None:
        return None
    given = expression_of(program).type
    if not _holds(type_, given):
        message = f"'${config.scope}.{one.var}' is {type_.base}, the expression gives {given.base}"
        help_text = f"convert it to {type_.base}, or declare the variable as {given.base}"
        if (type_.kind, given.kind) == (Kind.DECIMAL, Kind.DECIMAL):
            help_text = f"round it: .round_to({type_.scale}), or declare the variable as {given.base}"
        binding.problems.report("E207", message, (*place, "cxl"), help=help_text)
        return None
    return one.var, type_, program


def _unknown(binding: Binding, scope: str, name: str, place: tuple[str | int, ...]) -> None:
    if name in _BUILT_IN[scope]:
        binding.problems.report("E202", f"'{name}' is a built-in member of ${scope}; nothing can write it", place, help="declare a variable of another name, and write that")
    elif f"{scope}.{name}" in binding.variables.unexposed:
        help_text = "declare it in the composition's _compose.scoped_vars"
        binding.problems.report("E173", f"composition body writes parent-scope variable '${scope}.{name}'", place, help=help_text)
    else:
        declare = f"declare it in pipeline.vars.{scope}"
        known = list(binding.variables.of(scope))
        binding.problems.report("E200", f"unknown {scope} variable '{name}'", place, help=binding.problems.similar(name, known) or declare)


def _holds(wanted: Type, given: Type) -> bool:
    """Whether a variable may be given values of a type; dynamic ones are looked at record by record."""
    if wanted.kind is Kind.DECIMAL:
        return given.kind in (Kind.ANY, Kind.NULL, Kind.NUMERIC, Kind.INT) or (given.kind is Kind.DECIMAL and given.scale <= wanted.scale)
    if given.kind in (Kind.ANY, Kind.NULL, wanted.kind):
        return True
    return (wanted.kind, given.kind) in ((Kind.FLOAT, Kind.INT), (Kind.FLOAT, Kind.NUMERIC), (Kind.INT, Kind.NUMERIC))
