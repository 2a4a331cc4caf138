"""Columns that have the same value in all rows. The batches of a file share them: to fill such columns for each batch takes a tenth of reading a CSV file."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from changelog.lazy_imports import pa

_ROWS: Final = 1 << 16
"""Rows of a shared column."""
_SHORT: Final = 64
"""Bytes of a text that is shared, at most."""


def constant(value: int | str | None, kind: pa.DataType, rows: int) -> pa.Array:
    """Return a column with a value, None for nulls, in each of its rows. Columns of batches are parts of one array."""
    if rows > _ROWS or (isinstance(value, str) and len(value) > _SHORT):
        return _made(value, kind, rows)
    return _shared(value, kind).slice(0, rows)


@lru_cache(maxsize=32)
def _shared(value: int | str | None, kind: pa.DataType) -> pa.Array:
    return _made(value, kind, _ROWS)


def _made(value: int | str | None, kind: pa.DataType, rows: int) -> pa.Array:
    return pa.nulls(rows, kind) if value is None else pa.repeat(pa.scalar(value, kind), rows)
