"""The rows that a source had after the last epoch, as its merge strategy compares them with its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

from changelog.arrow_algebra import standing
from changelog.frames import united, without
from changelog.lazy_imports import pa
from errata.plan.plan import Node
from errata.state.node_tables import folded
from errata.state.run_state import RunState
from errata.state.suppressed_rows import is_suppressed, truth_arrow, unmarked
from operators.core.evaluate import Narrow, as_it_is
from operators.source.file_changes import FileRecord

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from operators.source.node import SourceNode


@dataclass(frozen=True)
class CommittedPriorRows:
    """The rows of a source that stood after the last epoch, with those that are rolled back (`suppressed` of them) as if they took part."""

    run: RunState
    node: Node
    suppressed: int
    other: Mapping[str, str] = field(default_factory=dict)
    """Columns that the source had, which are read besides its own."""

    @cached_property
    def rows(self) -> DataFrame:
        """All of them."""
        return self.narrowed(as_it_is)

    def narrowed(self, narrow: Narrow) -> DataFrame:
        """Those that a function chooses, which sees all of them as if they took part."""
        if not self.suppressed:
            return self._shaped(self._live(narrow))

        held = self._live(lambda rows: rows.where(is_suppressed())) if self.other else self._rejects().where(is_suppressed())
        return self._shaped(united(self._live(lambda rows: narrow(rows.where(~is_suppressed()))), narrow(unmarked(held))))

    def resigned(self, _record: FileRecord) -> bool:
        """They are as they stand whatever records a file has."""
        return False

    def beside(self, columns: Mapping[str, str]) -> CommittedPriorRows:
        """The same rows with columns that the source had."""
        return replace(self, other=columns)

    def _rejects(self) -> DataFrame:
        return self.run.tables.rejects(self.run.engine, self.node, self.run.epoch - 1)

    def _live(self, narrow: Narrow) -> DataFrame:
        run = self.run
        if self.other:
            return folded(run.engine, run.tables.wider(self.node, self.other), run.epoch - 1, narrow)
        return run.tables.narrowed(run.engine, self.node, run.values, narrow, run.epoch - 1)

    def near(self, ranges: Sequence[tuple[bytes, bytes]]) -> pa.Table:
        """Those whose keys lie within some ranges, on the driver, without `_epoch`."""
        run = self.run
        live = standing(run.tables.changelog(self.node).ranges_arrow(ranges, run.epoch - 1)).drop_columns(["_epoch"])
        return truth_arrow(live) if self.suppressed else live

    def _shaped(self, live: DataFrame) -> DataFrame:
        return live if cast("SourceNode", self.node.operator).keyed and self.node.operator.keeps_state else without(live, "_epoch")
