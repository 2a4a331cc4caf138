"""Guesses from the name of a column about its values."""

from __future__ import annotations

import re

_IDENTITY = re.compile(
    r"(^|_)(ids?|uuid|guid|key|code|no|nr|number|nummer|num|sku|ean|isbn|iban|ref|referenz|reference|identifier|kennung|beleg|pk|zip|plz|postcode)($|_(?!of_))|[a-z]{3}(nr|nummer|number|code|uuid)$|(order|customer|invoice|product|item|user|account|client|article|artikel|kunden)(id|no|key)$", re.ASCII | re.IGNORECASE,
)  # fmt: skip
_CAMEL = re.compile(r"[a-z0-9](Id|ID|Key|Code|No|Nr|Number)$", re.ASCII)
_CALENDAR = re.compile(r"(^|_)(year|quarter|month|week|weekday|day|hour|minute|epoch|version|jahr|quartal|monat|woche|tag|stunde)$", re.ASCII | re.IGNORECASE)
_CALENDAR_CAMEL = re.compile(r"[a-z0-9](Year|Quarter|Month|Week|Day|Hour|Version)$", re.ASCII)


def names_identity(name: str) -> bool:
    """Return whether a name says that the column identifies something, such as `order_id` or `customerNo`."""
    return bool(_IDENTITY.search(name) or _CAMEL.search(name))


def names_calendar(name: str) -> bool:
    """Return whether a name says that the column is a part of a date, such as `fiscal_year`, or counts versions."""
    return bool(_CALENDAR.search(name) or _CALENDAR_CAMEL.search(name))
