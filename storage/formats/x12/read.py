"""X12 segments, their three envelope tiers checked on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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

    from storage.formats.x12 import X12Reader


class Reading:
    """The state of one interchange while its segments pass: the open group and set, what has been counted in each."""

    def __init__(self, name: str, most: int, header: Sequence[str]) -> None:
        self.name, self.most, self.header = name, most, header
        self.group: list[str] | None = None
        self.set: list[str] | None = None
        self.groups = self.sets = self.segments = 0
        self.number = 1
        self.closed = False
        self.levels: dict[str, dict[str, str]] = {}

    def segment(self, elements: list[str]) -> Body | None:
        """The record that a segment is; null for one of the envelope. Raises InputError."""
        self.number += 1
        tag, data = elements[0], elements[1:]
        check_width(data, self.most, tag, self.number, self.name)
        if self.closed:
            raise self._wrong(f"'{tag[:10]}' stands behind the IEA trailer")
        match tag:
            case "ISA":
                raise self._wrong("a second ISA before the IEA trailer")
            case "GS":
                self._open_group(data)
                return None
            case "GE":
                self._close_group(data)
                return None
            case "IEA":
                self._close(data)
                return None
        return self._in_set(tag, data)

    def finish(self) -> None:
        """The text has ended. Raises InputError."""
        if not self.closed:
            raise InputError(self.name, f"the IEA trailer is missing: the interchange is cut off behind segment {self.number}")

    def _open_group(self, data: list[str]) -> None:
        if self.group is not None:
            raise self._wrong("GS inside a functional group whose GE is missing")
        self.group, self.sets = data, 0
        self.groups += 1
        self.levels = {"functional_group": positional(data)}

    def _close_group(self, data: list[str]) -> None:
        if self.group is None or self.set is not None:
            raise self._wrong(
                "GE without an open functional group" if self.group is None else "GE inside a transaction set whose SE is missing"
            )
        check_count("GE01, the count of transaction sets,", _at(data, 0), self.sets, self.number, self.name)
        check_echo("GE02, the group control number,", _at(data, 1), _at(self.group, 5), self.number, self.name)
        self.group, self.levels = None, {}

    def _close(self, data: list[str]) -> None:
        if self.group is not None:
            raise self._wrong("IEA inside a functional group whose GE is missing")
        check_count("IEA01, the count of functional groups,", _at(data, 0), self.groups, self.number, self.name)
        check_echo("IEA02, the interchange control number,", _at(data, 1), _at(self.header, 12), self.number, self.name)
        self.closed = True

    def _in_set(self, tag: str, data: list[str]) -> Body | None:
        if tag == "ST":
            if self.group is None or self.set is not None:
                raise self._wrong(
                    "ST outside a functional group" if self.group is None else "ST inside a transaction set whose SE is missing"
                )
            self.set, self.segments = data, 0
            self.sets += 1
            self.levels = {**self.levels, "transaction_set": positional(data)}
        if self.set is None:
            raise self._wrong(f"'{tag[:10]}' stands outside a transaction set")
        self.segments += 1
        if tag == "SE":
            self._close_set(data)
            return None
        fields = {"seg_id": tag, "set_ref": _at(self.set, 1), "set_type": _at(self.set, 0)}
        return Body({key: value for key, value in fields.items() if value} | positional(data), self.levels)

    def _close_set(self, data: list[str]) -> None:
        check_count("SE01, the count of segments,", _at(data, 0), self.segments, self.number, self.name)
        check_echo("SE02, the set control number,", _at(data, 1), _at(self.set or [], 1), self.number, self.name)
        self.set = None
        self.levels = {"functional_group": self.levels["functional_group"]}

    def _wrong(self, text: str) -> InputError:
        return InputError(self.name, f"segment {self.number}: {text}")


def _at(data: Sequence[str], index: int) -> str:
    return data[index] if index < len(data) else ""


def header_in(text: str, name: str) -> tuple[list[str], str, str, str]:
    """ISA01 to ISA16, the element separator, the terminator, and the text behind the header. Raises InputError."""
    text = text.lstrip("\r\n \t")
    if not text.startswith("ISA") or len(text) < 4:
        raise InputError(name, f"segment 1: an interchange begins with ISA, not with '{text[:10]}'")
    separator = text[3]
    parts = text.split(separator, 16)
    if len(parts) < 17 or len(parts[16]) < 2:
        raise InputError(name, "segment 1: the ISA header is cut off")
    last, terminator = parts[16][0], parts[16][1]
    if any("\n" in part or "\r" in part for part in parts[1:16]) or terminator == separator:
        raise InputError(name, "segment 1: the ISA header has not its 16 elements")
    return [*parts[1:16], last], separator, terminator, parts[16][2:]


def bodies_of(reader: X12Reader, data: Buffer, name: str) -> Iterator[Body]:
    """The records of an interchange. Raises InputError."""
    header, separator, terminator, text = header_in(text_in(data, name), name)
    reading = Reading(name, reader.options.max_elements, header)
    *segments, rest = text.split(terminator)
    for segment in (part.lstrip("\r\n") for part in segments):
        if len(segment) > MAX_SEGMENT:
            raise InputError(name, f"segment {reading.number + 1} is longer than {MAX_SEGMENT >> 10} KB")
        if segment or terminator not in "\r\n":
            body = reading.segment(segment.split(separator))
            if body is not None:
                yield body
    if rest.strip():
        shown = rest.strip()[:20]
        raise InputError(name, f"'{shown}' stands behind the last segment terminator: the interchange is cut off or something follows it")
    reading.finish()


def read_records(reader: X12Reader, data: Buffer, name: str) -> Iterator[pa.RecordBatch]:
    """Batches of an interchange's records."""
    sections = sections_of(reader, data, name) if reader.plan.document else {}
    return body_batches(reader.plan, bodies_of(reader, data, name), sections)


def undeclared_columns(reader: X12Reader, data: Buffer, name: str) -> tuple[Column, ...]:
    """Columns with content that the schema does not name."""
    order = ["seg_id", "set_ref", "set_type", *(element_name(index) for index in range(1, reader.options.max_elements + 1))]
    return undeclared_fields(reader.plan, bodies_of(reader, data, name), order, name)


def sections_of(reader: X12Reader, data: Buffer, name: str) -> dict[str, dict[str, Any]]:
    """The declared sections, which are all the ISA."""
    header, *_ = header_in(text_in(data, name), name)
    return interchange_sections(reader.plan.sections, header, name)
