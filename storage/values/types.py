"""Declared types of columns and the Arrow types that hold them."""

from __future__ import annotations

from functools import cache

from changelog.lazy_imports import pa
from storage.values.decimals import DIGITS, decimal_type

DYNAMIC = frozenset({"any", "array", "map", "null"})
"""Types of any JSON value."""
NESTED: dict[str, type] = {"array": list, "map": dict}
"""Types of the JSON values of one kind."""


@cache
def timestamp_type() -> pa.DataType:
    """The Arrow type of date_time: microseconds in UTC."""
    return pa.timestamp("us", tz="UTC")


def base_type(declared: str) -> str:
    """The type inside `nullable(...)`. Every column may hold null."""
    text = declared.strip()
    while text.startswith("nullable(") and text.endswith(")"):
        text = text[len("nullable(") : -1].strip()
    return text


def arrow_type(declared: str) -> pa.DataType:
    """The Arrow type of a declared type. Dynamic values are JSON text, a decimal has room for 38 digits."""
    base = base_type(declared)
    digits = decimal_type(base)
    return _arrow_types()[base] if digits is None else pa.decimal128(DIGITS, digits.scale)


def is_dynamic(declared: str) -> bool:
    """Whether the column's values are JSON text."""
    return base_type(declared) in DYNAMIC | {"numeric"}


@cache
def _arrow_types() -> dict[str, pa.DataType]:
    text = ("string", "numeric", *DYNAMIC)
    return {
        "int": pa.int64(),
        "float": pa.float64(),
        "bool": pa.bool_(),
        "date": pa.date32(),
        "date_time": timestamp_type(),
    } | dict.fromkeys(text, pa.string())
