"""The first record of a CSV file, and text in its encoding."""

from __future__ import annotations

from dataclasses import dataclass

from storage.files.errors import Buffer, InputError, line_after
from storage.formats import limits
from storage.formats.csv.cells import parse_cells
from storage.formats.csv.options import CsvReadOptions
from storage.formats.csv.scan import Dialect, as_bytes, records

BOM = b"\xef\xbb\xbf"
_FIRST_LOOK = 1 << 16


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a file.

    Args:
        names: the names of the columns
        end: the byte after the header, its line end not included
        text: the text of the first record (UTF-8)
        head: a record (UTF-8) from which `names_in` makes the names again: the first one, or of a file without names any with as many cells
        line: the line of the header
    """

    names: tuple[str, ...]
    end: int
    text: bytes
    head: bytes
    line: int = 1


def to_utf8(options: CsvReadOptions, data: bytes, name: str, at: int = 0) -> bytes:
    """The bytes from place `at` of the file, as UTF-8 without byte order mark. Raises InputError where they are not valid in the declared encoding."""
    if at == 0 and options.encoding.startswith("utf-8") and data.startswith(BOM):
        data, at = data.removeprefix(BOM), len(BOM)
    if data.isascii() and options.cuttable:
        return data
    try:
        text = data.decode("utf-8" if options.encoding == "utf-8-sig" else options.encoding)
    except UnicodeDecodeError as wrong:
        message = f"not valid {options.encoding.upper()}: {wrong.reason}; options.encoding names the encoding that the file has, such as cp1252"
        raise InputError(name, message, offset=at + wrong.start) from None
    return data if options.encoding.startswith("utf-8") else text.removeprefix("\ufeff").encode("utf-8", "surrogatepass")


def header_of(options: CsvReadOptions, data: Buffer, name: str) -> Header:
    """The header of a file. Raises InputError."""
    if not options.cuttable:
        data = to_utf8(options, bytes(data), name)
    at = len(BOM) if options.encoding.startswith("utf-8") and data[: len(BOM)] == BOM else 0
    start, end = _first_bounds(options, data, at, name)
    text = to_utf8(options, data[start:end], name, start) if options.cuttable else data[start:end]
    line = line_after(data[:start])
    width = _width(options, text)
    if width > limits.COLUMNS:
        raise limits.too_many_columns(name, width, line=line)
    found = names_in(options, text)
    limits.check_columns(found, name, line=line)
    if not options.has_header:
        return Header(found, at, text, _cells(options, width))
    if not text.strip(options.delimiter.encode() + options.quote_char.encode() + b" \t\r\n"):
        raise InputError(name, "the header row is empty" if text else "the header row is missing: the file is empty", line=line)
    return Header(found, end, text, text, line)


def names_in(options: CsvReadOptions, record: bytes) -> tuple[str, ...]:
    """Column names from a file's first record (UTF-8), or without a header from any as long. A column without a name is called by its place."""
    width = _width(options, record)
    places = {str(index): index for index in range(width)}
    table = parse_cells(options, record, width, places) if options.has_header else None
    if table is None:
        return tuple(f"col_{index}" for index in range(width))
    names = [table.column(place)[0].as_py() for place in places]
    return tuple(name or f"col_{index}" for index, name in enumerate(names))


def _cells(options: CsvReadOptions, width: int) -> bytes:
    """A record of some cells (UTF-8). Records are read in the same way whatever the first one holds, so that another first record changes no other."""
    cell = next(one for one in "abc" if one not in (options.delimiter, options.quote_char))
    return options.delimiter.join([cell] * width).encode()


def _width(options: CsvReadOptions, record: bytes) -> int:
    """The number of cells of a record."""
    return int(records(as_bytes(record), Dialect.of(options)).cells[0]) if record else 0


def _first_bounds(options: CsvReadOptions, data: Buffer, at: int, name: str) -> tuple[int, int]:
    """Start and end of the first record from `at` on; both are `at` where there is none."""
    size, dialect = _FIRST_LOOK, Dialect.of(options)
    while True:
        found = records(as_bytes(data[at : at + size]), dialect)
        whole = at + size >= len(data)
        if len(found.starts) and (whole or len(found.starts) > 1):
            if found.open_quote and len(found.starts) == 1:
                raise InputError(name, "a quoted field is never closed", line=1)
            start, end = int(found.starts[0]), int(found.ends[0])
            if end - start > limits.RECORD_BYTES:
                raise limits.record_too_long(name, line=1, what="the first record")
            return start + at, end + at
        if whole:
            return at, at
        if size > limits.RECORD_BYTES:
            raise limits.record_too_long(name, line=1, what="the first record")
        size *= 4
