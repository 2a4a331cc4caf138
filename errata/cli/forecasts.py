"""The changes that a run would make, as the answer of `errata plan --diff` and `errata diff --pipeline`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from errata.cli.console import Console, rows_answer, would_stop
from errata.cli.parameters import option, together, wide_option
from errata.rendering.forecasts import as_markdown, as_text
from errata.rendering.rows import FORMATS

if TYPE_CHECKING:
    from errata.inspect.forecast import Forecast

MARKDOWN = "markdown"

forecast_options = together(
    option("--rows", metavar="N", type=click.IntRange(min=0), default=20, help="How many changed rows of each node are shown."),
    option("--format", type=click.Choice([*FORMATS, MARKDOWN]), default="text", help="How rows are printed; markdown is for a pull request."),
    wide_option,
)
"""For commands that show what a run would change."""


def answer(console: Console, found: Forecast, format: str) -> None:
    """Print what a run would change."""
    notes = list(_notes(found))
    if format == MARKDOWN:
        console.answer(as_markdown(found.nodes, notes))
    elif format == "text":
        with console.look() as look:
            console.answer(as_text(found.nodes, notes, look), harmless_already=True)
    elif format == "json":
        rows_answer(console, [asdict(found)], "jsonl")
    else:
        rows_answer(console, _rows(found), format, ("node", "op", "before", "after"))


def _rows(found: Forecast) -> Iterator[Mapping[str, Any]]:
    return ({"node": node.name, **change} for node in found.nodes for change in node.changes)


def _notes(found: Forecast) -> Iterator[str]:
    """Rejects, and the guard that would stop the run."""
    if found.rejected or found.repaired:
        yield f"Rejected records: {found.rejected:,} more, {found.repaired:,} repaired."
    if found.stopped:
        yield would_stop(found.stopped)
