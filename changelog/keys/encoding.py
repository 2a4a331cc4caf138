"""Keys: tuples encoded as bytes that compare like the tuples.

A value is a tag byte and a body: tag 01 with the body, or only tag 02 for null, which sorts last. Bodies:

* int, date (days since 1970-01-01), date_time (microseconds since then, UTC): 8 bytes big-endian, with the sign bit flipped;
* float: its IEEE bits as such an integer, negative ones counted down from zero. So -0.0 equals 0.0, and NaN is one value, the greatest;
* decimal: 32 bytes big-endian of the value times 10**38, with the sign bit flipped, whatever its scale. So 2.5 and 2.50 have one key, and the int 2 has that of 2.00;
* bool: 00 or 01;
* string, any (JSON text): UTF-8, each byte 00 followed by 01, ended by 00 00. This compares by code point.

No encoding is a prefix of another, so keys may be concatenated. `changelog.keys.spark` makes the same bytes on engines, `changelog.keys.arrow` from Arrow columns.
"""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Final, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

KeyValue: TypeAlias = str | int | float | bool | date | datetime | Decimal | None

_VALUE, _NULL = b"\x01", b"\x02"
_END, _ZERO, _ESCAPED_ZERO = b"\x00\x00", b"\x00", b"\x00\x01"
_SIGN: Final = 1 << 63
_NAN: Final = 0x7FF8 << 48
DECIMAL_PLACES: Final = 38
"""The greatest scale of a decimal, and the places behind the point in its key."""
DECIMAL_BYTES: Final = 32
_DECIMAL_SIGN: Final = 1 << (8 * DECIMAL_BYTES - 1)
_EPOCH_DAY: Final = date(1970, 1, 1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def encode_key(values: Sequence[KeyValue], types: Sequence[str]) -> bytes:
    """Return the key of a tuple. `types` are the names of the values' CXL types. A naive date_time counts as UTC.

    Raises OverflowError for an int outside 64 bits, or a decimal with more than 38 digits on a side of its point, KeyError for an unknown type, ValueError where lengths differ.
    """
    pairs = zip(values, types, strict=True)
    return b"".join(_NULL if value is None else _VALUE + _BODIES[kind][0](value) for value, kind in pairs)


def decode_key(key: bytes, types: Sequence[str]) -> tuple[KeyValue, ...]:
    """Return the tuple at the start of a key that `encode_key` made with these types. Later bytes are ignored."""
    values: list[KeyValue] = []
    for kind in types:
        tag, rest = key[:1], key[1:]
        if tag == _NULL:
            value, key = None, rest
        elif tag == _VALUE:
            value, key = _BODIES[kind][1](rest)
        else:
            raise ValueError(f"not a key of ({', '.join(types)}): no value starts at byte {tag.hex() or 'end'}")
        values.append(value)
    return tuple(values)


def bare(key: bytes) -> bytes:
    """Return the key of a record without the mark of rejects."""
    return key.removesuffix(b"!")


def _int_body(value: KeyValue) -> bytes:
    return (cast("int", value) + _SIGN).to_bytes(8, "big")


def _int_value(body: bytes) -> tuple[int, bytes]:
    return int.from_bytes(body[:8], "big") - _SIGN, body[8:]


def _float_body(value: KeyValue) -> bytes:
    number = float(cast("float", value))
    bits: int = _NAN if math.isnan(number) else struct.unpack(">q", struct.pack(">d", abs(number)))[0]
    return _int_body(-bits if number < 0 else bits)


def _float_value(body: bytes) -> tuple[float, bytes]:
    bits, rest = _int_value(body)
    number: float = struct.unpack(">d", struct.pack(">q", abs(bits)))[0]
    return (-number if bits < 0 else number), rest


def _decimal_body(value: KeyValue) -> bytes:
    sign, digits, exponent = Decimal(cast("Decimal | int", value)).as_tuple()
    places = DECIMAL_PLACES + cast("int", exponent)
    if places < 0:
        raise OverflowError(f"{value} has more than {DECIMAL_PLACES} digits behind the point")
    number = int("".join(map(str, digits))) * int(10**places)
    return ((-number if sign else number) + _DECIMAL_SIGN).to_bytes(DECIMAL_BYTES, "big")


def _decimal_value(body: bytes) -> tuple[Decimal, bytes]:
    number = int.from_bytes(body[:DECIMAL_BYTES], "big") - _DECIMAL_SIGN
    digits = str(abs(number)).rjust(DECIMAL_PLACES + 1, "0")
    fraction = digits[-DECIMAL_PLACES:].rstrip("0")
    whole = f"{'-' if number < 0 else ''}{digits[:-DECIMAL_PLACES]}"
    return Decimal(f"{whole}.{fraction}" if fraction else whole), body[DECIMAL_BYTES:]


def _bool_body(value: KeyValue) -> bytes:
    return bytes([bool(value)])


def _bool_value(body: bytes) -> tuple[bool, bytes]:
    return body[0] == 1, body[1:]


def _date_body(value: KeyValue) -> bytes:
    return _int_body((cast("date", value) - _EPOCH_DAY).days)


def _date_value(body: bytes) -> tuple[date, bytes]:
    days, rest = _int_value(body)
    return _EPOCH_DAY + timedelta(days=days), rest


def _date_time_body(value: KeyValue) -> bytes:
    moment = cast("datetime", value)
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return _int_body((aware - _EPOCH) // _MICROSECOND)


def _date_time_value(body: bytes) -> tuple[datetime, bytes]:
    microseconds, rest = _int_value(body)
    return _EPOCH + timedelta(microseconds=microseconds), rest


def _text_body(value: KeyValue) -> bytes:
    return cast("str", value).encode().replace(_ZERO, _ESCAPED_ZERO) + _END


def _text_value(body: bytes) -> tuple[str, bytes]:
    zero = body.index(_ZERO)
    while body[zero : zero + 2] == _ESCAPED_ZERO:
        zero = body.index(_ZERO, zero + 2)
    return body[:zero].replace(_ESCAPED_ZERO, _ZERO).decode(), body[zero + 2 :]


_BODIES: Final[dict[str, tuple[Callable[[KeyValue], bytes], Callable[[bytes], tuple[KeyValue, bytes]]]]] = {
    "int": (_int_body, _int_value),
    "float": (_float_body, _float_value),
    "decimal": (_decimal_body, _decimal_value),
    "bool": (_bool_body, _bool_value),
    "date": (_date_body, _date_value),
    "date_time": (_date_time_body, _date_time_value),
    "string": (_text_body, _text_value),
    "any": (_text_body, _text_value),
}
