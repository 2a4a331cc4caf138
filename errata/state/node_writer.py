"""Storing the op rows of nodes: in their changelog tables, or in the state of the run where a node has no table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from changelog.arrow_algebra import consolidated
from changelog.frames import accepted, alike, chosen, without
from changelog.lazy_imports import F, pa, pc, pl
from changelog.ops import SYMBOLS, Op
from changelog.spark_algebra import consolidate
from errata.plan.plan import Node
from errata.state.node_tables import DRIVER_ROWS, SMALL_ROWS
from errata.state.run_state import NodeDelta, RunState
from operators.core.operator import Outcome

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Counts = tuple[dict[str, int], int, int]
"""Op rows of a delta by op (rejects left out), new rejects, rejects that are gone."""


@dataclass(slots=True)
class NodeWriter:
    """Stores the deltas of a run and counts them.

    Attributes:
        unsettled: Small deltas of sources that are not written yet, as retried records may join them; None outside `settling_sources`.
    """

    run: RunState
    unsettled: dict[str, pa.Table] | None = None

    def skip(self, node: Node) -> NodeDelta:
        """Note that a node has no rows in this run."""
        return self._note(NodeDelta(node.name, None, False, 0))

    def keep(self, node: Node, outcome: Outcome, bound: int | None, *, few: bool = False, follows: bool = False) -> NodeDelta:
        """Write an outcome to the node's tables and count it.

        `few`: it comes of few rows. A node without a table may make any number of them (`emit each`): they are counted and held on the driver, or all nodes
        behind would take their own for many and compute them at each look. `follows`: it answers to a delta of few rows, so it will be small itself.
        """
        if bound is not None and bound <= SMALL_ROWS:
            rows = self._on_driver(node, outcome)
            return self.keep_table(node, rows, outcome.signed) if self.run.plan.persisted(node) else self._note(self._kept_on_driver(node, rows, outcome.signed))
        if not self.run.plan.persisted(node):
            here = self.run.engine.up_to(_whole(node, outcome.rows), DRIVER_ROWS) if bound is None and few else None
            if isinstance(here, pa.Table):
                return self._note(self._kept_on_driver(node, _together(outcome, here), outcome.signed))
            return self._note(self._kept_lazily(node, outcome, bound))
        found = self._maybe_few(node, outcome, follows=follows or node.name in self.run.condensed)
        return self.keep_table(node, found, outcome.signed) if isinstance(found, pa.Table) else self._note(self._kept_large(node, found, outcome.signed))

    def _on_driver(self, node: Node, outcome: Outcome) -> pa.Table:
        return _together(outcome, self.run.engine.to_arrow(_whole(node, outcome.rows)))

    def _maybe_few(self, node: Node, outcome: Outcome, *, follows: bool) -> pa.Table | DataFrame:
        """The rows of an outcome on the driver where they are few and may be expected to be; else as a frame."""
        if follows:
            found = self.run.engine.up_to(_whole(node, outcome.rows), DRIVER_ROWS)
            if isinstance(found, pa.Table):
                return _together(outcome, found)
        rows = _net_rows(node, outcome)
        return self.run.engine.few(rows, SMALL_ROWS) if node.operator.condenses and not follows else rows

    def keep_table(self, node: Node, table: pa.Table, signed: bool) -> NodeDelta:
        """Keep op rows that are on the driver."""
        if not table.num_rows:
            return self.keep_nothing(node)
        if self.unsettled is not None and node.is_source:
            self.unsettled[node.name] = table
        else:
            self.run.tables.changelog(node).append(table, self.run.epoch)
        ops, rejected, repaired = count_ops(table)
        return self._note(NodeDelta(node.name, self.run.engine.from_arrow(table), signed, table.num_rows, ops, rejected, repaired, table=table))

    def replace(
        self, node: Node, outcome: Outcome, bound: int | None, versions: Mapping[str, int | None], forget: Callable[[], None], *, counts: Counts | None = None
    ) -> NodeDelta:
        """Keep an outcome in the place of what this run kept of a node; its rows may read the node's table.

        `versions` are those of its tables before the run, `forget` takes what was counted back, `counts` is what the rows come to, where that is known.
        """
        if bound is not None and bound <= SMALL_ROWS:
            return self.replace_table(node, self._on_driver(node, outcome), outcome.signed, versions, forget)
        self._write_settled(node.name)
        changelog = self.run.tables.changelog(node)
        replaced = changelog.replace(_net_rows(node, outcome), self.run.epoch)
        forget()
        frame = without(changelog.read(self.run.engine, epochs=(self.run.epoch, self.run.epoch)), "_epoch")
        return self._note(NodeDelta(node.name, frame, outcome.signed, replaced.rows, *(counts or self._counted(frame))))

    def replace_table(self, node: Node, table: pa.Table, signed: bool, versions: Mapping[str, int | None], forget: Callable[[], None]) -> NodeDelta:
        """The same with op rows that are on the driver."""
        if self.unsettled is None or self.unsettled.pop(node.name, None) is None:
            self.run.tables.changelog(node).restore(versions[f"changelog/{node.name}"])
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
            self.run.tables.changelog(self.run.plan[name]).append(rows, self.run.epoch)

    def keep_nothing(self, node: Node) -> NodeDelta:
        """Note that a node has nothing new; its table exists from now on."""
        changelog = self.run.tables.changelog(node)
        if not changelog.exists():
            changelog.create()
        return self._note(NodeDelta(node.name, None, False, 0))

    def _kept_large(self, node: Node, rows: DataFrame, signed: bool) -> NodeDelta:
        changelog = self.run.tables.changelog(node)
        appended = changelog.append(rows, self.run.epoch)
        if not appended.rows:
            return NodeDelta(node.name, None, signed, 0)
        frame = without(changelog.read(self.run.engine, epochs=(self.run.epoch, self.run.epoch)), "_epoch")
        sound = changelog.statistics.accepted_counts(self.run.epoch)
        ops, rejected, repaired = self._counted(frame) if sound is None else (_named(sound), 0, 0)
        return NodeDelta(node.name, frame, signed, appended.rows, ops, rejected, repaired)

    def _counted(self, frame: DataFrame) -> Counts:
        bad = F.col("_error").isNotNull() if "_error" in frame.columns else F.lit(False)
        counts = frame.groupBy("_op", bad.alias("_bad")).agg(F.count("*").alias("n"))
        found = {(row["_op"], row["_bad"]): row["n"] for row in self.run.engine.to_arrow(counts).to_pylist()}
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
        bad = self.run.engine.few(consolidate(failed) if loose else failed, SMALL_ROWS)
        _, rejected, repaired = self._rejects_kept(node, bad if isinstance(bad, pa.Table) else self.run.engine.up_to(bad, SMALL_ROWS))
        return NodeDelta(node.name, accepted(rows).where(F.col("_error").isNull()), outcome.signed, bound, {}, rejected, repaired, loose=loose)

    def _kept_on_driver(self, node: Node, rows: pa.Table, signed: bool) -> NodeDelta:
        good, bad = rows, rows.slice(0, 0)
        if "_error" in rows.column_names:
            good, bad = rows.filter(pc.is_null(rows.column("_error"))), rows.filter(pc.is_valid(rows.column("_error")))
        _, rejected, repaired = self._rejects_kept(node, bad)
        frame = self.run.engine.from_arrow(good) if rows.num_rows else None
        return NodeDelta(node.name, frame, signed, good.num_rows, {}, rejected, repaired)

    def _rejects_kept(self, node: Node, bad: DataFrame | pa.Table) -> Counts:
        changelog = self.run.tables.changelog(node)
        if isinstance(bad, pa.Table):
            if bad.num_rows:
                changelog.append(bad, self.run.epoch)
            return count_ops(bad)
        changelog.append(bad, self.run.epoch)
        return self._counted(changelog.read(self.run.engine, epochs=(self.run.epoch, self.run.epoch)))

    def _note(self, delta: NodeDelta) -> NodeDelta:
        self.run.done[delta.node] = delta
        self.run.rejects[delta.node] = self.run.rejects.get(delta.node, 0) + delta.rejected - delta.repaired
        self.run.live_rows[delta.node] = self.run.live_rows.get(delta.node, 0) + delta.net + delta.rejected - delta.repaired
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
