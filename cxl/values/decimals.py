"""Decimals: how they are carried, and exact computing with them.

A Decimal is a whole number of at most 38 digits over 10^scale, with a scale from 0 to 38. Zero has no sign.

| where | how |
|---|---|
| a type | `Type(Kind.DECIMAL, scale=2)`, made by `decimal_of(2)`, spelled `decimal(38,2)`; `parse_type` reads `decimal(10,2)` too. A precision belongs to schemas, not to types: `parse_decimal` |
| a Python value | `decimal.Decimal` whose exponent is -scale: `Decimal("12.50")` |
| a column of a Spark frame or a Delta table | `decimal(38, scale)`, of Arrow `decimal128(38, scale)` |
| JSON text of a dynamic value (array, map, any, numeric) | the digits and `E0`: `12.50E0`, `5E0`. A Float never has this spelling, Python writes `e+22` and `e-07`. It is JSON, and it sorts and casts as its number |
| text | the digits, all of the scale: `12.50` |

`dumps` and `loads` of `cxl.values.dynamic` write and read the spelling with `E0`, `plain` takes the `E0` away for outputs, and `read_json`
reads JSON of others, in which every number with a point or an exponent is a Float.
Functions here raise CxlFailure where a result needs more than 38 digits. Intermediate results are exact, whatever their size.
"""

import decimal
import math
import re
from decimal import Decimal
from fractions import Fraction

from cxl.types.rules import QUOTIENT_SCALE
from cxl.types.types import MOST_DIGITS
from cxl.values.failure import CxlFailure, division_by_zero

_EXACT = decimal.Context(prec=MOST_DIGITS, rounding=decimal.ROUND_HALF_EVEN, traps=[decimal.InvalidOperation, decimal.Rounded])
"""Fails where a result needs more digits."""
_ROUNDING = decimal.Context(prec=MOST_DIGITS, rounding=decimal.ROUND_HALF_EVEN, traps=[decimal.InvalidOperation])
"""Rounds to a scale. Fails where the rounded number needs more digits."""
_WIDE = decimal.Context(prec=4 * MOST_DIGITS, rounding=decimal.ROUND_HALF_EVEN, traps=[decimal.InvalidOperation, decimal.Inexact])
_QUANTA = tuple(Decimal(1).scaleb(-scale) for scale in range(MOST_DIGITS + 1))
_NUMBER = re.compile(r"([+-]?)(?:([0-9]+)\.?([0-9]*)|\.([0-9]+))(?:[eE]([+-]?)([0-9]+))?", re.ASCII)
_EXPONENT_DIGITS = 18
"""An exponent of more digits is beyond every text."""


# What a value is --------------------------------------------------------------------------------------------------------
def of_units(units: int, scale: int) -> Decimal:
    """Return the Decimal of a whole number over 10^scale. Raises CxlFailure where it has more than 38 digits."""
    if abs(units) >= 10**MOST_DIGITS:
        raise overflow(f"{len(str(abs(units)))} digits at scale {scale}")
    return Decimal(units).scaleb(-scale, _WIDE)


def scale_of(value: Decimal | int) -> int:
    """Return the digits behind the point; 0 of an Int."""
    return -int(value.as_tuple().exponent) if isinstance(value, Decimal) else 0


def units_of(value: Decimal | int, scale: int) -> int:
    """Return the whole number that a value is over 10^scale, which is at least its own scale."""
    return int(value.scaleb(scale, _WIDE)) if isinstance(value, Decimal) else value * 10**scale


def text_of(value: Decimal) -> str:
    """Return the digits, all of the scale."""
    return f"{value:f}"


def overflow(why: str) -> CxlFailure:
    """Return the failure of a result that has more than 38 digits."""
    return CxlFailure(f"decimal overflow: more than {MOST_DIGITS} digits ({why})")


def mixed() -> CxlFailure:
    """Return the failure of a Decimal that meets a Float."""
    return CxlFailure("type mismatch: a Decimal and a Float; use to_decimal(scale) of the Float or to_float() of the Decimal")


def _unsigned(value: Decimal) -> Decimal:
    return value or value.copy_abs()


# Arithmetic of Decimals and Ints ----------------------------------------------------------------------------------------
def add(left: Decimal | int, right: Decimal | int) -> Decimal:
    """Return the exact sum, with the greater scale."""
    try:
        return _unsigned(_EXACT.add(left, right))
    except decimal.Rounded:
        raise overflow("addition") from None


def subtract(left: Decimal | int, right: Decimal | int) -> Decimal:
    """Return the exact difference, with the greater scale."""
    try:
        return _unsigned(_EXACT.subtract(left, right))
    except decimal.Rounded:
        raise overflow("subtraction") from None


def multiply(left: Decimal | int, right: Decimal | int) -> Decimal:
    """Return the exact product, with the sum of the scales."""
    if scale_of(left) + scale_of(right) > MOST_DIGITS:
        raise overflow("multiplication: the digits behind the points together")
    try:
        return _unsigned(_EXACT.multiply(left, right))
    except decimal.Rounded:
        raise overflow("multiplication") from None


def divide(left: Decimal | int, right: Decimal | int) -> Decimal:
    """Return the quotient, rounded once, half to even, to the greatest of 12 and the scales."""
    if not right:
        raise division_by_zero()
    of_left, of_right = scale_of(left), scale_of(right)
    scale = max(QUOTIENT_SCALE, of_left, of_right)
    return of_units(half_even(units_of(left, of_left) * 10 ** (scale + of_right - of_left), units_of(right, of_right)), scale)


def remainder(left: Decimal | int, right: Decimal | int) -> Decimal:
    """Return the exact remainder, with the sign of the dividend and the greater scale."""
    if not right:
        raise division_by_zero()
    scale = max(scale_of(left), scale_of(right))
    dividend, divisor = units_of(left, scale), units_of(right, scale)
    rest = abs(dividend) % abs(divisor)
    return of_units(-rest if dividend < 0 else rest, scale)


def negate(value: Decimal) -> Decimal:
    """Return the number with the other sign."""
    return _unsigned(value.copy_negate())


def half_even(dividend: int, divisor: int) -> int:
    """Return the whole number nearest to a quotient, of two the even one."""
    if divisor < 0:
        dividend, divisor = -dividend, -divisor
    quotient, rest = divmod(dividend, divisor)
    return quotient + (2 * rest > divisor or (2 * rest == divisor and quotient % 2))


def nearest(exact: Fraction, scale: int) -> Decimal:
    """Return an exact number rounded once, half to even, to a scale."""
    return of_units(half_even(exact.numerator * 10**scale, exact.denominator), scale)


# Scales -----------------------------------------------------------------------------------------------------------------
def rounded(value: Decimal | int, scale: int) -> Decimal:
    """Return the value at a scale from 0 to 38, rounded half to even where digits are lost."""
    try:
        return _unsigned(_ROUNDING.quantize(value, _QUANTA[scale]))
    except decimal.InvalidOperation:
        raise overflow(f"at scale {scale}") from None


def whole(value: Decimal, rounding: str) -> Decimal:
    """Return the whole number next to a value, at scale 0."""
    return _unsigned(value.to_integral_value(rounding, _WIDE))


def exactly(value: Decimal | int, scale: int) -> Decimal | None:
    """Return the value at a scale from 0 to 38, None where digits other than zero would be lost or it does not fit."""
    try:
        found = _ROUNDING.quantize(value, _QUANTA[scale])
    except decimal.InvalidOperation:
        return None
    return _unsigned(found) if found == value else None


def canonical(value: Decimal) -> Decimal | int:
    """Return the value in one spelling for all scales: an int where it is whole, else without zeros at the end."""
    whole = int(value)
    return whole if whole == value else value.normalize(_WIDE)


# From other values ------------------------------------------------------------------------------------------------------
def from_text(text: str, scale: int) -> Decimal | None:
    """Return the Decimal of a text with a sign, digits, a point and an exponent, as far as they are there.

    None for any other text, where digits other than zero would be lost, and where it does not fit. The number is not built before
    its size is known.
    """
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    whole, fraction = found[2] or "", found[3] or found[4] or ""
    digits = (whole + fraction).lstrip("0")
    significant = digits.rstrip("0")
    if not significant:
        return of_units(0, scale)
    zeros = _exponent(found[5], found[6]) - len(fraction) + len(digits) - len(significant) + scale
    if zeros < 0 or len(significant) + zeros > MOST_DIGITS:
        return None
    units = int(significant) * 10**zeros
    return of_units(-units if found[1] == "-" else units, scale)


def _exponent(sign: str | None, digits: str | None) -> int:
    size = (digits or "0").lstrip("0") or "0"
    value = 10**_EXPONENT_DIGITS if len(size) > _EXPONENT_DIGITS else int(size)
    return -value if sign == "-" else value


def from_float(value: float, scale: int) -> Decimal | None:
    """Return a Float's shortest digits, rounded half to even to a scale; None where they do not fit, and for NaN and the infinities."""
    if not math.isfinite(value):
        return None
    try:
        return _unsigned(_ROUNDING.quantize(Decimal(repr(value)), _QUANTA[scale]))
    except decimal.InvalidOperation:
        return None
