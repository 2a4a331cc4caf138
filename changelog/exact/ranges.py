"""How far the values of columns of doubles reach: what one cheap pass tells of all of them makes exact sums cheaper (`changelog.exact.sums`, `changelog.exact.windows`)."""

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
"""The exponent of the least double there is."""


@dataclass(frozen=True, slots=True)
class Extent:
    """What is known of the values of a column: each finite one is an integer times 2**least, and smaller than 2**most.

    `finite`: whether there are no others. `rows`: how many rows there are.
    """

    least: int
    most: int
    finite: bool
    rows: int


def extents(frame: DataFrame, names: Sequence[str]) -> dict[str, Extent]:
    """The extents of columns of a frame, which is read once; of no columns without reading."""
    if not names:
        return {}
    found = frame.agg(F.count(F.lit(1)).alias("rows"), *(one for name in names for one in _facts(name))).collect()[0].asDict()
    return {name: _extent(found, name) for name in names}


def _facts(name: str) -> Iterator[Column]:
    size = F.abs(column(name))
    finite = size < float("inf")  # NaN is not less
    yield F.max(F.when(finite, size)).alias(f"most:{name}")
    yield F.min(F.when(finite & (size > 0.0), size)).alias(f"least:{name}")
    yield F.count(F.when(~finite, 1)).alias(f"odd:{name}")


def _extent(found: dict[str, Any], name: str) -> Extent:
    most, least = found[f"most:{name}"] or 0.0, found[f"least:{name}"] or 1.0
    lowest = max(math.frexp(least)[1] - _PLACES, _LOWEST)
    return Extent(lowest, math.frexp(most)[1], found[f"odd:{name}"] == 0, found["rows"])
