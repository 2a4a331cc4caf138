"""Interchanges to records: segments with positional elements, an envelope whose trailers are checked."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from changelog.lazy_imports import np, pa
from storage.files.errors import Buffer, InputError
from storage.formats import limits
from storage.formats.base import ReadPlan, Section, document_text
from storage.formats.batches import typed_batches
from storage.formats.envelope import typed_section

MOST_ELEMENTS = 999
_BLOCK = 20_000
_BYTES = 1 << 20
_NONE: Mapping[str, Mapping[str, str]] = MappingProxyType({})


class Body(NamedTuple):
    """A record: its fields without nulls, and the sections of the envelope levels around it."""

    fields: Mapping[str, str]
    levels: Mapping[str, Mapping[str, str]] = _NONE


class Seen:
    """The fields that are not empty in some record. All of the first `filled` elements are not."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.filled = 0
        self.named: Mapping[str, str] = {}
        """The named fields of the current message."""

    def add(self, named: Mapping[str, str], data: Sequence[str]) -> None:
        """Add the fields of a record."""
        self.named = named
        self.names.update(("seg_id", *named, *positional(data)))
        while element_name(self.filled + 1) in self.names:
            self.filled += 1


def element_name(index: int) -> str:
    """The column of an element by its place, from 1."""
    return f"e{index:02d}"


NAMES = tuple(element_name(index) for index in range(1, MOST_ELEMENTS + 1))


def positional(elements: Sequence[str]) -> dict[str, str]:
    """Elements by column name, without empty ones."""
    named = dict(zip(NAMES, elements, strict=False))
    return {name: text for name, text in named.items() if text} if "" in elements else named


def element_at(elements: Sequence[str], index: int) -> str:
    """The element at an index from 0; empty where the segment ends before it."""
    return elements[index] if index < len(elements) else ""


def text_blocks(data: Buffer, name: str) -> Iterator[str]:
    """The file's text in blocks that are not empty, without leading white space. Raises InputError where it is not UTF-8."""
    decoder, begun = codecs.getincrementaldecoder("utf-8-sig")(), False
    for at in range(0, len(data), _BYTES):
        block = data[at : at + _BYTES]
        try:
            text = decoder.decode(block, at + _BYTES >= len(data))
        except UnicodeDecodeError as wrong:
            before = len(wrong.object) - len(block)
            raise InputError(name, f"not valid UTF-8: {wrong.reason}", offset=at - before + wrong.start) from None
        text = text if begun else text.lstrip("\r\n \t")
        if text:
            begun = True
            yield text


class Reading:
    """The state of an interchange while it is read. Each format implements what its segments mean."""

    header_tag: ClassVar[str]
    trailer: ClassVar[str]
    service: ClassVar[frozenset[str]]
    """The segments that are never records. The number of their elements is not limited."""

    def __init__(self, name: str, most: int, seen: Seen | None = None) -> None:
        self.name, self.most, self.seen = name, most, seen
        self.number = 0
        self.closed = False

    def segment(self, elements: list[str]) -> Body | None:
        """The record of the next segment; None for a segment of the envelope. Raises InputError."""
        self.number += 1
        tag, data = elements[0], elements[1:]
        if len(data) > self.most and tag not in self.service:
            raise self.wrong(f"has {len(data)} elements, more than max_elements {self.most}: raise options.max_elements", f" ({tag[:10]})")
        if self.closed:
            raise self.wrong(f"'{tag[:10]}' stands behind the {self.trailer} trailer")
        return self.meaning(tag, data)

    def meaning(self, tag: str, data: list[str]) -> Body | None:
        """The record of a segment inside the interchange; None for a segment of the envelope. Raises InputError."""
        raise NotImplementedError

    def record(self, tag: str, named: Mapping[str, str], data: list[str], levels: Mapping[str, Mapping[str, str]] = _NONE) -> Body | None:
        """The record of a segment; None where only the names of fields are collected."""
        if self.seen is None:
            return Body({"seg_id": tag, **named, **positional(data)}, levels)
        if len(data) > self.seen.filled or named is not self.seen.named:
            self.seen.add(named, data)
        return None

    def finish(self) -> None:
        """Check that the interchange is closed at the end of the text. Raises InputError."""
        if not self.closed:
            raise InputError(self.name, f"the {self.trailer} trailer is missing: the interchange is cut off behind segment {self.number}")

    def wrong(self, text: str, shown: str = ":") -> InputError:
        """The error of the current segment."""
        return InputError(self.name, f"segment {self.number}{shown} {text}")


def bodies_in(
    reading: Reading, blocks: Iterable[str], split: Callable[[str], list[str]], elements: Callable[[str], list[str]], *, blank: bool = False
) -> Iterator[Body]:
    """The records of an interchange. Raises InputError.

    Args:
        reading: the state of the interchange
        blocks: the text
        split: cuts text at segment terminators; its last item is the text after the last one
        elements: cuts a segment into its tag and elements
        blank: whether empty text between two terminators is no segment
    """
    rest = ""
    for block in blocks:
        *segments, rest = split(rest + block)
        for part in segments:
            segment = part.lstrip("\r\n")
            if len(segment) > limits.SEGMENT_BYTES:
                raise _too_long(reading)
            if segment or not blank:
                body = reading.segment(elements(segment))
                if body is not None:
                    yield body
        if len(rest) > limits.SEGMENT_BYTES:
            raise _too_long(reading)
    _check_end(reading, rest.strip())
    reading.finish()


def _check_end(reading: Reading, rest: str) -> None:
    """Raise InputError where there is text after the last terminator."""
    if rest and not reading.number:
        raise InputError(reading.name, f"segment 1: an interchange begins with {reading.header_tag}, not with '{rest[:10]}'")
    if rest:
        raise InputError(reading.name, f"'{rest[:20]}' stands behind the last segment terminator: the interchange is cut off or something follows it")


def _too_long(reading: Reading) -> InputError:
    return limits.segment_too_long(reading.name, reading.number + 1)


def check_count(what: str, given: str, counted: int, number: int, name: str) -> None:
    """Raise InputError where the count in a trailer is wrong."""
    if not given.strip().isdecimal() or int(given) != counted:
        raise InputError(name, f"segment {number}: {what} is '{given}', but there are {counted}")


def check_echo(what: str, given: str, opened: str, number: int, name: str) -> None:
    """Raise InputError where a trailer does not repeat the reference of its header."""
    if given.strip() != opened.strip():
        raise InputError(name, f"segment {number}: {what} is '{given}', but its header has '{opened}'")


def interchange_sections(sections: Iterable[Section], elements: Sequence[str], name: str) -> dict[str, dict[str, Any]]:
    """The declared sections of an interchange header. `_elements` of each is the complete list, for writers that echo it."""
    values = positional(elements)
    return {section.name: {**typed_section(section, values, name), "_elements": list(elements)} for section in sections}


def body_batches(plan: ReadPlan, bodies: Iterator[Body], sections: Mapping[str, Mapping[str, Any]]) -> Iterator[pa.RecordBatch]:
    """Batches of records, numbered from 1. `sections` are the sections of the header, for DOCUMENT."""
    row = 1
    while block := list(islice(bodies, _BLOCK)):
        text = {column.name: pa.array([body.fields.get(column.name) for body in block], pa.string()) for column in plan.columns}
        document = [document_text({**sections, **body.levels}) for body in block] if plan.document else None
        yield from typed_batches(plan.columns, text, pa.array(np.arange(row, row + len(block))), plan.date_formats, document=document)
        row += len(block)
