"""The records of an answer that earlier answers had: a database is asked for them again, and only what is new is delivered.

A record is known by a digest of its values, and equal records by their number. The source's state keeps how often the last answer had it, under keys in the order
of the cursor: a run reads what it may be asked for again, however long the history is. Earlier records stay unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from changelog.columns import column
from changelog.frames import united
from changelog.keys.encoding import encode_key
from changelog.keys.spark import key_column
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
WHOSE: Final = "__whose"
"""The key of a known record: an erasure takes out what is known of its records, as a digest tells whoever guesses the values."""
_MARK: Final = b"\xfd"
"""The first byte under which known records are kept, beside what is kept of keys. What follows says when they are asked for."""
_END: Final = b"\xfe"
"""Follows all of them."""
_ALWAYS: Final = b"\xfe"
"""Every run asks for the record."""
_MAYBE: Final = b"\xff"
"""The cell of the cursor cannot be read, so that only the database knows whether a run asks for the record."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The question of a run to a database.

    Attributes:
        cursor: The column of the cursor, with its type; None: every run asks for everything.
        floor: The value from which on this run asked for records; None for all.
        next_floor: The value from which on the next run asks.
        unread: Whether the cell of a record's cursor cannot be read.
    """

    cursor: tuple[str, str] | None
    floor: Any
    next_floor: Any
    unread: Column

    @property
    def _typed(self) -> Column:
        assert self.cursor is not None  # who asks for everything needs no column
        return column(self.cursor[0])

    def surely(self, floor: Any) -> Column:
        """Whether a run from a floor on asks for a record for certain."""
        if self.cursor is None or floor is None:
            return F.lit(True)
        return F.when(self._typed.isNull(), ~self.unread).otherwise(self._typed >= _literal(floor))

    @property
    def comes_again(self) -> Column:
        """Whether the next run may ask for a record."""
        return self.surely(self.next_floor) | self.unread

    @property
    def place(self) -> Column:
        """The first bytes of the key of a known record."""
        if self.cursor is None:
            return F.lit(_MARK + _ALWAYS)
        valued = F.concat(F.lit(_MARK), key_column([(self._typed, self.cursor[1])]))
        return F.when(self._typed.isNotNull(), valued).when(self.unread, F.lit(_MARK + _MAYBE)).otherwise(F.lit(_MARK + _ALWAYS))

    @property
    def first(self) -> bytes:
        """The key before the known records that this run may have asked for."""
        return _MARK if self.cursor is None or self.floor is None else _MARK + encode_key([self.floor], [self.cursor[1]])


@dataclass(frozen=True)
class KnownRecords:
    """The known records before and after an answer.

    Attributes:
        moved: `DIGEST` of each record that is another number now; `__was`, how often the last answer had it, and `__is`, how often this one has it. Few are on the driver.
        moved_count: The number of these, where they are few.
        new_count: The number of the records that the last answer did not have, where these are few.
    """

    moved: DataFrame
    moved_count: int | None
    new_count: int | None

    @classmethod
    def of(cls, rows: DataFrame, asked: Asked, memory: Memory | None, engine: Engine, count: int | None) -> KnownRecords:
        """Compare the records of an answer with the known ones.

        Args:
            rows: The records, with `DIGEST` and `WHOSE`.
            asked: What this run and the next one ask for.
            memory: What the source keeps; None where the answer counts alone.
            engine: The engine of the run.
            count: The number of the records, where it is known.
        """
        first = [F.first(value).alias(name) for name, value in ((WHOSE, column(WHOSE)), ("__place", asked.place), ("__again", asked.comes_again))]
        now = rows.groupBy(DIGEST).agg(F.count(F.lit(1)).alias("__is"), *first)
        kept = None if memory is None else memory.between(asked.first, _END, count)
        if kept is None or TIMES not in kept.columns:
            both = now.withColumns({"__was": F.lit(0).cast("bigint"), "__kept": F.lit(None).cast("binary")})
        else:
            known = kept.select(F.col("_file").alias(DIGEST), F.col(TIMES).alias("__was"), F.col("_key").alias("__kept"), F.col(WHOSE).alias("__owner"))
            both = known.join(now, DIGEST, "full")
            unsure = F.coalesce(F.col("__kept") >= F.lit(_MARK + _MAYBE), F.lit(False))
            both = both.withColumns({"__was": F.coalesce("__was", F.lit(0)), WHOSE: F.coalesce(WHOSE, "__owner"), "__again": F.coalesce("__again", F.lit(False))}).drop("__owner")
            stays = F.col("__is").isNull() & unsure & ~_is_read_anew()
            both = both.withColumn("__is", F.when(stays, F.col("__was")).otherwise(F.coalesce("__is", F.lit(0))))
        moved = both.where(F.col("__is") != F.col("__was"))
        most = engine.limits.driver_rows
        table = engine.to_arrow(moved.limit(most + 1))
        if table.num_rows > most:
            return cls(moved, None, None)
        new = pc.sum(pc.max_element_wise(pc.subtract(table.column("__is"), table.column("__was")), 0), min_count=0)
        return cls(engine.from_arrow(table), table.num_rows, new.as_py())

    def unread(self, rows: DataFrame) -> DataFrame:
        """The records that the last answer did not have, with `NTH`."""
        more = self.moved.where(F.col("__is") > F.col("__was")).select(DIGEST, F.col("__was").alias("__before"))
        met = rows.join(more if self.moved_count is None else F.broadcast(more), DIGEST)
        numbered = met.withColumn(NTH, F.row_number().over(Window.partitionBy(DIGEST).orderBy(DIGEST)).cast("bigint"))
        return numbered.where(F.col(NTH) > F.col("__before")).drop("__before")

    def kept(self, like: DataFrame | None = None) -> DataFrame:
        """Their rows in the source's state. `like`: other rows that it keeps, whose columns these get too."""
        key = F.coalesce("__kept", F.concat("__place", F.col(DIGEST).cast("binary")))
        columns = {"_key": key, "_file": F.col(DIGEST), TIMES: F.col("__is"), WHOSE: F.col(WHOSE)}
        others = [] if like is None else [F.lit(None).cast(field.dataType).alias(field.name) for field in like.schema.fields if field.name not in columns]
        return self.moved.where((F.col("__is") < F.col("__was")) | F.col("__again")).select(*(value.alias(name) for name, value in columns.items()), *others)

    @staticmethod
    def beside(rows: DataFrame) -> DataFrame:
        """Other rows that the source keeps, with the columns of known records."""
        return rows.withColumns({TIMES: F.lit(None).cast("bigint"), WHOSE: F.lit(None).cast("binary")})

    def gone(self) -> DataFrame:
        """The keys (`_key`) that rejects of records have which the answer was to have, and has no more."""
        lost = self.moved.where(F.col("__is") < F.col("__was"))
        numbers = F.explode(F.sequence(F.col("__is") + 1, F.col("__was")))
        return lost.select(F.col(DIGEST).alias("_file"), numbers.alias("_row")).select(place_key().alias("_key"))

    def with_stale(self, events: DataFrame, kept: DataFrame) -> DataFrame:
        """Earlier events with `__stale`: whether their records are there no more. `kept`: all that earlier runs kept."""
        names = ["_file", "__left"]
        before = latest(kept.where(F.col(TIMES).isNotNull()).select("_key", "_epoch", "_file", F.col(TIMES).alias("__left"))).select(*names)
        now = self.moved.select(F.col(DIGEST).alias("_file"), F.col("__is").alias("__left"))
        times = united(before.join(now, "_file", "left_anti").select(*names), now)
        met = events.join(times, "_file", "left").withColumn("__stale", F.coalesce(F.col("_row") > F.col("__left"), F.lit(False)))
        return met.select(*map(column, events.columns), "__stale")

    @staticmethod
    def with_repeated(events: DataFrame) -> DataFrame:
        """Events where a record that went and came again is stale but for its last coming."""
        last = F.max("__turn").over(Window.partitionBy("_file", "_row", "__part"))
        return events.withColumn("__stale", F.col("__stale") | (F.col("__turn") < last))


def _is_read_anew() -> Column:
    """Whether the answer has a new record of the same key, whose cursor can be read."""
    new = (F.coalesce("__is", F.lit(0)) > F.col("__was")) & (F.col("__place") < F.lit(_MARK + _MAYBE))
    return F.max(F.coalesce(new, F.lit(False)).cast("int")).over(Window.partitionBy(WHOSE)) > 0


def _literal(value: Any) -> Column:
    """A typed value as a column; times are of UTC."""
    return F.lit(value.replace(tzinfo=UTC) if isinstance(value, datetime) else value)
