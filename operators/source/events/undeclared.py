"""Undeclared fields of records that keep earlier values. They are one column, a JSON object, whose members are merged one by one.

Only records that patch a row, or that lack some of its values, come here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from changelog.frames import mapped
from changelog.lazy_imports import F, pa
from storage.formats.base import SEPARATOR
from storage.formats.json.exact_numbers import exact_text
from storage.values.json_text import WrittenFloat

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

FIELDS: Final = "_widened"
CHAIN: Final = "__fields_before"
"""A column with what the events of a row say of undeclared fields (`step`), oldest first; null where nothing is merged."""
_FULL, _PATCH, _KEEPS = "f", "p", "k"


def step(is_patch: Column, kept: Column) -> Column:
    """The undeclared fields of an event, as text: its kind, the columns that it keeps, its fields."""
    kind = F.when(is_patch, _PATCH).when(kept.isNotNull(), _KEEPS).otherwise(_FULL)
    return F.concat(kind, F.coalesce(kept, F.lit("")), F.lit("\x1e"), F.coalesce(F.col(FIELDS), F.lit("")))


def first(fields: Column) -> Column:
    """Their values in a prior row."""
    return F.concat(F.lit(f"{_FULL}\x1e"), F.coalesce(fields, F.lit("")))


def merged(frame: DataFrame, *, empty_is_null: bool) -> DataFrame:
    """The frame without `CHAIN`, its undeclared fields merged where there is a chain."""
    from pyspark.sql.types import StructType

    schema = StructType([field for field in frame.schema.fields if field.name != CHAIN])
    return mapped(frame, _Merging(tuple(schema.names), empty_is_null), schema)


@dataclass(frozen=True, slots=True)
class _Merging:
    """Merges the chains of batches. Picklable."""

    names: tuple[str, ...]
    empty_is_null: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            chains = batch.column(CHAIN).to_pylist()
            own = batch.column(FIELDS).to_pylist()
            found = [text if chain is None else self.folded(chain) for chain, text in zip(chains, own, strict=True)]
            columns = [pa.array(found, pa.string()) if name == FIELDS else batch.column(name) for name in self.names]
            yield pa.RecordBatch.from_arrays(columns, list(self.names))

    def folded(self, chain: Sequence[str]) -> str | None:
        """The fields after all steps of a chain."""
        made: dict[str, Any] = {}
        for one in chain:
            head, _, text = one.partition("\x1e")
            fields = json.loads(text, parse_float=WrittenFloat) if text else {}
            if head[0] == _PATCH:
                made |= {name: value for name, value in fields.items() if value is not None and not (self.empty_is_null and value == "")}
            else:
                kept = [name for name in head[1:].split(SEPARATOR) if name in made and name not in fields]
                made = {**fields, **{name: made[name] for name in kept}}
        return exact_text(made) if made else None
