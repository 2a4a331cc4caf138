"""Old epochs folded to a base: only what stood after them is left of them (DESIGN section 4, "Append only")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from changelog.columns import EPOCH, KEY, OP
from changelog.lazy_imports import F, Window
from changelog.ops import Op, is_negative, is_positive

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def folded(op_rows: DataFrame, at: int) -> DataFrame:
    """The op rows up to epoch `at` as a base: the rows that stood then, each an append of that epoch with the cause that it had.

    The fold of the base and of all later rows is what it was, at `at` and at every later epoch.
    """
    rows = op_rows.where(F.col(EPOCH) <= at)
    dead = rows.where(is_negative(F.col(OP))).groupBy(F.col(KEY).alias("_taken")).agg(F.max(EPOCH).alias("_dead"))
    stood = rows.where(is_positive(F.col(OP))).join(dead, (F.col(KEY) == F.col("_taken")) & (F.col("_dead") > F.col(EPOCH)), "left_anti")
    return stood.withColumns({EPOCH: F.lit(at).cast("bigint"), OP: F.lit(int(Op.APPEND)).cast("tinyint")})


def newest(states: DataFrame, at: int) -> DataFrame:
    """Accumulators up to epoch `at`: the newest of each key, as of that epoch."""
    rank = F.row_number().over(Window.partitionBy(KEY).orderBy(F.col(EPOCH).desc()))
    ranked = states.where(F.col(EPOCH) <= at).withColumn("__rank", rank).where(F.col("__rank") == 1).drop("__rank")
    return ranked.withColumn(EPOCH, F.lit(at).cast("bigint"))
