"""Pages about rows: a node, the rows that an epoch changed, a row's story, the rows that changed most."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cxl.types.types import type_name
from errata.core.failures import Usage
from errata.inspect.history import History, RowChange
from errata.inspect.row_keys import key_columns
from errata.inspect.story import UpstreamRows, tree
from errata.pages.overview import op_texts
from errata.pages.paging import Part, cut_out, part
from errata.pages.record_forms import Pairs, fields_of_form
from errata.pages.values import Lines, Shown, fields, lines, short
from errata.rendering.rows import cell

Row = Mapping[str, Any]
ROWS = 50
EPOCHS = 40
VERSIONS = 20
"""The newest versions of a source record that a story shows."""


@dataclass(frozen=True, slots=True)
class EpochOfNode:
    """An epoch that changed a node, with the counts of its ops."""

    epoch: int
    when: str
    change: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class NodePage:
    """A node: its columns, its epochs (the newest first), and the rows that were searched."""

    name: str
    kind: str
    live: int | None
    inputs: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    epochs: tuple[EpochOfNode, ...]
    part: Part
    search: tuple[str, str] = ("", "")
    found: tuple[tuple[str, list[tuple[str, Shown]]], ...] | None = None


@dataclass(frozen=True, slots=True)
class ChangesPage:
    """The rows that an epoch changed in a node. Where there are too many to put them `in_order`, some of them."""

    name: str
    epoch: int
    when: str
    lines: Lines
    part: Part
    in_order: bool


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a source record, or a correction as code, which has no epoch."""

    epoch: int | None
    op: str
    cause: str
    reason: str
    live: bool
    fields: list[tuple[str, Shown]]


@dataclass(frozen=True, slots=True)
class Record:
    """A source record with its versions, oldest first; `older` of them are left out. `key` is what a correction names it by."""

    source: str
    file: str
    row: int | None
    versions: tuple[Version, ...]
    older: int
    key: Pairs = ()
    values: Pairs = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """A node of the tree below a row."""

    name: str
    kind: str
    count: int
    repeated: bool
    rows: tuple[tuple[str, list[tuple[str, Shown]]], ...]
    records: tuple[Record, ...]
    inputs: tuple[Branch, ...]
    hidden: int


@dataclass(frozen=True, slots=True)
class Story:
    """The story of one row. `tree` is None where it was not asked for, or the row is gone; `unknown` says why it cannot be made."""

    name: str
    key: str
    live: bool
    now: list[tuple[str, Shown]]
    lines: Lines
    command: str
    tree: Branch | None = None
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Restless:
    """A row that changed in many epochs."""

    node: str
    key: str
    epochs: int
    fields: list[tuple[str, Shown]]


def node_page(history: History, name: str, part: int = 1, search: tuple[str, str] = ("", ""), found: Sequence[tuple[str, Row]] | None = None) -> NodePage:
    """Return a node's page. Raises Usage for a node that has not run."""
    reading = history.reading
    node = reading.committed(name)
    counts = history.counts(name)
    which, epochs = cut_out(sorted(counts, reverse=True), EPOCHS, part)
    moments = _moments(history)
    plan = reading.plan
    inputs = tuple(dict.fromkeys(above for above, _ in plan[name].inputs)) if plan is not None and name in plan.nodes else ()
    live = reading.head.nodes.get(name, {}).get("live") if reading.head and node.persisted else None
    return NodePage(
        name, node.kind, live, inputs, tuple((short(column, 60), type_name(type_.base)) for column, type_ in node.data.items()),
        tuple(EpochOfNode(epoch, moments.get(epoch, ""), op_texts(counts[epoch])) for epoch in epochs), which, search,
        None if found is None else tuple((key, fields(row)) for key, row in found),
    )  # fmt: skip


def changes_page(history: History, name: str, epoch: int, wanted: int = 1) -> ChangesPage:
    """Return rows that an epoch changed in a node. Raises Usage for a node or an epoch that is not there."""
    history.reading.committed(name)
    history.reading.known_epoch(epoch)
    total, in_order = history.changed(name, epoch), history.in_order(name, epoch)
    which = part(total, ROWS, wanted) if in_order else Part(1, 1, total)
    found = history.changes(name, epoch, (which.number - 1) * ROWS, ROWS)
    return ChangesPage(name, epoch, _moments(history).get(epoch, ""), lines(found), which, in_order)


def story(history: History, name: str, key: str, command: str, *, why: bool = True) -> Story:
    """Return a row's story.

    Args:
        history: The state.
        name: The node that has or had the row.
        key: The row's key in hexadecimal.
        command: The words of a command line up to the node.
        why: Whether to look for what is behind the row, which takes an engine.

    Raises:
        Usage: There was no such row.
    """
    try:
        found = history.row(name, bytes.fromhex(key))
    except ValueError:
        found = []
    if not found:
        raise Usage(f"node '{short(name, 60)}' had no row with this key")
    last = found[-1].after
    live = last is not None
    branch, unknown = _behind(history, name, bytes.fromhex(key)) if live and why else (None, "")
    now = fields(last or found[-1].before or {})
    return Story(name, key, live, now, lines(reversed(found[-ROWS:])), _why_command(history, name, last, command), branch, unknown)


def _behind(history: History, name: str, key: bytes) -> tuple[Branch | None, str]:
    try:
        return _branch(history, tree(history.reading, name, key)), ""
    except Usage as problem:
        return None, problem.message


def _why_command(history: History, name: str, row: Row | None, command: str) -> str:
    """The command that says the same of a live row; empty where no columns name it."""
    plan = history.reading.plan
    if row is None or plan is None or name not in plan.nodes:
        return ""
    named = key_columns(plan, plan[name])
    if named is None or any(len(str(row.get(column))) > 100 for column in named):
        return ""
    words = [f"{column}={shown_plain(row.get(column))}" for column in named]
    return short(f"{command} {shlex.join([name, *words])}", 400) if words else ""


def shown_plain(value: Any) -> str:
    """Return a value as a condition of a command, or a correction, has it."""
    return cell(value)


def _branch(history: History, upstream: UpstreamRows) -> Branch:
    rows = tuple((key, fields(row)) for key, row in upstream.rows)
    records = tuple(_records(history, upstream))
    entries = sum(not one["op"] for one in upstream.records) if upstream.kind == "source" else 0
    hidden = 0 if upstream.repeated else max(0, upstream.count - len(rows or records) + entries)
    return Branch(upstream.name, upstream.kind, upstream.count, upstream.repeated, rows, records, tuple(_branch(history, one) for one in upstream.inputs), hidden)


def _records(history: History, upstream: UpstreamRows) -> Iterator[Record]:
    """The records of a source, each with its versions. A version that is live ends its record."""
    versions: list[Row] = []
    for one in upstream.records:
        versions.append(one)
        if one["live"]:
            yield _record(history, upstream.name, versions)
            versions = []


def _record(history: History, source: str, versions: Sequence[Row]) -> Record:
    last = versions[-1]
    plan = history.reading.plan
    named = key_columns(plan, plan[source]) if plan is not None and source in plan.nodes else None
    texts = {column: shown_plain(value) for column, value in last["data"].items()}
    corrected = plan is not None and source in plan.nodes and plan[source].is_source and last["op"]
    key, values = fields_of_form(texts, named) if corrected else ((), ())
    shown_ones = tuple(
        Version(one["epoch"], one["op"], short(one["cause"], 80), short(one["reason"]), one["live"], fields(one["data"])) for one in versions[-VERSIONS:]
    )
    return Record(source, short(last["file"]), last["row"], shown_ones, len(versions) - len(shown_ones), key, values)


def restless_page(history: History) -> list[Restless]:
    """Return the rows that changed in most epochs."""
    return [Restless(name, change.key, count, fields(_newest(change))) for name, count, change in history.restless()]


def _newest(change: RowChange) -> Row:
    return change.after or change.before or {}


def _moments(history: History) -> dict[int, str]:
    return {entry.epoch: f"{entry.started:%Y-%m-%d %H:%M}" for entry in history.runs()}

