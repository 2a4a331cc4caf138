"""`errata compact`: small files put together, old epochs folded to a base (CONTRACT, "Commands"; DESIGN section 4).

Nothing of it changes a live row. New versions of the tables become those that readers see with one entry of the ledger, which
keeps the epoch of the one before; until then, and after a crash, the old versions stand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from changelog.columns import ERROR
from changelog.compaction import folded, newest
from errata.core.failures import Usage
from errata.core.options import EngineOptions, RunOptions
from errata.execution.engine import BYTES_A_ROW, choose_engine, start_engine
from errata.execution.run import Run
from storage.delta.changelog_table import ChangelogTable
from storage.delta.maintenance import WHOLE_FILE
from storage.durable import undoing
from storage.state.entry import Entry
from storage.state.ledger import Ledger

if TYPE_CHECKING:
    from errata.api.pipeline import Pipeline

Row = Mapping[str, Any]
SMALL_BASE = 100_000
"""Bases of no more rows go through the driver."""


def compact(project: Pipeline, before: int | None, engine: EngineOptions) -> list[Row]:
    """Compact all tables; fold the epochs before `before` to a base. One row a table: files and rows before and after. Raises Failure."""
    from errata.execution.epoch import exclusive

    with exclusive(project, RunOptions(engine=engine), Compaction, before=before) as one:
        return one.compact()


@dataclass(slots=True)
class Compaction(Run):
    """A run that only maintains tables."""

    before: int | None = None
    told: list[Row] = field(default_factory=list)
    folded: dict[str, int] = field(default_factory=dict)
    """How many op rows, rejects left out, this compaction folds away, by node."""

    def compact(self) -> list[Row]:
        """Do it and commit it. Raises Usage where there is nothing, or no such epoch."""
        head = self.head
        if head is None:
            return []
        if self.before is not None and self.before > head.epoch + 1:
            raise Usage(f"there is no epoch {self.before}; the last one is {head.epoch}")
        with undoing(self._undo):
            entry = self._entry(head, {path: self._compacted(path) for path in sorted(head.tables)})
            committed = self.append(entry)
        self._tidy(committed)
        return self.told

    def _compacted(self, path: str) -> int:
        table = self.tables.raw(path)
        files, rows = table.statistics.files(), table.statistics.rows()
        if self._base(path) is not None:
            self._fold(table, path)
        table.optimize(WHOLE_FILE)
        self.told.append({"table": path, "files_before": files, "files": table.statistics.files(), "rows_before": rows, "rows": table.statistics.rows()})
        return table.version() or 0

    def _base(self, path: str) -> int | None:
        """The epoch that older ones are folded to; None where there is nothing to fold."""
        if self.before is None or self.head is None:
            return None
        base = self.before - 1
        return base if base > int(self.head.counters.get("base", 0)) else None

    def _fold(self, table: ChangelogTable, path: str) -> None:
        base = self._base(path)
        if base is None or not table.statistics.rows():
            return
        engine = start_engine(choose_engine(self.options.engine, self.plan, table.statistics.rows() * BYTES_A_ROW), self.options.listener)
        rows = (newest if path.startswith("state/") else folded)(table.read(engine, at=base), base)
        kept = engine.to_arrow(rows, SMALL_BASE + 1)
        before = _sound(table, base)
        table.replace_before(kept if kept.num_rows <= SMALL_BASE else rows, base + 1)
        kind, _, name = path.partition("/")
        if kind == "changelog":
            self.folded[name] = before - _sound(table, base)

    def _entry(self, head: Entry, versions: Mapping[str, int]) -> Entry:
        base: dict[str, Any] = {}
        if self.before is not None and self._base("") is not None:
            folded = {name: head.folded.get(name, 0) + self.folded.get(name, 0) for name in {**head.folded, **self.folded}}
            base = {"base": self.before - 1, "folded": folded}
        return replace(
            head, execution_id=self.execution_id, started=self.started, finished=datetime.now(UTC), tables=dict(versions),
            counters={**{name: value for name, value in head.counters.items() if name in ("rejected", "base", "folded", "gone")}, **base, "kind": "compact"},
            files={}, marks={}, previous="", hash="",
        )  # fmt: skip

    def _tidy(self, committed: Entry) -> None:
        """What no reader needs any more, in tables and ledger."""
        from storage.state.integrity import anchor_ledger

        ledger = Ledger(self.state.ledger)
        ledger.compact()
        anchor_ledger(self.state, ledger, committed, {})
        for path in committed.tables:
            ChangelogTable(f"{self.state.root}/{path}").vacuum()


def _sound(table: ChangelogTable, last: int) -> int:
    """How many op rows up to an epoch are no rejects."""
    rejects = table.rejects_arrow(last).num_rows if ERROR in table.columns() else 0
    return table.statistics.rows_before(last + 1) - rejects
