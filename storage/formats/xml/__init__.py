"""XML: the elements at a path are records, their attributes and children are fields.

Nothing external is read and no declared entity is expanded. Input errors: a reference to an entity, text that is not well-formed, more than 1000 levels.
Children may repeat where `array_paths` or a column of type array names them. A record with other repeated children is a reject, unless nothing of them is
read. The text of a record without children is the field of its own name, where the schema declares it.
"""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from changelog.lazy_imports import pa
from storage.formats import register_reader, register_writer
from storage.formats.base import Writer
from storage.formats.documents import DocumentFiles, DocumentReader
from storage.formats.nested_names import clash
from storage.formats.options import OptionError, Options
from storage.formats.xml import read
from storage.formats.xml.names import is_name
from storage.formats.xml.options import XmlReadOptions, XmlWriteOptions
from storage.formats.xml.write import elements


@register_reader("xml")
class XmlReader(DocumentReader[XmlReadOptions]):
    """Reads XML. Undeclared fields are strings."""

    Options: ClassVar[type[Options]] = XmlReadOptions
    form: ClassVar[str] = "an XML"
    section_kind: ClassVar[str] = "xml_path"
    files: ClassVar[DocumentFiles] = read

    def __post_init__(self) -> None:
        DocumentReader.__post_init__(self)
        wrong = next((array.path for array in self.plan.array_paths if not array.steps or not all(map(is_name, array.steps))), None)
        if wrong is not None:
            raise OptionError(f"array_paths: '{wrong}' is no path to a child element: it is written a.b, from the record's element on", ("array_paths",))

    @override
    def nothing_found(self) -> str | None:
        path = self.options.record_path
        return None if path is None else f"no element is at record_path '{path}'"


@register_writer("xml")
class XmlWriter(Writer[XmlWriteOptions]):
    """Writes XML: dotted names nest, a last part that begins with `@` is an attribute, a null is an empty element, a map an element with children."""

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
        return elements(batch, self.plan, self.options.record_element, nested=self.options.nested)

    @override
    def clash(self) -> tuple[str, str] | None:
        return clash((column.name for column in self.plan.columns), attributes=True) if self.options.nested else None
