"""The memory of a source beside its rows, in its state table: events, versions or scopes of earlier deliveries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from changelog.algebra import latest
from changelog.lazy_imports import F
from changelog.rows import Rows
from errata.plan.plan import Node
from errata.state.node_tables import stored_rows
from errata.state.run_state import RunState
from storage.delta.changelog_table import ChangelogTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class SourceMemory:
    """The state table of a source in a run."""

    run: RunState
    node: Node

    @property
    def _table(self) -> ChangelogTable:
        return self.run.tables.state(self.node.name)

    def rows(self) -> DataFrame | None:
        """All rows that earlier runs kept, with `_epoch`; None where there are none."""
        found = self._earlier()
        return None if found is None else found.as_frame()

    def latest(self, keys: DataFrame | None = None) -> DataFrame | None:
        """The newest row of each `_key` that earlier runs kept; None where there are none. `keys`: the only keys that are looked up."""
        found = self._earlier()
        if found is None:
            return None
        return latest(found if keys is None else found.semi_join(Rows(self.run.engine, frame=keys), "_key")).as_frame()

    def between(self, first: bytes, end: bytes, count: int | None) -> DataFrame | None:
        """The newest row of each `_key` from `first` on and before `end`; None where earlier runs kept nothing. `count`: about how many there are, where it is known."""
        table, engine, at = self._table, self.run.engine, self.run.epoch - 1
        if not table.exists() or not table.statistics.rows():
            return None
        if engine.limits.are_small(count):
            return latest(Rows(engine, table.ranges_arrow([(first, end)], at))).as_frame()
        frame = table.read(engine, at=at)
        return latest(Rows(engine, frame=frame.where((F.col("_key") >= F.lit(first)) & (F.col("_key") < F.lit(end))))).as_frame()

    def _earlier(self) -> Rows | None:
        if not self._table.exists() or not self._table.statistics.rows():
            return None
        return stored_rows(self.run.engine, self._table, at=self.run.epoch - 1)

    def keep(self, rows: DataFrame, bound: int | None) -> DataFrame:
        """Store rows, and return them as they were stored, without `_epoch`."""
        run = self.run
        made = Rows(run.engine, frame=rows)
        kept = made.on_driver() if run.engine.limits.are_small(bound) else made
        if kept.at_most != 0:
            self._table.append(kept.content, run.epoch)
        stored = kept if kept.are_here else stored_rows(run.engine, self._table, (run.epoch, run.epoch)).without("_epoch")
        return stored.as_frame()

    def has_grown(self) -> bool:
        """Whether this run kept something."""
        table, epoch = self._table, self.run.epoch
        return table.exists() and table.statistics.rows_before(epoch + 1) > table.statistics.rows_before(epoch)

    def forget(self) -> None:
        """Remove all rows that earlier runs kept."""
        self._table.clear()
