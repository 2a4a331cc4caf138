"""Fixed-width files: a format schema gives the positions of the fields in each line.

Positions and widths are bytes. The last fields of a line that ends early are null. With `line_separator: none` an incomplete last record is an input
error. Only fields that the source's schema names are read; there are no undeclared columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar

from typing_extensions import override

from changelog.lazy_imports import pa
from storage.files.errors import Buffer, ends_a_line
from storage.formats import register_reader, register_writer
from storage.formats.base import CHUNK_BYTES, Column, Range, Reader, Scanned, Starts, StartsOfPiece, T, Writer, section_notes
from storage.formats.fixed_width.layout import FixedWidthOptions, Layout
from storage.formats.fixed_width.read import ranges_of, read_records, scan_records
from storage.formats.fixed_width.write import lines
from storage.formats.line_files import lines_within
from storage.formats.options import Options


@register_reader("fixed_width")
class FixedWidthReader(Reader[FixedWidthOptions]):
    """Reads fixed-width files. `plan.layout` is the content of the format schema."""

    Options: ClassVar[type[Options]] = FixedWidthOptions
    splittable: ClassVar[bool] = True
    laid_out: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.layout()

    def layout(self) -> Layout:
        """The checked layout. Raises OptionError."""
        return Layout.of(self.plan.layout, "format_schema")

    @override
    def notes(self) -> Sequence[str]:
        inert = "on_unmapped: auto_widen finds nothing, since bytes beyond the fields of the layout are not read; `on_unmapped: drop` says the same"
        laid_out = {field.name for field in self.layout().fields}
        absent = [f"column '{column.name}' is null: the format schema has no field of that name" for column in self.plan.declared if column.name not in laid_out]
        return (*((inert,) if self.plan.on_unmapped == "auto_widen" else ()), *absent, *section_notes(self.plan, "a fixed-width"))

    @override
    def split(self, data: Buffer, name: str, target: int = CHUNK_BYTES) -> list[Range]:
        return ranges_of(self.options, self.layout(), data, name, target)

    @override
    def record_starts(self, data: Buffer, name: str, look: Callable[[StartsOfPiece], T]) -> Scanned[T] | None:
        return scan_records(self.options, self.layout(), data, look)

    @override
    def starts_within(self, data: Buffer, start: int, end: int) -> Starts | None:
        return lines_within(data, start, end, blank_lines=True) if self.options.line_end else None

    @override
    def tail(self, data: Buffer, name: str, start: int, first_row: int) -> Range | None:
        if self.options.line_end:
            return Range(start, len(data), first_row, b"lines") if ends_a_line(data, start) else None
        return Range(start, len(data), first_row, b"records") if start % self.layout().length == 0 else None

    @override
    def read(self, data: Buffer, name: str, part: Range | None = None) -> Iterator[pa.RecordBatch]:
        return self.documented(read_records(self, self.layout(), bytes(data), name, part))


@register_writer("fixed_width")
class FixedWidthWriter(Writer[FixedWidthOptions]):
    """Writes the layout's fields in their order, without gaps. Other columns are not written."""

    Options: ClassVar[type[Options]] = FixedWidthOptions
    laid_out: ClassVar[bool] = True
    flat: ClassVar[frozenset[str]] = frozenset({"map"})

    def __post_init__(self) -> None:
        self.layout()

    def layout(self) -> Layout:
        """The checked layout. Raises OptionError."""
        return Layout.of(self.plan.layout, "schema")

    @override
    def held(self) -> Iterable[Column]:
        names = {field.name for field in self.layout().fields}
        return (column for column in self.plan.columns if column.name in names)

    @override
    def render(self, batch: pa.RecordBatch) -> bytes:
        return b"".join(self.rows(batch))

    @override
    def rows(self, batch: pa.RecordBatch) -> list[bytes]:
        return lines(batch, self.plan, self.layout(), self.options.line_end)
