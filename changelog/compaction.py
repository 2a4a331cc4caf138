"""Compaction: old epochs are folded into a base, which holds only the rows that were live after them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from changelog.columns import EPOCH, KEY, OP
from changelog.lazy_imports import F, Window
from changelog.ops import Op, is_negative, is_positive

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def folded(op_rows: DataFrame, at: int) -> DataFrame:
    """Return the base for the op rows up to epoch `at`: each row that was live then, as an append of that epoch with its cause.

    The fold of the base and all later rows stays the same, at `at` and at every later epoch.
    """
    rows = op_rows.where(F.col(EPOCH) <= at)
    dead = rows.where(is_negative(F.col(OP))).groupBy(F.col(KEY).alias("__taken")).agg(F.max(EPOCH).alias("__dead"))
    live = rows.where(is_positive(F.col(OP))).join(dead, (F.col(KEY) == F.col("__taken")) & (F.col("__dead") > F.col(EPOCH)), "left_anti")
    return live.withColumns({EPOCH: F.lit(at).cast("bigint"), OP: F.lit(int(Op.APPEND)).cast("tinyint")})


def newest(states: DataFrame, at: int) -> DataFrame:
    """Return the newest accumulator of each key up to epoch `at`, stamped with that epoch."""
    rank = F.row_number().over(Window.partitionBy(KEY).orderBy(F.col(EPOCH).desc()))
    ranked = states.where(F.col(EPOCH) <= at).withColumn("__rank", rank).where(F.col("__rank") == 1).drop("__rank")
    return ranked.withColumn(EPOCH, F.lit(at).cast("bigint"))
