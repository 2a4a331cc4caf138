"""Keys from Columns: the bytes of `changelog.keys.encoding`, made by the engine.

Numbers become hexadecimal digits, and a run of such parts bytes in one step; both engines have these functions natively.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from changelog.lazy_imports import F

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column

_VALUE, _NULL = "01", "02"
_MINIMUM: Final = -(1 << 63)
_NAN: Final = 0x7FF8 << 48
_INFINITY: Final = 0x7FF0 << 48
_IMPLICIT: Final = 1 << 52
_LEAST_EXPONENT: Final = -1022


def encoded(values: Sequence[tuple[Column, str]]) -> Column:
    """What `keys.key_column` says."""
    parts = [(kind in _TEXT, _text_part(value) if kind in _TEXT else _digits_part(value, _DIGITS[kind])) for value, kind in values]
    runs = [_run(is_text, [part for _, part in run]) for is_text, run in groupby(parts, key=lambda part: part[0])]
    return _concat([part for run in runs for part in run], F.lit(b""))


def with_prefix(prefix: bytes, key: Column) -> Column:
    """A key under a fixed prefix, as the number of a merge's input."""
    return F.concat(F.lit(prefix), key)


def with_index(key: Column, index: Column) -> Column:
    """A key followed by an index from 0 to 2**32 - 1 (4 bytes), as of the elements of an `emit each`."""
    return F.concat(key, F.unhex(hex_digits(index, 8)))


def row_label_column(row: Column) -> Column:
    """The bytes of the label `(row,)` of a bigint Column (`labels.row_label`)."""
    return F.unhex(F.concat(hex_digits(row, 12), F.lit("00")))


def hex_digits(value: Column, digits: int) -> Column:
    """A bigint that is not negative, or any bigint where `digits` is 16, as that many hexadecimal digits."""
    return F.lpad(F.hex(value), digits, "0")


def _run(is_text: bool, parts: list[Column]) -> list[Column]:
    return parts if is_text else [F.unhex(_concat(parts, F.lit("")))]


def _concat(parts: list[Column], empty: Column) -> Column:
    return F.concat(*parts) if len(parts) > 1 else parts[0] if parts else empty


def _digits_part(value: Column, body: Callable[[Column], Column]) -> Column:
    return F.when(value.isNull(), _NULL).otherwise(F.concat(F.lit(_VALUE), body(value)))


def _text_part(value: Column) -> Column:
    escaped = F.replace(value, F.lit("\x00"), F.lit("\x00\x01"))
    part = F.concat(F.lit(b"\x01"), escaped.cast("binary"), F.lit(b"\x00\x00"))
    return F.when(value.isNull(), F.lit(b"\x02")).otherwise(part)


def _int_digits(value: Column) -> Column:
    return hex_digits(value.cast("bigint").bitwiseXOR(F.lit(_MINIMUM)), 16)


def _float_digits(value: Column) -> Column:
    """Each part of this stands once, as far as it can: an engine plans all of them, and a planner's time grows faster than their number."""
    size = F.abs(value)
    bits = F.when(F.isnan(size), F.lit(_NAN)).when(size == float("inf"), F.lit(_INFINITY)).when(size == 0.0, F.lit(0)).otherwise(_magnitude_bits(size))
    return _int_digits(bits * F.when((value < 0.0) & ~F.isnan(value), F.lit(-1)).otherwise(1))  # there are negative NaNs


def _magnitude_bits(size: Column) -> Column:
    """The IEEE bits of a finite double greater than zero, by exact arithmetic alone.

    The exponent estimated from the logarithm is right or one too small; scaled by it the value lies in [1, 4), or below 1
    where it is subnormal, and its 52 binary places are an integer.
    """
    finite = F.when((size > 0.0) & (size < float("inf")), size).otherwise(1.0)
    exponent = F.greatest(F.floor(F.log2(finite) - 1e-9), F.lit(_LEAST_EXPONENT))
    scaled = finite * F.pow(F.lit(2.0), -exponent.cast("double"))
    places = F.when(scaled >= 2.0, F.floor(scaled * float(_IMPLICIT >> 1)) + _IMPLICIT).otherwise(F.floor(scaled * float(_IMPLICIT)))
    return (exponent - _LEAST_EXPONENT) * _IMPLICIT + places


def _bool_digits(value: Column) -> Column:
    return F.when(value, "01").when(~value, "00")


def _date_digits(value: Column) -> Column:
    return _int_digits(F.unix_date(value))


def _date_time_digits(value: Column) -> Column:
    return _int_digits(F.unix_micros(value))


_TEXT: Final = frozenset({"string", "any"})
_DIGITS: Final[dict[str, Callable[[Column], Column]]] = {
    "int": _int_digits,
    "float": _float_digits,
    "bool": _bool_digits,
    "date": _date_digits,
    "date_time": _date_time_digits,
}
