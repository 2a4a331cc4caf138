"""Dynamic values as JSON text: arrays, maps, and values of unknown type in a column.

The text is compact. Members of a map keep their order. A number has one spelling: an Int has no point, a Float has a point or
an exponent, a Decimal has its digits and `E0` (`cxl.values.decimals`). Dates and times are strings. Null and NaN are null. An infinite
Float is `1e999`, which reads back.
"""

import json
import math
import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

from cxl.values import decimals
from cxl.values.text import date_text, date_time_text

INT_MIN, INT_MAX = -(2**63), 2**63 - 1


MARK: Final = "E0"
"""The end of a Decimal in a stored text."""
_JSON_STRING: Final = r'("[^"\\]*(?:\\.[^"\\]*)*")'
MARKED: Final = _JSON_STRING + "|E0"
"""A string of a stored text, which stays unchanged, or the mark of a Decimal. Replaced by the first group it gives plain digits, on every engine."""
WHOLE_DECIMAL: Final = _JSON_STRING + r"|(^|[\[,:])(-?[0-9]+)(?:\.0+)?E0"
"""A string, or a Decimal that is whole. Replaced by the groups 1 to 3 it is spelled as an Int."""
TRAILING_ZEROS: Final = _JSON_STRING + r"|(-?[0-9]+\.[0-9]*[1-9])0+(E0)"
"""A string, or a Decimal with zeros at its end. Replaced by the groups 1 to 3 it has none."""
_MARKED_NUMBER = re.compile(_JSON_STRING + r"|(-?[0-9]+(?:\.[0-9]+)?)E0")


def dumps(value: Any) -> str | None:
    """Return the stored text of a value; None for null."""
    return None if value is None else _write(value)


def loads(text: str | None) -> Any:
    """Return the value of a stored text. Whole numbers beyond 64 bits become Floats.

    Raises ValueError for any other text.
    """
    if text is None:
        return None
    return json.loads(text, parse_int=_read_int, parse_float=_read_number if MARK in text else None, parse_constant=_refuse)


def read_json(text: str) -> Any:
    """Return the value of a JSON text that others wrote: no number in it is a Decimal. Raises ValueError for any other text."""
    return json.loads(text, parse_int=_read_int, parse_constant=_refuse)


def plain(text: str, *, quoted: bool = False) -> str:
    """Return a stored text as outputs write it: Decimals as numbers with their digits, or as strings of them."""
    if MARK not in text:
        return text
    return _MARKED_NUMBER.sub(lambda found: found[1] or (f'"{found[2]}"' if quoted else found[2]), text)


def canonical(value: Any) -> str | None:
    """Return a text that equal values share: as `dumps`, but Decimals of all scales and Ints of one value have one spelling."""
    return None if value is None else _write(value, decimals.canonical)


def _write(value: Any, spelled: Callable[[Decimal], Any] | None = None) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{','.join(_write(member, spelled) for member in value)}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{_write(key)}:{_write(member, spelled)}' for key, member in value.items())}}}"
    return _write_scalar(spelled(value) if spelled is not None and isinstance(value, Decimal) else value)


def _write_scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _write_float(value)
    if isinstance(value, Decimal):
        return f"{decimals.text_of(value)}{MARK}"
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


def _read_number(text: str) -> float | Decimal:
    return Decimal(text[: -len(MARK)]) if text.endswith(MARK) else float(text)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
