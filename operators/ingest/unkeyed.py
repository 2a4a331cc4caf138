"""Sources without a primary key: each file is diffed with its last version like a text (DESIGN section 6, `snapshot`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from changelog.algebra import as_retractions
from changelog.labels import labels_between, parse_label, row_label, row_labels
from changelog.lazy import F
from changelog.schema import column
from operators.ingest.align import align, align_beyond
from operators.ingest.files import FileRecord, Label, Part
from operators.ingest.hashes import image_hash, joined
from operators.ingest.intake import Ingested, Intake
from operators.ingest.reading import FileReader, holding

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame



def ingest(intake: Intake) -> Ingested:
    """The delta of a snapshot: rows of added files come, rows of removed ones go, changed files are aligned."""
    changes, files = intake.changes, intake.files
    added = [Part(files.undeclared(record)) for record in changes.added]
    if intake.stood is None or not (changes.removed or changes.changed):
        return appended(intake, [*added, *(Part(files.undeclared(record)) for record in changes.changed)])
    frames = [with_row(intake, files.frame(intake.engine, added))] if added else []
    frames += [as_retractions(of_file(intake.stood, files, record), intake.cause) for record in changes.removed]
    now = {record.label: record for record in (*changes.now, *(part.record for part in added))}
    bound = sum(record.rows for record in changes.removed) + sum(record.size for record in changes.added) // 2
    for record in changes.changed:
        rows, updated, count = _changed(intake, files.undeclared(record))
        frames.extend(rows)
        now[updated.label] = updated
        bound += count
    return Ingested(None, _all(frames), True, tuple(now.values()), tuple(part.record for part in added), bound)


def appended(intake: Intake, read: Sequence[Part]) -> Ingested:
    """The delta that only brings the records of some parts in."""
    files = intake.files
    now = {record.label: record for record in intake.changes.now}
    if files.is_small(read):
        table, counted = files.small(read)
        now |= {record.label: record for record in counted}
        kept = table if "_row" in files.shape.hidden else table.drop_columns(["_row"])
        return Ingested(kept, None, False, tuple(now.values()))
    now |= {part.record.label: part.record for part in read}
    bound = sum(part.size for part in read) // 2
    rows = with_row(intake, files.large(intake.engine, read))
    return Ingested(None, rows, False, tuple(now.values()), tuple(part.record for part in read), bound)


def with_row(intake: Intake, rows: DataFrame) -> DataFrame:
    """Op rows that were read, with the row number only where it is kept."""
    return rows if "_row" in intake.files.shape.hidden else rows.drop("_row")


def of_file(stood: DataFrame, files: FileReader, record: FileRecord) -> DataFrame:
    """The rows of one file: those whose key begins with its prefix, as a range so that the table's statistics help."""
    low = files.prefix(record)
    return stood.where((F.col("_key") >= F.lit(low)) & (F.col("_key") < F.lit(low + b"\xff")))


def _changed(intake: Intake, record: FileRecord) -> tuple[list[DataFrame], FileRecord, int]:
    """The delta of a changed file, its new record, and the number of op rows at most."""
    files, engine = intake.files, intake.engine
    assert intake.stood is not None  # else the file's rows are simply appended
    stood, part = of_file(intake.stood, files, record), Part(record)
    small = files.is_small([part])
    tasks = [] if small else files.tasks(part)
    fresh = engine.from_arrow(files.small([part])[0]) if small else files.spread(engine, record, tasks)
    old, new = old_hashes(intake, stood), new_hashes(intake, fresh)
    left, right, whole = _aligned(intake, record, old, new)
    gone, came, dense = _consequences(old, new, (left, right), files.prefix(record))
    frames = []
    if gone.num_rows:
        frames.append(as_retractions(joined(stood, gone, engine, "left_semi"), intake.cause))
    if came.num_rows:
        wanted = fresh if small else files.spread(engine, record, holding(tasks, came.column("_row").to_numpy()))
        frames.append(_relabelled(intake, wanted, came))
    if "source.row" in intake.source.wanted:
        frames.extend(_shifted(intake, stood, old, new, (left, right)))
    bound = gone.num_rows + came.num_rows + (2 * len(left) if "source.row" in intake.source.wanted else 0)
    read = replace(record, rows=new.num_rows, dense=record.dense and dense)
    return frames, read if whole else read.partly(), bound


def _aligned(intake: Intake, record: FileRecord, old: pa.Table, new: pa.Table) -> tuple[Any, Any, bool]:
    """Positions of the records that stayed, before and now; whether nothing was passed over."""
    import pyarrow as pa
    import pyarrow.compute as pc

    hashes = (old.column("_hash").to_numpy(), new.column("_hash").to_numpy())
    floor = intake.floors.get(record.path)
    if floor is None:
        return *align(*hashes), True
    again = pc.is_in(old.column("_key"), value_set=pa.array(floor.marked, pa.binary())).to_numpy()
    left, right, passed = align_beyond(*hashes, floor.row, again)
    return left, right, not passed


def old_hashes(intake: Intake, stood: DataFrame) -> pa.Table:
    """`_key`, `_hash` and, where it is kept, `_row` of live rows of a file, in order."""
    names = ["_key", *(name for name in ("_row",) if name in intake.files.shape.hidden)]
    return _ordered(intake.engine.to_arrow(stood.select(*names, _hash(intake, stood))), "_key")


def new_hashes(intake: Intake, fresh: DataFrame) -> pa.Table:
    """`_row` and `_hash` of the records of a file, in order."""
    return _ordered(intake.engine.to_arrow(fresh.select("_row", _hash(intake, fresh))), "_row")


def _ordered(table: pa.Table, by: str) -> pa.Table:
    import polars as pl

    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)  # a table is no array
    return frame.sort(by).to_arrow().cast(table.schema).combine_chunks()


def _hash(intake: Intake, frame: DataFrame) -> Column:
    """A 64-bit hash of what is compared of a record: its values, its undeclared fields, what it was rejected for."""
    return image_hash(frame, [name for name in intake.compared() if name != "_row"]).alias("_hash")


def _consequences(old: pa.Table, new: pa.Table, stayed: tuple[Any, Any], prefix: bytes) -> tuple[pa.Table, pa.Table, bool]:
    """Keys that go; `_row` and `_label` (the key) of records that come; whether record n of the file still has label n."""
    import numpy as np
    import pyarrow as pa

    left, right = stayed
    gone = np.setdiff1d(np.arange(old.num_rows), left, assume_unique=True)
    came = np.setdiff1d(np.arange(new.num_rows), right, assume_unique=True)
    keys = _new_keys(old.column("_key"), left, right, came, prefix)
    dense = not len(gone) and keys.equals(_dense_keys(prefix, came))
    fresh = pa.table({"_row": new.column("_row").take(pa.array(came)), "_label": keys})
    return pa.table({"_key": old.column("_key").take(pa.array(gone))}), fresh, dense


def _dense_keys(prefix: bytes, came: Any) -> pa.Array:
    """The keys that records at these positions have in a file that is read for the first time."""
    if not len(came):
        return row_labels(prefix, 1, 0)
    first = int(came[0])
    return row_labels(prefix, first + 1, int(came[-1]) - first + 1).take(came - first)


def _new_keys(old: pa.ChunkedArray, left: Any, right: Any, came: Any, prefix: bytes) -> pa.Array:
    """A key for each new record: behind the old record before it, one that goes too, and before the next that stays."""
    import numpy as np
    import pyarrow as pa

    made: list[pa.Array] = [row_labels(prefix, 1, 0)]
    places = np.searchsorted(right, came)
    start = 0
    while start < len(came):
        place = int(places[start])
        stop = int(np.searchsorted(places, place, side="right"))
        end = int(left[place]) if place < len(left) else len(old)
        low = _label(old[end - 1].as_py(), len(prefix)) if end else None
        high = _label(old[end].as_py(), len(prefix)) if end < len(old) else None
        made.append(_run(prefix, low, high, stop - start))
        start = stop
    return pa.concat_arrays(made)


def _run(prefix: bytes, low: Label | None, high: Label | None, count: int) -> pa.Array:
    import pyarrow as pa

    if high is None:
        return row_labels(prefix, (low[0] if low else 0) + 1, count)
    return pa.array([prefix + row_label(label) for label in labels_between(low, high, count)], pa.binary())


def _label(key: bytes, skip: int) -> Label:
    return parse_label(key, skip)[0]


def _relabelled(intake: Intake, fresh: DataFrame, labels: pa.Table) -> DataFrame:
    """The new records of a file under their labels."""
    key = F.when(F.col("_error").isNull(), F.col("_label")).otherwise(F.concat(F.col("_label"), F.lit(b"!")))
    labelled = joined(fresh.drop("_key"), labels, intake.engine, "inner", on="_row")
    rows = labelled.withColumns({"_key": key, "_cause": F.lit(intake.fresh_cause)})
    return with_row(intake, rows.select(*map(column, fresh.columns)))


def _shifted(intake: Intake, stood: DataFrame, old: pa.Table, new: pa.Table, stayed: tuple[Any, Any]) -> list[DataFrame]:
    """Corrections of records that stayed but have another row number now, for a pipeline that reads `$source.row`."""
    import numpy as np
    import pyarrow as pa

    left, right = stayed
    before = old.column("_row").take(pa.array(left)).fill_null(0).to_numpy()
    after = new.column("_row").take(pa.array(right)).to_numpy()
    moved = np.flatnonzero(before != after)
    if not len(moved):
        return []
    moves = pa.table({"_key": old.column("_key").take(pa.array(left[moved])), "__now": pa.array(after[moved])})
    rows = joined(stood, moves, intake.engine, "inner")
    sides = rows.withColumn("_op", F.explode(F.array(F.lit(2).cast("tinyint"), F.lit(3).cast("tinyint"))))
    now = F.when(F.col("_op") == 3, F.col("__now")).otherwise(F.col("_row"))
    told = sides.withColumns({"_row": now, "_cause": F.lit(intake.cause)})
    return [told.select("_op", "_key", "_cause", *(column(name) for name in stood.columns if name != "_key"))]


def _all(frames: Sequence[DataFrame]) -> DataFrame | None:
    result = frames[0] if frames else None
    for frame in frames[1:]:
        result = result.unionByName(frame, allowMissingColumns=True) if result is not None else frame
    return result
