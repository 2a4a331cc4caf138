"""The greatest value of a source's cursor, as the ledger keeps it."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import orjson


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
