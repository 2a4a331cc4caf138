"""What was changed by hand at a source and stands (`errata correct`, `errata revert`): an edit of the source reads its files again, and takes nothing of it back.

It stands until its file changes (SPEC-DECISIONS, Commands 29): the last change of the record that was neither one of logic nor one of rollback was made by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from changelog.frames import chosen, united
from changelog.lazy import F
from changelog.ops import Op
from errata.tables import stored_rows
from operators.ingest.hashes import joined
from operators.ingest.redeclared import of_files

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from errata.plan import Node
    from errata.propagate import Flow
    from operators.evaluation import Narrow
    from operators.ingest.intake import Ingested, Intake, Stood
    from storage.engines import Engine
    from storage.ledger import Entry

_PASSING: Final = ("logic", "readmit", "rollback:")
"""Causes, or what they begin with, of changes after which a record says what it said."""


@dataclass(frozen=True)
class ByHand:
    """Records that are as a change by hand left them: their keys, and of those that it brought or took back `brought` and `taken`, with the images that went."""

    engine: Engine
    keys: pa.Table
    brought: pa.Table
    taken: DataFrame

    def intake(self, given: Intake) -> Intake:
        """What a source is to be read by: records that are told apart by their places need all of them."""
        return given if given.source.keyed or given.before is None else replace(given, before=AsFilesSay(given.before, self))

    def passed_over(self, made: Ingested) -> Ingested:
        """The delta of a source without what it says of these records."""
        rows = made.frame if made.table is None else self.engine.from_arrow(made.table)
        return made if rows is None else replace(made, table=None, frame=chosen(self.without(rows), rows.columns), bound=None)

    def without(self, rows: DataFrame) -> DataFrame:
        """Rows of other keys."""
        return joined(rows, self.keys, self.engine, "left_anti")

    def among(self, rows: DataFrame) -> DataFrame:
        """Rows of these keys."""
        return joined(rows, self.keys, self.engine, "left_semi")


@dataclass(frozen=True)
class AsFilesSay:
    """The live rows of a source with as many records of each file as it has, whatever was brought or taken back by hand."""

    stood: Stood
    by_hand: ByHand

    @cached_property
    def rows(self) -> DataFrame:
        """All of them."""
        rows = joined(self.stood.rows, self.by_hand.brought, self.by_hand.engine, "left_anti")
        return united(rows, chosen(self.by_hand.taken, rows.columns))

    def near(self, ranges: Sequence[tuple[bytes, bytes]]) -> pa.Table:
        """Those that stand, whose keys lie within some ranges."""
        return self.stood.near(ranges)

    def narrowed(self, narrow: Narrow) -> DataFrame:
        """Those that a function chooses."""
        return narrow(self.rows)


def epochs_by_hand(entries: Iterable[Entry], source: str) -> list[int]:
    """The epochs in which records of a source were corrected or brought back by hand."""
    return [entry.epoch for entry in entries if entry.counters.get("kind") == "revert" or (entry.counters.get("kind") == "correct" and entry.counters.get("source") == source)]


def changed_by_hand(flow: Flow, node: Node, intake: Intake, epochs: Sequence[int]) -> ByHand | None:
    """The records of unchanged files that are as changes by hand in some epochs left them; None where there are none."""
    if not epochs:
        return None
    engine, kept = flow.engine, F.col("_epoch").isin(*epochs)
    rows = stored_rows(engine, flow.tables.changelog(node), at=flow.epoch - 1)
    fresh = [*intake.delivered.changed, *intake.delivered.added]
    candidates = (rows.where(kept & ~of_files(intake, fresh)) if fresh else rows.where(kept)).select("_key").distinct()
    passing = reduce(or_, (F.col("_cause").startswith(cause) for cause in _PASSING))
    own = rows.where(~passing).join(candidates, "_key", "left_semi")
    newest = own.groupBy("_key").agg(_newest(kept).alias("_hand"), F.coalesce(_newest(~kept), F.lit(0)).alias("_other"))
    since = own.where(kept).join(newest.where(F.col("_hand") > F.col("_other")), "_key").where(F.col("_epoch") > F.col("_other"))
    by_key = since.groupBy("_key").agg(F.min(F.struct("_epoch", "_op")).alias("_first"), F.max(F.struct("_epoch", "_op")).alias("_last"))
    found = engine.to_arrow(by_key.select("_key", F.col("_first._op").alias("_first"), F.col("_last._op").alias("_last"), F.col("_last._epoch").alias("_at")))
    if not found.num_rows:
        return None
    taken = joined(rows.where(F.col("_op") == int(Op.RETRACT)), _where(found, "_last", Op.RETRACT, ("_key", "_at")), engine, "inner")
    return ByHand(engine, found.select(["_key"]), _where(found, "_first", Op.APPEND, ("_key",)), taken.where(F.col("_epoch") == F.col("_at")))


def _newest(rows: Column) -> Column:
    return F.max(F.when(rows, F.col("_epoch")))


def _where(found: pa.Table, name: str, op: Op, names: Sequence[str]) -> pa.Table:
    import pyarrow.compute as pc

    return found.filter(pc.equal(found.column(name), int(op))).select(list(names))
