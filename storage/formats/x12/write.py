"""Records to an X12 interchange: transaction sets opened and closed as `set_ref` changes, trailers counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from storage.formats.contract import OutputError, Session
from storage.formats.edi import rows_of, without_empty_end

if TYPE_CHECKING:
    import pyarrow as pa

    from storage.formats.x12 import X12Writer

_KNOWN = ("seg_id", "set_ref", "set_type")
_ISA_WIDTHS = (2, 10, 2, 10, 2, 15, 2, 15, 6, 4, 1, 5, 9, 1, 1, 1)
_GROUP = "1"


class Interchange(Session):
    """One interchange being written."""

    def __init__(self, writer: X12Writer) -> None:
        self.writer, self.options = writer, writer.options
        self.end = "~\n" if writer.options.segment_newline else "~"
        self.reference: str | None = None
        self.segments = 0
        self.sets = 0

    @override
    def header(self) -> bytes:
        isa = [element.ljust(width) for element, width in zip(self._isa(), _ISA_WIDTHS, strict=True)]
        group = [*self._group()[:5], _GROUP, *self._group()[6:]]
        return (self._segment(["ISA", *isa]) + self._segment(["GS", *group])).encode()

    @override
    def render(self, batch: pa.RecordBatch) -> bytes:
        out: list[str] = []
        for named, elements in rows_of(batch, self.writer.plan.columns, _KNOWN, "x12"):
            self._record(named, elements, out)
        return "".join(out).encode()

    @override
    def footer(self) -> bytes:
        out: list[str] = []
        self._close(out)
        out.append(self._segment(["GE", str(self.sets), _GROUP]))
        out.append(self._segment(["IEA", "1", self._isa()[12]]))
        return "".join(out).encode()

    def _isa(self) -> Sequence[str]:
        elements = self.options.interchange or self.writer.plan.interchange
        if elements is None:
            raise OutputError(
                f"no record has the document section '{self.options.interchange_from_doc}', from which the ISA header is made"
            )
        if len(elements) != len(_ISA_WIDTHS):
            raise OutputError(f"the ISA header has {len(elements)} elements where 16 are needed")
        for place, (element, width) in enumerate(zip(elements, _ISA_WIDTHS, strict=True), 1):
            if len(element) > width:
                raise OutputError(f"ISA{place:02d} {element!r} is longer than its {width} characters")
        return elements

    def _group(self) -> Sequence[str]:
        return self.options.group_header or ()

    def _record(self, named: dict[str, str], elements: list[str], out: list[str]) -> None:
        tag, reference = named.get("seg_id", ""), named.get("set_ref", "")
        if not tag:
            raise OutputError("a record without seg_id is no segment")
        if tag in ("ISA", "GS", "SE", "GE", "IEA"):
            return
        if tag == "ST" or self.reference is None or reference not in ("", self.reference):
            kind, own_reference, *more = [*elements, "", ""] if tag == "ST" else ["", ""]
            self._close(out)
            self._open(reference or own_reference, named.get("set_type") or kind, without_empty_end(more), out)
        if tag != "ST":
            self.segments += 1
            out.append(self._segment([tag, *elements]))

    def _open(self, reference: str, kind: str, more: Sequence[str], out: list[str]) -> None:
        kind = kind or self.options.set_type or ""
        if not kind:
            raise OutputError("a transaction set needs a type: give the records set_type, or the output options.set_type")
        self.sets += 1
        self.reference, self.segments = reference or f"{self.sets:04d}", 1
        out.append(self._segment(["ST", kind, self.reference, *more]))

    def _close(self, out: list[str]) -> None:
        if self.reference is not None:
            out.append(self._segment(["SE", str(self.segments + 1), self.reference]))
            self.reference = None

    def _segment(self, parts: Sequence[str]) -> str:
        for part in parts:
            if "*" in part or "~" in part:
                raise OutputError(f"the value {part!r} holds a delimiter of X12 ('*' or '~'), which cannot be escaped")
        return "*".join(parts) + self.end
