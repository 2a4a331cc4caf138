"""JSON: an array of objects, one object, or an object a line.

Rejects of category `malformed_record`: a line that is no JSON, an element that is no object, a record that has a member twice. Input errors: a document
that is no JSON, a `record_path` that leads to no array, more than 1000 levels. Nested values are JSON text in columns of type any, array or string.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from typing_extensions import override

from changelog.lazy_imports import pa
from storage.files.errors import Buffer, ends_a_line
from storage.formats import register_reader, register_writer
from storage.formats.base import Range, Scanned, Starts, StartsOfPiece, T, Writer
from storage.formats.documents import DocumentFiles, DocumentReader
from storage.formats.json import read
from storage.formats.json.change_feeds import event_fields
from storage.formats.json.options import JsonReadOptions, JsonWriteOptions
from storage.formats.json.write import objects
from storage.formats.line_files import lines_within, scan_lines
from storage.formats.nested_names import clash
from storage.formats.options import OptionError, Options

COUNTED_BYTES = 64 << 20
"""Bytes of a file in which empty arrays are counted: in a larger one that would cost more than reading what changed."""


@register_reader("json")
class JsonReader(DocumentReader[JsonReadOptions]):
    """Reads JSON. Undeclared members are columns of type any, in the order of their first appearance."""

    Options: ClassVar[type[Options]] = JsonReadOptions
    undeclared_type: ClassVar[str] = "any"
    form: ClassVar[str] = "a JSON"
    section_kind: ClassVar[str] = "json_pointer"
    files: ClassVar[DocumentFiles] = read

    def __post_init__(self) -> None:
        DocumentReader.__post_init__(self)
        if self.plan.events is not None and (self.plan.array_paths or self.options.record_path is not None):
            raise OptionError("a change feed has messages with rows, and neither record_path nor array_paths", ("options", "cdc"))

    @override
    def schema(self) -> pa.Schema:
        own = DocumentReader.schema(self)
        return own if self.plan.events is None else pa.schema([*own, *event_fields(self.plan)])

    @override
    def record_starts(self, data: Buffer, name: str, look: Callable[[StartsOfPiece], T]) -> Scanned[T] | None:
        return scan_lines(data, look) if read.has_plain_lines(self, data) else None

    @override
    def starts_within(self, data: Buffer, start: int, end: int) -> Starts:
        return lines_within(data, start, end)

    @property
    @override
    def tells(self) -> bool:
        return any(path.mode == "explode" for path in self.plan.array_paths)

    @override
    def left_out(self, data: Buffer, name: str) -> Sequence[str]:
        counts = read.empty_arrays_of(self, data, name) if len(data) <= COUNTED_BYTES else {}
        return [f"{count:,} empty array{'s' if count > 1 else ''} '{path}', of which no record is made" for path, count in counts.items() if count]

    @override
    def tail(self, data: Buffer, name: str, start: int, first_row: int) -> Range | None:
        return Range(start, len(data), first_row, b"lines") if read.has_plain_lines(self, data) and ends_a_line(data, start) else None


@register_writer("json")
class JsonWriter(Writer[JsonWriteOptions]):
    """Writes JSON: one array (the default) or an object a line. A null is an empty text unless nulls are preserved."""

    Options: ClassVar[type[Options]] = JsonWriteOptions

    @override
    def header(self) -> bytes:
        return b"[" if self.options.format == "array" else b""

    @override
    def separator(self) -> bytes:
        return b"," if self.options.format == "array" else b""

    @override
    def footer(self) -> bytes:
        return b"\n]\n" if self.options.format == "array" else b""

    @override
    def render(self, batch: pa.RecordBatch) -> bytes:
        return self.separator().join(self.rows(batch))

    @override
    def clash(self) -> tuple[str, str] | None:
        return clash(column.name for column in self.plan.columns) if self.options.nested else None

    @override
    def rows(self, batch: pa.RecordBatch) -> list[bytes]:
        pretty, quoted = self.options.pretty and self.options.format == "array", self.options.decimals == "string"
        texts = objects(batch, self.plan, pretty=pretty, nested=self.options.nested, quoted=quoted)
        return [b"\n" + text if self.options.format == "array" else text + b"\n" for text in texts]
