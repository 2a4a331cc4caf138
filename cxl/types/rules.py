"""The result types of operators.

A rule returns None where it does not take the operands together. An unknown type (`Any`) never causes an error: an operator
gives null for a value of the wrong type.
"""

from collections.abc import Iterable
from dataclasses import replace

from cxl.types.types import ANY, BOOL, FLOAT, INT, MOST_DIGITS, NULL, NUMERIC, STRING, Kind, Type, combined, decimal_of, unify

_NUMBERS = (Kind.INT, Kind.FLOAT, Kind.NUMERIC)
_UNKNOWN = (Kind.ANY, Kind.NULL)
QUOTIENT_SCALE = 12
"""The scale that a quotient and a mean of Decimals have at least."""


def arithmetic(op: str, left: Type, right: Type) -> Type | None:
    """`+ - * / %` of numbers; `+` also of two strings."""
    if not (_takes(op, left) and _takes(op, right)):
        return None
    result = _arithmetic_base(op, left, right)
    return result.or_null if result and (_maybe_null(left) or _maybe_null(right)) else result


def _takes(op: str, type_: Type) -> bool:
    return type_.kind in _NUMBERS or type_.kind is Kind.DECIMAL or type_.kind in _UNKNOWN or (op == "+" and type_.kind is Kind.STRING)


def _maybe_null(type_: Type) -> bool:
    return type_.nullable or type_.kind in _UNKNOWN


def _arithmetic_base(op: str, left: Type, right: Type) -> Type | None:
    kinds = {left.kind, right.kind}
    if Kind.DECIMAL in kinds:
        return _decimal_base(op, left, right)
    if Kind.NULL in kinds:
        return (right if left.kind is Kind.NULL else left).base
    if Kind.STRING in kinds:
        return STRING if kinds <= {Kind.STRING, Kind.ANY} else None
    if Kind.FLOAT in kinds:
        return FLOAT
    if kinds == {Kind.INT}:
        return INT
    if left.holds_decimals or right.holds_decimals:
        return replace(ANY, holds_decimals=True)
    return ANY if kinds == {Kind.ANY} and op == "+" else NUMERIC


def _decimal_base(op: str, left: Type, right: Type) -> Type | None:
    """Of a Decimal with a number; None for a Float, and where a product has more than 38 digits behind the point."""
    kinds = {left.kind, right.kind}
    if kinds & {Kind.STRING, Kind.FLOAT}:
        return None
    if kinds & {Kind.ANY, Kind.NUMERIC}:
        return replace(ANY, holds_decimals=True)
    if op == "*":
        return None if left.scale + right.scale > MOST_DIGITS else decimal_of(left.scale + right.scale)
    return quotient(left, right) if op == "/" else decimal_of(max(left.scale, right.scale))


def quotient(*types: Type) -> Type:
    """Return the type of a quotient or a mean of Decimals and Ints."""
    return decimal_of(max(QUOTIENT_SCALE, *(type_.scale for type_ in types)))


def mixes(types: Iterable[Type]) -> bool:
    """Whether a Decimal and a Float are among the types, which never become one number."""
    return {type_.kind for type_ in types} >= {Kind.DECIMAL, Kind.FLOAT}


def comparison(op: str, left: Type, right: Type) -> Type | None:
    """`==` and the like, of types that unify. Arrays and maps have no order."""
    if unify(left, right) is None:
        return None
    if op not in ("==", "!=") and {left.kind, right.kind} & {Kind.ARRAY, Kind.MAP}:
        return None
    return BOOL.or_null if _maybe_null(left) or _maybe_null(right) else BOOL


def logical(left: Type, right: Type) -> Type | None:
    """`and`, `or`."""
    if not (is_condition(left) and is_condition(right)):
        return None
    return BOOL.or_null if _maybe_null(left) or _maybe_null(right) else BOOL


def is_condition(type_: Type) -> bool:
    """Whether a value of the type can be a condition: Bool, null or unknown."""
    return type_.kind is Kind.BOOL or type_.kind in _UNKNOWN


def negation(operand: Type) -> Type | None:
    """Unary `-`."""
    if operand.kind is Kind.ANY:
        return operand if operand.holds_decimals else NUMERIC.or_null
    return operand if operand.kind in (*_NUMBERS, Kind.DECIMAL, Kind.NULL) else None


def inversion(operand: Type) -> Type | None:
    """`not`."""
    if not is_condition(operand):
        return None
    return BOOL if operand == BOOL else BOOL.or_null


def join(left: Type, right: Type) -> Type:
    """Return the type of a value that has one of two types: branches, `??`. Any where they have nothing in common."""
    if NULL in (left, right):
        return (right if left == NULL else left).or_null
    kinds = {left.kind, right.kind}
    if len(kinds) == 1:
        kind = left.kind
    elif kinds == {Kind.INT, Kind.FLOAT}:
        kind = Kind.FLOAT
    elif kinds == {Kind.INT, Kind.DECIMAL}:
        kind = Kind.DECIMAL
    else:
        kind = Kind.NUMERIC if kinds <= set(_NUMBERS) else Kind.ANY
    return combined(kind, left, right)
