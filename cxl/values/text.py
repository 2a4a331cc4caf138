"""Values as text. Numbers, dates and times are spelled here and nowhere else."""

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any


def float_text(value: float) -> str:
    """Return the shortest decimal that reads back, without exponent and without `.0`: 1.0 is `1`, 1e21 is `1000000000000000000000`."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "inf" if value > 0 else "-inf"
    digits = repr(value)
    if "e" not in digits:
        return digits.removesuffix(".0")
    mantissa, _, exponent = digits.partition("e")
    return _without_exponent(mantissa, int(exponent))


def _without_exponent(mantissa: str, exponent: int) -> str:
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = whole + fraction
    point = len(whole) + exponent
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits}{'0' * (point - len(digits))}"


def date_text(value: date) -> str:
    """Return `YYYY-MM-DD`."""
    return value.isoformat()


def date_time_text(value: datetime) -> str:
    """Return `YYYY-MM-DDTHH:MM:SS`, with the shortest fraction if there is one."""
    text = value.isoformat()
    return text.rstrip("0") if value.microsecond else text


def display(value: Any) -> str:
    """Return any value as text, for `to_string`, `format`, `join` and messages: null is empty, `[a, b]`, `{k: v}`."""
    if isinstance(value, list):
        return f"[{', '.join(map(display, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {display(member)}' for key, member in value.items())}}}"
    return scalar_text(value)


def scalar_text(value: Any) -> str:
    """Return the text of a value that is neither array nor map."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        return date_time_text(value)
    return date_text(value) if isinstance(value, date) else str(value)


def type_of(value: Any) -> str:
    """Return the name of a value's type, as `type_of()` does."""
    return next(name for type_, name in _TYPE_NAMES if isinstance(value, type_))


_TYPE_NAMES: tuple[tuple[type, str], ...] = (
    (type(None), "Null"), (bool, "Bool"), (int, "Int"), (float, "Float"), (Decimal, "Decimal"), (str, "String"), (datetime, "DateTime"), (date, "Date"),
    (list, "Array"), (dict, "Map"),
)  # fmt: skip
