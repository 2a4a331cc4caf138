"""Snapshots by primary key: the records of the files now, compared with the prior rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from changelog.algebra import diff as difference
from changelog.columns import column
from changelog.frames import any_of, united
from changelog.lazy_imports import F, np, pa, pc, pl
from changelog.ops import Op
from changelog.rows import Rows
from changelog.spark_algebra import as_retractions, diff
from operators.source.diff.alignment import Positions
from operators.source.diff.chunk_index import FETCHED_BYTES, FETCHED_ROWS, REGION_BYTES, ChunkList, Records, is_little, matched
from operators.source.diff.chunk_index import numbered as numbered_in
from operators.source.diff.chunk_spans import ChunkSpans, standing
from operators.source.diff.sides import image_hash, joined, numbered, unchanged
from operators.source.file_changes import FileRecord, Label, Part, whole
from operators.source.reading import FileReader
from operators.source.request import IngestRequest, IngestResult, PriorRows
from operators.source.unique_keys import UniqueKeys
from storage.delta.chosen_rows import InSpans
from storage.engines import Engine
from storage.formats import record_hashes
from storage.formats.content_chunks import ContentChunks

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyspark.sql import Column, DataFrame

    from storage.formats.record_hashes import RecordHashes


@dataclass(frozen=True, slots=True)
class Keyed:
    """Records under their keys.

    Attributes:
        rows: All records, on the driver but for large files.
        records: Entries of the files, with row counts where the records are on the driver.
    """

    rows: Rows
    records: tuple[FileRecord, ...]

    @property
    def frame(self) -> DataFrame:
        """All records in the engine."""
        return self.rows.as_frame()


def read(request: IngestRequest, parts: Sequence[Part], *, few: bool = False) -> Keyed:
    """Read parts under their keys; a reject's key is its place. A frame of large parts is read each time it is used. `few`: on the driver anyway."""
    files, engine = request.files, request.engine
    if not (few or files.is_small(parts)):
        return Keyed(files.large(engine, parts), tuple(part.record for part in parts))
    table, counted = files.on_driver(parts)
    return Keyed(Rows(engine, table), tuple(counted))


def rows_now(files: FileReader, engine: Engine, record: FileRecord, keys: pa.Array) -> pa.Table:
    """Return `_key` and `_row` of the records of a file that have one of the keys."""
    rows = files.frame(engine, [Part(record)]).select("_key", "_row")
    return engine.to_arrow(joined(rows, pa.table({"_key": keys}), engine, "left_semi"))


@dataclass(frozen=True, slots=True)
class _File:
    """A file to read: all of it, or the changed chunks of a changed file.

    Attributes:
        part: The part of the file to read.
        chunks: Its chunks now; None where the file is not chunked.
        before: Spans of its prior chunks; None where all of its prior rows are compared.
        stayed: Numbers of the unchanged chunks, before and now.
        spans: Spans of the chunks that changed, or of the records that changed.
        records: Number of records in these spans.
        same: Records of changed chunks that did not change themselves: `_row`, and the epoch (`__at`) and the row (`__stored`) under which they are stored.
        known: Its prior chunks; None where there are none.
    """

    part: Part
    chunks: ContentChunks | None = None
    before: ChunkSpans | None = None
    stayed: tuple[Positions, Positions] | None = None
    spans: ChunkSpans | None = None
    records: int = 0
    same: pl.DataFrame | None = None
    known: ChunkList | None = None


def _file(request: IngestRequest, part: Part) -> _File:
    record = request.files.undeclared(part.record)
    known = None if request.rebuilt or request.resume_points else request.chunk_lists.get(record.label)
    chunks = None if request.files.shape.riders else request.files.chunks(record, None if known is None else known.known, by_record=True)  # a record that is rolled back leaves the epoch that read it
    if chunks is None:
        return _File(replace(part, record=record))
    counted = replace(record, rows=chunks.records)
    if known is None:
        return _File(replace(part, record=counted, ranges=chunks.ranges()), chunks)
    return _changed_chunks(request, replace(part, record=counted), chunks, known)


def _changed_chunks(request: IngestRequest, part: Part, chunks: ContentChunks, known: ChunkList) -> _File:
    """Return a changed file with its changed chunks only, or all of it where most chunks changed."""
    left, right = matched(known, chunks, same_rows=_by_rows(request))
    before, rows = ChunkSpans.of(known), known.rows
    changed = np.ones(known.table.num_rows, np.bool_)
    changed[left] = False
    moved = left[rows[left] != chunks.rows[right]]
    rejects = cache(lambda: _rejects(request, part.record))
    changed[moved] = before.holding(*rejects(), len(changed))[moved] if len(moved) and request.reject_count else False
    changed = before.closed(changed)
    stays = ~changed[left]
    left, right = left[stays], right[stays]
    chosen = np.setdiff1d(np.arange(chunks.count), right, assume_unique=True)
    if not is_little(chunks, chosen):
        return _File(replace(part, ranges=chunks.ranges()), chunks, known=known)
    narrowed = replace(part, ranges=chunks.ranges(chosen, REGION_BYTES))
    one = _File(narrowed, chunks, before, (left, right), before.where(changed), int(np.diff(rows)[changed].sum()), known=known)
    return _changed_records(request, one, before.records(known, np.flatnonzero(changed)), chosen, rejects)


def _by_rows(request: IngestRequest) -> bool:
    """Return whether a record with another row number is another record."""
    return "source.row" in request.source.wanted


def _rejects(request: IngestRequest, record: FileRecord) -> tuple[Positions, Positions]:
    """Return epochs and rows of the rejects of a file, whose keys are their places."""
    if not request.reject_count or request.prior is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    rejects = request.prior.rows.where(F.col("_error").isNotNull() & (F.col("_file") == record.stored)).select("_epoch", "_row")
    found = request.engine.to_arrow(rejects)
    return found.column("_epoch").to_numpy(), found.column("_row").to_numpy()


def _changed_records(request: IngestRequest, one: _File, old: Records | None, chosen: Positions, rejects: Callable[[], tuple[Positions, Positions]]) -> _File:
    """Return a changed file with its changed records only, where the hashes of records tell these and they are few; else all of its changed chunks.

    Args:
        request: The request.
        one: The file with its changed chunks.
        old: The records of the prior chunks that changed.
        chosen: The numbers of the chunks that changed.
        rejects: Returns epochs and rows of rejects.
    """
    chunks = one.chunks
    assert chunks is not None  # the file has changed chunks
    hashes = _hashes(chunks, one.known, chosen)
    if old is None or hashes is None:
        return one
    now = numbered_in(chunks.rows, chosen)
    left, right = record_hashes.paired(old.hashes, hashes)
    moved = old.rows[left] != now[right]
    if not _by_rows(request):
        moved = moved & _among(rejects(), old.epochs[left], old.stored[left]) if request.reject_count and moved.any() else np.zeros(len(left), np.bool_)
    left, right = left[~moved], right[~moved]
    went, came = _all_but(left, len(old.rows)), _all_but(right, len(now))
    if came.sum() > FETCHED_ROWS:
        return one
    lost = ChunkSpans.around(np.zeros(int(went.sum()), np.int64), old.epochs[went], old.stored[went])
    same = pl.DataFrame({"_row": now[right], "__at": old.epochs[left], "__stored": old.stored[left]})
    ranges = request.files.ranges(one.part.record, chunks, now[came], REGION_BYTES)
    return replace(one, part=replace(one.part, ranges=ranges), spans=lost, records=int(went.sum()), same=same)


def _hashes(chunks: ContentChunks, known: ChunkList | None, chosen: Positions) -> RecordHashes | None:
    """Return the hashes of the records of some chunks of a file, new ones or known ones; None where one of them has none."""
    made = chunks.hashes_of(chosen)
    missing = np.flatnonzero(made.is_null().to_numpy(zero_copy_only=False))
    if known is not None and len(missing):
        stored = known.found(chunks.digests.take(pa.array(chosen[missing])))
        made = pc.replace_with_mask(made, made.is_null(), stored)
    return record_hashes.of_chunks(made, chunks.rows[chosen + 1] - chunks.rows[chosen])


def _among(rejects: tuple[Positions, Positions], epochs: Positions, rows: Positions) -> NDArray[np.bool_]:
    """Return which records are rejects, by their epochs and rows."""
    sides = (pl.DataFrame({"epoch": epoch.astype(np.int64), "row": row.astype(np.int64)}) for epoch, row in ((epochs, rows), rejects))
    records, refused = sides
    found: NDArray[np.bool_] = records.select(pl.struct("epoch", "row").is_in(refused.to_struct("one").implode())).to_series().to_numpy()
    return found


def ingest(request: IngestRequest) -> IngestResult:
    """The delta of a snapshot by key. Raises InputChanged for keys that are null or not unique, or gives what will."""
    changes = request.changes
    found = [_file(request, part) for part in whole(changes, [*changes.added, *changes.changed])]
    parts = [one.part for one in found]
    bound = sum(record.rows for record in (*changes.removed, *changes.changed)) + sum(part.size for part in parts) // 2
    if not parts and request.prior is not None:
        return IngestResult(Rows(request.engine, frame=as_retractions(_of_files(request.prior.rows, changes.removed), request.cause)), True, changes.now, (), bound)
    few = _are_few(request, found)
    fresh = read(request, parts, few=few)
    now = {record.label: record for record in (*changes.now, *fresh.records)}
    uncounted = tuple(part.record for part in parts if part.ranges is None) if not fresh.rows.are_here else ()
    made = IngestResult(None, False, tuple(now.values()), uncounted, bound, _refusing(request, found, fresh))
    if request.prior is None:
        return _of_nothing(request, found, fresh, made)
    near = request.prior.chosen(InSpans([one.spans.of_file(one.part.record.stored) for one in found if one.spans is not None])) if few else None
    done = _compared(request, request.prior, found, fresh, made) if near is None else _compared_here(request, near, found, fresh, made)
    return ingest(replace(request, chunk_lists={})) if done is None else done


def _are_few(request: IngestRequest, found: Sequence[_File]) -> bool:
    """Return whether only changed chunks are compared, few enough for the driver."""
    records, size = sum(one.records for one in found), sum(one.part.size for one in found)
    return not request.changes.removed and all(one.spans is not None for one in found) and records <= FETCHED_ROWS and size <= FETCHED_BYTES


def _of_nothing(request: IngestRequest, found: Sequence[_File], fresh: Keyed, made: IngestResult) -> IngestResult:
    """Return the delta of a source without prior rows."""
    caused = fresh.rows if request.fresh_cause == "ingest" else fresh.rows.through(lambda frame: frame.withColumn("_cause", F.lit(request.fresh_cause)))
    rows = caused.select(["_op", "_key", "_cause", *request.files.shape.columns])
    spans = {one.part.record.label: ChunkSpans.of_new_file(one.chunks, request.epoch) for one in found if one.chunks is not None}
    return replace(made, rows=rows, lists=_lists(found, spans))


def _compared(request: IngestRequest, stood: PriorRows, found: Sequence[_File], fresh: Keyed, made: IngestResult) -> IngestResult | None:
    """Return the delta from the prior rows; None where the chunk lists do not match the prior rows."""
    assert made.bound is not None  # as it was given
    difference = _difference(request, stood, found, fresh, made.bound)
    if difference is None:
        return None
    changed, partly = _op_rows(request, difference)
    rows = changed.withColumn("_cause", F.when(F.col("_op") == 0, F.lit(request.fresh_cause)).otherwise(F.col("_cause")))
    records = tuple(record.partly() if record.label in partly else record for record in made.files)
    spans = {label: spans for label, spans in difference.spans.items() if label not in partly}
    return replace(made, rows=Rows(request.engine, frame=rows), signed=True, files=records, bound=difference.bound, lists=_lists(found, spans))


def _compared_here(request: IngestRequest, old: pa.Table, found: Sequence[_File], fresh: Keyed, made: IngestResult) -> IngestResult | None:
    """Return the delta of changed chunks from their prior rows, all on the driver; None where the chunk lists do not match the prior rows."""
    new = fresh.rows.as_table()
    if old.num_rows != sum(one.records for one in found):
        return None
    compared = list(dict.fromkeys([*request.compared(), "_file"]))
    stayed, now = unchanged(old, new, compared)
    positions = pl.DataFrame({"_order": new.column("_order"), "_row": new.column("_row")})
    stay = positions[now].with_columns(__at=pl.Series(old.column("_epoch"))[stayed], __stored=pl.Series(old.column("_row"))[stayed])
    old, new = (rows.filter(pa.array(_all_but(places, rows.num_rows))) for rows, places in ((old, stayed), (new, now)))
    was, is_ = numbered(old, new, compared)
    before = pl.DataFrame({"__k": old.column("_key"), "__h": was, "__at": old.column("_epoch"), "__stored": old.column("_row")})
    left = pl.DataFrame({"_order": new.column("_order"), "_row": new.column("_row"), "__k": new.column("_key"), "__h": is_})
    names = ["_key", *request.files.shape.columns]
    kinds = new.select(names).schema
    came, gone = _without(new, left, before), _without(old, before, left)
    went, fresh_rows = (Rows(request.engine, rows.select(names).cast(kinds)) for rows in (gone, came))
    changed = difference(went, fresh_rows, request.cause).as_table()
    causes = pc.if_else(pc.equal(changed.column("_op"), int(Op.APPEND)), request.fresh_cause, changed.column("_cause"))
    rows = changed.set_column(changed.column_names.index("_cause"), "_cause", causes)
    few = request.engine.limits.are_small(rows.num_rows)
    spans = _spans(request, found, pl.concat([stay, left.join(before, on=["__k", "__h"], how="left").select(stay.columns)]))
    kept = Rows(request.engine, rows) if few else Rows(request.engine, frame=request.engine.from_arrow(rows))
    return replace(made, rows=kept, signed=True, bound=rows.num_rows, lists=_lists(found, spans))


def _all_but(places: Positions, count: int) -> NDArray[np.bool_]:
    """Return a mask of `count` places without some."""
    mask = np.ones(count, np.bool_)
    mask[places] = False
    return mask


def _without(rows: pa.Table, own: pl.DataFrame, others: pl.DataFrame) -> pa.Table:
    """Return the rows whose key and image the other version lacks. `own`: these rows' `__k` and `__h`."""
    return rows.take(own.with_row_index("__at_row").join(others, on=["__k", "__h"], how="anti").sort("__at_row")["__at_row"].to_arrow())


def _lists(found: Sequence[_File], spans: Mapping[Label, ChunkSpans]) -> dict[Label, ChunkList]:
    """Return the chunk lists of the files whose spans are known."""
    made: dict[Label, ChunkList] = {}
    for one in found:
        if one.chunks is not None and one.part.record.label in spans:
            kept = spans[one.part.record.label].column(one.chunks.count)
            made |= {} if kept is None else {one.part.record.label: ChunkList.by_spans(one.chunks, kept, one.known)}
    return made


def _refusing(request: IngestRequest, found: Sequence[_File], fresh: Keyed) -> Callable[[DataFrame], None] | None:
    """Return the check of the written delta for duplicate keys; None where the driver has checked all records. Raises InputChanged for those."""
    unique = UniqueKeys(request, _others(request, found))
    if not fresh.rows.are_here:
        return unique.check
    unique.check_table(fresh.rows.as_table())
    return None if unique.others is None else unique.check_others


@dataclass(frozen=True, slots=True)
class _Difference:
    """Prior rows and new rows that contain all differences.

    Attributes:
        old: Prior rows.
        new: New rows.
        compare: Columns that are compared.
        bound: Upper bound of the op rows.
        spans: Spans of each file's records after the delta, by the file's position.
    """

    old: DataFrame
    new: DataFrame
    compare: Sequence[str]
    bound: int
    spans: Mapping[Label, ChunkSpans] = field(default_factory=dict)


def _difference(request: IngestRequest, stood: PriorRows, found: Sequence[_File], fresh: Keyed, bound: int) -> _Difference | None:
    """Compare the records with the prior rows; None where the chunk lists do not match the prior rows."""
    whole_files = [*request.changes.removed, *(one.part.record for one in found if one.spans is None)]
    old = _before(request, stood, found, whole_files)
    compare = list(dict.fromkeys([*request.compared(), "_file"]))
    if fresh.rows.table is not None and all(one.chunks is None for one in found):
        return _Difference(old, fresh.frame, compare, bound)
    few = not whole_files and sum(one.records for one in found) <= FETCHED_ROWS and sum(one.part.size for one in found) <= FETCHED_BYTES
    return _differing(request, found, (old, fresh), compare, few=few)


def _before(request: IngestRequest, stood: PriorRows, found: Sequence[_File], whole_files: Sequence[FileRecord]) -> DataFrame:
    """Return the prior rows of whole files and of changed chunks."""
    narrowed = [(one.part.record.stored, one.spans) for one in found if one.spans is not None]
    if not narrowed:
        return _of_files(stood.rows, whole_files)
    near = stood.filtered(standing(narrowed, request.engine))
    return united(_of_files(stood.rows, whole_files), near) if whole_files else near


def _op_rows(request: IngestRequest, difference: _Difference) -> tuple[DataFrame, set[Label]]:
    """Return the op rows, and the positions of the files in which a correction was ignored."""
    new = difference.new.select("_key", *map(column, request.files.shape.columns))
    changed = diff(difference.old, new, request.cause, compare=difference.compare)
    if not request.resume_points:
        return changed, set()
    changed, passed = _beyond_floors(request, difference.old, changed)
    return changed, {record.label for record in request.changes.changed} if passed else set()


def _beyond_floors(request: IngestRequest, old: DataFrame, changed: DataFrame) -> tuple[DataFrame, bool]:
    """Remove corrections of records up to the resume points of their files. Also return whether there were any."""
    engine = request.engine
    below = [(F.col("_file") == path) & (F.col("_row") <= floor.row) for path, floor in request.resume_points.items()]
    again = pa.table({"_key": pa.array(sorted(key for floor in request.resume_points.values() for key in floor.marked), pa.binary())})
    kept = joined(old.where(any_of(below)).select("_key"), again, engine, "left_anti")
    corrections = changed.where(F.col("_op").isin(2, 3))
    passed = corrections.join(kept, "_key", "left_semi")
    if not engine.to_arrow(passed.select("_key"), 1).num_rows:
        return changed, False
    beyond = corrections.join(kept, "_key", "left_anti").select(*map(column, changed.columns))
    return united(changed.where(~F.col("_op").isin(2, 3)), beyond), True


def _differing(request: IngestRequest, found: Sequence[_File], sides: tuple[DataFrame, Keyed], compare: Sequence[str], *, few: bool) -> _Difference | None:
    """Find by hashes the rows that differ; None where the chunk lists do not match the prior rows.

    Only the ranges with differing rows are read a second time, and none where `few` is set. Raises InputChanged for a duplicate key.
    """
    (old, fresh), key, engine = sides, F.xxhash64("_key").alias("__k"), request.engine
    new = fresh.frame
    place = [F.col("_epoch").alias("__at"), F.col("_row").alias("__stored"), _is_near(found).alias("__near")]
    columns = (["*"], ["*"]) if few else (["_order", "_row"], [])
    hashes = (new.select(*columns[0], key, image_hash(new, compare).alias("__h")), old.select(*columns[1], key, image_hash(old, compare).alias("__h"), *place))
    tables = engine.side_by_side(*hashes)
    now, before = pl.DataFrame(tables[0].select(["_order", "_row", "__k", "__h"])), pl.DataFrame(tables[1].select(["__k", "__h", "__at", "__stored", "__near"]))
    if before["__near"].sum() != sum(one.records for one in found):
        return None
    twice = now.filter(pl.col("__k").is_duplicated())
    if twice.height:
        UniqueKeys(request, None).check(_with_hashes(new, twice, engine))
    came, gone = now.join(before, on=["__k", "__h"], how="anti"), before.join(now, on=["__k", "__h"], how="anti")
    spans = _spans(request, found, now.join(before, on=["__k", "__h"], how="left"))
    if few:
        picked = [_picked(table, rows, engine) for table, rows in zip(tables, (came, gone), strict=True)]
        return _Difference(picked[1], picked[0], compare, came.height + gone.height, spans)
    if not came.height:
        return _Difference(_with_hashes(old, gone, engine), new.limit(0), compare, gone.height, spans)
    again = _read_again(request, found, came) if fresh.rows.table is None else new
    return _Difference(_with_hashes(old, gone, engine), _with_hashes(again, came, engine), compare, came.height + gone.height, spans)


def _is_near(found: Sequence[_File]) -> Column:
    """Return whether a row belongs to a file whose changed chunks alone are compared."""
    paths = [one.part.record.stored for one in found if one.spans is not None]
    return F.col("_file").isin(paths) if paths else F.lit(False)


def _picked(table: pa.Table, found: pl.DataFrame, engine: Engine) -> DataFrame:
    """Return the rows on the driver whose key has one of the hashes, as a frame."""
    rows = table.filter(pc.is_in(table.column("__k"), value_set=found["__k"].to_arrow()))
    return engine.from_arrow(rows.drop_columns([name for name in ("__k", "__h", "__at", "__stored", "__near") if name in rows.column_names]))


def _read_again(request: IngestRequest, found: Sequence[_File], came: pl.DataFrame) -> DataFrame:
    """Read the ranges that contain new rows."""
    places = {int(str(order)): rows["_row"].to_numpy() for (order,), rows in came.group_by("_order")}
    held = [one for one in found if one.part.order in places]
    parts = [one.part if one.chunks is None else replace(one.part, ranges=one.chunks.holding(places[one.part.order])) for one in held]
    files, engine = request.files, request.engine
    return files.frame(engine, parts) if files.is_small(parts) else files.large(engine, parts, places).as_frame()


def _spans(request: IngestRequest, found: Sequence[_File], rows: pl.DataFrame) -> dict[Label, ChunkSpans]:
    """Return the spans of each file's records after the delta: unchanged records keep their epoch and row (`__at`, `__stored`), new ones get this run's."""
    placed = rows.with_columns(pl.col("__at").fill_null(request.epoch), pl.col("__stored").fill_null(pl.col("_row")))
    made = {}
    for one in (one for one in found if one.chunks is not None):
        own = placed.filter(pl.col("_order") == one.part.order).select("_row", "__at", "__stored")
        own = (own if one.same is None else pl.concat([own, one.same.cast(own.schema)])).sort("_row")
        chunks = one.chunks
        assert chunks is not None  # as was asked for
        numbers = np.searchsorted(chunks.rows, own["_row"].to_numpy(), side="right") - 1
        spans = ChunkSpans.around(numbers, own["__at"].to_numpy(), own["__stored"].to_numpy())
        made[one.part.record.label] = spans if one.before is None or one.stayed is None else spans.and_of(one.before.carried(*one.stayed))
    return made


def _with_hashes(frame: DataFrame, found: pl.DataFrame, engine: Engine) -> DataFrame:
    """The rows whose key has one of the hashes `__k`."""
    keys = pa.table({"__k": found["__k"].unique().to_arrow()})
    return joined(frame.withColumn("__k", F.xxhash64("_key")), keys, engine, "left_semi", "__k").drop("__k")


def _of_files(stood: DataFrame, records: Sequence[FileRecord]) -> DataFrame:
    paths = [record.stored for record in records]
    return stood.where(F.col("_file").isin(paths)) if paths else stood.limit(0)


def _others(request: IngestRequest, found: Sequence[_File]) -> DataFrame | None:
    """Return all prior rows if some are not compared, since a new key must not be among them; else None."""
    changes = request.changes
    read = {record.path for record in (*changes.added, *changes.changed, *changes.removed)}
    kept = any(record.path not in read and record.rows for record in changes.now)
    return request.prior_rows if kept or any(one.spans is not None for one in found) else None
