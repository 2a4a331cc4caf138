"""The state of a run under way: its engine and tables, what each node did so far, the counters. Nothing of it is visible to readers before the commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from changelog.algebra import repair
from changelog.rows import Rows, is_null
from errata.plan.plan import Node, Plan
from errata.state.node_tables import Tables, qualify_input, stored_rows, visible_rows
from errata.state.scalar_inputs import ScalarInputs, SourceCounts
from operators.core.evaluate import Narrow, as_it_is
from operators.core.operator import Operator
from operators.core.run_values import RunValues
from operators.source.file_changes import FileRecord

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage.engines.base import Engine


@dataclass(frozen=True, slots=True)
class NodeDelta:
    """The delta of one node in a run.

    Attributes:
        rows: Its op rows, rejects among them; None where nothing changed.
        signed: Whether the op rows may take rows back.
        bound: An upper bound of the op rows; None where there is none.
        ops: Number of op rows by op symbol, rejects left out.
        rejected: New rejects.
        repaired: Rejects that are gone.
        loose: Whether rows that cancel each other may be among them. At most one row of each sign has a key.
        apart: Columns such that the two images of each correction differ in one of them at least; None where that is not known.
    """

    node: str
    rows: Rows | None
    signed: bool
    bound: int | None
    ops: Mapping[str, int] = field(default_factory=dict)
    rejected: int = 0
    repaired: int = 0
    rows_in: int = 0
    loose: bool = False
    apart: frozenset[str] | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing changed."""
        return self.rows is None

    @property
    def net(self) -> int:
        """By how many rows the live state grew, rejects left out."""
        return sum(count if symbol[0] == "+" else -count for symbol, count in self.ops.items())


Ingested = tuple[NodeDelta, tuple[FileRecord, ...]]
"""The delta of a source, and the records of its files after it."""


@dataclass(slots=True)
class RunState:
    """The state of a run.

    Attributes:
        done: The delta of each node that the run visited, by name.
        live_rows: Live rows of each node, rejects among them, by name.
        rejects: Live rejects of each node, by name.
        counted_before: `live_rows` before this run.
        rejected_before: `total_rejected` before this run.
        folded: Op rows of each node that compactions took away.
        condensed: Nodes whose many rows turned out to come to few accumulators.
        wide_sums: Nodes whose sums met values beyond their limbs, in this run or an earlier one.
        corrected: By source the epochs of manual corrections that its files did not undo since.
        remarks: Warnings of operators, by the name of the node.
        reopened: Whether rows of closed periods may change.
    """

    engine: Engine
    tables: Tables
    epoch: int
    values: RunValues
    done: dict[str, NodeDelta] = field(default_factory=dict)
    live_rows: dict[str, int] = field(default_factory=dict)
    rejects: dict[str, int] = field(default_factory=dict)
    scalar_inputs: ScalarInputs = field(default_factory=ScalarInputs)
    counted_before: Mapping[str, int] = field(default_factory=dict)
    rejected_before: int = 0
    folded: Mapping[str, int] = field(default_factory=dict)
    condensed: set[str] = field(default_factory=set)
    wide_sums: set[str] = field(default_factory=set)
    corrected: dict[str, list[int]] = field(default_factory=dict)
    remarks: dict[str, list[str]] = field(default_factory=dict)
    reopened: bool = False

    def begin_at(self, nodes: Mapping[str, Mapping[str, Any]], base: int) -> None:
        """Begin at the counters of the last epoch. `nodes`: its summary of each node, `base`: the epoch into which earlier ones are folded."""
        for name, counts in nodes.items():
            self.live_rows[name] = counts.get("live", 0) + counts.get("rejected_live", 0)
            self.rejects[name] = counts.get("rejected_live", 0)
            if counts.get("corrected"):
                self.corrected[name] = [epoch for epoch in counts["corrected"] if epoch > base]  # the rows of a base do not tell who changed them
            if counts.get("wide_sums"):
                self.wide_sums.add(name)
        self.counted_before = dict(self.live_rows)
        self.rejected_before = self.total_rejected()

    @property
    def plan(self) -> Plan:
        """The pipeline's nodes."""
        return self.tables.plan

    def operator(self, node: Node) -> Operator:
        """The operator of a node in this run: with wide sums where narrow ones were not exact, and without bookings where periods are reopened."""
        wide = {"wide_sums": True} if node.name in self.wide_sums else {}
        reopened = {"reopened": True} if self.reopened and node.as_operator.keeps_periods else {}
        return node.as_operator.with_attributes(**wide, **reopened) if wide or reopened else node.as_operator

    def values_of(self, node: Node) -> RunValues:
        """The system variables that a node's programs read."""
        own, taken = self.values.of(node.name), {**self.scalar_inputs.taken(node), **self.source_counts.taken(node)}
        return replace(own, values={**own.values, **taken}) if taken else own

    @property
    def source_counts(self) -> SourceCounts:
        """The values of `$source.count`."""
        return SourceCounts(self.plan, self.live_rows, self.counted_before)

    def offset(self, node: Node, epoch: int) -> int:
        """The number of the first op row of an epoch at an output. Rows are numbered over all epochs, folded ones too."""
        before = self.op_rows(node, 1, epoch - 1).count() if _has_rejects(node) else self.tables.changelog(node).statistics.rows_before(epoch)
        return self.folded.get(node.name, 0) + int(before)

    def op_rows(self, node: Node, first: int, last: int | None = None) -> DataFrame:
        """The op rows of a node in an epoch, or up to a later one, without rejects."""
        return self.changes(node, first, last).as_frame()

    def changes(self, node: Node, first: int, last: int | None = None) -> Rows:
        """These where they are: on the driver where they are few."""
        rows = self.tables.rows(self.engine, node, self.values, epochs=(first, first if last is None else last))
        return rows.where(is_null("_error")) if "_error" in rows.columns else rows

    def op_count(self, node: Node, epoch: int) -> int:
        """The number of these."""
        return int(self.op_rows(node, epoch).count()) if _has_rejects(node) else sum(self.tables.changelog(node).statistics.counts(epoch).values())

    def rejected_live(self, name: str) -> int:
        """The number of live rejects of a node."""
        return self.rejects.get(name, 0)

    def total_rejected(self) -> int:
        """The number of live rejects of all nodes."""
        return sum(self.rejects.values())

    def summary(self, node: Node) -> dict[str, Any]:
        """The ledger's record of a node: op counts, live rows, rejects, scalars that others take from it."""
        delta = self.done[node.name]
        rejects = self.rejected_live(node.name)
        counts = {"rejected": delta.rejected, "rejected_live": rejects, "live": self.live_rows.get(node.name, 0) - rejects}
        corrected = {"corrected": self.corrected[node.name]} if self.corrected.get(node.name) else {}
        return {**delta.ops, **counts, **self.scalar_inputs.ledger_entry(node.name), "wide_sums": node.name in self.wide_sums, **corrected}

    def live_bound(self, name: str) -> int | None:
        """An upper bound of a node's live rows, also where it has no table; None where there is none."""
        node = self.plan[name]
        if self.plan.persisted(node):
            return self.live_rows.get(name)
        above = [self.live_bound(one) for one, _ in node.inputs]
        known = [bound for bound in above if bound is not None]
        return node.operator.bound(sum(known), 0) if len(known) == len(above) else None

    def versions_of(self, node: Node) -> dict[str, int | None]:
        """The versions of a node's tables by path."""
        paths = [f"changelog/{node.name}", *([f"state/{node.name}"] if node.operator.keeps_state else [])]
        return {path: self.tables.by_path(path).version() for path in paths}

    def small_deltas(self, node: Node) -> bool:
        """Whether every input of a node has a small delta."""
        return all(self.engine.limits.are_small(self.done[name].bound) for name, _ in node.inputs)

    def net_delta(self, node: Node) -> Rows | None:
        """The delta of a node, consolidated; None where nothing changed."""
        delta = self.done[node.name]
        return repair(delta.rows) if delta.rows is not None and delta.loose else delta.rows

    def epoch_rows(self, node: Node) -> Rows:
        """The op rows of this epoch in a node's table."""
        return stored_rows(self.engine, self.tables.changelog(node), (self.epoch, self.epoch)).without("_epoch")

    def live_input(self, node: Node, index: int, narrow: Narrow = as_it_is) -> DataFrame:
        """The live rows of an input of a node that `narrow` chooses, this run's included."""
        name, port = node.inputs[index]
        above = self.plan[name]
        self.engine.also_reads(self.live_bound(name))
        rows = self.tables.live(self.engine, above, self.values, choose=lambda rows: qualify_input(visible_rows(rows, above, port, node), node, index).through(narrow))
        return rows.without("_epoch").as_frame()

    def note_scalars(self, node: Node) -> None:
        """Store the variables that a state node sets, once it has run."""
        values = self.values_of(node)
        self.scalar_inputs.note(node, self.tables.live(self.engine, node, values).as_frame(), self.engine, values)


def _has_rejects(node: Node) -> bool:
    return "_error" in node.operator.output.hidden
