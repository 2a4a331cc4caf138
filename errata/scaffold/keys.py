"""The primary key of a source: columns that are never null and, together, never the same twice."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from changelog.lazy_imports import pl
from errata.scaffold.model import Cells, ColumnGuess

_IDENTITY = re.compile(r"(^|_)(id|uuid|guid|key|code|no|nr|number|nummer|num|sku|ean|isbn|iban|ref|referenz|reference|identifier|kennung|beleg|pk)($|_)|Id$|ID$|^id", re.ASCII | re.IGNORECASE)
_PART = re.compile(r"(date|day|month|year|time|_at$|^at$|_on$|line|position|pos$|seq|period|version|name$|sensor|device|station|site|country|currency|symbol|product|item)", re.IGNORECASE)
_MOST_IN_PAIRS = 14
_KEY_TYPES = ("string", "int", "date", "date_time")
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Key:
    """A primary key: its columns, and how sure it is; an empty doubt where it is sure."""

    columns: Sequence[str] = ()
    doubt: str = ""


def identity(name: str) -> bool:
    """Whether a name says that the column identifies something."""
    return bool(_IDENTITY.search(name))


def candidates(columns: Sequence[ColumnGuess], cells: Mapping[str, Cells]) -> list[ColumnGuess]:
    """Return the columns that may be part of a key: never null, of a type that identifies, the likeliest first."""
    able = [column for column in columns if column.guess.final in _KEY_TYPES and not column.guess.money and _is_filled(cells[column.source_name])]
    order = {column.name: place for place, column in enumerate(columns)}
    return sorted(able, key=lambda column: (_rank(column), order[column.name]))


def _is_filled(cells: Cells) -> bool:
    """Whether every record has a value, and none is long."""
    texts = cells.texts
    return bool(len(texts)) and texts.null_count() == 0 and not bool((texts.str.strip_chars() == "").any()) and not bool((texts.str.len_chars() > _LONGEST).any())


def _rank(column: ColumnGuess) -> int:
    if identity(column.name) or identity(column.source_name):
        return 0
    if _PART.search(column.name):
        return 1
    return 2 if column.guess.final in ("string", "int") else 3


def keys_of(columns: Sequence[ColumnGuess], cells: Mapping[str, Cells]) -> Iterator[Key]:
    """Yield the keys that hold in the samples, the likeliest first: single columns, then pairs."""
    able = candidates(columns, cells)
    total = len(cells[columns[0].source_name].texts) if columns else 0
    for column in able:
        if cells[column.source_name].texts.n_unique() == total and _may_stand_alone(column, columns, total):
            yield Key((column.name,), _single_doubt(column, total))
    for first, second in combinations(able[:_MOST_IN_PAIRS], 2):
        if _rank(first) + _rank(second) < 4 and _differ(cells, (first, second), total):
            ordered = sorted((first, second), key=columns.index)
            yield Key(tuple(one.name for one in ordered), f"no column alone is unique and never null; {ordered[0].name} and {ordered[1].name} together are, in {total:,} records")


def _may_stand_alone(column: ColumnGuess, columns: Sequence[ColumnGuess], total: int) -> bool:
    """Whether a column of other values than identities may be a key: the first column, or one of texts in enough records."""
    return _rank(column) == 0 or column is columns[0] or (column.guess.final == "string" and total >= 20)


def _single_doubt(column: ColumnGuess, total: int) -> str:
    if _rank(column) == 0 and total >= 3:
        return ""
    return f"{column.name} is the key, since no value comes twice in {total:,} record{'' if total == 1 else 's'}"


def _differ(cells: Mapping[str, Cells], pair: Sequence[ColumnGuess], total: int) -> bool:
    frame = pl.DataFrame({str(place): cells[column.source_name].texts for place, column in enumerate(pair)})
    return frame.n_unique() == total
