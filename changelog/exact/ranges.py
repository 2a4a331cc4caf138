"""Value ranges of double columns, found in one cheap pass. They make exact sums cheaper (`changelog.exact.sums`, `changelog.exact.windows`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from changelog.columns import column
from changelog.lazy_imports import F

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import Column, DataFrame

_PLACES: Final = 53
_LOWEST: Final = -1074
"""Exponent of the smallest double."""


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The range of a column's values: each finite value is an integer times 2**least, and smaller than 2**most.

    `finite` says whether all values are finite; `rows` is the number of rows.
    """

    least: int
    most: int
    finite: bool
    rows: int


def value_ranges(frame: DataFrame, names: Sequence[str]) -> dict[str, ValueRange]:
    """Return the value ranges of columns of a frame. Reads the frame once, and not at all for no columns."""
    if not names:
        return {}
    found = frame.agg(F.count(F.lit(1)).alias("rows"), *(one for name in names for one in _facts(name))).collect()[0].asDict()
    return {name: _value_range(found, name) for name in names}


def _facts(name: str) -> Iterator[Column]:
    size = F.abs(column(name))
    finite = size < float("inf")  # NaN is not less
    yield F.max(F.when(finite, size)).alias(f"most:{name}")
    yield F.min(F.when(finite & (size > 0.0), size)).alias(f"least:{name}")
    yield F.count(F.when(~finite, 1)).alias(f"odd:{name}")


def _value_range(found: dict[str, Any], name: str) -> ValueRange:
    most, least = found[f"most:{name}"] or 0.0, found[f"least:{name}"] or 1.0
    lowest = max(math.frexp(least)[1] - _PLACES, _LOWEST)
    return ValueRange(lowest, math.frexp(most)[1], found[f"odd:{name}"] == 0, found["rows"])
