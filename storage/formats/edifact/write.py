"""Records to an EDIFACT interchange: messages opened and closed as `msg_ref` changes, trailers counted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from storage.formats.contract import OutputError, Session
from storage.formats.edi import rows_of
from storage.formats.edifact.read import control_reference

if TYPE_CHECKING:
    import pyarrow as pa

    from storage.formats.edifact import EdifactWriter

_KNOWN = ("seg_id", "msg_ref", "msg_type")
_SERVICE = re.compile(r"[?+']")


class Interchange(Session):
    """One interchange being written."""

    def __init__(self, writer: EdifactWriter) -> None:
        self.writer, self.options = writer, writer.options
        self.end = "'\n" if writer.options.segment_newline else "'"
        self.reference: str | None = None
        self.segments = 0
        self.messages = 0

    @override
    def header(self) -> bytes:
        una = f"UNA:+.? {self.end}" if self.options.write_una else ""
        return (una + self._segment(["UNB", *self._unb()])).encode()

    @override
    def render(self, batch: pa.RecordBatch) -> bytes:
        out: list[str] = []
        for named, elements in rows_of(batch, self.writer.plan.columns, _KNOWN, "edifact"):
            self._record(named, elements, out)
        return "".join(out).encode()

    @override
    def footer(self) -> bytes:
        out: list[str] = []
        self._close(out)
        out.append(self._segment(["UNZ", str(self.messages), control_reference(self._unb())]))
        return "".join(out).encode()

    def _unb(self) -> Sequence[str]:
        elements = self.options.interchange or self.writer.plan.interchange
        if elements is None:
            raise OutputError(
                f"no record has the document section '{self.options.interchange_from_doc}', from which the UNB header is made"
            )
        return elements

    def _record(self, named: dict[str, str], elements: list[str], out: list[str]) -> None:
        tag, reference = named.get("seg_id", ""), named.get("msg_ref", "")
        if not tag:
            raise OutputError("a record without seg_id is no segment")
        if tag in ("UNB", "UNZ", "UNT"):
            return
        if tag == "UNH" or self.reference is None or reference not in ("", self.reference):
            kind = [*elements, "", ""][1] if tag == "UNH" else ""
            self._close(out)
            self._open(reference, named.get("msg_type") or kind, out)
        if tag != "UNH":
            self.segments += 1
            out.append(self._segment([tag, *elements]))

    def _open(self, reference: str, kind: str, out: list[str]) -> None:
        kind = kind or self.options.message_type or ""
        if not kind:
            raise OutputError("a message needs a type: give the records msg_type, or the output options.message_type")
        self.messages += 1
        self.reference, self.segments = reference or str(self.messages), 1
        out.append(self._segment(["UNH", self.reference, kind]))

    def _close(self, out: list[str]) -> None:
        if self.reference is not None:
            out.append(self._segment(["UNT", str(self.segments + 1), self.reference]))
            self.reference = None

    def _segment(self, parts: Sequence[str]) -> str:
        return "+".join(_SERVICE.sub(r"?\g<0>", part) for part in parts) + self.end
