"""`errata plan`: what the next run would do with each node, and with nodes that are no longer in the pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from errata.core.failures import Stopped, StorageFailed
from errata.core.options import EngineOptions, RunOptions
from errata.core.uuid7 import uuid7
from errata.execution.engine import choose_engine, work_of
from errata.execution.expectations import stop_unchanged, turned_stale
from errata.execution.guards import judge_unchanged
from errata.outputs.context import OutputContext, RunIdentity
from errata.outputs.database_targets import DatabaseTargets
from errata.outputs.targets import Targets
from errata.plan.own_files import ProtectedFiles
from errata.plan.pipeline import LoadedPipeline
from errata.plan.plan import Plan
from errata.plan.planned_rows import Row, planned_rows
from errata.plan.source_inputs import asking, services
from errata.plan.steps import OutputChanges, Steps, plan_steps
from errata.state.source_files import SourceFiles, look_at_sources
from operators.source.file_changes import FileChanges
from storage.state.entry import Entry


@dataclass(frozen=True, slots=True)
class Outlook:
    """The steps of the next run over the sources as they are now, and the engine that it would take."""

    plan: Plan
    head: Entry | None
    sources: Mapping[str, SourceFiles]
    steps: Steps
    options: RunOptions

    @classmethod
    def of(cls, pipeline: LoadedPipeline, options: RunOptions | None = None, *, outputs: bool = True) -> Outlook:
        """Plan the next run. No service is asked, so the records of one count as changed.

        Args:
            pipeline: The pipeline.
            options: The options of the run.
            outputs: Whether files and tables of outputs are looked at; else none of them counts as changed.

        Raises:
            StorageFailed: An input, or a file or table of an output, cannot be looked at.
        """
        plan, head = pipeline.plan, pipeline.prior()
        answers = _answers(plan, head)
        sources = look_at_sources(plan, head.sources if head else {}, answers)
        unasked = {node.name: "only the run asks the database" for node in asking(plan) if node.name not in answers}
        changed = services(plan) | unasked | {name: one.reason for name, one in sources.items() if one.reason}
        changed |= turned_stale(plan, head, datetime.now(UTC))
        steps = plan_steps(plan, head, changed, _output_changes(pipeline, head) if head and outputs else None)
        return cls(plan, head, sources, steps, options or RunOptions())

    def rows(self) -> Iterator[Row]:
        """One row a node: node, type, action, rows (that it goes through, None where only the run can say), reason."""
        return planned_rows(self.plan, self.head, self.steps)

    def stopped(self) -> str:
        """Why the run would stop although no row changes; empty where it would not, and where only the run can say."""
        return "" if self.head is None or self.steps.computes else stopped_unchanged(self.plan, self.options, self.head)

    def engine(self, options: EngineOptions) -> tuple[str, str] | None:
        """The engine and why it is this one; None where the run needs none."""
        if all(row["action"] == "skip" for row in self.rows()):
            return None
        chosen = choose_engine(options, self.plan, work_of(self.plan, self.sources, self.steps.nodes, self.head.nodes if self.head else {}))
        return chosen.choice.kind, chosen.reason


def stopped_unchanged(plan: Plan, options: RunOptions, head: Entry) -> str:
    """Why a run that changes nothing would stop; empty where it would not."""
    try:
        judge_unchanged(plan, options, head)
        stop_unchanged(plan, head)
    except (Stopped, StorageFailed) as guard:
        return guard.message
    return ""


def would_stop(pipeline: LoadedPipeline, options: RunOptions) -> str:
    """Why a run with these options would stop although no row changes. No output is looked at, and no input where the state says that none would stop it.

    Raises:
        StorageFailed: An input cannot be looked at.
    """
    head = None if options.full_refresh or options.ephemeral else pipeline.prior()
    if head is None or not stopped_unchanged(pipeline.plan, options, head):
        return ""
    return Outlook.of(pipeline, options, outputs=False).stopped()


def _answers(plan: Plan, head: Entry | None) -> Mapping[str, FileChanges]:
    """The answers of databases that are known to be unchanged without being asked for."""
    if not asking(plan):
        return {}
    from errata.execution.sql_sources import ask_databases  # only sources that ask need it

    return ask_databases(plan, head, only_tokens=True)


def _output_changes(pipeline: LoadedPipeline, head: Entry) -> OutputChanges:
    """Changes to the files of outputs since the last epoch."""
    protected = ProtectedFiles(pipeline.plan, pipeline.state, inputs=False)
    now = datetime.now(UTC)
    identity = RunIdentity(head.epoch + 1, name := uuid7(now), name, now)
    context = OutputContext(pipeline.plan, pipeline.state, head, head, identity, protected, force=False, warn=lambda _text: None)
    return Targets.of(context).changes(pipeline.plan, head).with_(DatabaseTargets.of(context).changes(head))
