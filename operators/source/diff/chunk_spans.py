"""Where the records of a keyed file's stretches stand in its changelog: in which rows of the file they were read, and by which runs (DESIGN section 6).

A row under a primary key keeps the row of the file that it was read from, and its epoch says of which version. So a stretch knows its records by spans of
such rows, whatever stands before them by now. Where records changed places the spans of two stretches may overlap; these are read together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from changelog.frames import known, told
from changelog.lazy_imports import F, np, pa
from operators.core.evaluate import Narrow
from operators.source.diff import chunk_index as listed
from operators.source.diff.alignment import Positions
from operators.source.diff.chunk_index import ChunkList
from storage.engines import Engine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from storage.formats.content_chunks import ContentChunks

GAP: Final = 1024
"""Rows of a stretch further apart than this are in spans of their own."""
MOST: Final = 8
"""Spans of a stretch on an average beyond which a list is not kept: so much was moved that whole files are compared in less time."""
BIN_BITS: Final = 9
_EPOCH_BITS: Final = 32
_WIDTH: Final = 24


@dataclass(frozen=True, slots=True)
class ChunkSpans:
    """Spans of rows, sorted by `stretch`: the number of the stretch that has records in it, the epoch that read them, the first row and the last."""

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
        """Those of a file of which nothing stood."""
        count = chunks.count
        return cls(np.arange(count), np.full(count, epoch), chunks.rows[:-1], chunks.rows[1:] - 1)

    @classmethod
    def around(cls, chunk: Positions, epoch: Positions, row: Positions) -> ChunkSpans:
        """The spans of records, given the stretch, the epoch and the row of each."""
        order = np.lexsort((row, epoch, chunk))
        chunk, epoch, row = chunk[order], epoch[order], row[order]
        breaks = np.flatnonzero((np.diff(chunk) != 0) | (np.diff(epoch) != 0) | (np.diff(row) > GAP)) + 1
        starts = np.concatenate([np.zeros(min(len(row), 1), np.int64), breaks])
        ends = np.concatenate([breaks, np.full(min(len(row), 1), len(row))]) - 1
        return cls(chunk[starts], epoch[starts], row[starts], row[ends])

    def where(self, chosen: NDArray[np.bool_]) -> ChunkSpans:
        """Those of some stretches (a mask)."""
        mask = chosen[self.chunk]
        return ChunkSpans(self.chunk[mask], self.epoch[mask], self.first[mask], self.last[mask])

    def carried(self, left: Positions, right: Positions) -> ChunkSpans:
        """The spans of those stretches that stayed, under the numbers that they have now."""
        numbers = np.full(int(self.chunk.max(initial=-1)) + 1, -1, np.int64)
        numbers[left] = right
        kept = self.where(numbers >= 0)
        return ChunkSpans(numbers[kept.chunk], kept.epoch, kept.first, kept.last)

    def and_of(self, other: ChunkSpans) -> ChunkSpans:
        """These and others."""
        pairs = [np.concatenate(pair) for pair in ((self.chunk, other.chunk), (self.epoch, other.epoch), (self.first, other.first), (self.last, other.last))]
        order = np.argsort(pairs[0], kind="stable")
        return ChunkSpans(*(one[order] for one in pairs))

    def column(self, count: int) -> pa.Array | None:
        """The column `spans` of a list of so many stretches; None where there are too many."""
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
        """The stretches (a mask) that have to be looked at with some: all whose spans overlap with theirs, and so on."""
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
        """The stretches, of so many, in which records may stand that some epochs read in some rows."""
        heap, begins, base = self._heaps()
        found = np.zeros(count, np.bool_)
        met = np.unique(np.searchsorted(begins, epochs * base + rows, side="right") - 1)
        found[self.chunk[np.isin(heap, met)]] = True
        return found


def standing(places: Sequence[tuple[str, ChunkSpans]], engine: Engine) -> Narrow:
    """What chooses the rows (with `_epoch`) that lie within spans of files, given by path."""
    ends = [(path, *span) for path, spans in places for span in zip(spans.epoch.tolist(), spans.first.tolist(), spans.last.tolist(), strict=True)]
    if len(ends) > listed.FEW_RANGES:
        return _in_bins(ends, engine)
    within = [(F.col("_file") == path) & (F.col("_epoch") == epoch) & F.col("_row").between(first, last) for path, epoch, first, last in ends]
    return lambda rows: rows.where(reduce(or_, within, F.lit(False)))


def _in_bins(ends: Sequence[tuple[str, int, int, int]], engine: Engine) -> Narrow:
    """What chooses the rows within one of many spans, found by their epochs and the upper bits of their numbers as one number, which is met sooner than several."""
    spread = [((epoch << _EPOCH_BITS) + bin_, path, first, last) for path, epoch, first, last in ends for bin_ in range(first >> BIN_BITS, (last >> BIN_BITS) + 1)]
    names = ("__bin", "__path", "__first", "__last")
    wanted = engine.from_arrow(pa.table(dict(zip(names, map(pa.array, zip(*spread, strict=True)), strict=True))))
    same = F.shiftleft("_epoch", _EPOCH_BITS) + F.shiftright("_row", BIN_BITS) == F.col("__bin")
    within = same & (F.col("_row") >= F.col("__first")) & (F.col("_row") <= F.col("__last")) & (F.col("_file") == F.col("__path"))
    return lambda rows: told(rows.join(F.broadcast(wanted), within, "left_semi"), known(rows))
