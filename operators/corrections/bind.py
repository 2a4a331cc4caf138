"""Checks of a corrections node: each correction fits the columns, and no two say something about one cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from changelog.keys.encoding import encode_key
from changelog.lazy_imports import pa
from cxl import CxlErrors
from cxl.diagnostics.diagnostics import Diagnostic
from cxl.types.types import Kind, Type, type_name
from operators.core.binding import Binding
from operators.core.operator import Operator
from operators.core.registry import node_type
from operators.core.row_type import CK, RowType, key_type
from operators.core.settings import NodeSpec, check_path
from operators.corrections.config import CorrectionsConfig
from operators.corrections.correction import Correction
from operators.corrections.entries import EntryPath, WrittenCorrection, cell_text
from operators.corrections.operator import Corrections, Fixed
from storage.values.coerce import coerce
from storage.values.json_text import canonical

KEY_KINDS: Final = frozenset({Kind.STRING, Kind.INT, Kind.FLOAT, Kind.DECIMAL, Kind.BOOL, Kind.DATE, Kind.DATE_TIME})
"""Kinds of columns that may name a record."""
_WRONG: Final = object()
"""The value of a text that is none of its column's type."""


@node_type("corrections", CorrectionsConfig)
def bind(spec: NodeSpec, binding: Binding) -> Operator | None:
    """Check a corrections node and its files, and give its operator."""
    config: CorrectionsConfig = spec.config
    row = binding.input
    good = check_path(config.path, ("config", "path"), binding.problems.report_help, binding.settings)
    for at, name in enumerate(config.key):
        fault = _key_fault(config.key, at, row)
        if fault is not None:
            known = binding.problems.similar(name, list(row.data)) if name not in row.data else None
            binding.problems.report("E481", fault, ("config", "key", at), help=known)
            good = False
    if not good:
        return None
    entries = binding.settings.corrections.get(spec.name, ())
    fixed = _fixed(row, config.key, binding)
    reading = _Reading(row, tuple(config.key), fixed, binding, _Cells.of(entries, config.key, row, binding.settings.date_formats))
    made = [one for written in entries for one in reading.corrections(written)]
    problems = [*reading.problems, *_doubled(made)]
    if problems:
        binding.problems.cxl(CxlErrors(problems), ("config", "path"))
        return None
    return Corrections(spec, row, made, fixed)


def _key_fault(key: Sequence[str], at: int, row: RowType) -> str | None:
    name = key[at]
    if name not in row.data:
        return None if row.guessed else f"there is no column '{name}'"
    if name in key[:at]:
        return f"'{name}' stands twice in the key"
    type_ = row.data[name]
    return None if type_.kind in KEY_KINDS else f"column '{name}' has the type {type_name(type_)}: a record is named by columns of plain types"


def _fixed(row: RowType, key: Sequence[str], binding: Binding) -> Mapping[str, Fixed]:
    """The columns that no correction may change here."""
    elsewhere = "correct it in the file, or by errata correct"
    found = {name: Fixed(f"'{name}' is a correlation key, whose groups are made where the records are read", elsewhere) for name in row.riding(CK)}
    for source in binding.sources:
        mark = binding.watermarks.get(source)
        if mark is not None and mark != "none" and "_event_time" in row.hidden:
            found[mark.column] = Fixed(f"'{mark.column}' gives the event time of source '{source}', which is taken where the records are read", elsewhere)
    return found | {name: Fixed(f"'{name}' is part of the key", "retract the record, and let the source bring another") for name in key}


_BEGINNINGS = {Kind.ARRAY: "[", Kind.MAP: "{", Kind.NUMERIC: "-0123456789"}
"""With what the JSON text of values of a type begins; a null is one of every type."""


@dataclass(frozen=True, slots=True)
class _Cells:
    """The values of texts by their type, converted together: one at a time takes a hundred times longer."""

    values: Mapping[tuple[str, str], Any]

    @classmethod
    def of(cls, entries: Sequence[WrittenCorrection], key: Sequence[str], row: RowType, date_formats: Sequence[str]) -> _Cells:
        """The values of all texts that entries have for columns of plain types."""
        texts: dict[str, dict[str, None]] = {}
        for name, value, text in (cell for written in entries for cell in _given(written, key)):
            type_ = row.data.get(name)
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
    """Makes corrections of entries. `problems`: what is wrong with them."""

    row: RowType
    key: tuple[str, ...]
    fixed: Mapping[str, Fixed]
    binding: Binding
    cells: _Cells
    problems: list[Diagnostic] = field(default_factory=list)

    def corrections(self, written: WrittenCorrection) -> Iterator[Correction]:
        """One correction for each cell of an entry, or for its retraction."""
        entry = written.entry
        if entry.retract == bool(entry.set):
            what = "retracts a record and sets columns of it" if entry.retract else "says neither what to set nor that the record is retracted"
            self._report(written, (), "E480", f"the correction {what}", "write set: {column: {from: ..., to: ...}}, or retract: true")
            return
        key = self._key(written)
        cells = [(name, self._cell(written, name)) for name in entry.set]
        if key is None or any(cell is None for _, cell in cells):
            return
        lookup = encode_key(key, [key_type(self.row.data[name]) for name in self.key])
        shown = {name: cell_text(value) for name, value in zip(self.key, key, strict=True)}
        if entry.retract:
            yield Correction(written, lookup, shown)
        for name, cell in cells:
            assert cell is not None  # none of them is
            yield Correction(written, lookup, shown, name, *cell)

    def _key(self, written: WrittenCorrection) -> list[Any] | None:
        given = written.entry.key
        if not isinstance(given, Mapping):
            given = {self.key[0]: given} if len(self.key) == 1 else {}
        if set(given) != set(self.key):
            lacking, more = [name for name in self.key if name not in given], [name for name in given if name not in self.key]
            told = f"lacks {', '.join(map(repr, lacking))}" if lacking else f"has {', '.join(map(repr, more))}, which the node's key has not"
            self._report(written, ("key",), "E481", f"the key of the correction {told}", f"write key: {{{', '.join(f'{name}: ...' for name in self.key)}}}")
            return None
        found = [self._value(written, ("key", name), given[name], self.row.data[name]) for name in self.key]
        return None if any(value is _WRONG for value in found) else found

    def _cell(self, written: WrittenCorrection, name: str) -> tuple[Any, Any] | None:
        """What a cell says and should say; None where something is wrong."""
        place: EntryPath = ("set", name)
        if name not in self.row.data:
            help_text = self.binding.problems.similar(name, list(self.row.data)) or f"the columns: {', '.join(self.row.data)}"
            self._report(written, place, "E482", f"there is no column '{name}'", help_text)
            return None
        if name in self.fixed:
            self._report(written, place, "E482", *self.fixed[name])
            return None
        change, type_ = written.entry.set[name], self.row.data[name]
        before, after = (self._value(written, (*place, side), value, type_) for side, value in (("from", change.before), ("to", change.after)))
        return None if before is _WRONG or after is _WRONG else (before, after)

    def _value(self, written: WrittenCorrection, place: EntryPath, value: Any, type_: Type) -> Any:
        """A value as its column holds it, dynamic ones as JSON text; `_WRONG` where it is none of the column's type."""
        if value is None:
            return "" if written.in_table and type_.kind is Kind.STRING else None
        if type_.is_dynamic:
            found = _json(value)
            if found[:1] not in _BEGINNINGS.get(type_.kind, found[:1]):
                self._report(written, place, "E482", f"'{value}' is no {type_name(type_.base)}, as '{place[1]}' is")
                return _WRONG
            return found
        text = written.text(place, value)
        if type_.kind is Kind.STRING:
            return text
        found = self.cells.values[type_name(type_), text]
        if found is _WRONG:
            self._report(written, place, "E482", f"'{text}' is no {type_name(type_.base)}, as '{place[1]}' is")
        return found

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
