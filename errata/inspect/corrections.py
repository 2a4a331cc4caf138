"""`errata corrections`: corrections as code, and what became of each."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from changelog.columns import column
from changelog.lazy_imports import F, pa
from cxl.types.types import type_name
from errata.inspect.snapshot import Snapshot
from errata.plan.plan import Node, Plan
from errata.state.node_tables import Tables
from operators.core.row_type import CORRECTED
from operators.corrections.correction import Correction
from operators.corrections.operator import SHAPE_KEY, Corrections
from operators.corrections.states import State
from operators.source.cell_corrections import SEPARATOR, Cell, cell_of
from operators.source.node import SourceNode, correction_key
from storage.values.types import arrow_type

Row = Mapping[str, Any]
PENDING: Final = "pending"
"""The state of a correction that no run has seen yet."""


def corrections(reading: Snapshot) -> Iterator[Row]:
    """One row a correction of the files as they are now, by node and place; `state` is what the last run found.

    `records` is the number of records that have its key, None where no run has looked.
    """
    for node in reading.plan.of_kind("corrections") if reading.plan is not None else ():
        known = _known(reading, node)
        for one in cast("Corrections", node.operator).all:
            seen = known.get(one.id)
            if not one.active:
                yield _row(node, one, one.written.entry.status, None)
            elif seen is None or seen.logic != one.logic:
                yield _row(node, one, PENDING, None)
            else:
                yield _row(node, one, seen.state, seen.rows)
    for node in reading.plan.of_kind("source") if reading.plan is not None else ():
        if corrected := cast("SourceNode", node.operator).corrections:
            yield from _at_source(reading, node, corrected)


def _at_source(reading: Snapshot, node: Node, corrections: Sequence[Correction]) -> Iterator[Row]:
    """The corrections of a source's cells, and what its live records say of them."""
    active = [one for one in corrections if one.active]
    records = _records(reading, node, active) if reading.head is not None and node.name in reading.head.plan and active else None
    for one in corrections:
        if not one.active:
            yield _row(node, one, one.written.entry.status, None)
        elif records is None:
            yield _row(node, one, PENDING, None)
        else:
            yield _row(node, one, *records.state(one))


@dataclass(frozen=True, slots=True)
class _Records:
    """Live records of a source that corrections name or changed, its rejects among them.

    Attributes:
        cells: What the cells of some columns say, a mapping a record.
        marked: The records that each correction changed, by its name.
        named: The records of each key.
    """

    cells: Sequence[Mapping[str, Cell]]
    marked: Mapping[str, Sequence[int]]
    named: Mapping[tuple[Cell, ...], Sequence[int]]

    def state(self, one: Correction) -> tuple[str, int | None]:
        """The state of a correction, and the number of its records."""
        assert one.column is not None  # a source retracts no record
        before, after = cell_of(one.before), cell_of(one.after)
        if marked := self.marked.get(one.id.hex()):
            done = all(self.cells[at][one.column] == after for at in marked)
            return ("applied" if done else PENDING), len(marked)
        named = self.named.get(tuple(map(cell_of, one.values)), ())
        said = {self.cells[at][one.column] for at in named}
        word = next((word for word, cell in ((PENDING, before), ("spent", after)) if cell in said), "conflict" if said else "dangling")
        return word, None if word == PENDING else len(named)


def _records(reading: Snapshot, node: Node, corrections: Sequence[Correction]) -> _Records:
    """The live records that a run corrected, that were rejected, or that have the first value of a key."""
    source = cast("SourceNode", node.operator)
    key = list(correction_key(source.config))
    names = list(dict.fromkeys([*key, *(one.column for one in corrections if one.column is not None)]))
    types = source.output.data
    live = Tables(reading.state.root, cast("Plan", reading.plan)).live(reading.engine, node, reading.values(reading.entries), reading.last).as_frame()
    known = CORRECTED in live.columns
    first = [value for one in corrections if not cell_of(value := one.values[0])[0]]
    keys = reading.engine.from_arrow(pa.table({"__first": pa.array(first, arrow_type(type_name(types[key[0]]))).unique()}))
    wanted = live.join(F.broadcast(keys), column(key[0]).eqNullSafe(F.col("__first")), "left")
    others = F.col("_error").isNotNull() | column(key[0]).isNull() | (F.col(CORRECTED).isNotNull() if known else F.lit(False))
    marks = F.col(CORRECTED) if known else F.lit(None).cast("string")
    rows = reading.engine.to_arrow(wanted.where(F.col("__first").isNotNull() | others).select(marks.alias("__marks"), F.col("_error").alias("__error"), *map(column, names)))
    cells, marked, named = [], dict[str, list[int]](), dict[tuple[Cell, ...], list[int]]()
    for at, row in enumerate(rows.to_pylist()):
        fields = (json.loads(row["__error"]).get("fields") or {}) if row["__error"] else {}
        cells.append({name: cell_of(row[name]) if row[name] is not None else (True, fields.get(name) or "") for name in names})
        for mark in (row["__marks"] or "").split(SEPARATOR):
            marked.setdefault(mark, []).append(at)
        named.setdefault(tuple(cells[at][name] for name in key), []).append(at)
    return _Records(cells, marked, named)


def marks_of(node: Node) -> str | None:
    """The hidden column by which rows of a node say which corrections they may have; None for a node that takes none.

    A source has the names of the corrections that changed the record there, a corrections node the key that its corrections name.
    """
    if node.kind == "corrections":
        return "_lookup"
    return CORRECTED if node.is_source and CORRECTED in node.operator.output.hidden else None


def applied_to(reading: Snapshot, node: Node, marks: Collection[Any]) -> Iterator[Correction]:
    """The corrections that hold for some records of a node, which are there: retractions are not among them.

    Args:
        reading: The committed state.
        node: A corrections node, or a source that takes corrections.
        marks: What these records say in the column that `marks_of` names.
    """
    if node.is_source:
        names = {name for text in marks if text for name in text.split(SEPARATOR)}
        yield from (one for one in cast("SourceNode", node.operator).corrections if one.active and one.id.hex() in names)
        return
    known, lookups = _known(reading, node), {bytes(mark) for mark in marks}
    for one in cast("Corrections", node.operator).active:
        if one.lookup in lookups and (seen := known.get(one.id)) is not None and seen.state == "applied":
            yield one


def _known(reading: Snapshot, node: Node) -> Mapping[bytes, State]:
    """The states that the last run found, by the id of the correction."""
    if reading.head is None or reading.plan is None:
        return {}
    state = Tables(reading.state.root, reading.plan).latest_state(reading.engine, node.name, reading.head.epoch)
    rows = [] if state is None else state.as_table().to_pylist()
    return {bytes(row["_key"]): State.of(row) for row in rows if bytes(row["_key"]) != SHAPE_KEY}


def _row(node: Node, one: Correction, state: str, records: int | None) -> Row:
    content = one.content()
    fields = {name: content.get(name) for name in ("place", "key", "column", "from", "to", "reason", "author", "ticket")}
    return {"node": node.name, "state": state, **fields, "column": fields["column"] or "", "records": records} | ({"to": "(retracted)"} if one.column is None else {})
