"""Rows of Arrow tables as dictionaries of Python's values."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from changelog.lazy_imports import pa, pc


def dictionaries(rows: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """Each row by its columns' names. A time that Python has none for, as the end of a window behind the year 9999, is the text that files have for it."""
    try:
        found: list[dict[str, Any]] = rows.to_pylist()
    except (OverflowError, ValueError):
        columns = [_values(rows.column(name)) for name in rows.schema.names]
        found = [dict(zip(rows.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]
    return found


def _values(column: pa.Array | pa.ChunkedArray) -> list[Any]:

    from storage.formats.texts import time_text

    if not pa.types.is_timestamp(column.type):
        return list(column.to_pylist())
    first, last = (pa.scalar(end.replace(tzinfo=UTC)).cast(column.type) for end in (datetime.min, datetime.max))
    known = pc.and_(pc.greater_equal(column, first), pc.less_equal(column, last))
    texts = iter(time_text(pc.filter(column, pc.invert(known))).to_pylist())
    told = pc.if_else(known, column, pa.scalar(None, column.type)).to_pylist()
    return [next(texts) if is_known is False else value for value, is_known in zip(told, known.to_pylist(), strict=True)]
