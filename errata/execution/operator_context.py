"""The lookups of one node during a run, and the state that it stores beside its rows (`operators.core.context.OperatorContext`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from changelog.lazy_imports import pa
from changelog.rows import Limits, Rows
from errata.plan.plan import Node
from errata.plan.steps import NodeStep
from errata.state.node_tables import qualify_input, stored_rows, visible_rows, without_removed
from errata.state.run_state import RunState
from operators.core.delta import Delta
from operators.core.evaluate import Narrow, as_it_is
from operators.core.run_values import RunValues

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class NodeContext:
    """The lookups of one node during a run (`operators.core.context.OperatorContext`)."""

    run: RunState
    node: Node
    stage: NodeStep
    bound: int | None
    whole: bool = False
    """Whether all rows of the node are computed."""

    @property
    def values(self) -> RunValues:
        """System variables as the node's programs read them."""
        return replace(self.run.values_of(self.node), settle=lambda frame: self.materialized(frame).as_frame(), in_tasks=self._in_tasks)

    @property
    def _in_tasks(self) -> bool:
        if not (self.first or self.whole) or not self.run.engine.python_is_near:
            return False
        bounds = [self.live_rows(index) for index in range(len(self.node.inputs))]
        return all(bound is not None and bound <= self.limits.sorted_rows for bound in bounds)

    @property
    def first(self) -> bool:
        """Whether the node had no rows before."""
        return self.stage.action == "first"

    @property
    def limits(self) -> Limits:
        """The limits of the engine."""
        return self.run.engine.limits

    @property
    def own_rows(self) -> int | None:
        """The number of the node's live rows before this run."""
        return self.run.counted_before.get(self.node.name)

    def of_all(self) -> NodeContext:
        """The same where all rows are computed."""
        return replace(self, whole=True)

    def live_rows(self, index: int) -> int | None:
        """An upper bound of the live rows of an input, this run's included."""
        return self.run.live_bound(self.node.inputs[index][0])

    def changed_rows(self, index: int) -> int | None:
        """An upper bound of the op rows of an input's delta."""
        return self.run.done[self.node.inputs[index][0]].bound

    def delta(self, index: int) -> Delta | None:
        """The delta of an input port."""
        name, port = self.node.inputs[index]
        done = self.run.done[name]
        if done.rows is None:
            return None
        return Delta(qualify_input(visible_rows(done.rows, self.run.plan[name], port, self.node), self.node, index), done.signed, apart=done.apart)

    def live_input(self, index: int, narrow: Narrow = as_it_is) -> DataFrame:
        """The live rows of an input port, this run's included."""
        return self.run.live_input(self.node, index, narrow)

    def live_own(self, keys: Rows | None = None, on: str = "_lookup") -> Rows:
        """The node's live rows before this run; of a node without a table, its rejects."""
        run = self.run
        run.tables.changelog(self.node).create()  # a node that was derived until now has no table

        if not run.plan.persisted(self.node):
            rejects = run.tables.rejects(run.engine, self.node, run.epoch - 1)
            return (rejects if keys is None else rejects.semi_join(keys, on)).without("_epoch")
        if keys is None:
            return run.tables.live(run.engine, self.node, run.values, run.epoch - 1).without("_epoch")
        return run.tables.live_with(run.engine, self.node, keys, on, run.epoch - 1).without("_epoch")

    @property
    def may_have_rejects(self) -> bool:
        """Whether the node may have rejects from before this run."""
        return self.run.tables.changelog(self.node).statistics.rejected_rows() != 0

    def own_state(self, keys: Rows | None = None) -> Rows | None:
        """The node's states before this run."""
        return self.run.tables.latest_state(self.run.engine, self.node.name, self.run.epoch - 1, keys)

    @property
    def _small(self) -> bool:
        return self.run.engine.limits.are_small(self.bound)

    def keep_state(self, state: Rows, *, anew: bool = False, bounds: bool = False) -> Rows:
        """Append to the node's state table, and return the rows from where they are."""
        before = self.own_state() if anew else None
        run, limits = self.run, self.run.engine.limits
        table = run.tables.state(self.node.name)
        rows = self._computed(state)
        appended = table.append(rows.content, run.epoch)
        if bounds and limits.are_small(appended.rows):
            run.condensed.add(self.node.name)
        stored = rows if rows.are_here else stored_rows(run.engine, table, (run.epoch, run.epoch)).without("_epoch")
        kept = without_removed(stored)
        if before is not None:
            gone = before.select(["_key"]).anti_join(kept.select(["_key"]), "_key").on_driver(limits.small_rows)
            if not (gone.are_here and gone.are_empty()):
                table.append(gone.content, run.epoch)
        return kept

    def _computed(self, state: Rows) -> Rows:
        """States on the driver, where they are few."""
        return state.on_driver() if self.bound is not None and self.bound <= self.run.engine.limits.driver_rows else state.condensed()

    def rows(self, rows: DataFrame | pa.Table) -> Rows:
        """The rows of a frame or of a table."""
        return Rows.of(self.run.engine, rows)

    def materialized(self, rows: Rows | DataFrame, *, condensed: bool = False, narrow: bool = False) -> Rows:
        """Rows on the driver where the node's own rows are few, or where following a delta or condensing makes these few."""
        found = rows if isinstance(rows, Rows) else self.rows(rows)
        if self._small or self.node.name in self.run.condensed:
            return found.on_driver()
        if not condensed and (self.first or self.whole):
            return found
        return found.on_driver(self.limits.narrow_rows if narrow else self.limits.held_rows)

    def to_driver_if_small(self, frame: DataFrame) -> Rows:
        """The rows of a frame, on the driver where the inputs' deltas are small."""
        brought = not self.whole and any(not self.run.done[name].empty for name, _ in self.node.inputs) and self.run.small_deltas(self.node)
        return self.rows(frame).on_driver() if self._small or brought else self.rows(frame)

    def remark(self, text: str) -> None:
        """Tell the user at the end of the run, as a warning."""
        self.run.remarks.setdefault(self.node.name, []).append(text)
