"""UUIDs of version 7, which sort by time."""

from __future__ import annotations

import secrets
from datetime import datetime

from changelog.lazy_imports import np, pa, pl

LENGTH, DASHES = 36, (8, 13, 18, 23)


def uuid7(moment: datetime) -> str:
    """Return a random UUID of a moment."""
    value = bytearray(int(moment.timestamp() * 1000).to_bytes(6, "big") + secrets.token_bytes(10))
    value[6] = 0x70 | value[6] & 0x0F
    value[8] = 0x80 | value[8] & 0x3F
    digits = value.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def uuids_of(milliseconds: pl.Series, hashes: bytes) -> pl.Series:
    """Return a reproducible UUID for each time.

    Args:
        milliseconds: Times since 1970.
        hashes: 16 bytes for each time. The last 10 follow the time in the UUID.
    """
    count = len(milliseconds)
    values = np.frombuffer(hashes, np.uint8).reshape(count, 16).copy()
    for place, shift in enumerate(range(40, -8, -8)):
        values[:, place] = (milliseconds.to_numpy() >> shift).astype(np.uint8)
    values[:, 6] = 0x70 | values[:, 6] & 0x0F
    values[:, 8] = 0x80 | values[:, 8] & 0x3F
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    text = np.full((count, LENGTH), ord("-"), np.uint8)
    places = [at for at in range(LENGTH) if at not in DASHES]
    text[:, places[0::2]], text[:, places[1::2]] = digits[values >> 4], digits[values & 0x0F]
    ends = np.arange(0, (count + 1) * LENGTH, LENGTH, dtype=np.int64)
    return pl.Series(pa.Array.from_buffers(pa.large_string(), count, [None, pa.py_buffer(ends), pa.py_buffer(text)]))
