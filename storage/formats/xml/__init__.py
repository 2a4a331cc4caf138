"""XML (user guide, "XML"; SPEC-DECISIONS, "Formats: XML"): elements found by a path become records, their attributes and children fields.

Nothing external is read and no declared entity expanded: a reference to one, like anything that is not well-formed or nested deeper than 1000
levels, is an input error. Repeated children are those that `array_paths` names, or the elements of a column of type array; a record with others is a reject,
unless nothing is read of them. The text of a record without children is the field of its own name, where the schema declares it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator
from typing_extensions import override

from changelog.lazy_imports import pa
from storage.formats import register_reader, register_writer
from storage.formats.base import CHUNK_BYTES, Buffer, Column, OptionError, Options, Range, Reader, Writer
from storage.formats.xml.names import is_name


def _element_path(value: str) -> str:
    steps = value.removeprefix("/").removeprefix("/").removesuffix("/").split("/")
    if wrong := next((step for step in steps if not is_name(step)), None):
        raise ValueError(f"'{wrong}' is no name of an XML element: a path is //name, /a/b or a/b")
    return value


class XmlReadOptions(Options):
    """`options:` of an XML source. Without `record_path` the root element is the only record."""

    record_path: Annotated[str, AfterValidator(_element_path)] | None = None
    attribute_prefix: str = "@"
    namespace_handling: Literal["strip", "qualify"] = "strip"


def _element_name(value: str) -> str:
    if not is_name(value):
        raise ValueError(f"'{value}' is no name of an XML element")
    return value


class XmlWriteOptions(Options):
    """`options:` of an XML output."""

    root_element: Annotated[str, AfterValidator(_element_name)] = "Root"
    record_element: Annotated[str, AfterValidator(_element_name)] = "Record"


@register_reader("xml")
class XmlReader(Reader):
    """Reads XML. All values are text until the declared type makes them something else; undeclared fields are strings."""

    Options: ClassVar[type[Options]] = XmlReadOptions
    splittable: ClassVar[bool] = True
    pageable: ClassVar[bool] = True
    nested: ClassVar[bool] = True
    sparse: ClassVar[bool] = True
    options: XmlReadOptions

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
        from storage.formats.xml.read import undeclared_fields

        return undeclared_fields(self, data, name)

    @override
    def split(self, data: Buffer, name: str, target: int = CHUNK_BYTES) -> list[Range]:
        from storage.formats.xml.read import ranges_of

        return ranges_of(self, data, name, target)

    @override
    def read(self, data: Buffer, name: str, part: Range | None = None) -> Iterator[pa.RecordBatch]:
        from storage.formats.batches import with_document
        from storage.formats.xml.read import Part, read_records

        batches = read_records(self, data, name, part)
        known = Part.of(part)
        return with_document(batches, known.document) if known and self.plan.document else self.documented(batches, data, name)

    @override
    def lines(self, data: Buffer, name: str) -> Iterator[bytes]:
        from storage.formats.xml.read import record_lines

        return record_lines(self, data, name)

    @override
    def envelope(self, data: Buffer, name: str) -> dict[str, dict[str, Any]]:
        from storage.formats.xml.read import sections_of

        return sections_of(self, data, name)


@register_writer("xml")
class XmlWriter(Writer):
    """Writes XML: dotted names nest, a last part that begins with `@` is an attribute, null is an empty element."""

    Options: ClassVar[type[Options]] = XmlWriteOptions
    options: XmlWriteOptions

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
        from storage.formats.xml.write import elements

        return elements(batch, self.plan, self.options.record_element)
