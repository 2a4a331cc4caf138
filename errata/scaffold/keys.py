"""The primary key of a source: columns that are never null and, together, never the same twice."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from changelog.lazy_imports import pl
from errata.core.column_names import names_identity
from errata.scaffold.model import Cells, ColumnGuess

_PART = re.compile(r"(date|day|month|year|time|_at$|^at$|_on$|line|position|pos$|seq|period|version|name$|sensor|device|station|site|country|currency|symbol|product|item)", re.IGNORECASE)
_MOST_IN_PAIRS = 14
_DATES = ("date", "date_time")
_ENOUGH = 20
"""The number of records from which on unlikely columns are tried too: in fewer, values differ by chance."""
_KEY_TYPES = ("string", "int", "date", "date_time")
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Key:
    """A primary key: its columns, and how sure it is; an empty doubt where it is sure."""

    columns: Sequence[str] = ()
    doubt: str = ""


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
    if names_identity(column.name) or names_identity(column.source_name):
        return 0
    return 1 if _PART.search(column.name) or column.guess.final in _DATES else 2


def keys_of(columns: Sequence[ColumnGuess], cells: Mapping[str, Cells]) -> Iterator[Key]:
    """Yield the keys that hold in the samples, the likeliest first: single columns, pairs, then times alone and pairs of other texts and numbers."""
    able = candidates(columns, cells)
    total = len(cells[columns[0].source_name].texts) if columns else 0
    alone = [column for column in able if cells[column.source_name].texts.n_unique() == total]
    likely = [column for column in alone if _may_stand_alone(column, columns, total)]
    pairs = list(combinations(able[:_MOST_IN_PAIRS], 2))
    likely.sort(key=lambda column: (_rank(column) > 0, column is not columns[0], column.guess.final in _DATES))
    yield from (Key((column.name,), _single_doubt(column, total)) for column in likely)
    yield from _pairs(columns, cells, [pair for pair in pairs if _is_likely(pair)])
    yield from (Key((column.name,), _single_doubt(column, total)) for column in alone if column.guess.final == "date_time" and column not in likely)
    if total >= _ENOUGH:
        yield from _pairs(columns, cells, [pair for pair in pairs if not _is_likely(pair)])


def _is_likely(pair: Sequence[ColumnGuess]) -> bool:
    """Whether names and types of a pair say that it may be a key."""
    return sum(map(_rank, pair)) < 4


def _pairs(columns: Sequence[ColumnGuess], cells: Mapping[str, Cells], pairs: Iterable[tuple[ColumnGuess, ColumnGuess]]) -> Iterator[Key]:
    """Yield the pairs that are never the same twice."""
    for pair in pairs:
        total = len(cells[pair[0].source_name].texts)
        if _differ(cells, pair, total):
            first, second = (column.name for column in sorted(pair, key=columns.index))
            yield Key((first, second), f"no likelier column is unique and never null; {first} and {second} together are, in {total:,} records")


def _may_stand_alone(column: ColumnGuess, columns: Sequence[ColumnGuess], total: int) -> bool:
    """Whether a column of other values than identities may be a key: the first column, a day, or one of texts in enough records."""
    return _rank(column) == 0 or column is columns[0] or column.guess.final == "date" or (column.guess.final == "string" and total >= _ENOUGH)


def _single_doubt(column: ColumnGuess, total: int) -> str:
    if _rank(column) == 0 and total >= 3:
        return ""
    return f"{column.name} is the key, since no value comes twice in {total:,} record{'' if total == 1 else 's'}"


def _differ(cells: Mapping[str, Cells], pair: Sequence[ColumnGuess], total: int) -> bool:
    frame = pl.DataFrame({str(place): cells[column.source_name].texts for place, column in enumerate(pair)})
    return frame.n_unique() == total
