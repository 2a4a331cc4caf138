"""`errata verify --recompute`: everything derived is computed from the live source rows and compared.

The batch run begins at the live source rows, not at the files: corrected and reverted records are right, and so are records of files that are gone.
A row that differs was derived wrongly by some run, or changed by somebody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from changelog.algebra import diff, insertions
from changelog.columns import column
from changelog.lazy_imports import F
from changelog.rows import Rows
from errata.core.options import EngineOptions, RunOptions
from errata.execution.epoch import Epoch
from errata.execution.inputs import Inputs
from errata.execution.planned_run import PlannedRun
from errata.execution.step_executor import StepExecutor
from errata.inspect.snapshot import Snapshot
from errata.plan.correlation import concerns
from errata.plan.pipeline import LoadedPipeline
from errata.plan.plan import Node, Plan
from errata.plan.steps import IngestStep, plan_steps
from errata.state.committed_node import CommittedNode
from errata.state.node_tables import folded
from errata.state.node_writer import NodeWriter
from errata.state.run_state import Ingested
from errata.state.source_files import SourceFiles, files_left
from errata.state.suppressed_rows import truth
from operators.core.delta import Delta
from operators.core.node import BoundNode
from operators.output.booked import BookedOutput
from operators.source.node import SourceNode
from storage.delta.changelog_table import ChangelogTable
from storage.engines.base import Engine
from storage.state.entry import Entry


@dataclass(frozen=True, slots=True)
class AuditedInputs(Inputs):
    """The live source rows of an audited state in place of files."""

    plan: Plan
    audited: Snapshot
    head: Entry

    def look(self) -> dict[str, SourceFiles]:
        """The files as the audited epoch recorded them."""
        return files_left(self.plan, self.head)

    def reasons(self, sources: Mapping[str, SourceFiles]) -> Mapping[str, str]:
        """None: everything is computed from nothing."""
        return {}

    def ingest(self, writer: NodeWriter, source: SourceFiles, step: IngestStep) -> Ingested:
        """Store the live rows of a source."""
        node = source.node
        if not _same(node, self.head):
            return writer.keep_nothing(node), source.changes.now
        live = truth(_live(self.audited, self.head, node.name, writer.run.tables.columns(node), writer.run.engine))
        rows = insertions(_correlated(live, cast("SourceNode", node.operator)), "ingest")
        delta = writer.keep(node, Delta(rows, signed=False), _live_count(self.head.nodes.get(node.name, {})))
        return delta, source.changes.now


def _correlated(live: Rows, source: SourceNode) -> Rows:
    """Rows with the correlation keys that their columns have: which groups they are in does not depend on when the key was declared."""
    riders = source.shape.riders
    if not riders:
        return live
    read = F.col("_error").isNull()
    return live.through(lambda frame: frame.withColumns({rider: F.when(read, column(name)).otherwise(column(rider)) for rider, name in riders}))


def recomputed(pipeline: LoadedPipeline, reading: Snapshot, head: Entry, engine: EngineOptions) -> Iterator[tuple[str, int | None, str]]:
    """Compare each node with a batch run over the live source rows.

    Args:
        pipeline: The pipeline.
        reading: Its committed state.
        head: The last entry of its ledger.
        engine: The engine of the batch run.

    Returns:
        Each node with the number of rows that differ; None, and why, where that cannot be said.

    Raises:
        Failure: The batch run failed.
    """
    unknown = incomparable(pipeline.plan, head)
    other = pipeline.with_temporary_state()
    try:
        with Epoch.begin(other, RunOptions(engine=engine)) as epoch:
            inputs = AuditedInputs(epoch.plan, reading, head)
            planned = PlannedRun(epoch, inputs, inputs.look(), plan_steps(epoch.plan, None, {}))
            StepExecutor(planned).compute_only(max(map(_live_count, head.nodes.values()), default=0))
        for name, node in reading.nodes.items():
            if node.persisted and name in pipeline.plan.nodes:
                yield (name, None, unknown[name]) if name in unknown else (name, _differing(reading, head, node, other.state.root, pipeline.plan[name].operator), "")
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
        elif node.operator.remembers and not isinstance(node.operator, BookedOutput):
            found[node.name] = f"{node.name} tells what earlier runs published"
        elif above:
            found[node.name] = above[0]
    return found


def _same(node: Node, head: Entry) -> bool:
    """Whether a node is what it was in the last epoch, with the same columns."""
    before, output = head.plan.get(node.name), node.operator.output
    return before is not None and before["fingerprint"] == node.fingerprint() and dict(before["hidden"]) == dict(output.hidden_columns())


def _live_count(counts: Mapping[str, Any]) -> int:
    """The live rows of a node, rejects among them."""
    return int(counts.get("live", 0)) + int(counts.get("rejected_live", 0))


def _live(reading: Snapshot, head: Entry, name: str, columns: Mapping[str, str], engine: Engine) -> Rows:
    """The live rows of a node in the audited state, rejects among them."""
    path = f"changelog/{name}"
    return folded(engine, ChangelogTable(f"{reading.state.root}/{path}", columns, pinned=head.tables[path]), head.epoch).without("_epoch")


def _differing(reading: Snapshot, head: Entry, node: CommittedNode, root: str, operator: BoundNode) -> int:
    """The number of rows of a node, rejects among them, that are not the same under the same key in another state; with booked rows, that do not add up to the other state's."""
    columns, engine = node.columns(), reading.engine
    batch = folded(engine, ChangelogTable(f"{root}/changelog/{node.name}", columns)).without("_epoch")
    live = _live(reading, head, node.name, columns, engine)
    if isinstance(operator, BookedOutput):
        return operator.unexplained(live.as_frame(), batch.as_frame()).count()
    return diff(live, batch, "").distinct(["_key"]).count()
