"""How far apart the cells of a sheet are, before a library keeps the rectangle around them in memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.parsers import expat

from changelog.lazy_imports import np
from storage.formats.byte_places import places_of
from storage.formats.xlsx.places import column_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from storage.formats.byte_places import Bytes, Positions

MOST_CELLS = 1 << 26
"""Cells, filled or not, of the smallest rectangle around what a sheet holds."""
_CELL = re.compile(rb"""<(?:\w+:)?c\s(?:[^>]*?\s)?r=["']([A-Za-z]{1,3})([0-9]{1,7})["'][^>]*(?<!/)>""")
_BLOCK = 1 << 24
"""Bytes of a sheet that are looked at together."""
_MOST_LETTERS, _MOST_DIGITS, _PADDING = 3, 7, 16
_ROW_HEADER, _FIRST_CELL, _LAST_CELL = 0, 2, 11
"""Records of binary sheets: a row, and the kinds of cells with a value."""


@dataclass(slots=True)
class Extent:
    """The rectangle around the cells of a sheet."""

    top: int = 1 << 40
    bottom: int = -1
    left: int = 1 << 40
    right: int = -1

    def add(self, top: int, bottom: int, left: int, right: int) -> None:
        """Make room for some cells."""
        self.top, self.bottom = min(self.top, top), max(self.bottom, bottom)
        self.left, self.right = min(self.left, left), max(self.right, right)

    @property
    def is_too_large(self) -> bool:
        """Whether it has more cells than may be in memory."""
        return max(self.bottom - self.top + 1, 0) * max(self.right - self.left + 1, 0) > MOST_CELLS


def of_xml(text: bytes) -> Extent:
    """The extent of a sheet of `.xlsx`."""
    made, start = Extent(), 0
    while start < len(text):
        end = text.find(b">", start + _BLOCK) + 1 or len(text)
        _add_cells(made, text[start:end])
        start = end
    return made


def _add_cells(made: Extent, text: bytes) -> None:
    """Make room for the cells of a part of a sheet, which begins and ends between tags."""
    data = np.frombuffer(text + bytes(_PADDING), np.uint8)
    names = np.flatnonzero((data[1:-1] == ord("c")) & (data[2:] <= ord(" ")) & ((data[:-2] == ord("<")) | (data[:-2] == ord(":")))) + 1
    usual = (data[names - 1] == ord("<")) & (data[names + 2] == ord("r")) & (data[names + 3] == ord("=")) & (data[names + 4] == ord('"'))
    bounds = places_of(data, ord(">"))
    filled = data[bounds[np.minimum(np.searchsorted(bounds, names), len(bounds) - 1)] - 1] != ord("/") if len(bounds) else usual
    rows, columns, whole = _places(data, names[usual & filled] + 5)
    if whole.any():
        made.add(int(rows[whole].min()), int(rows[whole].max()), int(columns[whole].min()), int(columns[whole].max()))
    for name in (*names[~usual].tolist(), *names[usual & filled][~whole].tolist()):  # a prefix before the tag, other attributes first
        if found := _CELL.match(text, text.rfind(b"<", 0, name)):
            column = column_number(found[1].decode())
            made.add(int(found[2]), int(found[2]), column, column)


def _places(data: Bytes, at: Positions) -> tuple[Positions, Positions, NDArray[np.bool_]]:
    """The row from 1, the column from 0, and whether these are a place, of what is written from some positions on, such as `AB12"`."""
    column, row = np.zeros(len(at), np.int64), np.zeros(len(at), np.int64)
    at, letters, digits = at.copy(), np.zeros(len(at), np.int64), np.zeros(len(at), np.int64)
    for _ in range(_MOST_LETTERS):
        letter = data[at] & 0xDF  # upper case
        here = (letter >= ord("A")) & (letter <= ord("Z")) & (data[at] >= ord("A"))
        column, letters, at = np.where(here, column * 26 + letter - ord("A") + 1, column), letters + here, at + here
    for _ in range(_MOST_DIGITS):
        digit = data[at]
        here = (digit >= ord("0")) & (digit <= ord("9"))
        row, digits, at = np.where(here, row * 10 + digit - ord("0"), row), digits + here, at + here
    whole = (letters > 0) & (digits > 0) & (data[at] == ord('"'))
    return row, column - 1, whole


def of_binary(text: bytes) -> Extent:
    """The extent of a sheet of `.xlsb`."""
    made, row = Extent(), 0
    for kind, start, size in _records(text):
        if kind == _ROW_HEADER and size >= 4:
            row = int.from_bytes(text[start : start + 4], "little")
        elif _FIRST_CELL <= kind <= _LAST_CELL and size >= 4:
            column = int.from_bytes(text[start : start + 4], "little")
            made.add(row, row, column, column)
    return made


def _records(text: bytes) -> Iterator[tuple[int, int, int]]:
    """Kind, start and size of the records of a binary part."""
    at = 0
    while at < len(text):
        kind, at = _varint(text, at, 2)
        size, at = _varint(text, at, 4)
        yield kind, at, size
        at += size


def _varint(text: bytes, at: int, most: int) -> tuple[int, int]:
    value = 0
    for place in range(most):
        if at >= len(text):
            break
        byte = text[at]
        at += 1
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    return value, at


class _Tables:
    """Handlers of the parser of `.ods`: the extents of its sheets."""

    def __init__(self) -> None:
        self.made: list[Extent] = [Extent()]
        self._row = self._rows = self._column = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        kind, given = tag.rpartition(":")[2], {name.rpartition(":")[2]: value for name, value in attributes.items()}
        if kind == "table":
            self.made.append(Extent())
            self._row = self._rows = 0
        elif kind == "table-row":
            self._row, self._rows, self._column = self._row + self._rows, _count(given.get("number-rows-repeated")), 0
        elif kind in ("table-cell", "covered-table-cell"):
            columns = _count(given.get("number-columns-repeated"))
            if "value-type" in given:
                self.made[-1].add(self._row, self._row + self._rows - 1, self._column, self._column + columns - 1)
            self._column += columns


def _count(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() and len(text) < 10 else 1


def of_open_document(text: bytes) -> list[Extent]:
    """The extents of the sheets of `.ods`. Raises ExpatError; ValueError for a document type."""
    tables = _Tables()
    parser = expat.ParserCreate()
    parser.StartElementHandler = tables.start
    parser.StartDoctypeDeclHandler = _refuse
    parser.Parse(text, True)
    return tables.made


def _refuse(*_given: object) -> None:
    raise ValueError("its XML has a document type")
