"""`errata compact`: small files put together, old epochs folded into a base.

No live row changes. One ledger entry makes the new versions of the tables visible and keeps the epoch of the entry before. Until then, and
after a crash, readers see the old versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from changelog.columns import ERROR
from changelog.compaction import folded, newest
from errata.core.failures import Usage
from errata.core.options import EngineOptions, RunOptions
from errata.execution.engine import BYTES_A_ROW, choose_engine, start_engine
from errata.execution.epoch import Epoch
from errata.plan.pipeline import LoadedPipeline
from errata.state.tally import NOTED
from storage.delta.changelog_table import ChangelogTable
from storage.delta.maintenance import WHOLE_FILE
from storage.state.entry import CARRIED, Entry
from storage.state.integrity import anchor_ledger

Row = Mapping[str, Any]
SMALL_BASE = 100_000
"""Bases of no more rows go through the driver."""


def compact(pipeline: LoadedPipeline, before: int | None, engine: EngineOptions) -> list[Row]:
    """Compact all tables; fold the epochs before `before` into a base.

    Returns:
        One row a table: table, files_before, files, rows_before, rows.

    Raises:
        Failure: Nothing was committed. Usage where there is no such epoch.
    """
    with Epoch.begin(pipeline, RunOptions(engine=engine)) as epoch:
        return [] if epoch.head is None else Compaction(epoch, epoch.head, before).run()


@dataclass(slots=True)
class Compaction:
    """Maintains the tables of one epoch.

    Attributes:
        before: Epochs before this one are folded into a base; None folds nothing.
        answer: One row a table.
        folded: Op rows, rejects left out, that were folded away, by node.
    """

    epoch: Epoch
    head: Entry
    before: int | None
    answer: list[Row] = field(default_factory=list)
    folded: dict[str, int] = field(default_factory=dict)

    def run(self) -> list[Row]:
        """Compact and commit."""
        if self.before is not None and self.before > self.head.epoch + 1:
            raise Usage(f"there is no epoch {self.before}; the last one is {self.head.epoch}")
        with self.epoch.undone_on_failure():
            committed = self.epoch.commit(self._entry({path: self._compacted(path) for path in sorted(self.head.tables)}))
        self._tidy(committed)
        return self.answer

    def _compacted(self, path: str) -> int:
        table = self.epoch.tables.raw(path)
        files, rows = table.statistics.files(), table.statistics.rows()
        if self._base(path) is not None:
            self._fold(table, path)
        table.optimize(WHOLE_FILE)
        self.answer.append({"table": path, "files_before": files, "files": table.statistics.files(), "rows_before": rows, "rows": table.statistics.rows()})
        return table.version() or 0

    def _base(self, path: str) -> int | None:
        """The epoch that older ones are folded to; None where there is nothing to fold."""
        if self.before is None:
            return None
        base = self.before - 1
        return base if base > int(self.head.counters.get("base", 0)) else None

    def _fold(self, table: ChangelogTable, path: str) -> None:
        base = self._base(path)
        if base is None or not table.statistics.rows():
            return
        engine = start_engine(choose_engine(self.epoch.options.engine, self.epoch.plan, table.statistics.rows() * BYTES_A_ROW), self.epoch.options.listener)
        rows = (newest if path.startswith("state/") else folded)(table.read(engine, at=base), base)
        kept = engine.to_arrow(rows, SMALL_BASE + 1)
        before = _sound(table, base)
        table.replace_before(kept if kept.num_rows <= SMALL_BASE else rows, base + 1)
        kind, _, name = path.partition("/")
        if kind == "changelog":
            self.folded[name] = before - _sound(table, base)

    def _entry(self, versions: Mapping[str, int]) -> Entry:
        base: dict[str, Any] = {}
        if self.before is not None and self._base("") is not None:
            head = self.head
            folded = {name: head.folded.get(name, 0) + self.folded.get(name, 0) for name in {**head.folded, **self.folded}}
            base = {"base": self.before - 1, "folded": folded}
        return replace(
            self.head, execution_id=self.epoch.execution_id, started=self.epoch.started, finished=datetime.now(UTC), tables=dict(versions),
            counters={**{name: value for name, value in self.head.counters.items() if name in (*NOTED, "gone", *CARRIED)}, **base, "kind": "compact"},
            files={}, marks={}, previous="", hash="",
        )  # fmt: skip

    def _tidy(self, committed: Entry) -> None:
        """Files and entries that no reader needs any more, in tables and ledger."""
        ledger = self.epoch.ledger
        ledger.compact()
        anchor_ledger(self.epoch.state, ledger, committed, {})
        for path in committed.tables:
            ChangelogTable(f"{self.epoch.state.root}/{path}").vacuum()


def _sound(table: ChangelogTable, last: int) -> int:
    """How many op rows up to an epoch are no rejects."""
    rejects = table.rejects_arrow(last).num_rows if ERROR in table.columns() else 0
    return table.statistics.rows_before(last + 1) - rejects
