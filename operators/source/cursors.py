"""The greatest value of a source's cursor, as the ledger keeps it, and the forms of times that are texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import orjson

STORED_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:(?P<sign>[ T])\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?")
"""The forms of times in SQLite that follow each other as the texts do."""
_WITH_OFFSET = re.compile(r"(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)(?P<offset>Z|[+-]\d\d:?\d\d)")
"""The form of a time with an offset. Where length and offset are the same, times follow each other as the texts do."""
_DIGIT = re.compile(r"\d")
USUAL_TIME = "2026-03-01 14:30:00"
"""A time in the form that SQLite's own functions write."""


def greatest(text: str) -> Any:
    """The greatest value of a cursor, out of what the ledger keeps of it."""
    stored = orjson.loads(text)
    kind, value = stored["kind"], stored["value"]
    if kind == "datetime":
        return datetime.fromisoformat(value)
    if kind == "date":
        return date.fromisoformat(value)
    return Decimal(value) if kind == "Decimal" else value


def as_text(value: Any, raw: Any) -> str:
    """The greatest value as the ledger stores it. `raw`: the database's form of it."""
    return orjson.dumps({"kind": type(value).__name__, "value": str(value) if isinstance(value, Decimal) else value, "raw": raw}).decode()


def form(text: str) -> str:
    """The form of a time, empty for one that does not follow others as its text does."""
    if found := STORED_TIME.fullmatch(text):
        return found["sign"] or "day"
    found = _WITH_OFFSET.fullmatch(text)
    return _DIGIT.sub("0", found["time"]) + found["offset"] if found else ""


def patterns(text: str) -> Sequence[str]:
    """The form of a time as patterns of GLOB; none for one without a form."""
    if found := _WITH_OFFSET.fullmatch(text):
        return [_DIGIT.sub("[0-9]", found["time"]) + found["offset"]]
    if found := STORED_TIME.fullmatch(text):
        day, minute = "0000-00-00", f"0000-00-00{found['sign']}00:00"
        forms = [minute, f"{minute}:00", *(f"{minute}:00.{'0' * digits}" for digits in range(1, 7))] if found["sign"] else [day]
        return [_DIGIT.sub("[0-9]", one) for one in forms]
    return []
