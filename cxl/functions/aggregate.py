"""Aggregate functions.

`python` takes the values of a group: one list for each argument, in row order. Nulls are left out, except by `count(*)` and
`collect`. Sums are exact and rounded once; sums of Decimals and Ints are not rounded at all. A Decimal with a Float in one group
fails the group.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from typing import Any

from cxl.functions.registry import Builtin, Param, register
from cxl.types import rules
from cxl.types.types import ANY, ARRAY, DECIMAL, FLOAT, INT, NUMERIC, Kind, Type
from cxl.values import decimals
from cxl.values.failure import CxlFailure
from cxl.values.operators import BINARY, is_nan, is_number

_less = BINARY["<"]


def known(values: Iterable[Any]) -> list[Any]:
    """Return the values that are not null."""
    return [value for value in values if value is not None]


def is_less(left: Any, right: Any) -> bool:
    """Whether `min` takes the left value, and `max` the right one. Neither is taken of values that do not compare. NaN is greater than every number."""
    if {type(left), type(right)} == {Decimal, float}:
        raise _mixed()
    return bool(_less(left, right)) or (is_nan(right) and is_number(left) and not is_nan(left))


def _best(values: Iterable[Any], better: Callable[[Any, Any], bool]) -> Any:
    """The first value that is not null and that no other value beats."""
    found = known(values)
    return reduce(lambda best, value: value if better(value, best) else best, found) if found else None


def least(values: Iterable[Any]) -> Any:
    """Return the least value that is not null; null where there is none."""
    return _best(values, is_less)


def greatest(values: Iterable[Any]) -> Any:
    """Return the greatest value that is not null; null where there is none."""
    return _best(values, lambda new, best: is_less(best, new))


def exact_sum(values: Iterable[float]) -> float:
    """Return the sum of Floats and Ints, rounded once. Infinities and NaN add as in IEEE 754."""
    known = list(values)
    special = [value for value in known if not math.isfinite(value)]
    if special:
        return math.fsum(set(special)) if len(set(map(str, special))) == 1 else math.nan
    return nearest(_added(known))


def _added(values: Iterable[float]) -> Fraction:
    return sum(map(Fraction, values), Fraction(0))


def nearest(exact: Fraction) -> float:
    """Return the nearest Float; an infinity where the value is beyond the range of Floats."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def quotient(total: Fraction, divisor: Fraction) -> float:
    """Return one exact sum divided by another, rounded once."""
    return nearest(total / divisor)


def _mixed() -> CxlFailure:
    failure = decimals.mixed()
    failure.category = "aggregate_finalize"
    return failure


def _numbers(values: Iterable[Any]) -> list[Any]:
    found = known(values)
    for value in found:
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise CxlFailure(f"type mismatch: expected a number, got {type(value).__name__}", category="aggregate_type_error")
    if {type(value) for value in found} >= {Decimal, float}:
        raise _mixed()
    return found


def _are_decimals(numbers: Sequence[Any]) -> bool:
    """Whether some numbers are Decimals. Raises CxlFailure where others are Floats."""
    some = any(isinstance(number, Decimal) for number in numbers)
    if some and any(isinstance(number, float) for number in numbers):
        raise _mixed()
    return some


def nearest_decimal(exact: Fraction, scale: int) -> Decimal:
    """Return an exact number rounded once, half to even, to a scale. Raises CxlFailure where it has more than 38 digits."""
    try:
        return decimals.nearest(exact, scale)
    except CxlFailure as failure:
        raise CxlFailure(failure.message, category="aggregate_finalize") from None


def mean_scale(*scales: int) -> int:
    """Return the scale of a mean of Decimals."""
    return max(rules.QUOTIENT_SCALE, *scales)


def total(values: Iterable[Any]) -> Any:
    """Return the sum of the values that are not null: an Int where all are Int, a Decimal where some are. Raises CxlFailure beyond 64 bits, or 38 digits."""
    numbers = _numbers(values)
    if not numbers:
        return None
    if _are_decimals(numbers):
        return nearest_decimal(_added(numbers), max(map(decimals.scale_of, numbers)))
    if any(isinstance(number, float) for number in numbers):
        return exact_sum(numbers)
    result = sum(numbers)
    if not -(2**63) <= result < 2**63:
        raise CxlFailure("integer overflow in sum", category="aggregate_finalize")
    return result


def mean(values: Iterable[Any]) -> Any:
    """Return the arithmetic mean of the values that are not null."""
    numbers = _numbers(values)
    if _are_decimals(numbers):
        return nearest_decimal(_added(numbers) / len(numbers), mean_scale(*map(decimals.scale_of, numbers)))
    if any(not math.isfinite(number) for number in numbers):
        return exact_sum(numbers)
    return quotient(_added(numbers), Fraction(len(numbers))) if numbers else None


def weighted_mean(values: Iterable[Any], weights: Iterable[Any]) -> Any:
    """Return the sum of value times weight, divided by the sum of the weights; null where that is zero or no pair is complete."""
    pairs = [(value, weight) for value, weight in zip(values, weights, strict=True) if value is not None and weight is not None]
    parts = _numbers(part for pair in pairs for part in pair)
    if _are_decimals(parts):
        shares = _added(weight for _, weight in pairs)
        above = sum((Fraction(value) * Fraction(weight) for value, weight in pairs), Fraction(0))
        return nearest_decimal(above / shares, mean_scale(*map(decimals.scale_of, parts))) if shares else None
    products, weights = [float(value) * float(weight) for value, weight in pairs], [weight for _, weight in pairs]
    if not all(map(math.isfinite, weights)):
        return exact_sum(products) / exact_sum(weights)
    divisor = _added(weights)
    return _weighed(products, divisor) if divisor else None


def _weighed(products: Sequence[float], divisor: Fraction) -> float:
    if all(map(math.isfinite, products)):
        return quotient(_added(products), divisor)
    return exact_sum(products) * (1 if divisor > 0 else -1)


def _entry(name: str, doc: str, python: Any, returns: Any, params: tuple[Param, ...], **more: Any) -> None:
    register(Builtin(name=name, receiver=None, kind="aggregate", doc=doc, python=python, returns=returns, params=params, **more,
                     category="Aggregate", section="Aggregate Functions"))  # fmt: skip


def argument_type(_: Type, arguments: tuple[Type, ...]) -> Type:
    """Return the type of a function that returns one of the values."""
    return arguments[0].or_null if arguments else ANY


def sum_type(_: Type, arguments: tuple[Type, ...]) -> Type:
    """Return the type of a sum: the type of the numbers."""
    given = arguments[0] if arguments else NUMERIC
    if given.kind in (Kind.INT, Kind.FLOAT, Kind.DECIMAL):
        return given.or_null
    return _DECIMALS_IN_ANY if given.holds_decimals else NUMERIC.or_null


def mean_type(_: Type, arguments: tuple[Type, ...]) -> Type:
    """Return the type of a mean: Float, of Decimals and Ints with a Decimal among them a Decimal."""
    kinds = {type_.kind for type_ in arguments}
    if kinds <= {Kind.INT, Kind.DECIMAL} and Kind.DECIMAL in kinds:
        return rules.quotient(*arguments).or_null
    return _DECIMALS_IN_ANY if any(type_.may_be_decimal for type_ in arguments) else FLOAT.or_null


_DECIMALS_IN_ANY = replace(ANY, holds_decimals=True)
NUMBER = (NUMERIC, DECIMAL)
"""Types that sums and means take."""
_VALUE, _NUMBER = (Param("value"),), (Param("value", NUMBER),)
_entry("sum", "The sum; null where there is no value.", total, sum_type, _NUMBER, shown_returns="Nullable(Int | Float | Decimal)")
_entry("count", "`count(*)`: the number of records; `count(value)`: of values that are not null.", lambda values: len(known(values)), INT,
       (Param("value", optional=True),), star=True)  # fmt: skip
_entry("avg", "The arithmetic mean: the exact quotient, rounded once.", mean, mean_type, _NUMBER, shown_returns="Nullable(Float | Decimal)")
_entry("min", "The least value; of values that do not compare, such as a text and a number, the first one.", least, argument_type, _VALUE)
_entry("max", "The greatest value; of values that do not compare, the first one.", greatest, argument_type, _VALUE)
_entry("collect", "All values as an array, nulls too, in row order.", list, ARRAY, _VALUE)
_entry("weighted_avg", "The weighted mean: the exact sum of value times weight, divided by the exact sum of the weights, rounded once.", weighted_mean, mean_type,
       (*_NUMBER, Param("weight", NUMBER)), unites=True, shown_returns="Nullable(Float | Decimal)")  # fmt: skip
_entry("first", "The value of the first record.", lambda values: next(iter(values), None), argument_type, _VALUE)
_entry("last", "The value of the last record.", lambda values: values[-1] if values else None, argument_type, _VALUE)
_entry("any", "One value that is not null: the first.", lambda values: next(iter(known(values)), None), argument_type, _VALUE)
