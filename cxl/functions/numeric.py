"""Numeric methods of Int and Float."""

import math
from functools import reduce
from typing import Any

from cxl.functions.registry import Builtin, Param, register
from cxl.functions.spark_call import NOT_CONSTANT, Fallible, Site
from cxl.types import rules
from cxl.types.types import FLOAT, INT, NUMERIC, Kind, Type
from cxl.values.failure import overflow

_EXACT = 2.0**52
"""Every Float from here on is a whole number."""
_INT_LIMIT = 2.0**63
_PLACES = range(-15, 23)
"""Powers of ten that a Float holds exactly."""


def _entry(name: str, doc: str, example: tuple[str, str], python: Any, spark: Any, **more: Any) -> None:
    settings = {"receiver": NUMERIC, "category": "Numeric", "section": "Numeric Methods", **more}
    register(Builtin(name=name, doc=doc, examples=(example,), python=python, spark=spark, **settings))


def _same(receiver: Type, arguments: tuple[Type, ...]) -> Type:
    """The common type of receiver and arguments: that of their difference, Numeric where one may be a Float."""
    return reduce(lambda left, right: rules.arithmetic("-", left, right) or NUMERIC, arguments, receiver)


# Absolute value, whole numbers ------------------------------------------------------------------------------------------
def _abs(value: float) -> float:
    if isinstance(value, int) and value == -(2**63):
        raise overflow("abs")
    return abs(value)


def _abs_column(site: Site) -> Any:
    if site.kind is Kind.FLOAT:
        return site.f.abs(site.receiver)
    negated = site.f.try_subtract(site.f.lit(0).cast("bigint"), site.receiver)
    return Fallible(site.f.when(site.receiver < 0, negated).otherwise(site.receiver))


def _whole(name: str) -> tuple[Any, Any]:
    """`ceil` or `floor`, in Python and as a column."""
    function = getattr(math, name)

    def python(value: float) -> int:
        if type(value) is float and not -_INT_LIMIT <= value < _INT_LIMIT:
            raise overflow(name)
        return int(function(value))

    def column(site: Site) -> Any:
        if site.kind is Kind.INT:
            return site.receiver
        inside = (site.receiver >= site.f.lit(-_INT_LIMIT)) & (site.receiver < site.f.lit(_INT_LIMIT))
        return Fallible(site.f.when(inside, getattr(site.f, name)(site.receiver)))

    return python, column


_entry("abs", "The absolute value; Int stays Int.", ("(-3.14).abs()", "3.14"), _abs, _abs_column, returns=lambda receiver, _: receiver)
_entry("ceil", "The smallest Int that is not less.", ("3.2.ceil()", "4"), *_whole("ceil"), returns=INT)
_entry("floor", "The largest Int that is not greater.", ("(-3.2).floor()", "-4"), *_whole("floor"), returns=INT)


# Rounding ---------------------------------------------------------------------------------------------------------------
def _half_away(value: float) -> float:
    whole = float(math.trunc(value))
    return whole + math.copysign(1.0, value) if abs(value - whole) >= 0.5 else whole


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
    if places is NOT_CONSTANT or places not in _PLACES:
        return None
    power, value = site.f.lit(10.0 ** abs(places)), site.receiver.cast("double")
    scaled = value * power if places >= 0 else value / power
    rounded = site.f.round(scaled, 0)
    result = rounded / power if places >= 0 else rounded * power
    return site.f.when(site.f.abs(scaled) < site.f.lit(_EXACT), site.f.when(result == 0.0, site.f.lit(0.0)).otherwise(result)).otherwise(value)


_entry("round", "Rounds to decimal places (0 when left out), halves away from zero.", ("3.456.round(2)", "3.46"),
       round_half_away, _round_column, params=(Param("decimals", INT, optional=True),), returns=FLOAT)  # fmt: skip
_entry("round_to", "Rounds to decimal places, halves away from zero.", ("19.995.round_to(2)", "20.0"),
       round_half_away, _round_column, params=(Param("decimals", INT),), returns=FLOAT)  # fmt: skip


# Comparing --------------------------------------------------------------------------------------------------------------
def _alike(*values: float) -> list[float]:
    """Int and Float together become Floats."""
    return list(map(float, values)) if any(isinstance(value, float) for value in values) else list(values)


def _min(value: float, other: float) -> float:
    value, other = _alike(value, other)
    return min(other, value)


def _max(value: float, other: float) -> float:
    value, other = _alike(value, other)
    return max(other, value)


def _clamp(value: float, low: float, high: float) -> float:
    value, low, high = _alike(value, low, high)
    return low if value < low else min(value, high)


def _columns_alike(site: Site) -> tuple[list[Any], bool]:
    """Receiver and arguments in one type, and whether that is Float."""
    columns = [site.receiver, *site.args]
    is_float = any(one.kind is Kind.FLOAT for one in (site.receiver_type, *site.arg_types))
    return ([one.cast("double") for one in columns] if is_float else columns), is_float


def _less(site: Site, left: Any, right: Any, is_float: bool) -> Any:
    """`<` of IEEE 754. Spark takes NaN for the greatest number."""
    return (left < right) & ~site.f.isnan(right) if is_float else left < right


def _no_null(site: Site, columns: list[Any], value: Any) -> Any:
    """The value, or null where an argument is null."""
    known = [one for one, constant in zip(columns[1:], site.constants, strict=True) if constant is NOT_CONSTANT]
    for one in (columns[0], *known):
        value = site.f.when(one.isNotNull(), value)
    return value


def _extreme_column(pick: Any) -> Any:
    def build(site: Site) -> Any:
        columns, is_float = _columns_alike(site)
        small, large = pick(*columns)
        return _no_null(site, columns, site.f.when(_less(site, small, large, is_float), columns[0]).otherwise(columns[1]))

    return build


def _clamp_column(site: Site) -> Any:
    columns, is_float = _columns_alike(site)
    value, low, high = columns
    below, above = _less(site, value, low, is_float), _less(site, high, value, is_float)
    return _no_null(site, columns, site.f.when(below, low).when(above, high).otherwise(value))


_OTHER = (Param("other", NUMERIC),)
_entry("min", "The smaller of the two.", ("10.min(20)", "10"), _min, _extreme_column(lambda a, b: (a, b)), params=_OTHER, returns=_same)
_entry("max", "The greater of the two.", ("10.max(20)", "20"), _max, _extreme_column(lambda a, b: (b, a)), params=_OTHER, returns=_same)
_entry("clamp", "The value, but not below `min` and not above `max`.", ("150.clamp(0, 100)", "100"), _clamp, _clamp_column,
       params=(Param("min", NUMERIC), Param("max", NUMERIC)), returns=_same)  # fmt: skip
