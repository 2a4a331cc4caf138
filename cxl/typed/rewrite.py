"""Comparing and rewriting typed trees."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from cxl.functions.datetime.strftime import is_iso_date
from cxl.functions.registry import Builtin
from cxl.functions.spark_call import NOT_CONSTANT
from cxl.typed import tree
from cxl.types.types import Kind

_SKIPPED = ("span", "type")
_COMPUTED = (tree.Binary, tree.Unary, tree.Call)
_READS_DATES = ("to_date", "try_date")
_MEMBERS = {Kind.INT, Kind.STRING, Kind.DATE}
"""Kinds whose values compare in the same way where their type is known only at run time."""
_EXACT = 50
"""How many times more often the column of an exact result reads its parts than it names them."""


def shape(value: Any) -> Any:
    """Return an expression without its places. Expressions of equal shape compute the same."""
    if isinstance(value, tree.Binary):
        first, chain = tree.spine(value)
        return ("Binary", shape(first), *((link.op, shape(link.right)) for link in chain))
    if isinstance(value, tree.Literal):
        return ("Literal", value.type.kind, repr(value.value))
    if isinstance(value, tree.Promote):
        return ("Promote", value.type.kind, value.type.scale, shape(value.operand))
    if isinstance(value, tree.Expr | tree.Arm | tree.Entry):
        return (type(value).__name__, *(shape(getattr(value, part.name)) for part in fields(value) if part.name not in _SKIPPED))
    if isinstance(value, tuple):
        return tuple(shape(part) for part in value)
    return value.name if isinstance(value, Builtin) else value


def inline(expr: tree.Expr, definitions: Mapping[int, tree.Expr]) -> tree.Expr:
    """Return the expression with each defined variable replaced by its definition, at every depth."""
    if isinstance(expr, tree.Local):
        return inline(definitions[expr.slot], definitions) if expr.slot in definitions else expr
    if isinstance(expr, tree.Binary):
        first, chain = tree.spine(expr)
        value = inline(first, definitions)
        for link in chain:
            value = replace(link, left=value, right=inline(link.right, definitions))
        return value
    return _rebuilt(expr, definitions)


def without_text(call: tree.Call) -> tree.Call:
    """Return `x.to_date()` for `x.format_date("%Y-%m-%d").to_date()`, and any other call unchanged. Every date is read back from its ISO text."""
    written = call.receiver
    if call.name not in _READS_DATES or call.args or not isinstance(written, tree.Call) or written.name != "format_date":
        return call
    is_date = written.receiver.type.kind in (Kind.DATE, Kind.DATE_TIME)
    return replace(call, receiver=written.receiver) if is_date and _is_iso(written.args[0]) else call


@dataclass(frozen=True, slots=True)
class Membership:
    """`[1, 2].any(it => it == value)`: a comparison of a value with constants of its kind, none of them null. The element may be either operand."""

    constants: tuple[Any, ...]
    comparison: tree.Binary
    value: tree.Expr


def membership(call: tree.Call) -> Membership | None:
    """Return what a call of `any` compares with the elements of a literal; None for any other call."""
    if call.name != "any" or not isinstance(call.receiver, tree.Array) or not isinstance(call.args[0], tree.Closure):
        return None
    constants, compared = tuple(map(tree.constant, call.receiver.elements)), _compared(call.args[0])
    if compared is None or not constants or NOT_CONSTANT in constants:
        return None
    comparison, value = compared
    kinds = {one.type.kind for one in (*call.receiver.elements, value)}
    return Membership(constants, comparison, value) if len(kinds) == 1 and kinds <= _MEMBERS else None


def _compared(closure: tree.Closure) -> tuple[tree.Binary, tree.Expr] | None:
    """Return the comparison of the element with an operand that does not read it, and that operand; None for any other body."""
    body, slot = closure.body, closure.slot
    if not isinstance(body, tree.Binary) or body.op not in tree.COMPARISON:
        return None
    others = [side for side in (body.left, body.right) if not _is_local(side, slot)]
    return (body, others[0]) if len(others) == 1 and not any(_is_local(one, slot) for one in tree.walk(others[0])) else None


def _is_local(expr: tree.Expr, slot: int) -> bool:
    return isinstance(expr, tree.Local) and expr.slot == slot


def _is_iso(format_: tree.Expr) -> bool:
    return isinstance(format_, tree.Literal) and isinstance(format_.value, str) and is_iso_date(format_.value)


def weight(expr: tree.Expr, weights: dict[int, int]) -> int:
    """Return how many nodes an expression has where each variable is replaced by its definition.

    An expression that computes Decimals counts for many: its column reads its parts again and again, to find values that the engine cannot hold.
    `weights` has the weights of variables. The weights of variables that the expression binds are added to it.
    """
    found, exact = 0, False
    for node in tree.walk(expr):
        if isinstance(node, tree.Bind) and node.slot not in weights:
            weights[node.slot] = weight(node.value, weights)
        found += weights.get(node.slot, 1) if isinstance(node, tree.Local) else 1
        exact = exact or (isinstance(node, _COMPUTED) and node.type.kind is Kind.DECIMAL)
    return found * _EXACT if exact else found


def _rebuilt(expr: tree.Expr, definitions: Mapping[int, tree.Expr]) -> tree.Expr:
    changes: dict[str, Any] = {}
    for part in fields(expr):
        value = getattr(expr, part.name)
        if isinstance(value, tree.Expr):
            changes[part.name] = inline(value, definitions)
        elif part.name in ("args", "elements"):
            changes[part.name] = tuple(inline(one, definitions) for one in value)
        elif part.name == "entries":
            changes["entries"] = tuple(tree.Entry(inline(one.key, definitions), inline(one.value, definitions)) for one in value)
        elif part.name == "arms":
            changes["arms"] = tuple(_inline_arm(arm, definitions) for arm in value)
    return replace(expr, **changes) if changes else expr


def _inline_arm(arm: tree.Arm, definitions: Mapping[int, tree.Expr]) -> tree.Arm:
    pattern = inline(arm.pattern, definitions) if arm.pattern is not None else None
    return tree.Arm(pattern, inline(arm.result, definitions))
