"""Suppressed records: rows of a source's changelog that are kept but take no part (docs/architecture.md, "Rollback").

A suppressed record stands under its key and the closing byte of rejects, its `_error` telling what rolled it back. What the files say of
a source, its truth, are the admitted rows, the suppressed ones without that mark, and the records that the source itself rejected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from changelog.algebra import as_appends, as_retractions
from changelog.frames import united
from changelog.lazy import F
from changelog.schema import column, image_columns
from operators.base import Outcome
from operators.evaluation import reject_key

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from storage.engines import Engine

MARK = '{"by": '
"""What `_error` begins with where a record is suppressed."""

READMIT = "readmit"


@dataclass(frozen=True, slots=True)
class Suppression:
    """Why a record is suppressed: the text for `_error`, which begins with `MARK`, and the cause of the rows that take it out."""

    error: str
    cause: str
    collateral: bool = False


def is_suppressed() -> Column:
    """Whether a row is a suppressed record."""
    return F.coalesce(F.col("_error").startswith(MARK), F.lit(False))


def suppressed(rejects: pa.Table) -> pa.Table:
    """Those of the live rejects of a source that are suppressed records."""
    import pyarrow.compute as pc

    return rejects.filter(pc.starts_with(rejects.column("_error"), MARK))


def unmarked(rows: DataFrame) -> DataFrame:
    """Suppressed records as they would be if they took part."""
    digits = F.hex(F.col("_key"))
    key = F.unhex(F.substring(digits, F.lit(1), F.length(digits) - F.lit(2)))
    return rows.withColumns({"_key": key, "_error": F.lit(None).cast("string")})


def truth(live: DataFrame) -> DataFrame:
    """All records that the files have: a source's live rows, the suppressed ones without their mark."""
    names = live.columns
    kept = live.where(~is_suppressed())
    return united(kept, unmarked(live.where(is_suppressed())).select(*map(column, names)))


def marks_frame(marks: Mapping[bytes, Suppression], engine: Engine) -> DataFrame:
    """`_key`, `_by` (the text for `_error`) and `_why` (the cause) of the records to be suppressed."""
    import pyarrow as pa

    entries = list(marks.items())
    columns = {"_by": [one.error for _, one in entries], "_why": [one.cause for _, one in entries]}
    keys = pa.array([key for key, _ in entries], pa.binary())
    return engine.from_arrow(pa.table({"_key": keys, **{name: pa.array(texts, pa.string()) for name, texts in columns.items()}}))


def marked_appends(rows: DataFrame, marks: DataFrame) -> Outcome:
    """Op rows that bring records in for the first time, some of them suppressed at once."""
    joined = rows.join(F.broadcast(marks), "_key", "left")
    out = F.col("_by").isNotNull()
    changed = {
        "_key": F.when(out, reject_key()).otherwise(F.col("_key")),
        "_error": F.coalesce("_by", "_error"), "_cause": F.coalesce("_why", "_cause"),
    }  # fmt: skip
    return Outcome(joined.withColumns(changed).select(*map(column, rows.columns)), signed=False)


def readmitting(rows: DataFrame | None, held: DataFrame) -> Outcome:
    """The op rows of a source's run with its suppressed records taking part again; `held` are their live rows."""
    back = united(as_retractions(held, READMIT), as_appends(unmarked(held), READMIT))
    return Outcome(back, signed=True) if rows is None else Outcome.loose(united(back, rows))


def suppressing(rows: DataFrame | None, admitted: DataFrame, marks: DataFrame) -> Outcome:
    """The op rows of a source's run with further records suppressed: `rows` are those so far, `admitted` the records that take part."""
    taken = admitted.join(F.broadcast(marks), "_key", "inner")
    names = image_columns(admitted)
    envelope = [F.lit(1).cast("tinyint").alias("_op"), F.col("_key"), F.col("_why").alias("_cause")]
    out = taken.select(*envelope, *map(column, names))
    held = taken.select(
        F.lit(0).cast("tinyint").alias("_op"), reject_key().alias("_key"), F.col("_why").alias("_cause"),
        *(F.col("_by").alias("_error") if name == "_error" else column(name) for name in names),
    )  # fmt: skip
    if rows is None:
        return Outcome(united(out, held), signed=True)
    told = rows.join(F.broadcast(marks), "_key", "left").withColumn("_cause", F.coalesce("_why", "_cause"))
    return Outcome.loose(united(out, told.select(*map(column, out.columns)), held))
