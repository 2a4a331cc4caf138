"""Durations as the documents write them: `500ms`, `5s`, `15m`, `2h`, `7d` (user guide, "Watermarks")."""

import re

_UNITS = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_FORM = re.compile(r"(\d+)(ms|s|m|h|d)")


def microseconds(text: str) -> int:
    """The microseconds of a duration. Raises ValueError for another form."""
    found = _FORM.fullmatch(text.strip())
    if not found:
        raise ValueError(f"'{text}' is no duration; write a number and one of ms, s, m, h, d")
    return int(found[1]) * _UNITS[found[2]]
