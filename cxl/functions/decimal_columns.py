"""Decimals in columns of an engine: only what Spark and Sail compute alike, and exactly.

Both add, subtract and multiply exactly where operands and result have a type that holds every digit: at most 38. So operands get
narrower types, whose results always fit, and a value that needs more digits becomes null. The interpreter
evaluates the rows of such nulls (`cxl.functions.spark_call.Unsure`). Sums, products and remainders of 37 digits, which is every
amount of money there is, are computed here.

Both engines round casts to fewer digits half away from zero, and cut quotients differently, so those are checked by their remainder.
Spark's own `-x` and `abs` keep 34 digits.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from cxl.functions.spark_call import NOT_CONSTANT
from cxl.types.rules import QUOTIENT_SCALE
from cxl.types.types import MOST_DIGITS, Kind, Type
from cxl.values import decimals

_INT_DIGITS = 19
_WIDEST = MOST_DIGITS - 1
"""The digits of an operand whose sum with another one has at most 38."""


@dataclass(frozen=True, slots=True)
class Number:
    """A Decimal or an Int in a column.

    Args:
        scale: The digits behind the point.
        digits: How many digits a value has at most, at this scale.
    """

    f: Any
    value: Any
    scale: int
    digits: int

    @classmethod
    def of(cls, f: Any, value: Any, type_: Type, constant: Any = NOT_CONSTANT) -> "Number":
        """Return a column of Decimals or Ints; of a literal with the number of its digits."""
        if constant is not NOT_CONSTANT and constant is not None:
            digits = max(len(str(abs(decimals.units_of(constant, type_.scale)))), 1)
            return cls(f, _literal(f, decimals.rounded(constant, type_.scale)), type_.scale, digits)
        if type_.kind is Kind.INT:
            return cls(f, value.cast(_named(_INT_DIGITS, 0)), 0, _INT_DIGITS)
        return cls(f, value, type_.scale, MOST_DIGITS)

    @property
    def whole_digits(self) -> int:
        """How many digits a value has before the point, at most."""
        return max(self.digits - self.scale, 0)

    def within(self, whole_digits: int) -> Any:
        """Return the column in a type with a number of digits before the point; null where a value has more."""
        type_ = _named(max(whole_digits + self.scale, 1), self.scale)
        return self.value.cast(type_) if self.whole_digits <= whole_digits else self.value.try_cast(type_)

    def at_scale(self, scale: int) -> Any:
        """Return the column at a scale that is not less; null where a value does not fit."""
        if scale == self.scale and self.digits == MOST_DIGITS:
            return self.value
        type_ = _named(MOST_DIGITS, scale)
        return self.value.cast(type_) if self.whole_digits + scale <= MOST_DIGITS else self.value.try_cast(type_)

    def fitted(self, scale: int) -> Any:
        """Return the same for a comparison of any kind. Sail compares the number itself with a literal in the place of a bare cast of it, also where the cast is null."""
        found = self.at_scale(scale)
        return found if self.always_fits(scale) else not_null(self.f, found)

    def always_fits(self, scale: int) -> bool:
        """Whether every value fits at a scale."""
        return scale == self.scale or self.whole_digits + scale <= MOST_DIGITS


def not_null(f: Any, cast: Any) -> Any:
    """Return a cast that may be null or lose digits, in a form that Sail does not take apart beside a literal."""
    return f.when(cast.isNotNull(), cast)


def _named(precision: int, scale: int) -> str:
    return f"decimal({precision},{scale})"


def _literal(f: Any, value: Decimal) -> Any:
    return f.lit(decimals.text_of(value)).cast(_named(MOST_DIGITS, decimals.scale_of(value)))


def constant(f: Any, units: int, precision: int, scale: int) -> Any:
    """Return a literal of a type."""
    return f.lit(decimals.text_of(decimals.of_units(units, scale))).cast(_named(precision, scale))


# Arithmetic: null where the result is not sure, None where there is no column ---------------------------------------------
def arithmetic(op: str, left: Number, right: Number) -> Any:
    """Return `+ - * / %` of Decimals and Ints."""
    if op in ("+", "-"):
        return _sum(op, left, right)
    if op == "*":
        return _product(left, right)
    return _quotient(left, right) if op == "/" else _remainder(left, right)


def _sum(op: str, left: Number, right: Number) -> Any:
    scale = max(left.scale, right.scale)
    whole = _WIDEST - scale
    if whole < 1:
        return None
    one, other = left.within(whole), right.within(whole)
    return (one + other if op == "+" else one - other).cast(_named(MOST_DIGITS, scale))


def _product(left: Number, right: Number) -> Any:
    """The product's type has the digits of both factors and one more."""
    scale = left.scale + right.scale
    room = _WIDEST - scale
    of_left, of_right = _divided(room, left, right)
    if of_left < 1 or of_right < 1:
        return None
    return (left.within(of_left) * right.within(of_right)).cast(_named(MOST_DIGITS, scale))


def _divided(room: int, left: Number, right: Number) -> tuple[int, int]:
    """The digits before the point that each of two numbers gets: what one does not need, the other has."""
    half = room // 2
    if left.whole_digits <= half:
        need = max(left.whole_digits, 1)
        return need, room - need
    need = max(min(right.whole_digits, room - half), 1)
    return room - need, need


def _not_zero(number: Number, column: Any) -> Any:
    return number.f.when(column != constant(number.f, 0, MOST_DIGITS, number.scale), column)


def _remainder(left: Number, right: Number) -> Any:
    scale = max(left.scale, right.scale)
    whole = _WIDEST - scale
    if whole < 1:
        return None
    type_ = _named(_WIDEST, scale)
    divisor = _not_zero(right, right.within(whole))
    return (left.within(whole).cast(type_) % divisor.cast(type_)).cast(_named(MOST_DIGITS, scale))


_QUOTIENT_ROOM = 36
_SMALLEST_DIVISOR = 5
"""Digits for which a quotient's type has the six places behind the point that Spark wants at least."""


def _quotient(left: Number, right: Number) -> Any:
    """The whole quotient of numbers without a point, which both engines divide exactly once the remainder is taken away."""
    f, scale, common = left.f, max(QUOTIENT_SCALE, left.scale, right.scale), max(left.scale, right.scale)
    of_left, of_right = _divided(_QUOTIENT_ROOM - scale - 2 * common, left, right)
    of_divisor = max(of_right + common, _SMALLEST_DIVISOR)
    of_left = min(of_left, _QUOTIENT_ROOM - of_divisor - common - scale)
    if of_left < 1 or of_right < 1 or 2 * scale >= _WIDEST:
        return None
    of_dividend = of_left + common + scale
    divisor = _without_point(right, of_right, common, common, of_divisor)
    dividend = _without_point(left, of_left, common, common + scale, of_dividend)
    divisor = f.when(divisor != constant(f, 0, of_divisor, 0), divisor)
    rest = (dividend % divisor).cast(_named(of_divisor, 0))
    whole = ((dividend - rest) / divisor).cast(_named(of_dividend, 0))
    twice, size = f.abs(rest + rest), f.abs(divisor)
    is_odd = (whole % constant(f, 2, 1, 0)) != constant(f, 0, 1, 0)
    is_up = (twice > size) | ((twice == size) & is_odd)
    away = f.when((dividend < 0) == (divisor < 0), constant(f, 1, 1, 0)).otherwise(constant(f, -1, 1, 0))
    nearest = f.when(is_up, whole + away).otherwise(whole).try_cast(_named(_WIDEST - scale, 0))
    return (nearest * constant(f, 1, scale, scale)).cast(_named(MOST_DIGITS, scale))


def _without_point(number: Number, whole_digits: int, common: int, power: int, digits: int) -> Any:
    """A number times a power of ten, which leaves no digit behind the point."""
    fitted = number.within(whole_digits).cast(_named(whole_digits + common, common))
    return (fitted * constant(number.f, 10**power, power + 1, 0)).cast(_named(digits, 0))


def negated(number: Number) -> Any:
    """Return the number with the other sign; None where there is no column."""
    whole = _WIDEST - number.scale
    if whole < 0:
        return None
    return (constant(number.f, 0, _WIDEST, number.scale) - number.value.try_cast(_named(_WIDEST, number.scale))).cast(_named(MOST_DIGITS, number.scale))


# Comparing: always sure ---------------------------------------------------------------------------------------------------
def less(left: Number, right: Number, or_equal: bool = False) -> Any:
    """Return whether the left number is less, by value; null where one is null."""
    f, scale = left.f, max(left.scale, right.scale)
    one, other = left.at_scale(scale), right.at_scale(scale)
    found = one <= other if or_equal else one < other
    if not left.always_fits(scale):  # a number that does not fit is beyond all that do
        found = f.when(one.isNotNull(), found).otherwise(f.when(other.isNotNull(), left.value < 0))
    elif not right.always_fits(scale):
        found = f.when(other.isNotNull(), found).otherwise(f.when(one.isNotNull(), right.value > 0))
    return found


def equal(left: Number, right: Number) -> Any:
    """Return whether two numbers are equal, by value; null where one is null."""
    f, scale = left.f, max(left.scale, right.scale)
    one, other = left.at_scale(scale), right.at_scale(scale)
    if left.always_fits(scale) and right.always_fits(scale):
        return one == other
    both = left.value.isNotNull() & right.value.isNotNull()
    return f.when(one.isNotNull() & other.isNotNull(), one == other).otherwise(f.when(both, f.lit(False)))


# Rounding -----------------------------------------------------------------------------------------------------------------
def rounded(number: Number, scale: int) -> Any:
    """Return the number at a scale, rounded half to even; None where there is no column.

    Casts round halves away from zero: one that came to an odd number goes one step back.
    """
    f = number.f
    if scale >= number.scale:
        return number.fitted(scale)
    lost, whole = number.scale - scale, _WIDEST - 1 - number.scale
    if whole < 1:
        return None
    exact = number.within(whole)
    digits = whole + 1 + scale
    away = exact.cast(_named(digits, scale))
    half = constant(f, 5 * 10 ** (lost - 1), MOST_DIGITS, number.scale)
    gone = (exact - away).cast(_named(MOST_DIGITS, number.scale))
    is_half = (gone == half) | (gone == constant(f, -5 * 10 ** (lost - 1), MOST_DIGITS, number.scale))
    is_odd = (away % constant(f, 2, max(scale, 1) + 1, scale)) != constant(f, 0, max(scale, 1) + 1, scale)
    step = f.when(exact < 0, constant(f, -1, scale + 1, scale)).otherwise(constant(f, 1, scale + 1, scale))
    return f.when(is_half & is_odd, (away - step).cast(_named(MOST_DIGITS, scale))).otherwise(away.cast(_named(MOST_DIGITS, scale)))


def exactly(number: Number, scale: int) -> Any:
    """Return the number at a scale; null where digits other than zero would be lost or it does not fit."""
    if scale >= number.scale:
        return number.fitted(scale)
    found = number.value.try_cast(_named(MOST_DIGITS, scale))
    return number.f.when(found.try_cast(_named(MOST_DIGITS, number.scale)) == number.value, found)
