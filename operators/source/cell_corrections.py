"""Corrections of a source's cells as they are read, before keys, groups and event times are made of them.

A cell that does not convert is named by its text, any other one by its value. So a correction repairs a record that the source would reject.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final

import orjson

from changelog.constant_columns import constant
from changelog.lazy_imports import pa, pc
from operators.corrections.correction import Correction, RawText
from operators.corrections.entries import cell_text
from storage.formats.base import ERROR, Reject

Cell = tuple[bool, Any]
"""The content of a cell: true and its text where it does not convert or is empty, else false and its value."""
COERCION: Final = "type_coercion_failure"
SEPARATOR: Final = ","


@dataclass(frozen=True, slots=True)
class CellCorrection:
    """One correction. Picklable: tasks use it."""

    name: str
    column: str
    before: Cell
    after: Any


@dataclass(frozen=True, slots=True)
class CellCorrections:
    """The active corrections of a source. Picklable: tasks use it.

    Attributes:
        key: The columns that name a record.
        types: The declared types of the columns, as messages show them.
        by_key: The corrections of each record.
    """

    key: tuple[str, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    by_key: Mapping[tuple[Cell, ...], tuple[CellCorrection, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, key: Sequence[str], types: Mapping[str, str], corrections: Iterable[Correction]) -> CellCorrections:
        """The corrections that are to be applied."""
        by_key: dict[tuple[Cell, ...], tuple[CellCorrection, ...]] = {}
        for one in corrections:
            assert one.column is not None  # a source retracts no record
            named = tuple(map(cell_of, one.values))
            by_key[named] = (*by_key.get(named, ()), CellCorrection(one.id.hex(), one.column, cell_of(one.before), one.after))
        return cls(tuple(key), dict(types), by_key)

    def applied(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array]:
        """Return a batch of a reader with corrected cells, and for each record the names of the corrections that changed it; null for none."""
        none = constant(None, pa.string(), batch.num_rows)
        if not self.by_key:
            return batch, none
        at = self._candidates(batch)
        if not len(at):
            return batch, none
        records = _Records.of(batch, at, (*self.key, *{one.column for several in self.by_key.values() for one in several}))
        changed = [(index, tuple(self._holding(records, index))) for index in range(len(records.at))]
        changed = [(index, held) for index, held in changed if held]
        if not changed:
            return batch, none
        return self._rewritten(batch, records, dict(changed)), _put(none, {records.at[index]: SEPARATOR.join(one.name for one in held) for index, held in changed})

    def _candidates(self, batch: pa.RecordBatch) -> list[int]:
        """The records that a correction may name: those whose key columns have values of corrections, and all rejected ones."""
        masks = []
        for place, name in enumerate(self.key):
            column = batch.column(name)
            cells = {key[place] for key in self.by_key}
            values = pa.array([value for raw, value in cells if not raw], column.type)
            mask = pc.is_in(column, value_set=values)
            if any(raw for raw, _ in cells):
                mask = pc.or_(mask, pc.or_(column.is_null(), pc.equal(column, "")) if pa.types.is_string(column.type) else column.is_null())
            masks.append(pc.fill_null(mask, True))
        named = reduce(pc.and_, masks)
        return list(pc.indices_nonzero(pc.or_(named, batch.column(ERROR).is_valid())).to_pylist())

    def _holding(self, records: _Records, index: int) -> Iterator[CellCorrection]:
        """The corrections of a record that hold: its cells say what they were written for."""
        for one in self.by_key.get(tuple(records.cell(index, name) for name in self.key), ()):
            if records.cell(index, one.column) == one.before:
                yield one

    def _rewritten(self, batch: pa.RecordBatch, records: _Records, changed: Mapping[int, Sequence[CellCorrection]]) -> pa.RecordBatch:
        new: dict[str, dict[int, Any]] = {}
        for index, held in changed.items():
            for one in held:
                new.setdefault(one.column, {})[records.at[index]] = one.after
        columns = {name: _put(batch.column(name), cells) for name, cells in new.items()}
        errors = {records.at[index]: self._error(batch, records, index, {one.column: one.after for one in held}) for index, held in changed.items() if records.errors[index]}
        if errors:
            columns[ERROR] = _put(batch.column(ERROR), errors)
        return pa.RecordBatch.from_arrays([columns.get(name, batch.column(name)) for name in batch.schema.names], schema=batch.schema)

    def _error(self, batch: pa.RecordBatch, records: _Records, index: int, corrected: Mapping[str, Any]) -> str | None:
        """The error that a record still has; None where all of its cells convert now."""
        fields = {name: text for name, text in records.fields[index].items() if name not in corrected}
        wrong = {name: text for name, text in fields.items() if text and not batch.column(name)[records.at[index]].is_valid}
        if not wrong:
            return None
        texts = {**records.fields[index], **{name: None if value is None else cell_text(value) for name, value in corrected.items()}}
        detail = "; ".join(f"column '{name}': cannot read {text!r} as {self.types.get(name, 'its type')}" for name, text in wrong.items())
        return Reject(COERCION, detail, texts).json()


@dataclass(frozen=True, slots=True)
class _Records:
    """Some records of a batch: where they stand, their errors, the texts of cells that did not convert, and the values of some columns."""

    at: Sequence[int]
    errors: Sequence[str | None]
    fields: Sequence[Mapping[str, str | None]]
    values: Mapping[str, Sequence[Any]]

    @classmethod
    def of(cls, batch: pa.RecordBatch, at: Sequence[int], names: Iterable[str]) -> _Records:
        """The records at some places. Of rejected ones only those stay whose cells did not convert."""
        errors = [None if error is None else orjson.loads(error) for error in batch.column(ERROR).take(pa.array(at, pa.int64())).to_pylist()]
        kept = [index for index, error in enumerate(errors) if error is None or error["category"] == COERCION]
        places = [at[index] for index in kept]
        taken = pa.array(places, pa.int64())
        fields = [(errors[index] or {}).get("fields") or {} for index in kept]
        return cls(places, [errors[index] and COERCION for index in kept], fields, {name: batch.column(name).take(taken).to_pylist() for name in names})

    def cell(self, index: int, name: str) -> Cell:
        """The value of a cell."""
        value = self.values[name][index]
        return (False, value) if value not in (None, "") else (True, self.fields[index].get(name) or "")


def cell_of(value: Any) -> Cell:
    """The value of a cell in a correction."""
    return (True, "") if value in (None, "") else (isinstance(value, RawText), str(value) if isinstance(value, RawText) else value)


def _put(column: pa.Array, cells: Mapping[int, Any]) -> pa.Array:
    """A column with other values at some places."""
    mask = [False] * len(column)
    for at in cells:
        mask[at] = True
    return pc.replace_with_mask(column, pa.array(mask, pa.bool_()), pa.array([cells[at] for at in sorted(cells)], column.type))
