"""Sums and averages take numbers only: a record with another value is rejected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from changelog.columns import column
from changelog.frames import any_of, united
from changelog.lazy_imports import F
from cxl.typed.tree import AggregateUse, WindowUse
from operators.core.evaluate import Evaluated, rejects

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


_SUMS = frozenset({"sum", "cumulative_sum", "avg", "weighted_avg"})


def doubtful(calls: Sequence[AggregateUse | WindowUse]) -> tuple[str, ...]:
    """The columns that sums and averages add up and whose types do not tell that they hold numbers."""
    sums = [use for use in calls if use.function.name in _SUMS]
    return tuple(dict.fromkeys(name for use in sums for name, arg in zip(use.columns, use.args, strict=False) if arg.type.is_dynamic))


def numbers_only(done: Evaluated, calls: Sequence[AggregateUse | WindowUse], frame: DataFrame, stage: str) -> Evaluated:
    """Return evaluated arguments without the records that have no number in a sum; these become rejects."""
    wrong = _not_numbers(doubtful(calls))
    if wrong is None:
        return done
    bad = rejects(done.good.where(wrong), "aggregate_type_error", F.lit("type mismatch: expected a number"), stage)
    bad = bad.select(*(column(name) for name in frame.columns if name != "_error"), "_error")
    return Evaluated(done.good.where(~wrong), bad if done.bad is None else united(done.bad, bad))


def _not_numbers(names: Sequence[str]) -> Column | None:
    tests = [F.coalesce(F.substring(column(name), 1, 1).isin('"', "t", "f", "[", "{"), F.lit(False)) for name in names]
    return any_of(tests) if tests else None
