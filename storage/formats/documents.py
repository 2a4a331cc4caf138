"""Base of the readers of nested documents: JSON and XML."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Protocol

from typing_extensions import override

from changelog.lazy_imports import pa
from storage.files.errors import Buffer
from storage.formats.base import CHUNK_BYTES, Column, OptionsT, Range, Reader, with_document
from storage.formats.options import OptionError


class DocumentFiles(Protocol):
    """The module that reads the documents of one format."""

    def undeclared_fields(self, reader: Reader, data: Buffer, name: str) -> tuple[Column, ...]:
        """The fields that the schema does not name, in order of first appearance. Raises InputError."""

    def ranges_of(self, reader: Reader, data: Buffer, name: str, target: int) -> list[Range]:
        """Ranges of whole records of about `target` bytes. Raises InputError."""

    def document_of(self, part: Range) -> str | None:
        """The DOCUMENT of the records of a range; None where it has to be read."""

    def read_records(self, reader: Reader, data: Buffer, name: str, part: Range | None) -> Iterator[pa.RecordBatch]:
        """The records of a whole document or of a range. Raises InputError."""

    def record_lines(self, reader: Reader, data: Buffer, name: str) -> Iterator[bytes]:
        """Each record as a line of JSON; a reject as another text. Raises InputError."""

    def sections_of(self, reader: Reader, data: Buffer, name: str) -> dict[str, dict[str, Any]]:
        """The declared sections of the document. Raises InputError for a value of another type."""


class DocumentReader(Reader[OptionsT]):
    """Reads documents whose records have nested arrays and only some of the fields, and whose envelope has sections."""

    splittable: ClassVar[bool] = True
    pageable: ClassVar[bool] = True
    nested: ClassVar[bool] = True
    sparse: ClassVar[bool] = True
    form: ClassVar[str]
    """The format in messages, with its article."""
    section_kind: ClassVar[str]
    """How its sections are found (`Section.kind`)."""
    files: ClassVar[DocumentFiles]

    def __post_init__(self) -> None:
        wrong = next((section for section in self.plan.sections if section.kind != self.section_kind), None)
        if wrong is not None:
            path = ("envelope", "sections", wrong.name, "extract")
            raise OptionError(f"envelope section '{wrong.name}': {self.form} source takes {self.section_kind}, not {wrong.kind}", path)

    @override
    def undeclared(self, data: Buffer, name: str) -> tuple[Column, ...]:
        return self.files.undeclared_fields(self, data, name)

    @override
    def split(self, data: Buffer, name: str, target: int = CHUNK_BYTES) -> list[Range]:
        return self.files.ranges_of(self, data, name, target)

    @override
    def read(self, data: Buffer, name: str, part: Range | None = None) -> Iterator[pa.RecordBatch]:
        batches = self.files.read_records(self, data, name, part)
        document = self.files.document_of(part) if self.plan.document and part else None
        return self.documented(batches, data, name) if document is None else with_document(batches, document)

    @override
    def lines(self, data: Buffer, name: str) -> Iterator[bytes]:
        return self.files.record_lines(self, data, name)

    @override
    def envelope(self, data: Buffer, name: str) -> dict[str, dict[str, Any]]:
        return self.files.sections_of(self, data, name)
