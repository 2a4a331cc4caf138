"""EDIFACT interchanges to records, with checks of the envelope."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from typing_extensions import override

from storage.files.errors import Buffer, InputError
from storage.formats.edi.reading import Body, Reading, Seen, bodies_in, check_count, check_echo, element_at, text_blocks


@dataclass(frozen=True)
class Service:
    """The service characters. A blank release character means none."""

    component: str = ":"
    element: str = "+"
    decimal: str = "."
    release: str = "?"
    repetition: str = " "
    terminator: str = "'"

    @classmethod
    def of(cls, text: str) -> tuple[Service, str]:
        """The characters of a leading UNA, by default the Level A ones, and the text after it."""
        return (cls(*text[3:9]), text[9:]) if text.startswith("UNA") and len(text) >= 9 else (cls(), text)

    def segments(self, text: str) -> list[str]:
        """The text cut at terminators. The last item is the text after the last one."""
        return self._split(text, self.terminator)

    def elements(self, segment: str) -> list[str]:
        """A segment's tag and data elements, with release sequences decoded."""
        if self.release == " " or self.release not in segment:
            return segment.split(self.element)
        return [self._decoded(part) if self.release in part else part for part in self._split(segment, self.element)]

    def _decoded(self, part: str) -> str:
        if self.release * 2 in part or part.endswith(self.release):
            return self._released.sub(r"\1", part)
        return part.replace(self.release, "")

    def _split(self, text: str, at: str) -> list[str]:
        """The text cut at a character where it is not released."""
        if self.release == " " or self.release not in text:
            return text.split(at)
        parts = self._parts[at].findall(text)
        ends_with_separator = len(text) - sum(map(len, parts)) == len(parts) - 1
        return parts if ends_with_separator else parts[:-1]

    @cached_property
    def _parts(self) -> dict[str, re.Pattern[str]]:
        """By separator: matches the text up to the next one that is not released, or to the end."""
        release = re.escape(self.release)
        return {at: re.compile(rf"((?:[^{release}{re.escape(at)}]++|{release}.?+)*+)(?:{re.escape(at)}|\Z)", re.DOTALL) for at in (self.element, self.terminator)}

    @cached_property
    def _released(self) -> re.Pattern[str]:
        return re.compile(re.escape(self.release) + "(.)", re.DOTALL)


class InterchangeReading(Reading):
    """The state of an interchange: the open message and the counts."""

    header_tag, trailer = "UNB", "UNZ"
    service = frozenset({"UNB", "UNT", "UNZ"})

    def __init__(self, name: str, most: int, seen: Seen | None = None) -> None:
        super().__init__(name, most, seen)
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
        return self.record(tag, self.message, data)

    def _open_message(self, data: list[str]) -> None:
        if self.reference is not None:
            raise self.wrong(f"UNH inside message '{self.reference}', whose UNT is missing")
        self.reference, self.in_message = element_at(data, 0), 0
        self.messages += 1
        fields = {"msg_ref": self.reference, "msg_type": element_at(data, 1)}
        self.message = {name: text for name, text in fields.items() if text}


def control_reference(header: Sequence[str]) -> str:
    """The first element of a UNB that is not empty, after the four mandatory ones."""
    return next((element for element in header[4:] if element), "")


def bodies_of(data: Buffer, name: str, most: int, seen: Seen | None = None) -> Iterator[Body]:
    """The records of an interchange; none with `seen`, which collects their fields. Raises InputError."""
    blocks = text_blocks(data, name)
    service, text = Service.of(next(blocks, ""))
    return bodies_in(InterchangeReading(name, most, seen), chain([text], blocks), service.segments, service.elements)


def header_of(data: Buffer, name: str) -> Sequence[str]:
    """The elements of the UNB. Raises InputError."""
    service, text = Service.of(next(text_blocks(data, name), ""))
    elements = service.elements(service.segments(text)[0].lstrip("\r\n"))
    if elements[0] != "UNB":
        raise InputError(name, f"segment 1: an interchange begins with UNB, not with '{elements[0][:10]}'")
    return elements[1:]
