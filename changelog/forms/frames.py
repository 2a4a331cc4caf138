"""Changelogs in the stream forms that other systems read (docs/reference/changelog-streams.md), as DataFrames.

`two` and `flink` have all four operations. `retract` has only appends and retractions, and `upsert` has no before-images. `single` and `debezium`
have one event per change. Events are in changelog order: by epoch, key and op. In `retract`, all retractions of an epoch come before its appends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from changelog.columns import CAUSE, EPOCH, KEY, OP, column, data_columns
from changelog.forms.names import LETTERED, PAIRED, PLAIN, Form, known, op_names
from changelog.lazy_imports import F, Window
from changelog.ops import Op, is_negative, is_positive
from changelog.spark_algebra import pair

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from pyspark.sql import Column, DataFrame

SYSTEM: Final = ("epoch", "offset", "op", "op_code", "key", "cause")
"""Columns of an event other than its images."""
_ORIGIN: Final = "_errata_origin"


@dataclass(frozen=True, slots=True)
class Origin:
    """The pipeline and node of op rows, the offset of the first row, and a frame of `_epoch` and `ts_ms`, its commit time."""

    pipeline: str
    node: str
    first: Callable[[], int]
    moments: Callable[[], DataFrame]


def originating(op_rows: DataFrame, origin: Origin) -> DataFrame:
    """Return the op rows with their origin. Frames made from them lose it."""
    vars(op_rows)[_ORIGIN] = origin
    return op_rows


def changelog_stream(op_rows: DataFrame, form: str = "two", *, hidden: Collection[str] = ()) -> DataFrame:
    """Return the events of stored op rows, sorted by `offset`, which has no gaps. It counts from 0, or from the first row of a known origin.

    Columns are `epoch`, `offset`, `op`, `op_code`, `key` (hexadecimal) and `cause`. Paired forms add `before` and `after`, other forms `data`: structs of the
    data columns, null where there is no image. The form `debezium` of op rows with an origin also has `ts_ms` and `source` (pipeline, node, epoch,
    offset); that offset is the one of the last op row of the event.

    Args:
        op_rows: The op rows.
        form: Name of the stream form. Raises ValueError for an unknown name.
        hidden: Columns that are not data.
    """
    name = known(form)
    names = data_columns(op_rows, hidden)
    origin: Origin | None = vars(op_rows).get(_ORIGIN)
    start = 0 if origin is None else origin.first()
    whole = Window.partitionBy(F.lit(0)).orderBy(*_order(name))
    numbered = _events(op_rows, name, names).withColumn("offset", F.row_number().over(whole).cast("bigint") + (start - 1))
    payload = ("before", "after") if name in PAIRED else (F.struct(*map(column, names)).alias("data"),)
    if origin is None or name != "debezium":
        return numbered.select(*_envelope(name), *payload).orderBy("offset")
    rows = F.sum(F.when(F.col("__code") == int(Op.CORRECT_TO), 2).otherwise(1)).over(whole.rowsBetween(Window.unboundedPreceding, Window.currentRow)) + (start - 1)
    members = {"pipeline": F.lit(origin.pipeline), "node": F.lit(origin.node), "epoch": F.col(EPOCH), "offset": rows.cast("bigint")}
    placed = numbered.withColumn("source", F.struct(*(value.alias(member) for member, value in members.items())))
    return placed.join(origin.moments(), EPOCH, "left").select(*_envelope(name), *payload, "ts_ms", "source").orderBy("offset")


def flat_stream(op_rows: DataFrame, form: str = "two", *, hidden: Collection[str] = ()) -> DataFrame:
    """Return the same events in the same order for files and tables: `_op`, the data columns, and `old_<column>` for retracted values.

    `_op` is a code, or the letters of a form with its own names. An event without `after` has values only in the `old_` columns. Events have no
    offsets, so an engine need not bring them all into one partition. Raises ValueError for an unknown form.
    """
    name = known(form)
    names = data_columns(op_rows, hidden)
    code = F.col("__code")
    op = _lettered(code, name) if name in LETTERED else code.cast("int")
    images = [("after", ""), ("before", "old_")] if name in PAIRED else []
    paired = [F.col(image).getField(name).alias(prefix + name) for image, prefix in images for name in names]
    return _events(op_rows, name, names).orderBy(*_order(name)).select(op.alias(OP), *(paired or map(column, names)))


def _events(op_rows: DataFrame, form: Form, names: Sequence[str]) -> DataFrame:
    """Return one row per event: `_epoch`, `_key`, `_cause`, `__code`, and the columns `names`; `before` and `after` in paired forms."""
    rows = op_rows.select(EPOCH, OP, KEY, CAUSE, *map(column, names))
    return _paired_events(rows) if form in PAIRED else _row_events(rows, form).select(EPOCH, KEY, CAUSE, "__code", *map(column, names))


def _order(form: Form) -> list[str | Column]:
    """Return the sort order of the events of a form."""
    late = [is_positive(F.col("__code"))] if form == "retract" else []
    return [EPOCH, *late, KEY, "__code"]


def _row_events(rows: DataFrame, form: Form) -> DataFrame:
    op = F.col(OP)
    shown = rows.where(op != int(Op.CORRECT_FROM)) if form == "upsert" else rows
    return shown.withColumn("__code", _plain(op) if form in PLAIN else op)


def _paired_events(rows: DataFrame) -> DataFrame:
    old, new = F.col("__old"), F.col("__new")
    code = F.when(old.isNull(), int(Op.APPEND)).when(new.isNull(), int(Op.RETRACT)).otherwise(int(Op.CORRECT_TO))
    return pair(rows).select(EPOCH, KEY, CAUSE, code.alias("__code"), old.alias("before"), new.alias("after"))


def _plain(op: Column) -> Column:
    return F.when(is_negative(op), int(Op.RETRACT)).otherwise(int(Op.APPEND))


def _envelope(form: Form) -> list[Column]:
    code = F.col("__code")
    values = (F.col(EPOCH), F.col("offset"), _lettered(code, form), code.cast("int"), F.lower(F.hex(KEY)), F.col(CAUSE))
    return [value.alias(name) for value, name in zip(values, SYSTEM, strict=True)]


def _lettered(code: Column, form: Form) -> Column:
    return F.coalesce(*(F.when(code == int(op), name) for op, name in op_names(form).items()))
