"""The rows of a combine that a delta can change.

A build row leads to the rows that it can match: by its equality keys, or by the interval that it must meet. This goes from step to step back
to the driver. A step without equality keys and interval leads to all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from changelog.columns import column
from changelog.frames import united
from changelog.lazy_imports import F
from changelog.ops import is_positive
from changelog.rows import Rows
from cxl import spark
from cxl.typed.rewrite import shape
from operators.combine.join_plan import Band, Part, Step
from operators.combine.matching import RIGHT, Predicate, Side, join_keys, key_names
from operators.combine.range_join import in_buckets
from operators.core.context import OperatorContext
from operators.core.operator import among

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


AffectedRows = list[tuple["Step", "DataFrame"]]


@dataclass(frozen=True, slots=True)
class Affected:
    """Rows of a combine that this run's deltas can change.

    Attributes:
        drivers: The affected live rows of the driver: `_key`, hidden columns, the fields by qualifier.
        lookups: The distinct `_lookup` of these rows and of removed ones.
        prior: The lookups that may have prior rows; None where none has.
    """

    drivers: DataFrame
    lookups: Rows
    prior: Rows | None


def affected(
    context: OperatorContext, predicate: Predicate, scope: spark.Context, riding: Sequence[str], require_few: Callable[[OperatorContext, Rows], None]
) -> Affected | None:
    """The rows to compute again; None where these are all rows.

    Args:
        context: The deltas and live rows of the inputs.
        predicate: The joins of the combine.
        scope: Where CXL reads system variables.
        riding: The hidden columns of the driver.
        require_few: Raises `Outgrown` for the drivers that builds lead to, where these are many.
    """
    leads: dict[str, AffectedRows] = {}
    for step in reversed(predicate.chain.steps):
        side = predicate.sides[step.build]
        rows = [*_changed(context, side), *_led(context, side, leads.get(step.build, []), scope)]
        if not rows:
            continue
        if step.parent is None:
            return None
        leads.setdefault(step.parent, []).append((step, context.materialized(_leading(rows, step, side, scope)).as_frame()))
    driver = predicate.sides[predicate.chain.driver]
    led = _led(context, driver, leads.get(driver.qualifier, []), scope, riding)
    others = [change.select(side.lookup().alias("_lookup")) for side in predicate.sides.values() if side is not driver for change in _changed(context, side)]
    if not led:
        return _of_drivers(context, driver, [], others, riding)
    delta = context.delta(driver.number)
    stayed = led if delta is None else [rows.join(delta.frame.select("_key"), "_key", "left_anti") for rows in led]  # new drivers are computed anyway
    drivers = context.materialized(united(*stayed))
    require_few(context, drivers)
    return _of_drivers(context, driver, [drivers.as_frame()], others, riding)


def _of_drivers(context: OperatorContext, driver: Side, led: Sequence[DataFrame], others: Sequence[DataFrame], riding: Sequence[str]) -> Affected:
    """Keys that the driver's own delta affects, and the rows of builds.

    Args:
        led: Rows of the driver, unchanged themselves, that changed rows of builds match.
        others: `_lookup` of changed rows of builds, which may be rejects.
    """
    lookup = driver.lookup().alias("_lookup")
    known = [*(rows.select(lookup) for rows in led), *others]
    delta = context.delta(driver.number)
    if delta is None:
        lookups = context.materialized(united(*known).distinct())
        return Affected(united(*led).dropDuplicates(["_key"]), lookups, lookups)
    came = _columns(delta.frame.where(is_positive(F.col("_op"))), driver, riding)
    rows = [came, *(frame.dropDuplicates(["_key"]) for frame in led)]
    own = delta.frame.select(lookup)
    before = [own, *known] if delta.signed else known  # a new record has no prior rows
    prior = context.materialized(united(*before).distinct()) if before else None
    return Affected(united(*rows), context.materialized(united(own, *known).distinct()), prior)


def _columns(rows: DataFrame, side: Side, riding: Sequence[str] = (), *more: str) -> DataFrame:
    return rows.select(*more, "_key", *map(column, riding), *side.qualified())


def _changed(context: OperatorContext, side: Side) -> list[DataFrame]:
    """The rows of an input that changed, as they were and as they are."""
    delta = context.delta(side.number)
    return [] if delta is None else [_columns(delta.frame, side)]


def _led(context: OperatorContext, side: Side, leads: AffectedRows, scope: spark.Context, riding: Sequence[str] = ()) -> list[DataFrame]:
    """The live rows of an input that affected rows of later steps match. Steps that are joined by the same keys share one pass over them."""

    def meeting(step: Step, affected_rows: DataFrame) -> DataFrame:
        assert step.band is not None  # other steps have keys
        return _meeting(_columns(context.live_input(side.number), side, riding), affected_rows, step.band, scope)

    def matching(parts: Sequence[Part], affected_rows: Sequence[DataFrame]) -> DataFrame:
        keys, wanted = _keys(parts, scope), united(*affected_rows)
        chosen = among(wanted if len(affected_rows) == 1 else wanted.distinct(), *key_names(len(keys), RIGHT))
        return context.live_input(side.number, lambda rows: chosen(_columns(rows, side, riding, "_epoch").select("*", *keys)).drop(*key_names(len(keys), RIGHT)))

    alike: dict[Any, tuple[list[Part], list[DataFrame]]] = {}
    for step, affected_rows in leads:
        if step.band is None:
            parts = [left for left, _ in step.parent_keys()]
            alike.setdefault(tuple((shape(part.expr), part.by_value) for part in parts), (parts, []))[1].append(affected_rows)
    return [*(matching(*one) for one in alike.values()), *(meeting(*lead) for lead in leads if lead[0].band is not None)]


def _leading(rows: Sequence[DataFrame], step: Step, side: Side, scope: spark.Context) -> DataFrame:
    """Join keys of affected rows of a build, or the fields that their intervals are made of."""
    if step.band is not None:
        return united(*(frame.select(*map(column, side.names)) for frame in rows))
    keys = united(*(frame.select(*_keys([right for _, right in step.parent_keys()], scope)) for frame in rows))
    return keys.where(F.col(f"{RIGHT}0").isNotNull()).distinct()


def _meeting(live: DataFrame, affected_rows: DataFrame, band: Band, scope: spark.Context) -> DataFrame:
    """The rows whose interval meets that of an affected row, ends included."""
    ends = [spark.column(field, scope)[0] for field in (*band.left, *band.right)]
    holds = (ends[0] <= ends[3]) & (ends[2] <= ends[1])
    met = in_buckets(live, affected_rows, band, lambda field: spark.column(field, scope)[0], holds=holds, how="inner", key="_key")
    return met.select(*map(column, live.columns)).dropDuplicates(["_key"])


def _keys(parts: Sequence[Part], scope: spark.Context) -> list[Column]:
    """Join keys under the names of the build's side."""
    values = join_keys([(spark.column(part.expr, scope)[0], part) for part in parts])
    return [value.alias(name) for name, value in zip(key_names(len(values), RIGHT), values, strict=True)]
