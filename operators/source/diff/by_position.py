"""Sources without a primary key: each file is diffed with its last version like a text (DESIGN section 6, `snapshot`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from changelog.arrow_algebra import signed
from changelog.columns import column
from changelog.frames import chosen, united, without
from changelog.keys.positions import labels_between, parse_label, row_label, row_labels
from changelog.lazy_imports import F, np, pa, pc
from changelog.ops import Op
from changelog.spark_algebra import as_retractions, repair
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
from operators.source.diff.sides import Side, joined, looked_at, new_hashes, of_file, old_hashes
from operators.source.file_changes import FileRecord, Label, Part
from operators.source.reading import holding
from operators.source.request import IngestRequest, IngestResult

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage.formats.content_chunks import ContentChunks

FEW_CHANGES: Final = 10_000
"""So many op rows that are on the driver stay there."""


def ingest(intake: IngestRequest) -> IngestResult:
    """The delta of a snapshot: rows of added files come, rows of removed ones go, changed files are aligned."""
    changes = intake.changes
    if intake.before is None or not (changes.removed or changes.changed):
        return _first_read(intake, [*changes.added, *changes.changed])
    first = _first_read(intake, changes.added)
    rows = _brought_in(intake, first) if changes.added else []
    rows += [as_retractions(of_file(intake.before.rows, intake.files, record), intake.cause) for record in changes.removed]
    now, lists = {record.label: record for record in first.files}, dict(first.lists)
    bound = sum(record.rows for record in changes.removed) + (first.bound or 0)
    for record in changes.changed:
        change = _changed(intake, intake.files.undeclared(record))
        rows += change.rows
        now[record.label] = change.record
        lists |= {record.label: change.stretches} if change.stretches is not None else {}
        bound += change.bound
    table, frame = _all(intake, rows)
    return IngestResult(table, frame, True, tuple(now.values()), first.uncounted, bound, lists=lists)


def _brought_in(intake: IngestRequest, first: IngestResult) -> list[DataFrame | pa.Table]:
    if first.table is not None:
        return [first.table]
    return [] if first.frame is None else [first.frame]


def _first_read(intake: IngestRequest, records: Sequence[FileRecord]) -> IngestResult:
    """The delta that brings the records of files in of which nothing stood, large ones in stretches."""
    parts, lists = [], {}
    for record in map(intake.files.undeclared, records):
        stretches = intake.files.stretches(record)
        if stretches is None:
            parts.append(Part(record))
            continue
        parts.append(Part(replace(record, rows=stretches.records), ranges=stretches.ranges()))
        lists[record.label] = ChunkList.of_new_file(stretches)
    return replace(appended(intake, parts), lists=lists)


def appended(intake: IngestRequest, read: Sequence[Part]) -> IngestResult:
    """The delta that only brings the records of some parts in."""
    files = intake.files
    now = {record.label: record for record in intake.changes.now}
    if files.is_small(read):
        table, counted = files.small(read)
        now |= {record.label: record for record in counted}
        kept = table if "_row" in files.shape.hidden else table.drop_columns(["_row"])
        return IngestResult(kept, None, False, tuple(now.values()), bound=kept.num_rows)
    now |= {part.record.label: part.record for part in read}
    bound = sum(part.size // 2 if part.ranges is None else part.record.rows for part in read)
    rows = with_row(intake, files.large(intake.engine, read))
    return IngestResult(None, rows, False, tuple(now.values()), tuple(part.record for part in read if part.ranges is None), bound)


def with_row(intake: IngestRequest, rows: DataFrame) -> DataFrame:
    """Op rows that were read, with the row number only where it is kept."""
    return rows if "_row" in intake.files.shape.hidden else without(rows, "_row")


@dataclass(frozen=True, slots=True)
class _Change:
    """What became of a changed file: op rows, its record, the number of op rows at most, its stretches where they are known."""

    rows: list[DataFrame | pa.Table]
    record: FileRecord
    bound: int
    stretches: ChunkList | None


@dataclass(frozen=True, slots=True)
class _Place:
    """Records that are aligned with each other: where they are among those that were looked at, before and now; the labels around them (None: nothing there)."""

    old: slice
    new: slice
    low: Label | None = None
    high: Label | None = None


def _changed(intake: IngestRequest, record: FileRecord) -> _Change:
    """The delta of a changed file. Of one whose stretches are known only those are looked at that are not the same."""
    stretches = intake.files.stretches(record)
    told = record if stretches is None else replace(record, rows=stretches.records)
    before = None if stretches is None or intake.rebuilt or record.path in intake.floors else intake.lists.get(record.label)
    if stretches is not None and before is not None:
        change = _changed_stretches(intake, told, stretches, before)
        if change is not None:
            return change
    return _changed_file(intake, told, stretches)


def _changed_file(intake: IngestRequest, record: FileRecord, stretches: ContentChunks | None) -> _Change:
    """The delta of a file of which all is looked at."""
    assert intake.before is not None  # else the file's rows are simply appended
    part = Part(record, ranges=None if stretches is None else stretches.ranges())
    stood, fresh = of_file(intake.before.rows, intake.files, record), intake.files.frame(intake.engine, [part])
    old, new = old_hashes(intake, stood), new_hashes(intake, fresh)
    in_place = _is_read_again(intake, record)
    if in_place and old.num_rows != new.num_rows:
        in_place = False
        old = old_hashes(intake, of_file(intake.before.rows, intake.files, record)) if intake.before.resigned(record) else old
    left, right, whole = _same_places(old, new) if in_place else _aligned(intake, record, old, new)
    places = [_Place(slice(0, old.num_rows), slice(0, new.num_rows))]
    both = _Versions(intake, replace(record, rows=new.num_rows), Side(old), Side(new), (left, right), places, in_place)
    listed = ChunkList.by_labels(stretches, *both.ends(stretches.rows[:-1] - 1, stretches.rows[1:] - 2)) if whole and stretches is not None else None
    change = both.change(part, stretches, listed)
    return change if whole else replace(change, record=change.record.partly())


def _is_read_again(intake: IngestRequest, record: FileRecord) -> bool:
    """Whether a file is as it was, and looked at since its source was edited: then each record is the one in its place."""
    return intake.rebuilt and record.path not in {one.path for one in (*intake.delivered.changed, *intake.delivered.added)} and record.path not in intake.floors


def _same_places(old: pa.Table, new: pa.Table) -> tuple[Any, Any, bool]:
    """`_aligned` of as many records as there were: those stayed that are the same in the same place."""
    stayed = np.flatnonzero(_hashes(old) == _hashes(new))
    return stayed, stayed, True


def _changed_stretches(intake: IngestRequest, record: FileRecord, stretches: ContentChunks, before: ChunkList) -> _Change | None:
    """The delta of a file that is compared with the stretches that it had; None where too many changed, or other records stand than they say."""
    stayed = matched(before, stretches, same_rows="source.row" in intake.source.wanted)
    regions = regions_between(stayed, before.table.num_rows, stretches.count)
    chosen = numbers_in([region.new for region in regions])
    if not is_little(stretches, chosen):
        return None
    part = Part(record, ranges=stretches.ranges(chosen, REGION_BYTES))
    places = _places(before, stretches, regions)
    count, counts = places[-1].old.stop if places else 0, stretches.rows[chosen + 1] - stretches.rows[chosen]
    few = max(count, int(counts.sum())) <= FETCHED_ROWS and part.size <= FETCHED_BYTES
    was, now = looked_at(intake, part, before, [one.old for one in regions], few=few)
    if was.hashes.num_rows != count:
        return None
    pairs = [align(_hashes(was.hashes)[place.old], _hashes(now.hashes)[place.new]) for place in places]
    both = _Versions(intake, record, was, now, _shifted_pairs(pairs, places), places)
    listed = before.changed(stretches, stayed, chosen, *both.ends(counts.cumsum() - counts, counts.cumsum() - 1))
    return both.change(part, stretches, listed)


def _having(rows: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    """Those of the rows that have one of some values."""
    return rows.filter(pc.is_in(rows.column(name), value_set=values))


def _places(before: ChunkList, now: ContentChunks, regions: Sequence[Region]) -> list[_Place]:
    """Where the records of regions are among those that are looked at, and the labels around them."""
    old, new = groups(before.rows, [one.old for one in regions]), groups(now.rows, [one.new for one in regions])
    around = [(before.label_behind(one.old[0]), before.label_at(one.old[1])) for one in regions]
    return [_Place(was, is_, low, high) for was, is_, (low, high) in zip(old, new, around, strict=True)]


def _hashes(table: pa.Table) -> Any:
    return table.column("_hash").to_numpy()


def _shifted_pairs(pairs: Sequence[tuple[Any, Any]], places: Sequence[_Place]) -> tuple[Any, Any]:
    """What stayed in each place as positions among all that was looked at."""
    none = np.empty(0, np.int64)
    left = np.concatenate([none, *(pair[0] + place.old.start for pair, place in zip(pairs, places, strict=True))])
    right = np.concatenate([none, *(pair[1] + place.new.start for pair, place in zip(pairs, places, strict=True))])
    return left, right


@dataclass(frozen=True)
class _Versions:
    """What was looked at of a file before and now, and the positions of what stayed."""

    intake: IngestRequest
    record: FileRecord
    was: Side
    now: Side
    stayed: tuple[Any, Any]
    places: Sequence[_Place]
    in_place: bool = False
    """Whether the others stand in the places that they had, and keep their labels."""

    @property
    def old(self) -> pa.Table:
        """`old_hashes`."""
        return self.was.hashes

    @property
    def new(self) -> pa.Table:
        """`new_hashes`."""
        return self.now.hashes

    @property
    def prefix(self) -> bytes:
        """The first bytes of the keys."""
        return self.intake.files.prefix(self.record)

    @cached_property
    def came(self) -> Any:
        """Positions of the records that are new."""
        return np.setdiff1d(np.arange(self.new.num_rows), self.stayed[1], assume_unique=True)

    @cached_property
    def gone(self) -> pa.Table:
        """`_key` of the records that go."""
        gone = np.setdiff1d(np.arange(self.old.num_rows), self.stayed[0], assume_unique=True)
        return pa.table({"_key": self.old.column("_key").take(pa.array(gone))})

    @cached_property
    def keys(self) -> pa.Array:
        """The keys of the new records."""
        if self.in_place:
            return pa.array([key.removesuffix(b"!") for key in self.gone.column("_key").to_pylist()], pa.binary())
        bounds = [np.searchsorted(self.came, (place.new.start, place.new.stop)) for place in self.places]
        made = [_new_keys(self.old.column("_key"), self.stayed, self.came[low:high], self.prefix, place) for place, (low, high) in zip(self.places, bounds, strict=True)]
        return pa.concat_arrays([pa.array([], pa.binary()), *made])

    def ends(self, first: Any, last: Any) -> tuple[pa.Array, pa.Array]:
        """The labels of the records at some positions, and at others."""
        return self._labels(first), self._labels(last)

    def _labels(self, positions: Any) -> pa.Array:
        left, right = self.stayed
        everything = pa.concat_arrays([self.old.column("_key").combine_chunks(), self.keys])
        at = np.empty(self.new.num_rows, np.int64)
        at[right], at[self.came] = left, self.old.num_rows + np.arange(len(self.came))
        skip = len(self.prefix)
        return pa.array([key[skip:].removesuffix(b"!") for key in everything.take(pa.array(at[positions])).to_pylist()], pa.binary())

    def change(self, part: Part, stretches: ContentChunks | None, listed: ChunkList | None) -> _Change:
        """The delta. `part`: what was read; `listed`: the file's stretches as they are now."""
        rows = [self._taken()] if self.gone.num_rows else []
        rows += [self._brought(part, stretches)] if len(self.came) else []
        if self.in_place and rows:
            rows = [repair(united(*(self.intake.engine.from_arrow(one) if isinstance(one, pa.Table) else one for one in rows)))]
        bound = self.gone.num_rows + len(self.came)
        if "source.row" in self.intake.source.wanted:
            rows += _shifted(self.intake, self._stood(), self.old, self.new, self.stayed)
            bound += 2 * len(self.stayed[0])
        return _Change(rows, replace(self.record, dense=self.record.dense and (self.in_place or self._dense())), bound, listed)

    def _stood(self) -> DataFrame:
        """The live rows of the file, at least those that were looked at."""
        assert self.intake.before is not None  # else nothing was compared
        return of_file(self.intake.before.rows, self.intake.files, self.record) if self.was.rows is None else self.intake.engine.from_arrow(self.was.rows)

    def _taken(self) -> DataFrame | pa.Table:
        """The rows that go, taken back."""
        if self.was.rows is not None:
            return signed(_having(self.was.rows, "_key", self.gone.column("_key")), Op.RETRACT, self.intake.cause)
        return as_retractions(joined(self._stood(), self.gone, self.intake.engine, "left_semi"), self.intake.cause)

    def _brought(self, part: Part, stretches: ContentChunks | None) -> DataFrame | pa.Table:
        """The rows that are new."""
        files, rows = self.intake.files, self.new.column("_row").take(pa.array(self.came))
        if self.now.rows is not None:
            return _relabelled_rows(self.intake, _having(self.now.rows, "_row", rows).sort_by("_row"), self.keys)
        if stretches is not None:
            frame = files.frame(self.intake.engine, [replace(part, ranges=stretches.holding(rows.to_numpy()))])
        elif files.is_small([part]):
            frame = files.frame(self.intake.engine, [part])
        else:
            frame = files.spread(self.intake.engine, self.record, holding(files.tasks(part), rows.to_numpy()))
        return _relabelled(self.intake, frame, pa.table({"_row": rows, "_label": self.keys}))

    def _dense(self) -> bool:
        """Whether record n still has label n."""
        rows = self.new.column("_row").take(pa.array(self.came)).combine_chunks()
        return not self.gone.num_rows and self.keys.equals(row_labels(self.prefix, rows.to_numpy()))


def _aligned(intake: IngestRequest, record: FileRecord, old: pa.Table, new: pa.Table) -> tuple[Any, Any, bool]:
    """Positions of the records that stayed, before and now; whether nothing was passed over."""
    hashes = (old.column("_hash").to_numpy(), new.column("_hash").to_numpy())
    floor = intake.floors.get(record.path)
    if floor is None:
        return *align(*hashes), True
    again = pc.is_in(old.column("_key"), value_set=pa.array(floor.marked, pa.binary())).to_numpy()
    left, right, passed = align_beyond(*hashes, floor.row, again)
    return left, right, not passed


def _new_keys(old: pa.ChunkedArray, stayed: tuple[Any, Any], came: Any, prefix: bytes, around: _Place) -> pa.Array:
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


def _relabelled(intake: IngestRequest, fresh: DataFrame, labels: pa.Table) -> DataFrame:
    """The new records of a file under their labels."""
    key = F.when(F.col("_error").isNull(), F.col("_label")).otherwise(F.concat(F.col("_label"), F.lit(b"!")))
    labelled = joined(fresh.drop("_key"), labels, intake.engine, "inner", on="_row")
    rows = labelled.withColumns({"_key": key, "_cause": F.lit(intake.fresh_cause)})
    return with_row(intake, rows.select(*map(column, fresh.columns)))


def _relabelled_rows(intake: IngestRequest, fresh: pa.Table, labels: pa.Array) -> pa.Table:
    """The same on the driver, the labels in the order of the records."""
    marked = zip(labels.to_pylist(), fresh.column("_error").is_valid().to_pylist(), strict=True)
    own = {"_key": pa.array([label + b"!" if bad else label for label, bad in marked], pa.binary()), "_cause": pa.repeat(intake.fresh_cause, fresh.num_rows)}
    return pa.table({name: own.get(name, fresh.column(name)) for name in fresh.column_names})


def _shifted(intake: IngestRequest, stood: DataFrame, old: pa.Table, new: pa.Table, stayed: tuple[Any, Any]) -> list[DataFrame]:
    """Corrections of records that stayed but have another row number now, for a pipeline that reads `$source.row`."""
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


def _all(intake: IngestRequest, rows: Sequence[DataFrame | pa.Table]) -> tuple[pa.Table | None, DataFrame | None]:
    """All of some op rows: as a table where they are few and all on the driver, else as a frame; neither where there are none."""
    names = ["_op", "_key", "_cause", *intake.files.shape.columns]
    tables = [one for one in rows if isinstance(one, pa.Table)]
    if not rows:
        return None, None
    if len(tables) == len(rows) and sum(one.num_rows for one in tables) <= FEW_CHANGES:
        kinds = pa.schema([intake.files.schema().field(name) for name in names])
        return pa.concat_tables([one.select(names).cast(kinds) for one in tables]), None
    frames = [intake.engine.from_arrow(one) if isinstance(one, pa.Table) else one for one in rows]
    return None, united(*(chosen(frame, names) for frame in frames))
