"""UUIDs of version 7: ordered by time, then by what follows."""

from __future__ import annotations

import secrets
from datetime import datetime
from functools import lru_cache


def uuid7(moment: datetime, rest: bytes | None = None) -> str:
    """A UUID of a moment. `rest`: 10 bytes that make it the same whenever it is asked for; None: by chance."""
    value = bytearray(_time(moment) + (secrets.token_bytes(10) if rest is None else rest))
    value[6] = 0x70 | value[6] & 0x0F
    value[8] = 0x80 | value[8] & 0x3F
    digits = value.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


@lru_cache(maxsize=256)
def _time(moment: datetime) -> bytes:
    """The milliseconds since 1970."""
    return int(moment.timestamp() * 1000).to_bytes(6, "big")
