"""Exact sums of doubles over window frames, each rounded once: what `changelog.exact.sums` is for groups, in fewer columns.

An engine adds up each column of a window row by row, so a sum must not have many. The largest value of a partition decides a unit, a power
of two, in which every value is an integer of at most 108 bits, cut into three parts of 36. The sums of the parts are exact, and a result is
the double nearest to what they come to. A value that is no such integer (one with places below 2**-55 of the largest) is told by `outside`.

Where it is known how far all values reach (`changelog.exact.ranges`), a unit that all partitions share and two parts mostly do, and nothing is outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from changelog.columns import column
from changelog.exact.quotients import divided_in_layers, in_two
from changelog.exact.ranges import Extent
from changelog.lazy_imports import F

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.window import WindowSpec

_BITS: Final = 36
_BASE: Final = 1 << _BITS
_MOST_ROWS: Final = 1 << 26
"""Parts have 36 bits and a sign, so the sums of as many keep within 63."""
_LEAST: Final = -1000
"""The least exponent of a unit: the factors to units and back are doubles with all their places."""
_INFINITY: Final = float("inf")
_PARTS: Final = ("high", "middle", "low")
_SUM_BITS: Final = 62
"""What a sum of parts may have, a carry left over."""


def shared_unit(extent: Extent) -> int | None:
    """The exponent of a unit in which all values of a column are integers of which two parts hold every sum; None where there is none."""
    bits = extent.most - extent.least
    known = extent.finite and extent.least >= _LEAST and extent.rows <= _MOST_ROWS
    return extent.least if known and bits <= _BITS + _SUM_BITS - extent.rows.bit_length() else None


@dataclass(frozen=True, slots=True)
class WindowSum:
    """The sum, or the `mean`, of a column of doubles over `rows`, the frame of each row; `whole` is the same window with whole partitions as frames.

    The result is the column `name`, null over no values. Other columns that it makes have this name as a prefix. `unit`: the `shared_unit` of the column.
    """

    name: str
    value: str
    rows: WindowSpec
    whole: WindowSpec
    mean: bool = False
    unit: int | None = None

    @property
    def outside(self) -> Column:
        """Whether a row's value is not in the sums, or its partition has too many rows, so that results are not exact."""
        return self._of("outside") if self.unit is None else F.lit(False)

    def layers(self) -> Iterator[Mapping[str, Column]]:
        """The columns to add to the rows, layer by layer: each layer reads those before it."""
        if self.unit is None:
            yield from self._parts()
            yield self._added(_PARTS, odd=F.sum(self._of("odd")).over(self.rows))
            yield from self._carried()
            if self.mean:
                yield from self._quotient()
            total = F.when(self._of("odd") == 0.0, self._exact(*(_power(half(self._of("unit"), F.lit(0))) for half in (F.least, F.greatest)))).otherwise(self._of("odd"))
        else:
            yield from self._halves(self.unit)
            yield self._added(("middle", "low"), high=F.lit(0).cast("bigint"))
            yield from self._carried()
            if self.mean:
                yield from self._quotient()
            total = self._exact(*(F.lit(2.0 ** half(self.unit, 0)) for half in (min, max)))
        yield {self.name: F.when(self._of("low").isNotNull(), total)}

    def _of(self, part: str) -> Column:
        return column(self._of_name(part))

    def _of_name(self, part: str) -> str:
        return f"{self.name}_{part}"

    def _named(self, **columns: Column) -> Mapping[str, Column]:
        return {f"{self.name}_{part}": made for part, made in columns.items()}

    def _parts(self) -> Iterator[Mapping[str, Column]]:
        """Each value's parts, doubles that are integers, and what it is if it is not finite (else 0)."""
        value = column(self.value)
        finite = F.abs(value) < _INFINITY
        largest = F.max(F.when(finite, F.abs(value))).over(self.whole)
        yield self._named(unit=_unit(largest), crowd=F.count(F.lit(1)).over(self.whole))
        scaled = F.when(finite, value * _power(-self._of("unit"))).when(value.isNotNull(), 0.0)
        yield self._named(low=scaled, scaled=scaled, odd=F.when(finite | value.isNull(), 0.0).otherwise(value))
        for part, weight in (("high", float(_BASE**2)), ("middle", float(_BASE))):
            yield self._named(**{part: F.rint(self._of("low") / weight)})
            yield self._named(low=self._of("low") - self._of(part) * weight)
        uneven = (self._of("low") != F.rint(self._of("low"))) | (finite & (value != 0.0) & (self._of("scaled") == 0.0))
        yield self._named(outside=F.coalesce(uneven, F.lit(False)) | (self._of("crowd") > _MOST_ROWS))

    def _halves(self, unit: int) -> Iterator[Mapping[str, Column]]:
        """The two parts of each value in a unit that all share."""
        yield self._named(scaled=column(self.value) * 2.0**-unit)
        yield self._named(middle=F.rint(self._of("scaled") / float(_BASE)))
        yield self._named(low=self._of("scaled") - self._of("middle") * float(_BASE))

    def _added(self, parts: Sequence[str], **others: Column) -> Mapping[str, Column]:
        return self._named(**{part: F.sum(self._of(part).cast("bigint")).over(self.rows) for part in parts}, **others, **self._counted())

    def _counted(self) -> dict[str, Column]:
        return {"count": F.count(column(self.value)).over(self.rows)} if self.mean else {}

    def _carried(self) -> Iterator[Mapping[str, Column]]:
        """The parts brought to -2**35 <= part < 2**35, all but the highest."""
        for part, above in (("low", "middle"), ("middle", "high")):
            carry = F.shiftright(self._of(part) + (_BASE >> 1), _BITS)
            yield self._named(**{part: self._of(part) - F.shiftleft(carry, _BITS), above: self._of(above) + carry})

    def _exact(self, small: Column, large: Column) -> Column:
        """The sum of finite values, or their mean, where one of two factors to the unit is 1: a large one comes last, since a mean may be finite whose sum is not."""
        return (self._of("quotient") if self.mean else _nearest(*map(self._of, _PARTS))) * small * large

    def _quotient(self) -> Iterator[Mapping[str, Column]]:
        """The mean in the unit, rounded once."""
        high, middle, low = map(self._of, _PARTS)
        rest = F.shiftleft(high.bitwiseAND(F.lit(2047)), _BITS) + middle
        yield self._named(above=F.shiftright(high, 11).cast("double") * 2.0 ** (2 * _BITS + 11), below=rest.cast("double") * 2.0**_BITS)
        found, lost = in_two(self._of("above"), self._of("below"))
        yield self._named(sum=found, lost=lost + low.cast("double"))
        count = self._of("count")
        yield from divided_in_layers(self._of_name("quotient"), *in_two(self._of("sum"), self._of("lost")), F.when(count != 0, count).cast("double"))


def _unit(largest: Column) -> Column:
    """The exponent of the unit of values up to this one: such values have less than 2**107 of them, the logarithm's error counted in."""
    return F.when(largest > 0.0, F.greatest(F.ceil(F.log2(largest)) + 2 - 3 * _BITS, F.lit(_LEAST))).otherwise(F.lit(_LEAST)).cast("int")


def _power(exponent: Column) -> Column:
    """A power of two."""
    return F.pow(F.lit(2.0), exponent.cast("double"))


def _nearest(high: Column, middle: Column, low: Column) -> Column:
    """The nearest double (ties to even) of high * 2**72 + middle * 2**36 + low: two doubles that are exact are added, so it is rounded once.

    Where `high` is large, `low` decides ties and nothing else, so its sign stands for it.
    """
    upper = F.shiftleft(high, _BITS) + middle
    small = F.shiftright(upper, 10).cast("double") * 2.0 ** (_BITS + 10) + (F.shiftleft(upper.bitwiseAND(F.lit(1023)), _BITS) + low).cast("double")
    rest = F.shiftleft(F.shiftleft(high.bitwiseAND(F.lit(2047)), _BITS) + middle, 2) + F.signum(low.cast("double")).cast("bigint")
    large = F.shiftright(high, 11).cast("double") * 2.0 ** (2 * _BITS + 11) + rest.cast("double") * 2.0 ** (_BITS - 2)
    return F.when(F.abs(high) < 1 << 26, small).otherwise(large)
