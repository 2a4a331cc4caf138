"""Decimals: the spellings of a cell, exact conversions, and their text, a column at a time.

A column of type `decimal(p,s)` holds whole numbers of at most 38 digits over 10**s (Arrow's `decimal128(38, s)`). A cell fits where its value needs no more
than s digits behind the point and p digits in all. Nothing is rounded when a cell is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import cache
from math import isfinite
from typing import Any, Final, NamedTuple

from changelog.lazy_imports import pa, pc, pl
from storage.values.text import float_text

DIGITS: Final = 38
"""The digits of the largest decimal."""
_SPELLED: Final = re.compile(r"decimal\( *([0-9]{1,2}) *, *([0-9]{1,2}) *\)")
_NUMBER: Final = re.compile(r"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?[0-9]+))?")
_IMPLIED: Final = re.compile(r"[+-]?[0-9]+")
_EXACT: Final = Context(prec=400, Emax=10**6, Emin=-(10**6))
"""Room for every result: of two decimals, or of a decimal and a float."""
_FAR: Final = 100_000
"""An exponent beyond this leaves no digit of a number in a cell of 64 KB within reach."""


class DecimalType(NamedTuple):
    """The digits of a decimal column: in all, and behind the point."""

    precision: int
    scale: int

    @property
    def limit(self) -> int:
        """The first unscaled value that is too large."""
        return int(10**self.precision)


@cache
def decimal_type(declared: str) -> DecimalType | None:
    """The digits of a declared type without `nullable(...)`; None for another type than `decimal(p,s)`."""
    found = _SPELLED.fullmatch(declared)
    return DecimalType(int(found[1]), int(found[2])) if found else None


def parsed(text: pa.Array, kind: DecimalType) -> pa.Array:
    """The decimals of a text column; null where a cell does not fit, or is empty."""
    wanted, plain = pa.decimal128(DIGITS, kind.scale), pc.fill_null(pc.match_substring_regex(text, _plain_pattern(kind)), False)
    if plain.true_count == len(text):
        return pc.cast(text, wanted)
    values = pc.cast(pc.if_else(plain, text, pa.scalar(None, pa.string())), wanted)
    others = pc.invert(plain)
    return pc.replace_with_mask(values, others, _values([unscaled(cell, kind) if cell else None for cell in text.filter(others).to_pylist()], kind))


def implied(text: pa.Array, kind: DecimalType, places: int) -> pa.Array:
    """The decimals of cells without a point, which is before their last `places` digits; null where a cell does not fit."""
    return _values([_implied(cell, kind, places) for cell in text.to_pylist()], kind)


def value_at(number: int, scale: int) -> Decimal:
    """The decimal of an unscaled value."""
    return Decimal(number).scaleb(-scale, _EXACT)


def pointed(text: str | None, places: int) -> str | None:
    """The text of a whole number with a point before its last `places` digits; None for another text."""
    if text is None or not _IMPLIED.fullmatch(text):
        return None
    digits = text.lstrip("+-").rjust(places + 1, "0")
    return ("-" if text.startswith("-") else "") + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)


def _plain_pattern(kind: DecimalType) -> str:
    """Matches cells that fit for sure and that Arrow reads, in RE2."""
    whole = kind.precision - kind.scale
    return rf"^[+-]?0{{0,9}}[0-9]{{1,{whole}}}(\.[0-9]{{0,{kind.scale}}})?$" if whole else rf"^[+-]?0?\.[0-9]{{1,{kind.scale}}}$"


def _values(found: Sequence[int | None], kind: DecimalType) -> pa.Array:
    """Unscaled values as a column."""
    return pa.array([None if one is None else value_at(one, kind.scale) for one in found], pa.decimal128(DIGITS, kind.scale))


def unscaled(text: str, kind: DecimalType) -> int | None:
    """The number of a cell times 10**scale; None where the cell is no number or does not fit. An exponent of any size costs no more than its digits."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    sign, whole, fraction, alone, exponent = found.groups()
    behind = fraction or alone or ""
    digits = ((whole or "") + behind).lstrip("0")
    if not digits:
        return 0
    power = (exponent or "0").lstrip("+")
    shift = (_FAR if not power.startswith("-") else -_FAR) if len(power) > 7 else int(power)
    return _shifted(digits, shift - len(behind) + kind.scale, negative=sign == "-", limit=kind.limit)


def _shifted(digits: str, places: int, *, negative: bool, limit: int) -> int | None:
    """`digits` times 10**places; None where digits other than zero would be lost, or where it is not below the limit."""
    kept = digits.rstrip("0")
    places += len(digits) - len(kept)
    if places < 0 or len(kept) + places > DIGITS:
        return None
    number = int(kept) * int(10**places)
    return (-number if negative else number) if number < limit else None


def _implied(text: str | None, kind: DecimalType, places: int) -> int | None:
    if text is None or not _IMPLIED.fullmatch(text):
        return None
    digits = text.lstrip("+-").lstrip("0")
    return _shifted(digits, kind.scale - places, negative=text.startswith("-"), limit=kind.limit) if digits else 0


def value_of(value: Any, kind: DecimalType) -> Decimal | None:
    """A text as a cell, and what `of_value` takes."""
    found = unscaled(value, kind) if isinstance(value, str) else None
    return of_value(value, kind) if found is None else value_at(found, kind.scale)


def of_value(value: Any, kind: DecimalType) -> Decimal | None:
    """A number of Python by value, a float by its shortest digits, true and false as 1 and 0; None where it does not fit, and for other values."""
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, float) and not isfinite(value):
        return None
    if isinstance(value, Decimal) and not value.is_finite():
        return None
    if not isinstance(value, int | float | Decimal):
        return None
    text = getattr(value, "digits", None) or (repr(float(value)) if isinstance(value, float) else str(value))
    found = unscaled(text, kind)
    return None if found is None else value_at(found, kind.scale)


def converted(values: pa.Array, kind: DecimalType) -> pa.Array:
    """Arrow's decimals or integers by value, floats by their shortest digits; null where one does not fit."""
    wanted = pa.decimal128(DIGITS, kind.scale)
    if values.type == wanted:
        return _within(values, kind)
    if pa.types.is_boolean(values.type):
        return converted(values.cast(pa.int64()), kind)
    if pa.types.is_decimal128(values.type) and 0 <= values.type.scale <= kind.scale and values.type.precision + kind.scale - values.type.scale <= DIGITS:
        return _within(values.cast(wanted), kind)
    if pa.types.is_integer(values.type) and kind.scale <= DIGITS - 20:
        return _within(values.cast(pa.string()).cast(wanted), kind)
    if pa.types.is_floating(values.type):
        return parsed(float_text(values) if pa.types.is_float64(values.type) else values.cast(pa.string()), kind)
    return pa.array([of_value(value, kind) for value in values.to_pylist()], wanted)


def _within(values: pa.Array, kind: DecimalType) -> pa.Array:
    """The values of at most `precision` digits; null for the others."""
    if kind.precision == DIGITS or not len(values):
        return values
    limit = pa.scalar(Decimal(kind.limit).scaleb(-kind.scale, _EXACT), pa.decimal128(DIGITS, kind.scale))
    fits = pc.less(pc.abs(values), limit)
    return values if pc.all(fits).as_py() is not False else pc.if_else(fits, values, pa.scalar(None, values.type))


def rounded(values: pa.Array, scale: int) -> pa.Array:
    """Decimals rounded half to even to a scale. Raises OverflowError, with the value, where one needs more than 38 digits there."""
    wanted = pa.decimal128(DIGITS, scale)
    if values.type == wanted:
        return values
    unit = Decimal(1).scaleb(-scale, _EXACT)
    made = [None if value is None else value.quantize(unit, ROUND_HALF_EVEN, _EXACT) for value in values.to_pylist()]
    limit = Decimal(10**DIGITS).scaleb(-scale, _EXACT)
    for value in made:
        if value is not None and abs(value) >= limit:
            raise OverflowError(format(value, "f"))
    return pa.array(made, wanted)


def first_beyond(values: pa.Array, precision: int) -> str | None:
    """The text of the first decimal of more than `precision` digits at its scale; None where all fit."""
    if precision >= DIGITS or values.null_count == len(values):
        return None
    limit = pa.scalar(Decimal(10**precision).scaleb(-values.type.scale, _EXACT), values.type)
    beyond = values.filter(pc.greater_equal(pc.abs(values), limit))
    return decimal_text(beyond)[0].as_py() if len(beyond) else None


def decimal_text(values: pa.Array) -> pa.Array:
    """All digits of the scale, without an exponent and without a sign of zero: `-0.50`."""
    series = pl.from_arrow(values)
    assert isinstance(series, pl.Series)
    text = series.cast(pl.String).to_arrow()
    return (text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text).cast(pa.string())


def json_number(value: Decimal) -> int | float | Decimal:
    """The Int of 64 bits or the Float that has exactly the digits of a decimal; the decimal itself where there is none."""
    if value == value.to_integral_value() and -(2**63) <= value < 2**63:
        return int(value)
    number = float(value)
    return number if Decimal(repr(number)) == value else value


def plain_digits(value: Decimal) -> str:
    """The text of one decimal, with all digits of its exponent."""
    return format(value or abs(value), "f")
