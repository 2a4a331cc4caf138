"""Snapshots without a primary key: each file is compared with its last version like a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from changelog.frames import chosen, united
from changelog.lazy_imports import np, pa, pc
from changelog.rows import Rows
from changelog.spark_algebra import as_retractions
from operators.source.diff.alignment import align, align_beyond
from operators.source.diff.chunk_index import (
    FETCHED_BYTES,
    FETCHED_ROWS,
    REGION_BYTES,
    ChunkList,
    Region,
    groups,
    is_little,
    matched,
    numbers_in,
    regions_between,
)
from operators.source.diff.relabelling import AlignedRange
from operators.source.diff.sides import Side, looked_at, new_hashes, of_file, old_hashes, stayed_within
from operators.source.diff.versions import FileChange, Versions
from operators.source.file_changes import FileRecord, Part
from operators.source.request import IngestRequest, IngestResult
from storage.formats.content_chunks import ContentChunks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


FEW_CHANGES: Final = 10_000
"""Op rows that stay on the driver, at most."""


def ingest(request: IngestRequest) -> IngestResult:
    """Return the delta of a snapshot: insert added files, retract removed ones, align changed ones."""
    changes = request.changes
    if request.prior is None or not (changes.removed or changes.changed):
        return _first_read(request, [*changes.added, *changes.changed])
    first = _first_read(request, changes.added)
    rows = _brought_in(request, first) if changes.added else []
    rows += [as_retractions(of_file(request.prior.rows, request.files, record), request.cause) for record in changes.removed]
    now, lists = {record.label: record for record in first.files}, dict(first.lists)
    bound = sum(record.rows for record in changes.removed) + (first.bound or 0)
    for record in changes.changed:
        change = _changed(request, request.files.undeclared(record))
        rows += change.rows
        now[record.label] = change.record
        lists |= {record.label: change.chunks} if change.chunks is not None else {}
        bound += change.bound
    return IngestResult(_all(request, rows), True, tuple(now.values()), first.uncounted, bound, lists=lists)


def _brought_in(request: IngestRequest, first: IngestResult) -> list[DataFrame | pa.Table]:
    return [] if first.rows is None else [first.rows.as_table() if first.rows.are_here else first.rows.as_frame()]


def _first_read(request: IngestRequest, records: Sequence[FileRecord]) -> IngestResult:
    """Return the delta of files without prior rows; large files are read in chunks."""
    parts, lists = [], {}
    for record in map(request.files.undeclared, records):
        chunks = request.files.chunks(record)
        if chunks is None:
            parts.append(Part(record))
            continue
        parts.append(Part(replace(record, rows=chunks.records), ranges=chunks.ranges()))
        lists[record.label] = ChunkList.of_new_file(chunks)
    return replace(appended(request, parts), lists=lists)


def appended(request: IngestRequest, read: Sequence[Part]) -> IngestResult:
    """Return the delta that inserts the records of parts."""
    files = request.files
    now = {record.label: record for record in request.changes.now}
    if files.is_small(read):
        table, counted = files.on_driver(read)
        now |= {record.label: record for record in counted}
        kept = table if "_row" in files.shape.hidden else table.drop_columns(["_row"])
        return IngestResult(Rows(request.engine, kept), False, tuple(now.values()), bound=kept.num_rows)
    now |= {part.record.label: part.record for part in read}
    bound = sum(part.size // 2 if part.ranges is None else part.record.rows for part in read)
    rows = files.large(request.engine, read)
    return IngestResult(rows if "_row" in files.shape.hidden else rows.without("_row"), False, tuple(now.values()), tuple(part.record for part in read if part.ranges is None), bound)


def _changed(request: IngestRequest, record: FileRecord) -> FileChange:
    """Return the delta of a changed file; only changed chunks are compared where the prior chunks are known."""
    before = None if request.rebuilt or record.path in request.resume_points else request.chunk_lists.get(record.label)
    chunks = request.files.chunks(record, None if before is None else before.known)
    counted = record if chunks is None else replace(record, rows=chunks.records)
    if chunks is not None and before is not None:
        change = _changed_chunks(request, counted, chunks, before)
        if change is not None:
            return change
    return _changed_file(request, counted, chunks)


def _changed_file(request: IngestRequest, record: FileRecord, chunks: ContentChunks | None) -> FileChange:
    """Return the delta of a file that is compared as a whole."""
    assert request.prior is not None  # else the file's rows are simply appended
    part = Part(record, ranges=None if chunks is None else chunks.ranges())
    stood, fresh = of_file(request.prior.rows, request.files, record), request.files.frame(request.engine, [part])
    old, new = old_hashes(request, stood), new_hashes(request, fresh)
    in_place = _is_read_again(request, record)
    if in_place and old.num_rows != new.num_rows:
        in_place = False
        old = old_hashes(request, of_file(request.prior.rows, request.files, record)) if request.prior.rows_replaced(record) else old
    left, right, whole = _same_places(old, new) if in_place else _aligned(request, record, old, new)
    places = [AlignedRange(slice(0, old.num_rows), slice(0, new.num_rows))]
    both = Versions(request, replace(record, rows=new.num_rows), Side(old), Side(new), (left, right), places, in_place)
    listed = ChunkList.by_labels(chunks, *both.ends(chunks.rows[:-1] - 1, chunks.rows[1:] - 2)) if whole and chunks is not None else None
    change = both.change(part, chunks, listed)
    return change if whole else replace(change, record=change.record.partly())


def _is_read_again(request: IngestRequest, record: FileRecord) -> bool:
    """Return whether an unchanged file is read again because its source was edited. Its records then keep their positions."""
    return request.rebuilt and record.path not in {one.path for one in (*request.delivered.changed, *request.delivered.added)} and record.path not in request.resume_points


def _same_places(old: pa.Table, new: pa.Table) -> tuple[Any, Any, bool]:
    """Align versions with the same number of records by position."""
    stayed = np.flatnonzero(_hashes(old) == _hashes(new))
    return stayed, stayed, True


def _changed_chunks(request: IngestRequest, record: FileRecord, chunks: ContentChunks, before: ChunkList) -> FileChange | None:
    """Return the delta of the changed chunks; None where many changed, or the prior rows do not match the chunk list."""
    stayed = matched(before, chunks, same_rows="source.row" in request.source.wanted)
    regions = regions_between(stayed, before.table.num_rows, chunks.count)
    chosen = numbers_in([region.new for region in regions])
    if not is_little(chunks, chosen):
        return None
    part = Part(record, ranges=chunks.ranges(chosen, REGION_BYTES))
    places = _places(before, chunks, regions)
    count, counts = places[-1].old.stop if places else 0, chunks.rows[chosen + 1] - chunks.rows[chosen]
    few = max(count, int(counts.sum())) <= FETCHED_ROWS and part.size <= FETCHED_BYTES
    was, now = looked_at(request, part, before, [one.old for one in regions], few=few)
    if was.hashes.num_rows != count:
        return None
    kept = stayed_within(request, was, now, [one.old for one in places], [one.new for one in places])
    both = Versions(request, record, was, now, kept, places)
    listed = before.changed(chunks, stayed, chosen, *both.ends(counts.cumsum() - counts, counts.cumsum() - 1))
    return both.change(part, chunks, listed)


def _places(before: ChunkList, now: ContentChunks, regions: Sequence[Region]) -> list[AlignedRange]:
    """Return the aligned ranges of regions: positions among the compared records, and the order keys around them."""
    old, new = groups(before.rows, [one.old for one in regions]), groups(now.rows, [one.new for one in regions])
    around = [(before.label_behind(one.old[0]), before.label_at(one.old[1])) for one in regions]
    return [AlignedRange(was, is_, low, high) for was, is_, (low, high) in zip(old, new, around, strict=True)]


def _hashes(table: pa.Table) -> Any:
    return table.column("__hash").to_numpy()


def _aligned(request: IngestRequest, record: FileRecord, old: pa.Table, new: pa.Table) -> tuple[Any, Any, bool]:
    """Return the positions of the records that stayed, before and now, and whether no change was ignored."""
    hashes = (old.column("__hash").to_numpy(), new.column("__hash").to_numpy())
    floor = request.resume_points.get(record.path)
    if floor is None:
        return *align(*hashes), True
    again = pc.is_in(old.column("_key"), value_set=pa.array(floor.marked, pa.binary())).to_numpy()
    left, right, passed = align_beyond(*hashes, floor.row, again)
    return left, right, not passed


def _all(request: IngestRequest, rows: Sequence[DataFrame | pa.Table]) -> Rows | None:
    """Return all op rows: on the driver where they are few and there already, else in the engine; None where there are none."""
    names = ["_op", "_key", "_cause", *request.files.shape.columns]
    tables = [one for one in rows if isinstance(one, pa.Table)]
    if not rows:
        return None
    if len(tables) == len(rows) and sum(one.num_rows for one in tables) <= FEW_CHANGES:
        kinds = pa.schema([request.files.schema().field(name) for name in names])
        return Rows(request.engine, pa.concat_tables([one.select(names).cast(kinds) for one in tables]))
    frames = [request.engine.from_arrow(one) if isinstance(one, pa.Table) else one for one in rows]
    return Rows(request.engine, frame=united(*(chosen(frame, names) for frame in frames)))
