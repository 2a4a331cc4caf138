"""Storing the op rows of nodes: in their changelog tables, or in the state of the run where a node has no table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from changelog.algebra import repair
from changelog.lazy_imports import F, pa, pl
from changelog.ops import SYMBOLS, Op
from changelog.rows import Rows, is_null, is_set
from errata.plan.plan import Node
from errata.state.run_state import NodeDelta, RunState
from operators.core.delta import Delta
from operators.core.row_type import SYSTEM

Counts = tuple[dict[str, int], int, int]
"""Op rows of a delta by op (rejects left out), new rejects, rejects that are gone."""


@dataclass(slots=True)
class NodeWriter:
    """Stores the deltas of a run and counts them.

    Attributes:
        unsettled: Small deltas of sources that are not written yet, as retried records may join them; None outside `settling_sources`.
    """

    run: RunState
    unsettled: dict[str, Rows] | None = None

    def skip(self, node: Node) -> NodeDelta:
        """Note that a node has no rows in this run."""
        return self._note(NodeDelta(node.name, None, False, 0))

    def keep(self, node: Node, delta: Delta, bound: int | None, *, few: bool = False, follows: bool = False) -> NodeDelta:
        """Store a delta in the node's tables and count it.

        Args:
            node: The node.
            delta: Its op rows.
            bound: An upper bound of the op rows; None where there is none.
            few: Whether few rows come to the node. Without a table it may still make any number of rows (`emit each`). Rows on the driver are counted,
                so that nodes downstream know their number.
            follows: Whether the node answers a small delta, so that its own delta is probably small too.
        """
        limits, persisted = self.run.engine.limits, self.run.plan.persisted(node)
        follows = follows or node.name in self.run.condensed
        delta = delta.select(_columns(node))
        if limits.are_small(bound):
            delta = delta.on_driver()
        elif follows if persisted else (few and bound is None):
            delta = delta.on_driver(limits.driver_rows)
        if not persisted:
            return self._note(self._derived(node, delta, bound))
        rows = delta.consolidated()
        return self.keep_rows(node, rows.condensed() if node.operator.condenses and not follows else rows, delta.signed, delta.apart)

    def keep_rows(self, node: Node, rows: Rows, signed: bool, apart: frozenset[str] | None = None) -> NodeDelta:
        """Store consolidated op rows in a node's table and count them. `apart`: as in `Delta`."""
        if rows.at_most == 0:
            return self.keep_nothing(node)
        changelog = self.run.tables.changelog(node)
        if rows.are_here:
            if self.unsettled is not None and node.is_source:
                self.unsettled[node.name] = rows
            else:
                changelog.append(rows.content, self.run.epoch)
            return self._note(NodeDelta(node.name, rows, signed, rows.at_most, *self._counted(rows)))
        appended = changelog.append(rows.content, self.run.epoch)
        if not appended.rows:
            return self.keep_nothing(node)
        stored = self.run.epoch_rows(node)
        sound = None if stored.are_here else changelog.statistics.accepted_counts(self.run.epoch)
        ops, came, went = self._counted(stored) if sound is None else (_named(sound), 0, 0)
        return self._note(NodeDelta(node.name, stored, signed, appended.rows, ops, came, went, apart=None if came or went else apart))

    def replace(
        self, node: Node, delta: Delta, bound: int | None, versions: Mapping[str, int | None], forget: Callable[[], None], *, counts: Counts | None = None
    ) -> NodeDelta:
        """Store a delta in the place of the one that this run stored. Its rows may read the node's table.

        Args:
            node: The node.
            delta: Its op rows.
            bound: An upper bound of the op rows; None where there is none.
            versions: The versions of the node's tables before the run.
            forget: Resets the counters of the node.
            counts: The counts of the new rows, where they are known.
        """
        delta = delta.select(_columns(node))
        if self.run.engine.limits.are_small(bound):
            delta = delta.on_driver()
        changelog = self.run.tables.changelog(node)
        if delta.rows.are_here:
            if self.unsettled is None or self.unsettled.pop(node.name, None) is None:
                changelog.restore(versions[f"changelog/{node.name}"])
            forget()
            return self.keep_rows(node, delta.consolidated(), delta.signed)
        self._write_settled(node.name)
        replaced = changelog.replace(delta.consolidated().as_frame(), self.run.epoch)
        forget()
        stored = self.run.epoch_rows(node)
        return self._note(NodeDelta(node.name, stored, delta.signed, replaced.rows, *(counts or self._counted(stored))))

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
            self.run.tables.changelog(self.run.plan[name]).append(rows.content, self.run.epoch)

    def keep_nothing(self, node: Node) -> NodeDelta:
        """Note that a node has nothing new; its table exists from now on."""
        changelog = self.run.tables.changelog(node)
        if not changelog.exists():
            changelog.create()
        return self._note(NodeDelta(node.name, None, False, 0))

    def _counted(self, rows: Rows) -> Counts:
        if rows.are_here:
            return count_ops(rows.as_table())
        frame = rows.as_frame()
        bad = F.col("_error").isNotNull() if "_error" in frame.columns else F.lit(False)
        counts = frame.groupBy("_op", bad.alias("__bad")).agg(F.count("*").alias("n"))
        found = {(row["_op"], row["__bad"]): row["n"] for row in self.run.engine.to_arrow(counts).to_pylist()}
        return _split_counts(found)

    def _derived(self, node: Node, delta: Delta, bound: int | None) -> NodeDelta:
        """The delta of a node without a table: only its rejects are stored; other rows are computed where they are read.

        Rows in the engine are not consolidated. That would read them twice, and a chain of n such nodes would read the first one's rows 2^n times.
        """
        rows, loose = delta.rows, delta.net is not None
        if rows.are_here:
            rows, loose = delta.consolidated(), False
        if not node.operator.may_reject:
            return NodeDelta(node.name, None if rows.at_most == 0 else rows, delta.signed, bound if rows.at_most is None else rows.at_most, loose=loose)
        bad, good = rows.where(is_set("_error")), rows.accepted.where(is_null("_error"))
        rejected, repaired = self._store_rejects(node, bad, loose=loose)
        own_bound = bound if good.at_most is None else good.at_most
        return NodeDelta(node.name, None if rows.at_most == 0 else good, delta.signed, own_bound, {}, rejected, repaired, loose=loose)

    def _store_rejects(self, node: Node, bad: Rows, *, loose: bool) -> tuple[int, int]:
        """Store the rejects of a node without a table. Returns the number of new and of repaired ones.

        Mostly there are none. To see that, an engine reads only the columns that errors depend on; the rejects themselves need all columns.
        """
        if not bad.are_here:
            if bad.are_empty():
                return 0, 0
            bad = (repair(bad) if loose else bad).condensed().on_driver(self.run.engine.limits.small_rows)
        changelog = self.run.tables.changelog(node)
        if not bad.are_here:
            changelog.append(bad.content, self.run.epoch)
            _, came, went = self._counted(self.run.epoch_rows(node))
            return came, went
        if bad.at_most:
            changelog.append(bad.content, self.run.epoch)
        _, came, went = count_ops(bad.as_table())
        return came, went

    def _note(self, delta: NodeDelta) -> NodeDelta:
        self.run.done[delta.node] = delta
        self.run.rejects[delta.node] = self.run.rejects.get(delta.node, 0) + delta.rejected - delta.repaired
        self.run.live_rows[delta.node] = self.run.live_rows.get(delta.node, 0) + delta.net + delta.rejected - delta.repaired
        return delta


def _columns(node: Node) -> list[str]:
    """The columns of a node's op rows."""
    return [*SYSTEM, *node.operator.output.columns()]


def count_ops(table: pa.Table) -> Counts:
    """Op counts without rejects, then the number of new rejects and of rejects that are gone."""
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
