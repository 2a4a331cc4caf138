"""Secrets and their removal from texts that others wrote."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

MASK: Final = "***"
_USER_INFO = re.compile(r"//[^/\s@]*:[^\s@]*@")
_QUOTED_STATEMENT = re.compile(r"\s*(?:Query was:|LINE \d+:).*", re.DOTALL)
_SHORTEST: Final = 3
"""A shorter secret would mask letters of words that have nothing to do with it."""


class Secret:
    """A text that no representation shows."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text itself."""
        return self._text

    def __repr__(self) -> str:
        return MASK

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other.reveal() == self._text

    def __hash__(self) -> int:
        return hash(self._text)


def redacted(text: str, secrets: Iterable[str]) -> str:
    """Return a driver's message in one line, without secrets, without `user:password@`, without the statement that drivers append."""
    plain = _QUOTED_STATEMENT.sub("", text)
    for secret in sorted({one for one in secrets if len(one) >= _SHORTEST}, key=len, reverse=True):
        plain = plain.replace(secret, MASK)
    plain = _USER_INFO.sub(f"//{MASK}@", plain)
    return " ".join(plain.split())
