"""Suppressed records: rows of a source's changelog that are kept but take no part (docs/how-it-works/architecture.md, "Rollback").

The key of a suppressed record has the closing byte of rejects, its `_status` says how it takes part, and its `_error` what rolled it back. The
truth of a source, what its files have, are the admitted rows, the suppressed ones as if they took part, and the records that the source itself rejected.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from changelog.algebra import insertions, retractions
from changelog.columns import column, image_columns
from changelog.frames import known, united, with_schema
from changelog.keys.decode import arrow_keys, bare_keys
from changelog.lazy_imports import F, pa, pl
from changelog.rows import Predicate, Rows, has_value, is_null, is_set
from errata.plan.plan import Node
from operators.core.delta import Delta
from operators.core.row_type import STATUS, Status

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage.engines.base import Engine

READMIT = "readmit"
REJECTED = b"!"
"""The last byte of a reject's key."""


@dataclass(frozen=True, slots=True)
class Suppression:
    """Why a record is suppressed.

    `error`: the text for `_error`. `cause`: the cause of the rows that take the record out. `collateral`: it did not fail itself.
    """

    error: str
    cause: str
    collateral: bool = False
    status: Status = Status.SUPPRESSED


IS_SUPPRESSED = is_set(STATUS)
"""Whether a row of a source is a suppressed record."""


def counts(source: Node) -> Predicate:
    """Whether a row of a source is a record that takes part, or at least counts behind relaxed aggregates."""
    admitted = is_null("_error")
    return admitted | has_value(STATUS, Status.COUNTED) if source.operator.takes_counted else admitted


def unmarked(rows: Rows) -> Rows:
    """Suppressed records as they would be if they took part."""
    nulls = {name: kind for name, kind in (("_error", "string"), (STATUS, "tinyint")) if name in rows.columns}

    def on_table(table: pa.Table) -> pa.Table:
        own: dict[str, pa.Array] = {"_key": arrow_keys(bare_keys(pl.Series(table.column("_key"))))}
        own |= {name: pa.nulls(table.num_rows, table.schema.field(name).type) for name in nulls}
        return pa.table({name: own.get(name, table.column(name)) for name in table.column_names})

    def on_frame(frame: DataFrame) -> DataFrame:
        digits = F.hex(F.col("_key"))
        key = F.unhex(F.substring(digits, F.lit(1), F.length(digits) - F.lit(2)))
        return with_schema(frame.withColumns({"_key": key, **{name: F.lit(None).cast(kind) for name, kind in nulls.items()}}), known(frame))

    return rows.each(on_table, on_frame)


def truth(live: Rows) -> Rows:
    """All records of a source that its files have: its live rows, the suppressed ones as if they took part."""
    return live.where(~IS_SUPPRESSED).union(unmarked(live.where(IS_SUPPRESSED)))


def marks_frame(marks: Mapping[bytes, Suppression], counting: Collection[bytes], engine: Engine) -> DataFrame:
    """Of the rows of records to be suppressed, by `_key`: `__to`, their new key, `__by` (for `_error`), `__why` (the cause), `__as` (for `_status`).

    `counting`: the records that were suppressed already, but counted.
    """
    fates = list({id(one): one for one in marks.values()}.values())  # few are shared by many records, whose keys go to the engine without their texts
    numbers = {id(one): at for at, one in enumerate(fates)}
    keys = {
        "__record": pa.array(marks, pa.binary()), "__counting": pa.array([key in counting for key in marks], pa.bool_()),
        "__fate": pa.array([numbers[id(one)] for one in marks.values()], pa.int32()),
    }  # fmt: skip
    texts = {"__by": [one.error for one in fates], "__why": [one.cause for one in fates]}
    numbers_of_fates = {"__as": pa.array([one.status for one in fates], pa.int8()), "__fate": pa.array(range(len(fates)), pa.int32())}
    columns = {name: pa.array(values, pa.string()) for name, values in texts.items()} | numbers_of_fates
    records = engine.from_arrow(pa.table(keys)).join(F.broadcast(engine.from_arrow(pa.table(columns))), "__fate")
    marked = F.concat(F.col("__record"), F.lit(REJECTED))
    return records.select(F.when(F.col("__counting"), marked).otherwise(F.col("__record")).alias("_key"), marked.alias("__to"), "__by", "__why", "__as")


def marked_appends(rows: Rows, marks: DataFrame) -> Delta:
    """The delta that brings records in for the first time, some of them suppressed at once."""
    changed = {"_key": F.coalesce("__to", "_key"), "_error": F.coalesce("__by", "_error"), "_cause": F.coalesce("__why", "_cause"), STATUS: F.coalesce("__as", STATUS)}
    names = list(map(column, rows.columns))
    return Delta(rows.through(lambda frame: frame.join(F.broadcast(marks), "_key", "left").withColumns(changed).select(*names)), signed=False)


def readmitting(rows: Rows | None, held: Rows) -> Delta:
    """The delta of a source's run with its suppressed records taking part again.

    Args:
        rows: The op rows of the run; None where it has none.
        held: The live rows of the suppressed records.
    """
    back = retractions(held, READMIT).union(insertions(unmarked(held), READMIT))
    return Delta(back, signed=True) if rows is None else Delta.loose(back.union(rows))


def suppressing(rows: Rows | None, admitted: Rows, marks: DataFrame) -> Delta:
    """The delta of a source's run with further records suppressed.

    Args:
        rows: The op rows of the run so far; None where it has none.
        admitted: The live rows of the records that take part or count.
        marks: The records to suppress (`marks_frame`).
    """
    live, engine = admitted.as_frame(), admitted.engine
    taken = live.join(F.broadcast(marks), "_key", "inner")
    names = image_columns(live)
    out = taken.select(F.lit(1).cast("tinyint").alias("_op"), F.col("_key"), F.col("__why").alias("_cause"), *map(column, names))
    overwritten = {"_error": F.col("__by"), STATUS: F.col("__as")}
    held = taken.select(
        F.lit(0).cast("tinyint").alias("_op"), F.col("__to").alias("_key"), F.col("__why").alias("_cause"),
        *(overwritten.get(name, column(name)).alias(name) for name in names),
    )  # fmt: skip
    if rows is None:
        return Delta.loose(Rows(engine, frame=united(out, held)))
    caused = rows.as_frame().join(F.broadcast(marks), "_key", "left").withColumn("_cause", F.coalesce("__why", "_cause"))
    return Delta.loose(Rows(engine, frame=united(out, caused.select(*map(column, out.columns)), held)))
