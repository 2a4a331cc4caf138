"""From rows back to the rows of the inputs that they come from: what `errata why` follows from node to node (DESIGN section 9, I9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from changelog.lazy_imports import F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from operators.core.row_type import KeyShape

INDEX_DIGITS = 8
"""Hexadecimal digits of the index behind a key (`changelog.keys.spark.with_index`)."""


def by_key(rows: DataFrame, shape: KeyShape, above: KeyShape) -> DataFrame:
    """The keys of the input rows of rows that each come from one row: the same key, or the key without its index. One column `_key`."""
    key = F.col("_key")
    return rows.select((key if shape == above else without_index(key)).alias("_key")).distinct()


def without_index(key: Column) -> Column:
    """A key without the index behind it."""
    digits = F.hex(key)
    return F.unhex(F.substring(digits, F.lit(1), F.length(digits) - F.lit(INDEX_DIGITS)))


def is_first(key: Column) -> Column:
    """Whether the index behind a key is that of a record's first row."""
    return F.endswith(F.hex(key), F.lit("0" * INDEX_DIGITS))


def of_lookup(rows: DataFrame, placed: DataFrame, by: str = "_lookup") -> DataFrame:
    """The keys of input rows (which have `by`) that have a `by` of the rows. One column `_key`."""
    return placed.join(rows.select(by).distinct(), by, "left_semi").select("_key").distinct()

