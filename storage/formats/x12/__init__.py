"""ANSI ASC X12: one interchange a file, ISA to IEA, GS to GE, ST to SE, each segment inside a set a record.

Columns: `seg_id`, `set_ref`, `set_type`, `e01` and so on. The ISA header defines the delimiters. Input errors: a wrong count or control number, a missing
IEA, content after it. `_doc` has the levels around each record as sections `functional_group` and `transaction_set`, in addition to the declared ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pydantic import Field
from typing_extensions import override

from storage.formats import register_reader, register_writer
from storage.formats.edi.base import EdiReader, EdiWriteOptions, EdiWriter, InterchangeFiles
from storage.formats.edi.reading import element_name
from storage.formats.edi.writing import Interchange
from storage.formats.options import OptionError, Options
from storage.formats.x12 import read
from storage.formats.x12.write import X12Interchange


class X12WriteOptions(EdiWriteOptions):
    """`options:` of an X12 output. `group_header` are the elements of the GS segment."""

    interchange: tuple[str, ...] | None = Field(
        default=None, min_length=16, max_length=16, description="The elements ISA01 to ISA16 of the segment that opens the interchange.",
        examples=[["00", "", "00", "", "ZZ", "SENDER", "ZZ", "SHOP", "260131", "1200", "U", "00401", "1", "0", "P", ">"]],
    )
    group_header: tuple[str, ...] | None = Field(default=None, min_length=8, max_length=8, description="The elements GS01 to GS08 of the functional group; an X12 output needs them.", examples=[["PO", "SENDER", "RECEIVER", "20260131", "1200", "1", "X", "004010"]])
    set_type: str | None = Field(default=None, description="The type of the transaction sets in ST, of records that do not bring one.", examples=["850"])


GROUP_ELEMENTS = 8
"""Elements of a GS segment."""


@register_reader("x12")
class X12Reader(EdiReader):
    """Reads X12 interchanges."""

    form: ClassVar[str] = "an X12"
    header_tag: ClassVar[str] = "ISA"
    named: ClassVar[tuple[str, str, str]] = ("seg_id", "set_ref", "set_type")
    files: ClassVar[InterchangeFiles] = read

    @override
    def levels(self) -> Mapping[str, Sequence[str]]:
        elements = [element_name(index) for index in range(1, max(self.options.max_elements, GROUP_ELEMENTS) + 1)]
        return {"functional_group": elements, "transaction_set": elements[: self.options.max_elements]}


@register_writer("x12")
class X12Writer(EdiWriter[X12WriteOptions]):
    """Writes one X12 interchange with one functional group."""

    Options: ClassVar[type[Options]] = X12WriteOptions
    form: ClassVar[str] = "an X12"
    echoes: ClassVar[str | None] = "ISA"
    session: ClassVar[type[Interchange]] = X12Interchange

    def __post_init__(self) -> None:
        EdiWriter.__post_init__(self)
        if self.options.group_header is None:
            raise OptionError("an X12 output needs options.group_header, the elements GS01 to GS08", ("options",))
