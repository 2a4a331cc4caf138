"""ANSI ASC X12 (user guide, "X12 Format"): one interchange a file, ISA to IEA, GS to GE, ST to SE, each segment inside a set a record.

Columns: `seg_id`, `set_ref`, `set_type`, `e01` and so on. The delimiters are those of the ISA header. Counts and control numbers are checked: what does not
fit, a missing IEA or content behind it is an input error. `_doc` has the levels around each record as sections `functional_group`
and `transaction_set` beside the declared ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field
from typing_extensions import override

from storage.formats import register_reader, register_writer
from storage.formats.base import Buffer, OptionError, Options
from storage.formats.edi.rules import EdiReader, EdiWriteOptions, EdiWriter

if TYPE_CHECKING:
    from storage.formats.base import Session
    from storage.formats.edi.segments import Body, Seen


class X12WriteOptions(EdiWriteOptions):
    """`options:` of an X12 output: the ISA elements come from `interchange` or from the document section that `interchange_from_doc` names."""

    interchange: tuple[str, ...] | None = Field(None, min_length=16, max_length=16)
    group_header: tuple[str, ...] | None = Field(None, min_length=8, max_length=8)
    set_type: str | None = None


GROUP_ELEMENTS = 8
"""Elements of a GS segment."""


@register_reader("x12")
class X12Reader(EdiReader):
    """Reads X12 interchanges."""

    form: ClassVar[str] = "an X12"
    header_tag: ClassVar[str] = "ISA"
    named: ClassVar[tuple[str, str, str]] = ("seg_id", "set_ref", "set_type")

    @override
    def levels(self) -> Mapping[str, Sequence[str]]:
        elements = [f"e{index:02d}" for index in range(1, max(self.options.max_elements, GROUP_ELEMENTS) + 1)]
        return {"functional_group": elements, "transaction_set": elements[: self.options.max_elements]}

    @override
    def bodies(self, data: Buffer, name: str, seen: Seen | None = None) -> Iterator[Body]:
        from storage.formats.x12.read import bodies_of

        return bodies_of(data, name, self.options.max_elements, seen)

    @override
    def header(self, data: Buffer, name: str) -> Sequence[str]:
        from storage.formats.x12.read import header_of

        return header_of(data, name)


@register_writer("x12")
class X12Writer(EdiWriter):
    """Writes one interchange with one functional group; a session sees every record in order."""

    Options: ClassVar[type[Options]] = X12WriteOptions
    form: ClassVar[str] = "an X12"
    echoes: ClassVar[str | None] = "ISA"
    options: X12WriteOptions

    def __post_init__(self) -> None:
        EdiWriter.__post_init__(self)
        if self.options.group_header is None:
            raise OptionError("an X12 output needs options.group_header, the elements GS01 to GS08", ("options",))

    @override
    def open(self) -> Session:
        from storage.formats.x12.write import Interchange

        return Interchange(self)
