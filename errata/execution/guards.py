"""What ends a run before anything is committed: emptied sources, a first failing record under fail_fast, too many rejects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from errata.core.failures import Stopped, StorageFailed
from errata.execution import failing_record
from errata.execution.ingest import place_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from errata.core.options import RunOptions
    from errata.execution.node_runner import NodeDelta, NodeRunner
    from errata.plan.plan import Node, Plan
    from errata.rollback.record_locations import Places
    from operators.source.file_changes import FileRecord
    from storage.state.entry import Entry

MAX_RETRACT_SHARE = 0.5
"""The share of a source's live rows that one run may take back (CONTRACT, "Merge strategies", the guard)."""


def guard(options: RunOptions, node: Node, delta: NodeDelta, before: int) -> None:
    """Stop a run that would take back most of a source's rows, as an emptied or truncated file would. Raises Stopped.

    `before`: how many stood, those that are rolled back among them and no other rejects. A row that is replaced by another is not lost.
    """
    share = MAX_RETRACT_SHARE if options.max_retract_share is None else options.max_retract_share
    taken = delta.ops.get("-R", 0) + delta.ops.get("-C", 0)
    replaced = delta.ops.get("+A", 0) + delta.ops.get("+C", 0)
    lost = taken - replaced
    if before and lost > share * before:
        message = f"source '{node.name}' would lose {lost:,} of its {before:,} rows, more than {share:.0%}"
        raise Stopped(message, help="check the input; --max-retract-share 1 lets it through")


def stop_at_first(flow: NodeRunner, node: Node, delta: NodeDelta, files: Sequence[FileRecord], places: Callable[[], Places]) -> None:
    """Under fail_fast the first node that rejects a record ends the run, unless it is merely late; what a node calls fatal always does.

    `files` are those of a source, `places` finds the records behind other nodes' rows. Raises Stopped, StorageFailed where a record is malformed.
    """
    fatal = node.operator.fatal
    strict = flow.tables.plan.model.error_handling.strategy == "fail_fast"
    if not delta.rejected or not (strict or fatal):
        return
    first = flow.first_reject(node, frozenset() if strict else fatal)
    if first:
        kind = StorageFailed if first.get("category") == "malformed_record" else Stopped
        place = place_of(first, files) if node.is_source else _place_behind(flow, node, first, places())
        message = f"node '{node.name}': {_in_words(place)}{first.get('detail', '')} ({first.get('category', '')})"
        goes_on = "error_handling: { strategy: continue } sends such records to the dead letter queue"
        details = failing_record.told(flow, node, first["_key"])
        raise kind(message, help="" if first.get("category") in fatal else goes_on, details=details, file=place[0] if place else "")


def _place_behind(flow: NodeRunner, node: Node, first: Mapping[str, Any], places: Places) -> tuple[str, int | None] | None:
    """File and number of the source record behind a row that a node rejected; None where no single one is."""
    from errata.rollback.dead_letters import Rejects

    return Rejects(flow.tables.plan, flow.tables, flow.engine, flow.values, places).behind(node, first["_key"], first)


def _in_words(place: tuple[str, int | None] | None) -> str:
    """`orders.csv: record 3: ` of a record's place; nothing where it is not known."""
    if place is None:
        return ""
    file, row = place
    return f"{file}: " if row is None else f"{file}: record {row}: "


def judge(plan: Plan, options: RunOptions, flow: NodeRunner, files: Mapping[str, Sequence[FileRecord]], collateral: int) -> None:
    """Thresholds; `collateral` of the rejected records failed only with their group, `files` are those of the sources. Raises Stopped."""
    read = sum(flow.live_rows.get(node.name, 0) for node in plan.of_kind("source"))
    exceeded = _exceeded(plan, options, read, flow.total_rejected(), collateral)
    if exceeded:
        raise Stopped(exceeded, measured=_measured(plan, flow, files))


def judge_unchanged(plan: Plan, options: RunOptions, head: Entry) -> None:
    """Thresholds of a run that changes nothing: records that were rejected before count as they do in a full run. Raises Stopped."""
    from errata.telemetry.metrics import counted, present_files

    kept = {kind: [head.nodes.get(node.name, {}) for node in plan.of_kind(kind)] for kind in ("source", "output")}
    read = sum(counts.get("live", 0) + counts.get("rejected_live", 0) for counts in kept["source"])
    rejected = int(head.counters.get("rejected", 0))
    exceeded = _exceeded(plan, options, read, rejected, int(head.counters.get("correlated", 0)))
    if exceeded:
        present = [(str(file["path"]), int(file["rows"])) for file in present_files(head)]
        raise Stopped(exceeded, measured=counted(present, sum(counts.get("live", 0) for counts in kept["output"]), rejected))


def _exceeded(plan: Plan, options: RunOptions, read: int, rejected: int, collateral: int) -> str:
    """What threshold is exceeded, in words; empty where none is."""
    share, failed = plan.model.error_handling.type_error_threshold, rejected - collateral
    if options.error_threshold and rejected > options.error_threshold:
        return f"{rejected:,} records were rejected, more than the threshold of {options.error_threshold:,}"
    if share is not None and read and failed / read > share:
        return f"{failed:,} of {read:,} records failed, more than the share {share:g} of type_error_threshold"
    return ""


def _measured(plan: Plan, flow: NodeRunner, files: Mapping[str, Sequence[FileRecord]]) -> dict[str, Any]:
    """What a run that is over but for its commit has of a metrics file's members: records read, in outputs and rejected, the files read."""
    from errata.telemetry.metrics import counted

    present = [(record.path, record.rows) for node in plan.of_kind("source") for record in files.get(node.name, ()) if record.present]
    return counted(present, sum(flow.summary(node)["live"] for node in plan.of_kind("output")), flow.total_rejected())
