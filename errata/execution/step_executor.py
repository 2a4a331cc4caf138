"""Executes the steps of a run, one method a kind of step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from errata.core.events import Event, RunResult
from errata.erasure.earlier_files import EarlierFiles
from errata.erasure.values import Values
from errata.execution.closed_periods import LateChanges, Leaving, guard_closed
from errata.execution.engine import BYTES_A_ROW, choose_engine, start_engine, work_of
from errata.execution.epoch import Epoch
from errata.execution.expectations import ledger_facts, stop_where_failing
from errata.execution.failing_record import stop_at_first, stop_at_new
from errata.execution.guards import judge, stop_at_standing
from errata.execution.ingest import arrivals_kept
from errata.execution.machine_events import committed, newly_rejected, outputs_written, progress_of, source_read
from errata.execution.node_runner import NodeRunner
from errata.execution.planned_run import PlannedRun
from errata.execution.resource_limits import preflight, within_limits
from errata.execution.row_events import logging, warnings
from errata.outputs.context import OutputContext
from errata.outputs.files import changes_again, unchanged_files, write_output
from errata.outputs.staged_files import Written, holds
from errata.outputs.targets import Targets, dlq_form
from errata.plan.correlation import TRIGGERS, PriorRollback, rules, rules_changed
from errata.plan.plan import Node
from errata.plan.steps import (
    CommitStep,
    DataStep,
    GuardStep,
    IngestStep,
    NodeStep,
    OutputStep,
    PublishStep,
    SettleStep,
    Step,
    Steps,
)
from errata.rollback.cost import retract_counters
from errata.rollback.cursors import cursor_of, rewind_at_combine
from errata.rollback.dead_letters import in_words, rejects_now
from errata.rollback.dlq_file import dlq_pieces
from errata.rollback.outcome import Settled
from errata.rollback.record_locations import Places, SourceState
from errata.rollback.rounds import Rounds
from errata.rollback.triage import tally_of, triaged
from errata.state.node_writer import NodeWriter
from errata.state.run_state import NodeDelta, RunState
from errata.state.scalar_inputs import ScalarInputs
from errata.state.source_files import SourceFiles, files_before, labels_of, reshaped, undeclared
from errata.state.source_memory import SourceMemory
from errata.state.tally import Tally
from errata.state.triage_events import append_events, events_of, standing
from operators.core.run_values import RunValues
from operators.output.operator import Output
from operators.source.file_changes import FileRecord
from operators.source.node import SourceNode
from storage.engines.spark.user_jars import require_jars
from storage.state.entry import Entry
from storage.state.integrity import check_content

if TYPE_CHECKING:
    import polars as pl

Files = dict[str, tuple["FileRecord", ...]]
"""The records of each source's files, by source."""


@dataclass(slots=True)
class StepExecutor:
    """Executes the steps of one epoch.

    Attributes:
        planned: The epoch, its input and its steps.
        watch: Called with the run's state once its rows are computed.
        leaving: Of an erasure, what leaves outputs beside what their inputs take back.
        before_commit: Called once the guards let the run pass, before outputs are staged; not in a dry run.
        files: The records of each source's files, once it was ingested.
        settled: What was rolled back.
        late: How many rows of closed periods change or are booked, by output.
        rejects: All live rejects, once they were looked up.
        entries: The same with what people decided about them.
        written: What the ledger says of the files of each output that was staged.
        entry: The committed entry.
        restoring: Whether only files of the last epoch are written again.
        read: The sources that were read.
        fresh: The outputs, and `dlq`, that were staged anew.
    """

    planned: PlannedRun
    watch: Callable[[RunState], None] | None = None
    before_commit: Callable[[StepExecutor], None] | None = None
    leaving: Leaving | None = None
    files: Files = field(default_factory=dict)
    settled: Settled = field(default_factory=Settled)
    late: LateChanges = field(default_factory=LateChanges)
    rejects: pl.DataFrame | None = None
    entries: pl.DataFrame | None = None
    written: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    entry: Entry | None = None
    restoring: bool = False
    read: set[str] = field(default_factory=set)
    fresh: set[str] = field(default_factory=set)
    _writer: NodeWriter | None = None

    @property
    def epoch(self) -> Epoch:
        """The epoch that is executed."""
        return self.planned.epoch

    @property
    def steps(self) -> Steps:
        """Its steps."""
        return self.planned.steps

    @property
    def sources(self) -> Mapping[str, SourceFiles]:
        """The files of each source before the run."""
        return self.planned.sources

    @property
    def run(self) -> RunState:
        """The state of the run; it exists once the engine started."""
        assert self._writer is not None  # `_begin` made it
        return self._writer.run

    def execute(self, *, dry: bool = False) -> RunResult:
        """Execute all steps.

        Args:
            dry: Whether the epoch is undone before it writes outputs.

        Raises:
            Failure: Nothing was committed.
        """
        for text in preflight(self.epoch.plan):
            self.epoch.warn(text)
        self._begin(self.steps.nodes)
        engine = self.run.engine
        try:
            with self.epoch.undone_on_failure(), engine.sized(_largest_table(self.run, self.sources)):
                self.compute()
                if self.planned.decided:
                    append_events(self.run.tables.triage, self.planned.decided, self.epoch.number)
                if self.watch is not None:
                    self.watch(self.run)
                self._visit(GuardStep())
                if self.before_commit is not None and not dry:
                    self.before_commit(self)
                if dry:
                    tally = self._tally()
                    self.epoch.undo()
                    return RunResult(exit_code=2 if tally.open else 0, epoch=self.epoch.head.epoch if self.epoch.head else None, rejected=tally.open, waived=tally.waived)
                if not self.epoch.erases and self._nothing_changed():
                    self.epoch.restore()
                    return self.planned.unchanged() if self.planned.files_intact else self.restore_outputs()
                for step in self.steps.committing():
                    self._visit(step)
        finally:
            engine.release()
        self._visit(PublishStep())
        return self.planned.result(cast("Entry", self.entry), {name: dict(delta.ops) for name, delta in self.run.done.items()}, committed=True)

    def compute_only(self, rows: int) -> None:
        """Execute the steps that compute rows, and neither judge nor commit them.

        Args:
            rows: About the rows of the largest table.
        """
        self._begin(self.steps.nodes)
        engine = self.run.engine
        try:
            with engine.sized(rows):
                self.compute()
        finally:
            engine.release()

    def compute(self) -> None:
        """Execute the steps that compute rows; report their log directives, traces and warnings."""
        plan, listener = self.epoch.plan, self.epoch.options.listener
        lowest = self.epoch.options.log_level
        for name, note in ((node.name, note) for node in plan.of_kind("source") for note in cast("SourceNode", node.operator).notes()):
            listener(Event("log", action=f"source '{name}': {note}"))
        with logging(self.run, plan, listener, lowest):
            for step in self.steps.computing():
                self._visit(step)
            for node in () if self.steps.settle else plan.of_kind("combine"):
                rewind_at_combine(self.run, plan, node, self._places(), self.settled)
            for text in (text for node in plan for text in warnings(self.run, node)):
                self.epoch.warn(text)
        listener(Event("end", seconds=monotonic() - self.epoch.began))

    def restore_outputs(self) -> RunResult:
        """Write the output files that are gone as the last epoch wrote them; its rows did not change."""
        head = cast("Entry", self.epoch.head)
        self._begin(())
        self.files = {}
        self.restoring = True
        written = {node.name: self._write(node) for node in self.planned.lost_outputs}
        if not self._targets.dlq_intact(head):
            written["dlq"] = self._stage_dlq(head)
        result = self.planned.unchanged()
        self._tell_of_outputs(head, written)
        return result

    # -- one method a kind of step

    def _visit(self, step: Step) -> None:
        match step:
            case IngestStep() | NodeStep():
                self.epoch.options.listener(self._run_node(step))
            case SettleStep():
                self._settle(step)
            case GuardStep():
                self._judge_rejects()
                stop_where_failing(self.epoch.plan, self.run, reads=self.planned.inputs.reads)
                self.late = guard_closed(self.epoch.plan, self.epoch.options, self.run, self.epoch.prior, leaving=self.leaving)
            case OutputStep():
                self._stage(step)
            case CommitStep():
                self._commit()
            case PublishStep():
                self._publish()

    def _run_node(self, step: DataStep) -> Event:
        """Run one node; the event says what it did."""
        node, began = self.epoch.plan[step.node], monotonic()
        self.epoch.options.listener(_begin_event(node, step, self.run, self.sources, reads=self._reads(step)))
        with within_limits(node.name):
            delta = self._ingest(step) if isinstance(step, IngestStep) else NodeRunner(self._stored).visit(node, step)
        if isinstance(step, IngestStep) and self._reads(step) and step.node not in self.read:
            self.read.add(step.node)
            self.epoch.options.listener(source_read(self.sources[step.node], step, self.files[step.node], delta.rejected))
        stop_at_first(self.run, node, delta, self.files.get(node.name, ()), self._places, strict=self._strict and bool(delta.rejected) and not self._judged_last)
        return _node_event(node, step, delta, self.run, monotonic() - began)

    def _reads(self, step: DataStep) -> bool:
        """Whether a step reads files or a database."""
        return isinstance(step, IngestStep) and step.action != "skip" and self.planned.inputs.reads

    def _ingest(self, step: IngestStep) -> NodeDelta:
        source = self.sources[step.node]
        if step.action == "skip":
            delta, self.files[step.node] = self._stored.skip(source.node), source.changes.now
        else:
            delta, self.files[step.node] = self.planned.inputs.ingest(self._stored, source, step)
        return delta

    def _judge_rejects(self) -> None:
        """End a run at rejects that nobody waived: under fail_fast at new ones here where no node did, then at older ones and at thresholds.

        Older ones end only a run over input. So do thresholds, and an amendment or an erasure by which more records are rejected than before.
        """
        reads = self.planned.inputs.reads
        if self._strict and self.run.total_rejected():
            if self._judged_last:
                stop_at_new(self.run, self._entries(), self.files, self._places)
            if reads:
                stop_at_standing(self.epoch.plan, self._tally())
        if reads or self.run.total_rejected() > self.run.rejected_before:
            judge(self.epoch.plan, self.epoch.options, self.run, self.files, self._tally())

    def _settle(self, step: SettleStep) -> None:
        """Run all nodes until no further record is rolled back; the nodes' events describe the last round."""
        seconds: dict[str, float] = {}

        def visit(one: DataStep) -> None:
            seconds[one.node] = seconds.get(one.node, 0.0) + self._run_node(one).seconds

        before = PriorRollback.of(self.epoch.head)
        always = self.planned.retry or self.steps.rearranged or bool(rules_changed(self.epoch.plan, before))
        self.settled = Rounds(self._stored, self.epoch.plan, step.steps, visit, self._places, before, always).settle()
        for one in step.steps:
            self.epoch.options.listener(_node_event(self.epoch.plan[one.node], one, self.run.done[one.node], self.run, seconds[one.node]))

    def _stage(self, step: OutputStep) -> None:
        """Stage the files of an output, or keep the last epoch's files where they are still right."""
        if step.node == "dlq":
            self.written["dlq"] = self._stage_dlq(self.epoch.prior)
            self.fresh |= {"dlq"} if any(one.target == self._targets.dlq for one in self.epoch.staged.written) else set()
            return
        node = self.epoch.plan[step.node]
        same = not self.epoch.erases and self.run.done[node.name].empty and step.action == "follow" and node.name not in self._reshaped and not cast("Output", node.operator).in_database
        self.written[node.name] = unchanged_files(self._outputs, self.run, node) if same else self._write(node)
        self.fresh |= set() if same else {node.name}

    def _write(self, node: Node) -> list[dict[str, Any]]:
        self.epoch.options.listener(Event("begin", node.name, node.kind, "writing"))
        with self.run.engine.sized(self.run.live_bound(node.name)), within_limits(node.name):
            return write_output(self._outputs, self.run, node, self._targets, self._present, tables=self.planned.tables)

    def _stage_dlq(self, head: Entry | None) -> list[dict[str, Any]]:
        """The DLQ file, where the pipeline names one and records are rejected."""
        path, targets, staged = self._targets.dlq, self._targets, self.epoch.staged
        if path is None or not self.run.total_rejected():
            staged.gone |= {} if path is None or head is None else targets.of_dlq(head)
            return []
        if head is not None and not self.epoch.erases and not self.planned.decided and not self._touches_rejects() and targets.dlq_intact(head):
            return cast("list[dict[str, Any]]", head.nodes.get("dlq", {}).get("files", []))
        return [staged.stage(path, self._dlq_pieces()).json(self.epoch.plan.settings.folder)]

    def _commit(self) -> None:
        """Append the ledger's entry: from here on the epoch exists."""
        epoch, run, plan = self.epoch, self.run, self.epoch.plan
        self._remove_leftovers()
        superseded = self._clear_earlier() if epoch.erases else []
        epoch.options.listener(Event("begin", action=f"committing epoch {epoch.number}"))
        nodes: dict[str, Any] = {node.name: run.summary(node) | {"files": self.written.get(node.name, [])} for node in plan}
        nodes["dlq"] = {"files": self.written.get("dlq", []), "form": dlq_form(plan)}
        rollback = {"largest": self.settled.largest, "rules": rules(plan), "retract": retract_counters(plan, run, self.settled)}
        nodes[TRIGGERS] = {"rejected_live": run.rejected_live(TRIGGERS), **rollback}
        rejects, tally = (self._live_rejects() if run.total_rejected() else None), self._tally(whole=True)
        for name, facts in ledger_facts(run, plan, rejects).items():
            nodes[name] |= facts
        for path in sorted(run.tables.versions()):
            run.tables.by_path(path).compact_if_fragmented()
        gone = {"gone": [*epoch.staged.gone.values(), *superseded]} if epoch.staged.gone or superseded else {}
        entry = Entry(
            epoch.number, epoch.execution_id, epoch.batch_id, epoch.started, datetime.now(UTC), 2 if tally.open else 0,
            plan=plan.summary(), tables={**(epoch.head.tables if epoch.head and not self.epoch.erases else {}), **run.tables.versions()}, nodes=nodes,
            sources={name: self._source_entry(one, rejects) for name, one in self.sources.items()},
            counters={**tally.counters(), **gone, **self.late.counters(), **epoch.counters(), **self.planned.counters()},
        )  # fmt: skip
        for event in newly_rejected(rejects, epoch.number):
            epoch.options.listener(event)
        self.entry = epoch.commit(entry)
        epoch.options.listener(committed(self.entry, plan, run))

    def _publish(self) -> None:
        entry = cast("Entry", self.entry)
        staged = self.epoch.staged
        try:
            self.epoch.publish()
        finally:
            done = [name for name in [*self.epoch.plan.nodes, "dlq"] if name in self.fresh and name not in staged.refused] if not staged.tables else []
            self._tell_of_outputs(entry, {name: files for name in done if self._are_there(files := self.written[name])})
        if self._targets.dlq is None and self.rejects is not None:
            for text, redacted in in_words(self.rejects):
                self.epoch.warn(text, redacted)

    def _are_there(self, files: Sequence[Mapping[str, Any]]) -> bool:
        """Whether no store refused one of the files."""
        return not self.epoch.staged.unwritten.intersection(str(self.epoch.plan.settings.places / one["path"]) for one in files)

    def _tell_of_outputs(self, entry: Entry, written: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Tell the listener of the files and tables that were written, by output."""
        for name, files in written.items():
            for event in outputs_written(self.epoch.plan, name, files, entry):
                self.epoch.options.listener(event)

    # -- what the steps share

    @property
    def _stored(self) -> NodeWriter:
        assert self._writer is not None  # `_begin` made it
        return self._writer

    @property
    def _targets(self) -> Targets:
        assert self.planned.targets is not None  # only epochs with targets commit
        return self.planned.targets

    @property
    def _outputs(self) -> OutputContext:
        return replace(self.epoch.outputs, restoring=self.restoring, reason=self.planned.counters().get("reason"))

    @property
    def _present(self) -> Mapping[str, Sequence[FileRecord]]:
        """The records of each source's files as they are after the run."""
        return self.files or {name: one.changes.now for name, one in self.sources.items()}

    @property
    def _reshaped(self) -> frozenset[str]:
        """The outputs that are written whatever their rows: their columns or their files are others."""
        return reshaped(self.epoch.plan, self.epoch.head, self.files)

    def _begin(self, steps: Sequence[DataStep]) -> None:
        """Start the engine for some steps, and begin at the counters of the last epoch. Raises StorageError for a damaged state."""
        epoch, plan, head = self.epoch, self.epoch.plan, self.epoch.head
        listener = epoch.options.listener
        work = 0 if epoch.options.preview else work_of(plan, self.sources, steps, head.nodes if head else {})
        chosen = choose_engine(epoch.options.engine, plan, work)
        require_jars(chosen.choice, [epoch.state.root, *(one.spec.config.path or "" for one in plan if getattr(one.operator, "versioned", False))])
        listener(Event("begin", action="loading the engine"))
        engine = start_engine(chosen, listener)
        listener(Event("engine", engine.name, action=chosen.reason, starting=lambda: engine.starting))
        epoch.state.prepare()
        if head is not None:
            check_content(epoch.state, head, {path: epoch.tables.by_path(path).data_files() for path in epoch.tables.existing()})
        values = RunValues(self._system_values(), labels_of(self.sources), {node.name: node.constants for node in plan}, epoch=epoch.number)
        nodes = {name: one for name, one in (head.nodes if head else {}).items() if name in plan.nodes or name == TRIGGERS}
        run = RunState(engine, epoch.tables, epoch.number, values, scalar_inputs=ScalarInputs.of(plan, nodes), folded=head.folded if head else {}, reopened=epoch.options.reopen)
        run.begin_at(nodes, int(head.counters.get("base", 0)) if head else 0)
        self._writer = NodeWriter(run)

    def _system_values(self) -> dict[str, Any]:
        """System variables of the run by dotted name."""
        epoch = self.epoch
        started = epoch.started.replace(tzinfo=None)
        values: dict[str, Any] = {
            "pipeline.name": epoch.pipeline.name, "pipeline.execution_id": epoch.execution_id, "pipeline.batch_id": epoch.batch_id,
            "pipeline.start_time": started, "source.batch": epoch.batch_id, "source.ingestion_timestamp": started,
        }  # fmt: skip
        return values | {f"pipeline.{name}_count": 0 for name in ("total", "ok", "dlq", "filtered", "distinct")}

    def _places(self) -> Places:
        """Finds the files and rows of source records."""
        states = {name: SourceState(one.number, tuple(self.files.get(name, one.changes.now))) for name, one in self.sources.items()}
        return Places(self.epoch.plan, self.run.tables, self.run.engine, self.run.values, states)

    def _nothing_changed(self) -> bool:
        """Whether files changed but no row did, and the ledger needs to learn nothing: then there is no epoch."""
        recomputed = self._reshaped | self.steps.recomputed
        if recomputed or self.planned.decided or self.epoch.head is None or self.steps.rearranged:
            return False
        return all(delta.empty for delta in self.run.done.values()) and not self._remembers_more() and not self._rejects_moved(self.epoch.head)

    def _remembers_more(self) -> bool:
        """Whether a source keeps more of its deliveries than before, such as a deletion of what never was there."""
        names = [node.name for node in self.epoch.plan.of_kind("source") if cast("SourceNode", node.operator).has_memory]
        return any(SourceMemory(self.run, self.epoch.plan[name]).has_grown() for name in names)

    def _rejects_moved(self, head: Entry) -> bool:
        """Whether rejected records lie in other rows of their files than the DLQ file says, or the ledger where there is no such file."""
        if not self.run.total_rejected():
            return False
        targets = self._targets
        if targets.dlq is not None and targets.dlq_intact(head):
            return not holds(targets.dlq, self._dlq_pieces())
        states = {name: SourceState(one.number, files_before(head).get(name, one.changes.now)) for name, one in self.sources.items()}
        before = Places(self.epoch.plan, self.run.tables, self.run.engine, self.run.values, states)
        return not rejects_now(self.run, self.epoch.plan, before).equals(self._live_rejects())

    def _touches_rejects(self) -> bool:
        """Whether an entry of the DLQ came, went, may lie in another row, or may have other fields, which are of a source's record or a row of an aggregate."""
        done, plan = self.run.done, self.epoch.plan
        named = [*plan.of_kind("source"), *plan.of_kind("aggregate")]
        described = self.run.total_rejected() > 0 and any(not done[node.name].empty for node in named if node.name in done)
        return described or any(one.reason for one in self.sources.values()) or any(delta.rejected or delta.repaired for delta in done.values())

    def _dlq_pieces(self) -> Iterator[bytes]:
        rejects = self._entries()
        started = self.epoch.ledger.started(rejects["epoch"].unique().to_list())
        return dlq_pieces(self.epoch.plan, rejects, started | {self.epoch.number: self.epoch.started})

    def decisions_in_force(self) -> list[str]:
        """The names of the decisions about dead letters that hold for an entry as the run leaves them."""
        if not self.run.total_rejected():
            return []
        entries = self._entries()
        return [*entries["waiver"].drop_nulls(), *entries["assignment"].drop_nulls()]

    def _decisions(self) -> pl.DataFrame:
        """The decisions of people about dead letters, also in this run."""
        return events_of(self.run.tables.triage)

    @property
    def _judged_last(self) -> bool:
        """Whether rejects can pass, as waived ones do, and old ones in amendments: which these are is known once all are there."""
        return not self.planned.inputs.reads or standing(self._decisions(), "waive").height > 0

    @property
    def _strict(self) -> bool:
        return self.epoch.plan.model.error_handling.strategy == "fail_fast"

    def _tally(self, *, whole: bool = False) -> Tally:
        """How many entries the DLQ has. They are looked up where some are waived, where categories matter to the guards, and where the `whole` tally is asked for."""
        total, collateral = self.run.total_rejected(), self.settled.collateral
        if not total:
            return Tally(0, collateral)
        looked_up = whole or self._strict or self.epoch.plan.model.error_handling.thresholds or self._decisions().height
        return tally_of(self._entries(), collateral) if looked_up else Tally(total, collateral)

    def _entries(self) -> pl.DataFrame:
        """All live rejects with what people decided about them, looked up once."""
        if self.entries is None:
            self.entries = triaged(self._live_rejects(), self._decisions())
        return self.entries

    def _live_rejects(self) -> pl.DataFrame:
        """All live rejects with their source records, looked up once."""
        if self.rejects is None:
            self.rejects = rejects_now(self.run, self.epoch.plan, self._places())
        return self.rejects

    def _remove_leftovers(self) -> None:
        """Note the files of earlier epochs that no output writes any more."""
        epoch = self.epoch
        present = {one.target for one in epoch.staged.written}
        forgotten = self._targets.forgotten(epoch.plan, epoch.history()) if epoch.replaced else {}
        left = self._targets.leftovers(epoch.prior) | forgotten
        epoch.staged.gone |= {path: entry for path, entry in left.items() if path not in present}

    def _clear_earlier(self) -> list[Mapping[str, Any]]:
        """Let files of earlier epochs hold nothing that an erasure takes out; what the ledger kept of the files in whose place others are staged."""
        def again(node: Node, written: Entry) -> list[Written]:
            context = replace(self._outputs, head=written, restoring=True)
            return changes_again(context, self.run, node, self._targets, undeclared(self.epoch.plan, node, self._present))

        earlier = EarlierFiles(self.epoch.plan, self.epoch.staged, self.epoch.erased or Values(), self.epoch.scrubbed, again)
        self.epoch.rewritten = [earlier.cleared(*pair) for pair in zip(self.epoch.history(), self.epoch.rewritten or (), strict=True)]
        return earlier.superseded

    def _source_entry(self, source: SourceFiles, rejects: pl.DataFrame | None) -> dict[str, Any]:
        name = source.node.name
        files = self.files[name]
        cursor = cursor_of(name, sum(record.rows for record in files), self.settled, rejects)
        found = {"number": source.number, "cursor": cursor, "suppressed": self.settled.suppressed.get(name, 0), "files": [record.json() for record in files]}
        return found | (arrivals_kept(source, self.epoch.history, files) if self.epoch.replaced else {})


def _begin_event(node: Node, step: DataStep, run: RunState, sources: Mapping[str, SourceFiles], *, reads: bool) -> Event:
    """The event of a node that begins, without asking the engine: the rows that come in, of a source its files."""
    present = [record for record in sources[node.name].changes.now if record.present] if node.name in sources else []
    size = sum(record.size for record in present) / 1e6
    action = f"reading {len(present):,} file{'s' * (len(present) != 1)}, {size:,.1f} MB" if present else step.action
    facts = progress_of(node.name, sum(record.size for record in present) if present else None) if reads else {}
    return Event("begin", node.name, node.kind, action, _rows_in(node, run), facts=facts)


def _rows_in(node: Node, run: RunState) -> int:
    return sum(sum(run.done[name].ops.values()) for name, _ in node.inputs)


def _node_event(node: Node, step: DataStep, delta: NodeDelta, run: RunState, seconds: float) -> Event:
    out = sum(delta.ops.values())
    action = "delta" if step.action == "skip" and out else step.action
    return Event("node", node.name, node.kind, action, _rows_in(node, run), out, delta.ops, delta.rejected, seconds)


def _largest_table(run: RunState, sources: Mapping[str, SourceFiles]) -> int | None:
    """About the rows of the largest table of a run; None where a source's size is not known before it is read."""
    if any(cast("SourceNode", one.node.operator).versioned for one in sources.values()):
        return None
    read = [sum(record.size for record in one.changes.now) // BYTES_A_ROW for one in sources.values()]
    return max([*read, *run.live_rows.values()], default=0)
