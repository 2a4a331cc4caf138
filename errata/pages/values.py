"""Values of data as short texts: cut before anything else looks at them, control characters as escapes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from errata.inspect.history import RowChange
from errata.rendering.rows import cell
from errata.rendering.terminal import escaped

Row = Mapping[str, Any]
_THOUSANDS = re.compile(r"(?<=[0-9])(?=([0-9]{3})+$)")
MOST_SIGNS = 200
"""The number of characters of a value that a page shows."""
MOST_COLUMNS = 40
"""The number of columns that a table of a page shows."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A value as a page shows it: its text, whether the text was cut, whether it is a number, whether it is missing."""

    text: str
    cut: bool = False
    number: bool = False
    null: bool = False


@dataclass(frozen=True, slots=True)
class Changed:
    """A column of a row before and after a change, and whether the change touched it."""

    before: Shown | None
    after: Shown | None
    differs: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A changed row in a table."""

    epoch: int
    op: str
    cause: str
    key: str
    cells: tuple[Changed, ...]


@dataclass(frozen=True, slots=True)
class Lines:
    """Changed rows with the columns that are shown, and the number of columns that are not."""

    columns: tuple[str, ...]
    rows: tuple[Line, ...]
    hidden: int = 0


def shown(value: Any, most: int = MOST_SIGNS) -> Shown:
    """Return a value as a short text."""
    if value is None:
        return Shown("", null=True)
    number = isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
    text = value if isinstance(value, str) else cell(value)
    return Shown(f"{escaped(text[:most])}{'…' if len(text) > most else ''}", len(text) > most, number)


def figure(value: Any) -> Shown:
    """Return an amount, a number or None, as a short text with separators of thousands."""
    found = shown(value)
    whole, point, decimals = found.text.partition(".")
    return replace(found, text=_THOUSANDS.sub(",", whole) + point + decimals) if found.number else found


def paragraphs(text: str, most: int) -> str:
    """Return a text of several lines, cut, whose other control characters are escapes."""
    return "\n".join(escaped(line) for line in text[:most].split("\n")) + ("…" if len(text) > most else "")


def short(text: str, most: int = MOST_SIGNS) -> str:
    """Return a text, cut and with control characters as escapes."""
    return shown(str(text), most).text


def fields(row: Row, most: int = MOST_COLUMNS) -> list[tuple[str, Shown]]:
    """Return the first columns of a row with their values."""
    return [(short(name, 60), shown(value)) for name, value in list(row.items())[:most]]


def lines(changes: Iterable[RowChange]) -> Lines:
    """Return changed rows as a table."""
    found = list(changes)
    names = list(dict.fromkeys(name for one in found for image in (one.before, one.after) for name in (image or ())))
    return Lines(tuple(short(name, 60) for name in names[:MOST_COLUMNS]), tuple(_line(one, names[:MOST_COLUMNS]) for one in found), max(0, len(names) - MOST_COLUMNS))


def _line(change: RowChange, names: Sequence[str]) -> Line:
    before, after = change.before, change.after
    cells = tuple(Changed(_image(before, name), _image(after, name), before is not None and after is not None and before.get(name) != after.get(name)) for name in names)
    return Line(change.epoch, change.op, short(change.cause, 80), change.key, cells)


def _image(row: Row | None, name: str) -> Shown | None:
    return None if row is None else shown(row.get(name))
