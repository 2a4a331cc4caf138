"""Suppressed records: rows of a source's changelog that are kept but take no part (docs/architecture.md, "Rollback").

A suppressed record stands under its key and the closing byte of rejects, its `_error` telling what rolled it back. What the files say of
a source, its truth, are the admitted rows, the suppressed ones without that mark, and the records that the source itself rejected.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from changelog.arrow_algebra import consolidated, signed
from changelog.columns import column, image_columns
from changelog.frames import known, told, united
from changelog.keys.decode import arrow_keys, bare_keys
from changelog.lazy_imports import F, pa, pc, pl
from changelog.ops import Op
from changelog.spark_algebra import as_appends, as_retractions
from errata.plan.plan import Node
from errata.plan.retraction_scope import COUNTED
from operators.core.operator import Outcome

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from storage.engines.base import Engine

MARK = '{"by": '
"""What `_error` begins with where a record is suppressed."""

READMIT = "readmit"
REJECTED = b"!"
"""What closes the key of a reject."""


@dataclass(frozen=True, slots=True)
class Suppression:
    """Why a record is suppressed: the text for `_error`, which begins with `MARK`, and the cause of the rows that take it out.

    `counted`: it still counts behind relaxed aggregates.
    """

    error: str
    cause: str
    collateral: bool = False
    counted: bool = False


def is_suppressed() -> Column:
    """Whether a row is a suppressed record."""
    return F.coalesce(F.col("_error").startswith(MARK), F.lit(False))


def counts(source: Node) -> Column:
    """Whether a row of a source is a record that takes part, or at least counts behind relaxed aggregates."""
    admitted = F.col("_error").isNull()
    return admitted | F.col(COUNTED).isNotNull() if COUNTED in source.operator.output.hidden else admitted


def suppressed(rejects: pa.Table) -> pa.Table:
    """Those of the live rejects of a source that are suppressed records."""
    return rejects.filter(pc.starts_with(rejects.column("_error"), MARK))


def unmarked(rows: DataFrame) -> DataFrame:
    """Suppressed records as they would be if they took part."""
    digits = F.hex(F.col("_key"))
    key = F.unhex(F.substring(digits, F.lit(1), F.length(digits) - F.lit(2)))
    none = {name: F.lit(None).cast("string") for name in ("_error", COUNTED) if name in rows.columns}
    return told(rows.withColumns({"_key": key, **none}), known(rows))


def unmarked_arrow(rows: pa.Table) -> pa.Table:
    """The same of rows on the driver."""
    own: dict[str, pa.Array] = {"_key": arrow_keys(bare_keys(pl.Series(rows.column("_key"))))}
    own |= {name: pa.nulls(rows.num_rows, pa.string()) for name in ("_error", COUNTED)}
    return pa.table({name: own.get(name, rows.column(name)) for name in rows.column_names})


def truth(live: DataFrame) -> DataFrame:
    """All records that the files have: a source's live rows, the suppressed ones without their mark."""
    names = live.columns
    kept = live.where(~is_suppressed())
    return united(kept, unmarked(live.where(is_suppressed())).select(*map(column, names)))


def truth_arrow(live: pa.Table) -> pa.Table:
    """The same of rows on the driver."""
    held = pc.fill_null(pc.starts_with(live.column("_error"), MARK), False)
    return pa.concat_tables([live.filter(pc.invert(held)), unmarked_arrow(live.filter(held))])


def marks_frame(marks: Mapping[bytes, Suppression], counting: Collection[bytes], engine: Engine) -> DataFrame:
    """Of the rows of records to be suppressed, by `_key`: `_to`, their new key, `_by` (for `_error`), `_why` (the cause), `_counts` (for `_counted`).

    `counting`: the records that were suppressed already, but counted.
    """
    fates = list({id(one): one for one in marks.values()}.values())  # few are shared by many records, whose keys go to the engine without their texts
    numbers = {id(one): at for at, one in enumerate(fates)}
    keys = {
        "__record": pa.array(marks, pa.binary()), "__counting": pa.array([key in counting for key in marks], pa.bool_()),
        "__fate": pa.array([numbers[id(one)] for one in marks.values()], pa.int32()),
    }  # fmt: skip
    texts = {"_by": [one.error for one in fates], "_why": [one.cause for one in fates], "_counts": ["counted" if one.counted else None for one in fates]}
    told = {name: pa.array(values, pa.string()) for name, values in texts.items()} | {"__fate": pa.array(range(len(fates)), pa.int32())}
    records = engine.from_arrow(pa.table(keys)).join(F.broadcast(engine.from_arrow(pa.table(told))), "__fate")
    marked = F.concat(F.col("__record"), F.lit(REJECTED))
    return records.select(F.when(F.col("__counting"), marked).otherwise(F.col("__record")).alias("_key"), marked.alias("_to"), "_by", "_why", "_counts")


def marked_appends(rows: DataFrame, marks: DataFrame) -> Outcome:
    """Op rows that bring records in for the first time, some of them suppressed at once."""
    joined = rows.join(F.broadcast(marks), "_key", "left")
    changed = {"_key": F.coalesce("_to", "_key"), "_error": F.coalesce("_by", "_error"), "_cause": F.coalesce("_why", "_cause")}
    if COUNTED in rows.columns:
        changed[COUNTED] = F.when(F.col("_by").isNull(), F.col(COUNTED)).otherwise(F.col("_counts"))
    return Outcome(joined.withColumns(changed).select(*map(column, rows.columns)), signed=False)


def readmitting(rows: DataFrame | None, held: DataFrame) -> Outcome:
    """The op rows of a source's run with its suppressed records taking part again; `held` are their live rows."""
    back = united(as_retractions(held, READMIT), as_appends(unmarked(held), READMIT))
    return Outcome(back, signed=True) if rows is None else Outcome.loose(united(back, rows))


def readmitting_arrow(rows: pa.Table | None, held: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same of few rows on the driver, as op rows of a schema."""
    back = [signed(held, Op.RETRACT, READMIT), signed(unmarked_arrow(held), Op.APPEND, READMIT)]
    return consolidated(pa.concat_tables([one.select(schema.names).cast(schema) for one in (*back, *([] if rows is None else [rows]))]))


def suppressing(rows: DataFrame | None, standing: DataFrame, marks: DataFrame) -> Outcome:
    """The op rows of a source's run with further records suppressed: `rows` are those so far, `standing` the records that take part or count."""
    taken = standing.join(F.broadcast(marks), "_key", "inner")
    names = image_columns(standing)
    out = taken.select(F.lit(1).cast("tinyint").alias("_op"), F.col("_key"), F.col("_why").alias("_cause"), *map(column, names))
    told = {"_error": F.col("_by"), COUNTED: F.col("_counts")}
    held = taken.select(
        F.lit(0).cast("tinyint").alias("_op"), F.col("_to").alias("_key"), F.col("_why").alias("_cause"),
        *(told.get(name, column(name)).alias(name) for name in names),
    )  # fmt: skip
    if rows is None:
        return Outcome.loose(united(out, held))
    caused = rows.join(F.broadcast(marks), "_key", "left").withColumn("_cause", F.coalesce("_why", "_cause"))
    return Outcome.loose(united(out, caused.select(*map(column, out.columns)), held))
