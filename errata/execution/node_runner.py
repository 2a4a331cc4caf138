"""Running one node of a plan: look up what it needs, let its operator answer, keep the answer (DESIGN section 5, Propagate)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from changelog.arrow_algebra import consolidated
from changelog.frames import accepted, alike, chosen, without
from changelog.lazy_imports import F, pl
from changelog.ops import SYMBOLS, Op
from changelog.spark_algebra import consolidate
from errata.execution.operator_context import NodeContext
from errata.execution.scalar_inputs import ScalarInputs
from errata.execution.source_counts import SourceCounts
from errata.state.node_tables import DRIVER_ROWS, SMALL_ROWS, Tables, entered, stands, stored_rows
from operators.core.evaluate import Narrow, as_it_is
from operators.core.operator import Outcome

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from errata.plan.plan import Node
    from errata.plan.steps import Stage
    from operators.core.run_values import RunValues
    from storage.engines import Engine

Counts = tuple[dict[str, int], int, int]
"""What op rows come to: how many of each op, rejects left out, how many rejects came, and how many went."""


@dataclass(frozen=True, slots=True)
class NodeDelta:
    """What a run did at one node: its op rows (rejects among them), how many of each op, how many rejects came and went.

    `frame` is None where nothing changed. `bound` is an upper bound of the rows, None where it is not known. `table`: the rows, where they are on the driver.
    `loose`: rows that change nothing may be among them, since they are not consolidated.
    """

    node: str
    frame: DataFrame | None
    signed: bool
    bound: int | None
    ops: Mapping[str, int] = field(default_factory=dict)
    rejected: int = 0
    repaired: int = 0
    rows_in: int = 0
    table: pa.Table | None = None
    loose: bool = False

    @property
    def empty(self) -> bool:
        """Whether nothing changed."""
        return self.frame is None

    @property
    def net(self) -> int:
        """By how many rows the live state grew, rejects left out."""
        return sum(count if symbol[0] == "+" else -count for symbol, count in self.ops.items())


@dataclass(slots=True)
class NodeRunner:
    """The state of a run under way: what each node did so far. Nothing of it is visible to readers before the commit."""

    engine: Engine
    tables: Tables
    epoch: int
    values: RunValues
    done: dict[str, NodeDelta] = field(default_factory=dict)
    live_rows: dict[str, int] = field(default_factory=dict)
    rejects: dict[str, int] = field(default_factory=dict)
    handed: ScalarInputs = field(default_factory=ScalarInputs)
    counted_before: Mapping[str, int] = field(default_factory=dict)
    """The rows of each source before this run."""
    folded: Mapping[str, int] = field(default_factory=dict)
    """How many op rows of a node compactions took away."""
    condensed: set[str] = field(default_factory=set)
    """The nodes whose many rows turned out to come to few accumulators."""
    unsettled: dict[str, pa.Table] | None = None
    """The op rows of sources, few each, that are not written yet, since rows that are tried again may come to them; None: nothing waits."""

    def values_of(self, node: Node) -> RunValues:
        """The system variables that a node's programs read."""
        own, taken = self.values.of(node.name), {**self.handed.taken(node), **self.counts.taken(node)}
        return replace(own, values={**own.values, **taken}) if taken else own

    @property
    def counts(self) -> SourceCounts:
        """What `$source.count` is."""
        return SourceCounts(self.tables.plan, self.live_rows, self.counted_before)

    def skip(self, node: Node) -> NodeDelta:
        """Note that a node is not touched by this run."""
        return self._note(NodeDelta(node.name, None, False, 0))

    def offset(self, node: Node, epoch: int) -> int:
        """The number of the first op row that an epoch brought to an output, which rejects nothing: rows are numbered over all epochs, folded ones too."""
        return self.folded.get(node.name, 0) + self.tables.changelog(node).statistics.rows_before(epoch)

    def rejected_live(self, name: str) -> int:
        """How many rejects of a node stand."""
        return self.rejects.get(name, 0)

    def total_rejected(self) -> int:
        """How many rejects stand."""
        return sum(self.rejects.values())

    def summary(self, node: Node) -> dict[str, Any]:
        """What the ledger keeps of a node: op counts, rows that stand, rejects."""
        delta = self.done[node.name]
        rejects = self.rejected_live(node.name)
        kept = {"rejected": delta.rejected, "rejected_live": rejects, "live": self.live_rows.get(node.name, 0) - rejects}
        return {**delta.ops, **kept, **self.handed.kept(node.name), "wide_sums": getattr(node.operator, "wide_sums", False)}

    def propagate(self, node: Node, stage: Stage) -> NodeDelta:
        """Run a node that is no source, keep what it did and what it hands on. One that the plan skips is run where records that were rolled back since bring it something."""
        if stage.action == "skip":
            if not (self._comes(node) or self._refreshed(node)):
                return self.skip(node)
            stage = replace(stage, action="delta")
        with self.engine.sized(self._least(node, stage)):
            delta = self._propagated(node, stage)
            if node.name in self.tables.plan.feeding:
                self.handed.note(self, node)
        return delta

    def _propagated(self, node: Node, stage: Stage) -> NodeDelta:
        refreshed = stage.action == "delta" and self._refreshed(node)
        if not (refreshed or self._has_work(node, stage)):
            return self.keep_nothing(node)
        around = NodeContext(self, node, stage, self._bound(node, refreshed or stage.action != "delta"))
        if refreshed:
            return self._answered(node, around, "recompute")
        rebuild = stage.action == "rebuild" or (stage.action == "first" and self.epoch > 1)
        if rebuild and not self.tables.plan.persisted(node) and not node.operator.may_reject:
            return self._note(NodeDelta(node.name, None, False, 0))  # its consumers are compared
        return self._answered(node, around, "logic" if rebuild else None)

    def _answered(self, node: Node, around: NodeContext, cause: str | None) -> NodeDelta:
        """Keep what the operator answers; where sums turn out to need more than their limbs hold, what it answers with wide ones.

        `cause`: why all of its rows are computed anew; None where it answers to deltas.
        """
        before = self.versions_of(node)
        outcome = node.as_operator.answer(around) if cause is None else node.as_operator.rebuild(around, cause)
        few = cause is None and self.small_deltas(node)
        delta = self.keep(node, outcome, around.bound, few=few, follows=few and around.stage.action == "delta")
        if not self._needs_wide_sums(node, delta):
            return delta
        self._take_back(node, delta, before)
        node.operator.wide_sums = True  # type: ignore[attr-defined]  # only aggregates need it
        return self.keep(node, node.as_operator.rebuild(around, cause or "recompute"), None)

    def _least(self, node: Node, stage: Stage) -> int | None:
        """About how many rows a node reads at least: its deltas, and what stands of it; None where it is not known."""
        read = [self.done[name].bound if stage.action == "delta" else self.live_bound(name) for name, _ in node.inputs]
        known = [bound for bound in read if bound is not None]
        return max([*known, self.live_rows.get(node.name, 0)], default=0) if len(known) == len(read) else None

    def _has_work(self, node: Node, stage: Stage) -> bool:
        """Whether an input brings rows; if none does, whether the node is new or changed over inputs that have rows, or always has rows."""
        if self._comes(node):
            return True
        if stage.action == "delta":
            return False
        stood = self.epoch > 1 and any(self.live_bound(name) != 0 for name, _ in node.inputs)
        return node.operator.always_has_rows or stage.action == "rebuild" or stood

    def _comes(self, node: Node) -> bool:
        """Whether an input brings rows."""
        return any(not self.done[name].empty for name, _ in node.inputs)

    def _refreshed(self, node: Node) -> bool:
        """Whether a value that a node takes from elsewhere is another than before this run."""
        return self.handed.changed(node) or self.counts.changed(node)

    def live_bound(self, name: str) -> int | None:
        """An upper bound of the rows that stand of a node, also of one that keeps none; None where it is not known."""
        node = self.tables.plan[name]
        if self.tables.plan.persisted(node):
            return self.live_rows.get(name)
        above = [self.live_bound(one) for one, _ in node.inputs]
        known = [bound for bound in above if bound is not None]
        return node.operator.bound(sum(known), 0) if len(known) == len(above) else None

    def versions_of(self, node: Node) -> dict[str, int | None]:
        """The versions of a node's tables by path."""
        paths = [f"changelog/{node.name}", *([f"state/{node.name}"] if node.operator.keeps_state else [])]
        return {path: self.tables.by_path(path).version() for path in paths}

    def _needs_wide_sums(self, node: Node, delta: NodeDelta) -> bool:
        """Whether sums met values that their limbs do not hold: nothing may be silently inexact."""
        from operators.aggregate.group_functions import INEXACT

        if not delta.rejected or getattr(node.operator, "wide_sums", True):
            return False
        rows = stored_rows(self.engine, self.tables.changelog(node), (self.epoch, self.epoch))
        return bool(self.engine.to_arrow(rows.where(F.col("_error").contains(INEXACT)), 1).num_rows)

    def _take_back(self, node: Node, delta: NodeDelta, before: Mapping[str, int | None]) -> None:
        for path, version in before.items():
            self.tables.by_path(path).restore(version)
        self.live_rows[node.name] -= delta.net + delta.rejected - delta.repaired
        self.rejects[node.name] -= delta.rejected - delta.repaired

    def _bound(self, node: Node, fresh: bool) -> int | None:
        """An upper bound of the node's op rows, as far as it is known before they are computed."""
        inputs = [self.live_bound(name) if fresh else self.done[name].bound for name, _ in node.inputs]
        known = [bound for bound in inputs if bound is not None]
        if len(known) < len(inputs):
            return None
        total = sum(known) + (self.live_rows.get(node.name, 0) if fresh else 0)
        live = [self.live_bound(name) for name, _ in node.inputs]
        return node.operator.bound(total, sum(SMALL_ROWS + 1 if bound is None else bound for bound in live))

    def small_deltas(self, node: Node) -> bool:
        """Whether few rows come to a node."""
        bounds = [self.done[name].bound for name, _ in node.inputs]
        return all(bound is not None and bound <= SMALL_ROWS for bound in bounds)

    def keep(self, node: Node, outcome: Outcome, bound: int | None, *, few: bool = False, follows: bool = False) -> NodeDelta:
        """Write an outcome to the node's tables and count it.

        `few`: it comes of few rows. A node without a table may make any number of them (`emit each`): they are counted and held on the driver, or all nodes
        behind would take their own for many and compute them at each look. `follows`: it answers to a delta of few rows, so it will be small itself.
        """
        if bound is not None and bound <= SMALL_ROWS:
            rows = self._on_driver(node, outcome)
            return self.keep_table(node, rows, outcome.signed) if self.tables.plan.persisted(node) else self._note(self._kept_on_driver(node, rows, outcome.signed))
        if not self.tables.plan.persisted(node):
            here = self.engine.up_to(_whole(node, outcome.rows), DRIVER_ROWS) if bound is None and few else None
            if isinstance(here, pa.Table):
                return self._note(self._kept_on_driver(node, _together(outcome, here), outcome.signed))
            return self._note(self._kept_lazily(node, outcome, bound))
        found = self._maybe_few(node, outcome, follows=follows or node.name in self.condensed)
        return self.keep_table(node, found, outcome.signed) if isinstance(found, pa.Table) else self._note(self._kept_large(node, found, outcome.signed))

    def _on_driver(self, node: Node, outcome: Outcome) -> pa.Table:
        return _together(outcome, self.engine.to_arrow(_whole(node, outcome.rows)))

    def _maybe_few(self, node: Node, outcome: Outcome, *, follows: bool) -> pa.Table | DataFrame:
        """The rows of an outcome on the driver where they are few and may be expected to be; else as a frame."""
        if follows:
            found = self.engine.up_to(_whole(node, outcome.rows), DRIVER_ROWS)
            if isinstance(found, pa.Table):
                return _together(outcome, found)
        rows = _net_rows(node, outcome)
        return self.engine.few(rows, SMALL_ROWS) if node.operator.condenses and not follows else rows

    def keep_table(self, node: Node, table: pa.Table, signed: bool) -> NodeDelta:
        """Keep op rows that are on the driver."""
        if not table.num_rows:
            return self.keep_nothing(node)
        if self.unsettled is not None and node.is_source:
            self.unsettled[node.name] = table
        else:
            self.tables.changelog(node).append(table, self.epoch)
        ops, rejected, repaired = count_ops(table)
        return self._note(NodeDelta(node.name, self.engine.from_arrow(table), signed, table.num_rows, ops, rejected, repaired, table=table))

    def replace(
        self, node: Node, outcome: Outcome, bound: int | None, versions: Mapping[str, int | None], forget: Callable[[], None], *, counts: Counts | None = None
    ) -> NodeDelta:
        """Keep an outcome in the place of what this run kept of a node; its rows may read the node's table.

        `versions` are those of its tables before the run, `forget` takes what was counted back, `counts` is what the rows come to, where that is known.
        """
        if bound is not None and bound <= SMALL_ROWS:
            return self.replace_table(node, self._on_driver(node, outcome), outcome.signed, versions, forget)
        self._write_settled(node.name)
        changelog = self.tables.changelog(node)
        replaced = changelog.replace(_net_rows(node, outcome), self.epoch)
        forget()
        frame = without(changelog.read(self.engine, epochs=(self.epoch, self.epoch)), "_epoch")
        return self._note(NodeDelta(node.name, frame, outcome.signed, replaced.rows, *(counts or self._counted(frame))))

    def replace_table(self, node: Node, table: pa.Table, signed: bool, versions: Mapping[str, int | None], forget: Callable[[], None]) -> NodeDelta:
        """The same with op rows that are on the driver."""
        if self.unsettled is None or self.unsettled.pop(node.name, None) is None:
            self.tables.changelog(node).restore(versions[f"changelog/{node.name}"])
        forget()
        return self.keep_table(node, table, signed)

    @contextmanager
    def settling_sources(self) -> Iterator[None]:
        """Within the body of a `with` few op rows of a source are not written: at its end they are."""
        self.unsettled = {}
        yield
        for name in list(self.unsettled):
            self._write_settled(name)
        self.unsettled = None

    def _write_settled(self, name: str) -> None:
        """Write the op rows of a source that wait for it."""
        rows = self.unsettled.pop(name, None) if self.unsettled is not None else None
        if rows is not None:
            self.tables.changelog(self.tables.plan[name]).append(rows, self.epoch)

    def brought(self, node: Node) -> DataFrame | None:
        """What this run changed at a node, as `NodeDelta.frame`, consolidated in any case."""
        delta = self.done[node.name]
        return consolidate(delta.frame) if delta.frame is not None and delta.loose else delta.frame

    def epoch_rows(self, node: Node) -> DataFrame:
        """The op rows that this run kept of a node."""
        return without(stored_rows(self.engine, self.tables.changelog(node), (self.epoch, self.epoch)), "_epoch")

    def live_input(self, node: Node, index: int, narrow: Narrow = as_it_is) -> DataFrame:
        """The live rows of an input of a node, this run's counted in; those that `narrow` chooses."""
        name, port = node.inputs[index]
        above = self.tables.plan[name]
        self.engine.also_reads(self.live_bound(name))
        rows = self.tables.narrowed(self.engine, above, self.values, lambda rows: narrow(entered(stands(rows, above, port, node), node, index)))
        return without(rows, "_epoch")

    def keep_nothing(self, node: Node) -> NodeDelta:
        """Note that a node has nothing new; its table exists from now on."""
        changelog = self.tables.changelog(node)
        if not changelog.exists():
            changelog.create()
        return self._note(NodeDelta(node.name, None, False, 0))

    def _kept_large(self, node: Node, rows: DataFrame, signed: bool) -> NodeDelta:
        changelog = self.tables.changelog(node)
        appended = changelog.append(rows, self.epoch)
        if not appended.rows:
            return NodeDelta(node.name, None, signed, 0)
        frame = without(changelog.read(self.engine, epochs=(self.epoch, self.epoch)), "_epoch")
        sound = changelog.statistics.accepted_counts(self.epoch)
        ops, rejected, repaired = self._counted(frame) if sound is None else (_named(sound), 0, 0)
        return NodeDelta(node.name, frame, signed, appended.rows, ops, rejected, repaired)

    def first_reject(self, node: Node, categories: frozenset[str] = frozenset()) -> dict[str, Any]:
        """The first record that this run rejected at a node and that was not merely late (or in one of `categories`): category, detail and `_key`; of a keyed source `_file` and `_row` too."""
        own = self.done[node.name].table
        rows = stored_rows(self.engine, self.tables.changelog(node), (self.epoch, self.epoch)) if own is None else self.engine.from_arrow(own)
        rows = rows.where(F.col("_error").isNotNull() & F.col("_op").isin(0, 3))
        rows = rows.where(F.get_json_object("_error", "$.category").isin(*categories) if categories else ~F.col("_error").contains('"category":"late_record"'))
        names = [name for name in ("_key", "_error", "_file", "_row") if name in rows.columns]
        found = self.engine.to_arrow(rows.orderBy("_key").select(*names), 1).to_pylist()
        return {**found[0], **json.loads(found[0]["_error"])} if found else {}

    def _counted(self, frame: DataFrame) -> Counts:
        bad = F.col("_error").isNotNull() if "_error" in frame.columns else F.lit(False)
        counts = frame.groupBy("_op", bad.alias("_bad")).agg(F.count("*").alias("n"))
        found = {(row["_op"], row["_bad"]): row["n"] for row in self.engine.to_arrow(counts).to_pylist()}
        return _split_counts(found)

    def _kept_lazily(self, node: Node, outcome: Outcome, bound: int | None) -> NodeDelta:
        """A node without a table: its rejects alone are kept; its rows are computed where they are read.

        Every consumer of rows that are not computed computes them again, and so do those behind it. They are not consolidated: that reads them twice,
        and a chain of such nodes would read the first one's rows as often as two to the power of its length.
        """
        rows, loose = _whole(node, outcome.rows), outcome.net is not None
        if not node.operator.may_reject:
            return NodeDelta(node.name, rows, outcome.signed, bound, loose=loose)
        failed = rows.where(F.col("_error").isNotNull())
        bad = self.engine.few(consolidate(failed) if loose else failed, SMALL_ROWS)
        _, rejected, repaired = self._rejects_kept(node, bad if isinstance(bad, pa.Table) else self.engine.up_to(bad, SMALL_ROWS))
        return NodeDelta(node.name, accepted(rows).where(F.col("_error").isNull()), outcome.signed, bound, {}, rejected, repaired, loose=loose)

    def _kept_on_driver(self, node: Node, rows: pa.Table, signed: bool) -> NodeDelta:
        good, bad = rows, rows.slice(0, 0)
        if "_error" in rows.column_names:
            good, bad = rows.filter(pc.is_null(rows.column("_error"))), rows.filter(pc.is_valid(rows.column("_error")))
        _, rejected, repaired = self._rejects_kept(node, bad)
        frame = self.engine.from_arrow(good) if rows.num_rows else None
        return NodeDelta(node.name, frame, signed, good.num_rows, {}, rejected, repaired)

    def _rejects_kept(self, node: Node, bad: DataFrame | pa.Table) -> Counts:
        changelog = self.tables.changelog(node)
        if isinstance(bad, pa.Table):
            if bad.num_rows:
                changelog.append(bad, self.epoch)
            return count_ops(bad)
        changelog.append(bad, self.epoch)
        return self._counted(changelog.read(self.engine, epochs=(self.epoch, self.epoch)))

    def _note(self, delta: NodeDelta) -> NodeDelta:
        self.done[delta.node] = delta
        self.rejects[delta.node] = self.rejects.get(delta.node, 0) + delta.rejected - delta.repaired
        self.live_rows[delta.node] = self.live_rows.get(delta.node, 0) + delta.net + delta.rejected - delta.repaired
        return delta


def _whole(node: Node, rows: DataFrame) -> DataFrame:
    """Op rows with the columns of a node's table."""
    return alike(rows, lambda rows: chosen(rows, ["_op", "_key", "_cause", *node.operator.output.columns()]))


def _together(outcome: Outcome, rows: pa.Table) -> pa.Table:
    """Rows of an outcome that the engine gave, with those that were on the driver, consolidated where they are not yet."""
    every = rows if outcome.here is None else pa.concat_tables([rows, outcome.here.select(rows.column_names).cast(rows.schema)])
    return every if outcome.net is None else consolidated(every)


def _net_rows(node: Node, outcome: Outcome) -> DataFrame:
    """The rows of an outcome, consolidated by the engine where they are not yet."""
    return _whole(node, outcome.rows if outcome.net is None else outcome.net())


def count_ops(table: pa.Table) -> Counts:
    """Op counts of the rows that stand, then how many rejects came and how many went."""
    bad = pl.Series(table.column("_error").is_valid()) if "_error" in table.column_names else pl.lit(False)
    frame = pl.DataFrame({"op": table.column("_op")}).with_columns(bad=bad)
    counted = frame.group_by("op", "bad").len()
    return _split_counts({(op, bad): count for op, bad, count in counted.iter_rows()})


def _named(counts: Mapping[Op, int]) -> dict[str, int]:
    return {SYMBOLS[op]: count for op, count in counts.items() if count}


def _split_counts(found: Mapping[tuple[int, bool], int]) -> Counts:
    ops = _named({op: found.get((op, False), 0) for op in Op})
    came = sum(count for (op, bad), count in found.items() if bad and Op(op).weight > 0)
    went = sum(count for (op, bad), count in found.items() if bad and Op(op).weight < 0)
    return ops, came, went
