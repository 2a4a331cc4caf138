"""Base of the readers, the writers and the options of EDIFACT and X12."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from pydantic import Field
from typing_extensions import TypeVar, override

from changelog.lazy_imports import pa
from storage.files.errors import Buffer
from storage.formats.base import Column, Range, Reader, Session, Writer
from storage.formats.edi.reading import NAMES, Body, Seen, body_batches, interchange_sections
from storage.formats.edi.writing import Interchange
from storage.formats.options import OptionError, Options


class EdiReadOptions(Options):
    """`options:` of an EDIFACT or X12 source."""

    max_elements: int = Field(default=32, ge=1, le=999, description="The most elements of a segment, which are the columns e01, e02 and so on (E235).", examples=[64])


class EdiWriteOptions(Options):
    """`options:` of EDIFACT and X12 outputs.

    The elements of the opening segment come from `interchange`, or from the document section that `interchange_from_doc` names.
    """

    interchange: tuple[str, ...] | None = Field(default=None, description="The elements of the segment that opens the interchange.", examples=[["SENDER", "RECEIVER"]])
    interchange_from_doc: str | None = Field(default=None, description="The document section of a source that has these elements (E325).", examples=["head"])
    segment_newline: bool = Field(default=True, description="Whether a line feed follows each segment.")


OptionsT = TypeVar("OptionsT", bound=EdiWriteOptions)


class EdiWriter(Writer[OptionsT]):
    """Writes one interchange. Its session gets all records in order."""

    form: ClassVar[str]
    session: ClassVar[type[Interchange]]
    splittable: ClassVar[bool] = False
    sequential: ClassVar[bool] = True
    flat: ClassVar[frozenset[str]] = frozenset({"array", "map"})

    def __post_init__(self) -> None:
        if self.options.interchange is None and self.options.interchange_from_doc is None:
            raise OptionError(f"{self.form} output needs options.interchange or options.interchange_from_doc", ("options",))

    @override
    def held(self) -> Iterator[Column]:
        return (column for column in self.plan.columns if not column.name.startswith("$"))

    @override
    def open(self) -> Session:
        return self.session(self)


class InterchangeFiles(Protocol):
    """The module that reads the interchanges of one format."""

    def bodies_of(self, data: Buffer, name: str, most: int, seen: Seen | None = None) -> Iterator[Body]:
        """The records of an interchange with at most `most` elements; none with `seen`, which collects their fields. Raises InputError."""

    def header_of(self, data: Buffer, name: str) -> Sequence[str]:
        """The elements of the segment that opens the interchange. Raises InputError."""


class EdiReader(Reader[EdiReadOptions]):
    """Reads interchanges: each segment between the service segments is a record."""

    Options: ClassVar[type[Options]] = EdiReadOptions
    form: ClassVar[str]
    header_tag: ClassVar[str]
    """The segment that opens an interchange, the only one that can be a section."""
    named: ClassVar[tuple[str, str, str]]
    """The columns before the elements: tag, and reference and type of the message around the segment."""
    files: ClassVar[InterchangeFiles]

    def __post_init__(self) -> None:
        for section in self.plan.sections:
            if section.kind != "segment" or section.where != self.header_tag:
                path = ("envelope", "sections", section.name, "extract")
                given = f'{self.form} source takes segment: "{self.header_tag}", not {section.kind}: {section.where!r}'
                raise OptionError(f"envelope section '{section.name}': {given}", path)

    @override
    def undeclared(self, data: Buffer, name: str) -> tuple[Column, ...]:
        if self.plan.on_unmapped == "drop":
            return ()
        seen = Seen()
        for _ in self.files.bodies_of(data, name, self.options.max_elements, seen):
            pass
        extra = [field for field in (*self.named, *NAMES[: self.options.max_elements]) if field in seen.names]
        return self.plan.undeclared_among(extra, name)

    @override
    def read(self, data: Buffer, name: str, part: Range | None = None) -> Iterator[pa.RecordBatch]:
        sections: Mapping[str, Mapping[str, Any]] = self.envelope(data, name) if self.plan.document else {}
        return body_batches(self.plan, self.files.bodies_of(data, name, self.options.max_elements), sections)

    @override
    def envelope(self, data: Buffer, name: str) -> dict[str, dict[str, Any]]:
        return interchange_sections(self.plan.sections, self.files.header_of(data, name), name)
