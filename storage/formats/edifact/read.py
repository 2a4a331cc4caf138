"""EDIFACT segments, their envelope checked on the way."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from storage.formats.contract import Buffer, Column, InputError
from storage.formats.edi import (
    MAX_SEGMENT,
    Body,
    body_batches,
    check_count,
    check_echo,
    check_width,
    element_name,
    interchange_sections,
    positional,
    text_in,
    undeclared_fields,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from storage.formats.edifact import EdifactReader


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
        text = text.lstrip("\r\n \t")
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


class Reading:
    """The state of one interchange while its segments pass."""

    def __init__(self, name: str, most: int) -> None:
        self.name, self.most = name, most
        self.header: list[str] | None = None
        self.message: tuple[str, str] | None = None
        self.in_message = 0
        self.messages = 0
        self.number = 0
        self.closed = False

    def segment(self, elements: list[str]) -> Body | None:
        """The record that a segment is; null for one of the envelope. Raises InputError."""
        self.number += 1
        tag, data = elements[0], elements[1:]
        check_width(data, self.most, tag, self.number, self.name)
        if self.closed:
            raise self._wrong(f"'{tag}' stands behind the UNZ trailer")
        if self.header is None:
            self._open(tag, data)
            return None
        if tag in ("UNG", "UNE"):
            raise self._wrong(f"functional groups ({tag}) are not supported")
        if tag == "UNZ":
            self._close(data)
            return None
        return self._in_message(tag, data)

    def finish(self) -> None:
        """The text has ended. Raises InputError."""
        if not self.closed:
            raise InputError(self.name, f"the UNZ trailer is missing: the interchange is cut off behind segment {self.number}")

    def _open(self, tag: str, data: list[str]) -> None:
        if tag != "UNB":
            raise self._wrong(f"an interchange begins with UNB, not with '{tag[:10]}'")
        self.header = data

    def _close(self, data: list[str]) -> None:
        if self.message is not None:
            raise self._wrong(f"UNZ inside message '{self.message[0]}', whose UNT is missing")
        check_count("the UNZ message count", _at(data, 0), self.messages, self.number, self.name)
        check_echo("the UNZ control reference", _at(data, 1), control_reference(self.header or []), self.number, self.name)
        self.closed = True

    def _in_message(self, tag: str, data: list[str]) -> Body | None:
        if tag == "UNH":
            if self.message is not None:
                raise self._wrong(f"UNH inside message '{self.message[0]}', whose UNT is missing")
            self.message, self.in_message = (_at(data, 0), _at(data, 1)), 0
            self.messages += 1
        if tag == "UNB" or self.message is None:
            raise self._wrong(f"'{tag[:10]}' stands outside a message")
        self.in_message += 1
        reference, kind = self.message
        if tag == "UNT":
            check_count("the UNT segment count", _at(data, 0), self.in_message, self.number, self.name)
            check_echo("the UNT message reference", _at(data, 1), reference, self.number, self.name)
            self.message = None
            return None
        fields = {"seg_id": tag, "msg_ref": reference, "msg_type": kind}
        return Body({key: value for key, value in fields.items() if value} | positional(data))

    def _wrong(self, text: str) -> InputError:
        return InputError(self.name, f"segment {self.number}: {text}")


def control_reference(header: Sequence[str]) -> str:
    """The first element of a UNB that is not empty, behind the four mandatory ones."""
    return next((element for element in header[4:] if element), "")


def _at(data: Sequence[str], index: int) -> str:
    return data[index] if index < len(data) else ""


def bodies_of(reader: EdifactReader, data: Buffer, name: str) -> Iterator[Body]:
    """The records of an interchange. Raises InputError."""
    service, text = Service.of(text_in(data, name))
    reading = Reading(name, reader.options.max_elements)
    *segments, rest = service.segments(text)
    for segment in (part.lstrip("\r\n") for part in segments):
        if len(segment) > MAX_SEGMENT:
            raise InputError(name, f"segment {reading.number + 1} is longer than {MAX_SEGMENT >> 10} KB")
        body = reading.segment(service.elements(segment))
        if body is not None:
            yield body
    if rest.strip():
        shown = rest.strip()[:20]
        raise InputError(name, f"'{shown}' stands behind the last segment terminator: the interchange is cut off or something follows it")
    reading.finish()


def read_records(reader: EdifactReader, data: Buffer, name: str) -> Iterator[pa.RecordBatch]:
    """Batches of an interchange's records."""
    sections = sections_of(reader, data, name) if reader.plan.document else {}
    return body_batches(reader.plan, bodies_of(reader, data, name), sections)


def undeclared_columns(reader: EdifactReader, data: Buffer, name: str) -> tuple[Column, ...]:
    """Columns with content that the schema does not name."""
    order = ["seg_id", "msg_ref", "msg_type", *(element_name(index) for index in range(1, reader.options.max_elements + 1))]
    return undeclared_fields(reader.plan, bodies_of(reader, data, name), order, name)


def sections_of(reader: EdifactReader, data: Buffer, name: str) -> dict[str, dict[str, Any]]:
    """The declared sections, which are all the UNB."""
    service, text = Service.of(text_in(data, name))
    elements = service.elements(service.segments(text)[0].lstrip("\r\n"))
    if elements[0] != "UNB":
        raise InputError(name, f"segment 1: an interchange begins with UNB, not with '{elements[0][:10]}'")
    return interchange_sections(reader.plan.sections, elements[1:], name)
