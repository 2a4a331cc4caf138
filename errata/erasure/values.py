"""The values of erased records: what is looked for in tables and files, and what takes their place there.

A text of at least `SHORTEST` characters is found wherever it stands, also inside of other texts and of keys; where it is a part of somebody else's text
too, such as "Anna" of "Annabelle", or as short as the digits of a year, as a whole cell and as a value in JSON. Shorter texts, numbers and dates say too little by themselves: they are found as
whole cells of columns with the name that they had.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from changelog.keys.encoding import encode_key
from changelog.lazy_imports import pa, pl

SHORTEST: Final = 4
"""Characters of a text that is looked for inside of others."""
ERASED: Final = "(erased)"
"""Takes the place of a value in messages and notes."""
SYSTEM: Final = frozenset({"_epoch", "_op", "_key", "_cause", "_error", "_lookup", "_sorted", "_split", "_status", "_file", "_row", "_source", "_port"})
"""Columns of op rows that hold no value of the data by themselves."""


@dataclass(slots=True)
class Values:
    """Values of erased records.

    Attributes:
        texts: Long texts, looked for everywhere.
        parts: Long texts that other records' texts have in them, and ones that may be digits of a hash or a time, looked for as whole cells and as values in JSON.
        cells: By column the short texts, numbers and dates, each as `spelled` says it.
    """

    texts: set[str] = field(default_factory=set)
    cells: dict[str, set[str]] = field(default_factory=dict)
    parts: set[str] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.texts) + len(self.parts) + sum(len(found - self.texts - self.parts) for found in self.cells.values())

    def add(self, name: str, value: Any) -> None:
        """Add a value of a column; of a JSON text the values in it."""
        if isinstance(value, str) and (leaves := _leaves(value)) is not None:
            for leaf in leaves:
                self.add(name, leaf)
        elif isinstance(value, str) and len(value) >= SHORTEST:
            self.add_text(value)
            if _NUMBER.fullmatch(value):
                self.cells.setdefault(name, set()).add(_cut(value))
        elif value is not None and value != "" and not isinstance(value, (bool, bytes)):
            self.cells.setdefault(name, set()).add(as_cell(value))

    def add_text(self, text: str) -> None:
        """Add a text, whatever column it is of."""
        (self.parts if _DIGITS.fullmatch(text) else self.texts).add(text)

    def add_rows(self, rows: pl.DataFrame) -> None:
        """Add all values of op rows."""
        for column in rows:
            if column.name in SYSTEM or column.dtype in (pl.Binary, pl.Boolean):
                continue
            for value in spelled(column).drop_nulls().unique():
                if column.dtype == pl.String:
                    self.add(column.name, value)
                else:
                    self.cells.setdefault(column.name, set()).add(value)

    def without(self, others: Values) -> None:
        """Remove values that others have too. Texts that others only have in a text of theirs become `parts`."""
        self.texts -= others.texts
        self.parts -= others.texts
        inner = self.texts & others.parts
        self.texts -= inner
        self.parts |= inner
        for name, found in others.cells.items():
            self.cells[name] = self.cells.get(name, set()) - found
        self.cells = {name: found for name, found in self.cells.items() if found}

    @property
    def patterns(self) -> list[str]:
        """The spellings of the texts: by themselves, and in JSON."""
        return sorted({spelling for text in self.texts for spelling in spellings(text)})

    def found_in(self, rows: pl.DataFrame, *, skip: Iterable[str] = SYSTEM) -> Values:
        """The values that some rows hold: texts that are whole cells or values in JSON, and as `parts` the ones that are merely inside of others."""
        found, patterns = Values(), self.patterns
        by_spelling = {spelling: text for text in self.texts for spelling in spellings(text)}
        for name in set(rows.columns) - {*skip}:
            column = rows[name]
            if column.dtype == pl.Binary:
                continue
            cells = spelled(column).drop_nulls().unique()
            if name in self.cells and (hits := self.cells[name].intersection(cells)):
                found.cells[name] = hits
            if column.dtype == pl.String or column.dtype.is_nested():
                found.texts |= self._whole_in(cells)
                inner = cells.str.extract_many(patterns, overlapping=True).explode().drop_nulls().unique() if patterns else ()
                found.parts |= {by_spelling[hit] for hit in inner}
        found.parts -= found.texts
        return found

    def _whole_in(self, cells: pl.Series) -> set[str]:
        """The texts that are a whole cell, or a value in the JSON of one."""
        looked_for = self.texts | self.parts
        if not looked_for:
            return set()
        whole = looked_for.intersection(cells)
        for cell in cells.filter(cells.str.contains(_JSON) & cells.str.contains_any(_quoted(looked_for))):
            whole |= looked_for.intersection(leaf for leaf in _leaves(cell) or () if isinstance(leaf, str))
        return whole

    def holding(self, column: pl.Series, *, whole: bool) -> pl.Series:
        """Which cells hold a value. `whole`: also short texts, numbers and dates, which columns of this name had."""
        none = pl.repeat(False, len(column), eager=True)
        if column.dtype == pl.Binary:
            patterns = [text.encode().hex(" ") for text in self.texts] + [_in_key(text).hex(" ") for text in self.parts]
            digits = column.bin.encode("hex").str.replace_all("(..)", "$1 ")
            return digits.str.contains_any(patterns).fill_null(value=False) if patterns else none
        found = none
        if column.dtype == pl.String or column.dtype.is_nested():
            found = self._texts_in(spelled(column))
        if whole and column.name in self.cells:
            found = found | spelled(column).is_in(list(self.cells[column.name])).fill_null(value=False)
        return found

    def _texts_in(self, cells: pl.Series) -> pl.Series:
        found = pl.repeat(False, len(cells), eager=True)
        if self.texts:
            found = found | cells.str.contains_any(self.patterns).fill_null(value=False)
        if self.parts:
            found = found | cells.is_in([*self.parts]).fill_null(value=False)
            found = found | (cells.str.contains(_JSON) & cells.str.contains_any(_quoted(self.parts))).fill_null(value=False)
        return found

    @property
    def of_cells(self) -> int:
        """How many of the values are found as whole cells alone."""
        return len(self) - len(self.texts)

    def numbers(self) -> set[str]:
        """All cells of any column that are numbers."""
        return {cell for found in self.cells.values() for cell in found if _NUMBER.fullmatch(cell)}

    def blanked(self, text: str) -> str:
        """A text with `ERASED` in the place of each value; of `parts` where they are words. Hashes, times and numbers by themselves stay."""
        if not (self.texts or self.parts) or (_MARK.fullmatch(text) and text not in self.texts):
            return text
        return self._blank.sub(ERASED, text)

    @property
    def _blank(self) -> re.Pattern[str]:
        words = (rf"(?<!\w){re.escape(part)}(?!\w)" for part in sorted(self.parts, key=len, reverse=True) if not _DIGITS.fullmatch(part))
        return re.compile("|".join([*map(re.escape, sorted(self.patterns, key=len, reverse=True)), *words]) or r"(?!)")


_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?")
_DIGITS: Final = re.compile(r"[0-9A-Fa-f]{1,7}")
"""Texts that hashes, identifiers and times have in them by chance."""
_MARK: Final = re.compile(r"[0-9a-f]{16,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\d([T ][0-9:.+Z-]*)?")
"""A hash, an identifier or a time."""
_NUMBERED: Final = re.compile(r"&#(\d+);")
_JSON: Final = r'^[\[{"]'


def as_cell(value: Any) -> str:
    """A value of JSON as the text of a cell."""
    return value if isinstance(value, str) else _cut(str(value))


def _cut(number: str) -> str:
    """The text of a number without needless digits, as `spelled` has it."""
    return re.sub(r"(\.\d*?)0+$", r"\1", number).removesuffix(".")


def _quoted(texts: Iterable[str]) -> list[str]:
    """The spellings of texts as values in JSON."""
    return sorted({json.dumps(text, ensure_ascii=plain) for text in texts for plain in (False, True)})


def _in_key(text: str) -> bytes:
    """A text that is a column of a key, as `changelog.keys.encoding` has it."""
    return encode_key([text], ["string"])


def spelled(column: pl.Series) -> pl.Series:
    """Cells as texts; numbers without needless digits, so that 12, 12.0 and 12.00 are one."""
    kind = column.dtype
    if kind == pl.String:
        return column
    if kind.is_float():
        return column.cast(pl.String).str.replace(r"\.0$", "").alias(column.name)
    if kind.is_decimal():
        text = column.cast(pl.String)
        return text.str.replace(r"(\.\d*?)0+$", "$1").str.replace(r"\.$", "").alias(column.name)
    if kind.is_nested():
        return pl.Series(column.name, [json.dumps(value, ensure_ascii=False, default=str) for value in column.to_list()], pl.String)
    return column.cast(pl.String)


def spellings(text: str) -> tuple[str, ...]:
    """How a text stands in files: by itself, in JSON and XML with their escapes, with escapes for all that is not ASCII, and in cells of CSV with doubled quotes."""
    inner, plain = json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]
    xml = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    attribute = xml.replace('"', "&quot;")
    numbered = [one.encode("ascii", "xmlcharrefreplace").decode() for one in (xml, attribute, attribute.replace("'", "&#39;"), attribute.replace("'", "&apos;"))]
    hexadecimal = [_NUMBERED.sub(write, one) for one in numbered for write in (lambda found: f"&#x{int(found[1]):x};", lambda found: f"&#x{int(found[1]):X};")]
    again = [json.dumps(one, ensure_ascii=False)[1:-1] for one in (inner, plain)]
    doubled = [one.replace('"', '""') for one in (text, inner, plain, *again)]
    quotes = [xml.replace('"', "&#34;").replace("'", "&#39;"), xml.replace('"', "&#34;"), attribute.replace("'", "&#39;"), attribute.replace("'", "&apos;")]
    return tuple(dict.fromkeys((text, inner, plain, xml, attribute, *quotes, *numbered, *hexadecimal, *again, *doubled)))


def _leaves(text: str) -> Iterator[Any] | None:
    """The values in the text of a JSON object or array, or of a JSON string; None for another text."""
    if text[:1] not in ("{", "[", '"'):
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return _walked(found)


def _walked(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _walked(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _walked(inner)
    else:
        yield value


def as_frame(rows: pa.Table) -> pl.DataFrame:
    """Rows of a data file for Polars."""
    return pl.DataFrame(pl.from_arrow(rows))
