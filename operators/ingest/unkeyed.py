"""Sources without a primary key: each file is diffed with its last version like a text (DESIGN section 6, `snapshot`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from changelog.algebra import as_retractions
from changelog.labels import labels_between, parse_label, row_label
from changelog.schema import column
from operators.ingest.align import align
from operators.ingest.files import FileChanges, FileRecord, Label
from operators.ingest.reading import FileReader

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from operators.source_config import SourceConfig
    from storage.engines import Engine


@dataclass(frozen=True, slots=True)
class Ingested:
    """What a source makes of its files: op rows as a table on the driver or as a frame, and the records of the present files.

    `uncounted` are files whose `rows` only the written delta tells; `bound` is an upper bound of the frame's rows.
    """

    table: pa.Table | None
    frame: DataFrame | None
    signed: bool
    files: tuple[FileRecord, ...]
    uncounted: tuple[FileRecord, ...] = ()
    bound: int | None = None


def ingest(files: FileReader, changes: FileChanges, stood: DataFrame | None, engine: Engine, config: SourceConfig) -> Ingested:
    """The delta of a source: rows of added files come, rows of removed ones go, changed files are aligned.

    `stood` are the source's live rows, rejects among them; None when there are none.
    """
    now = {record.label: record for record in changes.now}
    added = [replace(record, undeclared=files.undeclared(record)) for record in changes.added]
    signed = stood is not None and bool(changes.removed or changes.changed)
    if not signed and files.is_small(added):
        table = files.small(added)
        counted = _counted(added, table, files)
        now |= {record.label: record for record in counted}
        return Ingested(table.drop_columns(["_row"]), None, False, tuple(now.values()))
    frames: list[DataFrame] = []
    if added:
        fresh = engine.from_arrow(files.small(added)) if files.is_small(added) else files.large(engine, added)
        frames.append(fresh.drop("_row"))
        now |= {record.label: record for record in added}
    if signed and stood is not None:
        frames.extend(as_retractions(_of_file(stood, files, record), "correction") for record in changes.removed)
        for record in changes.changed:
            rows, updated = _changed(files, record, _of_file(stood, files, record), engine)
            frames.extend(rows)
            now[updated.label] = updated
    bound = sum(record.rows for record in (*changes.removed, *changes.changed)) + sum(record.size for record in (*added, *changes.changed)) // 2
    return Ingested(None, _all(frames), signed, tuple(now.values()), tuple(added), bound)


def _counted(records: Sequence[FileRecord], table: pa.Table, files: FileReader) -> list[FileRecord]:
    """The records with the number of rows that their files turned out to have."""
    import polars as pl

    frame = pl.DataFrame({"key": table.column("_key"), "bad": table.column("_error").is_valid()})
    counted = []
    for record in records:
        own = frame.filter(pl.col("key").bin.starts_with(files.prefix(record)))
        counted.append(replace(record, rows=own.height, rejected=int(own["bad"].sum())))
    return counted


def _of_file(stood: DataFrame, files: FileReader, record: FileRecord) -> DataFrame:
    """The rows of one file: those whose key begins with its prefix, as a range so that the table's statistics help."""
    low = files.prefix(record)
    return stood.where((F.col("_key") >= F.lit(low)) & (F.col("_key") < F.lit(low + b"\xff")))


def _changed(files: FileReader, record: FileRecord, stood: DataFrame, engine: Engine) -> tuple[list[DataFrame], FileRecord]:
    """The delta of a changed file and its new record."""
    record = replace(record, undeclared=files.undeclared(record))
    small = files.is_small([record])
    fresh = engine.from_arrow(files.small([record])) if small else files.large(engine, [record])
    old = engine.to_arrow(stood.select("_key", _hash(stood, files))).sort_by("_key")
    new = engine.to_arrow(fresh.select("_row", _hash(fresh, files))).sort_by("_row")
    stayed = align(old.column("_hash").to_numpy(), new.column("_hash").to_numpy())
    gone, came, dense = _consequences(old, new, stayed, files.prefix(record))
    frames = []
    if gone.num_rows:
        frames.append(as_retractions(stood.join(engine.from_arrow(gone), "_key", "left_semi"), "correction"))
    if came.num_rows:
        frames.append(_relabelled(fresh, engine.from_arrow(came)))
    rejected = engine.to_arrow(fresh.where(F.col("_error").isNotNull()).agg(F.count("*").alias("n"))).column("n")[0].as_py()
    return frames, replace(record, rows=new.num_rows, rejected=rejected, dense=record.dense and dense)


def _hash(frame: DataFrame, files: FileReader) -> Any:
    """A 64-bit hash of a record: its values, its undeclared fields, or what it was rejected for."""
    names = [*files.shape.declared, *(name for name in ("_widened",) if name in files.shape.hidden), "_error"]
    parts = [part for name in names for part in (column(name), column(name).isNull())]
    return F.xxhash64(*parts).alias("_hash")


def _consequences(old: pa.Table, new: pa.Table, stayed: tuple[Any, Any], prefix: bytes) -> tuple[pa.Table, pa.Table, bool]:
    """Keys that go; `_row` and `_label` (the key) of records that come; whether record n of the file still has label n."""
    import numpy as np
    import pyarrow as pa

    left, right = stayed
    gone = np.setdiff1d(np.arange(old.num_rows), left, assume_unique=True)
    came = np.setdiff1d(np.arange(new.num_rows), right, assume_unique=True)
    keys = old.column("_key").to_pylist()
    labels = _new_labels(keys, left, right, came, len(prefix))
    dense = not len(gone) and labels == [(int(at) + 1,) for at in came]
    fresh_keys = pa.array([prefix + row_label(label) for label in labels], pa.binary())
    fresh = pa.table({"_row": new.column("_row").take(pa.array(came)), "_label": fresh_keys})
    return pa.table({"_key": pa.array([keys[at] for at in gone], pa.binary())}), fresh, dense


def _new_labels(keys: list[bytes], left: Any, right: Any, came: Any, skip: int) -> list[Label]:
    """A label for each new record: behind the old record before it, one that goes too, and before the next that stays."""
    import numpy as np

    labels: list[Label] = []
    places = np.searchsorted(right, came)
    start = 0
    while start < len(came):
        place = int(places[start])
        stop = int(np.searchsorted(places, place, side="right"))
        end = int(left[place]) if place < len(left) else len(keys)
        low = _label(keys[end - 1], skip) if end else None
        high = _label(keys[end], skip) if end < len(keys) else None
        labels.extend(labels_between(low, high, stop - start))
        start = stop
    return labels


def _label(key: bytes, skip: int) -> Label:
    return parse_label(key, skip)[0]


def _relabelled(fresh: DataFrame, labels: DataFrame) -> DataFrame:
    """The new records of a file under their labels."""
    key = F.when(F.col("_error").isNull(), F.col("_label")).otherwise(F.concat(F.col("_label"), F.lit(b"!")))
    joined = fresh.drop("_key").join(labels, "_row").withColumn("_key", key)
    return joined.select(*(column(name) for name in fresh.columns if name != "_row"))


def _all(frames: Sequence[DataFrame]) -> DataFrame | None:
    result = frames[0] if frames else None
    for frame in frames[1:]:
        result = result.unionByName(frame) if result is not None else frame
    return result
