"""Exact sums that do not depend on order and can be retracted (DESIGN, "Exact sums").

A double is split into *limbs*, integers at fixed powers of two 32 apart: N(e) = the nearest integer to x / 2**e, and the
limb at e is N(e) - 2**32 * N(e + 32). Every step is exact, a limb has at most 32 bits, and the limbs weigh the same as x. So bigint sums
of limbs times weights are exact for 2**31 rows, in any order, and a row with the opposite weight takes its contribution back. NaN
and the infinities are counted apart.

Use: `contributions` on the rows, `sums` over each group, `carried` before the result is stored or read, then `total`. A group that
is `inexact` then (values outside the layout) is summed again in the layout `FULL` and read by `exact_full.with_total`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from changelog.lazy import F
from changelog.schema import column

if TYPE_CHECKING:
    from pyspark.sql import Column

_BITS: Final = 32
_BASE: Final = 1 << _BITS
_HALF: Final = _BASE >> 1
_INFINITY: Final = float("inf")


@dataclass(frozen=True, slots=True)
class Layout:
    """Which powers of two have a limb: `count` of them, from `top` down in steps of 32."""

    top: int
    count: int

    @property
    def exponents(self) -> tuple[int, ...]:
        """The exponents of the limbs, highest first."""
        return tuple(self.top - _BITS * at for at in range(self.count))

    @property
    def limit(self) -> float:
        """Values of at least this size do not fit; infinity where every finite double fits."""
        bits = self.top + _BITS - 1
        return 2.0**bits if bits < 1023 else _INFINITY


NORMAL: Final = Layout(96, 8)
"""Doubles below 2**127 (1.7e38) whose last binary place is at 2**-128 or above, as all from 2.6e-23 up have."""

FULL: Final = Layout(992, 66)
"""Every finite double."""


@dataclass(frozen=True, slots=True)
class FloatSum:
    """The exact sum of a double column in bigint columns that are named after `prefix`."""

    prefix: str
    layout: Layout = NORMAL

    @property
    def limbs(self) -> tuple[str, ...]:
        """The names of the limb columns, highest first."""
        return tuple(f"{self.prefix}_{at}" for at in range(self.layout.count))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all state columns, each a bigint: limbs, then the counts of NaN, inf, -inf and of values outside the layout."""
        return (*self.limbs, *(f"{self.prefix}_{kind}" for kind in ("nan", "inf", "ninf", "outside")))

    def contributions(self, value: Column, weight: Column) -> list[Column]:
        """What a row with this value and weight, 1 or -1, adds to each state column; nulls add nothing."""
        fits = self._fits(value)
        weighted = F.when(fits, value * weight.cast("double")).otherwise(0.0)
        limbs = [limb.cast("bigint") for limb in _limbs(weighted, self.layout)]
        outside = (F.abs(value) < _INFINITY) & ~fits
        counted = (F.isnan(value), value == _INFINITY, value == -_INFINITY, outside)
        counts = [F.when(condition, weight).otherwise(F.lit(0).cast("bigint")) for condition in counted]
        return [amount.alias(name) for amount, name in zip([*limbs, *counts], self.columns, strict=True)]

    def sums(self) -> list[Column]:
        """The aggregates of contributions, or of states, over a group."""
        return [_total(name) for name in self.columns]

    def carried(self) -> list[Column]:
        """The state columns with the carries of the limbs settled: the one form that a total has. Needed before `total`."""
        return [*_balanced(self.limbs), *map(column, self.columns[self.layout.count :])]

    def inexact(self) -> Column:
        """Whether `total` leaves out values that the layout cannot hold: then sum the group with the layout `FULL`."""
        return column(self.columns[-1]) != 0

    def total(self) -> Column:
        """The double nearest to the exact total of carried state columns, as IEEE addition would treat NaN and the infinities."""
        nan, inf, ninf = (column(name) > 0 for name in self.columns[self.layout.count : -1])
        finite = _nearest([column(name) for name in self.limbs], self.layout)
        return F.when(nan | (inf & ninf), float("nan")).when(inf, _INFINITY).when(ninf, -_INFINITY).otherwise(finite)

    def _fits(self, value: Column) -> Column:
        small = F.abs(value) < self.layout.limit
        if self.layout is FULL:
            return small
        last = value * 2.0 ** -self.layout.exponents[-1]
        return small & (last == F.rint(last))


@dataclass(frozen=True, slots=True)
class IntSum:
    """The exact sum of a bigint column in two bigint columns that are named after `prefix`."""

    prefix: str

    @property
    def columns(self) -> tuple[str, str]:
        """The names of the state columns: the multiples of 2**32, and the rest."""
        return f"{self.prefix}_high", f"{self.prefix}_low"

    def contributions(self, value: Column, weight: Column) -> list[Column]:
        """What a row with this value and weight adds to each state column; nulls add nothing."""
        parts = (F.shiftright(value, _BITS), value.bitwiseAND(F.lit(_BASE - 1)))
        return [F.coalesce(part * weight, F.lit(0).cast("bigint")).alias(name) for part, name in zip(parts, self.columns, strict=True)]

    def sums(self) -> list[Column]:
        """The aggregates of contributions, or of states, over a group."""
        return [_total(name) for name in self.columns]

    def carried(self) -> list[Column]:
        """The state columns with the carry settled: the one form that a total has. Needed before `total` and `overflows`."""
        high, low = map(column, self.columns)
        settled = (high + F.shiftright(low, _BITS), low.bitwiseAND(F.lit(_BASE - 1)))
        return [part.alias(name) for part, name in zip(settled, self.columns, strict=True)]

    def overflows(self) -> Column:
        """Whether the exact total of carried state columns lies outside 64 bits."""
        high = column(self.columns[0])
        return (high < -_HALF) | (high >= _HALF)

    def total(self) -> Column:
        """The total of carried state columns as a bigint; null where it overflows."""
        high, low = map(column, self.columns)
        return F.when(~self.overflows(), F.shiftleft(high, _BITS).bitwiseOR(low))


def _total(name: str) -> Column:
    return F.coalesce(F.sum(column(name)), F.lit(0).cast("bigint")).alias(name)


def _limbs(value: Column, layout: Layout) -> list[Column]:
    """The limbs of a finite double, highest first, as doubles."""
    nearest = [F.rint(_scaled(value, -exponent)) for exponent in layout.exponents]
    rest = [here - above * float(_BASE) for above, here in pairwise(nearest)]
    if layout is FULL:
        rest = [_where_small(value, exponent, limb) for exponent, limb in zip(layout.exponents[1:], rest, strict=True)]
    return [nearest[0], *rest]


def _where_small(value: Column, exponent: int, limb: Column) -> Column:
    """A limb, without scaling up values that are multiples of the next power anyway: that could overflow."""
    bound = exponent + _BITS + 54
    return limb if bound > 1023 else F.when(F.abs(value) < 2.0**bound, limb).otherwise(0.0)


def _scaled(value: Column, exponent: int) -> Column:
    """The value times 2**exponent, in two steps where the factor is no double."""
    if exponent <= 1023:
        return value * 2.0**exponent
    return value * 2.0**1023 * 2.0 ** (exponent - 1023)


def _balanced(names: tuple[str, ...]) -> list[Column]:
    """The limbs brought to -2**31 <= limb < 2**31, all but the highest: then the highest that is not 0 has the sign of the total."""
    settled, carry = [], F.lit(0).cast("bigint")
    for name in reversed(names):
        limb = column(name) + carry
        carry = F.shiftright(limb + _HALF, _BITS)
        settled.append((limb - F.shiftleft(carry, _BITS) if name != names[0] else limb).alias(name))
    return settled[::-1]


def _nearest(limbs: list[Column], layout: Layout) -> Column:
    """The nearest double (ties to even) of balanced limbs: from the highest that is not 0, the next two, and the sign of what follows."""
    zero, carry = F.lit(0).cast("bigint"), F.shiftright(limbs[0] + _HALF, _BITS)
    limbs = [carry, limbs[0] - F.shiftleft(carry, _BITS), *limbs[1:]]
    padded, signs, result = [*limbs, zero, zero], _tail_signs(limbs), F.lit(0.0)
    for at, exponent in reversed(list(enumerate((layout.top + _BITS, *layout.exponents)))):
        first, second, third = padded[at : at + 3]
        rounded = _rounded(first, second, third, signs[at]) * 2.0 ** (exponent - 2 * _BITS - 2)
        result = F.when(limbs[at] != 0, rounded).otherwise(result)
    return result


def _rounded(first: Column, second: Column, third: Column, sign: Column) -> Column:
    """(first * 2**64 + second * 2**32 + third) * 4 + sign, rounded once: two doubles that are exact are added.

    The sign stands for all lower limbs: they are less than one unit of `third`, so they decide ties and nothing else.
    """
    high = F.shiftleft(first, 21) + F.shiftright(second, 11)
    low = F.shiftleft(second.bitwiseAND(F.lit(2047)), 34) + F.shiftleft(third, 2) + sign
    return high.cast("double") * 2.0**45 + low.cast("double")


def _tail_signs(limbs: list[Column]) -> list[Column]:
    """For each limb the sign of what lies more than two places behind it."""
    sign = F.lit(0).cast("bigint")
    signs = [sign, sign, sign]
    for limb in reversed(limbs[3:]):
        sign = F.when(limb > 0, 1).when(limb < 0, -1).otherwise(sign).cast("bigint")
        signs.append(sign)
    return signs[::-1]
