"""Expressions as columns: value, type, and where they fail.

A row that fails never raises. In a chain of operations, each is null only where an input is null or the operation failed. So
only those inputs (`leaves`) are remembered: the chain failed where its value is null and no leaf is. That costs one null check
for a chain, and nothing where no operation can fail. A part that reads fewer leaves than the whole may fail beside a null leaf
of another part; such parts (`hidden`) are checked only where the value is null.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from itertools import chain, count
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from cxl.functions.spark_call import NOT_CONSTANT, date_literal
from cxl.types.types import MOST_DIGITS, Kind, Type
from cxl.values import decimals
from cxl.values.dynamic import TRAILING_ZEROS, WHOLE_DECIMAL

_SPARK_TYPES = {Kind.BOOL: "boolean", Kind.INT: "bigint", Kind.FLOAT: "double", Kind.DATE: "date", Kind.DATE_TIME: "timestamp"}
_EPOCH = datetime(1970, 1, 1)
NUMBERS = count()
"""Identities of leaves."""


def spark_type(type_: Type) -> str:
    """Return the Spark type of a column. Dynamic values, and nulls without a type, are text."""
    return f"decimal({MOST_DIGITS},{type_.scale})" if type_.kind is Kind.DECIMAL else _SPARK_TYPES.get(type_.kind, "string")


def column_named(name: str) -> Column:
    """Return the input column of a name with any characters."""
    return F.col(f"`{name.replace('`', '``')}`")


def literal(value: Any, type_: Type) -> Column:
    """Return a constant as a column. Date-times do not depend on the client's time zone."""
    if isinstance(value, datetime):
        return F.timestamp_micros(F.lit((value - _EPOCH) // timedelta(microseconds=1)))
    if isinstance(value, int) and not isinstance(value, bool) and type_.kind is Kind.FLOAT:
        value = float(value)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return F.lit(value).cast(spark_type(type_))
    if isinstance(value, date):
        dated: Column = date_literal(F, value)
        return dated
    if isinstance(value, Decimal):
        return F.lit(decimals.text_of(value)).cast(spark_type(type_))
    assert isinstance(value, bool | float | str)
    return F.lit(value)


def canonical_text(stored: Column) -> Column:
    """Return the text of dynamic values that equal values share, as `cxl.values.dynamic.canonical` writes it."""
    whole = F.regexp_replace(stored, WHOLE_DECIMAL, "$1$2$3")
    return F.regexp_replace(whole, TRAILING_ZEROS, "$1$2$3")


def any_of(*conditions: Column | None) -> Column | None:
    """Return a condition that is true where one of the conditions is; None where there are none."""
    known = [condition for condition in conditions if condition is not None]
    return balanced(known, lambda left, right: left | right) if known else None


def balanced(columns: list[Column], join: Callable[[Column, Column], Column]) -> Column:
    """Join columns in pairs of pairs, because plans may nest only so deep."""
    while len(columns) > 1:
        columns = [reduce(join, columns[index : index + 2]) for index in range(0, len(columns), 2)]
    return columns[0]


def both(left: Column | None, right: Column | None) -> Column | None:
    """Return a condition that is true where both are. An absent condition is true."""
    if left is None or right is None:
        return right if left is None else left
    return left & right


@dataclass(frozen=True, slots=True)
class Lowered:
    """An expression as a column.

    Args:
        leaves: By identity. The value is null only where one of them is, or, if `fallible`, where an operation failed.
        failed: True where a part failed that value and leaves do not show. None: no such part exists.
        hidden: Conditions for parts that failed beside a null leaf of another part. Only valid where the value is null.
    """

    value: Column
    type: Type
    leaves: Mapping[Any, Column] = field(default_factory=dict)
    fallible: bool = False
    failed: Column | None = None
    hidden: tuple[Column, ...] = ()
    constant: Any = NOT_CONSTANT

    def at(self, value: Column) -> "Lowered":
        """Return the same expression with its value in another column."""
        return replace(self, value=value)

    @property
    def failure(self) -> Column | None:
        """True where this expression failed, else false; None where it cannot."""
        if not self.fallible:
            return self.failed
        whole = self.broken
        if self.hidden:
            whole = F.when(self.value.isNull(), any_of(self.complete, *self.hidden)).otherwise(F.lit(False))
        return any_of(self.failed, whole)

    @property
    def broken(self) -> Column:
        """True where there is no value although no leaf is null, else false."""
        return self.value.isNull() & self.complete

    @property
    def complete(self) -> Column:
        """True where no leaf is null."""
        present = [leaf.isNotNull() for leaf in self.leaves.values()]
        return balanced(present, lambda left, right: left & right) if present else F.lit(True)

    @property
    def never_null(self) -> bool:
        """Whether the value is never null."""
        return not self.leaves and not self.fallible


def opaque(value: Column, type_: Type, failed: Column | None = None) -> Lowered:
    """Return a column whose nulls say nothing about a failure."""
    return Lowered(value, type_, {next(NUMBERS): value}, failed=failed)


def strict(value: Column, type_: Type, parts: list[Lowered], fallible: bool = False) -> Lowered:
    """Return an operation that is null where a part is null, or where it failed. All parts are evaluated, so each may fail beside a null of another."""
    leaves = {key: leaf for part in parts for key, leaf in part.leaves.items()}
    unseen = [part.broken for part in parts if part.fallible and len(part.leaves) < len(leaves)]
    hidden = (*chain.from_iterable(part.hidden for part in parts), *unseen)
    return Lowered(value, type_, leaves, fallible or any(part.fallible for part in parts), any_of(*(part.failed for part in parts)), hidden)


def constant(value: Any, type_: Type) -> Lowered:
    """Return a literal."""
    column = literal(value, type_)
    return opaque(column, type_) if value is None else Lowered(column, type_, constant=value)
