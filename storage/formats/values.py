"""Parsed values (of JSON) to declared types, a column at a time.

Text goes by the rules of `storage.values.coerce`. Other kinds: an int is a float, a whole float is an int, a bool is 0 or 1 in a number column, a number that is
not 0 is true; a scalar in a string column is its plain text, an array or a map there its JSON. What would lose something (3.7 as int) fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from storage.values.coerce import DYNAMIC, NESTED, Coerced, arrow_type, base_type, coerce
from storage.values.json_text import canonical

_EXACT: dict[str, frozenset[type]] = {
    "string": frozenset({str, type(None)}),
    "int": frozenset({int, type(None)}),
    "float": frozenset({float, type(None)}),
    "bool": frozenset({bool, type(None)}),
}
_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1


def coerce_values(values: Sequence[Any], declared: str, date_formats: Sequence[str] = ()) -> Coerced:
    """A column of Python values as its declared type."""
    name = base_type(declared)
    if set(map(type, values)) <= _EXACT.get(name, frozenset()):
        try:
            return Coerced(pa.array(values, arrow_type(declared)), None)
        except OverflowError:
            pass  # an int beyond 64 bits: that one fails below
    if name in NESTED:
        return _nested(values, declared)
    if name in DYNAMIC or name == "string":
        text = text_of_value if name == "string" else _dynamic
        return Coerced(pa.array([text(value) for value in values], pa.string()), None)
    return _mixed(values, declared, date_formats)


def _nested(values: Sequence[Any], declared: str) -> Coerced:
    """Arrays, or maps, as JSON text; text that is the JSON of one counts as one, everything else fails."""
    kind = NESTED[base_type(declared)]
    parsed = coerce(pa.array([value if isinstance(value, str) else None for value in values], pa.string()), declared)
    direct = pa.array([canonical(value) if isinstance(value, kind) else None for value in values], pa.string())
    failed = [value is not None and not isinstance(value, (kind, str)) for value in values]
    wrong = pa.array(failed) if parsed.failed is None else pc.or_(pa.array(failed), parsed.failed)
    return Coerced(pc.coalesce(parsed.values, direct), wrong if wrong.true_count else None)


def _dynamic(value: Any) -> str | None:
    return None if value is None else canonical(value)


def _mixed(values: Sequence[Any], declared: str, date_formats: Sequence[str]) -> Coerced:
    """Text by the rules for text, every other kind of value by the conversion of the type."""
    text = pa.array([value if isinstance(value, str) else None for value in values], pa.string())
    parsed = coerce(text, declared, date_formats)
    convert: Callable[[Any], Any] = _CONVERT.get(base_type(declared), _never)
    other = [None if isinstance(value, str) else value for value in values]
    direct = pa.array([None if value is None else convert(value) for value in other], arrow_type(declared))
    failed = pc.and_(pc.is_null(direct), pa.array([value is not None for value in other]))
    if parsed.failed is not None:
        failed = pc.or_(failed, parsed.failed)
    return Coerced(pc.coalesce(parsed.values, direct), failed if failed.true_count else None)


def text_of_value(value: Any) -> str | None:
    """The plain text of a scalar, the JSON of anything else; null for null."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float):
        from storage.formats.texts import float_text

        return str(float_text(pa.array([value]))[0])
    return canonical(value)


def _int(value: Any) -> int | None:
    if (isinstance(value, float) and not value.is_integer()) or isinstance(value, list | dict):
        return None
    return int(value) if _INT_MIN <= value <= _INT_MAX else None


def _float(value: Any) -> float | None:
    return None if isinstance(value, list | dict) else float(value)


def _number(value: Any) -> str | None:
    """The JSON text of a number; true and false are 1 and 0."""
    if isinstance(value, list | dict):
        return None
    return canonical(int(value) if isinstance(value, bool) else value)


def _bool(value: Any) -> bool | None:
    return bool(value) if isinstance(value, int) else None


def _never(_value: Any) -> None:
    return None


_CONVERT: dict[str, Callable[[Any], Any]] = {"int": _int, "float": _float, "numeric": _number, "bool": _bool}
