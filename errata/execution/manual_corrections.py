"""Manual changes of a source (`errata correct`, `errata revert`): an edit of the source reads its files again and keeps them.

A manual change holds until the record's file changes. A record has one if its last change came neither from an edit nor from a rollback.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import pairwise
from operator import or_
from typing import TYPE_CHECKING, Final

from changelog.frames import chosen, united
from changelog.lazy_imports import F, pa
from changelog.ops import is_negative, is_positive
from changelog.rows import Rows
from errata.plan.plan import Node
from errata.state.committed_node import CommittedNode
from errata.state.node_tables import stored_rows
from errata.state.run_state import NodeDelta, RunState
from errata.state.suppressed_rows import truth
from operators.core.evaluate import Narrow
from operators.corrections.correction import shown_key
from operators.source.diff.sides import image_hash, joined
from operators.source.file_changes import FileRecord
from operators.source.request import IngestRequest, IngestResult, PriorRows
from operators.source.schema_changes import WIDENED, of_files
from storage.state.entry import Entry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage.delta.chosen_rows import Choice
    from storage.engines.base import Engine

NAMED: Final = 3
"""Manual corrections that a warning names."""
_PASSING: Final = ("logic", "readmit", "rollback:", "erase")
"""Causes, or what they begin with, of changes that do not come from a file. Of suppressed records all have the cause of their rollback."""


@dataclass(frozen=True)
class ManualCorrections:
    """Records with a manual change: their keys. `brought` and `taken`: the keys that it added and removed, with the removed images."""

    given: IngestRequest
    keys: pa.Table
    brought: pa.Table
    taken: DataFrame
    replaced: list[FileRecord] = field(default_factory=list)
    """Files whose records changed since the manual change: the files win."""

    @property
    def engine(self) -> Engine:
        """The engine."""
        return self.given.engine

    def intake(self) -> IngestRequest:
        """How the source is to be read: records without a key need all rows of their file."""
        return self.given if self.given.source.keyed or self.given.prior is None else replace(self.given, prior=AsFilesSay(self.given.prior, self))

    def passed_over(self, made: IngestResult) -> tuple[IngestResult, ManualCorrections]:
        """The source's delta without the rows of unchanged files for these records, where no other file has the record."""
        if made.rows is None:
            return made, self
        rows = made.rows.as_frame()
        left = self._not_delivered(rows)
        kept = joined(rows, left.keys, self.engine, "left_anti")
        return replace(made, rows=Rows(self.engine, frame=chosen(kept, rows.columns)), bound=None), left

    def among(self, rows: DataFrame) -> DataFrame:
        """Rows of these keys."""
        return joined(rows, self.keys, self.engine, "left_semi")

    def _not_delivered(self, rows: DataFrame) -> ManualCorrections:
        """The manual changes without the records that new or changed files contain, by op rows of a source."""
        delivered = self.given.delivered
        files = [*delivered.added, *delivered.changed, *(part.record for part in delivered.grown)] if self.given.source.keyed else self.replaced
        if not files:
            return self
        delivered_rows = rows if not self.given.source.keyed else rows.where(is_positive(F.col("_op")))
        keys = self.engine.to_arrow(self.among(delivered_rows.where(of_files(self.given, files)).select("_key").distinct()))
        return replace(self, keys=self.keys.join(keys, "_key", join_type="left anti"))


@dataclass(frozen=True)
class AsFilesSay:
    """The live rows of a source with the records that its files had when they were read, without manual changes."""

    prior: PriorRows
    manual: ManualCorrections

    @property
    def rows(self) -> DataFrame:
        """All of them."""
        replaced = of_files(self.manual.given, self.manual.replaced)
        return united(self._said.where(~replaced), self.prior.rows.where(replaced)) if self.manual.replaced else self._said

    @cached_property
    def _said(self) -> DataFrame:
        rows = joined(self.prior.rows, self.manual.brought, self.manual.engine, "left_anti")
        return united(rows, chosen(self.manual.taken, rows.columns))

    def in_key_ranges(self, ranges: Sequence[tuple[bytes, bytes]]) -> pa.Table:
        """Live rows whose keys lie within some ranges."""
        return self.prior.in_key_ranges(ranges)

    def chosen(self, choice: Choice) -> None:
        """None: files that are read again are compared as a whole."""

    def filtered(self, narrow: Narrow) -> DataFrame:
        """Live rows that a function chooses."""
        return narrow(self.rows)

    def blank(self, names: Sequence[str]) -> frozenset[str]:
        """None that is known."""
        return frozenset()

    def rows_replaced(self, record: FileRecord) -> bool:
        """Called when a file's records changed: its manual changes are dropped and its rows count as read."""
        self.manual.replaced.append(record)
        return True


def manual_changes(run: RunState, node: Node, intake: IngestRequest, before: CommittedNode, history: Sequence[Entry]) -> ManualCorrections | None:
    """Manually changed records of unchanged files, also suppressed ones; None where there are none. `before`: the source in the last epoch, `history`: the ledger's entries."""
    epochs = _epochs_by_hand(history, node.name)
    if not epochs:
        return None
    engine, kept, delivered = run.engine, F.col("_epoch").isin(*epochs), intake.delivered
    rows = truth(stored_rows(engine, run.tables.wider(node, before.columns()), at=run.epoch - 1)).as_frame()
    fresh = of_files(intake, [*delivered.changed, *delivered.added, *delivered.removed])
    candidates = engine.to_arrow(rows.where(kept & ~fresh).select("_key").distinct())
    compared = [name for name in rows.columns if name in {*before.data, *intake.source.shape.declared, WIDENED}]
    steps = _steps(joined(rows, candidates, engine, "left_semi"), compared, _edits(history, node.name))
    newest = steps.groupBy("_key").agg(F.max(F.when(kept, F.col("_epoch"))).alias("__hand"), F.coalesce(F.max(F.when(~kept & ~F.col("__passes"), F.col("_epoch"))), F.lit(0)).alias("__other"))
    since = steps.where(kept).join(newest.where(F.col("__hand") > F.col("__other")), "_key").where(F.col("_epoch") > F.col("__other"))
    by_key = since.groupBy("_key").agg(F.min(F.struct("_epoch", "__was")).alias("__first"), F.max(F.struct("_epoch", "__is")).alias("__last"))
    brought, gone = F.col("__first.__was").isNull(), F.col("__last.__is").isNull()
    ends = {"__brought": brought, "__taken": gone & ~brought, "__at": F.col("__last._epoch")}
    found = engine.to_arrow(by_key.select("_key", *(end.alias(name) for name, end in ends.items())))
    if not found.num_rows:
        return None
    brought, went = (found.filter(found.column(name)) for name in ("__brought", "__taken"))
    taken = joined(rows.where(is_negative(F.col("_op"))), went.select(["_key", "__at"]), engine, "inner")
    return ManualCorrections(intake, found.select(["_key"]), brought.select(["_key"]), taken.where(F.col("_epoch") == F.col("__at")))


def undone_corrections(run: RunState, node: Node, delta: NodeDelta, history: Callable[[], Sequence[Entry]]) -> Iterator[str]:
    """Warn of the manual corrections that end because the input brings their records again. `history`: the ledger's entries."""
    epochs = run.corrected.get(node.name)
    if not epochs or delta.rows is None:
        return
    corrected = stored_rows(run.engine, run.tables.changelog(node), (min(epochs), max(epochs))).as_frame().where(F.col("_epoch").isin(*epochs))
    met = corrected.select("_key", "_epoch").join(delta.rows.as_frame().select("_key"), "_key", "left_semi").select("_epoch").distinct()
    undone = run.engine.to_arrow(met).column("_epoch").to_pylist()
    if not undone:
        return
    run.corrected[node.name] = [epoch for epoch in epochs if epoch not in undone]
    named = [f"'{shown_key(entry.counters['key'])}' of epoch {entry.epoch}" for entry in history() if entry.epoch in undone and entry.counters.get("kind") == "correct"]
    more = f" and {len(named) - NAMED:,} more" if len(named) > NAMED else ""
    yield (
        f"source '{node.name}': its input changed, so manual corrections hold no more: {', '.join(named[:NAMED])}{more}"
        " (errata correct --save keeps a correction in a file beside the pipeline)"
    )


def _epochs_by_hand(entries: Sequence[Entry], source: str) -> list[int]:
    """The epochs with manual changes of a source. Folded epochs are left out: nothing shows which of their changes were manual."""
    base = max((int(entry.counters.get("base", 0)) for entry in entries), default=0)
    manual = [entry for entry in entries if entry.epoch > base]
    return [entry.epoch for entry in manual if entry.counters.get("kind") == "revert" or (entry.counters.get("kind") == "correct" and entry.counters.get("source") == source)]


def _edits(entries: Sequence[Entry], source: str) -> list[int]:
    """The epochs at which the source had been edited since the one before."""
    fingerprints = [(entry.epoch, entry.plan.get(source, {}).get("fingerprint")) for entry in entries]
    return [epoch for (_, before), (epoch, now) in pairwise(fingerprints) if now != before]


def _steps(rows: DataFrame, names: Sequence[str], edits: Sequence[int]) -> DataFrame:
    """The steps of records in each epoch that changed their values: hashes before and after (`__was`, `__is`; null: it was not there), whether it `__passes`.

    Suppressed records whose cause is a rollback are found by the values of `names`.
    """
    image, op = image_hash(rows, names), F.col("_op")
    passing = reduce(or_, (F.col("_cause").startswith(cause) for cause in _PASSING))
    sides = {"__was": F.max(F.when(is_negative(op), image)), "__is": F.max(F.when(is_positive(op), image))}
    causes = {"__from_files": F.max(F.when(passing, 0).otherwise(1)), "__logic": F.max(F.when(F.col("_cause") == "logic", 1).otherwise(0))}
    by_epoch = rows.groupBy("_key", "_epoch").agg(*(value.alias(name) for name, value in (sides | causes).items()))
    passes = (F.col("__from_files") == 0) & ((F.col("__logic") == 1) | (F.col("_epoch").isin(*edits) if edits else F.lit(False)))
    return by_epoch.where((F.col("__from_files") == 1) | ~F.col("__was").eqNullSafe(F.col("__is"))).select("_key", "_epoch", "__was", "__is", passes.alias("__passes"))
