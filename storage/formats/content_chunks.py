"""Chunks of large files: runs of some hundred records, each known by a hash of its bytes.

Of a file whose last version is known, the known chunks are looked for where they follow each other, and then where they went: behind a change, a known
chunk goes on a few lines from where it was, or where a record begins with the bytes that the chunk begins with. The hash of the chunk proves it. What lies
between is cut into new chunks. So two versions of a file have the same chunks except where they differ, whatever was inserted or deleted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from blake3 import blake3

from changelog.lazy_imports import np, pa, pc
from storage.files.errors import Buffer
from storage.files.local import RESIDENT, buffer_of, by_parts, by_places, is_compressed, release_pages
from storage.files.stores import store_of
from storage.formats import record_hashes
from storage.formats.base import CHUNK_BYTES, Piece, Range, Reader, StartsOfPiece
from storage.formats.tasks import line_numbers
from storage.stores.places import Place

if TYPE_CHECKING:
    import numpy.typing as npt

    from storage.formats.record_hashes import RecordHashes

Positions: TypeAlias = "npt.NDArray[np.int64]"
Words: TypeAlias = "npt.NDArray[np.uint64]"

RECORDS = 128
"""Records of a chunk; where a new run of records ends, it has up to half as many again."""
_BEGIN, _WORD = 256, 8
"""Bytes by which the begin of a chunk is recognized, and the bytes of a word of it."""
_WIDER = 4
"""How much larger each next window is in which a known chunk is looked for."""
_SLACK = 1024
"""Bytes beyond a changed chunk in which the next one is looked for first."""
_NEAR, _MISSING = 8, 3
"""Lines before and behind the place where a known chunk was that are tried first, and how many known chunks may be missing there."""
_MOST_NEW, _EARLY = 1 / 3, 1 / 8
"""Share of changed chunks above which looking for all records takes less time, and how far in the file this is judged first."""
_TRIES = 4
"""Known chunks with the same begin that are compared with one place, at most."""
_MOST_TRIES = 1
"""Comparisons in vain for each known chunk, after which chunks are not looked for any longer: their begins are much alike."""
_FREE_TRIES = 100
"""Comparisons in vain that count for nothing."""


@cache
def _factors(begin: int) -> Words:
    """The odd factors that mix the words of a begin, a word each."""
    return np.frombuffer(blake3(b"begins of chunks").digest(begin), "<u8") | np.uint64(1)


class Hashes(NamedTuple):
    """The hashes of the chunks of a file, and of their begins. Of the records of each chunk of `ContentChunks.hashed`: None where nobody wants them, null for chunks without them."""

    chunks: RecordHashes
    begins: RecordHashes
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

    @property
    def begins(self) -> pa.Array:
        """A hash of the bytes that each chunk begins with."""
        return pa.array(self.hashing.result().begins.view(np.int64))

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
        sizes = self.starts[numbers + 1] - self.starts[numbers]
        return tuple(self._range(group) for group in _by_size(numbers, sizes, target))

    def holding(self, rows: Positions) -> tuple[Range, ...]:
        """Ranges of the chunks that contain the records with these numbers."""
        return self.ranges(np.array(self.with_records(rows), np.int64))

    def with_records(self, rows: Positions) -> list[int]:
        """The numbers of the chunks that contain the records with these numbers, ascending."""
        return list(np.unique(np.searchsorted(self.rows, rows, side="right") - 1).tolist())

    def reading(self, rows: Positions, bounds: Mapping[int, Positions], target: int) -> tuple[Range, ...]:
        """Ranges of about `target` bytes that read some records.

        Args:
            rows: the numbers of the records, ascending
            bounds: where the records of each of their chunks begin, and the last one ends
            target: the bytes of a range
        """
        chunks = np.searchsorted(self.rows, rows, side="right") - 1
        cuts = np.flatnonzero((np.diff(rows) != 1) | (np.diff(chunks) != 0)) + 1
        first, last = (np.concatenate(ends) for ends in (([0], cuts), (cuts - 1, [len(rows) - 1])))
        pieces: list[Piece] = []
        for chunk, low, high in zip(chunks[first].tolist(), rows[first].tolist(), rows[last].tolist(), strict=True) if len(rows) else ():
            at, begin = bounds[chunk], int(self.rows[chunk])
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
        numbers: the numbers in the piece, from 0, of the records that begin a chunk
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
    """The chunks that a file had: the hash, the hash of the begin, the bytes and the number of records of each, and the salt of all hashes."""

    digests: RecordHashes
    begins: RecordHashes
    sizes: Positions
    records: Positions
    salt: int


class _GivenUp(Exception):
    """Looking for known chunks takes more time than cutting the whole file, or cannot be done."""


@dataclass(frozen=True, slots=True)
class _New:
    """New records between known chunks.

    Args:
        start: where they begin, blank lines included
        end: where the last one ends
        bounds: where each begins, and the last one ends; None where they have to be looked for
    """

    start: int
    end: int
    bounds: Positions | None


class _Met(NamedTuple):
    """Known chunks that follow each other: the number of the first, and of the one behind the last."""

    first: int
    behind: int


@dataclass
class _Walk:
    """A walk through a file from one known chunk to the next. Where a chunk is not there, what is new is cut up to the place where known chunks go on.

    Args:
        reader: reads the file
        data: the file
        view: its bytes
        seed: the seed of the hashes of chunks
        known: the chunks that it had
        begin: where the first record begins, or blank lines before it
        starts: as in `ContentChunks`, once the chunks were `found`
        rows: as in `ContentChunks`, too
        bounds: where the records of new chunks begin, and the last one ends, by the chunk's number
    """

    reader: Reader
    data: Buffer
    view: memoryview
    seed: int
    known: KnownChunks
    begin: int
    starts: Positions = field(init=False)
    rows: Positions = field(init=False)
    bounds: dict[int, Positions] = field(default_factory=dict)
    _met: list[int] = field(default_factory=list)
    """The number of each chunk among the known ones, -1 for new ones."""
    _parts: list[_Met | _New] = field(default_factory=list)
    """What was found so far."""
    _at: int = field(init=False)
    """Where it ends."""
    _kept: int = 0
    """Up to where pages of the file stay in memory."""
    _fresh: int = 0
    """New chunks so far, about."""
    _tries: int = 0
    """Comparisons of known chunks in vain."""

    def __post_init__(self) -> None:
        self._at = self.begin

    def found(self) -> bool:
        """Go through the file. Return False where it has to be looked at as a whole."""
        try:
            self._go()
            self._cut()
        except _GivenUp:
            return False
        return bool(self._met)

    def hashes(self, seed: int | None) -> Hashes:
        """The hashes of the chunks found, and of the records of new ones. `seed`: the seed of the hashes of records; None where nobody wants them."""
        met, starts = np.array(self._met, np.int64), self.starts.tolist()
        fresh, begins, words = list[int](), [np.empty(0, np.uint64)], _words(self.data)
        for numbers in by_places(self.data, list(self.bounds)):
            fresh += [record_hashes.of_chunk(self.view[starts[number] : starts[number + 1]], self.seed) for number in numbers]
            begins.append(_begins(words, self.starts[numbers]))
        met[met < 0] = len(self._digests) + np.arange(len(fresh))
        chunks = np.concatenate([self.known.digests, np.array(fresh, np.uint64)])[met]
        return Hashes(chunks, np.concatenate([self.known.begins, *begins])[met], None if seed is None else self._of_records(seed))

    def _of_records(self, seed: int) -> pa.Array:
        """The hashes of the records of new chunks."""
        runs = list(self.bounds.values())
        return record_hashes.by_chunk(record_hashes.of_runs(self.data, runs, seed), np.array([len(run) - 1 for run in runs], np.int64))

    def _go(self) -> None:
        """Find the known chunks, and what is between them. Raises _GivenUp."""
        number, changes, early = 0, 0, len(self._digests) * _EARLY
        while True:
            number = self._pass(number)
            if self._at == len(self.view):
                return
            if changes > _MOST_NEW * max(number, early):
                raise _GivenUp
            found = self._near(number)
            number, changes = self._new_chunks(number) if found is None else found, changes + 1

    def _pass(self, number: int) -> int:
        """Pass over known chunks from one number on. Return the number of the first one that is not there."""
        first, at, sizes, digests, view, seed = number, self._at, self._sizes, self._digests, self.view, self.seed
        last, whole = len(sizes) - 1, len(view)
        while number < last and (end := at + sizes[number]) <= whole and record_hashes.of_chunk(view[at:end], seed) == digests[number]:
            at, number = end, number + 1
            if at > self._kept:
                release_pages(self.data)
                self._kept = at + RESIDENT
        if number == last and self._is_at(at, number):
            at, number = at + sizes[number], number + 1
        self._parts.append(_Met(first, number))
        self._at = at
        return number

    def _is_at(self, start: int, number: int) -> bool:
        """Whether a known chunk is at a place."""
        return self._fits(start, number) and record_hashes.of_chunk(self.view[start : start + self._sizes[number]], self.seed) == self._digests[number]

    def _fits(self, start: int, number: int) -> bool:
        """Whether a known chunk may be at a place: nothing but the end of the file may follow the last one."""
        end, whole = start + self._sizes[number], len(self.view)
        return end == whole or (end < whole and number < len(self._sizes) - 1)

    def _near(self, number: int) -> int | None:
        """Look for the next known chunks a few lines from where they were, and add what is new before. Return the number of the one found; None where none was.

        Most changes leave one there. `_new_chunks` has to find all records first, which takes longer.

        Args:
            number: the known chunk that is not here
        """
        if not self._at or self.view[self._at] in b"\r\n":  # a byte order mark may be here, or blank lines, which have to be a part of a chunk
            return None
        behind = self._at
        for met in range(number + 1, min(number + _MISSING, len(self._sizes) - 1) + 1):
            behind += self._sizes[met - 1]
            for place in self._lines_near(behind):
                if self._is_at(place, met) and self.reader.may_begin(self.data, self._at, place):
                    if place > self._at:
                        self._add(_New(self._at, place, None), met - number)
                    return met
        return None

    def _lines_near(self, place: int) -> Iterator[int]:
        """Where lines begin next to a place, before it and behind it by turns."""
        low, high, end = place + 1, place, place + self._window
        for _ in range(_NEAR):
            if low > self._at:
                yield (low := max(self.data.rfind(b"\n", self._at, low - 1) + 1, self._at))
            if high and (high := self.data.find(b"\n", high, end) + 1):
                yield high

    def _new_chunks(self, number: int) -> int:
        """Add what is new from here on. Return the number of the known chunk that goes on behind it, or how many there are where the file ends. Raises _GivenUp.

        Args:
            number: the known chunk that is not here
        """
        at, end, runs, count = self._at, len(self.view), list[Positions](), 0
        size = self._sizes[number] + _SLACK if number < len(self._sizes) else self._window
        while True:
            starts = self.reader.starts_within(self.data, at, min(at + size, end))
            if starts is None or not len(starts):
                raise _GivenUp
            place, met = self._next(starts, number, first=not runs)
            if met >= 0:
                runs.append(starts[: place + 1])
                break
            if at + size >= end:
                runs.append(np.append(starts, end))
                met = len(self._sizes)
                break
            if len(starts) == 1 and size >= CHUNK_BYTES:
                raise _GivenUp
            runs.append(starts[:-1])
            at, count, size = int(starts[-1]), count + len(starts) - 1, min(size * _WIDER, CHUNK_BYTES)
            if self._fresh + count // RECORDS > _MOST_NEW * len(self._sizes):
                raise _GivenUp
        bounds = np.concatenate(runs)
        if len(bounds) > 1:
            self._add(_New(self._at, int(bounds[-1]), bounds), len(_firsts(len(bounds) - 1)))
        return met

    def _add(self, new: _New, count: int) -> None:
        """Add new records, which make `count` chunks, about."""
        self._parts.append(new)
        self._at, self._fresh = new.end, self._fresh + count

    def _next(self, starts: Positions, number: int, *, first: bool) -> tuple[int, int]:
        """The first of some records with which a known chunk goes on, and the chunk's number, at least `number`; a number below 0 where none does. Raises _GivenUp.

        Args:
            starts: where the records begin
            number: the known chunk that is not here
            first: whether the first record is the one that this chunk would begin with
        """
        begins, numbers = self._by_begin
        if number >= len(begins):
            return 0, -1
        wanted = _begins(_words(self.data), starts)
        found = np.searchsorted(begins, wanted)
        for place in np.flatnonzero(begins[np.minimum(found, len(begins) - 1)] == wanted).tolist():
            if first and starts[0] > self._at and not place:  # blank lines between chunks have to be a part of one
                continue
            behind = int(np.searchsorted(begins, wanted[place], "right"))
            alike = numbers[found[place] : behind]
            low = int(np.searchsorted(alike, number))
            for met in alike[low : low + _TRIES].tolist():
                if self._is_at(int(starts[place]), met):
                    return place, met
                self._tries += self._fits(int(starts[place]), met)
            if self._tries > _MOST_TRIES * len(begins) + _FREE_TRIES:
                raise _GivenUp
        return 0, -1

    def _cut(self) -> None:
        """Cut what is new into chunks, and set the bounds of all chunks. Raises _GivenUp where it cannot be cut, and for a chunk that is too large."""
        sizes, records, new = list[int](), list[int](), self._bounds_of_new()
        for part in self._parts:
            if isinstance(part, _Met):
                sizes += self._sizes[part.first : part.behind]
                records += self._records[part.first : part.behind]
                self._met += range(part.first, part.behind)
                continue
            start, bounds = part.start, next(new)
            if len(bounds) < 2:  # nothing but white space
                raise _GivenUp
            for low, high in pairwise([*_firsts(len(bounds) - 1), len(bounds) - 1]):
                chunk = bounds[low : high + 1]
                end = int(chunk[-1])
                if end - start > CHUNK_BYTES:
                    raise _GivenUp
                self.bounds[len(self._met)] = chunk
                sizes.append(end - start)
                records.append(high - low)
                self._met.append(-1)
                start = end
        self.starts = np.cumsum(np.array([self.begin, *sizes], np.int64))
        self.rows = np.cumsum(np.array([1, *records], np.int64))

    def _bounds_of_new(self) -> Iterator[Positions]:
        """Where the records of each new part begin, and the last one ends. They are looked for in many parts at once. Raises _GivenUp."""
        parts = [part for part in self._parts if isinstance(part, _New)]
        uncut = [part for part in parts if part.bounds is None]
        sizes = np.array([part.end - part.start for part in uncut], np.int64)
        groups = _by_size(np.arange(len(uncut)), sizes, CHUNK_BYTES)
        found = (bounds for numbers in groups for bounds in self._bounds_within([uncut[number] for number in numbers.tolist()]))
        return (next(found) if part.bounds is None else part.bounds for part in parts)

    def _bounds_within(self, parts: Sequence[_New]) -> Iterator[Positions]:
        """Where the records of each part begin, and the last one ends. Raises _GivenUp where a known chunk behind a part is inside quotes."""
        last = parts[-1].end
        texts = [bytes(self.view[part.start : part.end]) for group in by_places(self.data, parts) for part in group] + [self.view[last : last + 1]]
        begins = np.cumsum([1, *map(len, texts[:-1])])
        text = b"".join([b"\n", *texts])  # a line end first, as other bytes could be taken for a byte order mark
        starts = self.reader.starts_within(text, 1, len(text))
        if starts is None:
            raise _GivenUp
        cuts = np.searchsorted(starts, begins)
        if not np.array_equal(starts[np.minimum(cuts, len(starts) - 1)][1:], begins[1:]):
            raise _GivenUp
        for part, begin, low, high in zip(parts, begins.tolist(), cuts.tolist(), cuts[1:].tolist(), strict=False):
            yield np.append(starts[low:high] + (part.start - begin), part.end)

    @cached_property
    def _window(self) -> int:
        """Bytes in which known chunks are looked for first behind the last one."""
        return _WIDER * max(sum(self._sizes) // max(len(self._sizes), 1), _WORD) + _SLACK

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
    def _by_begin(self) -> tuple[RecordHashes, Positions]:
        """The hashes of the begins of known chunks, ascending, and the number of each chunk; of equal ones the first chunk comes first."""
        order = np.argsort(self.known.begins, kind="stable")
        return self.known.begins[order], order


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
    salt = record_hashes.new_salt() if known is None else known.salt
    with line_numbers(path, name):
        found = reader.record_starts(data, name, lambda starts: _look(starts, data, hashed))
        if found is None:
            return None
        reading = repr((found.head, reader.plan.undeclared)).encode()
        seed = record_hashes.seed_of(salt, reading, 1)
        hashed = record_hashes.seed_of(salt, reading, 0) if by_record else None
        if known is not None:
            with memoryview(data) as view:
                walk = _Walk(reader, data, view, seed, known, found.begin)
                if walk.found():
                    settled = _settled(walk.hashes(hashed), path, facts)
                    return ContentChunks(walk.starts, walk.rows, found.head, _done(settled), salt, walk.bounds)
        pieces = [one for one in by_parts(data, found.results, CHUNK_BYTES // 2) if one is not None]
        starts, rows = _bounds(pieces, found.begin, len(data))
    if rows[-1] == 1 or int(np.diff(starts).max()) > CHUNK_BYTES:
        return None

    def hashes() -> Hashes:
        records = None if hashed is None else record_hashes.by_chunk(_of_pieces(data, pieces, hashed), np.diff(rows))
        return _settled(Hashes(*_digests(data, starts, seed), records), path, facts)

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
    return hashes._replace(chunks=np.frombuffer(os.urandom(hashes.chunks.nbytes), np.uint64), records=None)


def _by_size(items: Positions, sizes: Positions, target: int) -> Iterator[Positions]:
    """Yield items in groups that have about `target` bytes each. `sizes`: the bytes of each item."""
    filled = np.cumsum(sizes) // target
    return (group for group in np.split(items, np.flatnonzero(np.diff(filled)) + 1) if len(group))


def _words(data: Buffer) -> Words:
    """The eight bytes that begin at each place."""
    return np.ndarray((len(data) - _WORD + 1,), "<u8", data, strides=(1,))


def _begins(words: Words, starts: Positions) -> RecordHashes:
    """A hash of the bytes that begin at each place."""
    places = np.minimum(starts[:, None] + np.arange(0, _BEGIN, _WORD), len(words) - 1)
    mixed: RecordHashes = (words[places] * _factors(_BEGIN)).sum(axis=1, dtype=np.uint64)
    return mixed


def _firsts(count: int) -> range:
    """The numbers, from 0, of the records that begin a chunk in a run of `count` records. The last chunk has up to half as many records again."""
    return range(0, max(round(count / RECORDS), 1) * RECORDS, RECORDS)


def _look(starts: StartsOfPiece, data: Buffer, seed: int | None) -> _Seen | None:
    """Return a piece's records, which begin at `starts`; None where it has none."""
    places = starts if seed is None else np.asarray(starts)
    if not len(places):
        return None
    numbers = np.array(_firsts(len(places)), np.int64)
    hashes = None if seed is None else record_hashes.of_run(data, np.asarray(places), seed)
    return _Seen(len(places), int(places[0]), int(places[-1]), numbers, places[numbers], hashes)


def _bounds(pieces: Sequence[_Seen], begin: int, end: int) -> tuple[Positions, Positions]:
    """`starts` and `rows` of the chunks."""
    counts = np.array([0, *accumulate(piece.count for piece in pieces)], np.int64)
    starts = np.concatenate([*(piece.places for piece in pieces), [end]])
    starts[0] = begin
    return starts, np.concatenate([*(piece.numbers + count for piece, count in zip(pieces, counts[:-1], strict=True)), counts[-1:]]) + 1


def _digests(data: Buffer, bounds: Positions, seed: int) -> tuple[RecordHashes, RecordHashes]:
    """The hashes of chunks that follow each other, and of their begins. `bounds`: where each begins, then where the last one ends."""
    words = _words(data)
    begins: list[RecordHashes] = []
    found: list[int] = []
    with memoryview(data) as view:
        for starts in _by_size(bounds[:-1], np.diff(bounds), RESIDENT):
            ends = bounds[len(found) + 1 : len(found) + len(starts) + 1]
            found += [record_hashes.of_chunk(view[start:end], seed) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
            begins.append(_begins(words, starts))
            release_pages(data)
    return np.array(found, np.uint64), np.concatenate(begins)
