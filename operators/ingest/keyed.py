"""Records under their primary keys, and snapshots by key: what the files hold now against what stood (DESIGN section 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as F

from changelog.algebra import as_retractions, diff
from changelog.keys import key_column
from changelog.schema import column
from operators.ingest.events import place_key
from operators.ingest.files import FileRecord, Part
from operators.ingest.intake import Ingested, InputChanged, Intake

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

_TWICE = '{"category":"duplicate_key"}'
"""`_error` of records with one key, until the run is refused for them."""


@dataclass(frozen=True, slots=True)
class Keyed:
    """Records under their keys: `frame`, and where they are on the driver `table`; the files' records, counted where `table` is."""

    frame: DataFrame
    table: pa.Table | None
    records: tuple[FileRecord, ...]


def read(intake: Intake, parts: Sequence[Part]) -> Keyed:
    """The records of parts under their keys, rejects under their places. Large parts are read whenever the frame is."""
    files, engine = intake.files, intake.engine
    if not files.is_small(parts):
        return Keyed(_under_keys(intake, files.large(engine, parts)), None, tuple(part.record for part in parts))
    table, counted = files.small(parts)
    rows = engine.to_arrow(_under_keys(intake, engine.from_arrow(table)))
    return Keyed(engine.from_arrow(rows), rows, tuple(counted))


def _under_keys(intake: Intake, rows: DataFrame) -> DataFrame:
    types = [(column(name), intake.files.key_type(name)) for name in intake.config.merge.primary_key]
    return rows.withColumn("_key", F.when(F.col("_error").isNull(), key_column(types)).otherwise(place_key()))


def ingest(intake: Intake) -> Ingested:
    """The delta of a snapshot by key. Raises InputChanged for keys that are null or not unique, or gives what will."""
    changes, files = intake.changes, intake.files
    parts = [Part(files.undeclared(record)) for record in (*changes.added, *changes.changed)]
    bound = sum(record.rows for record in (*changes.removed, *changes.changed)) + sum(part.size for part in parts) // 2
    if not parts and intake.stood is not None:
        return Ingested(None, as_retractions(_of_files(intake.stood, changes.removed), intake.cause), True, changes.now, (), bound)
    fresh = read(intake, parts)
    now = {record.label: record for record in (*changes.now, *fresh.records)}
    uncounted = fresh.records if fresh.table is None else ()
    names = [column(name) for name in files.shape.columns]
    unique = UniqueKeys(intake, _others(intake))
    if fresh.table is not None:
        unique.check_table(fresh.table)
    refuse = None if fresh.table is not None and unique.others is None else unique.check
    if intake.stood is None:
        rows = fresh.frame.select("_op", "_key", F.lit(intake.fresh_cause).alias("_cause"), *names)
        return Ingested(None, rows, False, tuple(now.values()), uncounted, bound, refuse)
    image = fresh.frame.select("_key", *names)
    old = _of_files(intake.stood, (*changes.removed, *changes.changed))
    compare = list(dict.fromkeys([*intake.compared(), "_file"]))
    changed = diff(old, image if fresh.table is not None else unique.marked(image), intake.cause, compare=compare)
    rows = changed.withColumn("_cause", F.when(F.col("_op") == 0, F.lit(intake.fresh_cause)).otherwise(F.col("_cause")))
    return Ingested(None, rows, True, tuple(now.values()), uncounted, bound, refuse)


def _of_files(stood: DataFrame, records: Sequence[FileRecord]) -> DataFrame:
    paths = [record.path for record in records]
    return stood.where(F.col("_file").isin(paths)) if paths else stood.limit(0)


def _others(intake: Intake) -> DataFrame | None:
    """The live rows of the files that are as they were; None where there are none."""
    changes = intake.changes
    read = {record.path for record in (*changes.added, *changes.changed, *changes.removed)}
    kept = [record for record in changes.now if record.path not in read and record.rows]
    return _of_files(intake.stood, kept) if kept and intake.stood is not None else None


@dataclass(frozen=True, slots=True)
class UniqueKeys:
    """The rule that a primary key is not null and stands for one record, among the new ones and those of `others`."""

    intake: Intake
    others: DataFrame | None

    @property
    def names(self) -> list[str]:
        """The columns of the key."""
        return self.intake.config.merge.primary_key

    def check_table(self, table: pa.Table) -> None:
        """Raise InputChanged for records on the driver."""
        import polars as pl

        names = ["_key", *self.names]
        frame = pl.DataFrame({name: table.column(name) for name in (*names, "_error")}).filter(pl.col("_error").is_null())
        counted = frame.group_by("_key").agg(pl.len().alias("__n"), *(pl.col(name).first() for name in self.names))
        wrong = counted.filter((pl.col("__n") > 1) | pl.any_horizontal(pl.col(name).is_null() for name in self.names)).sort("_key")
        if wrong.height:
            raise self._error(wrong.row(0, named=True))

    def marked(self, image: DataFrame) -> DataFrame:
        """Records that break the rule among themselves get an error that makes them show in the delta, for `check`."""
        several = F.count(F.lit(1)).over(Window.partitionBy("_key")) > 1
        wrong = F.col("_error").isNull() & (several | self._null())
        return image.withColumn("_error", F.when(wrong, F.lit(_TWICE)).otherwise(F.col("_error")))

    def check(self, delta: DataFrame) -> None:
        """Raise InputChanged for a written delta."""
        came = delta.where(F.col("_op").isin(0, 3))
        good = came.where(F.col("_error").isNull() | (F.col("_error") == _TWICE))
        key = ["_key", *self.names]
        keys = good.select(*map(column, key))
        if self.others is not None:
            met = self.others.where(F.col("_error").isNull()).select(*map(column, key))
            keys = keys.unionByName(met.join(came.where(F.col("_op") == 0).select("_key"), "_key", "left_semi"))
        counted = keys.groupBy("_key").agg(F.count(F.lit(1)).alias("__n"), *(F.first(column(name)).alias(name) for name in self.names))
        wrong = self.intake.engine.to_arrow(counted.where((F.col("__n") > 1) | self._null()).orderBy("_key"), 1).to_pylist()
        if wrong:
            raise self._error(wrong[0])

    def _null(self) -> Column:
        return reduce(or_, [column(name).isNull() for name in self.names])

    def _error(self, wrong: Mapping[str, Any]) -> InputChanged:
        shown = ", ".join(f"{name}={'null' if wrong[name] is None else wrong[name]}" for name in self.names)
        return InputChanged(f"the primary key {shown} {'is null' if wrong['__n'] == 1 else 'stands for ' + str(wrong['__n']) + ' records'}")
