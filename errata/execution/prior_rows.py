"""The rows that a source had after the last epoch, as its merge strategy compares them with its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

from changelog.algebra import fold
from changelog.lazy_imports import pa
from changelog.rows import Rows
from errata.erasure.nameless import without_nameless
from errata.plan.plan import Node
from errata.state.node_tables import Choose, chosen_live, folded
from errata.state.run_state import RunState
from errata.state.suppressed_rows import IS_SUPPRESSED, truth, unmarked
from operators.core.evaluate import Narrow, as_it_is
from operators.source.file_changes import FileRecord
from storage.delta.chosen_rows import Choice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from operators.source.node import SourceNode


@dataclass(frozen=True)
class CommittedPriorRows:
    """The live rows of a source after the last epoch; `suppressed` records that were rolled back are included as if they took part."""

    run: RunState
    node: Node
    suppressed: int
    other: Mapping[str, str] = field(default_factory=dict)
    """Earlier columns of the source that are read too."""
    nameless: frozenset[bytes] = frozenset()
    """Keys of rows that no delivery has, and that none takes away."""

    @cached_property
    def rows(self) -> DataFrame:
        """All of them."""
        return self.filtered(as_it_is)

    def filtered(self, narrow: Narrow) -> DataFrame:
        """The rows that a function chooses. It sees suppressed records as if they took part."""
        if not self.suppressed:
            return self._shaped(self._live(lambda rows: rows.through(narrow)))
        held = self._live(lambda rows: rows.where(IS_SUPPRESSED)) if self.other else self._rejects().where(IS_SUPPRESSED)
        return self._shaped(self._live(lambda rows: rows.where(~IS_SUPPRESSED).through(narrow)).union(unmarked(held).through(narrow)))

    def blank(self, names: Sequence[str]) -> frozenset[str]:
        """Columns in which no op row has a value."""
        return frozenset() if self.suppressed or self.other else self.run.tables.changelog(self.node).blank(names)

    def rows_replaced(self, _record: FileRecord) -> bool:
        """False: changed files need no other rows here."""
        return False

    def beside(self, columns: Mapping[str, str]) -> CommittedPriorRows:
        """The same rows with columns that the source had."""
        return replace(self, other=columns)

    def _rejects(self) -> Rows:
        return self.run.tables.rejects(self.run.engine, self.node, self.run.epoch - 1)

    def _live(self, choose: Choose) -> Rows:
        run, wanted = self.run, choose
        if self.nameless:
            wanted = lambda rows: choose(without_nameless(rows, self.nameless))  # noqa: E731 - one of two ways
        if self.other:
            return folded(run.engine, run.tables.wider(self.node, self.other), run.epoch - 1, wanted)
        return run.tables.live(run.engine, self.node, run.values, run.epoch - 1, wanted)

    def in_key_ranges(self, ranges: Sequence[tuple[bytes, bytes]]) -> pa.Table:
        """Those whose keys lie within some ranges, on the driver, without `_epoch`."""
        run = self.run
        live = fold(Rows(run.engine, run.tables.changelog(self.node).ranges_arrow(ranges, run.epoch - 1))).without("_epoch")
        live = without_nameless(live, self.nameless)
        return (truth(live) if self.suppressed else live).as_table()

    def chosen(self, choice: Choice) -> pa.Table | None:
        """The chosen rows, on the driver and with `_epoch`. None where many rows were taken back, or some are suppressed."""
        run = self.run
        return None if self.suppressed or self.other or self.nameless else chosen_live(run.engine, run.tables.changelog(self.node), choice, run.epoch - 1)

    def _shaped(self, live: Rows) -> DataFrame:
        source = cast("SourceNode", self.node.operator)
        return (live if source.keyed and source.keeps_chunks else live.without("_epoch")).as_frame()
