"""One correction of one cell, checked and typed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from operators.corrections.entries import WrittenCorrection


class Fixed(NamedTuple):
    """Why no correction may change a column, and what to do."""

    reason: str
    help: str


class RawText(str):
    """The text of a cell that is none of its column's type."""

    __slots__ = ()


def shown_key(key: Mapping[str, object]) -> str:
    """Return the columns that name a record with their values, as messages have them."""
    return ", ".join(f"{name}={value}" for name, value in key.items())


@dataclass(frozen=True, slots=True)
class Correction:
    """One correction of one cell, or the retraction of a record (`column` is None).

    Attributes:
        lookup: The bytes of the record's key.
        key: The key as text, by column.
        values: The key as the columns hold it.
        before, after: Values as the column holds them.
    """

    written: WrittenCorrection
    lookup: bytes
    key: Mapping[str, str]
    values: tuple[Any, ...]
    column: str | None = None
    before: Any = None
    after: Any = None

    @property
    def active(self) -> bool:
        """Whether it is applied."""
        return self.written.entry.status == "active"

    @property
    def shown(self) -> str:
        """The record's key, as messages have it."""
        return shown_key(self.key)

    @property
    def id(self) -> bytes:
        """16 bytes that name the cell, or the record."""
        return hashlib.blake2b(self.lookup + b"\x00" + (self.column or "").encode(), digest_size=16).digest()

    @property
    def logic(self) -> str:
        """Its effect as text; equal texts have the same effect."""
        return json.dumps([self.column, repr(self.before), repr(self.after)], ensure_ascii=False)

    def _written(self, side: Literal["from", "to"]) -> Any:
        """One side of the cell as the file has it, with all its digits."""
        column = self.column or ""
        change = self.written.entry.set[column]
        return self.written.exact(("set", column, side), change.before if side == "from" else change.after)

    def content(self) -> dict[str, Any]:
        """Its parts by name, for lists and messages."""
        entry = self.written.entry
        change = {} if self.column is None else {"column": self.column, "from": self._written("from"), "to": self._written("to")}
        origin = {"reason": entry.reason, "author": entry.author, "ticket": entry.ticket}
        return {"place": self.written.place, "key": dict(self.key), **({"retract": True} if self.column is None else change), **origin}
