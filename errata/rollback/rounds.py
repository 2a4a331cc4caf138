"""Correlation rollback: which records of the sources take part in a run.

A run is settled in rounds. A round walks the nodes by rank. A node whose rows depend on several records is a barrier: what fails upstream of it is
settled before it runs. Failures lead back to source records. These and their groups are suppressed, everything but the sources is undone, and
the next round begins. The suppressed set only grows, so the rounds end. All records take part at first, so the result is that of a full run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from changelog.rows import Rows
from errata.plan.correlation import TRIGGERS, PriorRollback, key_fields, ranks
from errata.plan.plan import Node, Plan
from errata.plan.steps import DataStep
from errata.rollback.attribution import Attributions
from errata.rollback.cursors import rewind_at_combine
from errata.rollback.dead_letters import fields_above, fields_of_groups
from errata.rollback.groups import Groups
from errata.rollback.outcome import Settled
from errata.rollback.probe import would_fail
from errata.rollback.provenance import Failure, Leads
from errata.rollback.readmission import Steady
from errata.rollback.record_locations import Places
from errata.state.node_writer import Counts, NodeWriter
from errata.state.run_state import RunState
from errata.state.scalar_inputs import ScalarInputs
from errata.state.suppressed_rows import (
    IS_SUPPRESSED,
    Suppression,
    counts,
    marked_appends,
    marks_frame,
    readmitting,
    suppressing,
)
from errata.state.trigger_table import Trigger, replace_triggers


@dataclass(slots=True)
class Rounds:
    """Settles one run. `visit` runs one node by its stage; `places` is asked for once the sources are visited.

    Records that were suppressed `before` are tried again where there is anything new, or `always`.
    """

    writer: NodeWriter
    plan: Plan
    stages: Sequence[DataStep]
    visit: Callable[[DataStep], None]
    places: Callable[[], Places]
    before: PriorRollback = field(default_factory=PriorRollback)
    always: bool = False
    settled: Settled = field(default_factory=Settled)
    triggers: list[Trigger] = field(default_factory=list)
    _base: _Base = field(init=False)

    @property
    def run(self) -> RunState:
        """The run that is settled."""
        return self.writer.run

    def settle(self) -> Settled:
        """Visit every node until nothing new fails."""
        self._base = _Base.of(self.run)
        versions = {node.name: self.run.versions_of(node) for node in self.plan}
        with self.writer.settling_sources():
            for stage in self._of_kind("source"):
                self.visit(stage)
            if changed := self._something_changed():
                self._try_again(versions)
        if not changed:
            self.settled.largest = self.before.largest
            for stage in self.stages:
                if not self.plan[stage.node].is_source:
                    self.visit(stage)
            return self.settled
        sources = _Base.of(self.run)
        blames = Attributions(self.plan, self._groups, self.places(), self.settled)
        self._apply(blames.of_sources(self._source_rejects(), self.plan.model.error_handling.group_cap, self._largest()), versions)
        self._probe(blames, versions)
        while not self._round(blames, versions):
            self._rewind(sources, versions)
        self._keep_triggers()
        return self.settled

    @property
    def _groups(self) -> Groups:
        return Groups(self.run, self.plan)

    def _something_changed(self) -> bool:
        return bool(self.before.suppressed) or self._everything_again or any(not self.run.done[stage.node].empty for stage in self._of_kind("source"))

    @property
    def _everything_again(self) -> bool:
        """Whether every suppressed record is tried again, whatever it failed of."""
        return self.always or any(stage.action in ("first", "rebuild") for stage in self.stages)

    def _largest(self) -> int | None:
        """How many records the largest group can have; None where it has to be counted."""
        bounds = [self.run.done[stage.node].bound for stage in self._of_kind("source")]
        known = [bound for bound in bounds if bound is not None]
        if self.before.largest is None or self._everything_again or len(known) < len(bounds):
            return None
        return self.before.largest + sum(known)

    def _try_again(self, versions: Mapping[str, Mapping[str, int | None]]) -> None:
        """Let suppressed records take part again, except where they would fail again in the same way."""
        steady, engine, tables, before = Steady(self.run, self.plan), self.run.engine, self.run.tables, self.run.epoch - 1
        if self._everything_again:
            for name, count in self.before.suppressed.items():
                held = tables.rejects(engine, self.plan[name], before).where(IS_SUPPRESSED).without("_epoch")
                self._readmit(self.plan[name], held, count, versions[name])
            return
        suppressed = {name: tables.rejects(engine, self.plan[name], before).where(IS_SUPPRESSED).without("_epoch") for name in self.before.suppressed}
        for name, found in {name: steady.parted(self.plan[name], rows.as_table()) for name, rows in suppressed.items()}.items():
            self.settled.hold(name, found.staying, found.collateral)
            if found.again.num_rows:
                self._readmit(self.plan[name], Rows(engine, found.again), found.again.num_rows, versions[name])

    def _readmit(self, node: Node, held: Rows, count: int, versions: Mapping[str, int | None]) -> None:
        """Let suppressed records of a source take part; the run's op rows on them, as the files tell them, become what that comes to."""
        run = self.run
        done = run.done[node.name]
        bound = None if done.bound is None else done.bound + 2 * count

        def forget() -> None:
            self._base.reset(run, node.name)

        self.writer.replace(node, readmitting(done.rows, held), bound, versions, forget)

    def _live(self, node: Node) -> Rows:
        run = self.run
        return run.tables.live(run.engine, node, run.values)

    def _of_kind(self, *kinds: str) -> Iterator[DataStep]:
        return (stage for stage in self.stages if self.plan[stage.node].kind in kinds)

    def _probe(self, blames: Attributions, versions: Mapping[str, Any]) -> None:
        """Settle what fails ahead of every barrier before large deltas are written for nothing. Each of these records fails by itself: once is enough."""
        bounds = [self.run.done[stage.node].bound for stage in self._of_kind("source")]
        if all(map(self.run.engine.limits.are_small, bounds)):
            return
        failures: list[Failure] = []
        for node, rejects in would_fail(self.run, self.plan, self.stages):
            failures += Leads(self.run, self.plan).of_rows(node, rejects)
            blames.groups.carry(node, rejects)
        if failures:
            self._suppress(failures, blames, versions)

    def _round(self, blames: Attributions, versions: Mapping[str, Any]) -> bool:
        """Run all nodes but the sources, rank by rank. False where something new failed: then it has been suppressed."""
        self.settled.rounds += 1
        order = ranks(self.plan)
        by_rank: dict[int, list[DataStep]] = {}
        for stage in self.stages:
            if not self.plan[stage.node].is_source:
                by_rank.setdefault(order[stage.node], []).append(stage)
        for rank in sorted(by_rank):
            for stage in by_rank[rank]:
                self.visit(stage)
                rewind_at_combine(self.run, self.plan, self.plan[stage.node], blames.places, self.settled)
            failures = [one for stage in by_rank[rank] for one in self._failures(self.plan[stage.node])]
            if failures and self._suppress(failures, blames, versions):
                return False
        return True

    def _failures(self, node: Node) -> Iterator[Failure]:
        """The live rejects of a node that may roll back records."""
        if self.run.rejected_live(node.name):
            yield from Leads(self.run, self.plan).failures(node)

    def _source_rejects(self) -> dict[str, list[Failure]]:
        leads = Leads(self.run, self.plan)
        held, run = self.settled.suppressed, self.run
        nodes = [node for node in self.plan.of_kind("source") if key_fields(node) and run.rejected_live(node.name) > held.get(node.name, 0)]
        return {node.name: list(leads.failures(node)) for node in nodes}

    def _suppress(self, failures: Sequence[Failure], blames: Attributions, versions: Mapping[str, Any]) -> bool:
        records, rows = Leads(self.run, self.plan).resolved(failures)
        marks = blames.of_failures(records, rows)
        if not any(marks.values()):
            return False
        self.settled.lookups += len(rows)
        self.settled.expanded += sum(one.lead.grouped for found in records.values() for one in found.values())
        self.triggers += self._triggers(rows, blames)
        self._apply(marks, versions)
        return True

    def _triggers(self, rows: Sequence[Failure], blames: Attributions) -> Iterator[Trigger]:
        """The failed rows of aggregates, with their fields, which are about to be gone."""
        fields = {name: fields_of_groups(self.run, self.plan[name], [one.lead.key for one in rows if one.lead.node == name]) for name in {one.lead.node for one in rows}}
        for one in rows:
            found = fields[one.lead.node].get(one.lead.key, {})
            shown = {name: found[name] for name in fields_above(self.plan, one.node) if name in found}
            yield Trigger(one.node, one.key, {**blames.trigger_error(one), "fields": shown})

    def _apply(self, marks: Mapping[str, Mapping[bytes, Suppression]], versions: Mapping[str, Any]) -> None:
        """Write the sources' op rows of this run anew, with these records suppressed too."""
        for source, found in marks.items():
            if found:
                counting = self._groups.counted(source).keys()
                self._rewrite(self.plan[source], found, counting, versions[source])
                again = sum(key in counting for key in found)
                self.settled.hold(source, len(found) - again, sum(one.collateral for one in found.values()) - again)

    def _rewrite(self, node: Node, marks: Mapping[bytes, Suppression], counting: Collection[bytes], versions: Mapping[str, int | None]) -> None:
        run = self.run
        done = run.done[node.name]
        frame = marks_frame(marks, counting, run.engine)
        known: Counts | None = None
        if done.rows is not None and not done.signed and not self._base.live_rows.get(node.name):
            out = marked_appends(done.rows, frame)
            held = sum(key not in counting for key in marks)
            good = done.ops.get("+A", 0) - held
            known = {"+A": good} if good else {}, done.rejected + held, done.repaired
        else:
            out = suppressing(done.rows, self._live(node).where(counts(node)).without("_epoch"), frame)
        bound = None if done.bound is None else done.bound + 2 * len(marks)
        self.writer.replace(node, out, bound, versions, lambda: self._base.reset(run, node.name), counts=known)

    def _rewind(self, sources: _Base, versions: Mapping[str, Mapping[str, int | None]]) -> None:
        """Take back what a round did at all nodes but the sources."""
        for name in [name for name in self.run.done if not self.plan[name].is_source]:
            for path, version in versions[name].items():
                self.run.tables.by_path(path).restore(version)
            sources.reset(self.run, name)
            del self.run.done[name]
        self.run.scalar_inputs = deepcopy(sources.scalar_inputs)

    def _keep_triggers(self) -> None:
        """Keep the failed rows whose records are rolled back; a row that still stands rejected at its node is there already."""
        leads = Leads(self.run, self.plan)
        nodes = dict.fromkeys(one.node for one in self.triggers)
        standing = {(name, one.key) for name in nodes if self.run.rejected_live(name) for one in leads.failures(self.plan[name])}
        now = {one.identity: one for one in reversed(self.triggers) if (one.node, one.key) not in standing}
        replace_triggers(self.run.tables.triggers, list(now.values()), self.run.epoch)
        self.run.rejects[TRIGGERS] = len(now)


@dataclass(frozen=True, slots=True)
class _Base:
    """The counters of a run at one moment."""

    live_rows: dict[str, int]
    rejects: dict[str, int]
    scalar_inputs: ScalarInputs

    @classmethod
    def of(cls, run: RunState) -> _Base:
        return cls(dict(run.live_rows), dict(run.rejects), deepcopy(run.scalar_inputs))

    def reset(self, run: RunState, name: str) -> None:
        """Bring the counters of a node back."""
        run.live_rows[name] = self.live_rows.get(name, 0)
        run.rejects[name] = self.rejects.get(name, 0)
