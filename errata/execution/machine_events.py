"""Events of a run for other programs: what was read, rejected, committed and written. They count and name, and hold no value of the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from errata.core.events import Event
from errata.outputs.targets import CHANGES, FINISHED
from errata.plan.plan import Plan
from errata.plan.steps import IngestStep
from errata.state.run_state import RunState
from errata.state.source_files import SourceFiles
from errata.state.tally import Tally
from operators.output.operator import Output
from operators.source.file_changes import FileRecord
from storage.state.entry import Entry

if TYPE_CHECKING:
    import polars as pl

_OPS = ("+A", "-R", "-C", "+C")


def progress_of(node: str, size: int | None) -> Mapping[str, Any]:
    """Return the progress of a source that begins; `size` is None where it is not known."""
    return {"node": node, "rows_read": 0, "bytes_read": 0, "bytes_total": size}


def source_read(source: SourceFiles, step: IngestStep, files: Sequence[FileRecord], rejected: int) -> Event:
    """Return the event of a source that was read.

    Args:
        source: The source before the run.
        files: Its files afterwards.
        rejected: How many records it rejected.
    """
    known = {} if step.action in ("first", "rebuild") else {one.path: (one.hash, one.version, one.size) for one in source.known}
    present = [one for one in files if one.present]
    read = [one for one in present if known.get(one.path) != (one.hash, one.version, one.size)]
    return Event("source_read", step.node, facts={
        "node": step.node, "rows": sum(one.rows for one in read), "rejected": rejected, "bytes": sum(one.size for one in read),
        "inputs": len(read), "skipped": len(present) - len(read), "cursor": None,
    })  # fmt: skip


def newly_rejected(rejects: pl.DataFrame | None, epoch: int) -> Iterator[Event]:
    """Yield an event for each node and category with records that an epoch rejected first."""
    if rejects is None:
        return
    new = rejects.filter(rejects["epoch"] == epoch)
    for (node, category), group in sorted(new.group_by("node", "category"), key=lambda one: one[0]):
        yield Event("rejected", str(node), facts={"node": node, "category": category, "count": group.height})


def committed(entry: Entry, plan: Plan, run: RunState) -> Event:
    """Return the event of an epoch that is committed."""
    ops = {node.name: {op: int(run.done[node.name].ops.get(op, 0)) for op in _OPS} for node in plan if node.name in run.done}
    cursors = {name: one["cursor"] for name, one in entry.sources.items() if one["cursor"]}
    return Event("committed", facts={"epoch": entry.epoch, "ops": ops, "rejected": Tally.noted(entry.counters).open, "cursors": cursors, "ledger": entry.hash})


def outputs_written(plan: Plan, name: str, files: Sequence[Mapping[str, Any]], entry: Entry) -> Iterator[Event]:
    """Yield an event for each file, or the table, of an output; `name` may be `dlq`.

    Args:
        files: What the ledger keeps of the files. A single file has all rows; parts are not counted.
        entry: The epoch that they hold.
    """
    rows = int(entry.counters.get("rejected", 0) if name == "dlq" else entry.nodes[name]["live"])
    kind = "csv" if name == "dlq" else cast("Output", plan[name].operator).config.type
    data = [one for one in files if CHANGES not in one and FINISHED not in one]
    for one in files:
        role = "changelog" if CHANGES in one else "meta" if FINISHED in one else kind
        count = rows if role == kind and len(data) == 1 else None
        yield Event("output_written", name, facts={"node": name, "kind": role, "target": one["path"], "rows": count, "bytes": one.get("size"), "epoch": entry.epoch})
