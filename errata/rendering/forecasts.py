"""The changes that a run would make, as text for people and as Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from errata.rendering.changes import changed_values
from errata.rendering.rows import Look, cell, render

Row = Mapping[str, Any]
NOTHING = "The next run would change nothing."


class Changed(Protocol):
    """The changes that a run would make in one node."""

    @property
    def name(self) -> str:
        """The node."""

    @property
    def action(self) -> str:
        """The action of the run."""

    @property
    def reason(self) -> str:
        """Why."""

    @property
    def added(self) -> int:
        """Rows that come."""

    @property
    def removed(self) -> int:
        """Rows that go."""

    @property
    def corrected(self) -> int:
        """Rows that change."""

    @property
    def changed(self) -> int:
        """All of these."""

    @property
    def figures(self) -> Mapping[str, Any]:
        """By how much totals of columns change."""

    @property
    def changes(self) -> Sequence[Row]:
        """The first changed rows."""


def as_text(nodes: Sequence[Changed], notes: Sequence[str], look: Look = Look()) -> Iterator[str]:  # noqa: B008 - frozen
    """A table of the nodes, then one of the first changed rows of each."""
    yield from render(map(summary, nodes), "text", look=replace(look, lead=("node", "action", "added", "removed", "corrected")))
    for node in nodes:
        if node.changes:
            yield f"\n{_heading(node)}\n"
            yield from render(map(merged, node.changes), "text", look=replace(look, lead=("op",), after=_shown_first(node.changes)))
    yield from (f"\n{note}\n" for note in notes)


def as_markdown(nodes: Sequence[Changed], notes: Sequence[str]) -> Iterator[str]:
    """The same in Markdown, the rows folded away below each node."""
    if not any(node.changed for node in nodes):
        yield f"{NOTHING}\n"
    else:
        yield from _table([summary(node) for node in nodes])
    for node in nodes:
        if node.changes:
            yield f"\n<details><summary>{_plain(_heading(node))}</summary>\n\n"
            yield from _table([merged(change) for change in node.changes])
            yield "\n</details>\n"
    yield from (f"\n> {_plain(note)}\n" for note in notes)


def summary(node: Changed) -> Row:
    """The line of a node: its rows and figures."""
    return {
        "node": node.name, "action": node.action, "added": node.added, "removed": node.removed, "corrected": node.corrected,
        "figures": "; ".join(f"{name} {_signed(value)}" for name, value in node.figures.items()), "reason": node.reason,
    }  # fmt: skip


def merged(change: Row) -> Row:
    """A changed row as one line, with both values where one changes."""
    row = change["after"] if change["after"] is not None else change["before"]
    return {"op": change["op"], **row, **changed_values(change)}


def _shown_first(changes: Sequence[Row]) -> Sequence[str]:
    """The columns that a table shows where it cannot show all: the first, which is most often the key, and those with changed values."""
    row = changes[0]["after"] if changes[0]["after"] is not None else changes[0]["before"]
    return [*list(row)[:1], *dict.fromkeys(name for change in changes for name in changed_values(change))]


def _heading(node: Changed) -> str:
    shown = len(node.changes)
    return f"{node.name}: {node.changed:,} changed row{'' if node.changed == 1 else 's'}" if shown == node.changed else f"{node.name}: the first {shown:,} of {node.changed:,} changed rows"


def _signed(value: Any) -> str:
    text = cell(value)
    return text if text.startswith("-") else f"+{text}"


def _table(rows: Sequence[Row]) -> Iterator[str]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    yield _line(map(str, names))
    yield _line("---" for _ in names)
    yield from (_line(cell(row.get(name)) for name in names) for row in rows)


def _line(cells: Any) -> str:
    return "| " + " | ".join(map(_plain, cells)) + " |\n"


def _plain(text: str) -> str:
    """A text without what Markdown would take for its own."""
    for sign in ("\\", "`", "*", "_", "[", "]", "<", ">", "|"):
        text = text.replace(sign, "\\" + sign) if sign not in "<>" else text.replace(sign, "&lt;" if sign == "<" else "&gt;")
    return text.replace("\r", " ").replace("\n", " ")
