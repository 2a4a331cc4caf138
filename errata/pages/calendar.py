"""The calendar: epochs by nodes, each place coloured by the cause of most of its changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from errata.inspect.history import History
from errata.pages.paging import Part, cut_out
from errata.pages.palette import CAUSES

EPOCHS, NODES = 40, 50
"""The epochs and the nodes of one page."""
SIGNS = {"ingest": "I", "correction": "C", "recompute": "r", "rollback": "B", "readmit": "A", "logic": "L", "revert": "V", "late": "T"}
"""The letter of a cause, for those who do not see its colour."""

UNKNOWN = "•"
"""The sign of a change whose cause was not counted: of a node without a table, of folded epochs, of very many rows."""


@dataclass(frozen=True, slots=True)
class Place:
    """A node in an epoch: its cause, its letter and what is said of it. Without a cause nothing changed, or it is not known why."""

    epoch: int
    cause: str = ""
    sign: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Day:
    """A date above its epochs."""

    date: str
    epochs: int


@dataclass(frozen=True, slots=True)
class Calendar:
    """One page of the calendar, the newest epoch first. `rows` are nodes with their places."""

    epochs: tuple[tuple[int, str], ...]
    days: tuple[Day, ...]
    rows: tuple[tuple[str, tuple[Place, ...]], ...]
    part: Part
    nodes: Part
    legend: tuple[tuple[str, str], ...] = (*SIGNS.items(), ("unknown", UNKNOWN))


def calendar(history: History, part: int = 0, nodes: int = 1, epochs: int = EPOCHS) -> Calendar:
    """Return a page of the calendar. `part` counts pages of epochs from the newest; `nodes` pages of nodes."""
    newest = list(reversed(history.runs()))
    which, runs = cut_out(newest, epochs, part)
    shown = list(runs)
    names, chosen = cut_out(history.names, NODES, nodes)
    if not shown:
        return Calendar((), (), (), which, names)
    span = shown[-1].epoch, shown[0].epoch
    causes = history.causes(chosen, span)
    rows = tuple((name, tuple(_places(name, [run.epoch for run in shown], history.counts(name), causes))) for name in chosen)
    return Calendar(tuple((run.epoch, f"{run.started:%Y-%m-%d %H:%M}") for run in shown), tuple(_days([run.started for run in shown])), rows, which, names)


def _places(name: str, epochs: Sequence[int], counts: Mapping[int, Mapping[str, int]], causes: Mapping[tuple[str, int], Mapping[str, int]]) -> Iterator[Place]:
    for epoch in epochs:
        ops = counts.get(epoch)
        if not ops:
            yield Place(epoch)
            continue
        found = causes.get((name, epoch), {})
        cause = max(found, key=lambda one: (found[one], one), default="")
        counted = ", ".join(f"{op} {count:,}" for op, count in ops.items())
        why = ", ".join(found)
        style = cause if cause in CAUSES else "unknown"
        yield Place(epoch, style, SIGNS.get(cause, UNKNOWN), f"{name}, epoch {epoch}: {counted}{f'; cause: {why}' if why else ''}")


def _days(moments: Sequence[datetime]) -> Iterator[Day]:
    dates = [f"{moment:%Y-%m-%d}" for moment in moments]
    for date in dict.fromkeys(dates):
        yield Day(date, dates.count(date))
