"""UUIDs of version 7: ordered by time, then by what follows."""

from __future__ import annotations

import secrets
from datetime import datetime
from uuid import UUID


def uuid7(moment: datetime, rest: bytes | None = None) -> str:
    """A UUID of a moment. `rest`: 10 bytes that make it the same whenever it is asked for; None: by chance."""
    value = bytearray(int(moment.timestamp() * 1000).to_bytes(6, "big") + (secrets.token_bytes(10) if rest is None else rest))
    value[6] = 0x70 | value[6] & 0x0F
    value[8] = 0x80 | value[8] & 0x3F
    return str(UUID(bytes=bytes(value)))
