"""`min`, `max`, `first`, `last` and `any` as accumulators: of each group its best values in order, and how many values it has.

`min` and `max` order values by themselves and count the rows of each. `first`, `last` and `any` order them by the keys of their records. A list may be
cut off behind any value. It then holds every value of the group down to its last one, the *floor*, and at least as many rows of the floor as are counted.
A value beyond the floor changes nothing. Where the rows of a list are all of the group's, the list is complete and has no floor. A list that is empty while
the group has values has run out: the group's rows are read again. What this means for single lists is in `best_lists`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from changelog.columns import column
from changelog.exact.ranges import ValueRange
from changelog.exact.rounding import ExactSum, Rounded
from changelog.lazy_imports import F, pa
from cxl.typed.tree import AggregateUse
from operators.aggregate.native_extremes import greatest_value, least_value
from operators.aggregate.terms import Term, counted
from operators.core.row_type import physical_type

if TYPE_CHECKING:
    from pyspark.sql import Column

    from operators.aggregate.decimal_accumulators import Numbers


RECORD = "__record"
"""The column with the key of a record, where `_key` is that of its group."""
_BY_VALUE = ("min", "max")
_BY_KEY = ("first", "last", "any")
_NUMBERS: Mapping[str, Callable[[Column], Column]] = {
    "bigint": lambda value: value,
    "double": lambda value: value + F.lit(0.0),
    "date": lambda value: F.unix_date(value).cast("bigint"),
    "timestamp": lambda value: F.unix_micros(value).cast("bigint"),
}
"""Types of values that have a number, and what makes it."""


@dataclass(frozen=True, slots=True)
class BestValues:
    """One call.

    Attributes:
        name: The column of the result.
        value: The column of the argument.
        kind: The engine's type of the values.
        by_key: Whether values are in the order of their records, not in their own.
        descending: Whether the greatest is the best.
        with_nulls: Whether a null is a value.
        finite: Whether all floats are known to be finite.
    """

    name: str
    value: str
    kind: str
    by_key: bool
    descending: bool
    with_nulls: bool
    finite: bool = False

    # The number of values, as all accumulators have sums ------------------------------------------------------------------
    @property
    def columns(self) -> tuple[str, ...]:
        """The number of the group's values."""
        return (f"{self.name}_n",)

    @property
    def terms(self) -> tuple[Term, ...]:
        """The rows that have a value."""
        return (counted(None if self.with_nulls else self.value),)

    @property
    def overflow(self) -> str:
        """Nothing: a value fits its type."""
        return ""

    def unused(self, ranges: Mapping[str, ValueRange]) -> frozenset[str]:
        """None."""
        return frozenset()

    def contributions(self, weight: Column) -> list[Column]:
        """The weight of each row that has a value."""
        amount = weight if self.with_nulls else F.when(column(self.value).isNotNull(), weight).otherwise(F.lit(0).cast("bigint"))
        return [amount.alias(self.columns[0])]

    def contributed(self, rows: pa.Table, weight: Numbers) -> dict[str, Numbers]:
        """The weight of each row that has a value."""
        given: Numbers = weight if self.with_nulls else weight * rows.column(self.value).is_valid().to_numpy()
        return {self.columns[0]: given}

    @property
    def totals(self) -> Sequence[ExactSum]:
        """None."""
        return ()

    @property
    def rounded(self) -> Sequence[Rounded]:
        """None."""
        return ()

    def carried(self) -> list[Column]:
        """The number unchanged."""
        return [column(self.columns[0])]

    def result(self) -> Column:
        """The best value, which `first_ones` adds."""
        return column(self.best)

    def overflows(self) -> Column:
        """A value never does."""
        return F.lit(False)

    inexact = overflows

    # The list ---------------------------------------------------------------------------------------------------------
    @property
    def best(self) -> str:
        """The column of the first value of the list."""
        return f"{self.name}_best"

    @property
    def values(self) -> str:
        """The state column with the list of values, the best one first."""
        return f"{self.name}_values"

    @property
    def beside(self) -> str:
        """The state column with the list beside it: the keys of records, or how many rows have each value; null: one row each."""
        return f"{self.name}_keys" if self.by_key else f"{self.name}_counts"

    @property
    def lists(self) -> tuple[str, str]:
        """Both state columns."""
        return self.values, self.beside

    @property
    def list_types(self) -> tuple[str, str]:
        """The engine's types of both."""
        return f"array<{self.kind}>", "array<binary>" if self.by_key else "array<bigint>"

    def first_one(self) -> Column:
        """The best value, as a column of its own."""
        return F.get(column(self.values), F.lit(0)).alias(self.best)

    def has_run_out(self) -> Column:
        """Whether a group has values and its list has none."""
        return (F.size(column(self.values)) == 0) & (column(self.columns[0]) > 0)

    @property
    def is_wide(self) -> bool:
        """Whether values may take many bytes."""
        return self.kind == "string"

    def number(self) -> Column | None:
        """The value as a number with the same order; None of types that have none, and where values are in the order of their records."""
        make = None if self.by_key else _NUMBERS.get(self.kind)
        return None if make is None else make(column(self.value))

    def aggregates(self, size: int, bound: float | None = None) -> list[Column]:
        """Aggregates of a group's rows, whose keys are in `RECORD`. `listed` makes lists of at most `size` values of them.

        Args:
            size: The most values of a list.
            bound: Only values whose `number` is as good as this one are sorted, and the best one of each group; None: all are.
        """
        value = self._ready()
        if bound is not None and size > 1:
            some = F.when(self._reaches(bound), value)
            return [self._sliced(F.collect_list(some), size).alias(self.values), self._extreme(value).alias(self.best)]
        if self.by_key:
            key = self._ordering()
            if size == 1:
                return [F.array(self._by_key(value, key)).alias(self.values), F.array(self._extreme(key)).alias(self.beside)]
            pair = F.struct(F.col(RECORD).alias(f"{self.name}_key"), value.alias(f"{self.name}_value"))  # Sail takes aggregates for one whose members have one name
            return [self._sliced(F.collect_list(pair if self.with_nulls else F.when(value.isNotNull(), pair)), size).alias(self.values)]
        return [(F.array(self._extreme(value)) if size == 1 else self._sliced(F.collect_list(value), size)).alias(self.values)]

    def listed(self, size: int, bound: float | None = None) -> list[Column]:
        """The lists, from `aggregates` of the same size and bound."""
        if not self.by_key:
            values = column(self.values)
            if bound is not None and size > 1:
                values = F.when(F.size(values) > 0, values).otherwise(F.array(column(self.best))).alias(self.values)
            return [values, F.lit(None).cast("array<bigint>").alias(self.beside)]
        if size == 1:
            return [column(self.values), column(self.beside)]
        members = ((self.values, f"{self.name}_value"), (self.beside, f"{self.name}_key"))
        return [F.transform(column(self.values), _member(member)).alias(name) for name, member in members]

    def _reaches(self, bound: float) -> Column:
        """Whether a value is as good as a bound, or better. NaN is the greatest."""
        number = self.number()
        assert number is not None  # as there is a bound
        if not self.descending:
            return number <= F.lit(bound)
        reached = number >= F.lit(bound)
        return reached | F.isnan(number) if self.kind == "double" and not self.finite else reached

    def _sliced(self, rows: Column, size: int) -> Column:
        return F.slice(F.sort_array(rows, asc=not self.descending), 1, size)

    def _ready(self) -> Column:
        """The value; of the zeros, which are equal, the one without a sign where values are compared."""
        value = column(self.value)
        return value + F.lit(0.0) if self.kind == "double" and not self.by_key else value

    def _ordering(self) -> Column:
        """The key of the record of a value, null of a record without one."""
        return F.col(RECORD) if self.with_nulls else F.when(column(self.value).isNotNull(), F.col(RECORD))

    def _extreme(self, rank: Column) -> Column:
        """The best of a group's values, or of their keys."""
        floats = self.kind == "double" and not self.by_key and not self.finite
        return greatest_value(rank, floats=floats) if self.descending else least_value(rank, floats=floats)

    def _by_key(self, value: Column, key: Column) -> Column:
        return F.max_by(value, key) if self.descending else F.min_by(value, key)

    # A large delta ------------------------------------------------------------------------------------------------------
    @property
    def changes(self) -> tuple[str, str, str]:
        """The columns of `changed`: the best value that came, its key where `by_key` (else the value again), the best rank that went."""
        return f"{self.name}_came", f"{self.name}_rank", f"{self.name}_went"

    def changed(self, weight: Column) -> list[Column]:
        """Aggregates of the op rows of a group: what is the best of what came and of what went."""
        rank = self._ordering() if self.by_key else self._ready()
        came, went = F.when(weight > 0, rank), F.when(weight < 0, rank)
        best = self._extreme(came)
        value = self._by_key(self._ready(), came) if self.by_key else best
        return [made.alias(name) for made, name in zip((value, best, self._extreme(went)), self.changes, strict=True)]


def _member(name: str) -> Callable[[Column], Column]:
    """A function that takes a member out of a struct."""
    return lambda pair: pair.getField(name)


def best_values(use: AggregateUse) -> BestValues | None:
    """The accumulator of a call; None of other functions, and of values that have no order of their own."""
    name = use.function.name
    if name not in (*_BY_VALUE, *_BY_KEY) or any(arg.type.is_dynamic for arg in use.args):
        return None
    kind = physical_type(use.args[0].type)
    return BestValues(use.column, use.columns[0], kind, name in _BY_KEY, name in ("max", "last"), name in ("first", "last"))
