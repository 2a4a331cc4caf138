"""The fields of a source record in the form of a correction: only what a browser sends back unchanged."""

from __future__ import annotations

from collections.abc import Collection, Mapping

Pairs = tuple[tuple[str, str], ...]
MOST_FIELD = 1000
"""The number of characters of a field that a form takes."""
_ALTERED = frozenset("\r\n\0")
"""Characters that a browser leaves out of a field of one line, or sends as others."""


def fields_of_form(texts: Mapping[str, str], named: Collection[str] | None) -> tuple[Pairs, Pairs]:
    """Return what names a record, and what may be changed. Values of several lines are left out.

    Args:
        texts: The values of the record by column.
        named: The columns that name a record; None where all of them do.

    Returns:
        The key and the values; both empty where a form cannot hold the key, or a value is too long.
    """
    key = tuple((name, texts.get(name, "")) for name in named or texts)
    others = tuple((name, text) for name, text in texts.items() if name not in (named or ()))
    if any(len(text) > MOST_FIELD for text in texts.values()) or not all(_comes_back(*one) for one in key):
        return (), ()
    return key, tuple(one for one in others if _comes_back(*one))


def _comes_back(name: str, text: str) -> bool:
    return _ALTERED.isdisjoint(name + text)
