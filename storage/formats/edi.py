"""What EDIFACT and X12 have in common: segments with positional elements, envelopes whose trailers are checked, writers that keep a state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from storage.coerce import is_dynamic
from storage.formats.batches import document_text, typed_batches
from storage.formats.contract import Buffer, Column, InputError, OutputError, ReadPlan, Section
from storage.formats.envelope import typed_section
from storage.formats.texts import text_of

MAX_SEGMENT = 64 << 10
MOST_ELEMENTS = 999
_BLOCK = 20_000
_ELEMENT = re.compile(r"e([0-9]{2,3})")


@dataclass(frozen=True, slots=True)
class Body:
    """A record of the body: its fields, null left out, and the sections of the envelope levels around it."""

    fields: Mapping[str, str]
    levels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def element_name(index: int) -> str:
    """The column of the element at a place counted from 1."""
    return f"e{index:02d}"


_NAMES = tuple(element_name(index) for index in range(1, MOST_ELEMENTS + 1))


def positional(elements: Sequence[str]) -> dict[str, str]:
    """Elements by column name, empty ones left out."""
    return {name: text for name, text in zip(_NAMES, elements, strict=False) if text}


def text_in(data: Buffer, name: str) -> str:
    """The file as text. Raises InputError where it is not UTF-8."""
    try:
        return bytes(data).removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as wrong:
        raise InputError(name, f"not valid UTF-8: {wrong.reason}", offset=wrong.start) from None


def check_width(elements: Sequence[str], most: int, tag: str, number: int, name: str) -> None:
    """Raise InputError for a segment with more elements than there are columns."""
    if len(elements) > most:
        text = f"segment {number} ({tag}) has {len(elements)} elements, more than max_elements {most}: raise options.max_elements"
        raise InputError(name, text)


def check_count(what: str, told: str, counted: int, number: int, name: str) -> None:
    """Raise InputError where a trailer's count is not what was counted."""
    if not told.strip().isdecimal() or int(told) != counted:
        raise InputError(name, f"segment {number}: {what} is '{told}', but there are {counted}")


def check_echo(what: str, told: str, opened: str, number: int, name: str) -> None:
    """Raise InputError where a trailer does not echo its header's reference."""
    if told.strip() != opened.strip():
        raise InputError(name, f"segment {number}: {what} is '{told}', but its header has '{opened}'")


def undeclared_fields(plan: ReadPlan, bodies: Iterable[Body], order: Sequence[str], name: str) -> tuple[Column, ...]:
    """Columns that hold something in the file and are not in the schema, in positional order. Raises InputError under reject."""
    if plan.on_unmapped == "drop":
        return ()
    seen: set[str] = set()
    for body in bodies:
        seen.update(body.fields)
    extra = [field for field in order if field in seen and field not in plan.names]
    if extra and plan.on_unmapped == "reject":
        raise InputError(name, f"undeclared field '{extra[0]}': the schema does not name it and on_unmapped is reject")
    return tuple(Column(field) for field in extra)


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


def rows_of(
    batch: pa.RecordBatch, columns: Sequence[Column], known: Sequence[str], form: str
) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Each record's named fields and its elements, trailing empty ones cut. Raises OutputError for a column that the format has no place for."""
    _check_places(columns, known, form)
    cells = {column.name: _cells(batch.column(index), column, form) for index, column in enumerate(columns)}
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
        if column.name not in known and not _ELEMENT.fullmatch(column.name):
            raise OutputError(f"column '{column.name}' has no place in {form}: project the records to {', '.join(known)}, e01, e02, ...")


def _cells(values: pa.Array, column: Column, form: str) -> list[str | None]:
    texts: list[str | None] = text_of(values, column, form).to_pylist()
    if is_dynamic(column.type) and any(text and text.startswith("[") for text in values.to_pylist()):
        raise OutputError(f"column '{column.name}' holds an array, which {form} cannot hold")
    return texts
