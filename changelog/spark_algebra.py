"""Fold, consolidate, negate, pair and diff: the algebra of deltas (DESIGN, "A changelog row").

A key has at most one live row, so a valid delta takes back at most one image of a key and brings in at most one.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from changelog.columns import CAUSE, EPOCH, KEY, OP, column, image_columns
from changelog.equality import agree, parts, whole
from changelog.frames import among, chosen, known, united, with_envelope, with_schema, without
from changelog.lazy_imports import F, Window
from changelog.ops import Op, is_negative, is_positive, only_appends, weight

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from pyspark.sql import Column, DataFrame

_OLD, _NEW = "__old", "__new"
WEIGHT, NET = "__weight", "__net"
"""The columns of `uncancelled`: the weight of a row, and the sum of equal ones."""


def fold(
    op_rows: DataFrame, at: int | None = None, *,
    has_negatives: bool = True, taken: DataFrame | None = None, narrow: Callable[[DataFrame], DataFrame] = lambda rows: rows,
) -> DataFrame:  # fmt: skip
    """Return the live rows: `_epoch`, `_key` and image. A positive row is live unless a later epoch takes its key back.

    Args:
        op_rows: Stored op rows: `_epoch`, `_op`, `_key`, `_cause` and image.
        at: The epoch after which rows are live; by default the last one.
        has_negatives: False skips the join, where nothing was ever retracted.
        taken: The retracted keys (`_key`, `_epoch`), where they were read separately.
        narrow: Chooses and shapes rows by their content. The others are not folded.
    """
    rows = op_rows if at is None else op_rows.where(F.col(EPOCH) <= at)
    standing = narrow(chosen(rows.where(is_positive(F.col(OP))), [name for name in rows.columns if name not in (OP, CAUSE)]))
    if not has_negatives:
        return standing
    negatives = rows.where(is_negative(F.col(OP))) if taken is None else taken
    dead = negatives.groupBy(F.col(KEY).alias("__taken")).agg(F.max(EPOCH).alias("__dead"))
    return with_schema(standing.join(dead, (F.col(KEY) == F.col("__taken")) & (F.col("__dead") > F.col(EPOCH)), "left_anti"), known(standing))


def latest(states: DataFrame) -> DataFrame:
    """The row of each key's last epoch, without `_epoch`."""
    rank = F.row_number().over(Window.partitionBy(KEY).orderBy(F.col(EPOCH).desc()))
    names = [name for name in states.columns if name != EPOCH]
    last = states.withColumn("__rank", rank).where(F.col("__rank") == 1)
    return with_schema(last.select(*map(column, names)), among(known(states), names))


def as_appends(live_rows: DataFrame, cause: str) -> DataFrame:
    """A delta that brings every row of a live frame in."""
    return signed(live_rows, Op.APPEND, cause)


def as_retractions(live_rows: DataFrame, cause: str) -> DataFrame:
    """A delta that takes every row of a live frame back."""
    return signed(live_rows, Op.RETRACT, cause)


def signed(live_rows: DataFrame, op: Op, cause: str) -> DataFrame:
    """Live rows as op rows of one kind."""
    names = image_columns(live_rows)
    envelope = [_code(op).alias(OP), F.col(KEY), F.lit(cause).alias(CAUSE)]
    return with_schema(live_rows.select(*envelope, *map(column, names)), with_envelope(among(known(live_rows), names), OP, KEY, CAUSE))


def negate(delta: DataFrame) -> DataFrame:
    """The inverse delta: what came in is taken back and the other way round. Applying both changes nothing."""
    inverse = ((Op.APPEND, Op.RETRACT), (Op.RETRACT, Op.APPEND), (Op.CORRECT_FROM, Op.CORRECT_TO), (Op.CORRECT_TO, Op.CORRECT_FROM))
    return delta.withColumn(OP, F.coalesce(*(F.when(F.col(OP) == int(op), _code(other)) for op, other in inverse)))


def consolidate(delta: DataFrame, ops: Collection[Op] | None = None, compare: Sequence[str] | None = None) -> DataFrame:
    """The net change of each key, with at most one row of each sign; `_epoch`, where there is one, is dropped.

    Equal images of opposite sign cancel, what is left becomes `-C`/`+C` where both signs are left and `-R` or `+A` where one is.
    Both rows of a correction have the cause of the row brought in; of several causes of one image, the first in text order wins.

    Args:
        delta: Op rows.
        ops: The operations that the delta may hold, if known. Appends alone are returned unchanged, without a shuffle.
        compare: Columns that count. A correction that shows in none of them vanishes too.
    """
    return delta.drop(EPOCH) if only_appends(ops) else repair(_cancelled(delta), compare=compare)


def _cancelled(delta: DataFrame) -> DataFrame:
    """Images grouped within their key, without those whose signs add up to nothing, as `+A` and `-R` rows."""
    names, sign = image_columns(delta), F.col(WEIGHT)
    causes = (F.min(F.when(sign < 0, F.col(CAUSE))).alias("__went"), F.min(F.when(sign > 0, F.col(CAUSE))).alias("__came"))
    left, images = uncancelled(delta, names, weight(F.col(OP)), [CAUSE], causes)
    came = F.col(NET) > 0
    op = F.when(came, _code(Op.APPEND)).otherwise(_code(Op.RETRACT)).alias(OP)
    net_rows = left.select(op, KEY, F.when(came, F.col("__came")).otherwise(F.col("__went")).alias(CAUSE), *images)
    return with_schema(net_rows, with_envelope(among(known(delta), names), OP, KEY, CAUSE))


def uncancelled(rows: DataFrame, names: Sequence[str], weights: Column, beside: Sequence[str] = (), told: Sequence[Column] = ()) -> tuple[DataFrame, list[Column]]:
    """Group equal rows of each key, and keep those whose weights do not cancel. Returns a frame of `_key`, `NET` and the aggregates `told`, and the columns `names` in it.

    Args:
        rows: The rows, each with `_key`.
        names: The columns in which rows differ or are equal.
        weights: The weight of each row.
        beside: Further columns that `told` reads.
        told: Aggregates of equal rows, which may read their `WEIGHT`.
    """
    split = [part.alias(f"__part{at}") for at, part in enumerate(parts(rows, names))]
    pieces = [f"__part{at}" for at in range(len(split))]
    weighted = rows.select(KEY, *beside, weights.alias(WEIGHT), *split)
    left = weighted.groupBy(KEY, *pieces).agg(F.sum(WEIGHT).alias(NET), *told).where(F.col(NET) != 0)
    return left, whole(rows, names, pieces)


def _op(positive: Column, both: Column) -> Column:
    came = F.when(both, _code(Op.CORRECT_TO)).otherwise(_code(Op.APPEND))
    return F.when(positive, came).otherwise(F.when(both, _code(Op.CORRECT_FROM)).otherwise(_code(Op.RETRACT)))


def _code(op: Op) -> Column:
    return F.lit(int(op)).cast("tinyint")


def pair(delta: DataFrame) -> DataFrame:
    """One row a key, the images taken back and brought in as structs: `_key`, `_cause`, `__old`, `__new`, and `_epoch` where there is one.

    In: a delta with at most one row of each sign a key (and epoch). A struct is null where there is no such row. The cause is
    that of the row brought in, else of the row taken back. Reads `delta` twice, each row once.
    """
    keys, names = [name for name in (EPOCH, KEY) if name in delta.columns], image_columns(delta)
    met = _joined(*_halves(delta), keys, names)
    images = (F.when(column(side), F.struct(*(_of_side(side, name).alias(name) for name in names))).alias(side) for side in (_OLD, _NEW))
    return met.select(*keys, CAUSE, *images)


def repair(delta: DataFrame, ops: Collection[Op] | None = None, compare: Sequence[str] | None = None) -> DataFrame:
    """`consolidate` for a delta with at most one row of each sign a key, as a row-wise map or filter of a consolidated one gives.

    A hash join instead of sorts; it reads `delta` twice, each row once. Arguments and result as in `consolidate`.
    """
    if only_appends(ops):
        return delta.drop(EPOCH)
    return _net(*_halves(without(delta, EPOCH)), image_columns(delta), compare)


def changed(old_live: DataFrame, new_live: DataFrame, cause: str) -> DataFrame:
    """Retractions of every row of a live frame, and insertions of every row of another: `consolidate` makes the result of `diff` out of them."""
    names = _both(old_live, new_live)
    return united(as_retractions(_widened(old_live, new_live, names, cause), cause), as_appends(_widened(new_live, old_live, names, cause), cause))


def diff(old_live: DataFrame, new_live: DataFrame, cause: str, compare: Sequence[str] | None = None) -> DataFrame:
    """The delta that turns one live frame into another: `+A`, `-R`, or `-C` and `+C`, by `_key`; nothing where the images agree.

    `compare` names the columns whose change counts (default: the whole image). A column that one side lacks is null there.
    """
    names = _both(old_live, new_live)
    return _net(_widened(old_live, new_live, names, cause), _widened(new_live, old_live, names, cause), names, compare)


def _net(old: DataFrame, new: DataFrame, names: Sequence[str], compare: Sequence[str] | None) -> DataFrame:
    """The op rows from one side to the other, each of `_key`, `_cause` and the image `names`."""
    was, came, both = column(_OLD), F.col("__came"), column(_OLD).isNotNull() & column(_NEW).isNotNull()
    before, now = (parts(frame, names if compare is None else compare, partial(_of_side, side)) for frame, side in ((old, _OLD), (new, _NEW)))
    changed = _joined(old, new, [KEY], names).where(~(both & agree(before, now)))
    sides = changed.withColumn("__came", F.explode(F.array(F.lit(False), F.lit(True))))
    there = sides.where(F.when(came, column(_NEW)).otherwise(was))
    image = [F.when(came, _of_side(_NEW, name)).otherwise(_of_side(_OLD, name)).alias(name) for name in names]
    return with_schema(there.select(_op(came, both).alias(OP), KEY, CAUSE, *image), with_envelope(among(known(new), names), OP, KEY, CAUSE))


def _both(old_live: DataFrame, new_live: DataFrame) -> list[str]:
    """Return the image columns of two live frames, the new frame's first."""
    return [*image_columns(new_live), *(name for name in image_columns(old_live) if name not in new_live.columns)]


def undone(live_rows: DataFrame, delta: DataFrame) -> DataFrame:
    """The live rows before a delta that is counted in already: `_key` and image. In: `_key` and image, the delta as `consolidate` gives it."""
    names = [KEY, *image_columns(live_rows)]
    gone, came = _halves(delta)
    return united(chosen(live_rows.join(came.select(KEY), KEY, "left_anti"), names), chosen(gone, names))


def _halves(delta: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return the rows that a delta retracts, and the rows that it brings in."""
    return delta.where(is_negative(F.col(OP))), delta.where(is_positive(F.col(OP)))


def _joined(old: DataFrame, new: DataFrame, keys: Sequence[str], names: Sequence[str]) -> DataFrame:
    """`keys`, `_cause`, and both images, each column under its name behind that of its side. The name of a side alone is a column that is true where the side has a row, else null.

    Engines take much longer to join and to explode structs than columns.
    """
    sides = [
        frame.select(*keys, F.col(CAUSE).alias(f"{side}:{CAUSE}"), F.lit(True).alias(side), *(column(name).alias(f"{side}:{name}") for name in names))
        for frame, side in ((old, _OLD), (new, _NEW))
    ]
    joined = sides[0].join(sides[1], list(keys), "full")
    return joined.withColumn(CAUSE, F.coalesce(_of_side(_NEW, CAUSE), _of_side(_OLD, CAUSE)))


def _of_side(side: str, name: str) -> Column:
    """A column of one of two joined images."""
    return column(f"{side}:{name}")


def _widened(frame: DataFrame, other: DataFrame, names: Sequence[str], cause: str) -> DataFrame:
    """Return `_key`, `_cause` and the columns `names` of a frame, with nulls in columns that only `other` has."""
    types = {field.name: field for field in (*other.schema.fields, *frame.schema.fields)}
    values = [column(name) if name in frame.columns else F.lit(None).cast(types[name].dataType).alias(name) for name in names]
    return with_schema(frame.select(KEY, F.lit(cause).alias(CAUSE), *values), with_envelope([types[name] for name in names], KEY, CAUSE))
