"""JSON (user guide, "JSON" and "Array paths"; SPEC-DECISIONS, "Formats: JSON"): an array of objects, one object, or an object a line.

A line that is no JSON, an element that is no object, or a record with a member that comes twice is a reject of category `malformed_record`; a document that is no JSON, a `record_path` that
leads to no array, nesting deeper than 1000 levels are input errors. Nested values are JSON text in columns of type any, array or string.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal

from typing_extensions import override

from changelog.lazy_imports import pa
from storage.formats import register_reader, register_writer
from storage.formats.base import CHUNK_BYTES, Buffer, Column, Looked, Options, Range, Reader, Starts, T, Writer, begins_a_line, keys_of


class JsonReadOptions(Options):
    """`options:` of a JSON source; without `format` the content decides: `[` begins an array, lines of whole objects are NDJSON.

    `record_path` leads to the array of records in the document; under `format: ndjson` in each line. `duplicate_keys`: what becomes of a record with a member
    that comes twice.
    """

    format: Literal["array", "ndjson", "object"] | None = None
    record_path: str | None = None
    duplicate_keys: Literal["reject", "last"] = "reject"

    @property
    def steps(self) -> tuple[str, ...]:
        """The keys that lead to the records."""
        return keys_of(self.record_path or "")


class JsonWriteOptions(Options):
    """`options:` of a JSON output."""

    format: Literal["array", "ndjson"] = "array"
    pretty: bool = False


@register_reader("json")
class JsonReader(Reader):
    """Reads JSON. Undeclared members are columns of type any, in the order in which the file first shows them."""

    Options: ClassVar[type[Options]] = JsonReadOptions
    splittable: ClassVar[bool] = True
    pageable: ClassVar[bool] = True
    nested: ClassVar[bool] = True
    sparse: ClassVar[bool] = True
    undeclared_type: ClassVar[str] = "any"
    options: JsonReadOptions

    def __post_init__(self) -> None:
        self.refuse_sections_but("json_pointer", "a JSON")

    @override
    def undeclared(self, data: Buffer, name: str) -> tuple[Column, ...]:
        from storage.formats.json.read import undeclared_members

        return undeclared_members(self, data, name)

    @override
    def split(self, data: Buffer, name: str, target: int = CHUNK_BYTES) -> list[Range]:
        from storage.formats.json.read import ranges_of

        return ranges_of(self, data, name, target)

    @override
    def record_starts(self, data: Buffer, name: str, look: Callable[[Starts], T]) -> Looked[T] | None:
        from storage.formats.json.read import has_plain_lines
        from storage.formats.line_files import looked_at_lines

        return looked_at_lines(data, look) if has_plain_lines(self, data) else None

    @override
    def tail(self, data: Buffer, name: str, start: int, first_row: int) -> Range | None:
        from storage.formats.json.read import has_plain_lines

        return Range(start, len(data), first_row, b"lines") if has_plain_lines(self, data) and begins_a_line(data, start) else None

    @override
    def read(self, data: Buffer, name: str, part: Range | None = None) -> Iterator[pa.RecordBatch]:
        from storage.formats.batches import with_document
        from storage.formats.json.read import ELEMENTS, read_records

        batches = read_records(self, data, name, part)
        if self.plan.document and part and part.head.startswith(ELEMENTS):
            return with_document(batches, part.head.removeprefix(ELEMENTS).decode())
        return self.documented(batches, data, name)

    @override
    def lines(self, data: Buffer, name: str) -> Iterator[bytes]:
        from storage.formats.json.read import record_lines

        return record_lines(self, data, name)

    @override
    def envelope(self, data: Buffer, name: str) -> dict[str, dict[str, Any]]:
        from storage.formats.json.read import sections_of

        return sections_of(self, data, name)


@register_writer("json")
class JsonWriter(Writer):
    """Writes JSON: one array (the default) or an object a line; null as an empty text unless nulls are preserved."""

    Options: ClassVar[type[Options]] = JsonWriteOptions
    options: JsonWriteOptions

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
    def rows(self, batch: pa.RecordBatch) -> list[bytes]:
        from storage.formats.json.write import objects

        texts = objects(batch, self.plan, pretty=self.options.pretty and self.options.format == "array")
        return [b"\n" + text if self.options.format == "array" else text + b"\n" for text in texts]
