"""Expectations and their failing rows: as they are now, and how their number changed by epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from errata.execution.expectations import counts
from errata.plan.expectations import PlannedExpectation, expectations_of
from errata.plan.plan import Plan
from storage.state.entry import Entry

Row = Mapping[str, Any]
COLUMNS = ("expectation", "severity", "failing", "since", "expected", "description")
HISTORY = ("epoch", "finished", "expectation", "severity", "failing")


def expectations(plan: Plan, entries: Sequence[Entry]) -> Iterator[Row]:
    """One row an expectation: its name, severity, failing rows, since which epoch there are some, what is expected, its description.

    Args:
        plan: The pipeline.
        entries: Every committed run, oldest first.
    """
    by_epoch = [(entry.epoch, counts(plan, entry)) for entry in entries if not entry.maintains]
    now: Mapping[str, int | None] = by_epoch[-1][1] if by_epoch else {}
    for one in expectations_of(plan):
        failing = now.get(one.label)
        yield {
            "expectation": one.label, "severity": one.placed.severity, "failing": failing, "since": _since(one, by_epoch) if failing else None,
            "expected": one.placed.expectation.text, "description": one.placed.expectation.description,
        }  # fmt: skip


def _since(one: PlannedExpectation, by_epoch: Sequence[tuple[int, Mapping[str, int | None]]]) -> int | None:
    """The first epoch of those without a break, up to the last, that have failing rows."""
    found = None
    for epoch, failing in reversed(by_epoch):
        if not failing.get(one.label):
            break
        found = epoch
    return found


def history(plan: Plan, entries: Sequence[Entry], name: str | None = None) -> Iterator[Row]:
    """One row for each epoch in which the number of failing rows of an expectation is another than before, oldest first.

    Args:
        plan: The pipeline.
        entries: Every committed run, oldest first.
        name: The expectation to look at; None: all.
    """
    before: dict[str, int] = {}
    for entry in (entry for entry in entries if not entry.maintains):
        failing = counts(plan, entry)
        for one in expectations_of(plan):
            count = failing[one.label]
            if count is None or name not in (None, one.label) or before.get(one.label, 0) == count:
                continue
            before[one.label] = count
            yield {"epoch": entry.epoch, "finished": entry.finished, "expectation": one.label, "severity": one.placed.severity, "failing": count}
