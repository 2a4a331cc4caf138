"""The values of erased records: what is looked for in tables and files, and what takes their place there.

A text of at least `SHORTEST` characters is found wherever it is, also inside of other texts and of keys. Where somebody else's text has it inside of a longer word, as Annabelle has
Anna, it is found as whole words. Where somebody else's text has it as whole words, as "Anna Miller" has Anna, or where it is as short as the digits of a year, it is found as a whole cell and as a
value in JSON. Shorter texts, numbers, dates and words such as `true` say too little by themselves: they are found as whole cells of columns with the name that they had.
Booleans are not looked for at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

import orjson

from changelog.keys.encoding import encode_key
from changelog.lazy_imports import pa, pl
from errata.erasure.spelling import NUMBER, as_cell, leaf_cells, leaves_of, plain_digits, spelled, spellings, walked

SHORTEST: Final = 4
"""Characters of a text that is looked for inside of others."""
ERASED: Final = "(erased)"
"""Takes the place of a value in messages and notes."""
ERROR_TEXTS: Final = ("detail", "raw", "fields")
"""The members of `_error` that quote values."""
SYSTEM: Final = frozenset({"_epoch", "_op", "_key", "_cause", "_error", "_lookup", "_sorted", "_split", "_status", "_file", "_row", "_source", "_port"})
"""Columns of op rows that hold no value of the data by themselves."""


@dataclass(slots=True)
class Values:
    """Values of erased records.

    Attributes:
        texts: Long texts, looked for everywhere.
        words: Long texts that other records' texts have inside of longer words, looked for as whole words.
        parts: Long texts that other records' texts have as whole words, and ones that may be digits of a hash or a time, looked for as whole cells and as values in JSON.
        cells: By column the short texts, numbers and dates, each as `spelled` says it.
        own: Words that the state has by itself, which are looked for in `cells` alone.
        common: The ones of them that were added.
    """

    texts: set[str] = field(default_factory=set)
    cells: dict[str, set[str]] = field(default_factory=dict)
    parts: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    own: frozenset[str] = frozenset()
    common: set[str] = field(default_factory=set)

    def __len__(self) -> int:
        long = self.texts | self.words | self.parts
        return len(long) + sum(len(found - long) for found in self.cells.values())

    def add(self, name: str, value: Any) -> None:
        """Add a value of a column; of a JSON text the values in it."""
        if isinstance(value, str) and (leaves := leaves_of(value)) is not None:
            for leaf in leaves:
                self.add(name, leaf)
        elif isinstance(value, str) and len(value) >= SHORTEST and value.lower() not in _COMMON:
            self.add_text(value)
            if value in self.own:
                self.cells.setdefault(name, set()).add(value)
            if NUMBER.fullmatch(value):
                self.cells.setdefault(name, set()).add(plain_digits(value))
        elif value is not None and value != "" and not isinstance(value, (bool, bytes)):
            self.cells.setdefault(name, set()).add(as_cell(value))

    def add_text(self, text: str) -> None:
        """Add a text, whatever column it is of. One that the state has by itself is not looked for."""
        if text in self.own:
            self.common.add(text)
            return
        (self.parts if _DIGITS.fullmatch(text) or text.lower() in _COMMON else self.texts).add(text)

    def add_rows(self, rows: pl.DataFrame) -> None:
        """Add all values of op rows."""
        for column in rows:
            if column.name in SYSTEM or column.dtype in (pl.Binary, pl.Boolean):
                continue
            if column.dtype == pl.String:
                for text in column.drop_nulls().unique():
                    self.add(column.name, text)
            elif column.dtype.is_nested():
                for value in walked(column.drop_nulls().to_list()):
                    self.add(column.name, value)
            else:
                self.cells.setdefault(column.name, set()).update(spelled(column).drop_nulls().unique())
        for column in unread_cells(rows):
            for text in column:
                self.add_unread(column.name, text)

    def add_unread(self, name: str, text: str) -> None:
        """Add the text of a cell that could not be read. A number says less than a text: it is no part of longer texts."""
        if len(text) >= SHORTEST and NUMBER.fullmatch(text):
            self.parts.add(text)
            self.cells.setdefault(name, set()).add(plain_digits(text))
        else:
            self.add(name, text)

    def update(self, others: Values) -> None:
        """Add the values of others."""
        self.texts |= others.texts - self.own
        self.words |= others.words - self.own
        self.parts |= others.parts - self.own
        self.common |= others.common | ((others.texts | others.words | others.parts) & self.own)
        for name, found in others.cells.items():
            self.cells.setdefault(name, set()).update(found)

    def each(self) -> Iterator[Values]:
        """Each value alone."""
        yield from (Values(texts={text}) for text in sorted(self.texts))
        yield from (Values(words={text}) for text in sorted(self.words))
        yield from (Values(parts={text}) for text in sorted(self.parts))
        yield from (Values(cells={name: {cell}}) for name, found in sorted(self.cells.items()) for cell in sorted(found))

    def without(self, others: Found) -> None:
        """Remove values that others have too. A text that others have inside of theirs is looked for in a narrower way."""
        self.parts -= others.whole
        self.words -= others.whole
        self.texts -= others.whole
        self.narrow(others)
        for name, found in others.cells.items():
            self.cells[name] = self.cells.get(name, set()) - found
        self.cells = {name: found for name, found in self.cells.items() if found}

    def narrow(self, others: Found) -> None:
        """Let texts that others have as words be `parts`, and texts that others have inside of words be `words`."""
        self.parts |= (self.texts | self.words) & others.words
        self.texts -= others.words
        self.words = (self.words | (self.texts & others.inner)) - others.words
        self.texts -= others.inner

    @property
    def patterns(self) -> list[str]:
        """The spellings of the texts: by themselves, and in JSON."""
        return sorted({spelling for text in self.texts for spelling in spellings(text)})

    @property
    def word_patterns(self) -> list[str]:
        """The spellings of the words."""
        return sorted({spelling for text in self.words for spelling in spellings(text)})

    def found_in(self, rows: pl.DataFrame, *, skip: Iterable[str] = SYSTEM) -> Found:
        """The values that some rows hold."""
        found, by_spelling = Found(), {spelling: text for text in self.texts | self.words for spelling in spellings(text)}
        patterns, by_words = sorted(by_spelling), {with_bounds(spelling): text for spelling, text in by_spelling.items()}
        for column in (*(rows[name] for name in set(rows.columns) - {*skip}), *unread_cells(rows)):
            if column.dtype == pl.Binary:
                continue
            name, cells = column.name, spelled(column).drop_nulls().unique()
            if name in self.cells and (hits := self.cells[name].intersection([*cells, *chain.from_iterable(map(leaf_cells, cells.filter(cells.str.contains(_JSON))))])):
                found.cells[name] = hits
            if column.dtype == pl.String or column.dtype.is_nested():
                found.whole |= self._whole_in(cells)
                if patterns:
                    inner = cells.filter(cells.str.contains_any(patterns))
                    found.inner |= {by_spelling[hit] for hit in _hits(inner, patterns)}
                    found.words |= {by_words[hit] for hit in _hits(bounded(inner), sorted(by_words))}
        return found

    def found_in_keys(self, keys: pl.Series) -> Found:
        """The texts that some keys hold: as one of their columns, or inside of one."""
        digits, found = keys.drop_nulls().unique().bin.encode("hex").str.replace_all("(..)", "$1 "), Found()
        for text in self.texts | self.words | self.parts:
            if digits.str.contains(_in_key(text).hex(" "), literal=True).any():
                found.whole.add(text)
            elif text in self.texts and digits.str.contains(text.encode().hex(" "), literal=True).any():
                found.words.add(text)
        return found

    def _whole_in(self, cells: pl.Series) -> set[str]:
        """The texts that are a whole cell, or a value in the JSON of one."""
        looked_for = self.texts | self.words | self.parts
        if not looked_for:
            return set()
        whole = looked_for.intersection(cells)
        for cell in cells.filter(cells.str.contains(_JSON) & cells.str.contains_any(_quoted(looked_for))):
            whole |= looked_for.intersection(leaf for leaf in leaves_of(cell) or () if isinstance(leaf, str))
        return whole

    def holding(self, column: pl.Series, *, whole: bool) -> pl.Series:
        """Which cells hold a value. `whole`: also short texts, numbers and dates, which columns of this name had."""
        none = pl.repeat(False, len(column), eager=True)
        if column.dtype == pl.Binary:
            patterns = [text.encode().hex(" ") for text in self.texts] + [_in_key(text).hex(" ") for text in self.parts | self.words]
            digits = column.bin.encode("hex").str.replace_all("(..)", "$1 ")
            return digits.str.contains_any(patterns).fill_null(value=False) if patterns else none
        found = none
        if column.dtype == pl.String or column.dtype.is_nested():
            found = self._texts_in(spelled(column))
        if whole and column.name in self.cells:
            found = found | self._cells_in(spelled(column), self.cells[column.name])
        return found

    def _cells_in(self, cells: pl.Series, wanted: set[str]) -> pl.Series:
        """Which cells are one of some short values, or have one as a value in their JSON."""
        found = cells.is_in(list(wanted)).fill_null(value=False)
        nested = cells.str.contains(_JSON).fill_null(value=False)
        if not nested.any():
            return found
        return found | pl.Series([hit and not wanted.isdisjoint(leaf_cells(cell)) for cell, hit in zip(cells, nested, strict=True)], dtype=pl.Boolean)

    def _texts_in(self, cells: pl.Series) -> pl.Series:
        found = pl.repeat(False, len(cells), eager=True)
        if self.texts:
            found = found | cells.str.contains_any(self.patterns).fill_null(value=False)
        if self.words:
            may = cells.str.contains_any(self.word_patterns).fill_null(value=False)
            if may.any():
                found = found | (may & bounded(cells).str.contains_any([*map(with_bounds, self.word_patterns)]).fill_null(value=False))
        if self.parts:
            found = found | cells.is_in([*self.parts]).fill_null(value=False)
            found = found | (cells.str.contains(_JSON) & cells.str.contains_any(_quoted(self.parts))).fill_null(value=False)
        return found

    @property
    def of_cells(self) -> int:
        """How many of the values are found as whole cells alone."""
        return len(self) - len(self.texts | self.words)

    def numbers(self) -> set[str]:
        """All cells of any column that are numbers."""
        return {cell for found in self.cells.values() for cell in found if NUMBER.fullmatch(cell)}

    def blanked(self, text: str) -> str:
        """A text with `ERASED` in the place of each value; of `words` and `parts` where they are words. Hashes, times and numbers by themselves stay."""
        if not (self.texts or self.words or self.parts) or (_MARK.fullmatch(text) and text not in self.texts):
            return text
        return self._blank.sub(ERASED, text)

    def blanked_error(self, text: str) -> str:
        """The text of an `_error` without the values that its message, the text of its record and its cells have. What else it says stays."""
        error = orjson.loads(text)
        if not isinstance(error, dict):
            return self.blanked(text)
        new = {name: self._blanked_in(value) if name in ERROR_TEXTS else value for name, value in error.items()}
        return text if new == error else orjson.dumps(new).decode()

    def _blanked_in(self, value: Any) -> Any:
        """A member of an error: a text, or texts by column."""
        if isinstance(value, dict):
            return {name: self._blanked_in(one) for name, one in value.items()}
        return self.blanked(value) if isinstance(value, str) else value

    @property
    def _blank(self) -> re.Pattern[str]:
        words = sorted({one for text in self.words | self.parts if not _DIGITS.fullmatch(text) for one in spellings(text)}, key=len, reverse=True)
        alone = (_before(word) + re.escape(word) + _behind(word) for word in words)
        return re.compile("|".join([*map(re.escape, sorted(self.patterns, key=len, reverse=True)), *alone]) or r"(?!)")


@dataclass(slots=True)
class Found:
    """The values that some rows hold.

    Attributes:
        whole: Texts that are a whole cell or a value in JSON.
        words: Texts that are whole words of a cell.
        inner: Texts that are anywhere in a cell.
        cells: By column the short texts, numbers and dates.
    """

    whole: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    inner: set[str] = field(default_factory=set)
    cells: dict[str, set[str]] = field(default_factory=dict)


_BOUND: Final = "\ue000"
"""Marks the begin and the end of each word. Nobody writes it: it is for private use."""
_WORD: Final = r"(\w+)"
_ESCAPED: Final = r"\\[bfnrt]"
"""Control characters in JSON, whose letter is no part of the word behind it."""


def bounded(cells: pl.Series) -> pl.Series:
    """Texts with marks around each word: whole words are in them with the marks, and parts of words are not."""
    return cells.str.replace_all(_ESCAPED, r"\ ").str.replace_all(_WORD, f"{_BOUND}${{1}}{_BOUND}")


def with_bounds(text: str) -> str:
    """One text as `bounded` makes it."""
    return str(bounded(pl.Series([text]))[0])


def _hits(cells: pl.Series, patterns: list[str]) -> Iterable[str]:
    """The patterns that are in some cells."""
    return cells.str.extract_many(patterns, overlapping=True).explode().drop_nulls().unique() if len(cells) else ()


def _before(word: str) -> str:
    """A pattern that holds only at the beginning of a whole word."""
    return r"(?:(?<!\w)|(?<=\\[bfnrt]))" if re.match(r"\w", word) else ""


def _behind(word: str) -> str:
    """A pattern that holds only at the end of a whole word."""
    return r"(?!\w)" if re.search(r"\w$", word) else ""


_COMMON: Final = frozenset({"true", "false", "null", "none", "undefined"})
"""Words that every file has."""
_DIGITS: Final = re.compile(r"[0-9A-Fa-f]{1,7}")
"""Texts that hashes, identifiers and times have in them by chance."""
_MARK: Final = re.compile(r"[0-9a-f]{16,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\d([T ][0-9:.+Z-]*)?")
"""A hash, an identifier or a time."""
_JSON: Final = r'^[\[{"]'


def _quoted(texts: Iterable[str]) -> list[str]:
    """The spellings of texts as values in JSON."""
    return sorted({json.dumps(text, ensure_ascii=plain) for text in texts for plain in (False, True)})


def _in_key(text: str) -> bytes:
    """A text that is a column of a key, as `changelog.keys.encoding` has it."""
    return encode_key([text], ["string"])


def unread_cells(rows: pl.DataFrame) -> Iterator[pl.Series]:
    """The texts of cells that could not be read, by column. Their own columns are null, and the error of their row has them."""
    if "_error" not in rows.columns:
        return
    found: dict[str, set[str]] = {}
    for row in rows.filter(pl.col("_error").str.contains('"fields":{"', literal=True)).iter_rows(named=True):
        for name, text in (orjson.loads(row["_error"]).get("fields") or {}).items():
            if text and row.get(name) is None:
                found.setdefault(name, set()).add(text)
    yield from (pl.Series(name, sorted(texts), pl.String) for name, texts in found.items())


def as_frame(rows: pa.Table) -> pl.DataFrame:
    """Rows of a data file for Polars. Texts that a file has in a dictionary are texts."""
    return pl.DataFrame(pl.from_arrow(rows)).cast({pl.Categorical: pl.String})
