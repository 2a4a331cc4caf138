"""The algebra of op rows: fold, consolidation, difference. The rows may be on the driver or in an engine; the result is the same.

Rows that are all on the driver stay there (`changelog.arrow_algebra`). For others an engine gets a plan (`changelog.spark_algebra`).
"""

from __future__ import annotations

from changelog import arrow_algebra, spark_algebra
from changelog.ops import Op
from changelog.rows import Rows


def fold(op_rows: Rows) -> Rows:
    """The live rows of a changelog: `_epoch`, `_key` and the image of each key that was not taken back after it came."""
    if op_rows.are_here:
        return Rows(op_rows.engine, arrow_algebra.fold(op_rows.as_table()))
    return Rows(op_rows.engine, frame=spark_algebra.fold(op_rows.as_frame()))


def latest(states: Rows) -> Rows:
    """The row of each key's last epoch, without `_epoch`."""
    return states.each(arrow_algebra.latest, spark_algebra.latest)


def insertions(live_rows: Rows, cause: str) -> Rows:
    """The delta that brings live rows in."""
    return _signed(live_rows, Op.APPEND, cause)


def retractions(live_rows: Rows, cause: str) -> Rows:
    """The delta that takes live rows back."""
    return _signed(live_rows, Op.RETRACT, cause)


def _signed(live_rows: Rows, op: Op, cause: str) -> Rows:
    engine, table, frame = live_rows.engine, live_rows.table, live_rows.frame
    here = None if table is None else arrow_algebra.signed(table, op, cause)
    return Rows(engine, here, None if frame is None else spark_algebra.signed(frame, op, cause))


def consolidate(delta: Rows) -> Rows:
    """The net change of each key, at most one row of each sign. `_epoch` is dropped.

    Equal images of opposite sign cancel. What is left becomes `-C` and `+C` where both signs are left, else `-R` or `+A`.
    Both rows of a correction have the cause of the row that comes in. Of several causes of one image, the first in text order wins.
    """
    if delta.are_here:
        return Rows(delta.engine, arrow_algebra.consolidate(delta.as_table()))
    return Rows(delta.engine, frame=spark_algebra.consolidate(delta.as_frame()))


def repair(delta: Rows) -> Rows:
    """`consolidate` for a delta with at most one row of each sign a key: what a row-wise map or filter makes of a consolidated one. An engine needs a third of the time."""
    if delta.are_here:
        return Rows(delta.engine, arrow_algebra.consolidate(delta.as_table()))
    return Rows(delta.engine, frame=spark_algebra.repair(delta.as_frame()))


def replacement(old_live: Rows, new_live: Rows, cause: str) -> Rows:
    """The delta that takes some live rows back and brings others in. `consolidate` makes of it what `diff` gives."""
    if old_live.frame is not None and new_live.frame is not None and old_live.table is None and new_live.table is None:
        return Rows(new_live.engine, frame=spark_algebra.changed(old_live.frame, new_live.frame, cause))
    return insertions(new_live, cause).union(retractions(old_live, cause))


def diff(old_live: Rows, new_live: Rows, cause: str) -> Rows:
    """The consolidated delta from some live rows to others: `+A`, `-R`, or `-C` and `+C`, by `_key`."""
    if old_live.are_here and new_live.are_here:
        return consolidate(replacement(old_live, new_live, cause))
    return Rows(new_live.engine, frame=spark_algebra.diff(old_live.as_frame(), new_live.as_frame(), cause))
