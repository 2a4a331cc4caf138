"""What settling a run came to: counts for the ledger, the report and the thresholds, and where the sources' cursors stop."""

from __future__ import annotations

from dataclasses import dataclass, field

COMBINE = "combine_output_row"
"""A combine row that fails rewinds the cursor of its records' sources (correlation-keys.txt, "Per-source rollback narrowing")."""


@dataclass(slots=True)
class Settled:
    """How many records of each source are suppressed, how many of all are collateral, how many rounds it took.

    `floors`: by source the lowest row number of a group that overflowed or of a combine row that failed. `largest`: no group has more records (None: not known).
    `lookups`: rows of aggregates that failed and led back to records; `expanded`: so many.
    """

    suppressed: dict[str, int] = field(default_factory=dict)
    collateral: int = 0
    rounds: int = 0
    floors: dict[str, int] = field(default_factory=dict)
    largest: int | None = 0
    lookups: int = 0
    expanded: int = 0

    def hold(self, source: str, records: int, collateral: int) -> None:
        """Count records of a source that are suppressed, `collateral` of them though they did not fail."""
        self.suppressed[source] = self.suppressed.get(source, 0) + records
        self.collateral += collateral

    def lower(self, source: str, number: int | None) -> None:
        """Let the cursor of a source stop before a row."""
        if number is not None:
            self.floors[source] = min(self.floors.get(source, number), number)
