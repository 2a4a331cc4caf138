"""The delta of one compared file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from changelog.arrow_algebra import signed
from changelog.frames import united
from changelog.keys.positions import row_labels
from changelog.lazy_imports import np, pa, pc
from changelog.ops import Op
from changelog.spark_algebra import as_retractions, repair
from operators.source.diff.chunk_index import (
    ChunkList,
)
from operators.source.diff.relabelling import AlignedRange, moved_rows, new_keys, relabelled, relabelled_on_driver
from operators.source.diff.sides import Side, joined, of_file
from operators.source.file_changes import FileRecord, Part
from operators.source.reading import holding
from operators.source.request import IngestRequest
from storage.formats.content_chunks import ContentChunks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame



@dataclass(frozen=True, slots=True)
class FileChange:
    """The change of one file.

    Attributes:
        rows: Op rows.
        record: The file's new entry.
        bound: Upper bound of the op rows.
        chunks: Its chunk list, where known.
    """

    rows: list[DataFrame | pa.Table]
    record: FileRecord
    bound: int
    chunks: ChunkList | None


def _having(rows: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    """Return the rows that have one of the values."""
    return rows.filter(pc.is_in(rows.column(name), value_set=values))


@dataclass(frozen=True)
class Versions:
    """The compared records of a file before and now, and the positions of the records that stayed."""

    request: IngestRequest
    record: FileRecord
    was: Side
    now: Side
    stayed: tuple[Any, Any]
    places: Sequence[AlignedRange]
    in_place: bool = False
    """Whether the other records keep their positions and order keys."""

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
        return self.request.files.prefix(self.record)

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
        made = [new_keys(self.old.column("_key"), self.stayed, self.came[low:high], self.prefix, place) for place, (low, high) in zip(self.places, bounds, strict=True)]
        return pa.concat_arrays([pa.array([], pa.binary()), *made])

    def ends(self, first: Any, last: Any) -> tuple[pa.Array, pa.Array]:
        """Return the order keys of the records at the first positions, and at the last ones."""
        return self._labels(first), self._labels(last)

    def _labels(self, positions: Any) -> pa.Array:
        left, right = self.stayed
        everything = pa.concat_arrays([self.old.column("_key").combine_chunks(), self.keys])
        at = np.empty(self.new.num_rows, np.int64)
        at[right], at[self.came] = left, self.old.num_rows + np.arange(len(self.came))
        skip = len(self.prefix)
        return pa.array([key[skip:].removesuffix(b"!") for key in everything.take(pa.array(at[positions])).to_pylist()], pa.binary())

    def change(self, part: Part, chunks: ContentChunks | None, listed: ChunkList | None) -> FileChange:
        """Return the delta. `part`: the part that was read; `listed`: the new chunk list."""
        rows = [self._taken()] if self.gone.num_rows else []
        rows += [self._brought(part, chunks)] if len(self.came) else []
        if self.in_place and rows:
            rows = [repair(united(*(self.request.engine.from_arrow(one) if isinstance(one, pa.Table) else one for one in rows)))]
        bound = self.gone.num_rows + len(self.came)
        if "source.row" in self.request.source.wanted:
            rows += moved_rows(self.request, self._stood(), self.old, self.new, self.stayed)
            bound += 2 * len(self.stayed[0])
        return FileChange(rows, replace(self.record, dense=self.record.dense and (self.in_place or self._dense())), bound, listed)

    def _stood(self) -> DataFrame:
        """Return the file's prior rows, at least the compared ones."""
        assert self.request.prior is not None  # else nothing was compared
        return of_file(self.request.prior.rows, self.request.files, self.record) if self.was.rows is None else self.request.engine.from_arrow(self.was.rows)

    def _taken(self) -> DataFrame | pa.Table:
        """Retract the rows that go."""
        if self.was.rows is not None:
            return signed(_having(self.was.rows, "_key", self.gone.column("_key")), Op.RETRACT, self.request.cause)
        return as_retractions(joined(self._stood(), self.gone, self.request.engine, "left_semi"), self.request.cause)

    def _brought(self, part: Part, chunks: ContentChunks | None) -> DataFrame | pa.Table:
        """Insert the new rows."""
        files, rows = self.request.files, self.new.column("_row").take(pa.array(self.came))
        if self.now.rows is not None:
            return relabelled_on_driver(self.request, _having(self.now.rows, "_row", rows).sort_by("_row"), self.keys)
        if chunks is not None:
            frame = files.frame(self.request.engine, [replace(part, ranges=chunks.holding(rows.to_numpy()))])
        elif files.is_small([part]):
            frame = files.frame(self.request.engine, [part])
        else:
            frame = files.spread(self.request.engine, self.record, holding(files.tasks(part), rows.to_numpy())).as_frame()
        return relabelled(self.request, frame, pa.table({"_row": rows, "__label": self.keys}))

    def _dense(self) -> bool:
        """Whether record n still has order key n."""
        rows = self.new.column("_row").take(pa.array(self.came)).combine_chunks()
        return not self.gone.num_rows and self.keys.equals(row_labels(self.prefix, rows.to_numpy()))
