"""CSV: RFC 4180 quoting, LF, CR LF or CR line ends. Blank lines are no records.

A quote opens only at the start of a field. Text after a closing quote belongs to the field, as in Python's `csv`. A record with too few or too many
cells is a reject of category `malformed_record`. A quote that is never closed, bytes that are not valid in the encoding, and a header that is empty or
has a name twice are input errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from typing_extensions import override

from changelog.lazy_imports import pa
from storage.files.errors import Buffer, ends_a_line
from storage.formats import register_reader, register_writer
from storage.formats.base import CHUNK_BYTES, Column, Range, Reader, Scanned, Starts, StartsOfPiece, T, Writer, section_notes
from storage.formats.csv.header import header_of
from storage.formats.csv.options import CsvReadOptions, CsvWriteOptions
from storage.formats.csv.parse import read_chunk
from storage.formats.csv.ranges import ranges_of, scan_records, starts_within
from storage.formats.csv.write import has_formulas, header_line, lines_of, render
from storage.formats.missing_columns import missing_columns
from storage.formats.options import Options


@register_reader("csv")
class CsvReader(Reader[CsvReadOptions]):
    """Reads CSV. Undeclared columns are strings, in the order of the header."""

    Options: ClassVar[type[Options]] = CsvReadOptions
    splittable: ClassVar[bool] = True
    delimited: ClassVar[bool] = True

    @override
    def notes(self) -> Sequence[str]:
        return section_notes(self.plan, "a CSV")

    @override
    def undeclared(self, data: Buffer, name: str) -> tuple[Column, ...]:
        header = header_of(self.options, data, name)
        self.plan.check_names(header.names, name, header.line)
        lacking = self.plan.lacking(header.names) if self.options.has_header or header.text else ()
        if lacking:
            raise missing_columns(self.plan, lacking, header.names, name, line=header.line, text=header.text, delimiter=self.options.delimiter, numbered=not self.options.has_header)
        return self.plan.undeclared_among(header.names, name, header.line)

    @override
    def cell_order(self, data: Buffer, name: str) -> tuple[str, ...]:
        return header_of(self.options, data, name).names

    @property
    @override
    def separators(self) -> tuple[str, str]:
        return self.options.delimiter, self.options.quote_char

    @override
    def split(self, data: Buffer, name: str, target: int = CHUNK_BYTES) -> list[Range]:
        return ranges_of(self.options, data, name, target)

    @override
    def record_starts(self, data: Buffer, name: str, look: Callable[[StartsOfPiece], T]) -> Scanned[T] | None:
        return scan_records(self.options, data, name, look)

    @override
    def may_begin(self, data: Buffer, start: int, place: int) -> bool:
        return data[start:place].count(self.options.quote_char.encode()) % 2 == 0

    @override
    def starts_within(self, data: Buffer, start: int, end: int) -> Starts:
        return starts_within(self.options, data, start, end)

    @override
    def tail(self, data: Buffer, name: str, start: int, first_row: int) -> Range | None:
        if not self.options.cuttable or not ends_a_line(data, start):
            return None
        header = header_of(self.options, data, name)
        return Range(start, len(data), first_row, header.head) if start >= header.end and header.head else None

    @override
    def read(self, data: Buffer, name: str, part: Range | None = None) -> Iterator[pa.RecordBatch]:
        return self.documented(read_chunk(self, bytes(data), name, part))


@register_writer("csv")
class CsvWriter(Writer[CsvWriteOptions]):
    """Writes CSV: LF line ends, quotes only where needed, null as an empty cell."""

    Options: ClassVar[type[Options]] = CsvWriteOptions
    has_header_row: ClassVar[bool] = True
    flat: ClassVar[frozenset[str]] = frozenset({"map"})

    @override
    def header(self) -> bytes:
        return header_line(self.plan, self.options) if self.plan.include_header else b""

    @override
    def render(self, batch: pa.RecordBatch) -> bytes:
        return render(batch, self.plan, self.options)

    @property
    @override
    def looks_for_formulas(self) -> bool:
        return not self.options.formula_guard

    @override
    def has_formulas(self, batch: pa.RecordBatch) -> bool:
        return has_formulas(batch, self.plan)

    @override
    def rows(self, batch: pa.RecordBatch) -> list[bytes]:
        return lines_of(self.render(batch), self.options)
