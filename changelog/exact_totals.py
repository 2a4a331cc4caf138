"""The doubles nearest to exact sums (`changelog.exact`): whole columns of groups at a time, in Arrow. As one expression of an engine they take longer to plan than to compute."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from changelog.exact import EXPONENTS, LIMIT, FloatSum, IntSum
from changelog.frames import mapped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    Limbs: TypeAlias = NDArray[np.int64]

_BITS: Final = 32
_HALF: Final = 1 << (_BITS - 1)


def with_totals(states: DataFrame, sums: Sequence[FloatSum]) -> DataFrame:
    """States in carried form with the total of each sum, rounded once (ties to even), in a double column `FloatSum.value` behind the others.

    NaN and the infinities are treated as IEEE addition would. Values outside the layout are left out: see `FloatSum.inexact`.
    """
    from pyspark.sql.types import DoubleType, StructField, StructType

    if not sums:
        return states
    schema = StructType([*states.schema.fields, *(StructField(one.value, DoubleType()) for one in sums)])
    return mapped(states, _totalled(sums), schema)


def _totalled(sums: Sequence[FloatSum]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def totalled(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            totals = [pa.array(total(batch, one)) for one in sums]
            yield pa.RecordBatch.from_arrays([*batch.columns, *totals], [*batch.schema.names, *(one.value for one in sums)])

    return totalled


def total(batch: pa.RecordBatch, one: FloatSum) -> NDArray[np.float64]:
    """The totals of a batch of states in carried form."""
    import numpy as np

    limbs = [_numbers(batch, name) for name in one.limbs]
    nan, inf, ninf = (_numbers(batch, name) > 0 for name in one.special)
    found = np.where(inf, np.inf, np.where(ninf, -np.inf, nearest(limbs)))
    return np.where(nan | (inf & ninf), np.nan, found)


def contributions(one: FloatSum | IntSum, values: NDArray[Any], known: NDArray[np.bool_], weight: Limbs) -> dict[str, Limbs]:
    """What rows with these values (where they are `known`) and weights add to each state column: what `contributions` of a sum gives as expressions."""
    if isinstance(one, IntSum):
        halves = (values >> _BITS, values & ((1 << _BITS) - 1))
        return {name: half * weight * known for name, half in zip(one.columns, halves, strict=True)}
    return _of_floats(one, values.astype("f8"), known, weight)


def _of_floats(one: FloatSum, values: NDArray[np.float64], known: NDArray[np.bool_], weight: Limbs) -> dict[str, Limbs]:
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        last = values * 2.0 ** -EXPONENTS[-1]
        fits = known & (np.abs(values) < LIMIT) & (last == np.rint(last))
        weighted = np.where(fits, values, 0.0) * weight
    nearest = [np.rint(weighted * 2.0**-exponent) for exponent in EXPONENTS]
    limbs = [nearest[0], *(here - above * 2.0**_BITS for above, here in pairwise(nearest))]
    special = (np.isnan(values), values == np.inf, values == -np.inf, np.isfinite(values) & ~fits)
    counts = [np.where(known & told, weight, 0) for told in special]
    return dict(zip(one.columns, [*(limb.astype("i8") for limb in limbs), *counts], strict=True))


def carried(states: Mapping[str, Limbs], one: FloatSum | IntSum) -> dict[str, Limbs]:
    """The limbs of states with their carries settled, by column: what `carried` of a sum gives as expressions."""
    if isinstance(one, IntSum):
        high, low = (states[name] for name in one.columns)
        return {one.columns[0]: high + (low >> _BITS), one.columns[1]: low & ((1 << _BITS) - 1)}
    settled: dict[str, Limbs] = {}
    above, *others = one.limbs
    carry = states[above] * 0
    for name in reversed(others):
        limb = states[name] + carry
        carry = (limb + _HALF) >> _BITS
        settled[name] = limb - (carry << _BITS)
    return settled | {above: states[above] + carry}


def _numbers(batch: pa.RecordBatch, name: str) -> Limbs:
    numbers: Limbs = batch.column(batch.schema.get_field_index(name)).to_numpy(zero_copy_only=False)
    return numbers


def nearest(limbs: Sequence[Limbs]) -> NDArray[np.float64]:
    """The nearest double of balanced limbs: of the highest that is not 0 and the next two, with the sign of all that follows."""
    import numpy as np

    carry = (limbs[0] + _HALF) >> _BITS
    zero = np.zeros_like(carry)
    balanced = [carry, limbs[0] - (carry << _BITS), *limbs[1:]]
    padded, signs, found = [*balanced, zero, zero], _tail_signs(balanced), np.zeros(len(carry))
    with np.errstate(over="ignore"):
        for at, exponent in reversed(list(enumerate((EXPONENTS[0] + _BITS, *EXPONENTS)))):
            first, second, third = padded[at : at + 3]
            rounded = _rounded(first, second, third, signs[at]) * 2.0 ** (exponent - 2 * _BITS - 2)
            found = np.where(first != 0, rounded, found)
    return found


def _rounded(first: Limbs, second: Limbs, third: Limbs, sign: Limbs) -> Any:
    """(first * 2**64 + second * 2**32 + third) * 4 + sign, rounded once: two doubles that are exact are added.

    The sign stands for all lower limbs: they are less than one unit of `third`, so they decide ties and nothing else.
    """
    high = (first << 21) + (second >> 11)
    low = ((second & 2047) << 34) + (third << 2) + sign
    return high.astype("f8") * 2.0**45 + low.astype("f8")


def _tail_signs(limbs: Sequence[Limbs]) -> list[Limbs]:
    """For each limb the sign of what lies more than two places behind it."""
    import numpy as np

    sign = np.zeros_like(limbs[0])
    signs = [sign, sign, sign]
    for limb in reversed(limbs[3:]):
        sign = np.where(limb != 0, np.sign(limb), sign)
        signs.append(sign)
    return signs[::-1]
