"""Aggregate functions as columns: exact accumulators that can be retracted, and functions of all rows of a group.

An accumulator is a few bigint columns that add up over rows with weight 1 or -1, so a retraction subtracts its contribution. `best_values` keeps
lists beside them. The other functions need the rows of the group in order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from changelog.columns import column
from changelog.exact.ranges import ValueRange
from changelog.exact.rounding import ExactSum, Mean, Ratio, Rounded, contributions
from changelog.exact.sums import FloatSum, IntSum
from changelog.lazy_imports import F, np, pa
from cxl.typed.tree import AggregateUse
from cxl.types.types import Kind
from operators.aggregate.best_values import BestValues, best_values
from operators.aggregate.decimal_accumulators import decimal_accumulator
from operators.aggregate.native_extremes import greatest_value, least_value
from operators.aggregate.terms import ROWS, Term, counted, of_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray
    from pyspark.sql import Column

    from operators.aggregate.decimal_accumulators import Numbers

OVERFLOW = "integer overflow in sum"
RETRACTABLE = frozenset({"sum", "count", "avg", "weighted_avg"})
NATIVE = frozenset({"min", "max", "first", "last", "any"})


class Accumulator(Protocol):
    """State columns of one aggregate call, named after its result column."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the state columns, each a bigint."""

    @property
    def terms(self) -> Sequence[Term]:
        """What each state column adds up."""

    @property
    def overflow(self) -> str:
        """The error of a value that does not fit its type."""

    def contributions(self, weight: Column) -> list[Column]:
        """The terms of each row in the state columns."""

    def contributed(self, rows: pa.Table, weight: Numbers) -> dict[str, Numbers]:
        """The same of rows on the driver with these weights, by state column."""

    def unused(self, ranges: Mapping[str, ValueRange]) -> frozenset[str]:
        """The state columns to which no row adds anything, where columns of arguments have these ranges."""

    def carried(self) -> list[Column]:
        """The state columns in the one form that a total has."""

    @property
    def totals(self) -> Sequence[ExactSum]:
        """The exact sums in it."""

    @property
    def rounded(self) -> Sequence[Rounded]:
        """The totals and quotients that have to be there (`exact_totals.with_totals`) before `result`."""

    def result(self) -> Column:
        """The call's value from carried state columns and totals."""

    def overflows(self) -> Column:
        """Whether the value does not fit its type."""

    def inexact(self) -> Column:
        """Whether a value did not fit the layout."""


def _zero() -> Column:
    return F.lit(0).cast("bigint")


@dataclass(frozen=True, slots=True)
class Count:
    """`count(*)` and `count(value)`; `column_name` is None for the star."""

    name: str
    column_name: str | None

    overflow = OVERFLOW

    @property
    def columns(self) -> tuple[str, ...]:
        """One counter."""
        return (f"{self.name}_n",)

    @property
    def terms(self) -> tuple[Term, ...]:
        """All rows, or the rows with a value."""
        return (counted(self.column_name),)

    def unused(self, ranges: Mapping[str, ValueRange]) -> frozenset[str]:
        """None."""
        return frozenset()

    def contributions(self, weight: Column) -> list[Column]:
        """The weight of each row that has a value."""
        amount = weight if self.column_name is None else F.when(column(self.column_name).isNotNull(), weight).otherwise(_zero())
        return [amount.alias(self.columns[0])]

    def contributed(self, rows: pa.Table, weight: Numbers) -> dict[str, Numbers]:
        """The weight of each row that has a value."""
        return {self.columns[0]: weight if self.column_name is None else weight * _given(rows, self.column_name)}

    @property
    def totals(self) -> Sequence[FloatSum | IntSum]:
        """None."""
        return ()

    @property
    def rounded(self) -> Sequence[Rounded]:
        """None."""
        return ()

    def carried(self) -> list[Column]:
        """Return the counter unchanged."""
        return [column(self.columns[0])]

    def result(self) -> Column:
        """The count."""
        return column(self.columns[0])

    def overflows(self) -> Column:
        """A count never does."""
        return F.lit(False)

    inexact = overflows


@dataclass(frozen=True, slots=True)
class Sum:
    """`sum` of ints or floats: an exact total and the number of values."""

    name: str
    value: str
    total: FloatSum | IntSum
    mean: bool = False

    overflow = OVERFLOW

    @property
    def columns(self) -> tuple[str, ...]:
        """The total's columns and the counter."""
        return (*self.total.columns, f"{self.name}_n")

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms of the total, and the rows with a value."""
        return (*of_value(self.total, self.value), counted(self.value))

    def unused(self, ranges: Mapping[str, ValueRange]) -> frozenset[str]:
        """The limbs that are out of reach."""
        value_range = ranges.get(self.value)
        return self.total.unused(value_range) if isinstance(self.total, FloatSum) and value_range is not None else frozenset()

    def contributions(self, weight: Column) -> list[Column]:
        """The terms of each row."""
        counted = F.when(column(self.value).isNotNull(), weight).otherwise(_zero()).alias(f"{self.name}_n")
        return [*self.total.contributions(column(self.value), weight), counted]

    def contributed(self, rows: pa.Table, weight: Numbers) -> dict[str, Numbers]:
        """The terms of each row."""
        known = _given(rows, self.value)
        return contributions(self.total, _values(rows, self.value), known, weight) | {f"{self.name}_n": weight * known}

    @property
    def totals(self) -> Sequence[FloatSum | IntSum]:
        """The total."""
        return (self.total,)

    @property
    def rounded(self) -> Sequence[Rounded]:
        """The mean, or the total of floats."""
        if self.mean:
            return (Mean(f"{self.name}_mean", self.total, f"{self.name}_n"),)
        return (self.total,) if isinstance(self.total, FloatSum) else ()

    def carried(self) -> list[Column]:
        """The total with its carries settled, and the counter."""
        return [*self.total.carried(), column(f"{self.name}_n")]

    def result(self) -> Column:
        """The total, or the mean; null where there is no value."""
        count = column(f"{self.name}_n")
        return F.when(count != 0, column(f"{self.name}_mean") if self.mean else self.total.total())

    def overflows(self) -> Column:
        """Whether an int total leaves 64 bits; a mean is a float."""
        return self.total.overflows() if isinstance(self.total, IntSum) and not self.mean else F.lit(False)

    def inexact(self) -> Column:
        """Whether the layout lacks limbs."""
        return self.total.inexact() if isinstance(self.total, FloatSum) else F.lit(False)


@dataclass(frozen=True, slots=True)
class WeightedMean:
    """`weighted_avg(value, weight)`: exact sums of value times weight and of the weights, over rows that have both."""

    name: str
    value: str
    weight: str
    products: FloatSum
    weights: FloatSum

    overflow = OVERFLOW

    @property
    def columns(self) -> tuple[str, ...]:
        """Both totals' columns."""
        return (*self.products.columns, *self.weights.columns)

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms of both totals."""
        return (*of_value(self.products, "product", self.value, self.weight), *of_value(self.weights, self.weight, self.value))

    def unused(self, ranges: Mapping[str, ValueRange]) -> frozenset[str]:
        """None: products reach further than what they are made of."""
        return frozenset()

    def contributions(self, weight: Column) -> list[Column]:
        """The terms of each row."""
        value, share = column(self.value).cast("double"), column(self.weight).cast("double")
        known = value.isNotNull() & share.isNotNull()
        product = F.when(known, value * share)
        return [*self.products.contributions(product, weight), *self.weights.contributions(F.when(known, share), weight)]

    def contributed(self, rows: pa.Table, weight: Numbers) -> dict[str, Numbers]:
        """The terms of each row."""
        values, shares = (_values(rows, name).astype("f8") for name in (self.value, self.weight))
        known = _given(rows, self.value) & _given(rows, self.weight)
        with np.errstate(over="ignore", invalid="ignore"):
            products = values * shares
        return contributions(self.products, products, known, weight) | contributions(self.weights, shares, known, weight)

    @property
    def totals(self) -> Sequence[FloatSum | IntSum]:
        """Both totals."""
        return self.products, self.weights

    @property
    def rounded(self) -> Sequence[Rounded]:
        """The total of the weights, and the mean."""
        return self.weights, Ratio(f"{self.name}_mean", self.products, self.weights)

    def carried(self) -> list[Column]:
        """Both totals with their carries settled."""
        return [*self.products.carried(), *self.weights.carried()]

    def result(self) -> Column:
        """The mean; null where the weights sum to zero."""
        return F.when(self.weights.total() != 0, column(f"{self.name}_mean"))

    def overflows(self) -> Column:
        """Floats do not overflow."""
        return F.lit(False)

    def inexact(self) -> Column:
        """Whether either layout lacks limbs."""
        return self.products.inexact() | self.weights.inexact()


def added_once(accumulators: Sequence[Accumulator], ranges: Mapping[str, ValueRange]) -> dict[str, str | None]:
    """Return, for each state column, the column whose sums it has: itself, an earlier one with the same term, `ROWS`, or None where nothing is added.

    `ranges` are the value ranges of argument columns, where known.
    """
    first: dict[Term, str] = {counted(None): ROWS}
    found: dict[str, str | None] = {}
    for one in accumulators:
        unused = one.unused(ranges)
        found |= {name: None if name in unused else first.setdefault(term, name) for name, term in zip(one.columns, one.terms, strict=True)}
    return found


def within(one: Accumulator, ranges: Mapping[str, ValueRange]) -> Accumulator:
    """Return an accumulator that tests no value where the ranges of its arguments show that all fit, or are finite."""
    if isinstance(one, BestValues):
        return replace(one, finite=one.value in ranges)
    if isinstance(one, Sum) and isinstance(one.total, FloatSum) and one.total.columns[-1] in one.unused(ranges):
        return replace(one, total=replace(one.total, tested=False))
    return one


def _given(rows: pa.Table, name: str) -> NDArray[np.bool_]:
    known: NDArray[np.bool_] = rows.column(name).is_valid().to_numpy()
    return known


def _values(rows: pa.Table, name: str) -> NDArray[Any]:
    values: NDArray[Any] = rows.column(name).fill_null(0).to_numpy()
    return values


def rounded(accumulators: Iterable[Accumulator]) -> list[Rounded]:
    """The totals and quotients that accumulators need."""
    return [one for accumulator in accumulators for one in accumulator.rounded]


def accumulator(use: AggregateUse) -> Accumulator | None:
    """The sums of a call; None where it has none (min, max, collect, ...) or a dynamic argument."""
    name = use.function.name
    if name not in RETRACTABLE or any(arg.type.is_dynamic for arg in use.args if name != "count"):
        return None
    if name == "count":
        return Count(use.column, None if use.star else use.columns[0])
    if name == "weighted_avg" and use.type.kind is not Kind.DECIMAL:
        value, weight = use.columns
        return WeightedMean(use.column, value, weight, FloatSum(f"{use.column}_p"), FloatSum(f"{use.column}_w"))
    if use.type.kind is Kind.DECIMAL:
        return decimal_accumulator(use)
    total = IntSum(use.column) if use.args[0].type.kind is Kind.INT else FloatSum(use.column)
    return Sum(use.column, use.columns[0], total, mean=name == "avg")


def retractable(use: AggregateUse) -> Accumulator | None:
    """The accumulator of a call, sum or best values; None where the call needs all rows of a group."""
    return accumulator(use) or best_values(use)


def bests_of(accumulators: Iterable[Accumulator]) -> list[BestValues]:
    """Those accumulators that keep best values."""
    return [one for one in accumulators if isinstance(one, BestValues)]


def native_aggregate(use: AggregateUse) -> Column | None:
    """The aggregate column of a call that the engine computes from the rows; None where Python must (collect, dynamic values)."""
    if use.function.name not in NATIVE or any(arg.type.is_dynamic for arg in use.args):
        return None
    value, key = column(use.columns[0]), F.col("_key")
    by_order = {"first": F.min_by(value, key), "last": F.max_by(value, key)}
    floats = use.args[0].type.kind is Kind.FLOAT
    by_value = {"min": least_value(value, floats=floats), "max": greatest_value(value, floats=floats)}
    some = F.min_by(value, F.when(value.isNotNull(), key))
    return {**by_order, **by_value, "any": some}[use.function.name].alias(use.column)
