"""Fixed-width files (user guide, "Fixed-width"; SPEC-DECISIONS, "Formats: Fixed-width"): fields at byte positions that a format schema gives.

Positions and widths are bytes. A line that ends early leaves its last fields null; with `line_separator: none` an incomplete last record is an input
error. Fields of the layout that the schema does not name are not read, and there are no undeclared columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Literal

from typing_extensions import override

from changelog.lazy_imports import pa
from storage.formats import register_reader, register_writer
from storage.formats.base import CHUNK_BYTES, Buffer, Looked, Options, Range, Reader, Starts, T, Writer, begins_a_line, without_sections
from storage.formats.fixed_width.layout import Layout


class FixedWidthOptions(Options):
    """`options:` of a fixed-width source or output."""

    line_separator: Literal["lf", "crlf", "cr_lf", "none"] = "lf"

    @property
    def line_end(self) -> bytes:
        """The bytes between two records."""
        return {"lf": b"\n", "none": b""}.get(self.line_separator, b"\r\n")


@register_reader("fixed_width")
class FixedWidthReader(Reader):
    """Reads fixed-width files; `plan.layout` is the content of the format schema."""

    Options: ClassVar[type[Options]] = FixedWidthOptions
    splittable: ClassVar[bool] = True
    laid_out: ClassVar[bool] = True
    options: FixedWidthOptions

    def __post_init__(self) -> None:
        self.fields()

    def fields(self) -> Layout:
        """The layout, checked. Raises OptionError."""
        return Layout.of(self.plan.layout, "format_schema")

    @override
    def notes(self) -> Sequence[str]:
        inert = "on_unmapped: auto_widen finds nothing, since bytes beyond the fields of the layout are not read; `on_unmapped: drop` says the same"
        laid_out = {field.name for field in self.fields().fields}
        absent = [f"column '{column.name}' is null: the format schema has no field of that name" for column in self.plan.declared if column.name not in laid_out]
        return (*((inert,) if self.plan.on_unmapped == "auto_widen" else ()), *absent, *without_sections(self.plan, "a fixed-width"))

    @override
    def split(self, data: Buffer, name: str, target: int = CHUNK_BYTES) -> list[Range]:
        from storage.formats.fixed_width.read import ranges_of

        return ranges_of(self, data, name, target)

    @override
    def record_starts(self, data: Buffer, name: str, look: Callable[[Starts], T]) -> Looked[T] | None:
        from storage.formats.fixed_width.read import record_starts_of

        return record_starts_of(self, data, look)

    @override
    def tail(self, data: Buffer, name: str, start: int, first_row: int) -> Range | None:
        if self.options.line_end:
            return Range(start, len(data), first_row, b"lines") if begins_a_line(data, start) else None
        return Range(start, len(data), first_row, b"records") if start % self.fields().length == 0 else None

    @override
    def read(self, data: Buffer, name: str, part: Range | None = None) -> Iterator[pa.RecordBatch]:
        from storage.formats.fixed_width.read import read_records

        return self.documented(read_records(self, bytes(data), name, part))


@register_writer("fixed_width")
class FixedWidthWriter(Writer):
    """Writes the layout's fields in their order, packed; other columns are not written."""

    Options: ClassVar[type[Options]] = FixedWidthOptions
    laid_out: ClassVar[bool] = True
    options: FixedWidthOptions

    def __post_init__(self) -> None:
        self.fields()

    def fields(self) -> Layout:
        """The layout, checked. Raises OptionError."""
        return Layout.of(self.plan.layout, "schema")

    @override
    def render(self, batch: pa.RecordBatch) -> bytes:
        return b"".join(self.rows(batch))

    @override
    def rows(self, batch: pa.RecordBatch) -> list[bytes]:
        from storage.formats.fixed_width.write import lines

        return lines(batch, self.plan, self.fields(), self.options.line_end)
