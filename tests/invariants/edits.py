"""Edits of a pipeline: values that another version has otherwise, nodes that only one of two versions has, and new names for old ones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

WHEN, BEFORE, AFTER = "_when", "before", "after"
"""The mark of a node that only the version before an edit has, or only the one after it."""


@dataclass(frozen=True)
class Changed:
    """A value of a pipeline before an edit and after it."""

    before: Any
    after: Any


def resolved(value: Any, *, edited: bool) -> Any:
    """The value as one of the two versions has it."""
    if isinstance(value, Changed):
        return resolved(value.after if edited else value.before, edited=edited)
    if isinstance(value, Mapping):
        return {name: resolved(one, edited=edited) for name, one in value.items() if name != WHEN}
    if isinstance(value, list | tuple):
        return [resolved(one, edited=edited) for one in value if not _absent(one, edited=edited)]
    return value


def _absent(node: Any, *, edited: bool) -> bool:
    return isinstance(node, Mapping) and node.get(WHEN) == (BEFORE if edited else AFTER)


def renamed(text: str, names: Mapping[str, str]) -> str:
    """The text with other names where these stand as words of their own."""
    if not names:
        return text
    return re.sub(rf"\b({'|'.join(map(re.escape, names))})\b(?!\.comp)", lambda found: names[found[1]], text)
