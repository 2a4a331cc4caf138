"""Epochs that no file brings: a change takes the place of the sources' input and runs through the pipeline as any other.

Files that did not change are not read again, so the change stays until its file changes.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from changelog.columns import column
from changelog.ops import is_positive
from changelog.rows import Rows, is_null
from errata.core.events import RunResult
from errata.core.failures import Usage
from errata.core.options import RunOptions
from errata.execution.epoch import Epoch
from errata.execution.inputs import Inputs
from errata.execution.planned_run import PlannedRun
from errata.execution.step_executor import StepExecutor
from errata.plan.own_files import ProtectedFiles
from errata.plan.pipeline import LoadedPipeline
from errata.plan.plan import Node, Plan
from errata.plan.steps import IngestStep
from errata.state.committed_node import CommittedNode, paired
from errata.state.node_writer import NodeWriter
from errata.state.run_state import Ingested, RunState
from errata.state.source_files import SourceFiles, files_left
from errata.state.triage_events import TriageEvent
from operators.core.delta import Delta
from operators.source.file_changes import FileRecord
from storage.state.entry import Entry
from storage.values.python_rows import dictionaries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Row = Mapping[str, Any]
_MOST_REASONS = 5


class Change(ABC):
    """The changes of an amendment to sources."""

    @abstractmethod
    def sources(self, names: Sequence[str]) -> Mapping[str, str]:
        """The sources that it may change, each with the reason that `errata plan` would show."""

    @abstractmethod
    def rows(self, run: RunState, node: Node) -> DataFrame:
        """The op rows that it brings to a source. Raises Usage where there is nothing to change."""

    def files(self, source: Node, now: tuple[FileRecord, ...]) -> tuple[FileRecord, ...]:
        """The source's files as the ledger records them afterwards."""
        return now

    @abstractmethod
    def counters(self) -> dict[str, Any]:
        """Its members in the ledger's entry."""

    def corrected(self, run: RunState, node: Node) -> list[int]:
        """The epochs of manual corrections that hold at a source afterwards."""
        return run.corrected.get(node.name, [])

    def decided(self) -> Sequence[TriageEvent]:
        """Its decisions about dead letters."""
        return ()


@dataclass(frozen=True, slots=True)
class AmendedInputs(Inputs):
    """A change in place of files."""

    reads: ClassVar[bool] = False
    plan: Plan
    head: Entry
    change: Change

    def look(self) -> dict[str, SourceFiles]:
        """The files as the last epoch recorded them, whatever became of them since."""
        left = files_left(self.plan, self.head)
        return {name: replace(one, changes=replace(one.changes, now=self.change.files(one.node, one.changes.now))) for name, one in left.items()}

    def reasons(self, sources: Mapping[str, SourceFiles]) -> Mapping[str, str]:
        """The sources that the change may affect."""
        return self.change.sources(list(sources))

    def ingest(self, writer: NodeWriter, source: SourceFiles, step: IngestStep) -> Ingested:
        """Store the op rows of the change."""
        if step.node not in self.change.sources([step.node]):
            return writer.skip(source.node), source.changes.now
        delta = writer.keep(source.node, Delta(Rows(writer.run.engine, frame=self.change.rows(writer.run, source.node)), signed=True), None)
        writer.run.corrected[source.node.name] = self.change.corrected(writer.run, source.node)
        files = self.change.files(source.node, source.changes.now)
        return delta, tuple(replace(record, listed=False, dense=record.dense and record.version is None) for record in files)

    def counters(self) -> dict[str, Any]:
        """The facts about the change for the ledger's entry."""
        return self.change.counters()


def amend(pipeline: LoadedPipeline, change: Change, options: RunOptions, protected: ProtectedFiles) -> tuple[list[Row], RunResult]:
    """Commit a change as an epoch of its own; undo it before the commit where `options` say `dry_run`.

    Returns:
        The net changes (node, op, before, after), and the result of the run.

    Raises:
        Failure: Nothing was committed. Usage where the pipeline is not that of the last epoch.
    """
    effect: list[Row] = []
    rejected: list[str] = []

    def watch(run: RunState) -> None:
        effect.extend(effects(epoch.plan, run))
        if options.dry_run:
            rejected.extend(_newly_rejected(epoch.plan, run))

    with Epoch.begin(pipeline, replace(options, dry_run=False), protected) as epoch:
        planned = PlannedRun.of(epoch, AmendedInputs(epoch.plan, unedited(epoch), change), decided=change.decided())
        planned.announce()
        executor = StepExecutor(planned)
        executor.watch = watch
        result = executor.execute(dry=options.dry_run)
        return effect, replace(result, message=_trial_message(rejected, result.rejected)) if options.dry_run else result


def effects(plan: Plan, run: RunState) -> Iterator[Row]:
    """The net changes of a run that has not committed: node, op, before, after."""
    summary = plan.summary()
    for node in plan:
        delta = run.done.get(node.name)
        if delta is None or delta.rows is None:
            continue
        shape = CommittedNode.of(node.name, summary[node.name])
        good = (delta.rows.where(is_null("_error")) if "_error" in delta.rows.columns else delta.rows).as_frame()
        rows = dictionaries(run.engine.to_arrow(good.select("_op", "_key", *map(column, shape.shown))))
        for before, after in paired(rows, shape):
            yield {"node": node.name, "op": "+A" if before is None else "-R" if after is None else "+C", "before": before, "after": after}


def _newly_rejected(plan: Plan, run: RunState) -> Iterator[str]:
    """The node and the reason of each record that a run rejects."""
    for node in plan:
        delta = run.done.get(node.name)
        if delta is None or delta.rows is None or "_error" not in delta.rows.columns:
            continue
        bad = delta.rows.as_frame().where(is_positive(column("_op")) & column("_error").isNotNull())
        yield from (f"{node.name}: {json.loads(text)['detail']}" for text in run.engine.to_arrow(bad.select("_error")).column(0).to_pylist())


def _trial_message(new: Sequence[str], rejected: int) -> str:
    """A sentence about the records that a trial rejects; empty where there are none."""
    if new:
        reasons = list(dict.fromkeys(new))
        more = f"; and {len(reasons) - _MOST_REASONS} other reasons" if len(reasons) > _MOST_REASONS else ""
        return f"{_records(len(new))} would be rejected ({'; '.join(reasons[:_MOST_REASONS])}{more})."
    return f"{_records(rejected)} {'is' if rejected == 1 else 'are'} rejected, as before." if rejected else ""


def _records(count: int) -> str:
    return f"{count:,} record{'' if count == 1 else 's'}"


def unedited(epoch: Epoch) -> Entry:
    """The last entry. Raises Usage where the pipeline was edited since: an amendment brings no change of logic with it."""
    if epoch.head is None:
        raise Usage("the pipeline has not run yet: there is nothing to change")
    before, now = {name: entry["fingerprint"] for name, entry in epoch.head.plan.items()}, epoch.plan.fingerprints()
    if before != now:
        changed = [name for name in {**before, **epoch.plan.nodes} if before.get(name) != now.get(name)]
        raise Usage(f"the pipeline is not the one of epoch {epoch.head.epoch}: {', '.join(changed)} changed", help="run it first")
    return epoch.head
