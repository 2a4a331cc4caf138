"""Calls of methods, aggregates and window functions."""

from dataclasses import replace
from typing import Any, TypeGuard

from cxl.check import advice, decimals
from cxl.check.checker import Checker
from cxl.check.imports import CallSite, function_call
from cxl.check.names import Scope, poison
from cxl.diagnostics import foreign_words
from cxl.diagnostics.diagnostics import did_you_mean
from cxl.diagnostics.source import Span
from cxl.functions import re2
from cxl.functions.registry import Builtin, Param, accepts, names, overloads
from cxl.syntax import ast
from cxl.typed import tree
from cxl.typed.rewrite import inline, shape
from cxl.types import rules
from cxl.types.types import ANY, INT, NULL, Kind, Type, element_of

ROW_FUNCTIONS = ("first", "last", "lag", "lead")
"""Window functions that return a row, from which a field is read."""
_AGGREGATE_MODES = ("aggregate", "set")


def method(check: Checker, node: ast.MethodCall) -> tree.Expr:
    """`receiver.name(args)`."""
    if isinstance(node.receiver, ast.SystemRoot):
        return _system_call(check, node, node.receiver)
    found = overloads(node.name)
    receiver = check.expr(node.receiver)
    if not found:
        help = foreign_words.help_for(node.name) or did_you_mean(node.name, names()) or "cxl fn lists the methods"
        check.error("CXL-T001", f"unknown method '{node.name}'", node.name_span, help=help)
        return _checked_arguments(check, node)
    fitting = tuple(entry for entry in found if receiver.type == NULL or accepts(entry.receiver or ANY, receiver.type))
    if not fitting:
        return _receiver_error(check, node, found, receiver.type)
    return _method_call(check, node, _by_closure(fitting, node.args), receiver)


def _checked_arguments(check: Checker, node: ast.MethodCall) -> tree.Expr:
    for arg in node.args:
        if not isinstance(arg, ast.Closure):
            check.expr(arg)
    return poison(check.at(node.span))


def _by_closure(found: tuple[Builtin, ...], args: tuple[ast.Expr | ast.Closure, ...]) -> tuple[Builtin, ...]:
    """The builtins that take a closure where the first argument is one, else the others; all where none fits."""
    given = bool(args) and isinstance(args[0], ast.Closure)
    return tuple(entry for entry in found if bool(entry.params and entry.params[0].closure) == given) or found


def _receiver_error(check: Checker, node: ast.MethodCall, found: tuple[Builtin, ...], type_: Type) -> tree.Expr:
    _checked_arguments(check, node)
    types = tuple(dict.fromkeys(one for entry in found for one in _types(entry.receiver or ANY)))
    wanted = " or ".join(one.kind.value for one in types)
    message = f"method '{node.name}' expects {wanted}, got {type_.base}"
    help = advice.for_value(type_, types) or f"'{node.name}' is a method of {wanted}"
    return check.error("CXL-T002", message, node.name_span, help=help)


def _types(accepted: Type | tuple[Type, ...]) -> tuple[Type, ...]:
    return accepted if isinstance(accepted, tuple) else (accepted,)


def _method_call(check: Checker, node: ast.MethodCall, found: tuple[Builtin, ...], receiver: tree.Expr) -> tree.Expr:
    entry = found[0]
    args = _arguments(check, entry, node.args, f"method '{node.name}'", node.name_span, element=element_of(receiver.type))
    if args is None or decimals.refuse_scale(check, entry, receiver.type, node, args):
        check.note("method", node.name_span, node.name, builtins=found)
        return poison(check.at(node.span))
    parts = [(node.receiver, receiver), *zip(node.args, args, strict=True)]
    if entry.unites and decimals.refuse_floats(check, f"'{node.name}'", parts):
        return poison(check.at(node.span))
    type_ = _call_type(found, receiver.type, args)
    check.note("method", node.name_span, node.name, type_, builtins=found)
    return tree.Call(type_, check.at(node.span), node.name, found, receiver, args)


def _call_type(found: tuple[Builtin, ...], receiver: Type, args: tuple[tree.Expr, ...]) -> Type:
    types = tuple(arg.type for arg in args)
    constants = tuple(map(tree.constant, args))
    type_ = _result(found[0], receiver, types, constants)
    for entry in found[1:]:
        type_ = rules.join(type_, _result(entry, receiver, types, constants))
    if all(entry.takes_null for entry in found):
        return type_
    values = [receiver, *(arg.type for arg in args if not isinstance(arg, tree.Closure))]
    return type_.or_null if any(one.nullable or one.kind in (Kind.ANY, Kind.NULL) for one in values) else type_


def _result(entry: Builtin, receiver: Type, args: tuple[Type, ...], constants: tuple[Any, ...]) -> Type:
    """The type of a call; that of a Decimal has its scale by the values of literal arguments."""
    type_ = entry.result(receiver.base, args)
    if type_.kind is not Kind.DECIMAL or entry.scale is None:
        return type_
    return replace(type_, scale=entry.scale(receiver.scale, constants))


# Arguments --------------------------------------------------------------------------------------------------------------


def _arguments(
    check: Checker, entry: Builtin, nodes: tuple[ast.Expr | ast.Closure, ...], what: str, span: Span, *, element: Type = ANY
) -> tuple[tree.Expr, ...] | None:
    """The typed arguments of a call; None where one has an error, or where there are too few or too many."""
    if not _number_fits(check, entry, len(nodes), what, span):
        for node in nodes:
            if not isinstance(node, ast.Closure):
                check.expr(node)
        return None
    args = [_argument(check, entry.param(index), node, what, element) for index, node in enumerate(nodes)]
    return None if any(arg is None for arg in args) else tuple(arg for arg in args if arg is not None)


def _number_fits(check: Checker, entry: Builtin, given: int, what: str, span: Span) -> bool:
    most = entry.most
    if given >= entry.required and (most is None or given <= most):
        return True
    if most == entry.required:
        wanted = advice.counted(most)
    else:
        wanted = f"at least {entry.required}" if most is None else f"{entry.required} to {most} arguments"
    check.error("CXL-T003", f"{what} takes {wanted}, got {given}", span, help=entry.signature)
    return False


def _argument(check: Checker, param: Param, node: ast.Expr | ast.Closure, what: str, element: Type) -> tree.Expr | None:
    if isinstance(node, ast.Closure):
        return _closure(check, param, node, what, element)
    value = check.expr(node)
    if param.closure is not None:
        check.error("CXL-T010", f"{what} takes a closure", node.span, help="write it => ...")
        return None
    if not param.takes(value.type):
        wanted = _types(param.accepts)
        message = f"{what} expects {' or '.join(one.kind.value for one in wanted)} for '{param.name}', got {value.type.base}"
        check.error("CXL-T005", message, node.span, help=advice.for_value(value.type, wanted))
        return None
    return value if not param.regex or _regex_fits(check, value, node, what) else None


def _regex_fits(check: Checker, value: tree.Expr, node: ast.Expr, what: str) -> bool:
    if not isinstance(node, ast.Literal) or not isinstance(value, tree.Literal) or value.type == ANY:
        if isinstance(value, tree.Literal) and value.value is None:
            return True
        check.error(
            "CXL-T008", f"the regex of {what} must be a string literal", node.span, help="patterns are checked before any record is read"
        )
        return False
    reason = re2.problem(value.value) if value.value is not None else None
    if reason:
        check.error("CXL-T008", f"invalid regex: {reason}", node.span, help="RE2 syntax: no look-around, no back-references")
    return reason is None


def _closure(check: Checker, param: Param, node: ast.Closure, what: str, element: Type) -> tree.Expr | None:
    if param.closure is None:
        check.error("CXL-T010", f"{what} takes no closure", node.span, help="closures are for filter, map, find, any and flat_map")
        return None
    outer, check.scope = check.scope, Scope(check.scope)
    variable = check.define_element("it", element)
    wants_bool = param.closure.kind is Kind.BOOL
    body = check.condition(node.body, f"the closure of {what}") if wants_bool else check.expr(node.body)
    check.scope = outer
    return tree.Closure(body.type, check.at(node.span), variable.slot, body)


# Aggregates -------------------------------------------------------------------------------------------------------------


def free(check: Checker, node: ast.FreeCall) -> tree.Expr:
    """`name(args)`: a function of this module, or an aggregate."""
    if node.name in check.functions:
        site = CallSite(node.name, node.args, node.name_span, node.span, check.module)
        value = function_call(check, check.functions[node.name], site)
        check.note("function", node.name_span, node.name, value.type)
        return value
    found = overloads(node.name, "aggregate")
    if found:
        value = _aggregate(check, node, found[0])
        check.note("aggregate", node.name_span, node.name, value.type, builtins=found[:1])
        return value
    for arg in node.args:
        check.expr(arg)
    help = foreign_words.help_for(node.name) or did_you_mean(node.name, [*check.functions, *names("aggregate")])
    if overloads(node.name):
        help = f"'{node.name}' is a method: value.{node.name}(...)"
    return check.error(
        "CXL-R008", f"unknown function '{node.name}'", node.name_span, help=help or "functions of modules are written alias::name(...)"
    )


def _aggregate(check: Checker, node: ast.FreeCall, entry: Builtin) -> tree.Expr:
    refusal = _aggregate_refusal(check, node.name)
    if refusal is not None:
        code, message, help = refusal
        return check.error(code, message, node.name_span, help=help)
    if node.star and not entry.star:
        return check.error("CXL-T005", f"aggregate function '{node.name}' expects an expression, got '*'", node.name_span)
    before, check.inside = check.inside, "aggregate"
    star = entry.star and (node.star or not node.args)
    args = () if star else _arguments(check, entry, node.args, f"aggregate function '{node.name}'", node.name_span)
    check.inside = before
    if args and entry.unites and decimals.refuse_floats(check, f"'{node.name}'", [*zip(node.args, args, strict=True)]):
        return poison(check.at(node.span))
    if args is None or _read_elements(check, args, f"aggregate function '{node.name}'"):
        return poison(check.at(node.span))
    return _aggregate_use(check, node, entry, args, star)


def _read_elements(check: Checker, args: tuple[tree.Expr, ...], what: str) -> bool:
    """Report an argument that reads the element of an array around the call. Arguments are computed for each row, which has no such value."""
    nodes = [node for arg in args for node in tree.walk(arg)]
    bound = {node.slot for node in nodes if isinstance(node, tree.Closure | tree.Comprehension)}
    found = next((node for node in nodes if isinstance(node, tree.Local) and node.slot in check.uses.elements - bound), None)
    if found is not None:
        check.error("CXL-R003", f"'{found.name}' is not defined in the rows that {what} reads", found.span, help="an argument reads fields, not the elements of an array")
    return found is not None


def _aggregate_refusal(check: Checker, name: str) -> tuple[str, str, str] | None:
    """Why an aggregate call is not allowed here: code, message, help."""
    shown = f"aggregate function '{name}'"
    if check.target.mode not in _AGGREGATE_MODES:
        return "CXL-A001", f"{shown} is not allowed in a row-level program", "use an aggregate node, or $window functions"
    if check.inside == "aggregate":
        return "CXL-A004", f"{shown} cannot be nested inside another aggregate", ""
    if check.inside == "comprehension":
        return "CXL-A004", f"{shown} cannot stand in the element or the condition of a comprehension", "it can stand in the source: emit it before, and read it here"
    if check.inside == "filter":
        return (
            "CXL-A002",
            f"{shown} is not allowed in a filter: filters apply before grouping",
            "filter in a transform behind the aggregate",
        )
    if check.inside == "let":
        return "CXL-A003", f"{shown} is not allowed in let: a let of an aggregate is computed for each row", "put the call into the emit"
    return None


def _aggregate_use(check: Checker, node: ast.FreeCall, entry: Builtin, args: tuple[tree.Expr, ...], star: bool) -> tree.Expr:
    uses, span, columns = check.uses.aggregates, check.at(node.span), _columns(check, args)
    for use in uses:
        if (use.function.name, use.star, use.columns) == (entry.name, star, columns):
            return tree.Result(use.type, span, use.column)
    type_ = INT if star else _use_type(entry, args)
    uses.append(tree.AggregateUse(f"__agg_{len(uses)}", columns, entry, args, star, type_, span))
    return tree.Result(type_, span, uses[-1].column)


def _columns(check: Checker, args: tuple[tree.Expr, ...]) -> tuple[str, ...]:
    """The columns of the arguments of a call. Arguments of equal shape have one column."""
    known = check.uses.arguments
    return tuple(known.setdefault(repr(shape(arg)), f"{tree.ARGUMENT}{len(known)}") for arg in args)


def _use_type(entry: Builtin, args: tuple[tree.Expr, ...]) -> Type:
    """The type of an aggregate or window call."""
    type_ = entry.result(NULL, tuple(arg.type for arg in args))
    holds = type_.is_dynamic and any(arg.type.may_be_decimal for arg in args)
    return replace(type_, holds_decimals=True) if holds else type_


# Windows ----------------------------------------------------------------------------------------------------------------


def is_row_call(node: ast.Expr) -> TypeGuard[ast.MethodCall]:
    """Whether it is `$window.lag(n)` or another call that returns a row."""
    is_window = isinstance(node, ast.MethodCall) and isinstance(node.receiver, ast.SystemRoot) and node.receiver.namespace == "window"
    return is_window and isinstance(node, ast.MethodCall) and node.name in ROW_FUNCTIONS


def _system_call(check: Checker, node: ast.MethodCall, root: ast.SystemRoot) -> tree.Expr:
    if root.namespace != "window":
        check.resolver.system(root, [(node.name, check.at(node.name_span))])
        return check.error("CXL-R005", f"'${root.namespace}.{node.name}' is no function", node.name_span, help="leave the parentheses out")
    if is_row_call(node):
        return _bare_row_call(check, node)
    return _window_call(check, node, None)


def _bare_row_call(check: Checker, node: ast.MethodCall) -> tree.Expr:
    """A row without a field: the field has the name that is being emitted, if there is such a field."""
    target = check.target
    if not target.window or (check.emitting is not None and _row_value(check, check.emitting, node.span) is not None):
        return _window_call(check, node, check.emitting)
    help = f"write $window.{node.name}(...).field"
    return check.error("CXL-W003", f"'$window.{node.name}' gives a row: name the field that is read", node.name_span, help=help)


def window_row(check: Checker, node: ast.MethodCall, member: str, span: Span) -> tree.Expr:
    """`$window.lag(1).amount`."""
    target = check.target
    if target.window and _row_value(check, member, span) is None:
        help = did_you_mean(member, target.window_schema or target.schema)
        return check.error("CXL-R001", f"unknown field '{member}' in the rows of the window", span, help=help)
    value = _window_call(check, node, member)
    variable = check.scope.find(member) if target.window_schema is None else None
    if variable is not None:
        check.note("local", span, member, variable.type, slot=variable.slot)
    elif target.window:
        check.note("field" if target.window_schema is None else "window field", span, member, value.type)
    return value


def _row_value(check: Checker, name: str, span: Span) -> tree.Expr | None:
    """The value of a name in the window's rows. In the program's own rows, a variable defined before hides the input field."""
    variable = check.scope.find(name) if check.target.window_schema is None else None
    if variable is not None:
        return inline(variable.read(check.at(span)), check.definitions)
    type_ = check.target.row_field(name)
    return None if type_ is None else tree.Field(type_, check.at(span), name)


def _window_call(check: Checker, node: ast.MethodCall, member: str | None) -> tree.Expr:
    found = overloads(node.name, "window")
    if not found:
        help = did_you_mean(node.name, names("window"))
        return check.error("CXL-W002", f"unknown window function '$window.{node.name}'", node.name_span, help=help)
    check.note("window", node.name_span, node.name, builtins=found[:1])
    if not check.target.window:
        help = "declare analytic_window in the transform"
        return check.error("CXL-W001", f"'$window.{node.name}' needs a window", node.name_span, help=help)
    if check.inside == "window":
        return check.error("CXL-W004", f"'$window.{node.name}' cannot stand inside another window call", node.name_span)
    args = _window_arguments(check, found[0], node)
    if args is None or _read_elements(check, args, f"window function '{node.name}'"):
        return poison(check.at(node.span))
    return _window_use(check, node, found[0], args, member)


def _window_arguments(check: Checker, entry: Builtin, node: ast.MethodCall) -> tuple[tree.Expr, ...] | None:
    """The typed arguments, read from the window's rows. In rows other than the program's own, names are fields only."""
    outer, resolver, scope = check.inside, check.resolver, check.scope
    check.inside = "window"
    if check.target.window_schema is not None:
        check.resolver = replace(resolver, target=replace(check.target, schema=check.target.window_schema), later={})
        check.scope = Scope()
    args = _arguments(check, entry, node.args, f"window function '{node.name}'", node.name_span)
    check.inside, check.resolver, check.scope = outer, resolver, scope
    return args


def _window_use(check: Checker, node: ast.MethodCall, entry: Builtin, args: tuple[tree.Expr, ...], member: str | None) -> tree.Expr:
    uses, span = check.uses.windows, check.at(node.span)
    args = tuple(inline(arg, check.definitions) for arg in args)
    type_ = _use_type(entry, args)
    value = None if member is None else _row_value(check, member, node.span)
    type_ = (type_ if member is None else ANY if value is None else value.type).or_null
    is_made = value is not None and not isinstance(value, tree.Field)
    args = (*args, value) if value is not None and is_made else args
    columns = _columns(check, args)
    member = columns[-1] if is_made else value.name if isinstance(value, tree.Field) else member
    for use in uses:
        if (use.function.name, use.member, use.columns) == (entry.name, member, columns):
            return tree.Result(use.type, span, use.column)
    uses.append(tree.WindowUse(f"__win_{len(uses)}", columns, entry, args, member, type_, span))
    return tree.Result(type_, span, uses[-1].column)
