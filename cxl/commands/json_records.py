"""Records between JSON and CXL's types."""

import json
import math
import re
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from cxl.functions.datetime import strptime
from cxl.types.types import ANY, ARRAY, BOOL, FLOAT, INT, MAP, STRING, Kind, Schema, Type
from cxl.values import decimals
from cxl.values.failure import CxlFailure
from cxl.values.text import date_text, date_time_text


def typed_record(record: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Return a record of JSON values as values of the schema's types. Raises CxlFailure where one does not fit."""
    return {name: _typed(name, value, schema[name]) if name in schema else value for name, value in record.items()}


def _typed(name: str, value: Any, type_: Type) -> Any:
    if value is None:
        return None
    if type_.kind is Kind.FLOAT and type(value) is int:
        return float(value)
    if isinstance(value, str) and type_.kind in (Kind.DATE, Kind.DATE_TIME):
        value = _moment(value, type_)
    if type_.kind is Kind.DECIMAL:
        value = _decimal(value, type_)
    expected = _PYTHON.get(type_.kind, object)
    if not isinstance(value, expected) or (isinstance(value, bool) and type_.kind is not Kind.BOOL and expected is not object):
        raise CxlFailure(f"field '{name}': {json.dumps(value, ensure_ascii=False)} is no {type_.base}")
    return value


def _decimal(value: Any, type_: Type) -> Any:
    """The Decimal of a text or a whole number; the value itself where it does not fit."""
    found: Decimal | None = None
    if isinstance(value, str):
        found = decimals.from_text(value, type_.scale)
    elif isinstance(value, int) and not isinstance(value, bool):
        found = decimals.exactly(value, type_.scale)
    return value if found is None else found


def _moment(text: str, type_: Type) -> date | str:
    """The date, or the time in UTC, of a text that a cell of a source may have; the text itself where it is neither."""
    found = strptime.parse_iso_date(text) if type_.kind is Kind.DATE else _time(text)
    return text if found is None else found


def _time(text: str) -> datetime | None:
    written = next(filter(None, (form.fullmatch(text) for form in _TIMES)), None)
    if written is None:
        return None
    year, month, day, between, hour, minute, second, behind = (written.groupdict("").get(name, "") for name in _PARTS)
    return strptime.parse_iso_date_time(f"{year}-{month:0>2}-{day:0>2}{between or 'T'}{hour:0>2}:{minute:0>2}:{second:0>2}{behind}")


_PARTS = ("Y", "m", "d", "T", "H", "M", "S", "behind")
_CLOCK = r"(?P<H>[0-9]{1,2}):(?P<M>[0-9]{1,2})"
_TIMES = (
    re.compile(rf"(?P<Y>[0-9]{{4}})-(?P<m>[0-9]{{1,2}})-(?P<d>[0-9]{{1,2}})(?:(?P<T>[Tt])| ){_CLOCK}:(?P<S>[0-9]{{1,2}})(?P<behind>[.Zz+-].*)?"),
    re.compile(rf"(?P<m>[0-9]{{1,2}})/(?P<d>[0-9]{{1,2}})/(?P<Y>[0-9]{{4}}) {_CLOCK}(?::(?P<S>[0-9]{{1,2}}))?"),
)
"""The forms of a time in a cell. Behind the seconds, the first one has what `to_datetime` takes there."""


_PYTHON: dict[Kind, Any] = {
    Kind.STRING: str, Kind.INT: int, Kind.FLOAT: float, Kind.BOOL: bool, Kind.ARRAY: list, Kind.MAP: dict, Kind.NUMERIC: (int, float),
    Kind.DATE: date, Kind.DATE_TIME: datetime, Kind.DECIMAL: Decimal,
}  # fmt: skip


def inferred_type(value: Any) -> Type:
    """Return the type that a value shows for its field. Null shows none."""
    kinds: dict[type, Type] = {bool: BOOL, int: INT, float: FLOAT, str: STRING, list: ARRAY, dict: MAP}
    return kinds.get(type(value), ANY)


def json_value(value: Any) -> Any:
    """Return a value as JSON: dates as ISO text, Decimals as text with their digits, NaN and infinities as null."""
    if isinstance(value, datetime):
        return date_time_text(value)
    if isinstance(value, date):
        return date_text(value)
    if isinstance(value, Decimal):
        return decimals.text_of(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [json_value(one) for one in value]
    return {key: json_value(one) for key, one in value.items()} if isinstance(value, dict) else value
