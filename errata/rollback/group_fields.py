"""The fields of an aggregate's groups, from the keys of its rows: a group that failed has no row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from changelog.lazy_imports import pa, pl
from cxl.types.types import Type
from errata.rollback.cell_texts import texts_or_null
from operators.aggregate.operator import Aggregate
from operators.core.row_type import physical_type
from storage.delta.columns import declared

LONGEST: Final = 100
"""Characters of a value that a message shows."""


def fields_in_keys(aggregate: Aggregate, keys: pl.Series) -> dict[str, pl.Series]:
    """The fields of `group_by` by name, as text and empty where a value is null, a row for each key."""
    return {name: column.fill_null("") for name, column in _texts(aggregate, keys, aggregate.groups).items()}


def groups_in_words(aggregate: Aggregate, keys: Iterable[bytes]) -> list[str]:
    """`group account=A17, day=2024-01-31: ` for each key, with the bounds of its window; nothing for the group of all rows."""
    keys = pl.Series(list(keys), dtype=pl.Binary)
    found = _texts(aggregate, keys, aggregate.key_values)
    rows = zip(*found.values(), strict=True) if found else [()] * len(keys)
    pairs = (", ".join(f"{name}={_short(text)}" for name, text in zip(found, row, strict=True)) for row in rows)
    return [f"group {one}: " if one else "" for one in pairs]


def _short(text: str | None) -> str:
    """A value within a message: one line, and no more of a long text than tells which it is."""
    if text is None:
        return "null"
    return " ".join(text[:LONGEST].splitlines()) + ("..." if len(text) > LONGEST else "")


def _texts(aggregate: Aggregate, keys: pl.Series, wanted: Mapping[str, Type]) -> dict[str, pl.Series]:
    """Values in keys as text by name, null where they are."""
    values = [aggregate.values_in(key) for key in keys]
    types = pa.schema(declared({name: physical_type(type_) for name, type_ in wanted.items()}))
    return {name: _text([one[name] for one in values], type_, types.field(name).type) for name, type_ in wanted.items()}


def _text(values: list[object], type_: Type, kind: pa.DataType) -> pl.Series:
    """Values of one type. Keys hold values of a dynamic type as text."""
    return pl.Series(values, dtype=pl.String) if type_.is_dynamic else texts_or_null(pa.chunked_array([pa.array(values, kind)]), type_)
