"""Deliveries of a keyed source as events, and the net change that they make of each key (ledger, changelog, upsert).

A frame of events has `_key`, the columns that the source stores, `_order` and `_row` (where the event stands) and two
booleans: `_stays`, whether the event leaves its row standing, and `_wrong`, the detail of a reject if nothing stands before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from changelog.columns import column
from changelog.equality import alike, fingerprint, parts
from changelog.lazy_imports import F, Window
from operators.source.row_layout import REJECT_TAG

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

_REJECT: Final = 4
_OLD: Final = "_ev_old"


def net_changes(events: DataFrame, stood: DataFrame | None, names: Sequence[str], compared: Sequence[str], *, first_wins: bool = False) -> DataFrame:
    """The op rows, `_op _key` and `names`, that events make of what stood; reads `events` once.

    In: events; `stood` with `_key` and `names`, None where nothing stands. Per key the last event decides, with
    `first_wins` the first, and then only where nothing stood. A row that differs in none of `compared` is no change.
    """
    by_key = Window.partitionBy("_key").orderBy(*_places(first_wins))
    told = events.withColumns({"_before": F.lag("_stays").over(by_key), "_final": F.lead("_stays").over(by_key).isNull()})
    told = told.where(F.col("_final") | F.col("_wrong").isNotNull()).withColumn("_print", fingerprint(told, compared))
    joined = told.withColumns({"_known": F.lit(False), "_same": F.lit(False)}) if stood is None else _beside(told, stood, names, compared)
    code = joined.withColumn("_code", F.explode(F.array_compact(F.array(*_codes(first_wins)))))
    return code.select(_op().alias("_op"), _key().alias("_key"), *(_value(name, has_old=stood is not None).alias(name) for name in names))


def _places(first_wins: bool) -> list[Column]:
    places = [F.col("_order"), F.col("_row")]
    return [place.desc() for place in places] if first_wins else places


def _beside(told: DataFrame, stood: DataFrame, names: Sequence[str], compared: Sequence[str]) -> DataFrame:
    """The events with the row that stood of their key."""
    old = stood.select("_key", F.struct(*map(column, names)).alias(_OLD), fingerprint(stood, compared).alias("_old_print"))
    same = alike(F.col("_old_print"), F.col("_print"), len(parts(stood, compared)))
    return told.join(old, "_key", "left").withColumns({"_known": F.col(_OLD).isNotNull(), "_same": same})


def _codes(first_wins: bool) -> list[Column]:
    """The ops that an event leads to, as codes; null for those that it does not."""
    final, stays, known = F.col("_final"), F.col("_stays"), F.col("_known")
    if first_wins:
        return [F.when(final & ~known, 0)]
    corrected = final & stays & known & ~F.col("_same")
    stood_before = F.coalesce(F.col("_before"), known)
    return [
        F.when(final & stays & ~known, 0),
        F.when(final & ~stays & known, 1),
        F.when(corrected, 2),
        F.when(corrected, 3),
        F.when(F.col("_wrong").isNotNull() & ~stood_before, _REJECT),
    ]


def _op() -> Column:
    return F.when(F.col("_code") == _REJECT, 0).otherwise(F.col("_code")).cast("tinyint")


def _key() -> Column:
    return F.when(F.col("_code") == _REJECT, place_key()).otherwise(F.col("_key"))


def place_key() -> Column:
    """The key of a rejected record."""
    from changelog.keys.spark import row_label_column

    return F.concat(F.lit(REJECT_TAG), F.col("_file").cast("binary"), F.lit(b"\x00"), row_label_column(F.col("_row")), F.lit(b"!"))


def _value(name: str, *, has_old: bool) -> Column:
    """A stored column: of the old row where that is taken back, else of the event."""
    new = F.when(F.col("_code") == _REJECT, F.col("_wrong")).otherwise(F.col("_error")) if name == "_error" else column(name)
    return F.when(F.col("_code").isin(1, 2), F.col(_OLD).getField(name)).otherwise(new) if has_old else new
