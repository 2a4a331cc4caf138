"""The run protocol: plan, ingest, propagate, judge, commit, export, report (DESIGN section 5; docs/architecture.md, "A run")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from changelog.lazy_imports import pl
from errata.core.events import Counts, Event, RunResult
from errata.core.failures import StorageFailed
from errata.core.options import RunOptions
from errata.core.uuid7 import uuid7
from errata.execution.engine import BYTES_A_ROW, choose_engine, start_engine, work_of
from errata.execution.guards import guard, judge, judge_unchanged, stop_at_first
from errata.execution.ingest import SourceFiles, arrivals_kept, files_before, ingest, labels_of, look_at_sources, reshaped, without_files
from errata.execution.local_copies import Copies, copies_of
from errata.execution.preflight import preflight
from errata.execution.resource_limits import within_limits
from errata.execution.rest_sources import fetch_services
from errata.execution.row_events import logging
from errata.execution.row_warnings import warnings
from errata.outputs.targets import Targets, dlq_form
from errata.outputs.writer import StagedFiles, holds
from errata.plan.correlation import PriorRollback, concerns, ruled_anew, rules
from errata.plan.plan import Node, Plan
from errata.plan.steps import Stage, with_retries
from errata.rollback.cost import retract_counters
from errata.rollback.cursors import cursor_of, floors_before, rewind_at_combine
from errata.rollback.outcome import Settled
from errata.state.trigger_table import TRIGGERS
from storage.delta.maintenance import compact_small_files
from storage.durable import undoing
from storage.engines.spark.user_jars import require_jars
from storage.errors import StorageError
from storage.state.entry import Entry
from storage.state.integrity import check_content
from storage.state.ledger import Ledger

if TYPE_CHECKING:

    from errata.execution.node_runner import NodeDelta, NodeRunner
    from errata.plan.own_files import ProtectedFiles
    from errata.rollback.record_locations import Places
    from errata.state.node_tables import Tables
    from operators.source.file_changes import FileRecord
    from operators.source.node import SourceNode
    from storage.state.location import State
    from storage.state.lock import Claim


@dataclass(slots=True)
class Run:
    """One run of a plan against a state."""

    plan: Plan
    state: State
    options: RunOptions
    head: Entry | None
    began: float = field(default_factory=monotonic)
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    execution_id: str = ""
    exports: StagedFiles = field(default_factory=StagedFiles)
    former: Entry | None = None
    """The head that this run replaces (`--full-refresh`): its state and files stand until the commit."""
    claim: Claim | None = None
    own: ProtectedFiles | None = None
    """Where nothing may be written, as far as it was looked up before the run."""
    retry: bool = False
    """Whether suppressed records are tried again although nothing else changed."""
    settled: Settled = field(default_factory=Settled)
    rejects: pl.DataFrame | None = None
    """Everything that stands rejected, once it was looked up."""
    moved: set[str] = field(default_factory=set)
    tables: Tables = field(init=False)
    copies: Copies | None = None
    """What is read in place of files that are staged, while the run reads."""

    def __post_init__(self) -> None:
        """Give the run its identity and its tables, which it alone writes."""
        from errata.state.node_tables import Tables

        self.execution_id = self.execution_id or uuid7(self.started)
        self.tables = Tables(self.state.root, self.plan, writer=self.execution_id)

    @property
    def epoch(self) -> int:
        """The epoch that this run commits if anything changes."""
        return 1 if self.head is None else self.head.epoch + 1

    @property
    def batch_id(self) -> str:
        """`--batch-id`, or a UUID of its own."""
        return self.options.batch_id or self.execution_id

    @property
    def standing(self) -> Entry | None:
        """The ledger's head: what stands until this run commits."""
        return self.head or self.former

    def history(self) -> list[Entry]:
        """Every committed run, oldest first."""
        return Ledger(self.state.ledger).entries()

    def look(self) -> dict[str, SourceFiles]:
        """The sources' files against those of the last epoch. Raises StorageFailed."""
        return look_at_sources(self.plan, self.head.sources if self.head else {})

    def reasons(self, sources: Mapping[str, SourceFiles]) -> dict[str, str]:
        """The sources that have something new, with what it is."""
        return {name: one.reason for name, one in sources.items() if one.reason}

    def execute(self) -> RunResult:
        """Run. Raises Failure; then the state is that of the last committed epoch."""
        fetch_services(self.plan, self.warn)
        sources = self.look()
        left, targets = PriorRollback.of(self.head), Targets.of(self.plan, self)
        targets.refuse_foreign(self.plan, self.standing, self.history, force=self.options.force)
        self.moved = targets.moved(self.plan, self.head) if self.head else set()
        anew, always = self.reasons(sources) | ruled_anew(self.plan, left), self.retry or self._rearranged()
        stages = with_retries(self.plan, self.head.plan if self.head else None, anew, left.held, always=always)
        for text in without_files(sources.values()):
            self.warn(text)
        if all(stage.action == "skip" for stage in stages) and not self._rearranged():
            judge_unchanged(self.plan, self.options, cast("Entry", self.head))
            return self._unchanged(targets, sources)
        for text in preflight(self.plan):
            self.warn(text)
        with copies_of(self.plan, sources) as copies:
            self.copies = copies
            result = self._changed(sources, stages, targets)
            copies.clean = result.exit_code == 0
            return result

    def _rearranged(self) -> bool:
        """Whether nodes went, or outputs lie elsewhere: the ledger learns of it although no row changed."""
        return self.head is not None and bool(self.moved or set(self.head.plan) - set(self.plan.nodes))

    def _unchanged(self, targets: Targets, sources: Mapping[str, SourceFiles]) -> RunResult:
        """Nothing to do, but to restore output files that are gone."""
        head = cast("Entry", self.head)  # a first run has stages
        lost = [node for node in self.plan.of_kind("output") if not targets.intact(node, head)]
        if lost or not targets.dlq_intact(head):
            flow = self._flow(sources, ())
            for node in lost:
                self._export(flow, node, targets, sources)
            if not targets.dlq_intact(head):
                self._export_rejects(flow, targets, sources, head)
        self.exports.gone |= targets.leftovers(head)
        self.exports.date(targets.known(head))
        self.exports.publish()
        return self._result(head, {}, targets, committed=False)

    def _changed(self, sources: Mapping[str, SourceFiles], stages: Sequence[Stage], targets: Targets) -> RunResult:
        flow = self._flow(sources, stages)
        try:
            with undoing(self._undo), flow.engine.sized(_most_rows(flow, sources)):
                self._clear(flow)
                files = self._propagate(flow, sources, stages)
                self.judge(flow, files)
                anew = reshaped(self.plan, self.head, files) | {stage.node for stage in stages if stage.action not in ("skip", "delta")} | self.moved
                if not anew and self._no_row_changed(flow) and not self._rejects_moved(flow, targets, sources, files):
                    self.restore()
                    return self._unchanged(targets, sources)
                written = self._stage_exports(flow, sources, files, targets, anew)
                entry = self._commit(flow, sources, files, written)
        finally:
            flow.engine.release()
        self.exports.publish()
        if targets.dlq is None and self.rejects is not None:
            from errata.rollback.dead_letters import in_words

            for text in in_words(self.rejects):
                self.warn(text)
        return self._result(entry, {name: dict(delta.ops) for name, delta in flow.done.items()}, targets, committed=True)

    def _undo(self) -> None:
        self.exports.discard()
        try:
            if self.claim is None or self.claim.held:
                self.restore()
        except StorageError as error:  # what ended the run is told, and the next one repairs
            self.warn(f"the next run has to take back what this one wrote: {error}")

    def _clear(self, flow: NodeRunner) -> None:
        """Take away what a refresh replaces; `restore` brings it back."""
        for path in self.former.tables if self.former else ():
            flow.tables.by_path(path).clear()

    def _no_row_changed(self, flow: NodeRunner) -> bool:
        """Whether files changed but no row did: then there is no epoch, unless a node is made anew or a column of an output came or went."""
        return self.head is not None and not self._rearranged() and all(delta.empty for delta in flow.done.values())

    def _rejects_moved(self, flow: NodeRunner, targets: Targets, sources: Mapping[str, SourceFiles], files: Mapping[str, tuple[FileRecord, ...]]) -> bool:
        """Whether records that stand rejected changed their places in files: the DLQ file, or where none stands the ledger, tells other rows than they have now."""
        head = cast("Entry", self.head)
        if not flow.total_rejected():
            return False
        if targets.dlq is not None and targets.dlq_intact(head):
            return not holds(targets.dlq, self._dlq_pieces(flow, sources, files))
        from errata.rollback.dead_letters import rejects_now

        return not rejects_now(flow, self.plan, self._places(flow, sources, files_before(head))).equals(self._rejects(flow, sources, files))

    # -- the steps

    def _flow(self, sources: Mapping[str, SourceFiles], stages: Sequence[Stage]) -> NodeRunner:
        from errata.execution.node_runner import NodeRunner
        from errata.execution.scalar_inputs import ScalarInputs
        from operators.core.run_values import RunValues

        work = 0 if self.options.preview else work_of(self.plan, sources, stages, self.head.nodes if self.head else {})
        chosen = choose_engine(self.options.engine, self.plan, work)
        require_jars(chosen.choice, [self.state.root])
        self.options.listener(Event("begin", action="loading the engine"))
        engine = start_engine(chosen, self.options.listener)
        self.options.listener(Event("engine", engine.name, action=chosen.reason, starting=lambda: engine.starting))
        self.state.prepare()
        if self.head is not None:
            check_content(self.state, self.head, {path: self.tables.by_path(path).data_files() for path in self.tables.existing()})
        values = RunValues(self.values(), labels_of(sources), {node.name: node.constants for node in self.plan})
        kept = {name: one for name, one in (self.head.nodes if self.head else {}).items() if name in self.plan.nodes or name == TRIGGERS}
        flow = NodeRunner(engine, self.tables, self.epoch, values, handed=ScalarInputs.of(self.plan, kept), folded=self.head.folded if self.head else {})
        for name, counts in kept.items():
            flow.live_rows[name] = counts.get("live", 0) + counts.get("rejected_live", 0)
            flow.rejects[name] = counts.get("rejected_live", 0)
            if counts.get("wide_sums"):
                self.plan[name].operator.wide_sums = True  # type: ignore[attr-defined]  # only aggregates have it in the ledger
        flow.counted_before = dict(flow.live_rows)
        return flow

    def values(self) -> dict[str, Any]:
        """System variables of the run by dotted name."""
        started = self.started.replace(tzinfo=None)
        values: dict[str, Any] = {
            "pipeline.name": self.plan.settings.name, "pipeline.execution_id": self.execution_id, "pipeline.batch_id": self.batch_id,
            "pipeline.start_time": started, "source.batch": self.batch_id, "source.ingestion_timestamp": started,
        }  # fmt: skip
        values |= {f"pipeline.{name}_count": 0 for name in ("total", "ok", "dlq", "filtered", "distinct")}
        return values

    def _propagate(self, flow: NodeRunner, sources: Mapping[str, SourceFiles], stages: Sequence[Stage]) -> dict[str, tuple[FileRecord, ...]]:
        files: dict[str, tuple[FileRecord, ...]] = {}
        for name, note in ((node.name, note) for node in self.plan.of_kind("source") for note in cast("SourceNode", node.operator).notes()):
            self.options.listener(Event("log", action=f"source '{name}': {note}"))
        with logging(flow, self.plan, self.options.listener):
            if concerns(self.plan, self.head):
                self._settle(flow, sources, stages, files)
            else:
                for stage in stages:
                    self.options.listener(self._visit(flow, sources, stage, files))
                for node in self.plan.of_kind("combine"):
                    rewind_at_combine(flow, self.plan, node, self._places(flow, sources, files), self.settled)
            for text in (text for node in self.plan for text in warnings(flow, node)):
                self.warn(text)
        self.options.listener(Event("end", seconds=monotonic() - self.began))
        return files

    def _visit(self, flow: NodeRunner, sources: Mapping[str, SourceFiles], stage: Stage, files: dict[str, tuple[FileRecord, ...]]) -> Event:
        """Run one node; of a source the files go to `files`."""
        node = self.plan[stage.node]
        began = monotonic()
        self.options.listener(_begun(node, stage, flow, sources))
        with within_limits(node.name):
            if node.is_source:
                delta, files[node.name] = self._ingest(flow, sources[node.name], stage)
            else:
                delta = flow.propagate(node, stage)
        stop_at_first(flow, node, delta, files.get(node.name, ()), lambda: self._places(flow, sources, files))
        return _event(node, stage, delta, flow, monotonic() - began)

    def _settle(self, flow: NodeRunner, sources: Mapping[str, SourceFiles], stages: Sequence[Stage], files: dict[str, tuple[FileRecord, ...]]) -> None:
        """Run all nodes until no further record is rolled back; the nodes' events are those of the last round."""
        from errata.rollback.rounds import Rounds

        seconds: dict[str, float] = {}

        def visit(stage: Stage) -> None:
            seconds[stage.node] = seconds.get(stage.node, 0.0) + self._visit(flow, sources, stage, files).seconds

        left = PriorRollback.of(self.head)
        always = self.retry or self._rearranged() or bool(ruled_anew(self.plan, left))
        rounds = Rounds(flow, self.plan, stages, visit, lambda: self._places(flow, sources, files), left, always)
        self.settled = rounds.run()
        for stage in stages:
            self.options.listener(_event(self.plan[stage.node], stage, flow.done[stage.node], flow, seconds[stage.node]))

    def _places(self, flow: NodeRunner, sources: Mapping[str, SourceFiles], files: Mapping[str, tuple[FileRecord, ...]]) -> Places:
        from errata.rollback.record_locations import Places, SourceState

        states = {name: SourceState(one.number, tuple(files.get(name, one.changes.now))) for name, one in sources.items()}
        return Places(self.plan, flow.tables, flow.engine, flow.values, states)

    def _ingest(self, flow: NodeRunner, source: SourceFiles, stage: Stage) -> tuple[NodeDelta, tuple[FileRecord, ...]]:
        from operators.source.request import InputChanged
        from storage.errors import engine_failures
        from storage.formats import FormatError, InputError

        node = source.node
        if stage.action == "skip":
            return flow.skip(node), source.changes.now
        if stage.action == "rebuild":
            source = source.from_nothing(self.history())
        elif self.former is not None:
            source = replace(source, history=self.history())
        try:
            stood, held = self.head.plan.get(node.name) if self.head else None, PriorRollback.of(self.head).held.get(node.name, 0)
            before = flow.live_rows.get(node.name, 0) - flow.rejected_live(node.name) + held
            floors = floors_before(self, flow, source) if stood is not None and self.options.from_cursors and not source.rebuilt else {}
            delta, files = ingest(
                flow, source, self.plan.settings.folder, before=stood, suppressed=held, floors=floors, copies=self.copies, warn=self.warn
            )
            guard(self.options, node, delta, before)
        except (FormatError, InputChanged, OSError) as error:
            raise StorageFailed(f"source '{node.name}': {error}", file=_file_told(str(error), source)) from error
        except engine_failures() as error:
            text = InputError.found_in(str(error))
            if text is None:
                raise
            raise StorageFailed(f"source '{node.name}': {text}", file=_file_told(text, source)) from error
        return delta, files

    def judge(self, flow: NodeRunner, files: Mapping[str, tuple[FileRecord, ...]]) -> None:
        """Thresholds, judged before anything is committed. Raises Stopped."""
        judge(self.plan, self.options, flow, files, self.settled.collateral)

    def _stage_exports(
        self, flow: NodeRunner, sources: Mapping[str, SourceFiles], files: Mapping[str, tuple[FileRecord, ...]], targets: Targets, anew: frozenset[str]
    ) -> dict[str, list[dict[str, Any]]]:
        """Write output files beside their targets, those of the nodes `anew` whatever their rows; what the ledger keeps of each output's files."""
        from errata.outputs.files import kept_files

        written: dict[str, list[dict[str, Any]]] = {}
        for node in self.plan.of_kind("output"):
            same = flow.done[node.name].empty and node.name not in anew
            if same and targets.intact(node, cast("Entry", self.head)):
                written[node.name] = kept_files(self, flow, node, targets)
            else:
                written[node.name] = self._export(flow, node, targets, sources, files)
        written["dlq"] = self._export_rejects(flow, targets, sources, self.standing, files)
        present = {one.target for one in self.exports.written}
        left = targets.leftovers(self.standing) | (targets.forgotten(self.plan, self.history()) if self.former else {})
        self.exports.gone |= {path: entry for path, entry in left.items() if path not in present}
        return written

    def _export(
        self, flow: NodeRunner, node: Node, targets: Targets, sources: Mapping[str, SourceFiles], files: Mapping[str, tuple[FileRecord, ...]] | None = None
    ) -> list[dict[str, Any]]:
        from errata.outputs.files import write_output

        present = files or {name: one.changes.now for name, one in sources.items()}
        self.options.listener(Event("begin", node.name, node.kind, "writing"))
        with flow.engine.sized(flow.live_bound(node.name)), within_limits(node.name):
            return write_output(self, flow, node, targets, present)

    def writer(self, flow: NodeRunner) -> Run | Entry:
        """The run whose outputs are written: this one, or the last one where files are only brought back."""
        return self if flow.done or self.head is None else self.head

    def warn(self, text: str) -> None:
        """Tell the listener something that does not stop the run."""
        self.options.listener(Event("warning", action=text))

    def _export_rejects(
        self, flow: NodeRunner, targets: Targets, sources: Mapping[str, SourceFiles], head: Entry | None, files: Mapping[str, tuple[FileRecord, ...]] | None = None
    ) -> list[dict[str, Any]]:
        """The DLQ file, where the pipeline names one and something is rejected."""
        path = targets.dlq
        if path is None or not flow.total_rejected():
            self.exports.gone |= {} if path is None or head is None else targets.of_dlq(head)
            return []
        if head is not None and not _touches_rejects(flow, sources) and targets.dlq_intact(head):
            return cast("list[dict[str, Any]]", head.nodes.get("dlq", {}).get("files", []))
        return [self.exports.stage(path, self._dlq_pieces(flow, sources, files or {})).json(self.plan.settings.folder)]

    def _dlq_pieces(self, flow: NodeRunner, sources: Mapping[str, SourceFiles], files: Mapping[str, tuple[FileRecord, ...]]) -> Iterator[bytes]:
        from errata.rollback.dlq_file import dlq_pieces

        rejects = self._rejects(flow, sources, files)
        return dlq_pieces(self.plan, rejects, Ledger(self.state.ledger).started(rejects["epoch"].unique().to_list()) | {self.epoch: self.started})

    def _rejects(self, flow: NodeRunner, sources: Mapping[str, SourceFiles], files: Mapping[str, tuple[FileRecord, ...]]) -> pl.DataFrame:
        """Everything that stands rejected, looked up once."""
        from errata.rollback.dead_letters import rejects_now

        if self.rejects is None:
            self.rejects = rejects_now(flow, self.plan, self._places(flow, sources, files))
        return self.rejects

    def _commit(
        self, flow: NodeRunner, sources: Mapping[str, SourceFiles], files: Mapping[str, tuple[FileRecord, ...]], written: Mapping[str, list[dict[str, Any]]]
    ) -> Entry:
        """Append the ledger's row: from here on the epoch exists."""
        self.options.listener(Event("begin", action=f"committing epoch {self.epoch}"))
        nodes: dict[str, Any] = {node.name: flow.summary(node) | {"files": written.get(node.name, [])} for node in self.plan}
        nodes["dlq"] = {"files": written.get("dlq", []), "form": dlq_form(self.plan)}
        kept = {"largest": self.settled.largest, "rules": rules(self.plan), "retract": retract_counters(self.plan, flow, self.settled)}
        nodes[TRIGGERS] = {"rejected_live": flow.rejected_live(TRIGGERS), **kept}
        rejects = self._rejects(flow, sources, files) if flow.total_rejected() else None
        compact_small_files(map(flow.tables.by_path, sorted(flow.tables.versions())))
        entry = Entry(
            self.epoch, self.execution_id, self.batch_id, self.started, datetime.now(UTC), 2 if flow.total_rejected() else 0,
            plan=self.plan.summary(), tables={**(self.head.tables if self.head else {}), **flow.tables.versions()}, nodes=nodes,
            sources={name: self._source_summary(one, files[name], rejects) for name, one in sources.items()},
            counters={"rejected": flow.total_rejected(), "correlated": self.settled.collateral, **self._removed_files(), **self.remarks()},
        )  # fmt: skip
        return self.append(entry)

    def _source_summary(self, source: SourceFiles, files: Sequence[FileRecord], rejects: pl.DataFrame | None) -> dict[str, Any]:
        name = source.node.name
        cursor = cursor_of(name, sum(record.rows for record in files), self.settled, rejects)
        found = {"number": source.number, "cursor": cursor, "suppressed": self.settled.suppressed.get(name, 0), "files": [record.json() for record in files]}
        return found | ({} if self.former is None else arrivals_kept(source, self.history, files))

    def _removed_files(self) -> dict[str, Any]:
        return {"gone": list(self.exports.gone.values())} if self.exports.gone else {}

    def append(self, entry: Entry) -> Entry:
        """Commit an entry, with the seals of what the run wrote. Raises Overtaken where the claim was lost, or where a table has a version that the run did not write."""
        from storage.state.integrity import anchor_ledger, seal_tables

        before = self.head
        known = before.tables if before else {}
        changed = {path: self.tables.at(path, version) for path, version in entry.tables.items() if known.get(path) != version}
        marks = {path: table.mark() for path, table in changed.items()}
        kept = {path: mark for path, mark in (before.marks if before else {}).items() if path in entry.tables}
        sealed = replace(entry, files=seal_tables(self.state, known, entry.tables), marks=kept | marks)
        if self.claim is not None:
            self.claim.confirm()
        self.tables.require_untouched()
        ledger = Ledger(self.state.ledger)
        committed = ledger.append(sealed, self.standing, afresh=self.former is not None)
        anchor_ledger(self.state, ledger, committed, {path: table.data_files() for path, table in changed.items()})
        if ledger.compact_if_fragmented():
            anchor_ledger(self.state, ledger, committed, {})
        return committed

    def remarks(self) -> dict[str, Any]:
        """What the ledger's entry says besides; the base of a compaction and what was folded to it is told by all later ones, a refresh tells the entry whose place it takes."""
        replaced = {"replaces": self.former.hash} if self.former else {}
        return {name: value for name, value in (self.head.counters if self.head else {}).items() if name in ("base", "folded")} | replaced

    def restore(self) -> None:
        """Take back what a run that did not commit has written; of a table that was damaged nothing stays, as its version that stood is lost."""
        versions = self.standing.tables if self.standing else {}
        for path in {*versions, *self.tables.existing()} - self.tables.discarded:
            self.tables.by_path(path).restore(versions.get(path))
        if self.tables.discarded and Ledger(self.state.ledger).head() == self.standing:
            for path in self.tables.discarded:
                self.tables.by_path(path).discard()

    def _result(self, entry: Entry, counts: Mapping[str, Mapping[str, int]], targets: Targets, *, committed: bool) -> RunResult:
        rejected = int(entry.counters.get("rejected", 0))
        return RunResult(
            exit_code=2 if rejected else 0, epoch=entry.epoch, counts=Counts({name: ops for name, ops in counts.items() if ops}),
            per_source_rollback_cursors={name: one["cursor"] for name, one in entry.sources.items() if one["cursor"]},
            rejected=rejected, outputs=targets.standing(self.plan, entry), seconds=monotonic() - self.began,
            started=self.started, execution_id=self.execution_id, committed=committed,
        )  # fmt: skip


def _begun(node: Node, stage: Stage, flow: NodeRunner, sources: Mapping[str, SourceFiles]) -> Event:
    """What is known of a node as it begins, without asking the engine: the rows that come in, of a source its files."""
    present = [record for record in sources[node.name].changes.now if record.present] if node.name in sources else []
    size = sum(record.size for record in present) / 1e6
    action = f"reading {len(present):,} file{'s' * (len(present) != 1)}, {size:,.1f} MB" if present else stage.action
    return Event("begin", node.name, node.kind, action, _rows_in(node, flow))


def _rows_in(node: Node, flow: NodeRunner) -> int:
    return sum(sum(flow.done[name].ops.values()) for name, _ in node.inputs)


def _event(node: Node, stage: Stage, delta: NodeDelta, flow: NodeRunner, seconds: float) -> Event:
    rows_in = _rows_in(node, flow)
    out = sum(delta.ops.values())
    action = "delta" if stage.action == "skip" and out else stage.action
    return Event("node", node.name, node.kind, action, rows_in, out, delta.ops, delta.rejected, seconds)


def _file_told(text: str, source: SourceFiles) -> str:
    """The file of a source that a message names; empty where it names none."""
    named = [record.path for record in source.changes.now if f"{record.path}:" in text]
    return max(named, key=len, default="")


def _touches_rejects(flow: NodeRunner, sources: Mapping[str, SourceFiles]) -> bool:
    """Whether an entry of the DLQ came, went, may stand in another row now, or may have other fields, being a row of an aggregate."""
    summed = flow.total_rejected() > 0 and any(not flow.done[node.name].empty for node in flow.tables.plan.of_kind("aggregate") if node.name in flow.done)
    return summed or any(one.reason for one in sources.values()) or any(delta.rejected or delta.repaired for delta in flow.done.values())


def _most_rows(flow: NodeRunner, sources: Mapping[str, SourceFiles]) -> int | None:
    """About the rows of the largest table of a run; None where a source's size is not known before it is read."""
    if any(cast("SourceNode", one.node.operator).versioned for one in sources.values()):
        return None
    read = [sum(record.size for record in one.changes.now) // BYTES_A_ROW for one in sources.values()]
    return max([*read, *flow.live_rows.values()], default=0)
