"""The expectations of rows: how many fail now, and how that number changed."""

from __future__ import annotations

from dataclasses import dataclass

from errata.inspect.expectations import expectations, history
from errata.inspect.history import History
from errata.pages.paging import Part, cut_out
from errata.pages.values import short

CHANGES = 50


@dataclass(frozen=True, slots=True)
class Expected:
    """An expectation. `failing` is None where it was not looked at yet."""

    name: str
    severity: str
    failing: int | None
    since: int | None
    expected: str
    description: str


@dataclass(frozen=True, slots=True)
class FailingChange:
    """An epoch in which the number of failing rows of an expectation changed."""

    epoch: int
    when: str
    name: str
    severity: str
    failing: int


@dataclass(frozen=True, slots=True)
class Expectations:
    """All expectations, and the changes of their failing rows, the newest first."""

    rows: tuple[Expected, ...]
    changes: tuple[FailingChange, ...]
    part: Part


def expectations_page(found: History, wanted: int = 1) -> Expectations:
    """Return the page. Without a plan there are no expectations."""
    plan, entries = found.reading.plan, found.reading.entries
    if plan is None:
        return Expectations((), (), cut_out((), CHANGES, 1)[0])
    rows = tuple(
        Expected(short(row["expectation"]), row["severity"], row["failing"], row["since"], short(row["expected"]), short(row["description"] or ""))
        for row in expectations(plan, entries)
    )
    which, changes = cut_out(list(history(plan, entries))[::-1], CHANGES, wanted)
    lines = (FailingChange(row["epoch"], f"{row['finished']:%Y-%m-%d %H:%M}", short(row["expectation"]), row["severity"], row["failing"]) for row in changes)
    return Expectations(rows, tuple(lines), which)
