"""EDIFACT segments, their envelope checked on the way."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from typing_extensions import override

from storage.formats.contract import Buffer, InputError
from storage.formats.edi import Body, Reading, bodies_in, check_count, check_echo, element_at, positional, text_blocks


@dataclass(frozen=True)
class Service:
    """The service characters; a blank release character means that there is none."""

    component: str = ":"
    element: str = "+"
    decimal: str = "."
    release: str = "?"
    repetition: str = " "
    terminator: str = "'"

    @classmethod
    def of(cls, text: str) -> tuple[Service, str]:
        """The characters that a leading UNA gives (the Level A ones without it) and the text behind it."""
        return (cls(*text[3:9]), text[9:]) if text.startswith("UNA") and len(text) >= 9 else (cls(), text)

    def segments(self, text: str) -> list[str]:
        """The text between terminators; the last item is what stands behind the last one."""
        return self._split(text, self.terminator)

    def elements(self, segment: str) -> list[str]:
        """A segment's tag and data elements, release sequences decoded."""
        if self.release == " " or self.release not in segment:
            return segment.split(self.element)
        return [self._released.sub(r"\1", part) for part in self._split(segment, self.element)]

    def _split(self, text: str, at: str) -> list[str]:
        """Split at a character that no release character stands before: a part is open when an odd number of them ends it."""
        parts = text.split(at)
        if self.release == " " or self.release not in text:
            return parts
        whole: list[str] = []
        pending: list[str] = []
        for part in parts:
            pending.append(part)
            if (len(part) - len(part.rstrip(self.release))) % 2 == 0:
                whole.append(at.join(pending))
                pending = []
        return [*whole, at.join(pending)] if pending else whole

    @cached_property
    def _released(self) -> re.Pattern[str]:
        return re.compile(re.escape(self.release) + "(.)", re.DOTALL)


class InterchangeReading(Reading):
    """The state of one interchange while its segments pass."""

    header_tag, trailer = "UNB", "UNZ"

    def __init__(self, name: str, most: int) -> None:
        super().__init__(name, most)
        self.header: list[str] | None = None
        self.reference: str | None = None
        self.message: dict[str, str] = {}
        self.in_message = 0
        self.messages = 0

    @override
    def meaning(self, tag: str, data: list[str]) -> Body | None:
        if self.header is None:
            if tag != "UNB":
                raise self.wrong(f"an interchange begins with UNB, not with '{tag[:10]}'")
            self.header = data
            return None
        if tag in ("UNG", "UNE"):
            raise self.wrong(f"functional groups ({tag}) are not supported")
        if tag == "UNZ":
            self._close(data)
            return None
        return self._in_message(tag, data)

    def _close(self, data: list[str]) -> None:
        if self.reference is not None:
            raise self.wrong(f"UNZ inside message '{self.reference}', whose UNT is missing")
        check_count("the UNZ message count", element_at(data, 0), self.messages, self.number, self.name)
        check_echo("the UNZ control reference", element_at(data, 1), control_reference(self.header or []), self.number, self.name)
        self.closed = True

    def _in_message(self, tag: str, data: list[str]) -> Body | None:
        if tag == "UNH":
            self._open_message(data)
        if tag == "UNB" or self.reference is None:
            raise self.wrong(f"'{tag[:10]}' stands outside a message")
        self.in_message += 1
        if tag == "UNT":
            check_count("the UNT segment count", element_at(data, 0), self.in_message, self.number, self.name)
            check_echo("the UNT message reference", element_at(data, 1), self.reference, self.number, self.name)
            self.reference = None
            return None
        return Body({"seg_id": tag, **self.message, **positional(data)})

    def _open_message(self, data: list[str]) -> None:
        if self.reference is not None:
            raise self.wrong(f"UNH inside message '{self.reference}', whose UNT is missing")
        self.reference, self.in_message = element_at(data, 0), 0
        self.messages += 1
        fields = {"msg_ref": self.reference, "msg_type": element_at(data, 1)}
        self.message = {name: text for name, text in fields.items() if text}


def control_reference(header: Sequence[str]) -> str:
    """The first element of a UNB that is not empty, behind the four mandatory ones."""
    return next((element for element in header[4:] if element), "")


def bodies_of(data: Buffer, name: str, most: int) -> Iterator[Body]:
    """The records of an interchange. Raises InputError."""
    blocks = text_blocks(data, name)
    service, text = Service.of(next(blocks, ""))
    return bodies_in(InterchangeReading(name, most), chain([text], blocks), service.segments, service.elements)


def header_of(data: Buffer, name: str) -> Sequence[str]:
    """The elements of the UNB. Raises InputError."""
    service, text = Service.of(next(text_blocks(data, name), ""))
    elements = service.elements(service.segments(text)[0].lstrip("\r\n"))
    if elements[0] != "UNB":
        raise InputError(name, f"segment 1: an interchange begins with UNB, not with '{elements[0][:10]}'")
    return elements[1:]
