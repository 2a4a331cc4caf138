"""XML: the elements at a path are records, their attributes and children are fields.

Nothing external is read and no declared entity is expanded. Input errors: a reference to an entity, text that is not well-formed, more than 1000 levels.
Children may repeat where `array_paths` or a column of type array names them. A record with other repeated children is a reject, unless nothing of them is
read. The text of a record without children is the field of its own name, where the schema declares it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from typing_extensions import override

from changelog.lazy_imports import pa
from storage.files.errors import Buffer
from storage.formats import register_reader, register_writer
from storage.formats.base import CHUNK_BYTES, Column, Range, Reader, Writer, with_document
from storage.formats.options import OptionError, Options
from storage.formats.xml.names import is_name
from storage.formats.xml.options import XmlReadOptions, XmlWriteOptions
from storage.formats.xml.read import Part, ranges_of, read_records, record_lines, sections_of, undeclared_fields
from storage.formats.xml.write import elements


@register_reader("xml")
class XmlReader(Reader[XmlReadOptions]):
    """Reads XML. Undeclared fields are strings."""

    Options: ClassVar[type[Options]] = XmlReadOptions
    splittable: ClassVar[bool] = True
    pageable: ClassVar[bool] = True
    nested: ClassVar[bool] = True
    sparse: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.refuse_sections_but("xml_path", "an XML")
        wrong = next((array.path for array in self.plan.array_paths if not array.steps or not all(map(is_name, array.steps))), None)
        if wrong is not None:
            raise OptionError(f"array_paths: '{wrong}' is no path to a child element: it is written a.b, from the record's element on", ("array_paths",))

    @override
    def nothing_found(self) -> str | None:
        path = self.options.record_path
        return None if path is None else f"no element is at record_path '{path}'"

    @override
    def undeclared(self, data: Buffer, name: str) -> tuple[Column, ...]:
        return undeclared_fields(self, data, name)

    @override
    def split(self, data: Buffer, name: str, target: int = CHUNK_BYTES) -> list[Range]:
        return ranges_of(self, data, name, target)

    @override
    def read(self, data: Buffer, name: str, part: Range | None = None) -> Iterator[pa.RecordBatch]:
        batches = read_records(self, data, name, part)
        known = Part.of(part)
        return with_document(batches, known.document) if known and self.plan.document else self.documented(batches, data, name)

    @override
    def lines(self, data: Buffer, name: str) -> Iterator[bytes]:
        return record_lines(self, data, name)

    @override
    def envelope(self, data: Buffer, name: str) -> dict[str, dict[str, Any]]:
        return sections_of(self, data, name)


@register_writer("xml")
class XmlWriter(Writer[XmlWriteOptions]):
    """Writes XML: dotted names nest, a last part that begins with `@` is an attribute, a null is an empty element."""

    Options: ClassVar[type[Options]] = XmlWriteOptions

    @override
    def header(self) -> bytes:
        return f'<?xml version="1.0" encoding="UTF-8"?>\n<{self.options.root_element}>\n'.encode()

    @override
    def footer(self) -> bytes:
        return f"</{self.options.root_element}>\n".encode()

    @override
    def render(self, batch: pa.RecordBatch) -> bytes:
        return b"".join(self.rows(batch))

    @override
    def rows(self, batch: pa.RecordBatch) -> list[bytes]:
        return elements(batch, self.plan, self.options.record_element)
