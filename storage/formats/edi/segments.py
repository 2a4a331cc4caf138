"""What EDIFACT and X12 have in common: segments with positional elements, envelopes whose trailers are checked, writers that keep a state."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from typing_extensions import override

from storage.formats import limits
from storage.formats.base import Buffer, Column, InputError, OutputError, ReadPlan, Section, Session, Writer
from storage.formats.batches import document_text, typed_batches
from storage.formats.envelope import typed_section
from storage.formats.texts import text_of
from storage.values.coerce import is_dynamic

if TYPE_CHECKING:
    from storage.formats.edi.rules import EdiReader

MOST_ELEMENTS = 999
_BLOCK = 20_000
_BYTES = 1 << 20
_ELEMENT = re.compile(r"e([0-9]{2,3})")


_NONE: Mapping[str, Mapping[str, str]] = MappingProxyType({})


class Body(NamedTuple):
    """A record of the body: its fields, null left out, and the sections of the envelope levels around it."""

    fields: Mapping[str, str]
    levels: Mapping[str, Mapping[str, str]] = _NONE


class Seen:
    """The fields that hold something in some record; all of the first `filled` elements do."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.filled = 0
        self.named: Mapping[str, str] = {}
        """Those of the message that passes."""

    def look(self, named: Mapping[str, str], data: Sequence[str]) -> None:
        """A record of the body passes."""
        self.named = named
        self.names.update(("seg_id", *named, *positional(data)))
        while element_name(self.filled + 1) in self.names:
            self.filled += 1


def element_name(index: int) -> str:
    """The column of the element at a place counted from 1."""
    return f"e{index:02d}"


_NAMES = tuple(element_name(index) for index in range(1, MOST_ELEMENTS + 1))


def positional(elements: Sequence[str]) -> dict[str, str]:
    """Elements by column name, empty ones left out."""
    named = dict(zip(_NAMES, elements, strict=False))
    return {name: text for name, text in named.items() if text} if "" in elements else named


def element_at(elements: Sequence[str], index: int) -> str:
    """An element, empty where the segment ends before it."""
    return elements[index] if index < len(elements) else ""


def text_blocks(data: Buffer, name: str) -> Iterator[str]:
    """The file's text in blocks, none empty, without white space ahead of the first. Raises InputError where it is not UTF-8."""
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
    """The state of an interchange while its segments pass; a format supplies what a segment means."""

    header_tag: ClassVar[str]
    trailer: ClassVar[str]
    service: ClassVar[frozenset[str]]
    """The segments that are never records, so that no columns limit their elements."""

    def __init__(self, name: str, most: int, seen: Seen | None = None) -> None:
        self.name, self.most, self.seen = name, most, seen
        self.number = 0
        self.closed = False

    def segment(self, elements: list[str]) -> Body | None:
        """The record that a segment is; null for one of the envelope. Raises InputError."""
        self.number += 1
        tag, data = elements[0], elements[1:]
        if len(data) > self.most and tag not in self.service:
            raise self.wrong(f"has {len(data)} elements, more than max_elements {self.most}: raise options.max_elements", f" ({tag[:10]})")
        if self.closed:
            raise self.wrong(f"'{tag[:10]}' stands behind the {self.trailer} trailer")
        return self.meaning(tag, data)

    def meaning(self, tag: str, data: list[str]) -> Body | None:
        """What a segment of the open interchange is. Raises InputError."""
        raise NotImplementedError

    def record(self, tag: str, named: Mapping[str, str], data: list[str], levels: Mapping[str, Mapping[str, str]] = _NONE) -> Body | None:
        """The record of a segment of the body; null where only the names of fields are looked at."""
        if self.seen is None:
            return Body({"seg_id": tag, **named, **positional(data)}, levels)
        if len(data) > self.seen.filled or named is not self.seen.named:
            self.seen.look(named, data)
        return None

    def finish(self) -> None:
        """The text has ended. Raises InputError."""
        if not self.closed:
            raise InputError(self.name, f"the {self.trailer} trailer is missing: the interchange is cut off behind segment {self.number}")

    def wrong(self, text: str, shown: str = ":") -> InputError:
        """What is wrong with the segment that passes."""
        return InputError(self.name, f"segment {self.number}{shown} {text}")


def bodies_in(
    reading: Reading, blocks: Iterable[str], split: Callable[[str], list[str]], elements: Callable[[str], list[str]], *, blank: bool = False
) -> Iterator[Body]:
    """The records of an interchange whose text comes in blocks; `blank`: what is empty between two terminators is no segment. Raises InputError."""
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
    """Raise InputError where text is left behind the last terminator."""
    if rest and not reading.number:
        raise InputError(reading.name, f"segment 1: an interchange begins with {reading.header_tag}, not with '{rest[:10]}'")
    if rest:
        raise InputError(reading.name, f"'{rest[:20]}' stands behind the last segment terminator: the interchange is cut off or something follows it")


def _too_long(reading: Reading) -> InputError:
    return limits.segment_too_long(reading.name, reading.number + 1)


def check_count(what: str, told: str, counted: int, number: int, name: str) -> None:
    """Raise InputError where a trailer's count is not what was counted."""
    if not told.strip().isdecimal() or int(told) != counted:
        raise InputError(name, f"segment {number}: {what} is '{told}', but there are {counted}")


def check_echo(what: str, told: str, opened: str, number: int, name: str) -> None:
    """Raise InputError where a trailer does not echo its header's reference."""
    if told.strip() != opened.strip():
        raise InputError(name, f"segment {number}: {what} is '{told}', but its header has '{opened}'")


def undeclared_fields(reader: EdiReader, data: Buffer, name: str) -> tuple[Column, ...]:
    """Columns that hold something in the file and are not in the schema: named ones, then elements. Raises InputError under reject."""
    plan = reader.plan
    if plan.on_unmapped == "drop":
        return ()
    seen = Seen()
    for _ in reader.bodies(data, name, seen):
        pass
    extra = [field for field in (*reader.named, *_NAMES[: reader.options.max_elements]) if field in seen.names]
    return plan.beside(extra, name)


def interchange_sections(sections: Iterable[Section], elements: Sequence[str], name: str) -> dict[str, dict[str, Any]]:
    """The declared sections of an interchange header; `_elements` of each is the complete list, for writers that echo it."""
    values = positional(elements)
    return {section.name: {**typed_section(section, values, name), "_elements": list(elements)} for section in sections}


def body_batches(plan: ReadPlan, bodies: Iterator[Body], sections: Mapping[str, Mapping[str, Any]]) -> Iterator[pa.RecordBatch]:
    """Batches of body records, numbered from 1."""
    row = 1
    while block := list(islice(bodies, _BLOCK)):
        text = {column.name: pa.array([body.fields.get(column.name) for body in block], pa.string()) for column in plan.columns}
        document = [document_text({**sections, **body.levels}) for body in block] if plan.document else None
        yield from typed_batches(plan.columns, text, pa.array(np.arange(row, row + len(block))), plan.date_formats, document=document)
        row += len(block)


class Enclosing(Session):
    """An interchange being written: messages are opened and closed as the reference of the records changes, and counted. A format says how they look."""

    form: ClassVar[str]
    named: ClassVar[tuple[str, str, str]]
    opening: ClassVar[str]
    """The segment that opens a message and is a record."""
    service: ClassVar[frozenset[str]]
    """Segments that are made anew, so that those among the records are left out."""

    def __init__(self, writer: Writer, terminator: str) -> None:
        self.writer, self.options = writer, writer.options
        self.end = f"{terminator}\n" if writer.options.segment_newline else terminator
        self.reference: str | None = None
        self.segments = 0
        self.messages = 0

    def open(self, named: Mapping[str, str], elements: Sequence[str], out: list[str]) -> None:
        """Open a message with its named fields; `elements`: those of the record that opens it, where one does. Raises OutputError."""
        raise NotImplementedError

    def close(self, out: list[str]) -> None:
        """Close the message that is open, if one is."""
        raise NotImplementedError

    def segment(self, parts: Sequence[str]) -> str:
        """The text of a segment. Raises OutputError."""
        raise NotImplementedError

    @override
    def render(self, batch: pa.RecordBatch) -> bytes:
        out: list[str] = []
        for named, elements in rows_of(batch, self.writer.plan.columns, self.named, self.form):
            self._record(named, elements, out)
        return "".join(out).encode()

    def interchange(self, tag: str) -> Sequence[str]:
        """The elements of the interchange's header, given or echoed. Raises OutputError."""
        elements: Sequence[str] | None = self.options.interchange or self.writer.plan.interchange
        if elements is None:
            raise OutputError(f"no record has the document section '{self.options.interchange_from_doc}', from which the {tag} header is made")
        return elements

    def _record(self, named: Mapping[str, str], elements: list[str], out: list[str]) -> None:
        tag, reference = named.get("seg_id", ""), named.get(self.named[1], "")
        if not tag:
            raise OutputError("a record without seg_id is no segment")
        if tag in self.service:
            return
        opens = tag == self.opening
        if opens or self.reference is None or reference not in ("", self.reference):
            self.close(out)
            self.open(named, elements if opens else (), out)
        if not opens:
            self.segments += 1
            out.append(self.segment([tag, *elements]))


def rows_of(
    batch: pa.RecordBatch, columns: Sequence[Column], known: Sequence[str], form: str
) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Each record's named fields and its elements, trailing empty ones cut. `$` columns are left out.

    Raises OutputError for a column that the format has no place for.
    """
    _check_places(columns, known, form)
    cells = {column.name: _cells(batch.column(index), column, form) for index, column in enumerate(columns) if not column.name.startswith("$")}
    places = {name: int(name[1:]) for name in cells if name not in known}
    width = max(places.values(), default=0)
    for at in range(batch.num_rows):
        elements = [""] * width
        for name, place in places.items():
            elements[place - 1] = cells[name][at] or ""
        yield {name: cells[name][at] or "" for name in known if name in cells}, without_empty_end(elements)


def without_empty_end(elements: list[str]) -> list[str]:
    """Elements up to the last one that is not empty."""
    while elements and not elements[-1]:
        elements.pop()
    return elements


def _check_places(columns: Sequence[Column], known: Sequence[str], form: str) -> None:
    for column in columns:
        if column.name not in known and not column.name.startswith("$") and not _ELEMENT.fullmatch(column.name):
            raise OutputError(f"column '{column.name}' has no place in {form}: project the records to {', '.join(known)}, e01, e02, ...")


def _cells(values: pa.Array, column: Column, form: str) -> list[str | None]:
    texts: list[str | None] = text_of(values, column, form).to_pylist()
    if is_dynamic(column.type) and any(text and text.startswith("[") for text in values.to_pylist()):
        raise OutputError(f"column '{column.name}' holds an array, which {form} cannot hold")
    return texts
