"""Statements, checked in order. Each sees the definitions before it."""

from collections.abc import Callable, Sequence
from typing import Any

from cxl.check import imports
from cxl.check.checker import Checker
from cxl.check.names import Scope, Variable
from cxl.diagnostics.diagnostics import Label, did_you_mean
from cxl.diagnostics.source import Span
from cxl.syntax import ast
from cxl.typed import tree
from cxl.types.types import Kind, element_of

Emitted = dict[str, Variable]


def check_statements(check: Checker, nodes: tuple[ast.Statement, ...], emitted: Emitted) -> tuple[tree.Statement, ...]:
    """Return the typed statements. Emitted names are added to `emitted`, in the order of first emit."""
    found: list[tree.Statement] = []
    for node in nodes:
        fits = not check.is_too_large
        if isinstance(node, ast.EmitAll):
            found.extend(_emit_all(check, node, emitted))
        elif (statement := _CHECKS[type(node)](check, node, emitted)) is not None:
            found.append(statement)
        if check.is_too_large:
            if fits and not check.findings.failed:
                check.too_large(node.span)
            break
    return tuple(found)


def _let(check: Checker, node: ast.Let, emitted: Emitted) -> tree.Statement:
    check.inside = "let"
    value = check.expr(node.value)
    slot = check.define(node.name, value.type, value).slot
    check.note("let", node.name_span, node.name, value.type, slot=slot)
    return tree.Let(node.span, node.name, slot, value)


def _emit(check: Checker, node: ast.Emit, emitted: Emitted) -> tree.Statement:
    check.inside, check.emitting = "emit", node.name
    value = check.expr(node.value)
    check.emitting = None
    if node.name in check.uses.emitted_all:
        _twice(check, [node.name], node.name_span)
    check.uses.emits.setdefault(node.name, node.name_span)
    variable = check.define(node.name, value.type, value)
    emitted[node.name] = variable
    check.note("emit", node.name_span, node.name, value.type, slot=variable.slot)
    check.uses.results.add(variable.slot)
    return tree.Emit(node.span, node.name, variable.slot, value)


def _emit_all(check: Checker, node: ast.EmitAll, emitted: Emitted) -> list[tree.Statement]:
    """An emit for each declared field of an input, in their order."""
    inputs = check.target.inputs if check.target.qualified_only else {}
    if node.name not in inputs:
        help = did_you_mean(node.name, inputs) or (f"inputs: {', '.join(inputs)}" if inputs else "elsewhere the fields of the input pass on by themselves")
        message = f"there is no input '{node.name}'" if inputs else "only the body of a combine emits all fields of an input"
        check.error("CXL-R012", message, node.name_span, help=help)
        return []
    if check.scope.outer is not None:
        check.error("CXL-R012", f"'emit {node.name}.*' does not belong into emit each", node.span, help="put it before the block")
        return []
    check.note("qualifier", node.name_span, node.name)
    span = Span(node.name_span.start, node.span.end)
    twice = [name for name in inputs[node.name] if name in check.uses.emits]
    if twice:
        _twice(check, twice, node.name_span)
    found: list[tree.Statement] = []
    for name in inputs[node.name]:
        value = check.resolver.qualified(node.name, name, span, span)
        variable = Variable(name, check.new_slot(), value.type) if name in inputs else check.define(name, value.type, value)
        emitted[name] = variable
        check.uses.emits.setdefault(name, node.name_span)
        check.uses.emitted_all.add(name)
        found.append(tree.Emit(node.span, name, variable.slot, value))
    return found


def _twice(check: Checker, names: Sequence[str], span: Span) -> None:
    """Report names that both `emit name.*` and another emit define, with both places."""
    shown = ", ".join(f"'{name}'" for name in names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    before = check.uses.emits[names[0]]
    help = "emit the fields that you need one by one, or give one of them another name"
    check.error("CXL-R011", f"{shown} emitted twice", span, help=help, labels=(Label(before, "emitted here first"),))


def _emit_meta(check: Checker, node: ast.EmitMeta, emitted: Emitted) -> tree.Statement:
    _refuse_in_aggregate(check, node, "emit meta")
    check.inside = "emit"
    value = check.expr(node.value)
    check.note("meta", node.name_span, node.name, value.type)
    return tree.EmitMeta(node.span, node.name, check.define(f"$meta.{node.name}", value.type, value).slot, value)


def _filter(check: Checker, node: ast.Filter, emitted: Emitted) -> tree.Statement:
    check.inside = "filter"
    return tree.Filter(node.span, check.condition(node.condition, "filter predicate"))


def _distinct(check: Checker, node: ast.Distinct, emitted: Emitted) -> tree.Statement:
    _refuse_in_aggregate(check, node, "distinct")
    if node.by is None:
        keys = tuple((name, variable.read(node.span)) for name, variable in emitted.items())
        fields = tuple((name, tree.Field(type_, node.span, name)) for name, type_ in check.target.schema.items())
        return tree.Distinct(node.span, None, keys or fields)  # before any emit, the fields that pass through are compared
    return tree.Distinct(node.span, node.by, ((node.by, check.expr(ast.Name(node.by_span, node.by))),))


def _trace(check: Checker, node: ast.Trace, emitted: Emitted) -> tree.Statement:
    check.inside = "let"
    guard = check.condition(node.guard, "the condition of trace") if node.guard else None
    return tree.Trace(node.span, node.level or "trace", guard, check.expr(node.message))


def _emit_each(check: Checker, node: ast.EmitEach, emitted: Emitted) -> tree.Statement:
    _refuse_in_aggregate(check, node, "emit each")
    check.inside = "let"
    source = check.expr(node.source)
    _check_source(check, node, source)
    outer, check.scope = check.scope, Scope(check.scope)
    binding = check.define_element(node.binding, element_of(source.type))
    body = check_statements(check, node.body, dict(emitted))
    check.scope = outer
    return tree.EmitEach(node.span, node.binding, binding.slot, source, node.outer, body)


def _check_source(check: Checker, node: ast.EmitEach, source: tree.Expr) -> None:
    allowed = (Kind.ARRAY, Kind.ANY, Kind.NULL) if node.outer else (Kind.ARRAY, Kind.ANY)
    if source.type.kind not in allowed:
        help = "an array, null or a value of type any" if node.outer else "an array or a value of type any; over null say outer"
        check.error("CXL-T009", f"emit each needs an array, got {source.type.base}", node.source.span, help=help)


def _use(check: Checker, node: ast.Use, emitted: Emitted) -> None:
    imports.use(check, node)


def _fn(check: Checker, node: ast.Fn, emitted: Emitted) -> None:
    if node.name in check.functions:
        check.error("CXL-R009", f"function '{node.name}' is defined twice", node.name_span)
    imports.define_function(check, node)


def _refuse_in_aggregate(check: Checker, node: ast.Statement, what: str) -> None:
    if check.target.mode == "aggregate":
        help = "put it into a transform before or behind the aggregate"
        check.error("CXL-A006", f"'{what}' is not permitted inside an aggregate", node.span, help=help)


_CHECKS: dict[type, Callable[[Checker, Any, Emitted], tree.Statement | None]] = {
    ast.Let: _let, ast.Emit: _emit, ast.EmitMeta: _emit_meta, ast.Filter: _filter, ast.Distinct: _distinct,
    ast.Trace: _trace, ast.EmitEach: _emit_each, ast.Use: _use, ast.Fn: _fn,
}  # fmt: skip
