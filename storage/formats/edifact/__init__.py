"""UN/EDIFACT: one interchange a file, each segment between the service segments a record.

Columns: `seg_id`, `msg_ref` and `msg_type` (of the message around the record), `e01` and so on. Input errors: a wrong count or reference, a missing UNZ,
content after it, functional groups, text that is not UTF-8.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from storage.formats import register_reader, register_writer
from storage.formats.edi.base import EdiReader, EdiWriteOptions, EdiWriter, InterchangeFiles
from storage.formats.edi.writing import Interchange
from storage.formats.edifact import read
from storage.formats.edifact.write import EdifactInterchange
from storage.formats.options import Options


class EdifactWriteOptions(EdiWriteOptions):
    """`options:` of an EDIFACT output."""

    message_type: str | None = Field(default=None, description="The type of the messages in UNH, of records that do not bring one.", examples=["ORDERS:D:96A:UN"])
    write_una: bool = Field(default=False, description="Whether the interchange begins with a UNA segment.")


@register_reader("edifact")
class EdifactReader(EdiReader):
    """Reads EDIFACT interchanges."""

    form: ClassVar[str] = "an EDIFACT"
    header_tag: ClassVar[str] = "UNB"
    named: ClassVar[tuple[str, str, str]] = ("seg_id", "msg_ref", "msg_type")
    files: ClassVar[InterchangeFiles] = read


@register_writer("edifact")
class EdifactWriter(EdiWriter[EdifactWriteOptions]):
    """Writes one EDIFACT interchange."""

    Options: ClassVar[type[Options]] = EdifactWriteOptions
    form: ClassVar[str] = "an EDIFACT"
    echoes: ClassVar[str | None] = "UNB"
    session: ClassVar[type[Interchange]] = EdifactInterchange
