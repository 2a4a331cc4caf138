"""Dynamic values as JSON text: arrays, maps, and values of unknown type in a column.

The text is compact. Members of a map keep their order. A number has one spelling: an Int has no point, a Float has a point or
an exponent. Dates and times are strings. Null and NaN are null. An infinite Float is `1e999`, which reads back.
"""

import json
import math
from datetime import date, datetime
from typing import Any

from cxl.values.text import date_text, date_time_text

INT_MIN, INT_MAX = -(2**63), 2**63 - 1


def dumps(value: Any) -> str | None:
    """Return the text of a value; None for null."""
    return None if value is None else _write(value)


def loads(text: str | None) -> Any:
    """Return the value of a JSON text. Whole numbers beyond 64 bits become Floats.

    Raises ValueError for any other text.
    """
    return None if text is None else json.loads(text, parse_int=_read_int, parse_constant=_refuse)


def _write(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{','.join(map(_write, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{_write(key)}:{_write(member)}' for key, member in value.items())}}}"
    return _write_scalar(value)


def _write_scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _write_float(value)
    if isinstance(value, datetime):
        return f'"{date_time_text(value)}"'
    return f'"{date_text(value)}"' if isinstance(value, date) else str(value)


def _write_float(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "null" if math.isnan(value) else "1e999" if value > 0 else "-1e999"


def _read_int(digits: str) -> int | float:
    if len(digits) > 20:
        return float(digits)
    value = int(digits)
    return value if INT_MIN <= value <= INT_MAX else float(value)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
