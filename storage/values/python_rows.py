"""Rows of Arrow tables as dictionaries of Python's values."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from changelog.lazy_imports import pa, pc
from storage.values.text import time_text


def dictionaries(rows: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows as dictionaries by column name. A time outside Python's years (a window that ends after 9999) is text, as in files."""
    try:
        found: list[dict[str, Any]] = rows.to_pylist()
    except (OverflowError, ValueError):
        columns = [_values(rows.column(name)) for name in rows.schema.names]
        found = [dict(zip(rows.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]
    return found


def _values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    if not pa.types.is_timestamp(column.type):
        return list(column.to_pylist())
    first, last = (pa.scalar(end.replace(tzinfo=UTC)).cast(column.type) for end in (datetime.min, datetime.max))
    known = pc.and_(pc.greater_equal(column, first), pc.less_equal(column, last))
    texts = iter(time_text(pc.filter(column, pc.invert(known))).to_pylist())
    in_range = pc.if_else(known, column, pa.scalar(None, column.type)).to_pylist()
    return [next(texts) if is_known is False else value for value, is_known in zip(in_range, known.to_pylist(), strict=True)]
