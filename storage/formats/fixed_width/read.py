"""Lines cut at byte positions, a column at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage.formats.base import CHUNK_BYTES, Buffer, InputError, Looked, Range, Starts, T
from storage.formats.batches import typed_batches
from storage.formats.fixed_width.layout import LayoutField
from storage.formats.line_files import line_ranges_of, looked_at_lines

if TYPE_CHECKING:
    from storage.formats.fixed_width import FixedWidthReader

_BOM = b"\xef\xbb\xbf"


def ranges_of(reader: FixedWidthReader, data: Buffer, name: str, target: int) -> list[Range]:
    """Ranges of whole records."""
    if len(data) <= target:
        return [Range(0, len(data))]
    if reader.options.line_end:
        return line_ranges_of(data, name, target, blank_lines=True)
    size = reader.fields().length
    step = max(1, target // size) * size
    return [Range(at, min(at + step, len(data)), at // size + 1, b"records") for at in range(0, len(data), step)]


def record_starts_of(reader: FixedWidthReader, data: Buffer, look: Callable[[Starts], T]) -> Looked[T] | None:
    """What `look` makes of the places where records begin; None where the last one is not complete."""
    if reader.options.line_end:
        return looked_at_lines(data, look, blank_lines=True)
    size = reader.fields().length
    step = max(1, CHUNK_BYTES // size) * size
    pieces = (np.arange(at, min(at + step, len(data)), size) for at in range(0, len(data), step))
    return None if len(data) % size else Looked(b"records", 0, map(look, pieces))


def read_records(reader: FixedWidthReader, data: bytes, name: str, part: Range | None) -> Iterator[pa.RecordBatch]:
    """The records of a whole file or of a range."""
    if part is None or part.start == 0:
        data = data.removeprefix(_BOM)
    if not data.isascii():
        _check_utf8(data, name, part)
    lines = pa.array(_lines(reader, data, name), pa.binary())
    places = {field.name: (field, start) for field, start in reader.fields().places}
    wanted = [column for column in reader.plan.columns if column.name in places]
    text = {column.name: _cells(lines, *places[column.name], name) for column in wanted}
    first = part.first_row if part else 1
    rows = pa.array(np.arange(first, first + len(lines)))
    own = {column.name: (field.format,) for column in wanted if (field := places[column.name][0]).format}
    yield from typed_batches(reader.plan.columns, text, rows, reader.plan.date_formats, formats=own)


def _check_utf8(data: bytes, name: str, part: Range | None) -> None:
    try:
        data.decode()
    except UnicodeDecodeError as wrong:
        raise InputError(name, f"not valid UTF-8: {wrong.reason}", offset=wrong.start + (part.start if part else 0)) from None


def _lines(reader: FixedWidthReader, data: bytes, name: str) -> Sequence[bytes]:
    end, size = reader.options.line_end, reader.fields().length
    if not end:
        if len(data) % size:
            raise InputError(
                name, f"the last record is incomplete: {len(data) % size} of {size} bytes", offset=len(data) - len(data) % size
            )
        return [data[at : at + size] for at in range(0, len(data), size)]
    return [line.removesuffix(b"\r") for line in data.split(b"\n") if line not in (b"", b"\r")]


def _cells(lines: pa.Array, field: LayoutField, start: int, name: str) -> pa.Array:
    """The field's text in each line, padding gone; null where nothing is left."""
    raw = pc.binary_slice(lines, start, start + field.length)
    try:
        text = raw.cast(pa.string())
    except pa.ArrowInvalid:
        raise InputError(name, f"field '{field.name}' cuts a character in two: positions count bytes") from None
    if field.trim:
        strip = pc.ascii_ltrim if field.justify == "right" else pc.ascii_rtrim
        text = pc.utf8_trim_whitespace(strip(text, characters=field.pad))
    if field.type == "boolean":
        text = _spelled(text)
    return pc.replace_with_mask(text, pc.equal(text, ""), pa.scalar(None, pa.string()))


def _spelled(text: pa.Array) -> pa.Array:
    """A boolean field knows `y` and `n` besides the spellings of a bool column."""
    lower = pc.utf8_lower(text)
    return pc.if_else(pc.equal(lower, "y"), "yes", pc.if_else(pc.equal(lower, "n"), "no", text))
