"""UN/EDIFACT (user guide, "EDIFACT Format"): one interchange a file, each segment between the service segments a record.

Columns: `seg_id`, `msg_ref` and `msg_type` (of the message, on each of its records), `e01` and so on. A count or reference that does not fit, a missing UNZ,
content behind it, functional groups, and text that is not UTF-8 are input errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from storage.formats import register_reader, register_writer
from storage.formats.base import Buffer, Options
from storage.formats.edi.rules import EdiReader, EdiWriteOptions, EdiWriter

if TYPE_CHECKING:
    from storage.formats.base import Session
    from storage.formats.edi.segments import Body, Seen


class EdifactWriteOptions(EdiWriteOptions):
    """`options:` of an EDIFACT output: the UNB elements come from `interchange` or from the document section that `interchange_from_doc` names."""

    message_type: str | None = None
    write_una: bool = False


@register_reader("edifact")
class EdifactReader(EdiReader):
    """Reads EDIFACT interchanges."""

    form: ClassVar[str] = "an EDIFACT"
    header_tag: ClassVar[str] = "UNB"
    named: ClassVar[tuple[str, str, str]] = ("seg_id", "msg_ref", "msg_type")

    @override
    def bodies(self, data: Buffer, name: str, seen: Seen | None = None) -> Iterator[Body]:
        from storage.formats.edifact.read import bodies_of

        return bodies_of(data, name, self.options.max_elements, seen)

    @override
    def header(self, data: Buffer, name: str) -> Sequence[str]:
        from storage.formats.edifact.read import header_of

        return header_of(data, name)


@register_writer("edifact")
class EdifactWriter(EdiWriter):
    """Writes one interchange; a session sees every record in order."""

    Options: ClassVar[type[Options]] = EdifactWriteOptions
    form: ClassVar[str] = "an EDIFACT"
    echoes: ClassVar[str | None] = "UNB"
    options: EdifactWriteOptions

    @override
    def open(self) -> Session:
        from storage.formats.edifact.write import Interchange

        return Interchange(self)
