"""Which rows of a combine a delta can change (DESIGN section 4: affected keys).

A build row leads by its equality keys, or by the interval that it must meet, to the rows that it can match, from step to step back to the
driver. A step without either leads to all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from changelog.lazy import F
from changelog.schema import column
from cxl import spark, typed
from operators.combine_match import RIGHT, Predicate, Side, join_keys, key_names
from operators.combine_ranges import in_buckets

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from operators.base import Surroundings
    from operators.combine_chain import Band, Step

Touched = list[tuple["Step", "DataFrame"]]


def affected(around: Surroundings, predicate: Predicate, context: spark.Context) -> DataFrame | None:
    """The `_lookup` values, distinct, of the rows that this run's deltas can change; None: all."""
    leads: dict[str, Touched] = {}
    for step in reversed(predicate.chain.steps):
        side = predicate.sides[step.build]
        rows = _touched_rows(around, side, leads.get(step.build, []), context)
        if not rows:
            continue
        if step.parent is None:
            return None
        leads.setdefault(step.parent, []).append((step, _leading(rows, step, side, context)))
    driver = predicate.sides[predicate.chain.driver]
    found = [frame.select(driver.lookup().alias("_lookup")) for frame in _touched_rows(around, driver, leads.get(driver.qualifier, []), context)]
    builds = [side for name, side in predicate.sides.items() if name != driver.qualifier]
    found += [delta.frame.select(side.lookup().alias("_lookup")) for side in builds if (delta := around.delta(side.number)) is not None]
    return _union(found).distinct()


def _touched_rows(around: Surroundings, side: Side, leads: Touched, context: spark.Context) -> list[DataFrame]:
    """Rows of an input that changed, and live ones that a touched row of a later step matches by its keys."""
    delta = around.delta(side.number)
    rows = [] if delta is None else [delta.frame.select("_key", *side.qualified())]
    for step, keys in leads:
        live = around.live_input(side.number).select("_key", *side.qualified())
        if step.band is not None:
            rows.append(_meeting(live, keys, step.band, context))
            continue
        keyed = live.select("*", *_keys([left for left, _ in step.parent_keys()], context))
        rows.append(keyed.join(keys, keys.columns, "left_semi").drop(*keys.columns))
    return rows


def _leading(rows: Sequence[DataFrame], step: Step, side: Side, context: spark.Context) -> DataFrame:
    """What leads from touched rows of a build to those that they can match: join keys, or the fields that intervals are made of."""
    if step.band is not None:
        return _union([frame.select(*map(column, side.names)) for frame in rows])
    keys = _union([frame.select(*_keys([right for _, right in step.parent_keys()], context)) for frame in rows])
    return keys.where(F.col(f"{RIGHT}0").isNotNull()).distinct()


def _meeting(live: DataFrame, touched: DataFrame, band: Band, context: spark.Context) -> DataFrame:
    """The rows whose interval meets one of those that were touched, ends counted in."""
    ends = [spark.column(field, context)[0] for field in (*band.left, *band.right)]
    holds = (ends[0] <= ends[3]) & (ends[2] <= ends[1])
    met = in_buckets(live, touched, band, lambda field: spark.column(field, context)[0], holds=holds, how="inner", key="_key")
    return met.select(*map(column, live.columns)).dropDuplicates(["_key"])


def _keys(expressions: Sequence[typed.Expr], context: spark.Context) -> list[Column]:
    """Join keys under the names of the build's side."""
    values = join_keys([(spark.column(expr, context)[0], expr.type) for expr in expressions])
    return [value.alias(name) for name, value in zip(key_names(len(values), RIGHT), values, strict=True)]


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda left, right: left.unionByName(right), frames)
