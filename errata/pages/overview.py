"""The first page: the DAG with the rows of each node and what the last epoch changed in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from errata.inspect.history import History
from errata.pages.drawing import Box, Drawing, drawings
from errata.pages.links import Links
from errata.pages.paging import Part, cut_out
from errata.pages.values import short

Row = Mapping[str, Any]
NODES = 200
"""The nodes of one page of the table."""
MOST_DRAWN = 500
"""The number of nodes up to which the DAG is drawn."""
STYLES = {"+A": ("add", "+{:,}"), "-R": ("take", "-{:,}"), "+C": ("fix", "~{:,}")}
"""How the count of an op is written, and its style."""


@dataclass(frozen=True, slots=True)
class NodeLine:
    """A node in the table below the drawing. `live` is None for a node without a table."""

    name: str
    kind: str
    live: int | None
    rejected: int
    change: tuple[tuple[str, str], ...]
    changed_at: int | None


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A source with what it has read."""

    name: str
    files: int
    live: int
    suppressed: int
    cursor: int
    read_to: str


@dataclass(frozen=True, slots=True)
class Overview:
    """The first page. `epoch` is None before the first run."""

    pipeline: str
    epoch: int | None
    finished: datetime | None
    seconds: float
    reason: str
    rejected: int
    waived: int
    drawings: tuple[Drawing, ...]
    nodes: tuple[NodeLine, ...]
    part: Part
    sources: tuple[SourceLine, ...]


def overview(history: History, links: Links, wanted: int = 1, nodes: int = NODES) -> Overview:
    """Return the first page, with a part of the nodes in its table."""
    reading = history.reading
    status = reading.status()
    runs = history.runs()
    last = runs[-1] if runs else None
    place = {name: at for at, name in enumerate(history.names)}
    lines = tuple(_lines(sorted(status["nodes"], key=lambda node: place[node["name"]]), last.nodes if last else {}, last.epoch if last else 0))
    which, shown = cut_out(lines, nodes, wanted)
    boxes = list(_boxes(history, lines, links))
    counters = last.counters if last else {}
    reason = " ".join(str(counters[name]) for name in ("kind", "reason") if counters.get(name))
    return Overview(
        reading.name, status["epoch"], last.finished if last else None, _seconds(last), short(reason), status["rejected"], status.get("waived", 0),
        drawings(boxes if len(boxes) <= MOST_DRAWN else ()), tuple(shown), which, tuple(_source(row) for row in status["sources"]),
    )  # fmt: skip


def _seconds(last: Any) -> float:
    return 0.0 if last is None else float((last.finished - last.started).total_seconds())


def op_texts(ops: Mapping[str, int]) -> tuple[tuple[str, str], ...]:
    """Return the counts of ops as texts with their styles; a correction counts once."""
    return tuple((style, form.format(ops[op])) for op, (style, form) in STYLES.items() if ops.get(op))


def _lines(nodes: Sequence[Row], counts: Mapping[str, Row], epoch: int) -> Iterator[NodeLine]:
    for node in nodes:
        summary = counts.get(node["name"], {})
        change = op_texts(summary) if node["last_epoch"] == epoch else ()
        yield NodeLine(node["name"], node["type"], node["rows_live"], int(summary.get("rejected_live", 0) or 0), change, node["last_epoch"])


def _source(row: Row) -> SourceLine:
    return SourceLine(row["name"], len(row["files"]), row["rows_live"], row["rows_suppressed"], row["cursor"], short(str(row.get("read_to", ""))))


def _boxes(history: History, lines: Sequence[NodeLine], links: Links) -> Iterator[Box]:
    """The boxes of the pipeline's nodes; of the last run where its file cannot be planned."""
    known = {line.name: line for line in lines}
    for name, kind, inputs in _wiring(history):
        line = known.get(name)
        caption = kind if line is None or line.live is None else f"{kind}, {line.live:,} row{'' if line.live == 1 else 's'}"
        yield Box(name, kind, caption, tuple(dict.fromkeys(inputs)), line.change if line else (), links.node(name) if line else "")


def _wiring(history: History) -> Iterator[tuple[str, str, list[str]]]:
    """Name, type and inputs of each node."""
    reading = history.reading
    if reading.plan is not None:
        yield from ((node.name, node.kind, [above for above, _ in node.inputs]) for node in reading.plan)
    elif reading.head is not None:
        yield from ((name, summary["type"], [above for above, _ in summary["inputs"]]) for name, summary in reading.head.plan.items())
