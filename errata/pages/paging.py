"""Parts of long lists: which part a page shows, and which others there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a list, counted from 1. A list without entries has one empty part."""

    number: int
    of: int
    total: int

    @property
    def before(self) -> int | None:
        """The number of the part before, None for the first."""
        return self.number - 1 if self.number > 1 else None

    @property
    def after(self) -> int | None:
        """The number of the part after, None for the last."""
        return self.number + 1 if self.number < self.of else None


def part(total: int, size: int, wanted: int) -> Part:
    """Return the part that is asked for, or the nearest that is there."""
    of = max(1, -(-total // size))
    return Part(min(max(wanted, 1), of), of, total)


def cut_out(items: Sequence[Item], size: int, wanted: int) -> tuple[Part, Sequence[Item]]:
    """Return a part of a list with its entries."""
    found = part(len(items), size, wanted)
    return found, items[(found.number - 1) * size : found.number * size]
