"""Which rows of a combine a delta can change (DESIGN section 4: affected keys).

A build row leads by its equality keys, or by the interval that it must meet, to the rows that it can match, from step to step back to the
driver. A step without either leads to all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from changelog.columns import column
from changelog.frames import united
from changelog.lazy_imports import F
from changelog.ops import is_positive
from cxl import spark
from cxl.typed import tree
from operators.combine.join_plan import Band, Step
from operators.combine.matching import RIGHT, Predicate, Side, join_keys, key_names
from operators.combine.range_join import in_buckets
from operators.core.operator import OperatorContext, among

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


Touched = list[tuple["Step", "DataFrame"]]


@dataclass(frozen=True, slots=True)
class Affected:
    """What this run's deltas can change of a combine.

    `drivers`: the live rows of the driver that they touch: `_key`, what rides along, the fields by qualifier. `lookups`: the `_lookup` values,
    distinct, of these rows and of those that went. `stood`: those of them under which something may have stood, None where there are none.
    """

    drivers: DataFrame
    lookups: DataFrame
    stood: DataFrame | None


def affected(around: OperatorContext, predicate: Predicate, context: spark.Context, riding: Sequence[str]) -> Affected | None:
    """What is to be computed anew; None: everything. `riding`: the columns that ride along with the driver."""
    leads: dict[str, Touched] = {}
    for step in reversed(predicate.chain.steps):
        side = predicate.sides[step.build]
        rows = [*_changed(around, side), *_led(around, side, leads.get(step.build, []), context)]
        if not rows:
            continue
        if step.parent is None:
            return None
        leads.setdefault(step.parent, []).append((step, around.settled(_leading(rows, step, side, context))))
    driver = predicate.sides[predicate.chain.driver]
    led = _led(around, driver, leads.get(driver.qualifier, []), context, riding)
    others = [change.select(side.lookup().alias("_lookup")) for side in predicate.sides.values() if side is not driver for change in _changed(around, side)]
    return _of_drivers(around, driver, [around.settled(united(*led))] if led else [], others, riding)


def _of_drivers(around: OperatorContext, driver: Side, led: Sequence[DataFrame], others: Sequence[DataFrame], riding: Sequence[str]) -> Affected:
    """What is affected by the driver's own delta, by rows of builds that lead to drivers, and by rows of builds that fail (`others`: `_lookup`)."""
    lookup = driver.lookup().alias("_lookup")
    known = [*(rows.select(lookup) for rows in led), *others]
    delta = around.delta(driver.number)
    if delta is None:
        lookups = around.settled(united(*known).distinct())
        return Affected(united(*led).dropDuplicates(["_key"]), lookups, lookups)
    came = _columns(delta.frame.where(is_positive(F.col("_op"))), driver, riding)
    rows = [came, *(frame.join(delta.frame.select("_key"), "_key", "left_anti").dropDuplicates(["_key"]) for frame in led)]
    own = delta.frame.select(lookup)
    before = [own, *known] if delta.signed else known  # under the key of a record that is new nothing stood
    stood = around.settled(united(*before).distinct()) if before else None
    return Affected(united(*rows), around.settled(united(own, *known).distinct()), stood)


def _columns(rows: DataFrame, side: Side, riding: Sequence[str] = (), *more: str) -> DataFrame:
    return rows.select(*more, "_key", *map(column, riding), *side.qualified())


def _changed(around: OperatorContext, side: Side) -> list[DataFrame]:
    """The rows of an input that changed, as they were and as they are."""
    delta = around.delta(side.number)
    return [] if delta is None else [_columns(delta.frame, side)]


def _led(around: OperatorContext, side: Side, leads: Touched, context: spark.Context, riding: Sequence[str] = ()) -> list[DataFrame]:
    """The live rows of an input that touched rows of later steps match."""
    def matching(step: Step, touched: DataFrame) -> DataFrame:
        if step.band is not None:
            return _meeting(_columns(around.live_input(side.number), side, riding), touched, step.band, context)
        keys = _keys([left for left, _ in step.parent_keys()], context)
        names = key_names(len(keys), RIGHT)
        return around.live_input(side.number, lambda rows: among(touched, *names)(_columns(rows, side, riding, "_epoch").select("*", *keys)).drop(*names))

    return [matching(step, touched) for step, touched in leads]


def _leading(rows: Sequence[DataFrame], step: Step, side: Side, context: spark.Context) -> DataFrame:
    """What leads from touched rows of a build to those that they can match: join keys, or the fields that intervals are made of."""
    if step.band is not None:
        return united(*(frame.select(*map(column, side.names)) for frame in rows))
    keys = united(*(frame.select(*_keys([right for _, right in step.parent_keys()], context)) for frame in rows))
    return keys.where(F.col(f"{RIGHT}0").isNotNull()).distinct()


def _meeting(live: DataFrame, touched: DataFrame, band: Band, context: spark.Context) -> DataFrame:
    """The rows whose interval meets one of those that were touched, ends counted in."""
    ends = [spark.column(field, context)[0] for field in (*band.left, *band.right)]
    holds = (ends[0] <= ends[3]) & (ends[2] <= ends[1])
    met = in_buckets(live, touched, band, lambda field: spark.column(field, context)[0], holds=holds, how="inner", key="_key")
    return met.select(*map(column, live.columns)).dropDuplicates(["_key"])


def _keys(expressions: Sequence[tree.Expr], context: spark.Context) -> list[Column]:
    """Join keys under the names of the build's side."""
    values = join_keys([(spark.column(expr, context)[0], expr.type) for expr in expressions])
    return [value.alias(name) for name, value in zip(key_names(len(values), RIGHT), values, strict=True)]
