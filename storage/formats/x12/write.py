"""Records to an X12 interchange. A transaction set ends where `set_ref` changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from typing_extensions import override

from storage.files.errors import OutputError
from storage.formats.edi.reading import element_at
from storage.formats.edi.writing import Interchange, without_empty_end

_ISA_WIDTHS = (2, 10, 2, 10, 2, 15, 2, 15, 6, 4, 1, 5, 9, 1, 1, 1)
_GROUP = "1"


class X12Interchange(Interchange):
    """An X12 interchange being written."""

    form = "x12"
    named = ("seg_id", "set_ref", "set_type")
    opening = "ST"
    service = frozenset({"ISA", "GS", "SE", "GE", "IEA"})
    terminator = "~"

    @override
    def header(self) -> bytes:
        isa = [element.ljust(width) for element, width in zip(self._isa(), _ISA_WIDTHS, strict=True)]
        given = self.options.group_header or ()
        group = [*given[:5], _GROUP, *given[6:]]
        return (self.segment(["ISA", *isa]) + self.segment(["GS", *group])).encode()

    @override
    def footer(self) -> bytes:
        out: list[str] = []
        self.close(out)
        out.append(self.segment(["GE", str(self.messages), _GROUP]))
        out.append(self.segment(["IEA", "1", self._isa()[12]]))
        return "".join(out).encode()

    def _isa(self) -> Sequence[str]:
        elements = self.interchange("ISA")
        if len(elements) != len(_ISA_WIDTHS):
            raise OutputError(f"the ISA header has {len(elements)} elements where 16 are needed")
        for place, (element, width) in enumerate(zip(elements, _ISA_WIDTHS, strict=True), 1):
            if len(element) > width:
                raise OutputError(f"ISA{place:02d} {element!r} is longer than its {width} characters")
        return elements

    @override
    def open(self, named: Mapping[str, str], elements: Sequence[str], out: list[str]) -> None:
        kind = named.get("set_type") or element_at(elements, 0) or self.options.set_type
        if not kind:
            raise OutputError("a transaction set needs a type: give the records set_type, or the output options.set_type")
        self.messages += 1
        self.reference, self.segments = named.get("set_ref") or element_at(elements, 1) or f"{self.messages:04d}", 1
        out.append(self.segment(["ST", kind, self.reference, *without_empty_end([*elements[2:]])]))

    @override
    def close(self, out: list[str]) -> None:
        if self.reference is not None:
            out.append(self.segment(["SE", str(self.segments + 1), self.reference]))
            self.reference = None

    @override
    def segment(self, parts: Sequence[str]) -> str:
        for part in parts:
            if "*" in part or "~" in part:
                raise OutputError(f"the value {part!r} holds a delimiter of X12 ('*' or '~'), which cannot be escaped")
        return "*".join(parts) + self.end
