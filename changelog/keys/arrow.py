"""Keys from Arrow columns, with the bytes of `changelog.keys.encoding`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Final, TypeAlias

from changelog.keys.encoding import DECIMAL_BYTES, DECIMAL_PLACES
from changelog.lazy_imports import np, pa, pc

Numbers: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"
Bytes: TypeAlias = "np.ndarray[tuple[int, int], np.dtype[np.uint8]]"
"""A fixed number of bytes per value."""

_VALUE, _NULL = 1, 2
_MINIMUM: Final = -(1 << 63)
_NAN: Final = 0x7FF8 << 48


def encoded(columns: Sequence[tuple[pa.Array, str]]) -> pa.Array:
    """Return the keys of rows as a binary array. `columns` has the values of each part and the name of its CXL type.

    Raises KeyError for an unknown type.
    """
    parts = [_text_part(values) if kind in ("string", "any") else _fixed_part(values, _BODIES[kind](values)) for values, kind in columns]
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, b"")


def _fixed_part(values: pa.Array, body: Bytes) -> pa.Array:
    """Return a tag and the body of each value, only the tag for null."""
    count, width = len(values), body.shape[1] + 1
    data = np.full((count, width), _VALUE, np.uint8)
    data[:, 1:] = body
    if not values.null_count:
        return _binary(data.reshape(-1), np.arange(0, (count + 1) * width, width, dtype=np.int32))
    there = values.is_valid().to_numpy(zero_copy_only=False)
    data[~there, 0] = _NULL
    kept = np.ones((count, width), np.bool_)
    kept[~there, 1:] = False
    ends = np.cumsum(np.where(there, width, 1), dtype=np.int32)
    return _binary(data[kept], np.concatenate([np.zeros(1, np.int32), ends]))


def _text_part(texts: pa.Array) -> pa.Array:
    escaped = texts
    if pc.any(pc.match_substring(texts, "\x00"), min_count=0).as_py():
        escaped = pc.replace_substring(texts, "\x00", "\x00\x01")
    part = pc.binary_join_element_wise(pa.scalar(b"\x01"), escaped.cast(pa.binary()), pa.scalar(b"\x00\x00"), b"")
    return part.fill_null(b"\x02") if texts.null_count else part


def _binary(data: np.ndarray[tuple[int], np.dtype[np.uint8]], offsets: np.ndarray[tuple[int], np.dtype[np.int32]]) -> pa.Array:
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _big_endian(numbers: Numbers) -> Bytes:
    """Return 8 big-endian bytes per number, with the sign bit flipped."""
    return (numbers ^ _MINIMUM).astype(">i8").view(np.uint8).reshape(-1, 8)


def _ints(values: pa.Array) -> Bytes:
    return _big_endian(values.fill_null(0).to_numpy(zero_copy_only=False))


def _floats(values: pa.Array) -> Bytes:
    numbers = values.fill_null(0.0).to_numpy(zero_copy_only=False)
    bits = np.where(np.isnan(numbers), _NAN, np.abs(numbers).view(np.int64))
    return _big_endian(np.where(numbers < 0, -bits, bits))


def decimal_bodies(values: pa.Array) -> Bytes:
    """Return the body of each decimal's key; that of zero for null."""
    known = values.fill_null(Decimal(0)) if values.null_count else values
    wide = known.cast(pa.decimal256(76, DECIMAL_PLACES))
    words = np.frombuffer(wide.buffers()[1], np.uint8).reshape(-1, DECIMAL_BYTES)[wide.offset : wide.offset + len(wide)]
    body: Bytes = words[:, ::-1].copy()
    body[:, 0] ^= 0x80
    return body


def _bools(values: pa.Array) -> Bytes:
    truth: Bytes = values.fill_null(False).to_numpy(zero_copy_only=False).astype(np.uint8).reshape(-1, 1)
    return truth


def _dates(values: pa.Array) -> Bytes:
    return _ints(values.cast(pa.int32()).cast(pa.int64()))


def _times(values: pa.Array) -> Bytes:
    return _ints(values.cast(pa.int64()))


_BODIES: Final[dict[str, Callable[[pa.Array], Bytes]]] = {
    "int": _ints,
    "float": _floats,
    "decimal": decimal_bodies,
    "bool": _bools,
    "date": _dates,
    "date_time": _times,
}
