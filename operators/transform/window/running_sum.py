"""Running sums in Python, exact and rounded once at each row: for values that limbs do not hold and for dynamic ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from cxl.functions.aggregate import exact_sum, mean_scale, nearest, nearest_decimal, quotient, total
from cxl.values.decimals import mixed, scale_of
from cxl.values.failure import CxlFailure


@dataclass(slots=True)
class RunningSum:
    """The sum of the values so far. Values are numbers or None; what is neither raises CxlFailure. `scale`: the greatest one of Decimals."""

    exact: Fraction = field(default_factory=Fraction)
    special: set[float] = field(default_factory=set)
    count: int = 0
    floats: bool = False
    scale: int | None = None

    def add(self, value: Any) -> None:
        """Count a value in."""
        if total([value]) is None:
            return
        self.count += 1
        self.floats = self.floats or isinstance(value, float)
        if isinstance(value, Decimal):
            self.scale = max(self.scale or 0, scale_of(value))
        if math.isfinite(value):
            self.exact += Fraction(value)
        else:
            self.special.add(value)

    def value(self, *, mean: bool) -> Any:
        """The sum, an int while all values are, or the mean; None where there is no value. Raises CxlFailure beyond 64 bits, and for Decimals with Floats."""
        if not self.count:
            return None
        if self.scale is not None:
            return self._decimal(self.scale, mean=mean)
        if self.special:
            return exact_sum(self.special)
        if mean:
            return quotient(self.exact, Fraction(self.count))
        return nearest(self.exact) if self.floats else total([int(self.exact)])

    def _decimal(self, scale: int, *, mean: bool) -> Decimal:
        if self.floats:
            raise mixed()
        return nearest_decimal(self.exact / self.count, mean_scale(scale)) if mean else nearest_decimal(self.exact, scale)


def running_sums(values: Iterable[Any], *, mean: bool) -> Iterator[tuple[Any, str | None]]:
    """For each value the sum up to it, and what failed."""
    so_far = RunningSum()
    for value in values:
        so_far.add(value)
        try:
            yield so_far.value(mean=mean), None
        except CxlFailure as failure:
            yield None, failure.message
