"""Rows as events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from changelog.columns import column
from changelog.lazy_imports import F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def as_events(rows: DataFrame, names: Sequence[str], set_columns: Mapping[str, Column], like: DataFrame) -> DataFrame:
    """Return rows as events.

    Args:
        rows: The rows. Columns that events have and rows lack are null, or what plain events have.
        names: The columns of the events.
        set_columns: Columns with another value.
        like: Events, for the types of columns.
    """
    types = {field.name: field.dataType for field in like.schema.fields}
    plain = {"__quiet": F.lit(True), "__expects": F.lit(False), "__part": F.lit(0), "__fresh": F.lit(False), "__stale": F.lit(False), "__turn": F.lit(0), "_row": F.lit(0)}
    values = []
    for name in names:
        value = set_columns.get(name)
        if value is None:
            value = column(name) if name in rows.columns else plain.get(name, F.lit(None))
        values.append(value.cast(types[name]).alias(name))
    return rows.select(*values)
