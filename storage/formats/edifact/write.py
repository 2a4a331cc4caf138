"""Records to an EDIFACT interchange. A message ends where `msg_ref` changes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from typing_extensions import override

from storage.files.errors import OutputError
from storage.formats.edi.reading import element_at
from storage.formats.edi.writing import Interchange
from storage.formats.edifact.read import control_reference

_SERVICE = re.compile(r"[?+']")


class EdifactInterchange(Interchange):
    """An EDIFACT interchange being written."""

    form = "edifact"
    named = ("seg_id", "msg_ref", "msg_type")
    opening = "UNH"
    service = frozenset({"UNB", "UNZ", "UNT"})
    terminator = "'"

    @override
    def header(self) -> bytes:
        una = f"UNA:+.? {self.end}" if self.options.write_una else ""
        return (una + self.segment(["UNB", *self.interchange("UNB")])).encode()

    @override
    def footer(self) -> bytes:
        out: list[str] = []
        self.close(out)
        out.append(self.segment(["UNZ", str(self.messages), control_reference(self.interchange("UNB"))]))
        return "".join(out).encode()

    @override
    def open(self, named: Mapping[str, str], elements: Sequence[str], out: list[str]) -> None:
        kind = named.get("msg_type") or element_at(elements, 1) or self.options.message_type
        if not kind:
            raise OutputError("a message needs a type: give the records msg_type, or the output options.message_type")
        self.messages += 1
        self.reference, self.segments = named.get("msg_ref") or str(self.messages), 1
        out.append(self.segment(["UNH", self.reference, kind]))

    @override
    def close(self, out: list[str]) -> None:
        if self.reference is not None:
            out.append(self.segment(["UNT", str(self.segments + 1), self.reference]))
            self.reference = None

    @override
    def segment(self, parts: Sequence[str]) -> str:
        return "+".join(_SERVICE.sub(r"?\g<0>", part) for part in parts) + self.end
