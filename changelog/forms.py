"""A changelog in the forms that other systems read (ODF, "Representing changes in streams"; CONTRACT, `errata log`).

`two` and `flink` keep all four operations, `retract` knows appends and retractions only, `upsert` has no before-images,
`single` and `debezium` give one event a change. Events stand in changelog order: epoch, then key, then op; in `retract` all
retractions of an epoch come before its appends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from changelog.algebra import pair
from changelog.envelopes import PAIRED, PLAIN, Form, known, op_names
from changelog.lazy import F, Window
from changelog.ops import Op, is_negative, is_positive
from changelog.schema import CAUSE, EPOCH, KEY, OP, column, data_columns

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import Column, DataFrame

SYSTEM: Final = ("epoch", "offset", "op", "op_code", "key", "cause")
"""What an event says besides its images."""


def changelog_stream(op_rows: DataFrame, form: str = "two", *, hidden: Collection[str] = ()) -> DataFrame:
    """The events of stored op rows, sorted by `offset`, which is dense from 0 over the rows given.

    Out: `epoch, offset, op, op_code, key` (hexadecimal), `cause`, and `data`, or `before` and `after` in the paired forms: structs
    of the data columns, null where there is no such image. `hidden` names columns that are not data. Raises ValueError for an
    unknown form.
    """
    name = known(form)
    rows = op_rows.select(EPOCH, OP, KEY, CAUSE, *map(column, data_columns(op_rows, hidden)))
    events = _paired_events(rows) if name in PAIRED else _row_events(rows, name)
    late = [is_positive(F.col("_code"))] if name == "retract" else []
    whole = Window.partitionBy(F.lit(0)).orderBy(EPOCH, *late, KEY, "_code")
    numbered = events.withColumn("offset", F.row_number().over(whole).cast("bigint") - 1)
    payload = ("before", "after") if name in PAIRED else ("data",)
    return numbered.select(*_envelope(name), *payload).orderBy("offset")


def flat(events: DataFrame) -> DataFrame:
    """Events for csv and Parquet: the data columns themselves, and `old_<column>` for what an event took back.

    In: what `changelog_stream` gives. An event without `after` has its values in the `old_` columns alone; where a data column has
    the name of a system column, the system column's gets a leading underscore.
    """
    paired = "after" in events.columns
    names = events.select(f"{'after' if paired else 'data'}.*").columns
    system = [F.col(name).alias(f"_{name}" if name in names else name) for name in SYSTEM]
    new = [F.col("after" if paired else "data").getField(name).alias(name) for name in names]
    old = [F.col("before").getField(name).alias(f"old_{name}") for name in names] if paired else []
    return events.select(*system, *new, *old)


def _row_events(rows: DataFrame, form: Form) -> DataFrame:
    op = F.col(OP)
    kept = rows.where(op != int(Op.CORRECT_FROM)) if form == "upsert" else rows
    code = _plain(op) if form in PLAIN else op
    return kept.select(EPOCH, KEY, CAUSE, code.alias("_code"), F.struct(*map(column, data_columns(rows))).alias("data"))


def _paired_events(rows: DataFrame) -> DataFrame:
    old, new = F.col("_old"), F.col("_new")
    code = F.when(old.isNull(), int(Op.APPEND)).when(new.isNull(), int(Op.RETRACT)).otherwise(int(Op.CORRECT_TO))
    return pair(rows).select(EPOCH, KEY, CAUSE, code.alias("_code"), old.alias("before"), new.alias("after"))


def _plain(op: Column) -> Column:
    return F.when(is_negative(op), int(Op.RETRACT)).otherwise(int(Op.APPEND))


def _envelope(form: Form) -> list[Column]:
    code = F.col("_code")
    op = F.coalesce(*(F.when(code == int(op), name) for op, name in op_names(form).items()))
    values = (F.col(EPOCH), F.col("offset"), op, code.cast("int"), F.lower(F.hex(KEY)), F.col(CAUSE))
    return [value.alias(name) for value, name in zip(values, SYSTEM, strict=True)]
