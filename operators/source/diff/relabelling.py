"""Keys of records that are new in a file, and rows whose position in the file changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from changelog.columns import column
from changelog.frames import without
from changelog.keys.positions import labels_between, parse_label, row_label, row_labels
from changelog.lazy_imports import F, np, pa
from operators.source.diff.sides import joined
from operators.source.file_changes import Label
from operators.source.request import IngestRequest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame





@dataclass(frozen=True, slots=True)
class AlignedRange:
    """Ranges of records that are aligned with each other.

    Attributes:
        old: Positions among the prior records that are compared.
        new: Positions among the new records.
        low: Order key of the record before the range; None at the beginning.
        high: Order key of the record after the range; None at the end.
    """

    old: slice
    new: slice
    low: Label | None = None
    high: Label | None = None


def with_row(request: IngestRequest, rows: DataFrame) -> DataFrame:
    """Drop the row number where the source does not store it."""
    return rows if "_row" in request.files.shape.hidden else without(rows, "_row")


def new_keys(old: pa.ChunkedArray, stayed: tuple[Any, Any], came: Any, prefix: bytes, around: AlignedRange) -> pa.Array:
    """Return a key for each new record, between the old record before it and the next one that stays."""
    made: list[pa.Array] = [pa.array([], pa.binary())]
    left, right = stayed
    places = np.searchsorted(right, came)
    start = 0
    while start < len(came):
        place = int(places[start])
        stop = int(np.searchsorted(places, place, side="right"))
        end = min(int(left[place]), around.old.stop) if place < len(left) else around.old.stop
        low = _label(old[end - 1].as_py(), len(prefix)) if end > around.old.start else around.low
        high = _label(old[end].as_py(), len(prefix)) if end < around.old.stop else around.high
        made.append(_run(prefix, low, high, stop - start))
        start = stop
    return pa.concat_arrays(made)


def _run(prefix: bytes, low: Label | None, high: Label | None, count: int) -> pa.Array:
    if high is None:
        return row_labels(prefix, np.arange(count) + (low[0] if low else 0) + 1)
    return pa.array([prefix + row_label(label) for label in labels_between(low, high, count)], pa.binary())


def _label(key: bytes, skip: int) -> Label:
    return parse_label(key, skip)[0]


def relabelled(request: IngestRequest, fresh: DataFrame, labels: pa.Table) -> DataFrame:
    """Return the new records of a file under their new keys."""
    key = F.when(F.col("_error").isNull(), F.col("__label")).otherwise(F.concat(F.col("__label"), F.lit(b"!")))
    labelled = joined(fresh.drop("_key"), labels, request.engine, "inner", on="_row")
    rows = labelled.withColumns({"_key": key, "_cause": F.lit(request.fresh_cause)})
    return with_row(request, rows.select(*map(column, fresh.columns)))


def relabelled_on_driver(request: IngestRequest, fresh: pa.Table, labels: pa.Array) -> pa.Table:
    """Return the same on the driver; `labels` are in the order of the records."""
    marked = zip(labels.to_pylist(), fresh.column("_error").is_valid().to_pylist(), strict=True)
    own = {"_key": pa.array([label + b"!" if bad else label for label, bad in marked], pa.binary()), "_cause": pa.repeat(request.fresh_cause, fresh.num_rows)}
    return pa.table({name: own.get(name, fresh.column(name)) for name in fresh.column_names})


def moved_rows(request: IngestRequest, stood: DataFrame, old: pa.Table, new: pa.Table, stayed: tuple[Any, Any]) -> list[DataFrame]:
    """Return corrections of unchanged records whose row number changed, for pipelines that read `$source.row`."""
    left, right = stayed
    before = old.column("_row").take(pa.array(left)).fill_null(0).to_numpy()
    after = new.column("_row").take(pa.array(right)).to_numpy()
    moved = np.flatnonzero(before != after)
    if not len(moved):
        return []
    moves = pa.table({"_key": old.column("_key").take(pa.array(left[moved])), "__now": pa.array(after[moved])})
    rows = joined(stood, moves, request.engine, "inner")
    sides = rows.withColumn("_op", F.explode(F.array(F.lit(2).cast("tinyint"), F.lit(3).cast("tinyint"))))
    now = F.when(F.col("_op") == 3, F.col("__now")).otherwise(F.col("_row"))
    renumbered = sides.withColumns({"_row": now, "_cause": F.lit(request.cause)})
    return [renumbered.select("_op", "_key", "_cause", *(column(name) for name in stood.columns if name != "_key"))]
