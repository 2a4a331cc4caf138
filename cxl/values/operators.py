"""CXL's operators on Python values. Values of types that an operator does not take together give null."""

import math
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from cxl.values import decimals
from cxl.values.dynamic import canonical
from cxl.values.failure import division_by_zero, measured, overflow
from cxl.values.text import date_text, date_time_text

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
_NAMES = {"+": "addition", "-": "subtraction", "*": "multiplication", "/": "division", "%": "modulo"}


def _fits(value: int, op: str) -> int:
    if INT_MIN <= value <= INT_MAX:
        return value
    raise overflow(f"{_NAMES[op]} operation")


def is_number(value: Any) -> bool:
    """Whether it is an Int or a Float."""
    return type(value) is int or type(value) is float


def _meet(left: Any, right: Any) -> bool:
    """Whether it is a Decimal with a Decimal or an Int. Raises CxlFailure for a Decimal and a Float."""
    types = {type(left), type(right)}
    if Decimal not in types:
        return False
    if float in types:
        raise decimals.mixed()
    return types <= {Decimal, int}


def add(left: Any, right: Any) -> Any:
    """`+` of numbers, or of two strings."""
    if type(left) is int and type(right) is int:
        return _fits(left + right, "+")
    if is_number(left) and is_number(right):
        return left + right
    if type(left) is str and type(right) is str:
        measured(len(left) + len(right))
        return left + right
    return decimals.add(left, right) if _meet(left, right) else None


def subtract(left: Any, right: Any) -> Any:
    """`-` of numbers."""
    if type(left) is int and type(right) is int:
        return _fits(left - right, "-")
    if is_number(left) and is_number(right):
        return left - right
    return decimals.subtract(left, right) if _meet(left, right) else None


def multiply(left: Any, right: Any) -> Any:
    """`*` of numbers."""
    if type(left) is int and type(right) is int:
        return _fits(left * right, "*")
    if is_number(left) and is_number(right):
        return left * right
    return decimals.multiply(left, right) if _meet(left, right) else None


def divide(left: Any, right: Any) -> Any:
    """`/`. The quotient of two integers is truncated toward zero."""
    if not (is_number(left) and is_number(right)):
        return decimals.divide(left, right) if _meet(left, right) else None
    if right == 0:
        raise division_by_zero()
    if type(left) is int and type(right) is int:
        quotient = abs(left) // abs(right)
        return _fits(quotient if (left < 0) == (right < 0) else -quotient, "/")
    return left / right


def remainder(left: Any, right: Any) -> Any:
    """`%`. It has the sign of the dividend."""
    if not (is_number(left) and is_number(right)):
        return decimals.remainder(left, right) if _meet(left, right) else None
    if right == 0:
        raise division_by_zero()
    if type(left) is int and type(right) is int:
        rest = abs(left) % abs(right)
        return -rest if left < 0 else rest
    return math.nan if math.isinf(left) or math.isnan(left) else math.fmod(left, right)


def negate(value: Any) -> Any:
    """Unary `-`."""
    if type(value) is int and value == INT_MIN:
        raise overflow("negation operation")
    if type(value) is Decimal:
        return decimals.negate(value)
    return -value if is_number(value) else None


def invert(value: Any) -> Any:
    """`not`."""
    return (not value) if isinstance(value, bool) else None


# Comparison -------------------------------------------------------------------------------------------------------------


def equal(left: Any, right: Any) -> bool | None:
    """`==`. Null equals null; Decimals and Ints are equal by value; arrays and maps where their texts are."""
    if left is None or right is None:
        return None
    if is_number(left) and is_number(right):
        return bool(left == right) if type(left) is type(right) else float(left) == float(right)
    if type(left) is not type(right):
        return _meet(left, right) and bool(left == right)
    return canonical(left) == canonical(right) if isinstance(left, list | dict) else bool(left == right)


def unequal(left: Any, right: Any) -> bool | None:
    """`!=`: not `==`."""
    same = equal(left, right)
    return None if same is None else not same


def _ordering(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool | None]:
    def ordered(left: Any, right: Any) -> bool | None:
        if left is None or right is None:
            return None
        if type(left) is type(right):
            return False if isinstance(left, list | dict) else compare(left, right)
        if is_number(left) and is_number(right):
            return compare(float(left), float(right))
        return _meet(left, right) and compare(left, right)

    return ordered


def is_nan(value: Any) -> bool:
    """Whether it is NaN."""
    return type(value) is float and math.isnan(value)


def boxed(value: Any) -> Any:
    """Return a typed value as a dynamic one: dates and times become text, as in JSON."""
    if isinstance(value, datetime):
        return date_time_text(value)
    return date_text(value) if isinstance(value, date) else value


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": add, "-": subtract, "*": multiply, "/": divide, "%": remainder, "==": equal, "!=": unequal,
    "<": _ordering(lambda a, b: bool(a < b)), "<=": _ordering(lambda a, b: bool(a <= b)),
    ">": _ordering(lambda a, b: bool(a > b)), ">=": _ordering(lambda a, b: bool(a >= b)),
}  # fmt: skip
UNARY: dict[str, Callable[[Any], Any]] = {"-": negate, "not": invert}
