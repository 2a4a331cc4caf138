"""Typed trees compared and rewritten."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from cxl import typed
from cxl.functions.registry import Builtin

_SKIPPED = ("span", "type")


def shape(value: Any) -> Any:
    """What an expression is, without its places: equal shapes compute the same."""
    if isinstance(value, typed.Binary):
        first, chain = typed.spine(value)
        return ("Binary", shape(first), *((link.op, shape(link.right)) for link in chain))
    if isinstance(value, typed.Literal):
        return ("Literal", value.type.kind, repr(value.value))
    if isinstance(value, typed.Expr | typed.Arm):
        return (type(value).__name__, *(shape(getattr(value, part.name)) for part in fields(value) if part.name not in _SKIPPED))
    if isinstance(value, tuple):
        return tuple(shape(part) for part in value)
    return value.name if isinstance(value, Builtin) else value


def inline(expr: typed.Expr, definitions: Mapping[int, typed.Expr]) -> typed.Expr:
    """The expression with each variable that is defined replaced by its definition, through and through."""
    if isinstance(expr, typed.Local):
        return inline(definitions[expr.slot], definitions) if expr.slot in definitions else expr
    if isinstance(expr, typed.Binary):
        first, chain = typed.spine(expr)
        value = inline(first, definitions)
        for link in chain:
            value = replace(link, left=value, right=inline(link.right, definitions))
        return value
    return _rebuilt(expr, definitions)


def weight(expr: typed.Expr, weights: dict[int, int]) -> int:
    """How many nodes an expression has where each variable is replaced by its definition.

    `weights` has the weights of variables. The function adds the weights of the variables that the expression binds.
    """
    found = 0
    for node in typed.walk(expr):
        if isinstance(node, typed.Bind) and node.slot not in weights:
            weights[node.slot] = weight(node.value, weights)
        found += weights.get(node.slot, 1) if isinstance(node, typed.Local) else 1
    return found


def _rebuilt(expr: typed.Expr, definitions: Mapping[int, typed.Expr]) -> typed.Expr:
    changes: dict[str, Any] = {}
    for part in fields(expr):
        value = getattr(expr, part.name)
        if isinstance(value, typed.Expr):
            changes[part.name] = inline(value, definitions)
        elif part.name == "args":
            changes["args"] = tuple(inline(arg, definitions) for arg in value)
        elif part.name == "arms":
            changes["arms"] = tuple(_inline_arm(arm, definitions) for arm in value)
    return replace(expr, **changes) if changes else expr


def _inline_arm(arm: typed.Arm, definitions: Mapping[int, typed.Expr]) -> typed.Arm:
    pattern = inline(arm.pattern, definitions) if arm.pattern is not None else None
    return typed.Arm(pattern, inline(arm.result, definitions))
