"""Numeric methods of Int, Float and Decimal."""

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import reduce
from typing import Any

from cxl.functions import decimal_columns
from cxl.functions.decimal_columns import Number
from cxl.functions.registry import Builtin, Param, register
from cxl.functions.spark_call import NOT_CONSTANT, Fallible, Site, Unsure
from cxl.types import rules
from cxl.types.types import ANY, DECIMAL, FLOAT, INT, MOST_DIGITS, NUMERIC, Kind, Type
from cxl.values import decimals
from cxl.values.failure import overflow

NUMBER = (NUMERIC, DECIMAL)
"""Types that numeric methods accept."""

_EXACT = 2.0**52
"""Every Float from here on is a whole number."""
_INT_LIMIT = 2.0**63
_PLACES = range(-15, 23)
"""Powers of ten that a Float holds exactly."""


def _entry(name: str, doc: str, example: tuple[str, str], python: Any, spark: Any, **more: Any) -> None:
    settings = {"receiver": NUMBER, "category": "Numeric", "section": "Numeric Methods", **more}
    register(Builtin(name=name, doc=doc, examples=(example,), python=python, spark=spark, **settings))


def _same(receiver: Type, arguments: tuple[Type, ...]) -> Type:
    """The common type of receiver and arguments: that of their difference, Numeric where one may be a Float, Any where one may be a Decimal."""
    return reduce(lambda left, right: rules.arithmetic("-", left, right) or NUMERIC, arguments, receiver)


def _number(site: Site) -> Number:
    return Number.of(site.f, site.receiver, site.receiver_type)


def _unsure(column: Any) -> Any:
    return None if column is None else Unsure(column)


def _unless_decimal(type_: Type) -> Callable[[Type, tuple[Type, ...]], Type]:
    """The type of a method that gives Decimals for Decimals, and one other type for all else."""

    def rule(receiver: Type, _: tuple[Type, ...]) -> Type:
        if receiver.kind is Kind.DECIMAL:
            return receiver
        return replace(ANY, holds_decimals=True) if receiver.holds_decimals else type_

    return rule


# Absolute value, whole numbers ------------------------------------------------------------------------------------------
def _abs(value: Any) -> Any:
    if isinstance(value, int) and value == -(2**63):
        raise overflow("abs")
    return value.copy_abs() if isinstance(value, Decimal) else abs(value)


def _abs_column(site: Site) -> Any:
    if site.kind is Kind.FLOAT:
        return site.f.abs(site.receiver)
    if site.kind is Kind.DECIMAL:
        negated = decimal_columns.negated(_number(site))
        return None if negated is None else Unsure(site.f.when(site.receiver < 0, negated).otherwise(site.receiver))
    negated = site.f.try_subtract(site.f.lit(0).cast("bigint"), site.receiver)
    return Fallible(site.f.when(site.receiver < 0, negated).otherwise(site.receiver))


def _whole(name: str) -> tuple[Any, Any]:
    """`ceil` or `floor`, in Python and as a column."""
    function = getattr(math, name)

    rounding = {"ceil": ROUND_CEILING, "floor": ROUND_FLOOR}[name]

    def python(value: Any) -> Any:
        if isinstance(value, Decimal):
            return decimals.whole(value, rounding)
        if type(value) is float and not -_INT_LIMIT <= value < _INT_LIMIT:
            raise overflow(name)
        return int(function(value))

    def column(site: Site) -> Any:
        if site.kind is Kind.INT or (site.kind is Kind.DECIMAL and not site.receiver_type.scale):
            return site.receiver
        if site.kind is Kind.DECIMAL:
            return getattr(site.f, name)(site.receiver).cast(f"decimal({MOST_DIGITS},0)")
        inside = (site.receiver >= site.f.lit(-_INT_LIMIT)) & (site.receiver < site.f.lit(_INT_LIMIT))
        return Fallible(site.f.when(inside, getattr(site.f, name)(site.receiver)))

    return python, column


_entry("abs", "The absolute value; Int stays Int.", ("(-3.14).abs()", "3.14"), _abs, _abs_column, returns=lambda receiver, _: receiver, shown_returns="Int | Float | Decimal")
_WHOLE: dict[str, Any] = {"returns": _unless_decimal(INT), "scale": lambda scale, args: 0, "shown_returns": "Int | Decimal"}
_entry("ceil", "The smallest Int that is not less; of a Decimal a Decimal of scale 0.", ("3.2.ceil()", "4"), *_whole("ceil"), **_WHOLE)
_entry("floor", "The largest Int that is not greater; of a Decimal a Decimal of scale 0.", ("(-3.2).floor()", "-4"), *_whole("floor"), **_WHOLE)


# Rounding ---------------------------------------------------------------------------------------------------------------
def _half_away(value: float) -> float:
    whole = float(math.trunc(value))
    return whole + math.copysign(1.0, value) if abs(value - whole) >= 0.5 else whole


def _round(value: Any, places: int = 0) -> Any:
    """Decimals half to even, all other numbers as Floats."""
    return _round_decimal(value, places) if isinstance(value, Decimal) else round_half_away(value, places)


def _round_decimal(value: Decimal, places: int) -> Decimal:
    scale = decimals.scale_of(value)
    if places >= scale:
        return value
    if places >= 0:
        return decimals.rounded(value, places)
    if -places > MOST_DIGITS:
        return decimals.of_units(0, 0)
    power = 10**-places
    return decimals.of_units(decimals.half_even(decimals.units_of(value, scale), power * 10**scale) * power, 0)


def _rounded_scale(scale: int, args: tuple[Any, ...]) -> int:
    """The scale of a rounded Decimal: as many digits as a literal says, else its own."""
    places = args[0] if args else 0
    return max(places, 0) if type(places) is int and places <= MOST_DIGITS else scale


_ROUNDED: dict[str, Any] = {"returns": _unless_decimal(FLOAT), "scale": _rounded_scale, "shown_returns": "Float | Decimal"}


def round_half_away(value: float, places: int = 0) -> float:
    """Round a Float to decimal places, halves away from zero. Never returns -0.0."""
    value = float(value)
    if places < _PLACES.start or not math.isfinite(value):
        return 0.0 if math.isfinite(value) else value
    power = 10.0 ** min(abs(places), 22)
    scaled = value * power if places >= 0 else value / power
    if abs(scaled) >= _EXACT:
        return value
    rounded = _half_away(scaled)
    return (rounded / power if places >= 0 else rounded * power) + 0.0


def _round_column(site: Site) -> Any:
    places = site.constant(0, 0)
    if site.kind is Kind.DECIMAL:
        is_scale = type(places) is int and 0 <= places <= MOST_DIGITS
        return _unsure(decimal_columns.rounded(_number(site), places)) if is_scale else None
    if places is NOT_CONSTANT or places not in _PLACES:
        return None
    power, value = site.f.lit(10.0 ** abs(places)), site.receiver.cast("double")
    scaled = value * power if places >= 0 else value / power
    rounded = site.f.round(scaled, 0)
    result = rounded / power if places >= 0 else rounded * power
    return site.f.when(site.f.abs(scaled) < site.f.lit(_EXACT), site.f.when(result == 0.0, site.f.lit(0.0)).otherwise(result)).otherwise(value)


_DECIMALS = "A Decimal is rounded half to even, and a literal number of places is the scale of the result."
_entry("round", f"Rounds to decimal places (0 when left out), halves away from zero. {_DECIMALS}", ("3.456.round(2)", "3.46"),
       _round, _round_column, params=(Param("decimals", INT, optional=True),), **_ROUNDED)  # fmt: skip
_entry("round_to", f"Rounds to decimal places, halves away from zero. {_DECIMALS}", ("19.995.round_to(2)", "20.0"),
       _round, _round_column, params=(Param("decimals", INT),), **_ROUNDED)  # fmt: skip


# Comparing --------------------------------------------------------------------------------------------------------------
def _chosen(choose: Callable[..., Any]) -> Callable[..., Any]:
    """One of some numbers. With a Float all are Floats, with a Decimal all have the greatest scale."""

    def python(*values: Any) -> Any:
        types = {type(value) for value in values}
        if Decimal not in types:
            return choose(*(map(float, values) if float in types else values))
        if float in types:
            raise decimals.mixed()
        return decimals.rounded(choose(*values), max(map(decimals.scale_of, values)))

    return python


_min = _chosen(lambda value, other: min(other, value))
_max = _chosen(lambda value, other: max(other, value))
_clamp = _chosen(lambda value, low, high: low if value < low else min(value, high))


def _columns_alike(site: Site) -> tuple[list[Any], bool]:
    """Receiver and arguments in one type, and whether that is Float."""
    columns = [site.receiver, *site.args]
    is_float = any(one.kind is Kind.FLOAT for one in (site.receiver_type, *site.arg_types))
    return ([one.cast("double") for one in columns] if is_float else columns), is_float


def _less(site: Site, left: Any, right: Any, is_float: bool) -> Any:
    """`<` of IEEE 754. Engines take NaN for the greatest number, and Sail one with a sign for the least."""
    return (left < right) & ~site.f.isnan(right) & ~site.f.isnan(left) if is_float else left < right


def _no_null(site: Site, columns: list[Any], value: Any) -> Any:
    """The value, or null where an argument is null."""
    known = [one for one, constant in zip(columns[1:], site.constants, strict=True) if constant is NOT_CONSTANT]
    for one in (columns[0], *known):
        value = site.f.when(one.isNotNull(), value)
    return value


def _decimal_columns(site: Site) -> list[Any] | None:
    """Receiver and arguments at the greatest scale, null where one does not fit; None where none is a Decimal."""
    types = (site.receiver_type, *site.arg_types)
    if all(type_.kind is not Kind.DECIMAL for type_ in types):
        return None
    scale = max(type_.scale for type_ in types)
    numbers = [Number.of(site.f, *one) for one in zip((site.receiver, *site.args), types, (NOT_CONSTANT, *site.constants), strict=True)]
    return [number.at_scale(scale) for number in numbers]


def _extreme_column(pick: Any) -> Any:
    def build(site: Site) -> Any:
        exact = _decimal_columns(site)
        if exact is not None:
            small, large = pick(*exact)
            return Unsure(_no_null(site, exact, site.f.when(small < large, exact[0]).otherwise(exact[1])))
        columns, is_float = _columns_alike(site)
        small, large = pick(*columns)
        return _no_null(site, columns, site.f.when(_less(site, small, large, is_float), columns[0]).otherwise(columns[1]))

    return build


def _clamp_column(site: Site) -> Any:
    exact = _decimal_columns(site)
    if exact is not None:
        value, low, high = exact
        return Unsure(_no_null(site, exact, site.f.when(value < low, low).when(high < value, high).otherwise(value)))
    columns, is_float = _columns_alike(site)
    value, low, high = columns
    below, above = _less(site, value, low, is_float), _less(site, high, value, is_float)
    return _no_null(site, columns, site.f.when(below, low).when(above, high).otherwise(value))


_OTHER = (Param("other", NUMBER),)
_UNITED: dict[str, Any] = {"returns": _same, "unites": True, "shown_returns": "Int | Float | Decimal"}
_entry("min", "The smaller of the two.", ("10.min(20)", "10"), _min, _extreme_column(lambda a, b: (a, b)), params=_OTHER, **_UNITED)
_entry("max", "The greater of the two.", ("10.max(20)", "20"), _max, _extreme_column(lambda a, b: (b, a)), params=_OTHER, **_UNITED)
_entry("clamp", "The value, but not below `min` and not above `max`.", ("150.clamp(0, 100)", "100"), _clamp, _clamp_column,
       params=(Param("min", NUMBER), Param("max", NUMBER)), **_UNITED)  # fmt: skip
