"""The least and the greatest value of a group, by functions of the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from changelog.lazy_imports import F

if TYPE_CHECKING:
    from pyspark.sql import Column


_INFINITY = float("inf")


def least_value(value: Column, *, floats: bool) -> Column:
    """The least value; NaN is greater than every number, which engines do not agree on; of the zeros, which are equal, it is the one without a sign.

    Sail starts at the greatest finite float, so infinities are found by themselves.
    """
    if not floats:
        return F.min(value)
    return F.coalesce(F.min(F.when(value < _INFINITY, value + F.lit(0.0))), _given(value == _INFINITY, _INFINITY), _given(F.isnan(value), float("nan")))


def greatest_value(value: Column, *, floats: bool) -> Column:
    """The greatest value, by the same rules."""
    if not floats:
        return F.max(value)
    return F.coalesce(_given(F.isnan(value), float("nan")), F.max(F.when(value > -_INFINITY, value + F.lit(0.0))), _given(value == -_INFINITY, -_INFINITY))


def _given(condition: Column, found: float) -> Column:
    """A value for a group that has it, else null: counted, as Sail takes eight times as long for the greatest of bools."""
    return F.when(F.count(F.when(condition, 1)) > 0, F.lit(found))
