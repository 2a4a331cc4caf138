"""The records of an answer that earlier answers had: a database is asked for them again, and only what is new is delivered.

A record is known by a digest of its values, and equal records by their number. The source's state keeps one row a digest: how often the last answer had it, and
whether the next one may have it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from changelog.columns import column
from changelog.lazy_imports import F, Window, pc
from changelog.spark_algebra import latest
from operators.source.request import Memory
from operators.source.strategies.keyed_events import place_key

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from storage.engines import Engine

DIGEST: Final = "__digest"
"""The digest of a record, in hexadecimal."""
NTH: Final = "__nth"
"""The number of a record among equal ones, from 1."""
TIMES: Final = "__times"
"""How often the last answer had a record. Only rows of known records have it."""
_AGAIN: Final = "__again"
WHOSE: Final = "__whose"
"""The key of a known record: an erasure takes out what is known of its records, as a digest tells whoever guesses the values."""
_MARK: Final = b"\xfd"
"""The first byte under which known records are kept, beside what is kept of keys."""


@dataclass(frozen=True)
class KnownRecords:
    """The known records before and after an answer.

    Attributes:
        all: `DIGEST` of each record that was known or is there now; `__was`, how often the last answer had it, and `__asked`, whether this one was to have it;
            `__is`, how often this one has it, and `__again`, whether the next one may.
        moved: The ones of them that are another number now, or were asked for the last time. Few are on the driver.
        moved_count: The number of these, where they are few.
        new_count: The number of the records that the last answer did not have, where these are few.
    """

    all: DataFrame
    moved: DataFrame
    moved_count: int | None
    new_count: int | None

    @classmethod
    def of(cls, rows: DataFrame, again: Column, memory: Memory | None, engine: Engine) -> KnownRecords:
        """Compare the records of an answer with the known ones.

        Args:
            rows: The records, with `DIGEST` and `WHOSE`.
            again: Whether the next run asks for a record again.
            memory: What the source keeps; None where the answer counts alone.
            engine: The engine of the run.
        """
        now = rows.groupBy(DIGEST).agg(F.count(F.lit(1)).alias("__is"), F.max(again.cast("int")).alias(_AGAIN), F.first(WHOSE).alias(WHOSE))
        now = now.withColumn(_AGAIN, F.col(_AGAIN) == 1)
        kept = None if memory is None else memory.rows()
        if kept is None or TIMES not in kept.columns:
            both = now.withColumns({"__was": F.lit(None).cast("bigint"), "__asked": F.lit(False)})
        else:
            whose = F.col(WHOSE) if WHOSE in kept.columns else F.lit(None).cast("binary")
            known = latest(kept.where(F.col(TIMES).isNotNull()).select("_key", "_epoch", "_file", TIMES, _AGAIN, whose.alias("__owner")))
            before = known.select(F.col("_file").alias(DIGEST), F.col(TIMES).alias("__was"), F.col(_AGAIN).alias("__asked"), "__owner")
            both = before.join(now, DIGEST, "full").withColumns({"__asked": F.coalesce("__asked", F.lit(False)), WHOSE: F.coalesce(WHOSE, "__owner")}).drop("__owner")
        both = both.withColumn(_AGAIN, F.coalesce(_AGAIN, F.lit(False)))
        moved = both.where(F.col("__was").isNull() | (_times() != F.col("__was")) | (F.col(_AGAIN) != F.col("__asked")))
        most = engine.limits.driver_rows
        table = engine.to_arrow(moved.limit(most + 1))
        if table.num_rows > most:
            return cls(both, moved, None, None)
        new = pc.sum(pc.max_element_wise(pc.subtract(pc.fill_null(table.column("__is"), 0), pc.if_else(table.column("__asked"), table.column("__was"), 0)), 0), min_count=0)
        return cls(both, engine.from_arrow(table), table.num_rows, new.as_py())

    def unread(self, rows: DataFrame) -> DataFrame:
        """The records that the last answer did not have, with `NTH`."""
        before = F.when(F.col("__asked"), F.col("__was")).otherwise(F.lit(0))
        more = self.moved.where(F.col("__is") > before).select(DIGEST, before.alias("__before"))
        met = rows.join(more if self.moved_count is None else F.broadcast(more), DIGEST)
        numbered = met.withColumn(NTH, F.row_number().over(Window.partitionBy(DIGEST).orderBy(DIGEST)).cast("bigint"))
        return numbered.where(F.col(NTH) > F.col("__before")).drop("__before")

    def kept(self, like: DataFrame | None = None) -> DataFrame:
        """What the source keeps of them. `like`: other rows that it keeps, whose columns these get too."""
        key = F.concat(F.lit(_MARK), F.col(DIGEST).cast("binary"))
        told = {"_key": key, "_file": F.col(DIGEST), TIMES: _times(), _AGAIN: F.col(_AGAIN), WHOSE: F.col(WHOSE)}
        others = [] if like is None else [F.lit(None).cast(field.dataType).alias(field.name) for field in like.schema.fields if field.name not in told]
        return self.moved.where(F.col("__was").isNotNull() | F.col(_AGAIN)).select(*(value.alias(name) for name, value in told.items()), *others)

    @staticmethod
    def beside(rows: DataFrame) -> DataFrame:
        """Other rows that the source keeps, with the columns of known records."""
        return rows.withColumns({TIMES: F.lit(None).cast("bigint"), _AGAIN: F.lit(None).cast("boolean"), WHOSE: F.lit(None).cast("binary")})

    def gone(self) -> DataFrame:
        """The keys (`_key`) that rejects of records have which the answer was to have, and has no more."""
        lost = self.moved.where(F.col("__asked") & (F.coalesce("__is", F.lit(0)) < F.col("__was")))
        numbers = F.explode(F.sequence(F.coalesce("__is", F.lit(0)) + 1, F.col("__was")))
        return lost.select(F.col(DIGEST).alias("_file"), numbers.alias("_row")).select(place_key().alias("_key"))

    def with_stale(self, events: DataFrame) -> DataFrame:
        """Earlier events with `__stale`: whether their records are there no more."""
        times = self.all.select(F.col(DIGEST).alias("_file"), _times().alias("__left"))
        met = events.join(times, "_file", "left").withColumn("__stale", F.coalesce(F.col("_row") > F.col("__left"), F.lit(False)))
        return met.select(*map(column, events.columns), "__stale")

    @staticmethod
    def with_repeated(events: DataFrame) -> DataFrame:
        """Events where a record that went and came again is stale but for its last coming."""
        last = F.max("__turn").over(Window.partitionBy("_file", "_row", "__part"))
        return events.withColumn("__stale", F.col("__stale") | (F.col("__turn") < last))


def _times() -> Column:
    """How often the answer has a record, or the last answer that was to have it."""
    return F.when(F.col("__is").isNotNull(), F.col("__is")).when(F.col("__asked"), F.lit(0)).otherwise(F.col("__was"))
