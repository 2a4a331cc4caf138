"""Exact sums of decimals, in whole numbers: engines' own decimals round, or fail, where a total has more than 38 digits on the way.

The unscaled value of a decimal is split into *limbs* of 32 bits, at powers of 2**32, each with the sign of the value. Bigint sums of limbs times weights are exact
for 2**31 rows, in any order, and a row with the opposite weight takes its contribution back. A product of two decimals has twice as many limbs.

Use: add up `contributions` of the rows over each group, then apply `carried` before the state is stored or read, then `rounding.with_totals`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from changelog.columns import column, fields
from changelog.lazy_imports import F, np, pa

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyspark.sql import Column

    Limbs: TypeAlias = NDArray[np.int64]
    Words: TypeAlias = NDArray[np.uint64]

_BITS: Final = 32
_MASK: Final = (1 << _BITS) - 1
LIMBS: Final = 4
"""The limbs of a decimal."""
DIGITS: Final = 38
_LIMIT: Final = int(10**DIGITS)
_EXACT: Final = Context(prec=2 * DIGITS)


@dataclass(frozen=True, slots=True)
class DecimalSum:
    """The exact sum of whole numbers over 10**scale, in bigint columns whose names begin with `prefix`.

    Args:
        prefix: The beginning of the names.
        scale: The digits behind the point.
        count: The number of limbs: 4 for decimals, 8 for products.
    """

    prefix: str
    scale: int
    count: int = LIMBS

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the state columns: the limbs, lowest first."""
        return tuple(f"{self.prefix}_d{at}" for at in range(self.count))

    @property
    def value(self) -> str:
        """Name of the column for the total (`rounding.with_totals`)."""
        return f"{self.prefix}_total"

    def weighted(self, limbs: Sequence[Column], weight: Column) -> list[Column]:
        """Return what a row with these limbs, null where it has no value, and weight (1 or -1) adds to each state column."""
        return [F.coalesce(limb * weight, F.lit(0).cast("bigint")).alias(name) for limb, name in zip(limbs, self.columns, strict=True)]

    def carried(self) -> list[Column]:
        """Return the state columns with settled carries: the only form of a total. All but the highest are from 0 to 2**32 - 1."""
        settled: list[Column] = []
        carry = F.lit(0).cast("bigint")
        for name in self.columns:
            limb = column(name) + carry
            carry = F.shiftright(limb, _BITS)
            settled.append((limb.bitwiseAND(F.lit(_MASK)) if name != self.columns[-1] else limb).alias(name))
        return settled

    def is_zero(self) -> Column:
        """Return whether the total of carried state columns is zero."""
        zero = F.lit(True)
        for name in self.columns:
            zero = zero & (column(name) == 0)
        return zero

    def settled(self, states: Mapping[str, Limbs]) -> dict[str, Limbs]:
        """Return the limbs of states with settled carries, by column, as `carried` does."""
        found, carry = dict[str, "Limbs"](), states[self.columns[0]] * 0
        for name in self.columns:
            limb = states[name] + carry
            carry = limb >> _BITS
            found[name] = limb & _MASK if name != self.columns[-1] else limb
        return found

    def totals(self, limbs: Sequence[Limbs]) -> pa.Array:
        """Return the decimals of totals in carried form; null where one has more than 38 digits."""
        if self.count != LIMBS:
            return _decimals(_whole(limbs), self.scale)
        low, high = (limbs[0] | (limbs[1] << _BITS)).view(np.uint64), (limbs[2] | (limbs[3] << _BITS)).view(np.int64)
        fits = (limbs[3] >= -(1 << 31)) & (limbs[3] < 1 << 31) & _below(low, high, _LIMIT) & ~_below(low, high, 1 - _LIMIT)
        return _column(low, high, fits, self.scale)


@dataclass(frozen=True, slots=True)
class DecimalMean:
    """A total divided by the bigint column `count`, rounded half to even to `scale`. Null where the count is 0 or the mean has more than 38 digits."""

    value: str
    total: DecimalSum
    count: str
    scale: int


@dataclass(frozen=True, slots=True)
class DecimalRatio:
    """One total divided by another, rounded half to even to `scale`. Null where the divisor is 0 or the quotient has more than 38 digits."""

    value: str
    above: DecimalSum
    below: DecimalSum
    scale: int


RoundedDecimal: TypeAlias = DecimalSum | DecimalMean | DecimalRatio
"""A total or a quotient of totals of decimals, in the column `value`."""


def rounded(one: RoundedDecimal, numbers: Callable[[str], Limbs]) -> pa.Array:
    """Return totals or quotients of states in carried form. `numbers` gives a state column by its name."""
    if isinstance(one, DecimalSum):
        return one.totals([*map(numbers, one.columns)])
    if isinstance(one, DecimalMean):
        above, below, shift = _whole([*map(numbers, one.total.columns)]), numbers(one.count).tolist(), one.scale - one.total.scale
    else:
        above, below = (_whole([*map(numbers, side.columns)]) for side in (one.above, one.below))
        shift = one.scale + one.below.scale - one.above.scale
    up, down = int(10 ** max(shift, 0)), int(10 ** max(-shift, 0))
    return _decimals([_nearest(total * up, by * down) if by else None for total, by in zip(above, below, strict=True)], one.scale)


def _nearest(above: int, below: int) -> int:
    """Return a quotient, rounded half to even."""
    if below < 0:
        above, below = -above, -below
    quotient, rest = divmod(above, below)
    return quotient + (2 * rest > below or (2 * rest == below and quotient % 2 == 1))


def _whole(limbs: Sequence[Limbs]) -> list[int]:
    """Return the whole numbers of limbs, lowest first."""
    total = limbs[-1].astype(object)
    for limb in reversed(limbs[:-1]):
        total = (total << _BITS) + limb.astype(object)
    return cast("list[int]", total.tolist())


def _decimals(numbers: Iterable[int | None], scale: int) -> pa.Array:
    """Return unscaled values as decimals; null for one of more than 38 digits."""
    made = [None if one is None or abs(one) >= _LIMIT else Decimal(one).scaleb(-scale, _EXACT) for one in numbers]
    return pa.array(made, pa.decimal128(DIGITS, scale))


def _below(low: Words, high: Limbs, bound: int) -> NDArray[np.bool_]:
    """Return whether numbers of two words are less than a bound."""
    bound_low, bound_high = np.uint64(bound & (1 << 64) - 1), bound >> 64
    found: NDArray[np.bool_] = (high < bound_high) | ((high == bound_high) & (low < bound_low))
    return found


def _column(low: Words, high: Limbs, fits: NDArray[np.bool_], scale: int) -> pa.Array:
    """Return numbers of two words as decimals, null where one does not fit."""
    words = np.stack([low, high.view(np.uint64)], axis=1)
    valid = None if fits.all() else pa.py_buffer(np.packbits(fits, bitorder="little"))
    return pa.Array.from_buffers(pa.decimal128(DIGITS, scale), len(low), [valid, pa.py_buffer(np.ascontiguousarray(words).reshape(-1))])


# What rows add ----------------------------------------------------------------------------------------------------------
def limbs_of(values: pa.Array) -> list[Limbs]:
    """Return the limbs of decimals or ints, lowest first; 0 for null."""
    sizes, signs = _sizes(values)
    return [part.view(np.int64) * signs for part in sizes]


def products_of(values: pa.Array, weights: pa.Array) -> list[Limbs]:
    """Return the limbs of the products of decimals or ints, lowest first; 0 where one is null."""
    (left, left_signs), (right, right_signs) = _sizes(values), _sizes(weights)
    sums = [np.zeros(len(values), np.uint64) for _ in range(2 * LIMBS)]
    for at, one in enumerate(left):
        for by, other in enumerate(right):
            product = one * other
            sums[at + by] += product & np.uint64(_MASK)
            sums[at + by + 1] += product >> np.uint64(_BITS)
    carry = np.zeros(len(values), np.uint64)
    found = []
    for part in sums:
        whole = part + carry
        carry = whole >> np.uint64(_BITS)
        found.append((whole & np.uint64(_MASK)).view(np.int64) * (left_signs * right_signs))
    return found


def _sizes(values: pa.Array) -> tuple[list[Words], Limbs]:
    """Return the limbs of absolute values, lowest first, and signs (1 or -1); 0 for null."""
    if pa.types.is_integer(values.type):
        numbers = values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        low, high = numbers.view(np.uint64), (numbers >> 63).view(np.uint64)
    else:
        filled = values.fill_null(Decimal(0)) if values.null_count else values
        words = np.frombuffer(filled.buffers()[1], np.uint64).reshape(-1, 2)[filled.offset : filled.offset + len(filled)]
        low, high = words[:, 0], words[:, 1]
    negative = (high >> np.uint64(63)).astype(np.bool_)
    low = np.where(negative, ~low + np.uint64(1), low)
    high = np.where(negative, ~high + (low == 0), high)
    mask, bits = np.uint64(_MASK), np.uint64(_BITS)
    return [low & mask, low >> bits, high & mask, high >> bits], np.where(negative, -1, 1)


def limb_columns(value: Column) -> list[Column]:
    """Return the limbs of a decimal or bigint Column, lowest first; null for null."""
    return _struct_of(value.isNotNull(), partial(_limbs_array, limbs_of), LIMBS, value)


def product_columns(value: Column, weight: Column) -> list[Column]:
    """Return the limbs of the product of two Columns, lowest first; null where one is null."""
    return _struct_of(value.isNotNull() & weight.isNotNull(), partial(_limbs_array, products_of), 2 * LIMBS, value, weight)


def rounded_column(one: DecimalSum | DecimalMean) -> Column:
    """Return totals or means of carried state columns of each row (`rounded`)."""
    names = one.columns if isinstance(one, DecimalSum) else (*one.total.columns, one.count)
    return _computed(partial(_rounded_array, one, names), [("v", f"decimal({DIGITS},{one.scale})")], *map(column, names))


def _rounded_array(one: RoundedDecimal, names: Sequence[str], *columns: pa.Array) -> pa.Array:
    by_name = dict(zip(names, columns, strict=True))
    return rounded(one, lambda name: by_name[name].fill_null(0).to_numpy(zero_copy_only=False))


def _limbs_array(limbs: Callable[..., Sequence[Limbs]], *columns: pa.Array) -> pa.Array:
    found = limbs(*columns)
    return pa.StructArray.from_arrays([pa.array(limb) for limb in found], [f"l{at}" for at in range(len(found))])


def _struct_of(known: Column, work: Callable[..., pa.Array], count: int, *columns: Column) -> list[Column]:
    made = _computed(work, [(f"l{at}", "bigint") for at in range(count)], *columns)
    return [F.when(known, made.getField(f"l{at}")) for at in range(count)]


def _computed(work: Callable[..., pa.Array], members: Sequence[tuple[str, str]], *columns: Column) -> Column:
    """Return a Column that Python computes from Arrow arrays: of a type, or a struct of several."""
    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.types import StructType

    def run(*batch: pa.Array) -> pa.Array:
        return work(*batch)

    one, *more = found = fields(dict(members))
    made: Column = cast("Any", arrow_udf)(run, StructType(found) if more else one.dataType)(*columns)
    return made
