"""`errata report`: the pages about a pipeline in one file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from errata.inspect.dlq import Letters
from errata.inspect.history import History
from errata.pages import rendering
from errata.pages.calendar import calendar
from errata.pages.corrections import corrections, outputs
from errata.pages.dead_letters import dead_letters
from errata.pages.expectations import expectations_page
from errata.pages.links import Links
from errata.pages.overview import overview
from errata.pages.rows import restless_page
from errata.pages.runs import next_run, runs
from errata.plan.pipeline import LoadedPipeline

if TYPE_CHECKING:
    from errata.inspect.snapshot import Snapshot

ALL = 100_000
"""The number of nodes that a report lists."""
TRIGGERS = 20
"""The number of triggers whose records a report shows."""
Section = tuple[str, str, object]
"""Heading, template and view."""


def report(loaded: LoadedPipeline, reading: Snapshot) -> str:
    """Return the page. Of a pipeline that has not run yet it shows the plan. Raises LibraryMissing."""
    rendering.require("jinja2", "graphlay", what="errata report")
    links, history = Links(), History(reading)
    sections = [(heading, rendering.fragment(template, view=view, links=links)) for heading, template, view in _sections(loaded, history, links)]
    state = f"epoch {reading.last}" if reading.head else "never run"
    return rendering.render("report.html", title=f"{reading.name}: {state}", style=rendering.trusted(rendering.stylesheet()), sections=sections)


def _sections(loaded: LoadedPipeline, history: History, links: Links) -> Iterator[Section]:
    yield "State", "overview.html", overview(history, links, nodes=ALL)
    if history.reading.head is not None:
        for name in outputs(history):
            yield f"Corrections of {name}", "output.html", corrections(history, name)
    yield "Epochs", "calendar.html", calendar(history)
    yield "Runs", "runs.html", runs(history)
    if (expected := expectations_page(history)).rows:
        yield "Expectations", "expectations.html", expected
    yield from _letters(Letters(history.reading))
    yield "Rows that changed most", "restless.html", restless_page(history)
    yield "Next run", "next.html", next_run(loaded)


def _letters(letters: Letters) -> Iterator[Section]:
    """The triggers, and the first records of each."""
    yield f"Rejected records: {letters.total:,}", "letters.html", dead_letters(letters)
    for number, trigger in enumerate(letters.triggers[:TRIGGERS], 1):
        yield f"Rejected: trigger {number}", "letters.html", dead_letters(letters, trigger.name)
