"""From text to `Program`: parse, check, and split off what an operator computes."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

from cxl.check import split
from cxl.check.checker import Checker
from cxl.check.expressions import VISITORS
from cxl.check.imports import module_errors
from cxl.check.names import Resolver, defined_later
from cxl.check.statements import Emitted, check_statements
from cxl.diagnostics.diagnostics import CxlErrors, Diagnostic, Findings
from cxl.diagnostics.source import Origin, TextOrigin
from cxl.syntax.parse import Parsed, parse_expression, parse_program
from cxl.typed import tree
from cxl.typed.modules import Module, Modules
from cxl.typed.notes import Note
from cxl.typed.outputs import output_schemas
from cxl.typed.program import Program
from cxl.typed.target import Target
from cxl.types.types import Schema

_EXPRESSION_MODES = ("predicate", "expression", "set")


def compile_program(text: str, schema: Schema | None = None, *, origin: Origin | None = None, **settings: Any) -> Program:
    """Compile a text against a schema.

    The modes predicate, expression and set take one expression, the others statements. Raises `CxlErrors` with every independent error.

    Args:
        settings: Fields of `Target`: mode, system, inputs, modules, ...
    """
    return compile_for(text, Target(schema=schema if schema is not None else Schema(), **settings), origin)


def compile_for(text: str, target: Target, origin: Origin | None = None, *, notes: list[Note] | None = None) -> Program:
    """Compile a text against a target. Raises `CxlErrors`.

    Args:
        notes: Collects what the names of the text mean, also where it has errors.
    """
    bare = target.mode in _EXPRESSION_MODES
    parsed = parse_expression(text) if bare else parse_program(text)
    findings = Findings()
    findings.add(parsed.errors)
    home = origin or TextOrigin(text)
    program = _checked(text, parsed, target, findings, home, notes=notes) if parsed.statements or parsed.expression or not parsed.errors else None
    found = findings.located(text, home)
    if program is None or findings.failed:
        raise CxlErrors(one for one in found if one.severity == "error")
    return replace(program, warnings=found)


def _checked(text: str, parsed: Parsed, target: Target, findings: Findings, home: Origin, *, notes: list[Note] | None = None) -> Program:
    resolver = Resolver(target, findings, defined_later(parsed.statements))
    check = Checker(target, findings, resolver, VISITORS, notes=notes)
    emitted: Emitted = {}
    statements = check_statements(check, parsed.statements, emitted)
    expression = _expression(check, parsed)
    output, meta = output_schemas(statements, findings)
    program = Program(
        text, target.mode, target.schema, home, parsed, statements, expression, output, meta,
        tuple(check.uses.aggregates), tuple(check.uses.windows), slots=check.uses.slots, modules=tuple(check.uses.modules.values()),
    )  # fmt: skip
    return split.taken_apart(program, target, check)


def _expression(check: Checker, parsed: Parsed) -> tree.Expr | None:
    if parsed.expression is None:
        return None
    if check.target.mode == "predicate":
        return check.condition(parsed.expression, "filter predicate")
    return check.expr(parsed.expression)


def module_findings(module: Module, modules: Modules, notes: list[Note] | None = None) -> tuple[Diagnostic, ...]:
    """Return the errors of a module: of its text, its constants, and its functions with arguments of any type.

    Args:
        notes: Collects what the names of the module mean.
    """
    target = Target(modules=modules, mode="expression")
    findings = Findings()
    return module_errors(Checker(target, findings, Resolver(target, findings), VISITORS, module=module, notes=notes), module)


def notes_of(text: str, target: Target) -> tuple[Note, ...]:
    """Return what the names of a text mean, in the order in which they are checked, also where it has errors."""
    found: list[Note] = []
    with suppress(CxlErrors):
        compile_for(text, target, notes=found)
    return tuple(found)


def findings_of(text: str, target: Target, origin: Origin | None = None) -> tuple[Diagnostic, ...]:
    """Return the errors and warnings of a text; empty where there are none."""
    try:
        return compile_for(text, target, origin).warnings
    except CxlErrors as errors:
        return errors.diagnostics
