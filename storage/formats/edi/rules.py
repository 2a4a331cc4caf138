"""What the readers and writers of EDIFACT and X12 share; apart from the reading, so that a check of a pipeline loads nothing heavy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field
from typing_extensions import override

from changelog.lazy_imports import pa
from storage.formats.base import Buffer, Column, OptionError, Options, Range, Reader, Writer

if TYPE_CHECKING:

    from storage.formats.edi.segments import Body, Seen


class EdiReadOptions(Options):
    """`options:` of an EDIFACT or X12 source."""

    max_elements: int = Field(32, ge=1, le=999)


class EdiWriteOptions(Options):
    """What the `options:` of EDIFACT and X12 outputs share: where the elements of the opening segment come from."""

    interchange: tuple[str, ...] | None = None
    interchange_from_doc: str | None = None
    segment_newline: bool = True


class EdiWriter(Writer):
    """Writes one interchange; a session sees every record in order."""

    form: ClassVar[str]
    splittable: ClassVar[bool] = False
    sequential: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.options.interchange is None and self.options.interchange_from_doc is None:
            raise OptionError(f"{self.form} output needs options.interchange or options.interchange_from_doc", ("options",))


class EdiReader(Reader):
    """Reads interchanges: each segment between the service segments is a record. A format says what its interchanges are made of."""

    Options: ClassVar[type[Options]] = EdiReadOptions
    form: ClassVar[str]
    header_tag: ClassVar[str]
    """The segment that opens an interchange, the only one that a section can be."""
    named: ClassVar[tuple[str, str, str]]
    """The columns besides the elements: tag, reference and type of what the segment stands in."""
    options: EdiReadOptions

    def __post_init__(self) -> None:
        for section in self.plan.sections:
            if section.kind != "segment" or section.where != self.header_tag:
                path = ("envelope", "sections", section.name, "extract")
                told = f'{self.form} source takes segment: "{self.header_tag}", not {section.kind}: {section.where!r}'
                raise OptionError(f"envelope section '{section.name}': {told}", path)

    def bodies(self, data: Buffer, name: str, seen: Seen | None = None) -> Iterator[Body]:
        """The records of an interchange; none with `seen`, which is told of their fields. Raises InputError."""
        raise NotImplementedError

    def header(self, data: Buffer, name: str) -> Sequence[str]:
        """The elements of the segment that opens the interchange. Raises InputError."""
        raise NotImplementedError

    @override
    def undeclared(self, data: Buffer, name: str) -> tuple[Column, ...]:
        from storage.formats.edi.segments import undeclared_fields

        return undeclared_fields(self, data, name)

    @override
    def read(self, data: Buffer, name: str, part: Range | None = None) -> Iterator[pa.RecordBatch]:
        from storage.formats.edi.segments import body_batches

        sections = self.envelope(data, name) if self.plan.document else {}
        return body_batches(self.plan, self.bodies(data, name), sections)

    @override
    def envelope(self, data: Buffer, name: str) -> dict[str, dict[str, Any]]:
        from storage.formats.edi.segments import interchange_sections

        return interchange_sections(self.plan.sections, self.header(data, name), name)
