"""CSV (user guide, "CSV"; SPEC-DECISIONS, "Sources" and "Formats: CSV"): RFC 4180 quoting, LF, CR LF or CR line ends, blank lines are no records.

A quote opens only at the start of a field; text behind a closing quote belongs to the field, as Python's `csv` has it. A record with too
few or too many cells is a reject of category `malformed_record`; a quote that is never closed, bytes that are not valid in the
encoding, an empty header or one that has a name twice are input errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field
from typing_extensions import override

from changelog.lazy_imports import pa
from storage.formats import register_reader, register_writer
from storage.formats.base import (
    CHUNK_BYTES,
    Buffer,
    Column,
    Looked,
    Options,
    Range,
    Reader,
    Starts,
    T,
    Writer,
    begins_a_line,
    without_sections,
)
from storage.formats.encodings import IN_WORDS, text_encoding


def _one_ascii(value: str) -> str:
    if len(value) != 1 or not value.isascii() or value in "\r\n\0":
        raise ValueError("must be one ASCII character that is no line end")
    return value


def _known_encoding(value: str) -> str:
    known = text_encoding(value)
    if known is None:
        raise ValueError(f"'{value[:80]}' is no encoding of text: use {IN_WORDS}")
    return known


Character = Annotated[str, AfterValidator(_one_ascii)]
Encoding = Annotated[str, AfterValidator(_known_encoding)]
# Encodings in which the bytes of separators, quotes and line ends never occur inside another character, so that a file can be cut as bytes.
_CUTTABLE = ("utf-8", "utf-8-sig", "ascii", "iso8859", "latin", "cp125", "cp437", "cp850", "koi8", "mac-", "mac_")


class CsvReadOptions(Options):
    """`options:` of a CSV source."""

    delimiter: Character = ","
    quote_char: Character = '"'
    has_header: bool = True
    encoding: Encoding = "utf-8"

    @property
    def cuttable(self) -> bool:
        """Whether ASCII characters are single bytes in the file's encoding, and only they."""
        return self.encoding.startswith(_CUTTABLE)


class CsvWriteOptions(Options):
    """`options:` of a CSV output. `formula_guard` puts an apostrophe before text that a spreadsheet would run as a formula."""

    delimiter: Character = ","
    formula_guard: bool = Field(False)


@register_reader("csv")
class CsvReader(Reader):
    """Reads CSV. Undeclared columns are strings and come in the header's order."""

    Options: ClassVar[type[Options]] = CsvReadOptions
    splittable: ClassVar[bool] = True
    options: CsvReadOptions

    @override
    def notes(self) -> Sequence[str]:
        return without_sections(self.plan, "a CSV")

    @override
    def undeclared(self, data: Buffer, name: str) -> tuple[Column, ...]:
        from storage.formats.csv.header import header_of

        header = header_of(self.options, data, name)
        self.plan.check_names(header.names, name, header.line)
        lacking = self.plan.lacking(header.names) if self.options.has_header or header.text else ()
        if lacking:
            from storage.formats.missing_columns import missing_columns

            raise missing_columns(self.plan, lacking, header.names, name, line=header.line, text=header.text, delimiter=self.options.delimiter, numbered=not self.options.has_header)
        return self.plan.beside(header.names, name, header.line)

    @override
    def split(self, data: Buffer, name: str, target: int = CHUNK_BYTES) -> list[Range]:
        from storage.formats.csv.ranges import ranges_of

        return ranges_of(self.options, data, name, target)

    @override
    def record_starts(self, data: Buffer, name: str, look: Callable[[Starts], T]) -> Looked[T] | None:
        from storage.formats.csv.ranges import record_starts_of

        return record_starts_of(self.options, data, name, look)

    @override
    def tail(self, data: Buffer, name: str, start: int, first_row: int) -> Range | None:
        from storage.formats.csv.header import header_of

        if not self.options.cuttable or not begins_a_line(data, start):
            return None
        header = header_of(self.options, data, name)
        return Range(start, len(data), first_row, header.text) if start >= header.end and header.text else None

    @override
    def read(self, data: Buffer, name: str, part: Range | None = None) -> Iterator[pa.RecordBatch]:
        from storage.formats.csv.parse import read_chunk

        return self.documented(read_chunk(self, bytes(data), name, part))


@register_writer("csv")
class CsvWriter(Writer):
    """Writes CSV: LF line ends, quotes only where needed, null as an empty cell."""

    Options: ClassVar[type[Options]] = CsvWriteOptions
    has_header_row: ClassVar[bool] = True
    options: CsvWriteOptions

    @override
    def header(self) -> bytes:
        from storage.formats.csv.write import header_line

        return header_line(self.plan, self.options) if self.plan.include_header else b""

    @override
    def render(self, batch: pa.RecordBatch) -> bytes:
        from storage.formats.csv.write import render

        return render(batch, self.plan, self.options)

    @property
    @override
    def looks_for_formulas(self) -> bool:
        return not self.options.formula_guard

    @override
    def has_formulas(self, batch: pa.RecordBatch) -> bool:
        from storage.formats.csv.write import has_formulas

        return has_formulas(batch, self.plan)

    @override
    def rows(self, batch: pa.RecordBatch) -> list[bytes]:
        from storage.formats.csv.write import lines_of

        return lines_of(self.render(batch), self.options)
