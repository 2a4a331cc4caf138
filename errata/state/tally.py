"""How many entries the dead letter queue has, as the ledger keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NOTED = ("rejected", "correlated", "waived", "waived_correlated", "categories", "oldest_reject")
"""The counters of a ledger entry that make its tally."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How many entries there are.

    Attributes:
        total: All entries.
        collateral: Entries that failed only with their group.
        waived: The waived entries. They count for no threshold and no exit code.
        waived_collateral: Waived entries that failed only with their group.
        categories: Entries that are not waived, by category; None where nobody had to look.
        oldest: The epoch since which the oldest entry stands that is not waived; None where there is none, or nobody had to look.
    """

    total: int
    collateral: int
    waived: int = 0
    waived_collateral: int = 0
    categories: Mapping[str, int] | None = None
    oldest: int | None = None

    @classmethod
    def noted(cls, counters: Mapping[str, Any]) -> Tally:
        """The tally that a ledger entry has."""
        total, collateral, waived, both = (int(counters.get(name, 0)) for name in ("rejected", "correlated", "waived", "waived_correlated"))
        return cls(total, collateral, waived, both, counters.get("categories"), counters.get("oldest_reject"))

    @property
    def open(self) -> int:
        """Entries that are not waived."""
        return self.total - self.waived

    @property
    def failed(self) -> int:
        """Entries that are not waived and failed themselves."""
        return self.open - (self.collateral - self.waived_collateral)

    def counters(self) -> dict[str, Any]:
        """The members of the ledger's entry. Zeros are left out."""
        some = {"waived": self.waived, "waived_correlated": self.waived_collateral, "categories": self.categories, "oldest_reject": self.oldest}
        return {"rejected": self.total, "correlated": self.collateral, **{name: value for name, value in some.items() if value}}
