"""UN/EDIFACT (user guide, "EDIFACT Format"): one interchange a file, each segment between the service segments a record.

Columns: `seg_id`, `msg_ref` and `msg_type` (of the message, on each of its records), `e01` and so on. A count or reference that does not fit, a missing UNZ,
content behind it, functional groups, and text that is not UTF-8 are input errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field
from typing_extensions import override

from storage.formats import register_reader, register_writer
from storage.formats.contract import Buffer, Column, OptionError, Options, Range, Reader, Writer

if TYPE_CHECKING:
    import pyarrow as pa

    from storage.formats.contract import Session


class EdifactReadOptions(Options):
    """`options:` of an EDIFACT source."""

    max_elements: int = Field(32, ge=1, le=999)


class EdifactWriteOptions(Options):
    """`options:` of an EDIFACT output: the UNB elements come from `interchange` or from the document section that `interchange_from_doc` names."""

    interchange: tuple[str, ...] | None = None
    interchange_from_doc: str | None = None
    message_type: str | None = None
    write_una: bool = False
    segment_newline: bool = True


@register_reader("edifact")
class EdifactReader(Reader):
    """Reads EDIFACT interchanges."""

    Options: ClassVar[type[Options]] = EdifactReadOptions
    options: EdifactReadOptions

    def __post_init__(self) -> None:
        from storage.formats.edi_rules import check_sections

        check_sections(self.plan.sections, "UNB", "an EDIFACT source")

    @override
    def undeclared(self, data: Buffer, name: str) -> tuple[Column, ...]:
        from storage.formats.edifact.read import undeclared_columns

        return undeclared_columns(self, data, name)

    @override
    def read(self, data: Buffer, name: str, part: Range | None = None) -> Iterator[pa.RecordBatch]:
        from storage.formats.edifact.read import read_records

        return read_records(self, data, name)

    @override
    def envelope(self, data: Buffer, name: str) -> dict[str, dict[str, Any]]:
        from storage.formats.edifact.read import sections_of

        return sections_of(self, data, name)


@register_writer("edifact")
class EdifactWriter(Writer):
    """Writes one interchange; a session sees every record in order."""

    Options: ClassVar[type[Options]] = EdifactWriteOptions
    splittable: ClassVar[bool] = False
    sequential: ClassVar[bool] = True
    options: EdifactWriteOptions

    def __post_init__(self) -> None:
        if self.options.interchange is None and self.options.interchange_from_doc is None:
            raise OptionError("an EDIFACT output needs options.interchange or options.interchange_from_doc", ("options",))

    @override
    def open(self) -> Session:
        from storage.formats.edifact.write import Interchange

        return Interchange(self)
