"""Type changes of columns: earlier values in the present type, as a Column and as Arrow arrays.

A value that the new type cannot hold becomes null, such as a text that is no number, or a fraction for an integer. Dynamic values (`json`, stored
as JSON text) follow the rules for values of JSON files. Decimals are converted by value, floats to decimals by their shortest digits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from changelog.lazy_imports import F, pa, pl
from storage.values.decimals import DIGITS, DecimalType, decimal_text, decimal_type, parsed, value_of
from storage.values.decimals import converted as exactly
from storage.values.text import time_text

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["converted", "converted_array", "in_words"]

JSON = "json"
"""The kind of a column of dynamic values."""

_WHOLE = 2.0**53
"""Below this, every whole number is a float, and is written without a fraction."""
_INT = r"^[+-]?[0-9]{1,18}$"
_FLOAT = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_BOOL = r"^(?i)(true|false)$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$"


def in_words(kind: pa.DataType) -> str:
    """Return the kind of a plain type: `int`, `float`, `decimal`, `bool`, `date`, `time` or `string`. Empty for types without conversions."""
    checks = {
        "int": pa.types.is_integer, "float": pa.types.is_floating, "decimal": pa.types.is_decimal, "bool": pa.types.is_boolean,
        "date": pa.types.is_date, "time": pa.types.is_timestamp, "string": pa.types.is_string,
    }  # fmt: skip
    return next((name for name, check in checks.items() if check(kind)), "")


def converted(value: Column, pair: tuple[str, str], spelled: str) -> Column:
    """Return a Column converted from one kind to another, null where a value does not fit.

    Args:
        value: The Column.
        pair: The kinds before and after.
        spelled: Spark's name of the new type.
    """
    if pair in _CAST:
        return value.cast(spelled)
    by_value = _by_value(pair, decimal_type(spelled))
    if by_value is not None:
        return _by_python(value, by_value, spelled)
    return _IN_COLUMNS[pair](value) if pair in _IN_COLUMNS else F.lit(None).cast(spelled)


def converted_array(values: pa.Array, pair: tuple[str, str], want: pa.DataType) -> pa.Array:
    """Return an Arrow array converted from one kind to another, in the type `want`. Null where a value does not fit."""
    by_value = _by_value(pair, DecimalType(want.precision, want.scale) if pa.types.is_decimal(want) else None)
    if by_value is not None:
        return by_value(values).cast(want)
    if pair in _ON_DRIVER:
        return _ON_DRIVER[pair](pl.Series(values)).to_arrow().cast(want)
    return values.cast(want, safe=pair != ("int", "float")) if pair in _CAST else pa.nulls(len(values), want)


_CAST = {
    *((kind, "string") for kind in ("int", "bool", "date")), *((kind, other) for kind in ("int", "bool") for other in ("int", "float")),
    ("date", "time"), ("time", "date"),
}  # fmt: skip
"""Conversions that are a cast."""
_IN_COLUMNS: Mapping[tuple[str, str], Callable[[Column], Column]] = {
    ("float", "string"): lambda value: F.coalesce(F.when(_is_whole(value), value.try_cast("bigint")).cast("string"), value.cast("string")),
    ("float", "int"): lambda value: F.when(_is_whole(value), value.try_cast("bigint")),
    ("string", "int"): lambda value: F.when(value.rlike(_INT), value.try_cast("bigint")),
    ("string", "float"): lambda value: F.when(value.rlike(_FLOAT) & (F.abs(value.try_cast("double")) < float("inf")), value.try_cast("double")),
    ("string", "bool"): lambda value: F.when(value.rlike(_BOOL), F.lower(value) == "true"),
    ("string", "date"): lambda value: F.when(value.rlike(_DATE), value.try_cast("date")),
    ("string", "time"): lambda value: F.when(value.rlike(_TIME), F.replace(value, F.lit("T"), F.lit(" ")).try_cast("timestamp")),
}


def _is_whole(value: Column) -> Column:
    return (value == F.floor(value)) & (F.abs(value) < _WHOLE)


def _whole(values: pl.Series) -> pl.Series:
    """Return whole numbers as integers, null for others."""
    return values.set(~((values == values.floor()) & (values.abs() < _WHOLE)).fill_null(False), None).cast(int, strict=False)


def _moments(texts: pl.Series) -> pl.Series:
    found = texts.str.replace(" ", "T").str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", strict=False, time_unit="us")
    return found.dt.replace_time_zone("UTC")


def _fitting(texts: pl.Series, pattern: str) -> pl.Series:
    """Return the texts that match a pattern, null for others."""
    return texts.set(~texts.str.contains(pattern).fill_null(False), None)


def _finite(values: pl.Series) -> pl.Series:
    """Return finite numbers, null for infinities."""
    return values.set(values.is_infinite().fill_null(False), None)


_ON_DRIVER: Mapping[tuple[str, str], Callable[[pl.Series], pl.Series]] = {
    ("float", "string"): lambda values: _whole(values).cast(str).zip_with(_whole(values).is_not_null(), values.cast(str)),
    ("float", "int"): _whole,
    ("string", "int"): lambda values: _fitting(values, _INT).str.strip_prefix("+").cast(int, strict=False),
    ("string", "float"): lambda values: _finite(_fitting(values, _FLOAT).cast(float, strict=False)),
    ("string", "bool"): lambda values: _fitting(values, _BOOL).str.to_lowercase() == "true",
    ("string", "date"): lambda values: _fitting(values, _DATE).str.to_date("%Y-%m-%d", strict=False),
    ("string", "time"): lambda values: _moments(_fitting(values, _TIME)),
}


def _by_python(value: Column, convert: Callable[[pa.Array], pa.Array], spelled: str) -> Column:
    from pyspark.sql.pandas.functions import arrow_udf

    def run(batch: pa.Array) -> pa.Array:
        return convert(batch)

    made: Column = cast("Any", arrow_udf)(run, spelled)(value)
    return made


def _by_value(pair: tuple[str, str], digits: DecimalType | None) -> Callable[[pa.Array], pa.Array] | None:
    """Return a conversion in Python, None for a pair that has another one. `digits`: precision and scale of the new type, where it is a decimal."""
    if digits is None or pair[0] in ("date", "time"):
        return _BY_VALUE.get(pair)
    return partial(_TO_DECIMAL[pair[0]], digits)


def _of_decimals(declared: str, values: pa.Array) -> pa.Array:
    """Return decimals in a declared type, where they fit."""
    from storage.formats.values import coerce_values

    return coerce_values([None if value is None else _number(value) for value in values.to_pylist()], declared).values


def _number(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


def _parsed_decimals(digits: DecimalType, texts: pa.Array) -> pa.Array:
    """Return the numbers of JSON texts as decimals."""
    values = [None if text is None else json.loads(text, parse_float=Decimal) for text in texts.to_pylist()]
    return pa.array([value_of(value, digits) for value in values], pa.decimal128(DIGITS, digits.scale))


_TO_DECIMAL: Mapping[str, Callable[[DecimalType, pa.Array], pa.Array]] = {
    **dict.fromkeys(("int", "float", "bool", "decimal"), lambda digits, values: exactly(values, digits)),
    "string": lambda digits, values: parsed(values, digits),
    JSON: _parsed_decimals,
}


def _as_json(values: pa.Array) -> pa.Array:
    """Return the JSON text of values. Dates and times become JSON strings, decimals numbers."""
    from storage.formats.values import coerce_values

    if pa.types.is_decimal(values.type):
        return _of_decimals("any", values)
    plain = time_text(values) if pa.types.is_timestamp(values.type) else values.cast(pa.string()) if pa.types.is_date(values.type) else values
    return coerce_values(plain.to_pylist(), "any").values


def _of_json(texts: pa.Array, declared: str) -> pa.Array:
    """Return dynamic values in a declared type, by the rules for JSON files."""
    from storage.formats.values import coerce_values

    return coerce_values([None if text is None else json.loads(text) for text in texts.to_pylist()], declared).values


_BY_VALUE: Mapping[tuple[str, str], Callable[[pa.Array], pa.Array]] = {
    ("time", "string"): time_text,
    ("decimal", "string"): decimal_text,
    **{("decimal", kind): partial(_of_decimals, kind) for kind in ("int", "float")},
    **{(kind, JSON): _as_json for kind in ("int", "float", "decimal", "bool", "date", "time", "string")},
    **{(JSON, kind): partial(_of_json, declared=kind) for kind in ("int", "float", "bool", "date", "string")},
    (JSON, "time"): partial(_of_json, declared="date_time"),
}
"""Conversions in Python, for engines too, because engines spell numbers and times differently."""
