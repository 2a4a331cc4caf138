"""Aggregate functions over the records so far: the value of `first(this.f)` in a state node for each record.

Each follows the rules of its function over a group. A step returns a new state and does not change the old one, so a failed record counts nowhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any

from cxl.functions.aggregate import exact_sum, is_less, mean_scale, nearest, nearest_decimal, quotient, total
from cxl.typed.tree import AggregateUse
from cxl.values.decimals import mixed, scale_of

State = Any
"""The memory of an aggregate; immutable."""


@dataclass(frozen=True, slots=True)
class Running:
    """An aggregate: its state over nothing, the state with one more record's arguments, and its value. Raises CxlFailure."""

    start: State
    step: Callable[[State, Sequence[Any]], State]
    value: Callable[[State], Any]


@dataclass(frozen=True, slots=True)
class _Sum:
    """The exact sum of the finite numbers, their count, whether one was a Float, the numbers that are not finite, and the greatest scale of Decimals."""

    total: Fraction = Fraction(0)
    count: int = 0
    floats: bool = False
    odd: tuple[float, ...] = ()
    scale: int | None = None


def running(use: AggregateUse) -> Running:
    """The aggregate of a call."""
    if use.function.name == "count":
        return Running(0, lambda seen, values: seen + (1 if use.star or values[0] is not None else 0), lambda seen: seen)
    python = use.function.python
    whole = Running((), lambda seen, values: (*seen, tuple(values)), lambda seen: python(*map(list, zip(*seen, strict=True))))  # type: ignore[misc]  # aggregates have a Python function
    return _KNOWN.get(use.function.name, whole)


def _added(state: _Sum, values: Sequence[Any]) -> _Sum:
    value = values[0]
    if value is None:
        return state
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        total([value])  # raises
    if not isfinite(value):
        return _Sum(state.total, state.count, True, (*state.odd, value), state.scale)
    scale = max(state.scale or 0, scale_of(value)) if isinstance(value, Decimal) else state.scale
    return _Sum(state.total + Fraction(value), state.count + 1, state.floats or isinstance(value, float), state.odd, scale)


def _refuse_floats(state: _Sum) -> None:
    if state.scale is not None and state.floats:
        raise mixed()


def _sum(state: _Sum) -> Any:
    _refuse_floats(state)
    if state.scale is not None:
        return nearest_decimal(state.total, state.scale)
    if state.odd:
        return exact_sum(state.odd)
    if state.floats:
        return nearest(state.total)
    return total([int(state.total)]) if state.count else None


def _mean(state: _Sum) -> Any:
    _refuse_floats(state)
    if state.scale is not None:
        return nearest_decimal(state.total / state.count, mean_scale(state.scale))
    if state.odd:
        return exact_sum(state.odd)
    return quotient(state.total, Fraction(state.count)) if state.count else None


def _chosen(better: Callable[[Any, Any], bool]) -> Running:
    """A value that is not null and that no later one is better than."""

    def step(best: Any, values: Sequence[Any]) -> Any:
        return values[0] if values[0] is not None and (best is None or better(values[0], best)) else best

    return Running(None, step, lambda best: best)


_KNOWN = {
    "first": Running((), lambda seen, values: seen or (values[0],), lambda seen: seen[0]),
    "last": Running(None, lambda _, values: values[0], lambda value: value),
    "any": _chosen(lambda new, best: False),
    "min": _chosen(is_less),
    "max": _chosen(lambda new, best: is_less(best, new)),
    "sum": Running(_Sum(), _added, _sum),
    "avg": Running(_Sum(), _added, _mean),
}
