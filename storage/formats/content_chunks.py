"""Content-defined chunks of large files. The content decides where a chunk ends, so a change of the file moves only the ends near it.

A record is the last one of its chunk where a hash of three samples of its bytes is below 1/`RECORDS` of the hash's range, and the chunk has at least
`LEAST` records. Two versions of a file have the same chunks except where they differ, whatever was inserted or deleted.

Of a file whose last version is known, only the hashes of the known chunks are compared. Records are looked for where a hash differs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from changelog.lazy_imports import np, pa, pc
from storage.files.errors import Buffer
from storage.files.local import buffer_of, is_compressed, release_pages
from storage.files.stores import store_of
from storage.formats import record_hashes
from storage.formats.base import CHUNK_BYTES, Piece, Range, Reader
from storage.formats.tasks import line_numbers
from storage.stores.places import Place

if TYPE_CHECKING:
    import numpy.typing as npt

    from storage.formats.record_hashes import RecordHashes

Positions: TypeAlias = "npt.NDArray[np.int64]"
Words: TypeAlias = "npt.NDArray[np.uint64]"

RECORDS = 128
"""Records of an average chunk."""
LEAST = 16
"""Records of the smallest chunk; only the last chunk of a file may have fewer."""
_RESIDENT = 64 << 20
"""Bytes of a mapped file that stay in memory, about."""
_WORD = 8
_WINDOW, _WIDER = 2, 4
"""Average chunks in which the end of a new chunk is looked for, and how much larger the next window is."""
_SLACK = 256
"""Bytes by which a corrected chunk may be longer than before to be found at once: its end is looked for where it was."""
_MOST_NEW, _EARLY = 1 / 3, 1 / 8
"""Share of new chunks above which looking for all records takes less time, and how far in the file this is judged first."""


@cache
def _factors() -> Words:
    """The odd factors that mix the samples."""
    return np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xFF51AFD7ED558CCD], np.uint64)


class Hashes(NamedTuple):
    """The hashes of the chunks of a file, and of the records of each chunk of `ContentChunks.hashed`: None where nobody wants them, null for chunks without them."""

    chunks: RecordHashes
    records: pa.Array | None = None


@dataclass(frozen=True)
class ContentChunks:
    """The chunks of a file, each with at least one record.

    Args:
        starts: where each chunk begins, then where the file ends
        rows: the number of each chunk's first record, then the number after the last record
        head: `Range.head` of the chunks
        hashing: computes the digests
        salt: the salt of all hashes
        bounds: where the records of new chunks begin, and the last one ends, by the chunk's number in ascending order; None where all chunks are new
    """

    starts: Positions
    rows: Positions
    head: bytes
    hashing: Future[Hashes]
    salt: int
    bounds: Mapping[int, Positions] | None = None

    @property
    def count(self) -> int:
        """The number of chunks."""
        return len(self.starts) - 1

    @cached_property
    def digests(self) -> pa.Array:
        """A hash of each chunk's bytes and of what else decides how they are read. A thread computes them: the first read of a file does not need them."""
        return pa.array(self.hashing.result().chunks.view(np.int64))

    @cached_property
    def hashed(self) -> pa.Array | None:
        """The numbers of the new chunks, whose records were hashed; None where all are new."""
        return None if self.bounds is None else pa.array(list(self.bounds), pa.int64())

    @property
    def hashes(self) -> pa.Array | None:
        """The hashes of the records of each chunk of `hashed` as bytes, null for chunks without them; None where there are none."""
        return self.hashing.result().records

    def hashes_of(self, numbers: Positions) -> pa.Array:
        """Return the hashes of the records of some chunks as bytes, null for chunks without them and for those whose records were not hashed now."""
        hashes = self.hashes
        if hashes is None:
            return pa.nulls(len(numbers), pa.binary())
        return hashes.take(pa.array(numbers) if self.hashed is None else pc.index_in(pa.array(numbers), self.hashed))

    @property
    def records(self) -> int:
        """The number of records of the file."""
        return int(self.rows[-1]) - 1

    def ranges(self, chosen: Positions | None = None, target: int = CHUNK_BYTES) -> tuple[Range, ...]:
        """Ranges of about `target` bytes that read all chunks, or the `chosen` ones (ascending numbers from 0)."""
        numbers = np.arange(self.count) if chosen is None else chosen
        filled = np.cumsum(self.starts[numbers + 1] - self.starts[numbers]) // target
        groups = np.split(numbers, np.flatnonzero(np.diff(filled)) + 1)
        return tuple(self._range(group) for group in groups if len(group))

    def holding(self, rows: Positions) -> tuple[Range, ...]:
        """Ranges of the chunks that contain the records with these numbers."""
        return self.ranges(np.unique(np.searchsorted(self.rows, rows, side="right") - 1))

    def reading(self, rows: Positions, bounds: Callable[[int], Positions], target: int) -> tuple[Range, ...]:
        """Ranges of about `target` bytes that read some records.

        Args:
            rows: the numbers of the records, ascending
            bounds: where the records of a chunk begin, and the last one ends
            target: the bytes of a range
        """
        chunks = np.searchsorted(self.rows, rows, side="right") - 1
        cuts = np.flatnonzero((np.diff(rows) != 1) | (np.diff(chunks) != 0)) + 1
        first, last = (np.concatenate(ends) for ends in (([0], cuts), (cuts - 1, [len(rows) - 1])))
        pieces: list[Piece] = []
        for chunk, low, high in zip(chunks[first].tolist(), rows[first].tolist(), rows[last].tolist(), strict=True) if len(rows) else ():
            at, begin = bounds(chunk), int(self.rows[chunk])
            pieces.append(Piece(int(at[low - begin]), int(at[high - begin + 1]), low, high - low + 1))
        groups: dict[int, list[Piece]] = {}
        for piece, end in zip(pieces, accumulate(piece.end - piece.start for piece in pieces), strict=True):
            groups.setdefault(end // target, []).append(piece)
        return tuple(self._of_pieces(group) for group in groups.values())

    def _range(self, numbers: Positions) -> Range:
        runs = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
        bounds = [(run[0], run[-1] + 1) for run in runs]
        pieces = [Piece(*map(int, (self.starts[low], self.starts[high], self.rows[low], self.rows[high] - self.rows[low]))) for low, high in bounds]
        return self._of_pieces(pieces)

    def _of_pieces(self, pieces: Sequence[Piece]) -> Range:
        return Range(pieces[0].start, pieces[-1].end, pieces[0].first_row, self.head, tuple(pieces) if len(pieces) > 1 else ())


@dataclass(frozen=True, slots=True)
class _Seen:
    """The records that begin in a piece of a file.

    Args:
        count: their number
        first: where the first one begins
        last: where the last one begins
        numbers: the numbers in the piece, from 0, of the records that may begin a chunk
        places: where these begin
        hashes: the hashes of all but the last one; None where nobody wants them
    """

    count: int
    first: int
    last: int
    numbers: Positions
    places: Positions
    hashes: RecordHashes | None


@dataclass(frozen=True, slots=True)
class KnownChunks:
    """The chunks that a file had: the hash, the bytes and the number of records of each, and the salt of all hashes."""

    digests: RecordHashes
    sizes: Positions
    records: Positions
    salt: int


@dataclass
class _Walk:
    """A walk through a file from one known chunk to the next. Where a chunk is new, it looks for the place where known chunks go on.

    Args:
        reader: reads the file
        data: the file
        seed: the seed of the hashes of chunks
        known: the chunks that it had
        starts: where the chunks found so far begin, then where the last one ends
        rows: as in `ContentChunks`
        met: the number of each chunk among the known ones, -1 for new ones
        fresh: the hashes of the new chunks found so far
        bounds: where the records of new chunks begin, and the last one ends, by the chunk's number
    """

    reader: Reader
    data: Buffer
    seed: int
    known: KnownChunks
    starts: list[int]
    rows: list[int] = field(default_factory=lambda: [1])
    met: list[int] = field(default_factory=list)
    fresh: list[int] = field(default_factory=list)
    bounds: dict[int, Positions] = field(default_factory=dict)

    def found(self) -> bool:
        """Go through the file. Return False where many chunks are new, or it has to be looked at as a whole."""
        number, least, early = 0, 0, len(self._digests) * _EARLY
        with memoryview(self.data) as view:
            while True:
                passed = self._pass(view, number)
                number, least = passed, passed if passed > number else least
                if self.starts[-1] == len(view):
                    return bool(self.met)
                chunk = self._new_chunk(number) if len(self.fresh) <= _MOST_NEW * max(number, early) else None
                if chunk is None:
                    return False
                start, end = chunk[[0, -1]].tolist()
                digest = record_hashes.of_chunk(view[start:end], self.seed)
                self.bounds[len(self.met)] = chunk
                self.fresh.append(digest)
                self._add([end - start], [len(chunk) - 1], [-1])
                met = self._places.get(digest, -1)
                number = met + 1 if met >= least else number + 1
                least = number if met >= least else least

    def hashes(self, seed: int | None) -> Hashes:
        """The hashes of the chunks found, and of the records of new ones. `seed`: the seed of the hashes of records; None where nobody wants them."""
        met = np.array(self.met, np.int64)
        met[met < 0] = len(self._digests) + np.arange(len(self.fresh))
        return Hashes(np.concatenate([self.known.digests, np.array(self.fresh, np.uint64)])[met], None if seed is None else self._of_records(seed))

    def _of_records(self, seed: int) -> pa.Array:
        """The hashes of the records of new chunks."""
        runs = list(self.bounds.values())
        return record_hashes.by_chunk(record_hashes.of_runs(self.data, runs, seed), np.array([len(run) - 1 for run in runs], np.int64))

    def _pass(self, view: memoryview, number: int) -> int:
        """Pass over known chunks from one number on. Return the number of the first one that is not there."""
        sizes, digests, whole, last = self._sizes, self._digests, len(view), len(self._digests) - 1
        first, at = number, self.starts[-1]
        kept = at + _RESIDENT
        while number <= last:
            end = at + sizes[number]
            if end > whole or (number == last and end < whole):  # nothing but the end of the file may follow the last one
                break
            if record_hashes.of_chunk(view[at:end], self.seed) != digests[number]:
                break
            if end > kept:
                release_pages(self.data)
                kept = end + _RESIDENT
            at, number = end, number + 1
        self._add(sizes[first:number], self._records[first:number], range(first, number))
        return number

    def _new_chunk(self, number: int) -> Positions | None:
        """Where the records of the chunk that begins here begin, and the last one ends; None where no record follows or the chunk is too large.

        Args:
            number: the known chunk that is not here: this may be its new version
        """
        at, end, words = self.starts[-1], len(self.data), _words(self.data)
        size = self._sizes[number] + _SLACK if number < len(self._sizes) else self._window
        while size <= CHUNK_BYTES:
            stop = min(at + size, end)
            starts = self.reader.starts_within(self.data, at, stop)
            if starts is None or not len(starts):
                return None
            ends = np.flatnonzero(_last_ones(words, starts[:-1], starts[1:])) + 1
            ends = ends[ends >= LEAST]
            if len(ends):
                return starts[: ends[0] + 1]
            if stop == end:
                return np.append(starts, end)
            size = max(size * _WIDER, self._window)
        return None

    def _add(self, sizes: Sequence[int], records: Sequence[int], met: Iterable[int]) -> None:
        """Add chunks behind the last one: the bytes and the records of each, and its number among the known ones."""
        self.starts += [*accumulate(sizes, initial=self.starts[-1])][1:]
        self.rows += [*accumulate(records, initial=self.rows[-1])][1:]
        self.met += met

    @cached_property
    def _window(self) -> int:
        """Bytes in which the end of a new chunk is looked for first."""
        return _WINDOW * max(sum(self._sizes) // max(len(self._sizes), 1), _WORD)

    @cached_property
    def _sizes(self) -> list[int]:
        """The bytes of each known chunk."""
        return list(self.known.sizes.tolist())

    @cached_property
    def _records(self) -> list[int]:
        """The number of records of each known chunk."""
        return list(self.known.records.tolist())

    @cached_property
    def _digests(self) -> list[int]:
        """The hash of each known chunk."""
        return list(self.known.digests.tolist())

    @cached_property
    def _places(self) -> dict[int, int]:
        """The last number of each known chunk, by its hash."""
        return {digest: number for number, digest in enumerate(self._digests)}


def chunks_of(reader: Reader, path: Place, name: str, known: KnownChunks | None = None, *, by_record: bool = False) -> ContentChunks | None:
    """The chunks of a file; None where it cannot be cut before each record. Raises InputError.

    Args:
        reader: reads the file
        path: where it is
        name: how messages call it
        known: the chunks of its last version
        by_record: whether each record has a hash too
    """
    if is_compressed(path) or reader.plan.sections or reader.plan.document:
        return None
    facts, data = store_of(path).identity(path), buffer_of(path, name)
    if len(data) < _WORD:
        return None
    words, salt = _words(data), record_hashes.new_salt() if known is None else known.salt
    with line_numbers(path, name):
        found = reader.record_starts(data, name, lambda starts: _look(words, starts, data, hashed))
        if found is None:
            return None
        reading = repr((found.head, reader.plan.undeclared)).encode()
        seed = record_hashes.seed_of(salt, reading, 1)
        hashed = record_hashes.seed_of(salt, reading, 0) if by_record else None
        walk = _Walk(reader, data, seed, known, [found.begin]) if known is not None else None
        if walk is not None and walk.found():
            settled = _settled(walk.hashes(hashed), path, facts)
            return ContentChunks(np.array(walk.starts), np.array(walk.rows), found.head, _done(settled), salt, walk.bounds)
        pieces = [one for one in _released(found.results, data) if one is not None]
        starts, rows = _bounds(words, pieces, found.begin, len(data))
    if rows[-1] == 1 or int(np.diff(starts).max()) > CHUNK_BYTES:
        return None

    def hashes() -> Hashes:
        records = None if hashed is None else record_hashes.by_chunk(_of_pieces(data, pieces, hashed), np.diff(rows))
        return _settled(Hashes(_digests(data, starts, seed), records), path, facts)

    thread = ThreadPoolExecutor(1)
    hashing = thread.submit(hashes)
    thread.shutdown(wait=False)
    return ContentChunks(starts, rows, found.head, hashing, salt)


def _of_pieces(data: Buffer, pieces: Sequence[_Seen], seed: int) -> RecordHashes:
    """The hashes of all records of a file: the last one of a piece ends where the next piece's first one begins."""
    ends = [*(piece.first for piece in pieces[1:]), len(data)]
    last = record_hashes.of_runs(data, [np.array([piece.last, end]) for piece, end in zip(pieces, ends, strict=True)], seed)
    parts = [part for piece, one in zip(pieces, np.split(last, len(last)), strict=True) for part in (piece.hashes, one) if part is not None]
    return np.concatenate(parts)


def _done(hashes: Hashes) -> Future[Hashes]:
    done = Future[Hashes]()
    done.set_result(hashes)
    return done


def _settled(hashes: Hashes, path: Place, facts: tuple[object, ...]) -> Hashes:
    """The hashes of a file, or random ones where it changed meanwhile: its records may be from before the change and have to be read again."""
    if store_of(path).identity(path) == facts:
        return hashes
    return Hashes(np.frombuffer(os.urandom(hashes.chunks.nbytes), np.uint64))


def _released(pieces: Iterable[_Seen | None], data: Buffer) -> Iterator[_Seen | None]:
    """The pieces of a file. Memory of the pieces seen is given back."""
    for number, piece in enumerate(pieces, 1):
        yield piece
        if number % (_RESIDENT // CHUNK_BYTES) == 0:
            release_pages(data)


def _words(data: Buffer) -> Words:
    """The eight bytes that begin at each place."""
    return np.ndarray((len(data) - _WORD + 1,), "<u8", data, strides=(1,))


def _look(words: Words, starts: Positions, data: Buffer, seed: int | None) -> _Seen | None:
    if not len(starts):
        return None
    numbers = np.flatnonzero(_last_ones(words, starts[:-1], starts[1:])) + 1
    hashes = None if seed is None else record_hashes.of_run(data, starts, seed)
    return _Seen(len(starts), int(starts[0]), int(starts[-1]), numbers, starts[numbers], hashes)


def _last_ones(words: Words, starts: Positions, behind: Positions) -> npt.NDArray[np.bool_]:
    """Whether each record may be the last one of its chunk. Records begin at `starts` and end before `behind`."""
    if not len(starts):
        return np.empty(0, np.bool_)
    lengths = behind - starts
    factors = _factors()
    mixed = lengths.astype(np.uint64) * factors[0]
    places = (starts, starts + (lengths >> 1), behind - _WORD)
    limit = len(words) - 1
    for place, factor in zip(places, factors[1:], strict=True):
        inside = place if starts[0] >= _WORD and behind[-1] <= limit else np.clip(place, 0, limit)
        mixed += words[inside] * factor
    mixed ^= mixed >> np.uint64(32)
    mixed *= factors[0]
    last: npt.NDArray[np.bool_] = mixed < np.uint64((1 << 64) // RECORDS)
    return last


def _bounds(words: Words, pieces: Iterable[_Seen], begin: int, end: int) -> tuple[Positions, Positions]:
    """`starts` and `rows` of the chunks."""
    starts, rows, count, before = [begin], [1], 0, None
    for seen in pieces:
        numbers, places = seen.numbers, seen.places
        if before is not None and _last_ones(words, np.array([before]), np.array([seen.first]))[0]:
            numbers, places = np.concatenate([[0], numbers]), np.concatenate([[seen.first], places])
        least = rows[-1] + LEAST
        for number, place in zip((numbers + (count + 1)).tolist(), places.tolist(), strict=True):
            if number >= least:
                starts.append(place)
                rows.append(number)
                least = number + LEAST
        count, before = count + seen.count, seen.last
    return np.array([*starts, end], np.int64), np.array([*rows, count + 1], np.int64)


def _digests(data: Buffer, bounds: Positions, seed: int) -> RecordHashes:
    """The hashes of chunks that follow each other. `bounds`: where each begins, then where the last one ends."""
    found, start = list[int](), int(bounds[0])
    kept = start + _RESIDENT
    with memoryview(data) as view:
        for end in bounds[1:].tolist():
            found.append(record_hashes.of_chunk(view[start:end], seed))
            if end > kept:
                release_pages(data)
                kept = end + _RESIDENT
            start = end
    return np.array(found, np.uint64)
