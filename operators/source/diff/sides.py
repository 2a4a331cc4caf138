"""The two versions of a file that are compared: prior rows and rows read now, each with a hash of its content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from changelog.arrow_algebra import images
from changelog.equality import parts
from changelog.frames import of_keys
from changelog.lazy_imports import F, np, pa, pl
from operators.source.diff.alignment import Hashes, Mask, Pairs, Positions, align_ranges
from operators.source.diff.chunk_index import ChunkList
from operators.source.file_changes import FileRecord, Part
from operators.source.reading import FileReader
from operators.source.request import IngestRequest
from storage.engines import Engine

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


_SEEDS: Final = {"one": 1, "other": 2}


def of_file(stood: DataFrame, files: FileReader, record: FileRecord) -> DataFrame:
    """Return the rows of one file, by the range of keys with its prefix, so that the table's statistics help."""
    low = files.prefix(record)
    return stood.where((F.col("_key") >= F.lit(low)) & (F.col("_key") < F.lit(low + b"\xff")))


@dataclass(frozen=True, slots=True)
class Side:
    """One version of the compared rows: their hashes, and the rows themselves where they are on the driver."""

    hashes: pa.Table
    rows: pa.Table | None = None


def looked_at(request: IngestRequest, part: Part, before: ChunkList, bounds: Sequence[tuple[int, int]], *, few: bool) -> Sequence[Side]:
    """Return the prior and the new rows of ranges of chunks. `few`: with all columns and on the driver, so that differing rows need not be read again."""
    if few:
        old, new = _near(request, part.record, before, bounds).sort_by("_key"), request.files.on_driver([part])[0].sort_by("_row")
        return [Side(old.select(_key_columns(request)), old), Side(new.select(["_row"]), new)]
    stood, fresh = _standing(request, part.record, before, bounds), request.files.frame(request.engine, [part])
    names = (_key_columns(request), ["_row"])
    frames = [frame.select(*own, _hash(request, frame)) for frame, own in zip((stood, fresh), names, strict=True)]
    return [Side(_ordered(table, own[0])) for table, own in zip(request.engine.side_by_side(*frames), names, strict=True)]


def _near(request: IngestRequest, record: FileRecord, before: ChunkList, bounds: Sequence[tuple[int, int]]) -> pa.Table:
    """Return the prior rows of a file in ranges of chunks, on the driver."""
    assert request.prior is not None  # else nothing is known
    prefix = request.files.prefix(record)
    return request.prior.in_key_ranges([(prefix + low, prefix + high) for low, high in before.ranges(bounds)])


def _standing(request: IngestRequest, record: FileRecord, before: ChunkList, bounds: Sequence[tuple[int, int]]) -> DataFrame:
    """Return the same as a frame."""
    assert request.prior is not None  # else nothing is known
    prefix = request.files.prefix(record)
    return request.prior.filtered(lambda rows: before.standing(of_file(rows, request.files, record), bounds, prefix, request.engine))


def stayed_within(request: IngestRequest, was: Side, now: Side, before: Sequence[slice], after: Sequence[slice]) -> Pairs:
    """Return the positions of the records that stayed, before and now: ranges of the old version are aligned with as many of the new one."""
    if was.rows is None or now.rows is None:
        old_hashes, new_hashes = (side.hashes.column("__hash").to_numpy() for side in (was, now))
        return align_ranges(before, after, lambda left, right: old_hashes[left] == new_hashes[right], lambda left, right: (old_hashes[left], new_hashes[right]))
    names = request.compared_contents()
    old, new = was.rows.select(names).cast(now.rows.select(names).schema), now.rows.select(names)
    return align_ranges(before, after, partial(_alike, images(old), images(new)), lambda left, right: numbered(old.take(left), new.take(right), names))


def numbered(old: pa.Table, new: pa.Table, names: Sequence[str]) -> tuple[Hashes, Hashes]:
    """Number rows on the driver by the columns `names`, in place of a hash. Equal numbers mean equal printed values.

    Rows are compared by two hashes of 64 bits: comparing all columns takes ten times as long.
    """
    rows = pl.DataFrame(images(pa.concat_tables([old.select(names).cast(new.select(names).schema), new.select(names)])))
    hashes = pl.DataFrame([rows.hash_rows(seed).alias(name) for name, seed in _SEEDS.items()])
    numbers = hashes.with_row_index("at").select(pl.col("at").first().over(hashes.columns).cast(pl.Int64)).to_series().to_numpy()
    return numbers[: old.num_rows], numbers[old.num_rows :]


def unchanged(old: pa.Table, new: pa.Table, names: Sequence[str]) -> tuple[Positions, Positions]:
    """Return the places, before and now, of rows on the driver that have the same key, once on each side, and print the same in the columns `names`.

    Most rows of changed chunks did not change. To compare pairs of them takes a fraction of the time of hashing all.
    """
    before, now = (pl.DataFrame({"key": side.column("_key")}).with_row_index(at) for side, at in ((old, "left"), (new, "right")))
    met = before.join(now, on="key")
    left, right = met["left"].to_numpy().astype(np.int64), met["right"].to_numpy().astype(np.int64)
    alike = _alike(images(old.select(names).cast(new.select(names).schema)), images(new.select(names)), left, right)
    return left[alike], right[alike]


def _alike(old: Mapping[str, pl.Series], new: Mapping[str, pl.Series], left: Positions, right: Positions) -> Mask:
    """Which rows at some places, before and now, print the same in all columns."""
    found = np.ones(len(left), np.bool_)
    for name, values in new.items():
        found &= old[name][left].eq_missing(values[right]).to_numpy()
    return found


def old_hashes(request: IngestRequest, stood: DataFrame) -> pa.Table:
    """Return `_key`, `__hash` and, where it is stored, `_row` of a file's prior rows, in order."""
    return _ordered(request.engine.to_arrow(stood.select(*_key_columns(request), _hash(request, stood))), "_key")


def _key_columns(request: IngestRequest) -> list[str]:
    """Return the columns of prior rows that are compared in addition to their hashes."""
    return ["_key", *(name for name in ("_row",) if name in request.files.shape.hidden)]


def new_hashes(request: IngestRequest, fresh: DataFrame) -> pa.Table:
    """Return `_row` and `__hash` of a file's records, in order."""
    return _ordered(request.engine.to_arrow(fresh.select("_row", _hash(request, fresh))), "_row")


def _ordered(table: pa.Table, by: str) -> pa.Table:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)  # a table is no array
    return frame.sort(by).to_arrow().cast(table.schema).combine_chunks()


def _hash(request: IngestRequest, frame: DataFrame) -> Column:
    """Return a 64-bit hash of the compared columns: values, undeclared fields, error."""
    return image_hash(frame, request.compared_contents()).alias("__hash")


FEW_KEYS: Final = 100_000
"""Keys that are broadcast to every task, at most; more are shuffled."""


def image_hash(frame: DataFrame, names: Sequence[str]) -> Column:
    """Return a hash of columns that is equal for equal printed values."""
    return F.xxhash64(*(side for part in parts(frame, names) for side in (part, part.isNull())))


def joined(frame: DataFrame, keys: pa.Table, engine: Engine, how: str, on: str = "_key") -> DataFrame:
    """Join a frame with keys on the driver; few keys are broadcast."""
    other = engine.from_arrow(keys)
    few = F.broadcast(other) if keys.num_rows <= FEW_KEYS else other
    return of_keys(frame, few, on) if how == "left_semi" else frame.join(few, on, how)
