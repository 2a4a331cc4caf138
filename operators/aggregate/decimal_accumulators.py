"""Accumulators of decimals: exact sums of whole numbers, and quotients rounded once, half to even."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from changelog.columns import column
from changelog.exact.decimals import LIMBS, DecimalMean, DecimalRatio, DecimalSum, limb_columns, limbs_of, product_columns, products_of
from changelog.lazy_imports import F, np, pa
from cxl.typed.tree import AggregateUse, WindowUse
from operators.aggregate.terms import Term, counted, of_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from numpy.typing import NDArray
    from pyspark.sql import Column

    from changelog.exact.ranges import ValueRange
    from changelog.exact.rounding import Rounded

    Numbers: TypeAlias = NDArray[np.int64]

OVERFLOW = "decimal overflow: more than 38 digits"


@dataclass(frozen=True, slots=True)
class DecimalTotal:
    """`sum` or `avg` of decimals: an exact total and the number of values. `mean`: the mean, else None."""

    name: str
    value: str
    total: DecimalSum
    mean: DecimalMean | None = None

    @classmethod
    def of(cls, use: AggregateUse | WindowUse) -> DecimalTotal:
        """Return the accumulator of a call."""
        total = DecimalSum(use.column, use.args[0].type.scale)
        mean = DecimalMean(f"{use.column}_mean", total, f"{use.column}_n", use.type.scale) if use.function.name == "avg" else None
        return cls(use.column, use.columns[0], total, mean)

    overflow = OVERFLOW

    @property
    def quotient(self) -> DecimalSum | DecimalMean:
        """The call's value."""
        return self.total if self.mean is None else self.mean

    @property
    def _count(self) -> str:
        return f"{self.name}_n"

    @property
    def columns(self) -> tuple[str, ...]:
        """The total's columns and the counter."""
        return (*self.total.columns, self._count)

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms of the total, and the rows with a value."""
        return (*of_value(self.total, self.value), counted(self.value))

    def unused(self, ranges: Mapping[str, ValueRange]) -> frozenset[str]:
        """None: what is known of the ranges is about floats."""
        return frozenset()

    def contributions(self, weight: Column) -> list[Column]:
        """The terms of each row."""
        value = column(self.value)
        counted = F.when(value.isNotNull(), weight).otherwise(F.lit(0).cast("bigint")).alias(self._count)
        return [*self.total.weighted(limb_columns(value), weight), counted]

    def contributed(self, rows: pa.Table, weight: Numbers) -> dict[str, Numbers]:
        """The terms of each row."""
        values = _whole(rows, self.value)
        limbs = dict(zip(self.total.columns, limbs_of(values), strict=True))
        return {name: limb * weight for name, limb in limbs.items()} | {self._count: weight * _known(values)}

    @property
    def totals(self) -> Sequence[DecimalSum]:
        """The total."""
        return (self.total,)

    @property
    def rounded(self) -> Sequence[Rounded]:
        """The total, or the mean."""
        return (self.quotient,)

    def carried(self) -> list[Column]:
        """The total with its carries settled, and the counter."""
        return [*self.total.carried(), column(self._count)]

    def result(self) -> Column:
        """The total, or the mean; null where there is no value."""
        return F.when(column(self._count) != 0, column(self.quotient.value))

    def overflows(self) -> Column:
        """Whether there are values, and their total or mean has more than 38 digits."""
        return (column(self._count) != 0) & column(self.quotient.value).isNull()

    def inexact(self) -> Column:
        """Never: whole numbers are exact."""
        return F.lit(False)


@dataclass(frozen=True, slots=True)
class DecimalWeightedMean:
    """`weighted_avg(value, weight)` of decimals and ints: exact sums of value times weight and of the weights, over rows that have both."""

    name: str
    value: str
    weight: str
    ratio: DecimalRatio

    @classmethod
    def of(cls, use: AggregateUse) -> DecimalWeightedMean:
        """Return the accumulator of a call."""
        value, share = (arg.type.scale for arg in use.args)
        products, weights = DecimalSum(f"{use.column}_p", value + share, 2 * LIMBS), DecimalSum(f"{use.column}_w", share)
        return cls(use.column, use.columns[0], use.columns[1], DecimalRatio(f"{use.column}_mean", products, weights, use.type.scale))

    overflow = OVERFLOW

    @property
    def columns(self) -> tuple[str, ...]:
        """Both totals' columns."""
        return (*self.ratio.above.columns, *self.ratio.below.columns)

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms of both totals."""
        return (*of_value(self.ratio.above, "product", self.value, self.weight), *of_value(self.ratio.below, self.weight, self.value))

    def unused(self, ranges: Mapping[str, ValueRange]) -> frozenset[str]:
        """None: what is known of the ranges is about floats."""
        return frozenset()

    def contributions(self, weight: Column) -> list[Column]:
        """The terms of each row."""
        value, share = column(self.value), column(self.weight)
        shares = [F.when(value.isNotNull(), limb) for limb in limb_columns(share)]
        return [*self.ratio.above.weighted(product_columns(value, share), weight), *self.ratio.below.weighted(shares, weight)]

    def contributed(self, rows: pa.Table, weight: Numbers) -> dict[str, Numbers]:
        """The terms of each row."""
        values, shares = _whole(rows, self.value), _whole(rows, self.weight)
        products = [limb * weight for limb in products_of(values, shares)]
        weights = [limb * weight * _known(values) for limb in limbs_of(shares)]
        return dict(zip(self.columns, [*products, *weights], strict=True))

    @property
    def totals(self) -> Sequence[DecimalSum]:
        """Both totals."""
        return self.ratio.above, self.ratio.below

    @property
    def rounded(self) -> Sequence[Rounded]:
        """The mean."""
        return (self.ratio,)

    def carried(self) -> list[Column]:
        """Both totals with their carries settled."""
        return [*self.ratio.above.carried(), *self.ratio.below.carried()]

    def result(self) -> Column:
        """The mean; null where the weights sum to zero."""
        return column(self.ratio.value)

    def overflows(self) -> Column:
        """Whether the weights do not sum to zero, and the mean has more than 38 digits."""
        return ~self.ratio.below.is_zero() & column(self.ratio.value).isNull()

    def inexact(self) -> Column:
        """Never: whole numbers are exact."""
        return F.lit(False)


def decimal_accumulator(use: AggregateUse) -> DecimalTotal | DecimalWeightedMean:
    """Return the accumulator of a sum or mean whose result is a decimal."""
    return DecimalWeightedMean.of(use) if use.function.name == "weighted_avg" else DecimalTotal.of(use)


def _whole(rows: pa.Table, name: str) -> pa.Array:
    chunks = rows.column(name).combine_chunks()
    return chunks if isinstance(chunks, pa.Array) else pa.concat_arrays(chunks.chunks)


def _known(values: pa.Array) -> NDArray[np.bool_]:
    known: NDArray[np.bool_] = values.is_valid().to_numpy(zero_copy_only=False)
    return known
