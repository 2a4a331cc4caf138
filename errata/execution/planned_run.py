"""A run before it reads anything: its input, its steps, and the files of its outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, cast

from changelog.ops import Changed
from errata.core.events import Counts, Event, OutputChange, RunResult
from errata.execution.closed_periods import reopened_nodes
from errata.execution.epoch import Epoch
from errata.execution.expectations import closing_events, counts, turned_stale
from errata.execution.inputs import Inputs
from errata.outputs.database_targets import DatabaseTargets
from errata.outputs.targets import Targets
from errata.plan.plan import Node
from errata.plan.planned_rows import planned_rows
from errata.plan.steps import OutputChanges, Steps, plan_steps
from errata.state.source_files import SourceFiles, without_files
from errata.state.tally import Tally
from errata.state.triage_events import TriageEvent
from storage.state.entry import Entry


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """An epoch with its steps.

    Attributes:
        inputs: Where the rows of sources come from.
        sources: The files of each source.
        targets: Where outputs are written; None where none are.
        tables: The tables of databases that outputs are.
        retry: Whether suppressed records are tried again although nothing else changed.
        decided: What somebody decided about dead letters; the epoch keeps it.
    """

    epoch: Epoch
    inputs: Inputs
    sources: Mapping[str, SourceFiles]
    steps: Steps
    targets: Targets | None = None
    tables: DatabaseTargets = field(default_factory=lambda: DatabaseTargets({}))
    retry: bool = False
    decided: Sequence[TriageEvent] = ()

    @classmethod
    def of(cls, epoch: Epoch, inputs: Inputs, *, retry: bool = False, decided: Sequence[TriageEvent] = ()) -> PlannedRun:
        """Look at the input and at the files of outputs, and plan the steps. Raises Failure."""
        sources = inputs.look()
        targets, tables = Targets.of(epoch.outputs), DatabaseTargets.of(epoch.outputs)
        targets.refuse_foreign(epoch.plan, epoch.prior, epoch.history, force=epoch.options.force)
        tables.refuse_foreign()
        changes = OutputChanges() if epoch.head is None else targets.changes(epoch.plan, epoch.head).with_(tables.changes(epoch.head))
        steps = plan_steps(epoch.plan, epoch.head, {**inputs.reasons(sources), **turned_stale(epoch.plan, epoch.head, epoch.started), **reopened_nodes(epoch.plan, epoch.options)}, changes, retry=retry)
        for text in without_files(sources.values()):
            epoch.warn(text)
        return cls(epoch, inputs, sources, steps, targets, tables, retry, decided)

    def counters(self) -> dict[str, Any]:
        """The facts about the input for the ledger's entry, and why suppressed records were tried again, where somebody said so."""
        tried = {"kind": "dlq retry", "reason": self.decided[0].reason, "author": self.decided[0].author} if self.retry and self.decided else {}
        return {**tried, **self.inputs.counters()}

    def announce(self) -> None:
        """Tell the listener what the run will do with each node."""
        epoch = self.epoch
        epoch.options.listener(Event("planned", facts={"nodes": [*planned_rows(epoch.plan, epoch.head, self.steps)]}))

    @property
    def lost_outputs(self) -> list[Node]:
        """The outputs whose files are not as the last epoch left them."""
        return [self.epoch.plan[step.node] for step in self.steps.outputs if step.action == "restore"]

    @property
    def files_intact(self) -> bool:
        """Whether all files, also that of the dead letter queue, are as the last epoch left them."""
        return not self.lost_outputs and self._targets.dlq_intact(cast("Entry", self.epoch.head))

    @property
    def _targets(self) -> Targets:
        assert self.targets is not None  # only runs with targets end
        return self.targets

    def unchanged(self) -> RunResult:
        """End a run that changes no row: publish restored files, remove leftovers of killed runs."""
        head, staged = cast("Entry", self.epoch.head), self.epoch.staged
        staged.gone |= self._targets.leftovers(head)
        staged.date(self._targets.known(head))
        self.epoch.publish()
        return self.result(head, {}, committed=False)

    def _changes(self, counts: Mapping[str, Mapping[str, int]], booked: Mapping[str, int]) -> Iterator[OutputChange]:
        """The changes of the run in each output, with the number of rows that it booked there."""
        head = self.epoch.head
        for node in self.epoch.plan.of_kind("output"):
            changed = Changed.of(counts.get(node.name, {}))
            known = None if head is None or node.name not in head.nodes else int(head.nodes[node.name]["live"])
            if changed.total:
                yield OutputChange(node.name, *changed, known, booked.get(node.name, 0))

    def result(self, entry: Entry, counts: Mapping[str, Mapping[str, int]], *, committed: bool) -> RunResult:
        """The result of a run.

        Args:
            entry: The ledger's entry after it.
            counts: Op rows of the run by node and op.
            committed: Whether it committed the entry.
        """
        epoch, tally, expected = self.epoch, Tally.noted(entry.counters), self._tell_of_expectations(entry)
        return RunResult(
            exit_code=2 if tally.open else 0, epoch=entry.epoch, counts=Counts({name: ops for name, ops in counts.items() if ops}),
            per_source_rollback_cursors={name: one["cursor"] for name, one in entry.sources.items() if one["cursor"]},
            rejected=tally.open, waived=tally.waived, outputs=self._targets.paths_after(epoch.plan, entry),
            dlq_file=next((one["path"] for one in entry.nodes.get("dlq", {}).get("files", ())), None), seconds=monotonic() - epoch.began,
            started=epoch.started, execution_id=epoch.execution_id, committed=committed, expectations=expected, output_changes=tuple(self._changes(counts, entry.counters.get("booked", {}) if committed else {})),
        )  # fmt: skip

    def _tell_of_expectations(self, entry: Entry) -> dict[str, int]:
        """Tell the listener which expectations fail; the failing rows of each expectation."""
        found = counts(self.epoch.plan, entry)
        for event in closing_events(self.epoch.plan, found):
            self.epoch.options.listener(event)
        return {name: failing for name, failing in found.items() if failing is not None}
