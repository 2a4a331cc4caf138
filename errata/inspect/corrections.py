"""`errata corrections`: corrections as code, and what became of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from errata.inspect.snapshot import Snapshot
from errata.plan.plan import Node
from errata.state.node_tables import Tables
from operators.corrections.correction import Correction
from operators.corrections.operator import SHAPE_KEY, Corrections
from operators.corrections.states import State

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


def applied_to(reading: Snapshot, node: Node, lookups: set[bytes]) -> Iterator[Correction]:
    """The corrections that hold for some records of a node, which are there: retractions are not among them."""
    known = _known(reading, node)
    for one in cast("Corrections", node.operator).active:
        if one.lookup in lookups and (seen := known.get(one.id)) is not None and seen.state == "applied":
            yield one


def _known(reading: Snapshot, node: Node) -> Mapping[bytes, State]:
    """What the last run found, by the id of the correction."""
    if reading.head is None or reading.plan is None:
        return {}
    state = Tables(reading.state.root, reading.plan).latest_state(reading.engine, node.name, reading.head.epoch)
    rows = [] if state is None else state.as_table().to_pylist()
    return {bytes(row["_key"]): State.of(row) for row in rows if bytes(row["_key"]) != SHAPE_KEY}


def _row(node: Node, one: Correction, state: str, records: int | None) -> Row:
    content = one.content()
    told = {name: content.get(name) for name in ("place", "key", "column", "from", "to", "reason", "author", "ticket")}
    return {"node": node.name, "state": state, **told, "column": told["column"] or "", "records": records} | ({"to": "(retracted)"} if one.column is None else {})
