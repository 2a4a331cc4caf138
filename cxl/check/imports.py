"""Functions and constants of `use` and `fn`, inlined where they are used.

A body is checked with parameters of any type at its definition, and with the arguments' types at each call. Errors in an
inlined body are reported at the call.
"""

from dataclasses import dataclass

from cxl.check import advice
from cxl.check.checker import Checker
from cxl.check.names import Resolver, Scope, poison
from cxl.diagnostics.diagnostics import Diagnostic, Findings, did_you_mean
from cxl.diagnostics.source import Span
from cxl.syntax import ast
from cxl.typed import tree
from cxl.typed.modules import Module, ModuleMissing
from cxl.typed.target import Target
from cxl.types.types import ANY, Type


def use(check: Checker, node: ast.Use) -> None:
    """Define the alias of a module. The module's own errors become the program's."""
    alias = node.alias or node.path[-1]
    check.aliases[alias] = None
    try:
        module = check.target.modules.load(node.path)
    except ModuleMissing as missing:
        check.error("CXL-R006", f"unknown module '{'.'.join(node.path)}'", node.span, help=str(missing))
        return
    check.aliases[alias] = module
    check.note("module", node.span, module.name)
    check.uses.modules[module.name] = module
    check.findings.add(module_errors(check, module))


def _check_definitions(check: Checker, module: Module, findings: Findings) -> None:
    """Check the definitions of a module. Calls of functions with errors report nothing more."""
    before = check.uses.parts
    own = check.module is module  # else the module is another text than the program
    for constant in module.constants.values():
        check.uses.parts = 0
        inner = _inner(check, module, findings, f"{module.name}::{constant.name}", noting=own)
        inner.note("let", constant.name_span, constant.name, inner.expr(constant.value).type)
    for function in module.functions.values():
        key, found = f"{module.name}::{function.name}", Findings()
        check.uses.parts = 0
        _define_params(_inner(check, module, found, key, noting=own), function, None).expr(function.body)
        findings.add(found.all)
        check.uses.broken |= {key} if found.failed else set()
    check.uses.parts = before


def module_errors(check: Checker, module: Module) -> tuple[Diagnostic, ...]:
    """Return the errors of a module by itself."""
    findings = Findings()
    findings.add(module.errors)
    _check_definitions(check, module, findings)
    return findings.located("", module.origin)


def define_function(check: Checker, node: ast.Fn) -> None:
    """Define a function of the program, and check it with parameters of any type."""
    check.functions[node.name] = node
    found, before = Findings(), check.uses.parts
    check.uses.parts = 0
    _define_params(_inner(check, None, found, node.name, noting=True), node, None).expr(node.body)
    check.uses.parts = before
    check.findings.add(found.all)
    check.uses.broken |= {node.name} if found.failed else set()


def _inner(check: Checker, module: Module | None, findings: Findings, key: str, place: Span | None = None, *, noting: bool = False) -> Checker:
    """A checker for a body. It sees parameters, the module's constants and functions, and no fields.

    Args:
        noting: Whether the body is a part of the text whose names are noted.
    """
    target = Target(system=check.target.system, modules=check.target.modules, mode="expression")
    inner = Checker(target, findings, Resolver(target, findings), check.visitors, uses=check.uses, place=place, module=module)
    inner.functions = module.functions if module else check.functions
    inner.aliases = {} if module else check.aliases
    inner.calling = (*check.calling, key)
    inner.notes = check.notes if noting else None
    return inner


def _define_params(inner: Checker, function: ast.Fn, types: tuple[Type, ...] | None) -> Checker:
    inner.scope = Scope()
    for index, name in enumerate(function.params):
        inner.define(name, types[index] if types else ANY)
    return inner


def constant(check: Checker, module: Module, name: str, span: Span) -> tree.Expr:
    """Return the value of a module's constant."""
    key = f"{module.name}::{name}"
    if key in check.calling:
        return check.error("CXL-R009", f"constant '{name}' depends on itself", span)
    inner = _inner(check, module, Findings(), key, check.at(span))
    value = inner.expr(module.constants[name].value)
    if any(found.code == "CXL-R009" for found in inner.findings.all):
        return check.error("CXL-R009", f"constant '{name}' depends on itself", span)
    return poison(check.at(span)) if inner.findings.failed else value


def module_member(check: Checker, node: ast.ModuleMember) -> tree.Expr:
    """`alias::constant` or `alias::function(args)`."""
    if node.alias not in check.aliases:
        help = did_you_mean(node.alias, check.aliases) or f"use a.module as {node.alias}"
        return check.error("CXL-R006", f"unknown module '{node.alias}'", node.alias_span, help=help)
    module = check.aliases[node.alias]
    check.note("alias", node.alias_span, node.alias)
    if module is None:
        return poison(check.at(node.span))
    value = _member_of(check, module, node)
    check.note("member", node.name_span, node.name, value.type, qualifier=node.alias)
    return value


def _member_of(check: Checker, module: Module, node: ast.ModuleMember) -> tree.Expr:
    shown = f"{node.alias}::{node.name}"
    if node.args is None and node.name in module.constants:
        return constant(check, module, node.name, node.span)
    if node.args is not None and node.name in module.functions:
        return function_call(check, module.functions[node.name], CallSite(shown, node.args, node.name_span, node.span, module))
    if node.name in module.names:
        kind = f"function: {shown}(...)" if node.name in module.functions else "constant: leave the parentheses out"
        return check.error("CXL-R007", f"'{shown}' is used as what it is not", node.name_span, help=f"{shown} is a {kind}")
    return check.error(
        "CXL-R007", f"module '{module.name}' has no '{node.name}'", node.name_span, help=did_you_mean(node.name, module.names)
    )


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call of a function. `module`: the module of the function, None for the program's own."""

    shown: str
    args: tuple[ast.Expr, ...]
    name_span: Span
    span: Span
    module: Module | None


def function_call(check: Checker, function: ast.Fn, site: CallSite) -> tree.Expr:
    """Return the body of a function with its arguments bound once each."""
    values = [check.expr(arg) for arg in site.args]
    key = f"{site.module.name}::{function.name}" if site.module else function.name
    if len(values) != len(function.params):
        message = f"function '{site.shown}' takes {advice.counted(len(function.params))}, got {len(values)}"
        return check.error("CXL-T003", message, site.name_span, help=f"fn {function.name}({', '.join(function.params)})")
    if key in check.calling:
        return check.error("CXL-R009", f"function '{site.shown}' calls itself", site.name_span, help="functions cannot be recursive")
    if check.is_too_large:
        return check.too_large(site.span)
    if key in check.uses.broken:
        check.uses.broken.update(check.calling)  # the types of its callers are unknown too
        return poison(check.at(site.span))
    return _inlined(check, function, values, site, key)


def _inlined(check: Checker, function: ast.Fn, values: list[tree.Expr], site: CallSite, key: str) -> tree.Expr:
    place = check.at(site.span)
    scratch = Findings()
    inner = _define_params(_inner(check, site.module, scratch, key, place), function, tuple(value.type for value in values))
    slots = [variable.slot for variable in inner.scope.own.values()]
    body = inner.expr(function.body)
    if scratch.failed:
        first = next(found for found in scratch.located("", None) if found.severity == "error")
        if check.is_too_large:
            return check.too_large(site.span)
        return check.error(first.code, f"in {site.shown}: {first.message}", site.span, help=first.help)
    for slot, value in reversed(list(zip(slots, values, strict=True))):
        body = tree.Bind(body.type, place, slot, value, body)
    return body
