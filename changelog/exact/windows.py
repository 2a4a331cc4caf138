"""Exact sums of doubles over window frames, each rounded once. They need fewer columns than `changelog.exact.sums`, which is for groups.

An engine adds up each column of a window row by row, so a sum must have few columns. The largest value of a partition decides a unit, a power of
two. In this unit every value is an integer of at most 108 bits, cut into three parts of 36 bits. The sums of the parts are exact, and the result is
the double nearest to their total. `outside` marks a value that is no such integer: it has places below 2**-55 of the largest value.

Where the range of all values is known (`changelog.exact.ranges`), partitions share a unit, two parts mostly suffice, and no value is outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from changelog.columns import column
from changelog.exact.quotients import divided_in_layers, in_two
from changelog.exact.ranges import ValueRange
from changelog.lazy_imports import F

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.window import WindowSpec

_BITS: Final = 36
_BASE: Final = 1 << _BITS
_MOST_ROWS: Final = 1 << 26
"""Parts have 36 bits and a sign, so the sums of this many rows stay within 63 bits."""
_LEAST: Final = -1000
"""Smallest exponent of a unit, so that the factors to and from units are normal doubles."""
_INFINITY: Final = float("inf")
_PARTS: Final = ("high", "middle", "low")
_SUM_BITS: Final = 62
"""Bits of a sum of parts, leaving room for a carry."""


def shared_unit(values: ValueRange) -> int | None:
    """Return the exponent of a unit in which all values are integers, and two parts hold every sum. None where there is none."""
    bits = values.most - values.least
    known = values.least >= _LEAST and values.rows <= _MOST_ROWS
    return values.least if known and bits <= _BITS + _SUM_BITS - values.rows.bit_length() else None


@dataclass(frozen=True, slots=True)
class WindowSum:
    """The sum, or the `mean`, of a double column over the window frame of each row.

    Add the columns of `parts` to the rows, replace the columns `added` by their sums over the frame of each row, then add the columns of `results`.

    Args:
        name: Column of the result, null over no values. Other columns have this name as a prefix.
        value: Column of the values.
        rows: The window with the frame of each row.
        whole: The same window with whole partitions as frames.
        mean: Whether the result is the mean.
        unit: The `shared_unit` of the column.
    """

    name: str
    value: str
    rows: WindowSpec
    whole: WindowSpec
    mean: bool = False
    unit: int | None = None

    @property
    def outside(self) -> Column:
        """Whether the results are not exact, because a row's value is outside the sums, or its partition has too many rows."""
        return self._of("outside") if self.unit is None else F.lit(False)

    @property
    def added(self) -> tuple[str, ...]:
        """Return the bigint columns whose sums are needed."""
        parts = _PARTS if self.unit is None else _PARTS[1:]
        return tuple(map(self._of_name, (*parts, *(("count",) if self.mean else ()))))

    def parts(self) -> Iterator[Mapping[str, Column]]:
        """Yield the columns that come ahead of the sums, layer by layer; each layer reads the ones before it."""
        names = _PARTS if self.unit is None else _PARTS[1:]
        if self.unit is None:
            yield from self._parts()
            yield self._named(odd=F.sum(self._of("odd")).over(self.rows))
        else:
            yield from self._halves(self.unit)
        counted = {"count": F.when(column(self.value).isNotNull(), 1).otherwise(0).cast("bigint")} if self.mean else {}
        yield self._named(**{part: self._of(part).cast("bigint") for part in names}, **counted)

    def results(self) -> Iterator[Mapping[str, Column]]:
        """Yield the columns that come behind the sums, layer by layer."""
        if self.unit is not None:
            yield self._named(high=F.lit(0).cast("bigint"))
        yield from self._carried()
        if self.mean:
            yield from self._quotient()
        if self.unit is None:
            total = F.when(self._of("odd") == 0.0, self._exact(*(_power(half(self._of("unit"), F.lit(0))) for half in (F.least, F.greatest)))).otherwise(self._of("odd"))
        else:
            total = self._exact(*(F.lit(2.0 ** half(self.unit, 0)) for half in (min, max)))
        yield {self.name: F.when(self._of("low").isNotNull(), total)}

    def _of(self, part: str) -> Column:
        return column(self._of_name(part))

    def _of_name(self, part: str) -> str:
        return f"{self.name}_{part}"

    def _named(self, **columns: Column) -> Mapping[str, Column]:
        return {f"{self.name}_{part}": made for part, made in columns.items()}

    def _parts(self) -> Iterator[Mapping[str, Column]]:
        """Yield each value's parts as integral doubles, and the value itself where it is not finite (else 0)."""
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
        """Yield the two parts of each value in the shared unit."""
        yield self._named(scaled=column(self.value) * 2.0**-unit)
        yield self._named(middle=F.rint(self._of("scaled") / float(_BASE)))
        yield self._named(low=self._of("scaled") - self._of("middle") * float(_BASE))

    def _carried(self) -> Iterator[Mapping[str, Column]]:
        """Yield the parts with -2**35 <= part < 2**35, except the highest."""
        for part, above in (("low", "middle"), ("middle", "high")):
            carry = F.shiftright(self._of(part) + (_BASE >> 1), _BITS)
            yield self._named(**{part: self._of(part) - F.shiftleft(carry, _BITS), above: self._of(above) + carry})

    def _exact(self, small: Column, large: Column) -> Column:
        """Return the sum or mean of finite values. One of the two factors is 1; a large factor comes last, because a mean may be finite where its sum is not."""
        return (self._of("quotient") if self.mean else _nearest(*map(self._of, _PARTS))) * small * large

    def _quotient(self) -> Iterator[Mapping[str, Column]]:
        """Yield the mean in the unit, rounded once."""
        high, middle, low = map(self._of, _PARTS)
        rest = F.shiftleft(high.bitwiseAND(F.lit(2047)), _BITS) + middle
        yield self._named(above=F.shiftright(high, 11).cast("double") * 2.0 ** (2 * _BITS + 11), below=rest.cast("double") * 2.0**_BITS)
        found, lost = in_two(self._of("above"), self._of("below"))
        yield self._named(sum=found, lost=lost + low.cast("double"))
        count = self._of("count")
        yield from divided_in_layers(self._of_name("quotient"), *in_two(self._of("sum"), self._of("lost")), F.when(count != 0, count).cast("double"))


def _unit(largest: Column) -> Column:
    """Return the exponent of the unit for values up to the largest. Such values are below 2**107 units, even with the logarithm's error."""
    return F.when(largest > 0.0, F.greatest(F.ceil(F.log2(largest)) + 2 - 3 * _BITS, F.lit(_LEAST))).otherwise(F.lit(_LEAST)).cast("int")


def _power(exponent: Column) -> Column:
    """Return a power of two."""
    return F.pow(F.lit(2.0), exponent.cast("double"))


def _nearest(high: Column, middle: Column, low: Column) -> Column:
    """Return the nearest double (ties to even) of high * 2**72 + middle * 2**36 + low. Two exact doubles are added, so it is rounded once.

    Where `high` is large, `low` decides only ties, so its sign represents it.
    """
    upper = F.shiftleft(high, _BITS) + middle
    small = F.shiftright(upper, 10).cast("double") * 2.0 ** (_BITS + 10) + (F.shiftleft(upper.bitwiseAND(F.lit(1023)), _BITS) + low).cast("double")
    rest = F.shiftleft(F.shiftleft(high.bitwiseAND(F.lit(2047)), _BITS) + middle, 2) + F.signum(low.cast("double")).cast("bigint")
    large = F.shiftright(high, 11).cast("double") * 2.0 ** (2 * _BITS + 11) + rest.cast("double") * 2.0 ** (_BITS - 2)
    return F.when(F.abs(high) < 1 << 26, small).otherwise(large)
