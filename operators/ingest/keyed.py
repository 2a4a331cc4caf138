"""Records under their primary keys, and snapshots by key: what the files hold now against what stood (DESIGN section 6)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from changelog.algebra import as_retractions, diff
from changelog.keys import key_column
from changelog.lazy import F
from changelog.schema import column
from operators.ingest.deliveries import whole
from operators.ingest.events import place_key
from operators.ingest.files import FileRecord, Label, Part
from operators.ingest.hashes import image_hash, joined
from operators.ingest.intake import Ingested, InputChanged, Intake

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from operators.ingest.reading import FileReader
    from storage.engines import Engine


@dataclass(frozen=True, slots=True)
class Keyed:
    """Records under their keys: `frame`, and where they are on the driver `table`; the files' records, counted where `table` is."""

    frame: DataFrame
    table: pa.Table | None
    records: tuple[FileRecord, ...]


def read(intake: Intake, parts: Sequence[Part]) -> Keyed:
    """The records of parts under their keys, rejects under their places. Large parts are read whenever the frame is."""
    files, engine = intake.files, intake.engine
    primary_key = intake.config.merge.primary_key
    if not files.is_small(parts):
        return Keyed(_under_keys(files, primary_key, files.large(engine, parts)), None, tuple(part.record for part in parts))
    table, counted = files.small(parts)
    rows = engine.to_arrow(_under_keys(files, primary_key, engine.from_arrow(table)))
    return Keyed(engine.from_arrow(rows), rows, tuple(counted))


def rows_now(files: FileReader, engine: Engine, primary_key: Sequence[str], record: FileRecord, keys: Collection[bytes]) -> dict[bytes, int]:
    """The rows of a file in which the records of some keys stand."""
    import pyarrow as pa

    rows = _under_keys(files, primary_key, files.frame(engine, [Part(record)])).select("_key", "_row")
    found = engine.to_arrow(joined(rows, pa.table({"_key": pa.array(sorted(keys), pa.binary())}), engine, "left_semi"))
    return dict(zip(map(bytes, found.column("_key").to_pylist()), found.column("_row").to_pylist(), strict=True))


def _under_keys(files: FileReader, primary_key: Sequence[str], rows: DataFrame) -> DataFrame:
    types = [(column(name), files.key_type(name)) for name in primary_key]
    return rows.withColumn("_key", F.when(F.col("_error").isNull(), key_column(types)).otherwise(place_key()))


def ingest(intake: Intake) -> Ingested:
    """The delta of a snapshot by key. Raises InputChanged for keys that are null or not unique, or gives what will."""
    changes, files = intake.changes, intake.files
    parts = whole(changes, [files.undeclared(record) for record in (*changes.added, *changes.changed)])
    bound = sum(record.rows for record in (*changes.removed, *changes.changed)) + sum(part.size for part in parts) // 2
    if not parts and intake.stood is not None:
        return Ingested(None, as_retractions(_of_files(intake.stood, changes.removed), intake.cause), True, changes.now, (), bound)
    fresh = read(intake, parts)
    now = {record.label: record for record in (*changes.now, *fresh.records)}
    uncounted = fresh.records if fresh.table is None else ()
    refuse = _refusing(intake, fresh)
    if intake.stood is None:
        rows = fresh.frame.select("_op", "_key", F.lit(intake.fresh_cause).alias("_cause"), *map(column, files.shape.columns))
        return Ingested(None, rows, False, tuple(now.values()), uncounted, bound, refuse)
    changed, partly, bound = _against(intake, intake.stood, parts, fresh, bound)
    rows = changed.withColumn("_cause", F.when(F.col("_op") == 0, F.lit(intake.fresh_cause)).otherwise(F.col("_cause")))
    records = tuple(record.partly() if record.label in partly else record for record in now.values())
    return Ingested(None, rows, True, records, uncounted, bound, refuse)


def _refusing(intake: Intake, fresh: Keyed) -> Callable[[DataFrame], None] | None:
    """What looks for keys that are not unique in the delta; None where the records on the driver are all that there are. Raises InputChanged for those."""
    unique = UniqueKeys(intake, _others(intake))
    if fresh.table is not None:
        unique.check_table(fresh.table)
    return None if fresh.table is not None and unique.others is None else unique.check


def _against(intake: Intake, stood: DataFrame, parts: Sequence[Part], fresh: Keyed, bound: int) -> tuple[DataFrame, set[Label], int]:
    """What the records change of what stood, the files of which something was passed over (by label), and how many op rows there are at most."""
    changes = intake.changes
    old, new = _of_files(stood, (*changes.removed, *changes.changed)), fresh.frame
    compare = list(dict.fromkeys([*intake.compared(), "_file"]))
    if fresh.table is None:
        old, new, bound = _differing(intake, parts, old, new, compare)
    changed = diff(old, new.select("_key", *map(column, intake.files.shape.columns)), intake.cause, compare=compare)
    if not intake.floors:
        return changed, set(), bound
    changed, passed = _beyond_floors(intake, old, changed)
    return changed, {record.label for record in changes.changed} if passed else set(), bound


def _beyond_floors(intake: Intake, old: DataFrame, changed: DataFrame) -> tuple[DataFrame, bool]:
    """The delta without the corrections of records up to the floors of their files, and whether there were any."""
    import pyarrow as pa

    engine = intake.engine
    below = [(F.col("_file") == path) & (F.col("_row") <= floor.row) for path, floor in intake.floors.items()]
    again = pa.table({"_key": pa.array(sorted(key for floor in intake.floors.values() for key in floor.marked), pa.binary())})
    kept = joined(old.where(reduce(or_, below)).select("_key"), again, engine, "left_anti")
    corrections = changed.where(F.col("_op").isin(2, 3))
    passed = corrections.join(kept, "_key", "left_semi")
    if not engine.to_arrow(passed.select("_key"), 1).num_rows:
        return changed, False
    beyond = corrections.join(kept, "_key", "left_anti").select(*map(column, changed.columns))
    return changed.where(~F.col("_op").isin(2, 3)).unionByName(beyond), True


def _differing(
    intake: Intake, parts: Sequence[Part], old: DataFrame, new: DataFrame, compare: Sequence[str]
) -> tuple[DataFrame, DataFrame, int]:
    """The rows of large files that are not the same before and now, found by hashes, and how many they are.

    Only the ranges that hold such rows are read a second time. Raises InputChanged for a key that several records have.
    """
    import polars as pl

    key, engine = F.xxhash64("_key").alias("_k"), intake.engine
    hashes = (new.select("_order", "_row", key, image_hash(new, compare).alias("_h")), old.select(key, image_hash(old, compare).alias("_h")))
    now, before = map(pl.DataFrame, engine.side_by_side(*hashes))
    twice = now.filter(pl.col("_k").is_duplicated())
    if twice.height:
        UniqueKeys(intake, None).check(_with_hashes(new, twice, engine))
    came, gone = now.join(before, on=["_k", "_h"], how="anti"), before.join(now, on=["_k", "_h"], how="anti")
    if not came.height:
        return _with_hashes(old, gone, engine), new.limit(0), gone.height
    places = {int(str(order)): rows["_row"].to_numpy() for (order,), rows in came.group_by("_order")}
    again = _under_keys(intake.files, intake.config.merge.primary_key, intake.files.large(engine, parts, places))
    return _with_hashes(old, gone, engine), _with_hashes(again, came, engine), came.height + gone.height


def _with_hashes(frame: DataFrame, found: pl.DataFrame, engine: Engine) -> DataFrame:
    """The rows whose key has one of the hashes `_k`."""
    import pyarrow as pa

    keys = pa.table({"_k": found["_k"].unique().to_arrow()})
    return joined(frame.withColumn("_k", F.xxhash64("_key")), keys, engine, "left_semi", "_k").drop("_k")


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

    def check(self, delta: DataFrame) -> None:
        """Raise InputChanged for op rows."""
        came = delta.where(F.col("_op").isin(0, 3))
        key = ["_key", *self.names]
        keys = came.where(F.col("_error").isNull()).select(*map(column, key))
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
