"""Corrections made of what files say: each fits the columns, and no two say something about one cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from changelog.keys.encoding import encode_key
from changelog.lazy_imports import pa
from cxl.diagnostics.diagnostics import Diagnostic
from cxl.types.types import Kind, Schema, Type, type_name
from operators.core.binding import Binding
from operators.core.row_type import key_type
from operators.corrections.correction import Correction, Fixed, RawText
from operators.corrections.entries import EntryPath, WrittenCorrection, cell_text
from storage.values.coerce import coerce
from storage.values.json_text import canonical

_BEGINNINGS: Final = {Kind.ARRAY: "[", Kind.MAP: "{", Kind.NUMERIC: "-0123456789"}
"""With what the JSON text of values of a type begins; a null is one of every type."""
_WRONG: Final = object()
"""The value of a text that is none of its column's type."""


def read_entries(
    entries: Sequence[WrittenCorrection], types: Schema, key: Sequence[str], fixed: Mapping[str, Fixed], binding: Binding, *, raw: bool = False
) -> tuple[list[Correction], list[Diagnostic]]:
    """The corrections that entries make, and what is wrong with them.

    Args:
        entries: What the files say.
        types: The columns of the records.
        key: The columns that name a record.
        fixed: The columns that no correction may change.
        binding: The settings, and near names.
        raw: Whether the corrections are of cells before they are converted: keys and `from` may be texts that are none of their column's type.
    """
    reading = _Reading(types, tuple(key), fixed, binding, _Cells.of(entries, key, types, binding.settings.date_formats), raw)
    made = [one for written in entries for one in reading.corrections(written)]
    return made, [*reading.problems, *_doubled(made)]


@dataclass(frozen=True, slots=True)
class _Cells:
    """The values of texts by their type, converted together: one at a time takes a hundred times longer."""

    values: Mapping[tuple[str, str], Any]

    @classmethod
    def of(cls, entries: Sequence[WrittenCorrection], key: Sequence[str], types: Schema, date_formats: Sequence[str]) -> _Cells:
        """The values of all texts that entries have for columns of plain types."""
        texts: dict[str, dict[str, None]] = {}
        for name, value, text in (cell for written in entries for cell in _given(written, key)):
            type_ = types.get(name)
            if value is not None and type_ is not None and not type_.is_dynamic and type_.kind is not Kind.STRING:
                texts.setdefault(type_name(type_), {})[text] = None
        found: dict[tuple[str, str], Any] = {}
        for kind, several in texts.items():
            read = coerce(pa.array(list(several), pa.string()), kind, date_formats)
            failed = [False] * len(several) if read.failed is None else read.failed.to_pylist()
            found |= {(kind, text): _WRONG if wrong else value for text, value, wrong in zip(several, read.values.to_pylist(), failed, strict=True)}
        return cls(found)


def _given(written: WrittenCorrection, key: Sequence[str]) -> Iterator[tuple[str, Any, str]]:
    """The values of an entry with the columns that they are for, and their texts."""
    given = written.entry.key
    for name, value in given.items() if isinstance(given, Mapping) else [(key[0], given)]:
        yield name, value, written.text(("key", name), value)
    for name, change in written.entry.set.items():
        for side, value in (("from", change.before), ("to", change.after)):
            yield name, value, written.text(("set", name, side), value)


@dataclass(slots=True)
class _Reading:
    """Makes corrections of entries. `problems`: what is wrong with them. `raw`: whether keys and cells may have texts that are none of their column's type."""

    types: Schema
    key: tuple[str, ...]
    fixed: Mapping[str, Fixed]
    binding: Binding
    cells: _Cells
    raw: bool
    problems: list[Diagnostic] = field(default_factory=list)

    def corrections(self, written: WrittenCorrection) -> Iterator[Correction]:
        """One correction for each cell of an entry, or for its retraction."""
        entry = written.entry
        if not self._says_one_thing(written):
            return
        key = self._key(written)
        cells = [(name, self._cell(written, name)) for name in entry.set]
        if key is None or any(cell is None for _, cell in cells):
            return
        shown = {name: cell_text(value) for name, value in zip(self.key, key, strict=True)}
        lookup = self._lookup(key)
        if entry.retract:
            yield Correction(written, lookup, shown, tuple(key))
        for name, cell in cells:
            assert cell is not None  # none of them is
            yield Correction(written, lookup, shown, tuple(key), name, *cell)

    def _says_one_thing(self, written: WrittenCorrection) -> bool:
        """Whether an entry sets cells, or retracts its record where that can be; reports the others."""
        entry = written.entry
        if entry.retract == bool(entry.set):
            what = "retracts a record and sets columns of it" if entry.retract else "says neither what to set nor that the record is retracted"
            self._report(written, (), "E480", f"the correction {what}", "write set: {column: {from: ..., to: ...}}, or retract: true")
            return False
        if self.raw and entry.retract:
            self._report(written, ("retract",), "E480", "a source reads all of its records", "retract the record in a corrections node behind it, or waive it where it is rejected")
            return False
        return True

    def _lookup(self, key: Sequence[Any]) -> bytes:
        """The bytes of a record's key."""
        if self.raw:
            return orjson.dumps([[isinstance(value, RawText), None if value is None else cell_text(value)] for value in key])
        return encode_key(key, [key_type(self.types[name]) for name in self.key])

    def _key(self, written: WrittenCorrection) -> list[Any] | None:
        key = written.entry.key
        if not isinstance(key, Mapping):
            key = {self.key[0]: key} if len(self.key) == 1 else {}
        if set(key) != set(self.key):
            lacking, more = [name for name in self.key if name not in key], [name for name in key if name not in self.key]
            difference = f"lacks {', '.join(map(repr, lacking))}" if lacking else f"has {', '.join(map(repr, more))}, which the node's key has not"
            self._report(written, ("key",), "E481", f"the key of the correction {difference}", f"write key: {{{', '.join(f'{name}: ...' for name in self.key)}}}")
            return None
        found = [self._value(written, ("key", name), key[name], self.types[name]) for name in self.key]
        return None if any(value is _WRONG for value in found) else found

    def _cell(self, written: WrittenCorrection, name: str) -> tuple[Any, Any] | None:
        """The old and the new value of a cell; None where something is wrong."""
        place: EntryPath = ("set", name)
        if name not in self.types:
            help_text = self.binding.problems.similar(name, list(self.types)) or f"the columns: {', '.join(self.types)}"
            self._report(written, place, "E482", f"there is no column '{name}'", help_text)
            return None
        if name in self.fixed:
            self._report(written, place, "E482", *self.fixed[name])
            return None
        change, type_ = written.entry.set[name], self.types[name]
        before, after = (self._value(written, (*place, side), value, type_) for side, value in (("from", change.before), ("to", change.after)))
        return None if before is _WRONG or after is _WRONG else (before, after)

    def _value(self, written: WrittenCorrection, place: EntryPath, value: Any, type_: Type) -> Any:
        """A value as its column holds it, dynamic ones as JSON text; `_WRONG` where it is none of the column's type."""
        if value is None:
            return "" if written.in_table and type_.kind is Kind.STRING else None
        if type_.is_dynamic:
            found = _json(value)
            return found if found[:1] in _BEGINNINGS.get(type_.kind, found[:1]) else self._misread(written, place, written.text(place, value), type_)
        text = written.text(place, value)
        if type_.kind is Kind.STRING:
            return text
        found = self.cells.values[type_name(type_), text]
        return self._misread(written, place, text, type_) if found is _WRONG else found

    def _misread(self, written: WrittenCorrection, place: EntryPath, text: str, type_: Type) -> Any:
        """The value of a text that is none of its column's type: the text itself in raw cells, else `_WRONG`, which is reported."""
        if self.raw and place[-1] != "to":
            return RawText(text)
        self._report(written, place, "E482", f"column '{place[1]}' is {type_name(type_.base)}: '{text}' cannot be read as one", f"write a value of type {type_name(type_.base)}, or null for none")
        return _WRONG

    def _report(self, written: WrittenCorrection, place: EntryPath, code: str, message: str, help_text: str | None = None) -> None:
        self.problems.append(written.error(place, code, message, help_text))


def _doubled(made: Sequence[Correction]) -> Iterator[Diagnostic]:
    """An error for each active correction whose cell, or whose record, an earlier one corrects or retracts."""
    records: dict[bytes, dict[str | None, Correction]] = {}
    for one in (one for one in made if one.active):
        first = records.setdefault(one.lookup, {})
        other = first.get(one.column) or (first.get(None) if one.column else next(iter(first.values()), None))
        if other is not None:
            cell = f"'{one.column}' of the record" if one.column and other.column else "the record"
            place: EntryPath = ("set", one.column) if one.column else ()
            help_text = "remove one, or give it status: withdrawn"
            yield one.written.error(place, "E483", f"{cell} {one.shown} is corrected at {other.written.place} already", help_text)
        first.setdefault(one.column, one)


def _json(value: Any) -> str:
    """The JSON text of a value; a text that is JSON already stands for what it says, as in `errata correct`."""
    if isinstance(value, str):
        with suppress(orjson.JSONDecodeError):
            value = orjson.loads(value)
    return canonical(value)
