"""Values of records: parsed JSON values to declared types, and typed columns to the text of files.

To declared types: text goes by the rules of `storage.values.coerce`. An int is a float and a whole float an int. A number is a decimal by the digits that the
file has. A bool is 0 or 1 in a number column, a number other than 0 is true. A scalar in a string column is its plain text, an array or a map there its JSON. A conversion that loses something
(3.7 as int, 1e400 as float) fails.

To text: floats as in `storage.values.text`, decimals with all digits of their scale, dates `YYYY-MM-DD`, date-times with `T`, bools `true` and `false`, dynamic scalars like their plain
kind, arrays as compact JSON. A map has no text: OutputError.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from changelog.lazy_imports import pa, pc
from storage.files.errors import OutputError
from storage.formats.base import Column
from storage.values.coerce import Coerced, coerce
from storage.values.decimals import decimal_text, decimal_type, of_value
from storage.values.json_text import WrittenFloat, canonical, held
from storage.values.text import float_text, plain_decimals, plain_numbers, time_text
from storage.values.types import DYNAMIC, NESTED, arrow_type, base_type, is_dynamic

_EXACT: dict[str, frozenset[type]] = {
    "string": frozenset({str, type(None)}),
    "int": frozenset({int, type(None)}),
    "float": frozenset({float, type(None)}),
    "bool": frozenset({bool, type(None)}),
}
_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1


def coerce_values(values: Sequence[Any], declared: str, date_formats: Sequence[str] = ()) -> Coerced:
    """Convert a column of Python values to its declared type."""
    name = base_type(declared)
    if set(map(type, values)) <= _EXACT.get(name, frozenset()):
        try:
            return Coerced(pa.array(values, arrow_type(declared)), None)
        except OverflowError:
            pass  # an int beyond 64 bits fails below
    if name in NESTED:
        return _nested(values, declared)
    if name in DYNAMIC or name == "string":
        text = text_of_value if name == "string" else _dynamic
        texts = [text(value) for value in values]
        failed = pa.array([one is None and value is not None for one, value in zip(texts, values, strict=True)], pa.bool_())
        return Coerced(pa.array(texts, pa.string()), failed if failed.true_count else None)
    return _mixed(values, declared, date_formats)


def coerce_decimals_in(values: Sequence[Any], declared: str, date_formats: Sequence[str] = ()) -> Coerced:
    """`coerce_values` of values with decimals that are no JSON number (`json_number`): these fail in arrays, maps and values of any type, which would cut their digits."""
    lost = [_holds_decimal(value) for value in values]
    name = base_type(declared)
    if not any(lost):
        return coerce_values(values, declared, date_formats)
    if name in DYNAMIC:
        kept = coerce_values([None if gone else value for value, gone in zip(values, lost, strict=True)], declared)
        return Coerced(kept.values, pa.array(lost) if kept.failed is None else pc.or_(pa.array(lost), kept.failed))
    found = coerce_values(values, declared, date_formats)
    return Coerced(plain_decimals(found.values), found.failed) if name == "string" else found


def _holds_decimal(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_decimal, value.values()))
    return any(map(_holds_decimal, value)) if isinstance(value, list) else isinstance(value, Decimal)


def _nested(values: Sequence[Any], declared: str) -> Coerced:
    """Arrays or maps as JSON text. Text that is the JSON of one counts as one, everything else fails."""
    kind = NESTED[base_type(declared)]
    parsed = coerce(pa.array([value if isinstance(value, str) else None for value in values], pa.string()), declared)
    direct = [held(value) if isinstance(value, kind) else None for value in values]
    failed = pa.array([text is None and not isinstance(value, str | None) for text, value in zip(direct, values, strict=True)], pa.bool_())
    wrong = failed if parsed.failed is None else pc.or_(failed, parsed.failed)
    return Coerced(pc.coalesce(parsed.values, pa.array(direct, pa.string())), wrong if wrong.true_count else None)


def _dynamic(value: Any) -> str | None:
    return None if value is None else held(value)


def _mixed(values: Sequence[Any], declared: str, date_formats: Sequence[str]) -> Coerced:
    """Text by the rules for text, every other kind of value by the conversion of the type."""
    text = pa.array([value if isinstance(value, str) else None for value in values], pa.string())
    parsed = coerce(text, declared, date_formats)
    digits = decimal_type(base_type(declared))
    convert: Callable[[Any], Any] = _CONVERT.get(base_type(declared), _never) if digits is None else partial(of_value, kind=digits)
    other = [None if isinstance(value, str) else value for value in values]
    direct = pa.array([None if value is None else convert(value) for value in other], arrow_type(declared))
    failed = pc.and_(pc.is_null(direct), pa.array([value is not None for value in other]))
    if parsed.failed is not None:
        failed = pc.or_(failed, parsed.failed)
    return Coerced(pc.coalesce(parsed.values, direct), failed if failed.true_count else None)


def _int(value: Any) -> int | None:
    if isinstance(value, list | dict) or (isinstance(value, float) and not value.is_integer()) or (isinstance(value, Decimal) and value != value.to_integral_value()):
        return None
    return int(value) if _INT_MIN <= value <= _INT_MAX else None


def _float(value: Any) -> float | None:
    return None if isinstance(value, list | dict) or _is_beyond(value) else float(value)


def _number(value: Any) -> str | None:
    """The JSON text of a number, of a decimal that is none the nearest float; true and false are 1 and 0."""
    if isinstance(value, list | dict):
        return None
    return held(int(value) if isinstance(value, bool) else float(value) if isinstance(value, Decimal) else value)


def _is_beyond(value: Any) -> bool:
    return isinstance(value, WrittenFloat) and value.is_beyond


def _bool(value: Any) -> bool | None:
    return bool(value) if isinstance(value, int) else None


def _never(_value: Any) -> None:
    return None


_CONVERT: dict[str, Callable[[Any], Any]] = {"int": _int, "float": _float, "numeric": _number, "bool": _bool}


def text_of_value(value: Any) -> str | None:
    """The plain text of a scalar, the JSON of any other value; null for null. A number of a file that no float holds is its digits."""
    if value is None or isinstance(value, str):
        return value
    if _is_beyond(value):
        return str(value.digits)
    return str(float_text(pa.array([value]))[0]) if isinstance(value, float) else canonical(value)


def text_in_file(value: Any) -> str | None:
    """The same, of a number with the digits that the file has where these are known."""
    return value.digits if isinstance(value, WrittenFloat) else text_of_value(value)


def text_of(values: pa.Array, column: Column, form: str) -> pa.Array:
    """A column as text; null stays null. Raises OutputError for a map, which the format `form` cannot hold."""
    kind = values.type
    if values.null_count == len(values):
        return pa.nulls(len(values), pa.string())
    if is_dynamic(column.type) and pa.types.is_string(kind):
        return pa.array([plain_text(cell, column.name, form) for cell in plain_numbers(values).to_pylist()], pa.string())
    if pa.types.is_floating(kind):
        return float_text(values)
    if pa.types.is_timestamp(kind):
        return time_text(values)
    if pa.types.is_decimal(kind):
        return decimal_text(values)
    return values if pa.types.is_string(kind) else values.cast(pa.string())


def plain_text(json_text: str | None, name: str, form: str) -> str | None:
    """The text of one dynamic value of column `name`: the plain form of a scalar, the JSON of an array. Raises OutputError for a map."""
    if json_text is None or json_text.startswith("["):
        return json_text
    value = json.loads(json_text, parse_float=_Number)
    if isinstance(value, dict):
        raise OutputError(
            f"column '{name}' holds a map, which {form} cannot hold: name its members in the source's schema ('{name}.member'), turn it into "
            "a scalar in CXL, or leave it out (include_unmapped: false, where the schema does not name it) (UnserializableMapValue)"
        )
    if isinstance(value, _Number):
        return json_text if math.isfinite(float(json_text)) else str(float_text(pa.array([float(json_text)]))[0])
    return value if isinstance(value, str) or value is None else json_text


class _Number(str):
    """The text of a number with a point or an exponent."""

    __slots__ = ()
