"""Where the changelog of a keyed source has the records of a file's chunks: the file rows they were read from, and the epochs that read them.

A row with a primary key keeps the row number it was read from, and its epoch identifies the version of the file. So a span of rows and an epoch locate
the records of a chunk, whatever precedes them now. The spans of a chunk are in the order of its records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from changelog.frames import known, with_schema
from changelog.lazy_imports import F, np, pa
from operators.core.evaluate import Narrow
from operators.source.diff import chunk_index as listed
from operators.source.diff.alignment import Positions
from operators.source.diff.chunk_index import ChunkList, Records
from storage.delta.chosen_rows import FileSpans
from storage.engines import Engine
from storage.formats.content_chunks import ContentChunks

if TYPE_CHECKING:
    from numpy.typing import NDArray


MOST: Final = 32
"""Average number of spans of a chunk above which the list is dropped: comparing whole files takes less time then."""
BIN_BITS: Final = 9
_EPOCH_BITS: Final = 32
_WIDTH: Final = 24


@dataclass(frozen=True, slots=True)
class ChunkSpans:
    """Spans of rows, sorted by `chunk`.

    Attributes:
        chunk: Number of the chunk that has records in the span.
        epoch: Epoch that read them.
        first: First row.
        last: Last row.
    """

    chunk: Positions
    epoch: Positions
    first: Positions
    last: Positions

    @classmethod
    def of(cls, one: ChunkList) -> ChunkSpans:
        """The spans of a list."""
        texts = one.table.column("spans").to_pylist()
        flat = np.frombuffer(b"".join(texts), "<i8").reshape(-1, 3)
        return cls(np.repeat(np.arange(len(texts)), [len(text) // _WIDTH for text in texts]), flat[:, 0], flat[:, 1], flat[:, 2])

    @classmethod
    def of_new_file(cls, chunks: ContentChunks, epoch: int) -> ChunkSpans:
        """Return the spans of a file without prior rows."""
        count = chunks.count
        return cls(np.arange(count), np.full(count, epoch), chunks.rows[:-1], chunks.rows[1:] - 1)

    @classmethod
    def around(cls, chunk: Positions, epoch: Positions, row: Positions) -> ChunkSpans:
        """Return the spans of records, from the chunk, the epoch and the row of each, in the order of the file."""
        breaks = np.flatnonzero((np.diff(chunk) != 0) | (np.diff(epoch) != 0) | (np.diff(row) != 1)) + 1
        starts = np.concatenate([np.zeros(min(len(row), 1), np.int64), breaks])
        ends = np.concatenate([breaks, np.full(min(len(row), 1), len(row))]) - 1
        return cls(chunk[starts], epoch[starts], row[starts], row[ends])

    def where(self, chosen: NDArray[np.bool_]) -> ChunkSpans:
        """Return the spans of the chunks in a mask."""
        mask = chosen[self.chunk]
        return ChunkSpans(self.chunk[mask], self.epoch[mask], self.first[mask], self.last[mask])

    def records(self, of: ChunkList, chosen: Positions) -> Records | None:
        """Return the records of some chunks of a list, in order. None where these have no hashes: then spans may have other rows too."""
        rows, hashes = of.rows, of.hashes_of(chosen)
        counts = rows[chosen + 1] - rows[chosen]
        mask = np.zeros(len(rows) - 1, np.bool_)
        mask[chosen] = True
        own = self.where(mask)
        lengths = own.last - own.first + 1
        if hashes is None or not np.array_equal(np.bincount(own.chunk, lengths, len(mask))[chosen], counts):
            return None
        stored = np.repeat(own.first - (np.cumsum(lengths) - lengths), lengths) + np.arange(int(lengths.sum()))
        return Records(hashes, listed.numbered(rows, chosen), np.repeat(own.epoch, lengths), stored)

    def of_file(self, stored: str) -> FileSpans:
        """Return the spans, of a file that changelogs call `stored`."""
        return FileSpans(stored, self.epoch, self.first, self.last)

    def carried(self, left: Positions, right: Positions) -> ChunkSpans:
        """Return the spans of the unchanged chunks under their new numbers."""
        numbers = np.full(int(self.chunk.max(initial=-1)) + 1, -1, np.int64)
        numbers[left] = right
        kept = self.where(numbers >= 0)
        return ChunkSpans(numbers[kept.chunk], kept.epoch, kept.first, kept.last)

    def and_of(self, other: ChunkSpans) -> ChunkSpans:
        """Return these spans and others."""
        pairs = [np.concatenate(pair) for pair in ((self.chunk, other.chunk), (self.epoch, other.epoch), (self.first, other.first), (self.last, other.last))]
        order = np.argsort(pairs[0], kind="stable")
        return ChunkSpans(*(one[order] for one in pairs))

    def column(self, count: int) -> pa.Array | None:
        """Return the column `spans` of a list of `count` chunks; None where there are too many spans."""
        if len(self.chunk) > MOST * count + 1000:
            return None
        data = np.stack([self.epoch, self.first, self.last], axis=1).astype("<i8").tobytes()
        offsets = np.searchsorted(self.chunk, np.arange(count + 1)).astype(np.int32) * _WIDTH
        return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(data)])

    def _heaps(self) -> tuple[Positions, Positions, Positions]:
        """Spans that overlap as heaps: the heap of each span; where heaps begin, ascending, as one number of epoch and row."""
        base = int(self.last.max(initial=0)) + 1
        low, high = self.epoch * base + self.first, self.epoch * base + self.last
        order = np.argsort(low, kind="stable")
        reached = np.maximum.accumulate(high[order])
        begins = np.concatenate([np.ones(min(len(order), 1), np.bool_), low[order][1:] > reached[:-1]])
        heap = np.empty(len(order), np.int64)
        heap[order] = np.cumsum(begins) - 1
        return heap, low[order][begins], np.array([base])

    def closed(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Extend a mask of chunks by all chunks whose spans overlap, transitively."""
        heap, _, _ = self._heaps()
        while True:
            touched = np.zeros(int(heap.max(initial=-1)) + 1, np.bool_)
            touched[heap[chosen[self.chunk]]] = True
            grown = chosen.copy()
            grown[self.chunk[touched[heap]]] = True
            if bool((grown == chosen).all()):
                return grown
            chosen = grown

    def holding(self, epochs: Positions, rows: Positions, count: int) -> NDArray[np.bool_]:
        """Return a mask of the chunks (of `count`) that may contain records read in these (epoch, row) pairs."""
        heap, begins, base = self._heaps()
        found = np.zeros(count, np.bool_)
        met = np.unique(np.searchsorted(begins, epochs * base + rows, side="right") - 1)
        found[self.chunk[np.isin(heap, met)]] = True
        return found


def standing(places: Sequence[tuple[str, ChunkSpans]], engine: Engine) -> Narrow:
    """Return the predicate for rows (with `_epoch`) within the spans of files, given by path."""
    ends = [(path, *span) for path, spans in places for span in zip(spans.epoch.tolist(), spans.first.tolist(), spans.last.tolist(), strict=True)]
    if len(ends) > listed.FEW_RANGES:
        return _in_bins(ends, engine)
    within = [(F.col("_file") == path) & (F.col("_epoch") == epoch) & F.col("_row").between(first, last) for path, epoch, first, last in ends]
    return lambda rows: rows.where(reduce(or_, within, F.lit(False)))


def _in_bins(ends: Sequence[tuple[str, int, int, int]], engine: Engine) -> Narrow:
    """A filter of the rows within one of many spans, by their epochs and the upper bits of their numbers as one number, which is met sooner than several."""
    spread = [((epoch << _EPOCH_BITS) + bin_, path, first, last) for path, epoch, first, last in ends for bin_ in range(first >> BIN_BITS, (last >> BIN_BITS) + 1)]
    names = ("__bin", "__path", "__first", "__last")
    wanted = engine.from_arrow(pa.table(dict(zip(names, map(pa.array, zip(*spread, strict=True)), strict=True))))
    same = F.shiftleft("_epoch", _EPOCH_BITS) + F.shiftright("_row", BIN_BITS) == F.col("__bin")
    within = same & (F.col("_row") >= F.col("__first")) & (F.col("_row") <= F.col("__last")) & (F.col("_file") == F.col("__path"))
    return lambda rows: with_schema(rows.join(F.broadcast(wanted), within, "left_semi"), known(rows))
