"""Values of rows as messages and the DLQ write them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from cxl.values.text import scalar_text


def shown(value: Any) -> str:
    """Return a value as text, in the form of CSV outputs: times in UTC without a mark, empty where there is no value."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, datetime) and value.tzinfo:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return scalar_text(value)
