"""Records that cannot be read, and what they may say in the columns by which erased records are kept out.

A text that a reader can cut into cells, or that names its columns, tells a column's value by its place. A line that has some cells too many or too few may have it as many places further. Where a text
tells no place, as a line without the column's name, each of its words may be the value. A longer text, such as a name, may also be anywhere else: it is hardly anybody else's value.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, product
from math import prod
from typing import Final, cast

from changelog.lazy_imports import pa, pc
from cxl.types.types import Kind, Type, type_name
from errata.erasure.named_values import date_formats_of
from errata.erasure.spelling import NUMBER
from errata.erasure.values import SHORTEST
from errata.plan.plan import Node, Plan
from operators.source.node import SourceNode
from storage.values.coerce import coerce

_MOST_WORDS: Final = 200
"""Words of a text that may be a value."""
_MOST_READINGS: Final = 10_000
"""Readings of one text that are looked at, for each column that may not be at its place."""
_SEPARATORS: Final = (r"[,;|\t]", r"[,;|\t:=<>{}()\[\]\"']|\s\s+", r"\"")
"""Separators of cells and words in a text, in several ways: of CSV, of JSON and XML, and of quoted cells with separators in them."""
_QUOTED: Final = r"\"((?:[^\"\\]|\\.)*)|'([^']*)"
_BARE: Final = r"([^,;}\]<\s\"']+)"
_TO_TAG: Final = r"([^<]*)"
_LONGEST: Final = 10_000
"""Characters behind a name in which its value is looked for."""

_ARRAY: Final = "["
_TOKEN: Final = re.compile(r"\"((?:[^\"\\]|\\.)*)(?:\"|$)|([{}\[\],:])|([^\s{}\[\],:\"]+)")
"""A string, a sign or a bare word of JSON that may be broken."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a file has its records as rows of cells.

    Attributes:
        order: The names of columns as the cells follow each other.
        delimiter: What is between cells.
        quote: What is around cells that hold delimiters.
    """

    order: Sequence[str]
    delimiter: str = ","
    quote: str = '"'

    def cells(self, text: str) -> list[str]:
        """The cells of a record."""
        with suppress(csv.Error):
            return next(csv.reader([text], delimiter=self.delimiter, quotechar=self.quote), [])
        return text.split(self.delimiter)


LayoutOf = Callable[[str], Layout | None]
"""Gives the layout of a file by its path; None where cells have no places."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The possible values of one column in a text.

    Attributes:
        placed: The texts at the place of the column; each word where the text tells no place.
        anywhere: These, and longer texts elsewhere.
    """

    placed: Sequence[str]
    anywhere: Sequence[str]


@dataclass(frozen=True, slots=True)
class NamingColumn:
    """A column by which erased records are known.

    Attributes:
        name: Its name in the source.
        type: Its type.
        written: The names that files may have for it.
        date_formats: The formats of its dates.
    """

    name: str
    type: Type
    written: frozenset[str]
    date_formats: tuple[str, ...]

    @classmethod
    def of(cls, plan: Plan, node: Node, name: str) -> NamingColumn:
        """A column of a source."""
        config = cast("SourceNode", node.operator).config
        written = next((one.source_name or one.path or name for one in config.schema_ if one.name == name), name)
        return cls(name, node.operator.output.data[name], frozenset({written, written.rpartition(".")[2]}), date_formats_of(plan, node, name))

    def read(self, texts: Sequence[str]) -> pa.Array:
        """Texts read by the column's type; null where it cannot read one, and for an empty one."""
        return coerce(pa.array(texts, pa.string()), type_name(self.type.base), self.date_formats).values

    def candidates(self, text: str, layout: Layout | None) -> Candidates:
        """The possible values of the column in a text."""
        placed = self._at_its_place(text, layout) if layout is not None else self._as_a_member(text) or self._by_its_name(text)
        words = _words(text, layout)
        if placed is None:
            return Candidates(words, words)
        far = [word for word in words if len(word) >= SHORTEST and not NUMBER.fullmatch(word)] if self.type.kind in (Kind.STRING, Kind.ANY) else []
        return Candidates(placed, list(dict.fromkeys([*placed, *far])))

    def candidates_of_cell(self, text: str) -> Candidates:
        """The possible values in the column's own cell: its text, a word in it, or the number that it is in another spelling."""
        words = [text, *_words(text, None)]
        with suppress(ValueError, OverflowError):
            if (number := float(text)).is_integer():
                words.append(str(int(number)))
        return Candidates(list(dict.fromkeys(words)), ())

    def _at_its_place(self, text: str, layout: Layout) -> list[str] | None:
        """The cells that may be the column's; None where the file does not have it, or the text is no row of cells."""
        found: dict[str, None] = {}
        row, places = layout.cells(text), [layout.order.index(name) for name in self.written if name in layout.order]
        moved = abs(len(row) - len(layout.order))
        for at in places:
            for cell in row[max(at - moved, 0) : at + moved + 1]:
                found |= dict.fromkeys((cell, cell.strip()))
        return list(found) if len(row) > 1 and places else None

    def _as_a_member(self, text: str) -> list[str] | None:
        """The values of the column's member of an object that may be broken; None where the object has none, or the text is no object. Texts and objects in it are no members."""
        if not text.lstrip().startswith("{"):
            return None
        names = {name for name in self.written if "." in name} or self.written
        found = [value for name, value in _members(text) if name in names]
        return list(dict.fromkeys(spelling for value in found for spelling in _unescaped(value))) or None

    def _by_its_name(self, text: str) -> list[str] | None:
        """The values behind the column's name; None where the text has no such name."""
        found: dict[str, None] = {}
        seen = False
        for name in self.written:
            for hit in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)[\"'\s]*[:=>]\s*", text):
                seen = True
                rest = text[hit.end() : hit.end() + _LONGEST]
                for pattern in (_QUOTED, _BARE, *([_TO_TAG] if text.startswith("<") else [])):
                    value = re.match(pattern, rest)
                    for part in value.groups() if value else ():
                        if part is not None:
                            found |= dict.fromkeys(_unescaped(part))
        return list(found) if seen else None


def readings(columns: Sequence[NamingColumn], text: str, layout: Layout | None) -> Iterator[tuple[str, ...]]:
    """The possible values of all columns together in a text: at most one of them is not at its place."""
    return _together([column.candidates(text, layout) for column in columns])


def readings_of_cells(columns: Sequence[NamingColumn], texts: Mapping[str, str | None]) -> Iterator[tuple[str, ...]]:
    """The possible values of all columns together, by the cells of a record that cannot all be read. `texts`: the cells by column."""
    return _together([column.candidates_of_cell(texts.get(column.name) or "") for column in columns])


def _together(columns: Sequence[Candidates]) -> Iterator[tuple[str, ...]]:
    if prod(max(len(one.placed), 1) for one in columns) > _MOST_READINGS:
        columns = [Candidates(one.placed[: int(_MOST_READINGS ** (1 / len(columns)))], one.anywhere) for one in columns]
    seen = set[tuple[str, ...]]()
    for number in range(len(columns)):
        parts = [one.anywhere or one.placed if at == number else one.placed for at, one in enumerate(columns)]
        for reading in islice(product(*parts), _MOST_READINGS):
            if reading not in seen:
                seen.add(reading)
                yield reading


def typed(columns: Sequence[NamingColumn], found: Sequence[tuple[str, ...]]) -> pa.Table:
    """Readings as rows of the columns' types with their number as `__at`, without the ones that a type cannot read."""
    rows, can_be_read = {"__at": pa.array(range(len(found)), pa.int64())}, pa.array([True] * len(found), pa.bool_())
    for column, texts in zip(columns, zip(*found, strict=True), strict=True):
        rows[column.name] = column.read(texts)
        can_be_read = pc.and_(can_be_read, pc.or_(pc.is_valid(rows[column.name]), pc.equal(pa.array(texts, pa.string()), "")))
    return pa.table(rows).filter(can_be_read)


def _members(text: str) -> Iterator[tuple[str, str]]:
    """The values of the members of a JSON object that may be broken, each with the names that lead to it. Values in arrays are none."""
    path, name, waits = list[str](), "", False
    for token in _TOKEN.finditer(text):
        string, sign, bare = token.groups()
        if sign is None:
            word = bare if string is None else string
            if waits and _ARRAY not in path:
                yield ".".join([*path[1:], name]), word
            name, waits = name if waits else word, False
        else:
            if sign in "{[":
                path.append(_ARRAY if sign == _ARRAY else name)
            elif sign in "}]":
                path = path[:-1]
            name, waits = (name, True) if sign == ":" else ("", False)


def _words(text: str, layout: Layout | None) -> list[str]:
    """The words of a text that may be values."""
    separators = _SEPARATORS if layout is None else (*_SEPARATORS, re.escape(layout.delimiter), f"[{re.escape(layout.delimiter + layout.quote)}]", re.escape(layout.quote))
    parts = [part for separator in separators for part in re.split(separator, text)]
    words = [one for part in (*parts, *re.split(r"\s+", re.sub(r"[\"']", " ", text))) for one in (part, part.strip()) if one]
    return list(dict.fromkeys(words))[:_MOST_WORDS]


def _unescaped(text: str) -> Iterator[str]:
    """A text, and what it is in JSON."""
    yield from (text, text.strip())
    if "\\" in text:
        with suppress(ValueError):
            yield json.loads(f'"{text}"')
