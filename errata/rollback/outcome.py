"""The outcome of settling a run: counts for the ledger, the report and the thresholds, and where the sources' cursors stop."""

from __future__ import annotations

from dataclasses import dataclass, field

COMBINE = "combine_output_row"
"""A failed combine row rewinds the cursors of its records' sources."""


@dataclass(slots=True)
class Settled:
    """The records that a run rolled back.

    Attributes:
        suppressed: Number of suppressed records by source.
        collateral: How many of them did not fail themselves.
        rounds: Number of rounds.
        floors: By source the lowest row number of an overflowing group or a failed combine row.
        largest: An upper bound of the records of a group; None where there is none.
        lookups: Failed rows of aggregates that led back to records.
        expanded: The number of these records.
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
