"""Parsed values (of JSON) to declared types, a column at a time.

Text goes by the rules of `storage.coerce`. Other kinds: an int is a float, a whole float is an int, a bool is 0 or 1 in a number column, a number that is
not 0 is true; a scalar in a string column is its plain text, an array or a map there its JSON. What would lose something (3.7 as int) fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from storage.coerce import DYNAMIC, Coerced, arrow_type, base_type, coerce
from storage.formats.contract import FormatError

_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1


class TooDeep(FormatError):
    """A value that is nested deeper than JSON text may be."""


def coerce_values(values: Sequence[Any], declared: str, date_formats: Sequence[str] = ()) -> Coerced:
    """A column of Python values as its declared type. Raises TooDeep."""
    name = base_type(declared)
    if name in DYNAMIC:
        return Coerced(pa.array([None if value is None else canonical(value) for value in values], pa.string()), None)
    if name == "string":
        return Coerced(pa.array([text_of_value(value) for value in values], pa.string()), None)
    text = pa.array([value if isinstance(value, str) else None for value in values], pa.string())
    parsed = coerce(text, declared, date_formats)
    if text.null_count == 0:
        return parsed
    convert = _CONVERT.get(name, _never)
    direct = [None if value is None or isinstance(value, str) else convert(value) for value in values]
    failed = pa.array([made is None and not (value is None or isinstance(value, str)) for made, value in zip(direct, values, strict=True)])
    column = pc.coalesce(parsed.values, pa.array(direct, arrow_type(declared)))
    if parsed.failed is not None:
        failed = pc.or_(failed, parsed.failed)
    return Coerced(column, failed if failed.true_count else None)


def canonical(value: Any) -> str:
    """Compact JSON text of a value, members in their order; ints beyond 64 bits are floats. Raises TooDeep."""
    try:
        return orjson.dumps(value).decode()
    except (TypeError, orjson.JSONEncodeError):
        return _deep_json(value)


def _deep_json(value: Any) -> str:
    import json

    try:
        return json.dumps(_with_small_ints(value), separators=(",", ":"), ensure_ascii=False)
    except RecursionError:
        raise TooDeep("nested too deeply") from None


def _with_small_ints(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_small_ints(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_with_small_ints(member) for member in value]
    return float(value) if type(value) is int and not _INT_MIN <= value <= _INT_MAX else value


def text_of_value(value: Any) -> str | None:
    """The plain text of a scalar, the JSON of anything else; null for null."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float):
        from storage.formats.texts import float_text

        return str(float_text(pa.array([value]))[0])
    return canonical(value)


def _int(value: Any) -> int | None:
    if isinstance(value, float) and not value.is_integer() or isinstance(value, list | dict):
        return None
    return int(value) if _INT_MIN <= value <= _INT_MAX else None


def _float(value: Any) -> float | None:
    return None if isinstance(value, list | dict) else float(value)


def _bool(value: Any) -> bool | None:
    return bool(value) if isinstance(value, int) else None


def _never(_value: Any) -> None:
    return None


_CONVERT: dict[str, Callable[[Any], Any]] = {"int": _int, "float": _float, "numeric": _float, "bool": _bool}
