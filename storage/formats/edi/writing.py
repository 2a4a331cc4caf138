"""Records to interchanges: messages are opened and closed as the reference of the records changes, and counted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from typing_extensions import override

from changelog.lazy_imports import pa
from storage.files.errors import OutputError
from storage.formats.base import Column, Session, Writer
from storage.formats.values import text_of
from storage.values.types import is_dynamic

_ELEMENT = re.compile(r"e([0-9]{2,3})")


class Interchange(Session):
    """An interchange being written. Each format implements how its messages look."""

    form: ClassVar[str]
    named: ClassVar[tuple[str, str, str]]
    opening: ClassVar[str]
    """The segment that opens a message and is a record."""
    service: ClassVar[frozenset[str]]
    """Segments that the writer makes itself. Records with these tags are left out."""
    terminator: ClassVar[str]

    def __init__(self, writer: Writer) -> None:
        self.writer, self.options = writer, writer.options
        self.end = f"{self.terminator}\n" if writer.options.segment_newline else self.terminator
        self.reference: str | None = None
        self.segments = 0
        self.messages = 0

    def open(self, named: Mapping[str, str], elements: Sequence[str], out: list[str]) -> None:
        """Open a message with its named fields and the elements of its opening record, empty without such a record. Raises OutputError."""
        raise NotImplementedError

    def close(self, out: list[str]) -> None:
        """Close the open message, if there is one."""
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
        """The elements of the interchange's header, from the options or echoed. Raises OutputError."""
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
    """Each record's named fields and its elements up to the last one that is not empty, without `$` columns.

    Raises OutputError for a column that has no place in the format.
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
