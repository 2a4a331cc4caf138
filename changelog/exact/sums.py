"""Exact sums that do not depend on the order of rows and can be retracted.

A double is split into *limbs*, integers at fixed powers of two, 32 apart. With N(e) the integer nearest to x / 2**e, the limb at e is
N(e) - 2**32 * N(e + 32). Every step is exact, a limb has at most 32 bits, and the limbs together weigh the same as x. So bigint sums of limbs times
weights are exact for 2**31 rows, in any order, and a row with the opposite weight retracts its contribution. NaN and infinities are counted apart.

Use: add up `contributions` of the rows over each group, then apply `carried` before the state is stored or read, then `rounding.with_totals`.
A group that is `inexact` has values outside the layout, and needs another way of summing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from changelog.columns import column
from changelog.lazy_imports import F

if TYPE_CHECKING:
    from pyspark.sql import Column

    from changelog.exact.ranges import ValueRange

_BITS: Final = 32
_BASE: Final = 1 << _BITS
_HALF: Final = _BASE >> 1
_INFINITY: Final = float("inf")


EXPONENTS: Final = tuple(range(96, -129, -_BITS))
"""Exponents of the limbs, highest first."""
LIMIT: Final = 2.0**127
"""Doubles below this (1.7e38) fit if their last binary place is at 2**-128 or above. All doubles from 2.6e-23 up have it there."""


@dataclass(frozen=True, slots=True)
class FloatSum:
    """The exact sum of a double column, in bigint columns whose names begin with `prefix`.

    `tested` is false where all values are known to fit the layout.
    """

    prefix: str
    tested: bool = True

    @property
    def limbs(self) -> tuple[str, ...]:
        """Names of the limb columns, highest first."""
        return tuple(f"{self.prefix}_{at}" for at in range(len(EXPONENTS)))

    @property
    def special(self) -> tuple[str, str, str]:
        """Names of the columns that count NaN, inf and -inf."""
        return f"{self.prefix}_nan", f"{self.prefix}_inf", f"{self.prefix}_ninf"

    @property
    def value(self) -> str:
        """Name of the column for the total (`rounding.with_totals`)."""
        return f"{self.prefix}_total"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all state columns, each a bigint: limbs, then the counts of NaN, inf, -inf and values outside the layout."""
        return (*self.limbs, *self.special, f"{self.prefix}_outside")

    def contributions(self, value: Column, weight: Column) -> list[Column]:
        """Return what a row with this value and weight (1 or -1) adds to each state column. Nulls add nothing."""
        fits = self._fits(value) if self.tested else value.isNotNull()
        weighted = F.when(fits, value * weight.cast("double")).otherwise(0.0)
        limbs = [limb.cast("bigint") for limb in _limbs(weighted)]
        outside = (F.abs(value) < _INFINITY) & ~fits
        counted = (F.isnan(value), value == _INFINITY, value == -_INFINITY, outside)
        counts = [F.when(condition, weight).otherwise(F.lit(0).cast("bigint")) for condition in counted]
        return [amount.alias(name) for amount, name in zip([*limbs, *counts], self.columns, strict=True)]

    def unused(self, values: ValueRange) -> frozenset[str]:
        """Return the state columns to which no value in a range adds anything."""
        if values.most >= EXPONENTS[0] + _BITS or values.least < EXPONENTS[-1]:
            return frozenset()
        limbs = zip(EXPONENTS, self.limbs, strict=True)
        return frozenset({*self.columns[len(self.limbs) :], *(name for exponent, name in limbs if not values.least - _BITS < exponent <= values.most)})

    def sums(self) -> list[Column]:
        """Return the aggregates of contributions, or of states, over a group."""
        return [_total(name) for name in self.columns]

    def carried(self) -> list[Column]:
        """Return the state columns with settled carries: the only form of a total. Needed before `total`."""
        return [*_balanced(self.limbs), *map(column, self.columns[len(self.limbs) :])]

    def inexact(self) -> Column:
        """Return whether the total leaves out values outside the layout."""
        return column(self.columns[-1]) != 0

    def total(self) -> Column:
        """Return the double nearest to the exact total, which `rounding.with_totals` adds."""
        return column(self.value)

    def _fits(self, value: Column) -> Column:
        last = value * 2.0 ** -EXPONENTS[-1]
        return (F.abs(value) < LIMIT) & (last == F.rint(last))


@dataclass(frozen=True, slots=True)
class IntSum:
    """The exact sum of a bigint column, in two bigint columns whose names begin with `prefix`."""

    prefix: str

    @property
    def columns(self) -> tuple[str, str]:
        """Names of the state columns: the multiples of 2**32, and the rest."""
        return f"{self.prefix}_high", f"{self.prefix}_low"

    def contributions(self, value: Column, weight: Column) -> list[Column]:
        """Return what a row with this value and weight adds to each state column. Nulls add nothing."""
        parts = (F.shiftright(value, _BITS), value.bitwiseAND(F.lit(_BASE - 1)))
        return [F.coalesce(part * weight, F.lit(0).cast("bigint")).alias(name) for part, name in zip(parts, self.columns, strict=True)]

    def sums(self) -> list[Column]:
        """Return the aggregates of contributions, or of states, over a group."""
        return [_total(name) for name in self.columns]

    def carried(self) -> list[Column]:
        """Return the state columns with a settled carry: the only form of a total. Needed before `total` and `overflows`."""
        high, low = map(column, self.columns)
        settled = (high + F.shiftright(low, _BITS), low.bitwiseAND(F.lit(_BASE - 1)))
        return [part.alias(name) for part, name in zip(settled, self.columns, strict=True)]

    def overflows(self) -> Column:
        """Return whether the exact total of carried state columns exceeds 64 bits."""
        high = column(self.columns[0])
        return (high < -_HALF) | (high >= _HALF)

    def total(self) -> Column:
        """Return the total of carried state columns as a bigint, null where it overflows."""
        high, low = map(column, self.columns)
        return F.when(~self.overflows(), F.shiftleft(high, _BITS).bitwiseOR(low))


def _total(name: str) -> Column:
    return F.coalesce(F.sum(column(name)), F.lit(0).cast("bigint")).alias(name)


def _limbs(value: Column) -> list[Column]:
    """Return the limbs of a finite double, highest first, as doubles."""
    nearest = [F.rint(value * 2.0**-exponent) for exponent in EXPONENTS]
    return [nearest[0], *(here - above * float(_BASE) for above, here in pairwise(nearest))]


def _balanced(names: tuple[str, ...]) -> list[Column]:
    """Return the limbs with -2**31 <= limb < 2**31, except the highest. Then the highest limb that is not 0 has the sign of the total."""
    settled, carry = [], F.lit(0).cast("bigint")
    for name in reversed(names):
        limb = column(name) + carry
        carry = F.shiftright(limb + _HALF, _BITS)
        settled.append((limb - F.shiftleft(carry, _BITS) if name != names[0] else limb).alias(name))
    return settled[::-1]
