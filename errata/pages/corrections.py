"""An output's corrections over time: by epoch how many rows came, went and changed, and the totals of its columns before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from errata.inspect.booked import booked, books
from errata.inspect.history import EpochFigures, History
from errata.pages.charts import Chart, bars, steps
from errata.pages.paging import Part, cut_out
from errata.pages.values import Shown, fields, figure, short

EPOCHS = 40
"""The epochs of one page."""
MOST_FIGURES = 12
"""The number of columns whose totals are shown."""
MOST_BOOKED = 100
"""The late changes of closed periods that are shown."""


@dataclass(frozen=True, slots=True)
class Figure:
    """The total of a column before and after an epoch."""

    before: Shown
    after: Shown
    differs: bool


@dataclass(frozen=True, slots=True)
class EpochLine:
    """An epoch that changed the output."""

    epoch: int
    when: str
    causes: tuple[str, ...]
    added: int
    removed: int
    corrected: int
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class BookedLine:
    """A late change of a closed period: what it is booked as, the period that it corrects, the row, its figures, the epoch, the causes."""

    kind: str
    period: Sequence[tuple[str, Shown]]
    row: Sequence[tuple[str, Shown]]
    figures: Sequence[tuple[str, Shown]]
    epoch: int
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Corrections:
    """A page about an output, the newest epoch first.

    Attributes:
        folded: The epoch to which older ones were folded; 1 where none were.
        booked: The booked rows, which correct closed periods.
        more: How many of them are not shown.
    """

    name: str
    columns: tuple[str, ...]
    hidden: int
    rows: tuple[EpochLine, ...]
    changes: Chart | None
    totals: tuple[Chart, ...]
    part: Part
    folded: int
    others: tuple[str, ...]
    booked: tuple[BookedLine, ...] = ()
    more: int = 0


def corrections(history: History, name: str, part: int = 1) -> Corrections:
    """Return a page about an output. Raises Usage for a node that has not run."""
    figures = history.figures(name)
    which, shown_ones = cut_out(list(reversed(figures)), EPOCHS, part)
    moments = {entry.epoch: entry.started for entry in history.runs()}
    columns = list(figures[-1].after) if figures else []
    named = columns[:MOST_FIGURES]
    epochs = [one.epoch for one in shown_ones]
    causes = history.causes([name], (min(epochs), max(epochs))) if epochs else {}
    rows = tuple(_line(one, moments, tuple(causes.get((name, one.epoch), ())), named) for one in shown_ones)
    late = list(booked(history.reading, name)) if books(history.reading, name) else []
    return Corrections(
        name, tuple(short(column, 60) for column in named), len(columns) - len(named), rows, _changes(shown_ones, moments),
        tuple(_totals(shown_ones, moments, named)), which, history.base, tuple(outputs(history)),
        tuple(map(_booked_line, late[:MOST_BOOKED])), max(0, len(late) - MOST_BOOKED),
    )  # fmt: skip


def outputs(history: History) -> Iterator[str]:
    """Yield the names of the outputs that have run."""
    return (name for name in history.names if history.reading.nodes[name].kind == "output")


def _line(one: EpochFigures, moments: Mapping[int, datetime], causes: tuple[str, ...], columns: Sequence[str]) -> EpochLine:
    when = f"{moments[one.epoch]:%Y-%m-%d %H:%M}" if one.epoch in moments else ""
    figures = tuple(_figure(one.before.get(name), one.after.get(name)) for name in columns)
    return EpochLine(one.epoch, when, causes, one.added, one.removed, one.corrected, figures)


def _booked_line(row: Mapping[str, Any]) -> BookedLine:
    period, described, figures = (fields(row[part]) for part in ("period", "row", "figures"))
    return BookedLine(row["as"], period, described, figures, row["epoch"], tuple(row["causes"]))


def _figure(before: Any, after: Any) -> Figure:
    return Figure(figure(before), figure(after), before != after)


def _changes(newest: Sequence[EpochFigures], moments: Mapping[int, datetime]) -> Chart | None:
    counts = {one.epoch: {"added": one.added, "removed": one.removed, "corrected": one.corrected} for one in reversed(newest)}
    return bars("Changed rows by epoch", counts, moments)


def _totals(newest: Sequence[EpochFigures], moments: Mapping[int, datetime], columns: Sequence[str]) -> Iterator[Chart]:
    for name in columns:
        chart = steps(f"Total of {short(name, 60)}", {one.epoch: one.after[name] for one in reversed(newest)}, moments)
        if chart is not None:
            yield chart
