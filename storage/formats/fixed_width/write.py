"""Records to lines of fixed width."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from changelog.lazy_imports import pa
from storage.files.errors import OutputError
from storage.formats.base import Column, WritePlan
from storage.formats.fixed_width.layout import Layout, LayoutField
from storage.formats.values import text_of
from storage.values.types import base_type

_log = logging.getLogger(__name__)


def lines(batch: pa.RecordBatch, plan: WritePlan, layout: Layout, line_end: bytes) -> list[bytes]:
    """Each record's fields in layout order. Raises OutputError for text that does not fit and may not be cut."""
    columns = {column.name: (index, column) for index, column in enumerate(plan.columns)}
    cells = [_cells(batch, field, columns.get(field.name)) for field in layout.fields]
    return [b"".join(row) + line_end for row in zip(*cells, strict=True)]


def _cells(batch: pa.RecordBatch, field: LayoutField, place: tuple[int, Column] | None) -> Sequence[bytes]:
    if place is None:
        return [b" " * field.length] * batch.num_rows
    index, column = place
    values = batch.column(index)
    if field.format and pa.types.is_temporal(values.type):
        texts = [None if value is None else value.strftime(field.format) for value in values.to_pylist()]
    else:
        texts = text_of(values, column, "fixed_width").to_pylist()
    decimal = pa.types.is_decimal(values.type)
    if decimal and field.implied_decimals is not None:
        texts = [None if text is None else text.replace(".", "") for text in texts]
    number = field.numeric or decimal or base_type(column.type) in ("int", "float", "numeric")
    return [_fitted(text, field, number=number, signed=decimal) for text in texts]


def _fitted(text: str | None, field: LayoutField, *, number: bool, signed: bool) -> bytes:
    """The bytes of a field. `signed`: a minus stands before zeros that fill the field."""
    if text is None:
        return b" " * field.length
    if "\n" in text or "\r" in text:
        raise OutputError(f"field '{field.name}' holds a line end, which a fixed-width record cannot hold")
    data = text.encode()
    if len(data) > field.length:
        data = _shortened(data, field, number=number)
    pad = field.pad.encode()
    right = (field.justify or ("right" if field.numeric else "left")) == "right"
    if signed and right and pad == b"0" and data.startswith(b"-"):
        return b"-" + data[1:].rjust(field.length - 1, pad)
    return data.rjust(field.length, pad) if right else data.ljust(field.length, pad)


def _shortened(data: bytes, field: LayoutField, *, number: bool) -> bytes:
    """Text cut to its field.

    Raises OutputError for a number of the layout, and for another number whose field has no `truncation`.
    """
    policy = field.truncation or ("error" if number else "warn")
    if field.numeric or policy == "error":
        raise OutputError(f"field '{field.name}': {data.decode()!r} is longer than its {field.length} bytes")
    if policy == "warn":
        _log.warning("field '%s': text longer than %d bytes was cut", field.name, field.length)
    return data[: field.length].decode(errors="ignore").encode()
