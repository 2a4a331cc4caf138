"""Quotients of exact sums, each rounded once (ties to even): means and weighted means.

A sum is given as two doubles: the nearest double `high`, and the remainder `low`. With `q = high / n` and `c = (remainder + low) / n`, the sum `q + c` is
right, except where it lies exactly between two doubles. Then the sign of the last remainder decides, which the second division gives.
All remainders are exact, because the product of two doubles is the sum of two doubles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from changelog.columns import column
from changelog.lazy_imports import F, np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyspark.sql import Column

    Doubles: TypeAlias = NDArray[np.float64]

_SPLITTER: Final = 2.0**27 + 1
_UNSURE: Final = 2.0**-40
"""A quotient this close to the middle of two doubles, in units of their distance, is not trusted."""


def divided(high: Doubles, low: Doubles, by: Doubles) -> Doubles:
    """Return the doubles nearest to (high + low) / by. `low` is the remainder of the sums after `high`. NaN for 0 / 0."""
    with np.errstate(all="ignore"):
        first = high / by
        left = _remainder(high, first, by)
        rest, lost = _added(left, low)
        second = rest / by
        sign = (_remainder(rest, second, by) + lost) * by
        near = first + second
        beside = 2 * (second - (near - first))
        other = near + beside
        found: Doubles = np.where((other - near == beside) & (sign * beside > 0), other, near)
        return found


def divided_nearly(high: Doubles, low: Doubles, by_high: Doubles, by_low: Doubles) -> tuple[Doubles, NDArray[np.bool_]]:
    """Return the doubles nearest to (high + low) / (by_high + by_low), and where the neighbouring double may be nearer."""
    with np.errstate(all="ignore"):
        first = high / by_high
        second = (_remainder(high, first, by_high) + (low - first * by_low)) / (by_high + by_low)
        near = first + second
        beside = np.abs(2 * (second - (near - first)))
        gaps = (np.abs(np.nextafter(near, np.inf) - near), np.abs(near - np.nextafter(near, -np.inf)))
        return near, (np.abs(beside - gaps[0]) < _UNSURE * gaps[0]) | (np.abs(beside - gaps[1]) < _UNSURE * gaps[1])


def _added(one: Any, other: Any) -> tuple[Any, Any]:
    """Return the sum of two doubles, and its rounding error."""
    found = one + other
    share = found - one
    return found, (one - (found - share)) + (other - share)


def in_two(one: Any, other: Any) -> tuple[Any, Any]:
    """Return the sum of two doubles, the larger one first, and its rounding error."""
    found = one + other
    return found, other - (found - one)


def _upper(value: Any) -> Any:
    """Return the upper half of a double's places."""
    return value * _SPLITTER - (value * _SPLITTER - value)


def _remainder(above: Any, quotient: Any, below: Any) -> Any:
    return _left(above, quotient, _upper(quotient), below, _upper(below))


def _left(above: Any, quotient: Any, upper: Any, below: Any, below_upper: Any) -> Any:
    """Return `above - quotient * below` exactly, for the remainder of a division. The upper halves are given."""
    lower, below_lower, product = quotient - upper, below - below_upper, quotient * below
    lost = ((upper * below_upper - product) + upper * below_lower + lower * below_upper) + lower * below_lower
    return (above - product) - lost


def divided_in_layers(name: str, high: Column, low: Column, by: Column) -> Iterator[Mapping[str, Column]]:
    """Yield the columns of `divided`, layer by layer; each layer reads the ones before it.

    The result is the column `name`. Other columns have this name as a prefix. `by` must be greater than 0.
    """

    def made(part: str) -> Column:
        return column(f"{name}_{part}")

    def named(**columns: Column) -> Mapping[str, Column]:
        return {f"{name}_{part}": value for part, value in columns.items()}

    yield named(h=high, l=low, by=by)
    yield named(first=made("h") / made("by"))
    yield named(upper=_upper(made("first")), by_upper=_upper(made("by")))
    yield named(left=_left(made("h"), made("first"), made("upper"), made("by"), made("by_upper")))
    yield named(rest=made("left") + made("l"))
    yield named(second=made("rest") / made("by"), lost=_added(made("left"), made("l"))[1])
    yield named(near=made("first") + made("second"), upper=_upper(made("second")))
    yield named(sign=_left(made("rest"), made("second"), made("upper"), made("by"), made("by_upper")) + made("lost"), beside=2 * (made("second") - (made("near") - made("first"))))
    other = made("near") + made("beside")
    yield {name: F.when((other - made("near") == made("beside")) & (made("sign") * made("beside") > 0), other).otherwise(made("near"))}
