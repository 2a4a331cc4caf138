"""Epochs that no file brings: `errata revert` and `errata correct` (CONTRACT, "Commands"; SPEC-DECISIONS, Commands 29).

Both change the live rows of sources and let the change run through the DAG as any other. Files that are as they were are not
read again, so what is changed here stands until its file changes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from changelog.columns import column
from changelog.lazy_imports import F
from changelog.spark_algebra import diff
from errata.core.diagnostics import did_you_mean
from errata.core.events import RunResult
from errata.core.failures import Usage
from errata.core.options import Correction, RunOptions
from errata.execution.ingest import SourceFiles, files_left, keys_in, keys_of
from errata.execution.run import Run
from errata.state.committed_node import CommittedNode
from errata.state.node_tables import folded
from errata.state.suppressed_rows import truth
from operators.core.operator import Outcome
from operators.core.row_type import CK
from operators.source.file_changes import FileRecord
from storage.state.entry import Entry
from storage.state.ledger import Ledger
from storage.values.python_rows import dictionaries

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from errata.api.pipeline import Pipeline
    from errata.execution.node_runner import NodeDelta, NodeRunner
    from errata.plan.plan import Node
    from errata.plan.steps import Stage
    from operators.source.node import SourceNode
    from operators.source.schema_changes import Redeclared

Row = Mapping[str, Any]


class Change(ABC):
    """What an epoch by hand does to sources."""

    @abstractmethod
    def sources(self, names: Sequence[str]) -> Mapping[str, str]:
        """The sources that it may change, each with the reason that `plan` would show."""

    @abstractmethod
    def rows(self, flow: NodeRunner, node: Node) -> DataFrame:
        """The op rows that it brings to a source's changelog. Raises Usage where there is nothing that could be changed so."""

    def files(self, source: Node, now: tuple[FileRecord, ...]) -> tuple[FileRecord, ...]:
        """The source's files as the ledger will know them."""
        return now

    @abstractmethod
    def remarks(self) -> dict[str, Any]:
        """What the ledger keeps of it."""


class DryRun(Exception):
    """Everything was computed and nothing is to be kept."""


@dataclass(slots=True)
class Rewrite(Run):
    """A run that reads no files: a change by hand takes the place of the sources' input. `effect`: its rows by node, in order."""

    change: Change | None = None
    dry: bool = False
    effect: list[Row] = field(default_factory=list)

    def look(self) -> dict[str, SourceFiles]:
        """The files as the last epoch left them, whatever became of them since."""
        assert self.head is not None  # `rewrite` looked
        assert self.change is not None  # `rewrite` gave it
        left = files_left(self.plan, self.head)
        return {name: replace(one, changes=replace(one.changes, now=self.change.files(one.node, one.changes.now))) for name, one in left.items()}

    def reasons(self, sources: Mapping[str, SourceFiles]) -> dict[str, str]:
        """The sources that the change may touch."""
        assert self.change is not None  # `rewrite` gave it
        return dict(self.change.sources(list(sources)))

    def remarks(self) -> dict[str, Any]:
        """What the change says of itself."""
        assert self.change is not None  # `rewrite` gave it
        return {**Run.remarks(self), **self.change.remarks()}

    def _ingest(self, flow: NodeRunner, source: SourceFiles, stage: Stage) -> tuple[NodeDelta, tuple[FileRecord, ...]]:
        assert self.change is not None  # `rewrite` gave it
        if stage.action == "skip" or source.node.name not in self.change.sources([source.node.name]):
            return flow.skip(source.node), source.changes.now
        delta = flow.keep(source.node, Outcome(self.change.rows(flow, source.node), signed=True), None)
        files = self.change.files(source.node, source.changes.now)
        return delta, tuple(replace(record, listed=False, dense=record.dense and record.version is None) for record in files)

    def judge(self, flow: NodeRunner, files: Mapping[str, tuple[FileRecord, ...]]) -> None:
        """Thresholds as for any run; then what the change does is known, and a dry one ends. Raises Stopped, DryRun."""
        Run.judge(self, flow, files)  # `super()` does not find it in a class with slots
        self.effect.extend(effects(self, flow))
        if self.dry:
            raise DryRun


def effects(run: Run, flow: NodeRunner) -> Iterator[Row]:
    """The net changes of a run that has not committed: node, op, before, after."""
    from errata.state.committed_node import paired

    summary = run.plan.summary()
    for node in run.plan:
        delta = flow.done.get(node.name)
        if delta is None or delta.frame is None:
            continue
        kept = CommittedNode.of(node.name, summary[node.name])
        good = delta.frame.where(F.col("_error").isNull()) if "_error" in delta.frame.columns else delta.frame
        rows = dictionaries(flow.engine.to_arrow(good.select("_op", "_key", *map(column, kept.shown))))
        for before, after in paired(rows, kept):
            yield {"node": node.name, "op": "+A" if before is None else "-R" if after is None else "+C", "before": before, "after": after}


def rewrite(project: Pipeline, change: Change, options: RunOptions) -> tuple[list[Row], RunResult]:
    """Make an epoch of a change: its effect and the run, of which is told as of any other unless it is a dry one. Raises Failure."""
    from errata.execution.epoch import exclusive
    from errata.telemetry.metrics import measured

    effect: list[Row] = []
    own = project.check()

    def made(told: RunOptions) -> RunResult:
        with exclusive(project, replace(told, dry_run=False), Rewrite, change=change, dry=options.dry_run, effect=effect, own=own) as one:
            _as_it_ran(one)
            try:
                return one.execute()
            except DryRun:
                return RunResult(exit_code=0, epoch=one.head.epoch if one.head else None)

    return effect, made(options) if options.dry_run else measured(project, options, made)


def _as_it_ran(one: Run) -> None:
    """Raise Usage unless the pipeline is the one of the last epoch: a change by hand brings no change of logic with it."""
    if one.head is None:
        raise Usage("the pipeline has not run yet: there is nothing to change")
    before = {name: kept["fingerprint"] for name, kept in one.head.plan.items()}
    if before != one.plan.fingerprints():
        changed = [name for name in {**before, **one.plan.nodes} if before.get(name) != one.plan.fingerprints().get(name)]
        raise Usage(f"the pipeline is not the one of epoch {one.head.epoch}: {', '.join(changed)} changed", help="run it first")


# -- revert


@dataclass(frozen=True, slots=True)
class Revert(Change):
    """The sources' live rows become those of an earlier epoch. `then` is that epoch's entry, None for the time before the first."""

    epoch: int
    then: Entry | None

    def sources(self, names: Sequence[str]) -> Mapping[str, str]:
        """All of them."""
        return dict.fromkeys(names, f"reverted to epoch {self.epoch}")

    def rows(self, flow: NodeRunner, node: Node) -> DataFrame:
        """The difference by key between what the files said at either epoch: which records are rolled back is settled by the run."""
        self._refuse_other_keys(node, flow.epoch - 1)
        now = truth(flow.tables.live(flow.engine, node, flow.values, at=flow.epoch - 1).drop("_epoch"))
        then = self._then(flow, node)
        wanted = cast("SourceNode", node.operator).wanted
        places = {"_file": {"source.file", "source.path"}, "_row": {"source.row"}}
        compared = [name for name in node.operator.output.columns() if name not in places or places[name] & wanted]
        return diff(now, then, f"revert:{self.epoch}", compare=compared)

    def _then(self, flow: NodeRunner, node: Node) -> DataFrame:
        """What the files said at the earlier epoch, also what they said in columns that were declared then and are not now, or the other way round."""
        change = self._redeclared(node)
        if not change:
            return truth(flow.tables.live(flow.engine, node, flow.values, at=self.epoch).drop("_epoch"))
        from operators.source.schema_changes import restated

        columns = self._kept(node).columns()
        wider = flow.tables.wider(node, {name: columns[name] for name in change.columns()})
        return restated(cast("SourceNode", node.operator), truth(folded(flow.engine, wider, self.epoch).drop("_epoch")), change)

    def _kept(self, node: Node) -> CommittedNode:
        assert self.then is not None  # as who asks knows
        return CommittedNode.of(node.name, self.then.plan[node.name])

    def _redeclared(self, node: Node) -> Redeclared | None:
        """What was declared otherwise then; None where nothing was."""
        from operators.source.schema_changes import Redeclared

        source = cast("SourceNode", node.operator)
        if self.then is None or node.name not in self.then.plan or source.versioned:
            return None
        return Redeclared.between(self._kept(node).data, self._kept(node).hidden, source) or None

    def _refuse_other_keys(self, node: Node, last: int) -> None:
        if self.then is None or node.name not in self.then.plan:
            return
        had, have = keys_in(self.then.plan[node.name], FileRecord.all_of(self.then.sources.get(node.name, {}))), keys_of(cast("SourceNode", node.operator))
        if had != have:
            raise Usage(f"epoch {self.epoch} knows the records of '{node.name}' by {had}, epoch {last} by {have}", help="revert to a later epoch")

    def files(self, source: Node, now: tuple[FileRecord, ...]) -> tuple[FileRecord, ...]:
        """The present ones with the undeclared columns of the records that stand again, and those that are gone but whose records stand again."""
        before = FileRecord.all_of(self.then.sources.get(source.name, {})) if self.then else ()
        if change := self._redeclared(source):
            before = tuple(change.told(record, cast("SourceNode", source.operator)) for record in before)
        columns = {name: record.undeclared for record in before for name in (record.label, record.path)}
        taken = {record.label for record in now} | {record.path for record in now}
        gone = [replace(record, present=False) for record in before if not {record.label, record.path} & taken]
        return (*(replace(one, undeclared=columns.get(one.path, columns.get(one.label, one.undeclared))) for one in now), *gone)

    def remarks(self) -> dict[str, Any]:
        """Where it went back to."""
        return {"kind": "revert", "to": self.epoch}


def revert(project: Pipeline, epoch: int, options: RunOptions) -> RunResult:
    """A new epoch in which the sources' live rows are those of an earlier one. Raises Failure; Usage for an epoch that cannot be read."""
    entries = {entry.epoch: entry for entry in Ledger(project.state.ledger).entries()}
    last = max(entries, default=0)
    if epoch > last:
        raise Usage(f"there is no epoch {epoch}; the last one is {last}")
    if last:
        refuse_folded(entries[last], epoch)
    return rewrite(project, Revert(epoch, entries.get(epoch)), options)[1]


def refuse_folded(head: Entry, epoch: int) -> None:
    """Raise Usage for an epoch whose rows were folded into a base."""
    base = int(head.counters.get("base", 0))
    if epoch < base:
        raise Usage(f"the history before epoch {base} was folded into a base", help=f"epochs from {base} on can be read")


# -- correct


@dataclass(frozen=True, slots=True)
class Correct(Change):
    """One record of a source gets other values or is taken back."""

    correction: Correction

    def sources(self, names: Sequence[str]) -> Mapping[str, str]:
        """The one that has the record."""
        return {self.correction.source: "corrected by hand"}

    def rows(self, flow: NodeRunner, node: Node) -> DataFrame:
        """The record's two images, or its retraction; a record that is rolled back is told of as if it took part."""
        live = truth(flow.tables.live(flow.engine, node, flow.values, at=flow.epoch - 1).drop("_epoch")).where(F.col("_error").isNull())
        old = self._found(flow, live, node)
        return diff(old, old.limit(0) if self.correction.retracts else self._changed(flow, old, node), "correction")

    def _found(self, flow: NodeRunner, live: DataFrame, node: Node) -> DataFrame:
        from errata.inspect.why import value_is

        for name in self.correction.key:
            _refuse_unknown(name, node)
        found = live
        for name, text in self.correction.key.items():
            found = found.where(value_is(column(name), node.operator.output.data[name], text))
        table = flow.engine.to_arrow(found, 2)
        shown = ", ".join(f"{name}={text}" for name, text in self.correction.key.items())
        if table.num_rows != 1:
            several = f"several records of '{node.name}' have" if table.num_rows else f"no record of '{node.name}' has"
            unread = "a record that could not be read is corrected in its file: errata dlq lists it" if flow.rejects.get(node.name) else ""
            raise Usage(f"{several} {shown}", help="name more columns with --key" if table.num_rows else unread)
        return flow.engine.from_arrow(table)

    def _changed(self, flow: NodeRunner, old: DataFrame, node: Node) -> DataFrame:
        source = cast("SourceNode", node.operator)
        types = source.output.columns()
        for name, text in self.correction.changes.items():
            _refuse_unknown(name, node)
            if name in source.config.merge.primary_key:
                raise Usage(f"'{name}' is part of the primary key: retract the record instead, and correct another")
            old = old.withColumn(name, _value(text, types[name], dynamic=source.output.data[name].is_dynamic))
        table = flow.engine.to_arrow(old)
        for name, text in self.correction.changes.items():
            if text and table.column(name)[0].as_py() is None:
                raise Usage(f"'{text}' is no {source.output.data[name].base}, as '{name}' is")
        return flow.engine.from_arrow(table).withColumns(_derived(source)) if _derived(source) else flow.engine.from_arrow(table)

    def remarks(self) -> dict[str, Any]:
        """What was corrected and why."""
        return {"kind": "correct", "source": self.correction.source, "key": dict(self.correction.key), "reason": self.correction.reason}


def _refuse_unknown(name: str, node: Node) -> None:
    known = list(node.operator.output.data)
    if name not in known:
        raise Usage(f"source '{node.name}' has no column '{name}'", help=did_you_mean(name, known) or f"its columns: {', '.join(known)}")


def _value(text: str, kind: str, *, dynamic: bool) -> Column:
    """A value as a column of a type; empty text is null but for strings. Dynamic values are JSON, or else text."""
    if dynamic:
        import json

        try:
            json.loads(text)
        except ValueError:
            text = json.dumps(text, ensure_ascii=False)
    return F.lit(text) if kind == "string" else F.lit(text or None).try_cast(kind)


def _derived(source: SourceNode) -> dict[str, Column]:
    """The hidden columns that are made from data columns: correlation keys and event time."""
    made = {name: column(name.removeprefix(CK)) for name in source.output.riders if name.startswith(CK)}
    if source.shape.event_time is not None:
        name, delay = source.shape.event_time
        made["_event_time"] = F.timestamp_micros(F.unix_micros(column(name).cast("timestamp")) - F.lit(delay))
    return made


def correct(project: Pipeline, correction: Correction, options: RunOptions) -> tuple[list[Row], RunResult]:
    """A correction by hand as an epoch of its own: its effect and the run. Raises Failure; Usage where there is not one such record."""
    node = project.plan.nodes.get(correction.source)
    if node is None or not node.is_source:
        sources = [one.name for one in project.plan.of_kind("source")]
        raise Usage(f"'{correction.source}' is no source", help=f"sources: {', '.join(sources)}")
    return rewrite(project, Correct(correction), options)


__all__ = ["Rewrite", "correct", "refuse_folded", "revert"]
