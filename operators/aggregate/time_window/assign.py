"""Assignment of records to tumbling, hopping and session windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from changelog.lazy_imports import F, Window
from operators.aggregate.time_window.config import TimeWindow

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

START, END, LAST = "__start", "__end", "__last"
"""A window's bounds as timestamps; whether it is the last of the record's windows."""


def in_windows(frame: DataFrame, window: TimeWindow) -> DataFrame:
    """A row for each window of each record, with `START`, `END` and `LAST`; a record without event time has one row, without bounds."""
    time, size, slide = F.unix_micros("_event_time"), window.size, window.slide
    newest = time - F.pmod(time, F.lit(slide))
    steps = -(-size // slide)
    hops = F.explode(F.sequence(F.lit(0), F.lit(steps - 1))) if steps > 1 else F.lit(0)
    each = frame.withColumn("__hop", hops).withColumn("__at", newest - F.col("__hop").cast("bigint") * F.lit(slide))
    fits = (F.col("__at") + F.lit(size) > time) | (time.isNull() & (F.col("__hop") == 0))
    bounds = {START: F.timestamp_micros(F.col("__at")), END: F.timestamp_micros(F.col("__at") + F.lit(size)), LAST: F.col("__hop") == 0}
    return each.where(fits).withColumns(bounds).drop("__hop", "__at")


def in_sessions(frame: DataFrame, window: TimeWindow) -> DataFrame:
    """Return the records with `START` and `END` of their session: records of one `_lookup`, each at most the gap after the last."""
    time = F.unix_micros("_event_time")
    in_time = Window.partitionBy("_lookup").orderBy("__time")
    timed = frame.withColumn("__time", time)
    begins = F.when(F.col("__time") - F.lag("__time", 1).over(in_time) <= F.lit(window.size), 0).otherwise(1)
    so_far = in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    numbered = timed.withColumn("__begins", begins).withColumn("__session", F.sum("__begins").over(so_far))
    session = Window.partitionBy("_lookup", "__session")
    bounds = {START: _moment(F.min("__time").over(session)), END: _moment(F.max("__time").over(session) + F.lit(window.size))}
    return numbered.withColumns(bounds).drop("__time", "__begins", "__session")


def _moment(micros: Column) -> Column:
    return F.timestamp_micros(micros)
