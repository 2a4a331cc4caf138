"""Rows of plain values to a file's text, for tests of writers."""

from typing import Any

import pyarrow as pa

from storage import formats
from storage.formats import Column, WritePlan
from storage.values.types import arrow_type


def written(form: str, columns: Any, rows: Any, options: Any = None, *, cut: int | None = None, **plan: Any) -> str:
    """The text of a file with these rows. With `cut` there are two batches, and the first one has that many rows."""
    declared = tuple(Column(*column) for column in columns)
    session = formats.writer(form, options or {}, WritePlan(declared, **plan)).open()
    schema = pa.schema([(column.name, arrow_type(column.type)) for column in declared])
    names = [column.name for column in declared]
    parts = [rows] if cut is None else [rows[:cut], rows[cut:]]
    batches = [pa.RecordBatch.from_pylist([dict(zip(names, row, strict=True)) for row in part], schema) for part in parts]
    header = session.header()
    body = session.separator().join(text for batch in batches if (text := session.render(batch)))
    return (header + body + session.footer()).decode()
