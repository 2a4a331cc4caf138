"""The doubles nearest to exact sums (`changelog.exact.sums`), for whole columns in Arrow. An engine would take longer to plan the expression than to compute it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from changelog.exact import decimals
from changelog.exact.decimals import DIGITS, DecimalSum, RoundedDecimal
from changelog.exact.quotients import divided, divided_nearly
from changelog.exact.sums import EXPONENTS, LIMIT, FloatSum, IntSum
from changelog.frames import mapped
from changelog.lazy_imports import np, pa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    Limbs: TypeAlias = NDArray[np.int64]

_BITS: Final = 32
_HALF: Final = 1 << (_BITS - 1)


@dataclass(frozen=True, slots=True)
class Mean:
    """A total divided by the bigint column `count`. NaN where the count is 0."""

    value: str
    total: FloatSum | IntSum
    count: str


@dataclass(frozen=True, slots=True)
class Ratio:
    """One total divided by another. NaN where the divisor is 0."""

    value: str
    above: FloatSum
    below: FloatSum


ExactSum: TypeAlias = FloatSum | IntSum | DecimalSum
"""A sum in limbs."""
Rounded: TypeAlias = FloatSum | Mean | Ratio | RoundedDecimal
"""A total or a quotient of totals, rounded once into the column `value`."""


def with_totals(states: DataFrame, sums: Sequence[Rounded]) -> DataFrame:
    """Return states in carried form, with a column `value` for each total or quotient, rounded once (ties to even): a double, or a decimal.

    NaN and infinities follow IEEE addition. Values outside the layout are left out; see `FloatSum.inexact`.
    """
    from pyspark.sql.types import DecimalType, DoubleType, StructField, StructType

    if not sums:
        return states
    schema = StructType([*states.schema.fields, *(StructField(one.value, DecimalType(DIGITS, one.scale) if isinstance(one, RoundedDecimal) else DoubleType()) for one in sums)])
    return mapped(states, _totalled(sums), schema)


def _totalled(sums: Sequence[Rounded]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def totalled(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:

        for batch in batches:
            totals = [values_of(batch, one) for one in sums]
            yield pa.RecordBatch.from_arrays([*batch.columns, *totals], [*batch.schema.names, *(one.value for one in sums)])

    return totalled


def values_of(batch: pa.RecordBatch, one: Rounded) -> pa.Array:
    """Return the totals or quotients of a batch of states in carried form, in the type of their column."""
    if isinstance(one, RoundedDecimal):
        return decimals.rounded(one, partial(_numbers, batch))
    return pa.array(rounded(batch, one), pa.float64())


def rounded(batch: pa.RecordBatch, one: FloatSum | Mean | Ratio) -> NDArray[np.float64]:
    """Return the totals or quotients of a batch of states in carried form as doubles."""
    if isinstance(one, FloatSum):
        return total(batch, one)
    if isinstance(one, Mean):
        limbs, by = _limbs_of(batch, one.total), _numbers(batch, one.count)
        found = _mean(limbs, by)
        return found if isinstance(one.total, IntSum) else _ieee(found, total(batch, one.total), by.astype("f8"))
    found = _ratio(_limbs_of(batch, one.above), _limbs_of(batch, one.below))
    with np.errstate(all="ignore"):
        return _ieee(found, total(batch, one.above), total(batch, one.below))


def _ieee(found: NDArray[np.float64], above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the quotients found, or the IEEE quotient of the totals where one is not finite or the divisor is 0."""
    with np.errstate(all="ignore"):
        return np.where(np.isfinite(above) & np.isfinite(below) & (below != 0), found, above / below)


def _mean(limbs: Sequence[Limbs], by: Limbs) -> NDArray[np.float64]:

    high, low, is_whole = _in_two(limbs)
    found = divided(high, low, by.astype("f8"))
    return _by_fractions(found, ~is_whole & (by != 0), lambda at: Fraction(_exact(limbs, at), int(by[at]))) if not np.all(is_whole) else found


def _ratio(above: Sequence[Limbs], below: Sequence[Limbs]) -> NDArray[np.float64]:

    high, low, is_whole = _in_two(above)
    by_high, by_low, by_whole = _in_two(below)
    near, unsure = divided_nearly(high, low, by_high, by_low)
    plain = is_whole & by_whole & (by_low == 0)
    found = np.where(plain, divided(high, low, by_high), near)
    return _by_fractions(found, unsure & ~plain & (by_high != 0), lambda at: _exact(above, at) / _exact(below, at))


def _by_fractions(found: NDArray[np.float64], where: NDArray[np.bool_], exact: Callable[[int], Fraction]) -> NDArray[np.float64]:
    """Compute the quotients `where` they may be wrong, one by one."""
    for at in where.nonzero()[0]:
        found[at] = float(exact(int(at)))
    return found


def _exact(limbs: Sequence[Limbs], at: int) -> Fraction:
    return sum((int(limb[at]) * Fraction(2) ** exponent for limb, exponent in zip(limbs, EXPONENTS, strict=True)), Fraction(0))


def _limbs_of(batch: pa.RecordBatch, one: FloatSum | IntSum) -> list[Limbs]:
    """Return the limbs of a total in carried form, at `EXPONENTS`."""
    if isinstance(one, FloatSum):
        return [_numbers(batch, name) for name in one.limbs]
    high, low = (_numbers(batch, name) for name in one.columns)
    none = np.zeros_like(high)
    return _settled([low if exponent == 0 else high if exponent == _BITS else none for exponent in EXPONENTS])


def _in_two(limbs: Sequence[Limbs]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return the nearest doubles of balanced limbs, the nearest doubles of the remainders, and where no remainder is left after both."""
    used = [at for at, limb in enumerate(limbs) if limb.any()] or [0]
    limbs, exponents = limbs[used[0] : used[-1] + 1], EXPONENTS[used[0] : used[-1] + 1]  # mostly three of eight
    high = nearest(limbs, exponents)
    left = _without(limbs, high, exponents)
    low = nearest(left, exponents)
    return high, low, np.logical_and.reduce([limb == 0 for limb in _without(left, low, exponents)])


def _without(limbs: Sequence[Limbs], values: NDArray[np.float64], exponents: Sequence[int]) -> list[Limbs]:
    """Return the limbs of sums minus these doubles, balanced."""
    near = [np.rint(values * 2.0**-exponent) for exponent in exponents]
    parts = [near[0], *(here - above * 2.0**_BITS for above, here in pairwise(near))]
    return _settled([limb - part.astype("i8") for limb, part in zip(limbs, parts, strict=True)])


def _settled(limbs: Sequence[Limbs]) -> list[Limbs]:
    """Return the limbs with -2**31 <= limb < 2**31, except the highest."""
    settled, carry = [], limbs[0] * 0
    for limb in reversed(limbs[1:]):
        carry = ((whole := limb + carry) + _HALF) >> _BITS
        settled.append(whole - (carry << _BITS))
    return [limbs[0] + carry, *reversed(settled)]


def total(batch: pa.RecordBatch, one: FloatSum) -> NDArray[np.float64]:
    """Return the totals of a batch of states in carried form."""
    limbs = [_numbers(batch, name) for name in one.limbs]
    nan, inf, ninf = (_numbers(batch, name) > 0 for name in one.special)
    found = np.where(inf, np.inf, np.where(ninf, -np.inf, nearest(limbs)))
    return np.where(nan | (inf & ninf), np.nan, found)


def contributions(one: FloatSum | IntSum, values: NDArray[Any], known: NDArray[np.bool_], weight: Limbs) -> dict[str, Limbs]:
    """Return what rows with these values (where `known`) and weights add to each state column. `contributions` of a sum gives the same as expressions."""
    if isinstance(one, IntSum):
        halves = (values >> _BITS, values & ((1 << _BITS) - 1))
        return {name: half * weight * known for name, half in zip(one.columns, halves, strict=True)}
    return _of_floats(one, values.astype("f8"), known, weight)


def _of_floats(one: FloatSum, values: NDArray[np.float64], known: NDArray[np.bool_], weight: Limbs) -> dict[str, Limbs]:

    with np.errstate(over="ignore", invalid="ignore"):
        last = values * 2.0 ** -EXPONENTS[-1]
        fits = known & (np.abs(values) < LIMIT) & (last == np.rint(last))
        weighted = np.where(fits, values, 0.0) * weight
    nearest = [np.rint(weighted * 2.0**-exponent) for exponent in EXPONENTS]
    limbs = [nearest[0], *(here - above * 2.0**_BITS for above, here in pairwise(nearest))]
    special = (np.isnan(values), values == np.inf, values == -np.inf, np.isfinite(values) & ~fits)
    counts = [np.where(known & found, weight, 0) for found in special]
    return dict(zip(one.columns, [*(limb.astype("i8") for limb in limbs), *counts], strict=True))


def carried(states: Mapping[str, Limbs], one: ExactSum) -> dict[str, Limbs]:
    """Return the limbs of states with settled carries, by column. `carried` of a sum gives the same as expressions."""
    if isinstance(one, DecimalSum):
        return one.settled(states)
    if isinstance(one, IntSum):
        high, low = (states[name] for name in one.columns)
        return {one.columns[0]: high + (low >> _BITS), one.columns[1]: low & ((1 << _BITS) - 1)}
    return dict(zip(one.limbs, _settled([states[name] for name in one.limbs]), strict=True))


def _numbers(batch: pa.RecordBatch, name: str) -> Limbs:
    numbers: Limbs = batch.column(batch.schema.get_field_index(name)).to_numpy(zero_copy_only=False)
    return numbers


def nearest(limbs: Sequence[Limbs], exponents: Sequence[int] = EXPONENTS) -> NDArray[np.float64]:
    """Return the nearest double of balanced limbs at these exponents: from the highest limb that is not 0, the next two, and the sign of the rest."""
    carry = (limbs[0] + _HALF) >> _BITS
    zero = np.zeros_like(carry)
    balanced = [carry, limbs[0] - (carry << _BITS), *limbs[1:]]
    padded, signs, found = [*balanced, zero, zero], _tail_signs(balanced), np.zeros(len(carry))
    with np.errstate(over="ignore"):
        for at, exponent in reversed(list(enumerate((exponents[0] + _BITS, *exponents)))):
            first, second, third = padded[at : at + 3]
            rounded = _rounded(first, second, third, signs[at]) * 2.0 ** (exponent - 2 * _BITS - 2)
            found = np.where(first != 0, rounded, found)
    return found


def _rounded(first: Limbs, second: Limbs, third: Limbs, sign: Limbs) -> Any:
    """Return (first * 2**64 + second * 2**32 + third) * 4 + sign, rounded once: two exact doubles are added.

    The sign represents all lower limbs. They are less than one unit of `third`, so they decide only ties.
    """
    high = (first << 21) + (second >> 11)
    low = ((second & 2047) << 34) + (third << 2) + sign
    return high.astype("f8") * 2.0**45 + low.astype("f8")


def _tail_signs(limbs: Sequence[Limbs]) -> list[Limbs]:
    """Return for each limb the sign of everything more than two places after it."""
    sign = np.zeros_like(limbs[0])
    signs = [sign, sign, sign]
    for limb in reversed(limbs[3:]):
        sign = np.where(limb != 0, np.sign(limb), sign)
        signs.append(sign)
    return signs[::-1]
