"""`errata booked`: the rows of outputs that correct closed periods, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from changelog.columns import column
from changelog.lazy_imports import F
from changelog.ops import is_positive
from errata.core.failures import Usage
from errata.inspect.causes import RECOMPUTE, Change, traced
from operators.output.booked import BookedOutput
from operators.output.booking import EPOCH, KIND
from storage.values.python_rows import dictionaries

if TYPE_CHECKING:
    from errata.inspect.snapshot import Snapshot
    from errata.plan.plan import Node

Row = Mapping[str, Any]
COLUMNS: Final = ("output", "as", "period", "into", "row", "figures", "epoch", "causes", "reason")
"""The columns of the answer."""


def booked(reading: Snapshot, name: str | None = None, at: int | None = None) -> Iterator[Row]:
    """One row for each booked row, by output and in the order of their keys.

    Args:
        reading: The committed state.
        name: The output; None for all outputs that book.
        at: The epoch after which they stood; None for the last one.

    Raises:
        Usage: The output books nothing, or there is no such epoch.
    """
    assert reading.plan is not None  # the caller loaded the pipeline
    books = [node for node in reading.plan.of_kind("output") if isinstance(node.operator, BookedOutput)]
    chosen = [node for node in books if name in (None, node.name)]
    if name is not None and not chosen:
        known = ", ".join(node.name for node in books)
        raise Usage(f"'{name}' is no output that books late changes", help=f"outputs that do: {known}" if known else "closed: { when, late: book, into, figures } of an output makes it one")
    epoch = reading.known_epoch(at)
    for node in chosen:
        if name is not None or node.name in reading.nodes:
            yield from _of_output(reading, node, epoch)


def books(reading: Snapshot, name: str) -> bool:
    """Whether an output of the present pipeline books late changes of closed periods."""
    plan = reading.plan
    return plan is not None and name in plan.nodes and isinstance(plan[name].operator, BookedOutput)


def _of_output(reading: Snapshot, node: Node, at: int) -> Iterator[Row]:
    operator = node.operator
    assert isinstance(operator, BookedOutput)  # the caller chose it
    committed = reading.committed(node.name)
    if KIND not in committed.data:
        return  # the last run did not book yet
    rows = reading.keyed(node.name, at).where(column(KIND).isNotNull()).orderBy("_key")
    found = list(dictionaries(reading.engine.to_arrow(rows)))
    causes = _causes(reading, node, [(row[EPOCH], bytes(row["_key"])) for row in found])
    reasons, booking = reading.reasons(), operator.booking
    for row in found:
        values = committed.values({**row, "_widened": None}) | {name: row[name] for name in row if name not in committed.data and name != "_key"}
        shown = [name for name in values if name not in operator.added and name not in booking.figures and name not in booking.into]
        yield {
            "output": node.name, "as": row[KIND], "period": {name: values[original] for name, original in booking.originals.items()},
            "into": {name: values[name] for name in booking.into}, "row": {name: values[name] for name in shown}, "figures": {name: values[name] for name in booking.figures},
            "epoch": row[EPOCH], "causes": causes[row[EPOCH], bytes(row["_key"])], "reason": reasons.get(row[EPOCH]),
        }  # fmt: skip


def _causes(reading: Snapshot, node: Node, changes: Sequence[Change]) -> dict[Change, list[str]]:
    """Why each row was booked: the causes of the source rows behind it, or its own."""
    if not changes:
        return {}
    first, last = min(epoch for epoch, _ in changes), max(epoch for epoch, _ in changes)
    rows = reading.changelog(node.name, (first, last)).where(is_positive(F.col("_op")) & column(KIND).isNotNull()).select("_epoch", "_key", "_cause")
    own = {(row["_epoch"], bytes(row["_key"])): row["_cause"] for row in dictionaries(reading.engine.to_arrow(rows))}
    behind = traced(reading, node.name, [change for change in changes if own.get(change) == RECOMPUTE])
    return {change: behind.get(change, [own[change]] if change in own else []) for change in changes}
