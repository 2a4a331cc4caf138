"""`errata verify --recompute`: all that is derived is computed from nothing and compared (DESIGN section 9, I1).

The batch run begins at the rows of the sources that stand, not at the files: what was corrected by hand, reverted to, or came from files
that are gone since is as true as the rest. So a row that differs is one that some run has derived wrongly, or that somebody has changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from changelog.spark_algebra import as_appends, diff
from errata.core.options import EngineOptions, RunOptions
from errata.execution.ingest import SourceFiles, files_left
from errata.execution.run import Run
from errata.plan.correlation import concerns
from errata.plan.steps import make_stages
from errata.state.node_tables import folded
from errata.state.suppressed_rows import truth
from operators.core.operator import Outcome
from storage.delta.changelog_table import ChangelogTable
from storage.state.entry import Entry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from errata.api.pipeline import Pipeline
    from errata.execution.node_runner import NodeDelta, NodeRunner
    from errata.inspect.snapshot import Snapshot
    from errata.plan.plan import Node, Plan
    from errata.plan.steps import Stage
    from errata.state.committed_node import CommittedNode
    from operators.source.file_changes import FileRecord
    from storage.engines import Engine


@dataclass(slots=True)
class Recomputation(Run):
    """A run from nothing over the source rows that stand in an audited state. It reads no files, writes no outputs and commits nothing."""

    audited: Snapshot | None = None

    def recompute(self) -> None:
        """Fill the tables of this run's own state. Raises Failure."""
        assert self.audited is not None  # `recomputed` gave it
        head = self.audited.head
        assert head is not None  # an audit begins at a ledger
        sources = files_left(self.plan, head)
        stages = make_stages(self.plan, None, {})
        flow = self._flow(sources, stages)
        try:
            with flow.engine.sized(max(map(_standing, head.nodes.values()), default=0)):
                self._propagate(flow, sources, stages)
        finally:
            flow.engine.release()

    def _ingest(self, flow: NodeRunner, source: SourceFiles, stage: Stage) -> tuple[NodeDelta, tuple[FileRecord, ...]]:
        assert self.audited is not None  # `recomputed` gave it
        node, head = source.node, self.audited.head
        if head is None or not _same(node, head):
            return flow.keep_nothing(node), source.changes.now
        rows = as_appends(truth(_stands(self.audited, node.name, flow.tables.columns(node), flow.engine)), "ingest")
        delta = flow.keep(node, Outcome(rows, signed=False), _standing(head.nodes.get(node.name, {})))
        return delta, source.changes.now


def recomputed(project: Pipeline, reading: Snapshot, engine: EngineOptions) -> Iterator[tuple[str, int | None, str]]:
    """Each node with how many of its rows differ from a batch run over the source rows that stand; None, and why, where that cannot be said. Raises Failure."""
    from errata.execution.epoch import exclusive

    assert reading.head is not None  # an audit begins at a ledger
    untold = incomparable(project.plan, reading.head)
    other = project.ephemeral()
    try:
        with exclusive(other, RunOptions(engine=engine), Recomputation, audited=reading) as batch:
            batch.recompute()
        for name, node in reading.nodes.items():
            if node.persisted and name in project.plan.nodes:
                yield (name, None, untold[name]) if name in untold else (name, _differing(reading, node, other.state.root), "")
    finally:
        other.state.forget()


def incomparable(plan: Plan, head: Entry) -> dict[str, str]:
    """The nodes whose rows another run may derive otherwise although nothing is wrong, and why."""
    changed = [name for name in {**head.plan, **plan.nodes} if name not in plan.nodes or not _same(plan[name], head)]
    if changed and concerns(plan, head):  # what is rolled back anywhere may depend on any node
        return dict.fromkeys(plan.nodes, f"{changed[0]} changed since epoch {head.epoch}")
    found: dict[str, str] = {}
    for node in plan:
        above = [found[name] for name in (*(name for name, _ in node.inputs), *node.feeds.values()) if name in found]
        if node.name in changed:
            found[node.name] = f"{node.name} changed since epoch {head.epoch}"
        elif not node.operator.deterministic:
            found[node.name] = f"{node.name} reads what is another in every run"
        elif above:
            found[node.name] = above[0]
    return found


def _same(node: Node, head: Entry) -> bool:
    """Whether a node is what it was in the last epoch, with the same columns."""
    before, output = head.plan.get(node.name), node.operator.output
    return before is not None and before["fingerprint"] == node.fingerprint() and dict(before["hidden"]) == dict(output.hidden_columns())


def _standing(counts: Mapping[str, Any]) -> int:
    """How many rows of a node stand, rejects among them."""
    return int(counts.get("live", 0)) + int(counts.get("rejected_live", 0))


def _stands(reading: Snapshot, name: str, columns: Mapping[str, str], engine: Engine) -> DataFrame:
    """The rows of a node that stand in the audited state, rejects among them, as an engine reads them."""
    assert reading.head is not None  # an audit begins at a ledger
    path = f"changelog/{name}"
    table = ChangelogTable(f"{reading.state.root}/{path}", columns, pinned=reading.head.tables[path])
    return folded(engine, table, reading.head.epoch).drop("_epoch")


def _differing(reading: Snapshot, node: CommittedNode, root: str) -> int:
    """How many rows of a node, rejects among them, are not the same under the same key as in another state."""
    columns, engine = node.columns(), reading.engine
    batch = folded(engine, ChangelogTable(f"{root}/changelog/{node.name}", columns)).drop("_epoch")
    return diff(_stands(reading, node.name, columns, engine), batch, "").select("_key").distinct().count()
