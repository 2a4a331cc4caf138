"""Rollback cursors: up to which row each source came through, and what a run reads that begins there."""

from __future__ import annotations

from changelog.lazy_imports import pl
from errata.plan.plan import Node, Plan
from errata.rollback.dead_letters import rejecting_nodes, rejects_at
from errata.rollback.outcome import COMBINE, Settled
from errata.rollback.provenance import Leads
from errata.rollback.record_locations import Places
from errata.state.run_state import RunState
from errata.state.source_files import SourceFiles
from operators.source.file_changes import FileRecord
from operators.source.request import ResumePoint
from storage.state.entry import Entry
from storage.state.location import State


def cursor_of(source: str, rows: int, settled: Settled, rejects: pl.DataFrame | None) -> int:
    """The highest row of a source with `rows` rows that came through, before any overflowing group or failed combine row; 0 for none."""
    if rejects is not None:

        bad = rejects.filter(pl.col("source") == source, pl.col("number") <= rows)["number"].unique().sort(descending=True)
        rows -= int((bad == rows - pl.int_range(len(bad), eager=True)).cum_min().sum())
    return min(rows, settled.floors.get(source, rows + 1) - 1)


def rewind_at_combine(run: RunState, plan: Plan, node: Node, places: Places, settled: Settled) -> None:
    """Lower the cursors of the sources behind failed rows of a combine to before their records, of the driver and of its builds."""
    if node.kind != "combine" or not run.rejected_live(node.name):
        return
    leads = Leads(run, plan)
    failures = [one for one in leads.failures(node) if one.error.get("category") == COMBINE]
    found = [*failures, *leads.builds(node, failures)]
    records = {one.lead for one in found if not one.lead.grouped}
    records |= {lead for lead, _ in leads.contributors({(one.lead.node, one.lead.key): one for one in found if one.lead.grouped})}
    for source in {lead.node for lead in records}:
        for number in places.numbers(source, [lead.key for lead in records if lead.node == source]).values():
            settled.lower(source, number)


def resume_points(head: Entry, state: State, run: RunState, source: SourceFiles) -> dict[str, ResumePoint]:
    """By path of their records how far the files of a source are known after the last epoch: up to its cursor, without live rejects.

    Returns:
        Nothing where a node that rejected records has other logic now: the keys of its rejects cannot be read.
    """
    if not source.changes.changed:
        return {}
    rejecting = [name for name in rejecting_nodes(head, run.plan) if source.node.name in run.plan.sources_of(name)]
    involved = {one.name for name in rejecting for one in (run.plan[name], *run.plan.upstream(name))}
    if any(head.plan.get(name, {}).get("fingerprint") != run.plan[name].fingerprint() for name in involved):
        return {}
    rejects = rejects_at(head, run.plan, state, run.engine, rejecting).filter(pl.col("source") == source.node.name)
    again = {file: frozenset(keys) for file, keys in rejects.select("file", "record").group_by("file").all().iter_rows()}
    left = head.sources[source.node.name]
    found: dict[str, ResumePoint] = {}
    ahead = int(left["cursor"])
    for file in FileRecord.all_of(left):
        found[file.stored] = ResumePoint(max(min(ahead, file.rows), 0), again.get(file.path, frozenset()))
        ahead -= file.rows
    return found
