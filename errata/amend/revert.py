"""`errata revert`: sources get the live rows of an earlier epoch again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from changelog.spark_algebra import diff
from errata.amend.amendment import Change
from errata.core.failures import Usage
from errata.erasure.nameless import nameless_keys, without_nameless
from errata.plan.pipeline import LoadedPipeline
from errata.plan.plan import Node
from errata.state.committed_node import CommittedNode
from errata.state.node_tables import folded
from errata.state.run_state import RunState
from errata.state.source_files import keys_in, keys_of
from errata.state.suppressed_rows import truth
from operators.source.file_changes import FileRecord
from operators.source.node import SourceNode
from operators.source.schema_changes import Redeclared, restated
from storage.state.entry import Entry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Revert(Change):
    """Give sources their live rows of an earlier epoch. `then` is its entry, None for the time before the first."""

    epoch: int
    then: Entry | None
    nameless: Mapping[str, frozenset[bytes]] = field(default_factory=dict)
    """Keys of rows of sources that no delivery has, and that stay."""

    def sources(self, names: Sequence[str]) -> Mapping[str, str]:
        """All of them."""
        return dict.fromkeys(names, f"reverted to epoch {self.epoch}")

    def rows(self, run: RunState, node: Node) -> DataFrame:
        """The difference by key between what the files said at either epoch: which records are rolled back is settled by the run."""
        self._refuse_other_keys(node, run.epoch - 1)
        now = without_nameless(truth(run.tables.live(run.engine, node, run.values, at=run.epoch - 1).without("_epoch")), self.nameless.get(node.name, frozenset())).as_frame()
        then = self._then(run, node)
        wanted = cast("SourceNode", node.operator).wanted
        places = {"_file": {"source.file", "source.path"}, "_row": {"source.row"}}
        compared = [name for name in node.operator.output.columns() if name not in places or places[name] & wanted]
        return diff(now, then, f"revert:{self.epoch}", compare=compared)

    def _then(self, run: RunState, node: Node) -> DataFrame:
        """The rows of a source at the earlier epoch, as its files had them, under the columns that are declared now."""
        change = self._redeclared(node)
        if not change:
            return truth(run.tables.live(run.engine, node, run.values, at=self.epoch).without("_epoch")).as_frame()
        columns = self._committed(node).columns()
        wider = run.tables.wider(node, {name: columns[name] for name in change.columns()})
        return restated(cast("SourceNode", node.operator), truth(folded(run.engine, wider, self.epoch).without("_epoch")).as_frame(), change)

    def _committed(self, node: Node) -> CommittedNode:
        assert self.then is not None  # as who asks knows
        return CommittedNode.of(node.name, self.then.plan[node.name])

    def _redeclared(self, node: Node) -> Redeclared | None:
        """The change of the declared columns since then; None where there is none."""
        source = cast("SourceNode", node.operator)
        if self.then is None or node.name not in self.then.plan or source.versioned:
            return None
        return Redeclared.between(self._committed(node).data, self._committed(node).hidden, source) or None

    def _refuse_other_keys(self, node: Node, last: int) -> None:
        if self.then is None or node.name not in self.then.plan:
            return
        had, have = keys_in(self.then.plan[node.name], FileRecord.all_of(self.then.sources.get(node.name, {}))), keys_of(cast("SourceNode", node.operator))
        if had != have:
            raise Usage(f"epoch {self.epoch} knows the records of '{node.name}' by {had}, epoch {last} by {have}", help="revert to a later epoch")

    def files(self, source: Node, now: tuple[FileRecord, ...]) -> tuple[FileRecord, ...]:
        """The present files with the undeclared columns of the restored records, and absent files whose records are restored."""
        before = FileRecord.all_of(self.then.sources.get(source.name, {})) if self.then else ()
        if change := self._redeclared(source):
            before = tuple(change.redeclared(record, cast("SourceNode", source.operator)) for record in before)
        columns = {name: record.undeclared for record in before for name in (record.label, record.path)}
        taken = {record.label for record in now} | {record.path for record in now}
        gone = [replace(record, present=False) for record in before if not {record.label, record.path} & taken]
        return (*(replace(one, undeclared=columns.get(one.path, columns.get(one.label, one.undeclared))) for one in now), *gone)

    def corrected(self, run: RunState, node: Node) -> list[int]:
        """The earlier ones up to the epoch that comes back."""
        return [epoch for epoch in run.corrected.get(node.name, ()) if epoch <= self.epoch]

    def counters(self) -> dict[str, Any]:
        """Where it went back to."""
        return {"kind": "revert", "to": self.epoch}


def revert_to(pipeline: LoadedPipeline, epoch: int) -> Revert:
    """The change that goes back to an epoch. Raises Usage for an epoch that cannot be read."""
    entries = {entry.epoch: entry for entry in pipeline.open_ledger().entries()}
    last = max(entries, default=0)
    if epoch > last:
        raise Usage(f"there is no epoch {epoch}; the last one is {last}")
    if last:
        refuse_folded(entries[last], epoch)
    head = entries.get(last)
    return Revert(epoch, entries.get(epoch), {name: nameless_keys(head, name) for name in (head.sources if head is not None else ())})


def refuse_folded(head: Entry, epoch: int) -> None:
    """Raise Usage for an epoch whose rows were folded into a base."""
    base = int(head.counters.get("base", 0))
    if epoch < base:
        raise Usage(f"the history before epoch {base} was folded into a base", help=f"epochs from {base} on can be read")
