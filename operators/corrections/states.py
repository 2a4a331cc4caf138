"""States of corrections: applied, spent, in conflict, or without a record."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from changelog.lazy_imports import pa
from cxl.types.types import Schema
from operators.corrections.correction import Correction

APPLIED, SPENT, CONFLICT, DANGLING = "applied", "spent", "conflict", "dangling"
NEWS: Final = (CONFLICT, DANGLING, SPENT)
"""States that a run warns of."""
_MOST_NAMED: Final = 3


def state_columns() -> dict[str, pa.DataType]:
    """The columns of the state table: the cell, the record, what the correction does, its parts as JSON, its state, the number of records."""
    return {"_key": pa.binary(), "lookup": pa.binary(), "logic": pa.string(), "content": pa.string(), "state": pa.string(), "rows": pa.int64()}


@dataclass(frozen=True, slots=True)
class State:
    """A correction as the last epoch left it.

    Attributes:
        key: The name of its cell.
        lookup: The bytes of the record's key.
        logic: What it does.
        content: Its parts, as JSON.
        rows: The number of records with its key.
    """

    key: bytes
    lookup: bytes
    logic: str
    content: str
    state: str
    rows: int

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> State:
        """The state of a row of the table."""
        return cls(bytes(row["_key"]), bytes(row["lookup"]), row["logic"], row["content"], row["state"], row["rows"])

    def row(self) -> dict[str, Any]:
        """The row of the table."""
        return dict(zip(state_columns(), (self.key, self.lookup, self.logic, self.content, self.state, self.rows), strict=True))


def states_of(corrections: Sequence[Correction], records: pa.Table, types: Schema) -> list[State]:
    """The states of corrections over live records.

    Args:
        corrections: Active corrections.
        records: The records that they name: `_lookup` and the columns that are corrected.
        types: The types of the columns.
    """
    found: dict[bytes, list[Mapping[str, Any]]] = {}
    for row in records.to_pylist():
        found.setdefault(bytes(row["_lookup"]), []).append(row)
    return [_state(one, found.get(one.lookup, []), types) for one in corrections]


def _state(one: Correction, records: Sequence[Mapping[str, Any]], types: Schema) -> State:
    if one.column is None:
        word = APPLIED if records else SPENT
    else:
        words = {_word(one, record[one.column], dynamic=types[one.column].is_dynamic) for record in records}
        word = next((word for word in (CONFLICT, APPLIED, SPENT) if word in words), DANGLING)
    return State(one.id, one.lookup, one.logic, json.dumps(one.content(), ensure_ascii=False, default=str), word, len(records))


def _word(one: Correction, value: Any, *, dynamic: bool) -> str:
    if _same(value, one.before, dynamic=dynamic):
        return APPLIED
    return SPENT if _same(value, one.after, dynamic=dynamic) else CONFLICT


def _same(one: Any, other: Any, *, dynamic: bool) -> bool:
    """Whether two values of a column are equal, as the node compares them. A NaN is equal to a NaN."""
    if dynamic and one is not None and other is not None:
        return bool(_typed(one) == _typed(other))
    return bool(one == other) or (one != one and other != other)  # noqa: PLR0124


def _typed(text: str) -> Any:
    """The value of JSON text, so that equal values are equal: numbers by value, and no truth value equals a number."""
    return json.loads(text, parse_int=_number, parse_float=_number, parse_constant=_number, object_pairs_hook=_members)


def _number(text: str) -> tuple[str, Any]:
    return "number", text if text.endswith(("NaN", "Infinity")) else Decimal(text)


def _members(pairs: list[tuple[str, Any]]) -> tuple[str, Any]:
    return "map", pairs


def remarks(node: str, corrections: Sequence[Correction], states: Sequence[State]) -> Iterator[str]:
    """Warnings about corrections that stopped holding, one a state (W480)."""
    for word in NEWS:
        found = [one for one, state in zip(corrections, states, strict=True) if state.state == word]
        if found:
            places = [one.written.place for one in found[:_MOST_NAMED]]
            more = f" and {len(found) - _MOST_NAMED:,} more" if len(found) > _MOST_NAMED else ""
            yield f"W480: node '{node}': {_in_words(word, len(found))} ({', '.join(places)}{more})"


def _in_words(word: str, count: int) -> str:
    one = count == 1
    number = f"{count:,} correction{'' if one else 's'}"
    if word == CONFLICT:
        return f"{number} {'does' if one else 'do'} not hold: the record says neither what {'it corrects' if one else 'they correct'} nor what it should say"
    if word == DANGLING:
        return f"{number} {'names a record that is not there' if one else 'name records that are not there'}"
    return f"{number} {'is' if one else 'are'} spent: the source says the same by now"
