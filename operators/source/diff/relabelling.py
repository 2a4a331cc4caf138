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
    """Records that are aligned with each other: where they are among those that were looked at, before and now; the labels around them (None: nothing there)."""

    old: slice
    new: slice
    low: Label | None = None
    high: Label | None = None


def with_row(request: IngestRequest, rows: DataFrame) -> DataFrame:
    """Op rows that were read, with the row number only where it is kept."""
    return rows if "_row" in request.files.shape.hidden else without(rows, "_row")


def new_keys(old: pa.ChunkedArray, stayed: tuple[Any, Any], came: Any, prefix: bytes, around: AlignedRange) -> pa.Array:
    """A key for each new record of a place: behind the old record before it, one that goes too, and before the next that stays."""
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
    """The new records of a file under their labels."""
    key = F.when(F.col("_error").isNull(), F.col("_label")).otherwise(F.concat(F.col("_label"), F.lit(b"!")))
    labelled = joined(fresh.drop("_key"), labels, request.engine, "inner", on="_row")
    rows = labelled.withColumns({"_key": key, "_cause": F.lit(request.fresh_cause)})
    return with_row(request, rows.select(*map(column, fresh.columns)))


def relabelled_on_driver(request: IngestRequest, fresh: pa.Table, labels: pa.Array) -> pa.Table:
    """The same on the driver, the labels in the order of the records."""
    marked = zip(labels.to_pylist(), fresh.column("_error").is_valid().to_pylist(), strict=True)
    own = {"_key": pa.array([label + b"!" if bad else label for label, bad in marked], pa.binary()), "_cause": pa.repeat(request.fresh_cause, fresh.num_rows)}
    return pa.table({name: own.get(name, fresh.column(name)) for name in fresh.column_names})


def moved_rows(request: IngestRequest, stood: DataFrame, old: pa.Table, new: pa.Table, stayed: tuple[Any, Any]) -> list[DataFrame]:
    """Corrections of records that stayed but have another row number now, for a pipeline that reads `$source.row`."""
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
    told = sides.withColumns({"_row": now, "_cause": F.lit(request.cause)})
    return [told.select("_op", "_key", "_cause", *(column(name) for name in stood.columns if name != "_key"))]
