"""Durations as the documents write them: `500ms`, `5s`, `15m`, `2h`, `7d` (user guide, "Watermarks")."""

import re
from datetime import date

_UNITS = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_FORM = re.compile(r"(\d+)(ms|s|m|h|d)")
_MOST = (date.max - date(1970, 1, 1)).days
"""Days from 1970, where windows begin, to the last date: what is longer reaches beyond all times, and further on beyond 64 bits."""


def microseconds(text: str) -> int:
    """The microseconds of a duration. Raises ValueError for another form, and for one that is longer than from 1970 to the last date."""
    found = _FORM.fullmatch(text.strip())
    if not found:
        raise ValueError(f"'{text}' is no duration; write a number and one of ms, s, m, h, d")
    number, unit = int(found[1]), _UNITS[found[2]]
    if number * unit > _MOST * _UNITS["d"]:
        raise ValueError(f"'{text}' is longer than from 1970 to the end of 9999; write {_MOST}d or less")
    return number * unit
