"""Columns whose values have types of their own, cell by cell, to declared types.

A value is null, a text, a boolean, a whole number of 64 bits, a float, a `Decimal`, a date, a date_time, a list or a map. `Unreadable` is a cell that has no
value and fails in every type; `JsonText` is the JSON of a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from typing import Any

from changelog.lazy_imports import pa, pc
from storage.formats.typed.columnar import coerce_array
from storage.formats.values import coerce_decimals_in, text_of_value
from storage.values.coerce import Coerced
from storage.values.decimals import plain_digits
from storage.values.text import plain_decimals
from storage.values.types import arrow_type


class Unreadable(str):
    """The text of a cell that fails in every type."""

    __slots__ = ()


class JsonText(str):
    """The JSON text of a value."""

    __slots__ = ()


class SingleFloat(float):
    """A float of 32 bits: its digits are fewer."""

    __slots__ = ()


_START = datetime(1970, 1, 1)
_WIDEST = 76
"""Digits of Arrow's widest decimal."""


def coerce_mixed(values: Sequence[Any], declared: str, date_formats: Sequence[str] = ()) -> Coerced:
    """Convert the values of a column to its declared type, each by the rules of its own type."""
    kinds = dict.fromkeys(map(type, values))
    kinds.pop(type(None), None)
    if not kinds:
        return Coerced(pa.nulls(len(values), arrow_type(declared)), None)
    parts = [_of_kind(kind, values if len(kinds) == 1 else [one if type(one) is kind else None for one in values], declared, date_formats) for kind in kinds]
    failed = [part.failed for part in parts if part.failed is not None]
    return Coerced(reduce(pc.coalesce, (part.values for part in parts)), reduce(pc.or_, failed) if failed else None)


def _of_kind(kind: type, values: Sequence[Any], declared: str, date_formats: Sequence[str]) -> Coerced:
    """Convert values of one type, and nulls."""
    if kind is Unreadable:
        return Coerced(pa.nulls(len(values), arrow_type(declared)), pa.array([value is not None for value in values]))
    if kind in (list, dict):
        return coerce_decimals_in(values, declared, date_formats)
    return coerce_array(_array(kind, values), declared, date_formats)


def _array(kind: type, values: Sequence[Any]) -> pa.Array:
    """Values of one type in Arrow's type for it."""
    if kind is JsonText:
        return pa.ExtensionArray.from_storage(pa.json_(), pa.array(values, pa.string()))
    if kind is Decimal:
        return _decimals(values)
    types = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), SingleFloat: pa.float32(), date: pa.date32(), datetime: pa.timestamp("us")}
    return pa.array(values, types.get(kind, pa.string()))


def _decimals(values: Sequence[Decimal | None]) -> pa.Array:
    """Decimals of one scale that holds all of them; their texts where Arrow has no type for that."""
    found = [value.as_tuple() for value in values if value is not None]
    scale = max((max(-int(one.exponent), 0) for one in found), default=0)
    whole = max((len(one.digits) + int(one.exponent) for one in found), default=1)
    digits = max(whole, 1) + scale
    if digits > _WIDEST:
        return pa.array([None if value is None else plain_digits(value) for value in values], pa.string())
    return pa.array(values, pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(digits, scale))


def text_of_mixed(value: Any) -> str | None:
    """The plain text of a value, as a rejected record shows it."""
    if isinstance(value, Decimal):
        return plain_digits(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list | dict):
        return str(plain_decimals(pa.array([text_of_value(value)]))[0])
    return str(value) if isinstance(value, str) else text_of_value(float(value) if isinstance(value, float) else value)


def moment(microseconds: int) -> datetime | int:
    """The date_time so long after 1970, in UTC; the number itself where that is outside of the years 1 to 9999."""
    try:
        return _START + timedelta(microseconds=microseconds)
    except OverflowError:
        return microseconds


def day(days: int) -> date | int:
    """The date so long after 1970; the number itself where that is outside of the years 1 to 9999."""
    try:
        return _START.date() + timedelta(days=days)
    except OverflowError:
        return days
