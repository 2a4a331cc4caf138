"""Lines cut at byte positions, a column at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from changelog.lazy_imports import np, pa, pc
from storage.files.errors import Buffer, InputError
from storage.formats.base import CHUNK_BYTES, Range, Reader, Scanned, StartsOfPiece, T
from storage.formats.batches import typed_batches
from storage.formats.fixed_width.layout import FixedWidthOptions, Layout, LayoutField
from storage.formats.line_files import line_ranges_of, scan_lines

_BOM = b"\xef\xbb\xbf"


def ranges_of(options: FixedWidthOptions, layout: Layout, data: Buffer, name: str, target: int) -> list[Range]:
    """Ranges of whole records of about `target` bytes. Raises InputError."""
    if len(data) <= target:
        return [Range(0, len(data))]
    if options.line_end:
        return line_ranges_of(data, name, target, blank_lines=True)
    size = layout.length
    step = max(1, target // size) * size
    return [Range(at, min(at + step, len(data)), at // size + 1, b"records") for at in range(0, len(data), step)]


def scan_records(options: FixedWidthOptions, layout: Layout, data: Buffer, look: Callable[[StartsOfPiece], T]) -> Scanned[T] | None:
    """Call `look` with the places where records begin; None where the last record is not complete."""
    if options.line_end:
        return scan_lines(data, look, blank_lines=True)
    size = layout.length
    step = max(1, CHUNK_BYTES // size) * size
    pieces = (np.arange(at, min(at + step, len(data)), size) for at in range(0, len(data), step))
    return None if len(data) % size else Scanned(b"records", 0, map(look, pieces))


def read_records(reader: Reader[FixedWidthOptions], layout: Layout, data: bytes, name: str, part: Range | None) -> Iterator[pa.RecordBatch]:
    """The records of a whole file or of a range. Raises InputError."""
    plan = reader.plan
    if part is None or part.start == 0:
        data = data.removeprefix(_BOM)
    if not data.isascii():
        _check_utf8(data, name, part)
    lines = pa.array(_lines(reader.options.line_end, layout.length, data, name), pa.binary())
    places = {field.name: (field, start) for field, start in layout.places}
    wanted = [column for column in plan.columns if column.name in places]
    text = {column.name: _cells(lines, *places[column.name], name) for column in wanted}
    first = part.first_row if part else 1
    rows = pa.array(np.arange(first, first + len(lines)))
    own = {column.name: (field.format,) for column in wanted if (field := places[column.name][0]).format}
    implied = {column.name: field.implied_decimals for column in wanted if (field := places[column.name][0]).implied_decimals is not None}
    yield from typed_batches(plan.columns, text, rows, plan.date_formats, formats=own, implied=implied)


def _check_utf8(data: bytes, name: str, part: Range | None) -> None:
    try:
        data.decode()
    except UnicodeDecodeError as wrong:
        raise InputError(name, f"not valid UTF-8: {wrong.reason}", offset=wrong.start + (part.start if part else 0)) from None


def _lines(end: bytes, size: int, data: bytes, name: str) -> Sequence[bytes]:
    if not end:
        if len(data) % size:
            raise InputError(
                name, f"the last record is incomplete: {len(data) % size} of {size} bytes", offset=len(data) - len(data) % size
            )
        return [data[at : at + size] for at in range(0, len(data), size)]
    return [line.removesuffix(b"\r") for line in data.split(b"\n") if line not in (b"", b"\r")]


def _cells(lines: pa.Array, field: LayoutField, start: int, name: str) -> pa.Array:
    """The field's text in each line without its padding; null where nothing remains."""
    raw = pc.binary_slice(lines, start, start + field.length)
    try:
        text = raw.cast(pa.string())
    except pa.ArrowInvalid:
        raise InputError(name, f"field '{field.name}' cuts a character in two: positions count bytes") from None
    if field.trim:
        whole = pc.utf8_trim_whitespace(text)
        text = pc.utf8_trim_whitespace(_without_padding(text, field))
        if field.type == "decimal" and field.pad == "0":  # zeros alone are a number
            text = pc.if_else(pc.and_(pc.equal(text, ""), pc.not_equal(whole, "")), "0", text)
    if field.type == "boolean":
        text = _spelled(text)
    return pc.replace_with_mask(text, pc.equal(text, ""), pa.scalar(None, pa.string()))


def _without_padding(text: pa.Array, field: LayoutField) -> pa.Array:
    """The text without padding on the side opposite to `justify`; a number without one has it on both sides, but zeros behind a number are no padding."""
    if field.justify is None and field.numeric and field.pad != "0":
        return pc.ascii_trim(text, characters=field.pad)
    right = field.justify == "right" or (field.justify is None and field.numeric)
    return (pc.ascii_ltrim if right else pc.ascii_rtrim)(text, characters=field.pad)


def _spelled(text: pa.Array) -> pa.Array:
    """Text of a boolean field, whose further spellings `y` and `n` become `yes` and `no`."""
    lower = pc.utf8_lower(text)
    return pc.if_else(pc.equal(lower, "y"), "yes", pc.if_else(pc.equal(lower, "n"), "no", text))
