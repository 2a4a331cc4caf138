"""Rollback cursors: up to which row each source came through, and what a run reads that begins there (SPEC-DECISIONS, The engine 18)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from errata.correlation_settled import COMBINE
from operators.ingest.files import FileRecord

if TYPE_CHECKING:
    from errata.correlation_settled import Settled
    from errata.ingest import SourceFiles
    from errata.propagate import Flow
    from errata.rejects import Reject
    from errata.run import Run
    from operators.ingest.intake import Floor


def cursor_of(source: str, rows: int, settled: Settled, rejects: Sequence[Reject]) -> int:
    """The highest row of a source of so many `rows` that came through, ahead of a group that overflowed or a combine row that failed; 0 for none."""
    bad = {one.number for one in rejects if one.source == source}
    while rows and rows in bad:
        rows -= 1
    floors = [one.number for one in rejects if one.source == source and one.category == COMBINE and one.number]
    return min([rows, *(floor - 1 for floor in (*floors, settled.floors.get(source)) if floor is not None)])


def floors_before(run: Run, flow: Flow, source: SourceFiles) -> dict[str, Floor]:
    """By path how far the files of a source are known after the last epoch: up to its cursor, but for what stands rejected."""
    from errata.dead_letters import rejects_at
    from operators.ingest.intake import Floor

    if run.head is None or not source.changes.changed:
        return {}
    again: dict[str, set[bytes]] = {}
    for one in rejects_at(run.head, run.plan, run.state, flow.engine):
        if one.source == source.node.name:
            again.setdefault(one.file, set()).add(one.record)
    left = run.head.sources[source.node.name]
    found: dict[str, Floor] = {}
    ahead = int(left["cursor"])
    for file in map(FileRecord.of, left["files"]):
        found[file.path] = Floor(max(min(ahead, file.rows), 0), frozenset(again.get(file.path, ())))
        ahead -= file.rows
    return found
