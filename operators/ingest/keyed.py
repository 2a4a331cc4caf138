"""Sources with a primary key: new content is compared with the live rows by key (DESIGN section 6; CONTRACT, `merge:`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from changelog.algebra import diff
from changelog.key_columns import key_column
from changelog.labels import row_label_column
from changelog.schema import column
from operators.ingest.files import FileChanges, FileRecord
from operators.ingest.reading import FileReader
from operators.ingest.unkeyed import Ingested

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from operators.source_config import SourceConfig
    from storage.engines import Engine

REJECT_TAG = b"\xff"
"""First byte of a rejected record's key: it has no primary key that can be trusted, so its place in the files stands for it."""


class DuplicateKey(Exception):
    """A primary key that is null or occurs twice in a snapshot; the message names it (exit 4)."""


def ingest(files: FileReader, changes: FileChanges, stood: DataFrame | None, engine: Engine, config: SourceConfig) -> Ingested:
    """The delta of a keyed snapshot. `stood` are the source's live rows, rejects among them; None when there are none."""
    now = {record.label: record for record in changes.now}
    read = [replace(record, undeclared=files.undeclared(record)) for record in (*changes.added, *changes.changed)]
    now |= {record.label: record for record in read}
    gone = [record.path for record in (*changes.removed, *changes.changed)]
    fresh = _fresh(files, read, engine, config) if read else None
    bound = sum(record.rows for record in (*changes.removed, *changes.changed)) + _most_rows(files, read)
    if stood is None:
        if fresh is not None:
            _refuse_duplicates(fresh, engine, config)
        return Ingested(None, fresh, False, tuple(now.values()), tuple(read), bound)
    before = stood.where(F.col("_file").isin(gone)) if gone else stood.limit(0)
    if fresh is None:
        fresh = stood.limit(0).select(F.lit(0).cast("tinyint").alias("_op"), "_key", F.lit("ingest").alias("_cause"), *_image(stood))
    else:
        _refuse_duplicates(fresh, engine, config, others=stood.where(~F.col("_file").isin(gone)) if gone else stood)
    changed = diff(before, fresh.drop("_op", "_cause"), "correction", compare=_compared(files, config))
    rows = changed.withColumn("_cause", F.when(F.col("_op") == 0, F.lit("ingest")).otherwise(F.col("_cause")))
    return Ingested(None, rows, True, tuple(now.values()), tuple(read), 2 * bound)


def _image(frame: DataFrame) -> list[Column]:
    return [column(name) for name in frame.columns if name != "_key"]


def _most_rows(files: FileReader, read: Sequence[FileRecord]) -> int:
    """More records than the files can have: two bytes is the least that one takes."""
    return sum(record.size for record in read) // 2


def _compared(files: FileReader, config: SourceConfig) -> list[str]:
    """The columns whose change makes a correction: all data, or the chosen ones, and the file that a record lies in."""
    data = list(config.merge.compare) if config.merge.compare is not None else list(files.shape.declared)
    return [*data, "_file", "_error", *(name for name in ("_widened",) if name in files.shape.hidden)]


def _fresh(files: FileReader, read: Sequence[FileRecord], engine: Engine, config: SourceConfig) -> DataFrame:
    """The op rows of files under their keys."""
    rows = engine.from_arrow(files.small(read)) if files.is_small(read) else files.large(engine, read)
    types = [(column(name), files.key_type(name)) for name in config.merge.primary_key]
    place = F.concat(F.lit(REJECT_TAG), F.col("_file").cast("binary"), F.lit(b"\x00"), row_label_column(F.col("_row")), F.lit(b"!"))
    key = F.when(F.col("_error").isNull(), key_column(types)).otherwise(place)
    keyed = rows.withColumn("_key", key)
    names = ["_op", "_key", "_cause", *(name for name in rows.columns if name not in ("_op", "_cause"))]
    return keyed.select(*map(column, names))


def _refuse_duplicates(fresh: DataFrame, engine: Engine, config: SourceConfig, others: DataFrame | None = None) -> None:
    """Raise DuplicateKey for a key that is null or not unique among the live rows to be."""
    good = fresh.where(F.col("_error").isNull())
    names = config.merge.primary_key
    keys = good.select("_key", *map(column, names))
    if others is not None:
        keys = keys.unionByName(others.where(F.col("_error").isNull()).select("_key", *map(column, names)))
    null: Any = F.lit(False)
    for name in names:
        null = null | column(name).isNull()
    twice = keys.groupBy("_key").agg(F.count("*").alias("__n"), *(F.first(column(name)).alias(name) for name in names))
    wrong = engine.to_arrow(twice.where((F.col("__n") > 1) | null).orderBy("_key").limit(1)).to_pylist()
    if wrong:
        shown = ", ".join(f"{name}={wrong[0][name]}" for name in names)
        reason = "is null" if wrong[0]["__n"] == 1 else f"occurs {wrong[0]['__n']} times"
        raise DuplicateKey(f"source '{config.name}': the primary key {shown} {reason}")
