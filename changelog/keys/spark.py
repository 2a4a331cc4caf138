"""Keys from Columns, with the bytes of `changelog.keys.encoding`.

Numbers become hexadecimal digits, and adjacent parts of digits become bytes in one step. Both engines have these functions natively.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, cast

from changelog.keys.arrow import decimal_bodies
from changelog.lazy_imports import F, pa

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column

_VALUE, _NULL = "01", "02"
_MINIMUM: Final = -(1 << 63)
_NAN: Final = 0x7FF8 << 48
_INFINITY: Final = 0x7FF0 << 48
_IMPLICIT: Final = 1 << 52
_LEAST_EXPONENT: Final = -1022


def key_column(values: Sequence[tuple[Column, str]]) -> Column:
    """Return the key of a tuple of (Column, CXL type name) as a binary Column, with the bytes of `encode_key`.

    Raises KeyError for an unknown type.
    """
    parts = [(kind in _TEXT, _text_part(value) if kind in _TEXT else _digits_part(value, _DIGITS[kind])) for value, kind in values]
    runs = [_run(is_text, [part for _, part in run]) for is_text, run in groupby(parts, key=lambda part: part[0])]
    return _concat([part for run in runs for part in run], F.lit(b""))


def with_prefix(prefix: bytes, key: Column) -> Column:
    """Return a key with a fixed prefix, such as the number of a merge's input."""
    return F.concat(F.lit(prefix), key)


def with_index(key: Column, index: Column) -> Column:
    """Return a key followed by an index from 0 to 2**32 - 1 (4 bytes), such as that of an element of `emit each`."""
    return F.concat(key, F.unhex(hex_digits(index, 8)))


def row_label_column(row: Column) -> Column:
    """Return the bytes of the label `(row,)` for a bigint Column (`positions.row_label`)."""
    return F.unhex(F.concat(hex_digits(row, 12), F.lit("00")))


def hex_digits(value: Column, digits: int) -> Column:
    """Return a non-negative bigint as `digits` hexadecimal digits. With 16 digits the bigint may be negative."""
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
    """Return the digits of a double. Each part occurs once where possible: the time of a planner grows faster than the number of parts."""
    size = F.abs(value)
    bits = F.when(F.isnan(size), F.lit(_NAN)).when(size == float("inf"), F.lit(_INFINITY)).when(size == 0.0, F.lit(0)).otherwise(_magnitude_bits(size))
    return _int_digits(bits * F.when((value < 0.0) & ~F.isnan(value), F.lit(-1)).otherwise(1))  # there are negative NaNs


def _magnitude_bits(size: Column) -> Column:
    """Return the IEEE bits of a finite double greater than zero, by exact arithmetic.

    The exponent estimated from the logarithm is right or one too small. Scaled by it the value lies in [1, 4), or below 1 where it is subnormal,
    and its 52 binary places are an integer.
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


def _decimal_digits(value: Column) -> Column:
    return F.hex(_decimal_bodies(value))


def _decimal_bodies(value: Column) -> Column:
    """Return the bodies, which Python makes: engines have no whole numbers of 32 bytes."""
    from pyspark.sql.pandas.functions import arrow_udf

    def run(batch: pa.Array) -> pa.Array:
        bodies = decimal_bodies(batch)
        return pa.Array.from_buffers(pa.binary(bodies.shape[1]), len(bodies), [None, pa.py_buffer(bodies.reshape(-1))]).cast(pa.binary())

    made: Column = cast("Any", arrow_udf)(run, "binary")(value)
    return made


_TEXT: Final = frozenset({"string", "any"})
_DIGITS: Final[dict[str, Callable[[Column], Column]]] = {
    "int": _int_digits,
    "float": _float_digits,
    "decimal": _decimal_digits,
    "bool": _bool_digits,
    "date": _date_digits,
    "date_time": _date_time_digits,
}
