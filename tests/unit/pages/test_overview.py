"""Many nodes: the table comes in parts, and the DAG is not drawn."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from errata.inspect.history import History
from errata.inspect.snapshot import Snapshot
from errata.pages.calendar import EPOCHS, NODES, calendar
from errata.pages.links import Links
from errata.pages.overview import MOST_DRAWN, overview
from errata.pages.rendering import render
from storage.state.entry import Entry

START = datetime(2026, 1, 1, tzinfo=UTC)


def history(nodes, epochs):
    """A state in memory: a chain of nodes; each one changed in each epoch. Its tables are not there."""
    names = [f"node{at:04}" for at in range(nodes)]
    plan = {name: {"type": "transform", "columns": [], "hidden": [], "persisted": False, "inputs": [[names[at - 1], None]] if at else []} for at, name in enumerate(names)}
    counts = {name: {"+A": 1, "live": 1} for name in names}
    entries = [Entry(epoch, f"r{epoch}", "", START, START, 0, plan=plan, nodes=counts, counters={}) for epoch in range(1, epochs + 1)]
    reading = Snapshot("many", SimpleNamespace(ledger="", root=""), None)
    reading.__dict__.update(entries=entries, head=entries[-1])
    return History(reading)


@pytest.mark.parametrize(("nodes", "drawn", "listed"), [(3, 2, 3), (MOST_DRAWN, 2, 200), (MOST_DRAWN + 1, 0, 200)])
def test_the_first_page_has_a_part_of_the_nodes(nodes, drawn, listed):
    view = overview(history(nodes, 2), Links(live=True))
    assert (len(view.drawings), len(view.nodes), view.part.total) == (drawn, listed, nodes)
    html = render("overview.html", view=view, links=Links(live=True))
    assert ("too many nodes to draw" in html) == (drawn == 0)
    assert ('href="/?part=2"' in html) == (nodes > 200)


def test_ten_thousand_places_come_in_pages():
    found = history(200, 50)
    view = calendar(found)
    assert (len(view.epochs), len(view.rows), view.part.of, view.nodes.of) == (EPOCHS, NODES, 2, 4)
    html = render("calendar.html", view=view, links=Links(live=True))
    assert html.count('href="/changes?') == EPOCHS * NODES
    assert len(html) < 700_000
    last = calendar(found, 2, 4)
    assert [epoch for epoch, _ in last.epochs] == list(range(10, 0, -1))
    assert last.rows[-1][0] == "node0199"
