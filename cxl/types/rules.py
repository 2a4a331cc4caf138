"""The result types of operators.

A rule returns None where it does not take the operands together. An unknown type (`Any`) never causes an error: an operator
gives null for a value of the wrong type.
"""

from cxl.types.types import ANY, BOOL, FLOAT, INT, NULL, NUMERIC, STRING, Kind, Type, combined, unify

_NUMBERS = (Kind.INT, Kind.FLOAT, Kind.NUMERIC)
_UNKNOWN = (Kind.ANY, Kind.NULL)


def arithmetic(op: str, left: Type, right: Type) -> Type | None:
    """`+ - * / %` of numbers; `+` also of two strings."""
    if not (_takes(op, left) and _takes(op, right)):
        return None
    result = _arithmetic_base(op, left, right)
    return result.or_null if result and (_maybe_null(left) or _maybe_null(right)) else result


def _takes(op: str, type_: Type) -> bool:
    return type_.kind in _NUMBERS or type_.kind in _UNKNOWN or (op == "+" and type_.kind is Kind.STRING)


def _maybe_null(type_: Type) -> bool:
    return type_.nullable or type_.kind in _UNKNOWN


def _arithmetic_base(op: str, left: Type, right: Type) -> Type | None:
    kinds = {left.kind, right.kind}
    if Kind.NULL in kinds:
        return (right if left.kind is Kind.NULL else left).base
    if Kind.STRING in kinds:
        return STRING if kinds <= {Kind.STRING, Kind.ANY} else None
    if Kind.FLOAT in kinds:
        return FLOAT
    if kinds == {Kind.INT}:
        return INT
    return ANY if kinds == {Kind.ANY} and op == "+" else NUMERIC


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
        return NUMERIC.or_null
    return operand if operand.kind in _NUMBERS or operand.kind is Kind.NULL else None


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
