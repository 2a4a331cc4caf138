"""What one node looks up during a run, and what it keeps beside its rows (`operators.core.operator.OperatorContext`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from changelog.frames import of_keys, without
from errata.plan.plan import Node
from errata.plan.steps import NodeStep
from errata.state.node_tables import DRIVER_ROWS, SMALL_ROWS, entered, more_than_keys, stands, stored_rows, with_more_than_keys
from errata.state.run_state import RunState
from operators.core.evaluate import Narrow, as_it_is
from operators.core.operator import Delta
from operators.core.run_values import RunValues

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class NodeContext:
    """What one node may look up during a run (`operators.core.operator.OperatorContext`)."""

    run: RunState
    node: Node
    stage: NodeStep
    bound: int | None

    @property
    def values(self) -> RunValues:
        """System variables as the node's programs read them."""
        return replace(self.run.values_of(self.node), settle=self.settled)

    @property
    def first(self) -> bool:
        """Whether nothing of this node stood before."""
        return self.stage.action == "first"

    def delta(self, index: int) -> Delta | None:
        """The delta of an input port."""
        name, port = self.node.inputs[index]
        done = self.run.done[name]
        if done.frame is None:
            return None
        return Delta(entered(stands(done.frame, self.run.plan[name], port, self.node), self.node, index), done.signed)

    def live_input(self, index: int, narrow: Narrow = as_it_is) -> DataFrame:
        """The live rows of an input port, this run's counted in."""
        return self.run.live_input(self.node, index, narrow)

    def live_own(self, narrow: Narrow = as_it_is) -> DataFrame:
        """The node's live rows before this run; of one that keeps no others, its rejects."""
        run = self.run
        run.tables.changelog(self.node).create()  # a node that was derived until now has no table
        if not run.plan.persisted(self.node):
            return without(narrow(run.tables.rejects(run.engine, self.node, run.epoch - 1)), "_epoch")
        return without(run.tables.narrowed(run.engine, self.node, run.values, narrow, run.epoch - 1), "_epoch")

    def own_rows(self, lookups: pa.ChunkedArray) -> pa.Table:
        """The node's live rows before this run that have one of a few keys as `_lookup`, on the driver."""
        engine, tables = self.run.engine, self.run.tables
        few = tables.few_live(self.node, self.run.epoch - 1) if tables.plan.persisted(self.node) else None
        if few is not None:
            return few.filter(pc.is_in(few.column("_lookup"), value_set=lookups)).drop_columns(["_epoch"])
        asked = engine.from_arrow(pa.table({"_lookup": lookups}))
        return engine.to_arrow(self.live_own(lambda rows: of_keys(rows, asked, "_lookup")))

    def own_state(self, narrow: Narrow = as_it_is) -> DataFrame | None:
        """The node's accumulators before this run."""
        return self.run.tables.latest_state(self.run.engine, self.node.name, self.run.epoch - 1, narrow)

    def state_of(self, keys: pa.ChunkedArray) -> pa.Table | None:
        """The same of a few keys, on the driver."""
        return self.run.tables.state_of(self.run.engine, self.node.name, self.run.epoch - 1, keys)

    @property
    def _small(self) -> bool:
        return self.bound is not None and self.bound <= SMALL_ROWS

    def keep_state(self, state: DataFrame | pa.Table, *, anew: bool = False, bounds: bool = False) -> DataFrame:
        """Append to the node's state table; the rows are read back from where they are."""
        before = self.own_state() if anew else None
        run = self.run
        table = run.tables.state(self.node.name)
        rows = state if isinstance(state, pa.Table) else self._computed(state)
        appended = table.append(rows, run.epoch)
        if bounds and appended.rows <= SMALL_ROWS:
            run.condensed.add(self.node.name)
        if isinstance(rows, pa.Table):
            kept = run.engine.from_arrow(with_more_than_keys(rows))
        else:
            kept = more_than_keys(without(stored_rows(run.engine, table, (run.epoch, run.epoch)), "_epoch"))
        if before is not None:
            gone = before.select("_key").join(kept.select("_key"), "_key", "left_anti")
            few = run.engine.to_arrow(gone, SMALL_ROWS + 1)
            if few.num_rows:
                table.append(few if few.num_rows <= SMALL_ROWS else gone, run.epoch)
        return kept

    def _computed(self, state: DataFrame) -> DataFrame | pa.Table:
        """Accumulators on the driver, where they are few there."""
        few = self.bound is not None and self.bound <= DRIVER_ROWS
        return self.run.engine.to_arrow(state) if few else self.run.engine.few(state, SMALL_ROWS)

    def settled(self, frame: DataFrame, *, condensed: bool = False) -> DataFrame:
        """Through the driver where the node's rows are few, or where small deltas lead to few rows, as many rows do that are condensed."""
        engine = self.run.engine
        if self._small or self.node.name in self.run.condensed:
            return engine.from_arrow(engine.to_arrow(frame))
        if not condensed and (self.first or not self.run.small_deltas(self.node)):
            return frame
        found = engine.up_to(frame, DRIVER_ROWS)
        return engine.from_arrow(found) if isinstance(found, pa.Table) else found

    def few(self, frame: DataFrame) -> pa.Table | None:
        """The rows of a frame that has no more of them than come from the inputs, on the driver where these are few; else None."""
        brought = any(not self.run.done[name].empty for name, _ in self.node.inputs) and self.run.small_deltas(self.node)
        return self.run.engine.to_arrow(frame) if self._small or brought else None

    def given(self, rows: pa.Table) -> DataFrame:
        """Rows of the driver as a frame."""
        return self.run.engine.from_arrow(rows)
