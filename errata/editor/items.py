"""One thing that may stand at a place."""

from dataclasses import dataclass
from typing import Literal

ItemKind = Literal[
    "key", "word", "node", "port", "column", "type", "qualifier", "variable", "parameter", "keyword", "method", "function", "local", "module", "namespace",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Item:
    """A completion.

    Args:
        detail: Its type or signature.
        text: What it does, as Markdown.
        insert: What is written; empty: the label.
        rank: What orders items before their labels do.
    """

    label: str
    kind: ItemKind
    detail: str = ""
    text: str = ""
    insert: str = ""
    rank: str = "1"
