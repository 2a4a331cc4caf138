"""Expressions: from the syntax tree to the typed tree, with every error.

An expression with an error becomes a null literal of unknown type, so nothing that reads it reports an error too.
"""

from dataclasses import replace
from typing import Any

from cxl.check import advice, calls, decimals, imports
from cxl.check.checker import Checker, Visitors
from cxl.check.implicit import convert, same_number, same_patterns
from cxl.check.names import Scope, Variable, poison
from cxl.diagnostics.diagnostics import Label
from cxl.diagnostics.source import Span
from cxl.syntax import ast
from cxl.typed import tree
from cxl.types import rules
from cxl.types.types import ANY, ARRAY, BOOL, DATE, DATE_TIME, FLOAT, INT, MAP, NULL, STRING, Kind, Type, decimal_of, unify
from cxl.values.decimals import scale_of

_LITERALS: dict[str, Type] = {"int": INT, "float": FLOAT, "string": STRING, "date": DATE, "bool": BOOL, "null": NULL}
_HOLDERS = (Kind.MAP, Kind.ARRAY, Kind.ANY, Kind.NULL)


def _literal(check: Checker, node: ast.Literal) -> tree.Expr:
    """A constant."""
    type_ = decimal_of(scale_of(node.value)) if node.kind == "decimal" else _LITERALS[node.kind]
    return tree.Literal(type_, check.at(node.span), node.value)


def _now(check: Checker, node: ast.Now) -> tree.Expr:
    """`now`."""
    return tree.System(DATE_TIME, check.at(node.span), "now", ())


def _wildcard(check: Checker, node: ast.Wildcard) -> tree.Expr:
    """`_` outside of a pattern."""
    return check.error("CXL-P010", "'_' is only a pattern of match", node.span)


def _name(check: Checker, node: ast.Name) -> tree.Expr:
    """A bare name."""
    variable = check.scope.find(node.name)
    if variable is not None and not _is_result(check, variable):
        check.note("local", node.span, node.name, variable.type, slot=variable.slot)
        return variable.read(check.at(node.span))
    if check.module is not None and node.name in check.module.constants:
        value = imports.constant(check, check.module, node.name, node.span)
        check.note("constant", node.span, node.name, value.type)
        return value
    span = check.at(node.span)
    found = check.resolver.field(node.name, span)
    if found is None:
        return check.resolver.unknown(node.name, span, check.scope, emits=node.name == check.emitting)
    check.note_field(node.span, found)
    return found


def _is_result(check: Checker, variable: Variable) -> bool:
    """Whether a variable is a value of the group where one of a record is needed: `emit qty = sum(qty)`, then `max(qty)`."""
    return check.inside == "aggregate" and check.target.mode == "aggregate" and variable.slot in check.uses.results


def _unary(check: Checker, node: ast.Unary) -> tree.Expr:
    """`-x`, `not x`."""
    operand = check.expr(node.operand)
    rule = rules.negation if node.op == "-" else rules.inversion
    type_ = rule(operand.type)
    if type_ is None:
        wanted = "a number" if node.op == "-" else "Bool"
        return check.error(
            "CXL-T004", f"cannot apply '{node.op}' to {operand.type.base}", node.span, help=f"the operand must be {wanted}"
        )
    return tree.Unary(type_, check.at(node.span), "-" if node.op == "-" else "not", operand)


# Operators ----------------------------------------------------------------------------------------------------------


def _binary(check: Checker, node: ast.Binary) -> tree.Expr:
    """A chain, from the inside out, without recursion."""
    chain = [node]
    while isinstance(chain[-1].left, ast.Binary):
        chain.append(chain[-1].left)
    value: tree.Expr | None = check.expr(chain[-1].left)
    for link in reversed(chain):
        right = check.expr(link.right)
        value = None if value is None else _operation(check, link, value, right)
    return poison(check.at(node.span)) if value is None else value


def _operation(check: Checker, node: ast.Binary, left: tree.Expr, right: tree.Expr) -> tree.Expr | None:
    """The typed operation; None where the operands do not go together, so that the rest of the chain reports nothing."""
    type_ = _operation_type(check, node.op, left.type, right.type)
    if type_ is None:
        _operand_error(check, node, left, right)
        return None
    if node.op not in ("and", "or"):
        left, right = same_number(left, right)
    op: Any = node.op
    return tree.Binary(type_, check.at(node.span), op, left, right)


def _operation_type(check: Checker, op: str, left: Type, right: Type) -> Type | None:
    if op in tree.ARITHMETIC:
        return rules.arithmetic(op, left, right)
    return rules.comparison(op, left, right) if op in tree.COMPARISON else rules.logical(left, right)


def _operand_error(check: Checker, node: ast.Binary, left: tree.Expr, right: tree.Expr) -> None:
    if decimals.refuse_floats(check, f"'{node.op}'", [(node.left, left), (node.right, right)], node.op_span):
        return
    if decimals.refuse_product(check, node, left.type, right.type):
        return
    shown = f"{left.type.base} and {right.type.base}"
    labels = (Label(node.left.span, str(left.type.base)), Label(node.right.span, str(right.type.base)))
    help = advice.for_operands(node.op, left.type, right.type)
    check.error("CXL-T004", f"cannot apply '{node.op}' to {shown}", node.op_span, help=help, labels=labels)


def _coalesce(check: Checker, node: ast.Coalesce) -> tree.Expr:
    """`left ?? right`."""
    left, right = check.expr(node.left), check.expr(node.right)
    if decimals.refuse_floats(check, "'??'", [(node.left, left), (node.right, right)], node.op_span):
        return poison(check.at(node.span))
    type_ = right.type if left.type == NULL else rules.join(left.type.base, right.type)
    return tree.Coalesce(type_, check.at(node.span), convert(left, type_.or_null), convert(right, type_))


def _conditional(check: Checker, node: ast.If) -> tree.Expr:
    """`if condition then value else alternative`."""
    condition = check.condition(node.condition, "the condition of if")
    then = check.expr(node.then)
    otherwise = check.expr(node.otherwise) if node.otherwise else tree.Literal(NULL, check.at(node.span), None)
    if node.otherwise and decimals.refuse_floats(check, "branches", [(node.then, then), (node.otherwise, otherwise)]):
        return poison(check.at(node.span))
    type_ = rules.join(then.type, otherwise.type)
    return tree.If(type_, check.at(node.span), condition, convert(then, type_), convert(otherwise, type_))


# Match --------------------------------------------------------------------------------------------------------------


def _match(check: Checker, node: ast.Match) -> tree.Expr:
    """`match`, in both forms."""
    subject = check.expr(node.subject) if node.subject else None
    arms = [tree.Arm(_pattern(check, arm, node.subject, subject), check.expr(arm.result)) for arm in node.arms]
    if all(arm.pattern is not None for arm in arms):
        help = "add '_ => default' as the last arm"
        return check.error(
            "CXL-T007", "match must have a '_' arm that catches the rest", Span(node.span.start, node.span.start + 5), help=help
        )
    last = next(index for index, arm in enumerate(arms) if arm.pattern is None)
    if last < len(arms) - 1:
        check.findings.warning("CXL-L002", "this arm is never reached: '_' stands before it", check.at(node.arms[last + 1].span))
    return _typed_match(check, node, subject, arms[: last + 1])


def _typed_match(check: Checker, node: ast.Match, subject: tree.Expr | None, arms: list[tree.Arm]) -> tree.Expr:
    if decimals.refuse_floats(check, "results", [(one.result, arm.result) for one, arm in zip(node.arms, arms, strict=False)]):
        return poison(check.at(node.span))
    type_ = arms[0].result.type
    for arm in arms[1:]:
        type_ = rules.join(type_, arm.result.type)
    if subject is not None:
        subject, arms = same_patterns(subject, arms)
    done = tuple(replace(arm, result=convert(arm.result, type_)) for arm in arms)
    return tree.Match(type_, check.at(node.span), subject, done)


def _pattern(check: Checker, arm: ast.Arm, subject_node: ast.Expr | None, subject: tree.Expr | None) -> tree.Expr | None:
    if isinstance(arm.pattern, ast.Wildcard):
        return None
    if subject is None or subject_node is None:
        return check.condition(arm.pattern, "a condition of match")
    pattern = check.expr(arm.pattern)
    if decimals.refuse_floats(check, "subject and pattern", [(subject_node, subject), (arm.pattern, pattern)]):
        return poison(check.at(arm.pattern.span))
    if unify(subject.type, pattern.type) is None:
        labels = (Label(subject_node.span, str(subject.type.base)),)
        message = f"cannot match {subject.type.base} with a pattern of type {pattern.type.base}"
        return check.error("CXL-T004", message, arm.pattern.span, labels=labels, help="subject and patterns must have one type")
    return pattern


# Paths --------------------------------------------------------------------------------------------------------------


def _index(check: Checker, node: ast.Index) -> tree.Expr:
    """`receiver[index]`."""
    receiver, index = check.expr(node.receiver), check.expr(node.index)
    if receiver.type.kind not in _HOLDERS:
        return check.error("CXL-T011", f"cannot index {receiver.type.base}", node.receiver.span, help="arrays and maps can be indexed")
    return tree.Index(ANY, check.at(node.span), receiver, index)


def _member(check: Checker, node: ast.Member) -> tree.Expr:
    """`receiver.name`: a member of a map, a system variable, a field of an input, or of a window row."""
    root, path = _system_path(node)
    if root is not None:
        return _system_member(check, root, path)
    declared = _declared_path(check, node)
    if declared is not None:
        return declared
    if isinstance(node.receiver, ast.Name) and _is_qualifier(check, node.receiver.name):
        return _qualified(check, node.receiver, node.name, node, node.name_span)
    if calls.is_row_call(node.receiver):
        return calls.window_row(check, node.receiver, node.name, node.name_span)
    return _map_member(check, node)


def _declared_path(check: Checker, node: ast.Member) -> tree.Expr | None:
    """The field whose whole name is the path: `address.city` where the schema declares `address.city` and `address` is no variable."""
    names = _plain_path(node)
    if names is None or check.scope.find(names[0]) is not None:
        return None
    if _is_qualifier(check, names[0]):
        rest = ".".join(names[1:])
        known = len(names) > 2 and rest in check.target.inputs[names[0]]
        first = _first_member(node)
        return _qualified(check, first.receiver, rest, node, Span(first.name_span.start, node.name_span.end)) if known else None
    whole = ".".join(names)
    found = check.resolver.field(whole, check.at(node.span)) if check.resolver.declares(whole) else None
    if found is not None:
        check.note_field(node.span, found)
    return found


def _first_member(node: ast.Member) -> ast.Member:
    """The innermost link of a chain of members: `a.b` of `a.b.c`."""
    while isinstance(node.receiver, ast.Member):
        node = node.receiver
    return node


def _qualified(check: Checker, qualifier: Any, name: str, node: ast.Member, name_span: Span) -> tree.Expr:
    """A field of an input, with its qualifier."""
    check.note("qualifier", qualifier.span, qualifier.name)
    found = check.resolver.qualified(qualifier.name, name, check.at(node.span), check.at(node.name_span))
    check.note_field(name_span, found, qualifier.name)
    return found


def _is_qualifier(check: Checker, name: str) -> bool:
    return name in check.target.inputs and check.scope.find(name) is None


def _map_member(check: Checker, node: ast.Member) -> tree.Expr:
    receiver = check.expr(node.receiver)
    if receiver.type.kind not in _HOLDERS:
        help = f"a method has parentheses: .{node.name}()"
        return check.error("CXL-T011", f"{receiver.type.base} has no member '{node.name}'", node.name_span, help=help)
    return tree.Member(ANY, check.at(node.span), receiver, node.name)


def _system_member(check: Checker, root: ast.SystemRoot, path: list[ast.Member]) -> tree.Expr:
    value: tree.Expr
    written = check.scope.find(f"$meta.{path[0].name}") if root.namespace == "meta" else None
    if written is not None:
        value, used = written.read(check.at(path[0].span)), 1
    else:
        value, used = check.resolver.system(root, [(link.name, check.at(link.name_span)) for link in path])
    if used and not isinstance(value, tree.Literal):
        check.note("system", root.span.to(path[used - 1].name_span), ".".join((root.namespace, *(link.name for link in path[:used]))), value.type)
    for link in path[used:]:
        value = tree.Member(ANY, check.at(link.span), value, link.name)
    return value


def _system_root(check: Checker, node: ast.SystemRoot) -> tree.Expr:
    """A namespace without a member."""
    return check.resolver.system(node, [])[0]


def _system_path(node: ast.Member) -> tuple[ast.SystemRoot | None, list[ast.Member]]:
    """The root and the members of `$namespace.a.b`, outermost last; no root where the chain starts with something else."""
    path = [node]
    while isinstance(path[-1].receiver, ast.Member):
        path.append(path[-1].receiver)
    root = path[-1].receiver
    return (root if isinstance(root, ast.SystemRoot) else None), path[::-1]


def _plain_path(node: ast.Member) -> list[str] | None:
    """The names of `a.b.c`; None where the chain starts with something else."""
    names = [node.name]
    receiver = node.receiver
    while isinstance(receiver, ast.Member):
        names.append(receiver.name)
        receiver = receiver.receiver
    return [receiver.name, *reversed(names)] if isinstance(receiver, ast.Name) else None


# Arrays and maps ----------------------------------------------------------------------------------------------------


def _array(check: Checker, node: ast.Array) -> tree.Expr:
    """`[a, b]`."""
    elements = tuple(check.expr(one) for one in node.elements)
    return tree.Array(_holding(ARRAY, *elements), check.at(node.span), elements)


def _holding(type_: Type, *parts: tree.Expr) -> Type:
    """The type of an array or a map that is made of values."""
    return replace(type_, holds_decimals=any(part.type.may_be_decimal for part in parts))


def _comprehension(check: Checker, node: ast.Comprehension) -> tree.Expr:
    """`[element for name in source if condition]`."""
    source = check.expr(node.source)
    outer, inside = check.scope, check.inside
    check.scope, check.inside = Scope(check.scope), "comprehension" if inside == "emit" else inside
    slot = check.define_element(node.name, _holding(ANY, source)).slot
    condition = None if node.condition is None else check.condition(node.condition, "the condition of a comprehension")
    element = check.expr(node.element)
    check.scope, check.inside = outer, inside
    if source.type.kind not in (Kind.ARRAY, Kind.ANY, Kind.NULL):
        help = "the source is an array, or a value of type any"
        return check.error("CXL-T014", f"a comprehension needs an array, got {source.type.base}", node.source.span, help=help)
    type_ = ARRAY.or_null if source.type.nullable or source.type.kind is not Kind.ARRAY else ARRAY
    return tree.Comprehension(_holding(type_, element), check.at(node.span), slot, source, condition, element)


def _map(check: Checker, node: ast.Map) -> tree.Expr:
    """`{key: value}`."""
    written: dict[str, Span] = {}
    for entry in node.entries:
        if not entry.computed and isinstance(entry.key, ast.Literal):
            _written_once(check, entry.key, written)
    entries = tuple(tree.Entry(_key(check, entry), check.expr(entry.value)) for entry in node.entries)
    return tree.Map(_holding(MAP, *(entry.value for entry in entries)), check.at(node.span), entries)


def _written_once(check: Checker, key: ast.Literal, written: dict[str, Span]) -> None:
    if key.value in written:
        labels = (Label(written[key.value], "written here first"),)
        check.error("CXL-P015", f"the key '{key.value}' stands twice in this map", key.span, help="leave one of them out", labels=labels)
    written.setdefault(key.value, key.span)


def _key(check: Checker, entry: ast.Entry) -> tree.Expr:
    key = check.expr(entry.key)
    if key.type.kind in (Kind.STRING, Kind.ANY) and not (isinstance(key, tree.Literal) and key.value is None and key.type != ANY):
        return key
    return check.error("CXL-T015", f"a key of a map must be a String, got {key.type.base}", entry.key.span, help=advice.for_value(key.type, (STRING,)))


VISITORS: Visitors = {
    ast.Literal: _literal, ast.Now: _now, ast.Wildcard: _wildcard, ast.Name: _name,
    ast.Unary: _unary, ast.Binary: _binary, ast.Coalesce: _coalesce, ast.If: _conditional,
    ast.Match: _match, ast.Index: _index, ast.Member: _member, ast.SystemRoot: _system_root,
    ast.Array: _array, ast.Comprehension: _comprehension, ast.Map: _map,
    ast.MethodCall: calls.method, ast.FreeCall: calls.free, ast.ModuleMember: imports.module_member,
}  # fmt: skip
