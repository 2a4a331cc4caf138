"""Rollback cursors: up to which row each source came through, and what a run reads that begins there (SPEC-DECISIONS, The engine 18)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from changelog.lazy_imports import pl
from errata.rollback.outcome import COMBINE
from operators.source.file_changes import FileRecord

if TYPE_CHECKING:

    from errata.execution.ingest import SourceFiles
    from errata.execution.node_runner import NodeRunner
    from errata.execution.run import Run
    from errata.plan.plan import Node, Plan
    from errata.rollback.outcome import Settled
    from errata.rollback.record_locations import Places
    from operators.source.request import ResumePoint


def cursor_of(source: str, rows: int, settled: Settled, rejects: pl.DataFrame | None) -> int:
    """The highest row of a source of so many `rows` that came through, ahead of a group that overflowed or a combine row that failed; 0 for none."""
    if rejects is not None:

        bad = rejects.filter(pl.col("source") == source, pl.col("number") <= rows)["number"].unique().sort(descending=True)
        rows -= int((bad == rows - pl.int_range(len(bad), eager=True)).cum_min().sum())
    return min(rows, settled.floors.get(source, rows + 1) - 1)


def rewind_at_combine(flow: NodeRunner, plan: Plan, node: Node, places: Places, settled: Settled) -> None:
    """Let the cursors of the sources behind failed rows of a combine stop before their records: those of the driver and of the builds it met.

    (correlation-keys.txt, "Per-source rollback narrowing".)
    """
    from errata.rollback.provenance import Leads

    if node.kind != "combine" or not flow.rejected_live(node.name):
        return
    leads = Leads(flow, plan)
    failures = [one for one in leads.failures(node) if one.error.get("category") == COMBINE]
    found = [*failures, *leads.builds(node, failures)]
    records = {one.lead for one in found if not one.lead.grouped}
    records |= {lead for lead, _ in leads.contributors({(one.lead.node, one.lead.key): one for one in found if one.lead.grouped})}
    for source in {lead.node for lead in records}:
        for number in places.numbers(source, [lead.key for lead in records if lead.node == source]).values():
            settled.lower(source, number)


def floors_before(run: Run, flow: NodeRunner, source: SourceFiles) -> dict[str, ResumePoint]:
    """By the path of their records how far the files of a source are known after the last epoch: up to its cursor, but for what stands rejected.

    Nothing is known where the logic by which a node rejected some of its records is another now: the keys of rejects are read by it.
    """
    from errata.inspect.dlq import rejecting_nodes, rejects_at
    from operators.source.request import ResumePoint

    if run.head is None or not source.changes.changed:
        return {}
    rejecting = [name for name in rejecting_nodes(run.head, run.plan) if source.node.name in run.plan.sources_of(name)]
    involved = {one.name for name in rejecting for one in (run.plan[name], *run.plan.upstream(name))}
    if any(run.head.plan.get(name, {}).get("fingerprint") != run.plan[name].fingerprint() for name in involved):
        return {}
    rejects = rejects_at(run.head, run.plan, run.state, flow.engine, rejecting).filter(pl.col("source") == source.node.name)
    again = {file: frozenset(keys) for file, keys in rejects.select("file", "record").group_by("file").all().iter_rows()}
    left = run.head.sources[source.node.name]
    found: dict[str, ResumePoint] = {}
    ahead = int(left["cursor"])
    for file in FileRecord.all_of(left):
        found[file.stored] = ResumePoint(max(min(ahead, file.rows), 0), again.get(file.path, frozenset()))
        ahead -= file.rows
    return found
