"""Content-defined chunks of large files. The content decides where a chunk ends, so a change of the file moves only the ends near it.

A record is the last one of its chunk where a hash of three samples of its bytes is below 1/`RECORDS` of the hash's range, and the chunk has at least
`LEAST` records. Two versions of a file have the same chunks except where they differ, whatever was inserted or deleted.

Of a file whose last version is known, only the hashes of the known chunks are compared. Records are looked for where a hash differs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from blake3 import blake3

from changelog.lazy_imports import np
from storage.files.errors import Buffer
from storage.files.local import buffer_of, is_compressed, release_pages
from storage.files.stores import store_of
from storage.formats.base import CHUNK_BYTES, Piece, Range, Reader
from storage.formats.tasks import line_numbers
from storage.stores.places import Place

if TYPE_CHECKING:
    import numpy.typing as npt

Positions: TypeAlias = "npt.NDArray[np.int64]"
Words: TypeAlias = "npt.NDArray[np.uint64]"

RECORDS = 128
"""Records of an average chunk."""
LEAST = 16
"""Records of the smallest chunk; only the last chunk of a file may have fewer."""
DIGEST = 16
"""Bytes of a chunk's hash."""
GROUP = 8
"""Chunks whose bytes together have a hash too. One hash of many bytes takes half of the time of many hashes."""
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
    """The hashes of the chunks of a file and of groups of chunks. A group with a new chunk has none: where one changes, others may soon."""

    chunks: tuple[bytes, ...]
    groups: tuple[bytes | None, ...]


@dataclass(frozen=True, slots=True)
class ContentChunks:
    """The chunks of a file, each with at least one record.

    Args:
        starts: where each chunk begins, then where the file ends
        rows: the number of each chunk's first record, then the number after the last record
        head: `Range.head` of the chunks
        hashing: computes the digests
    """

    starts: Positions
    rows: Positions
    head: bytes
    hashing: Future[Hashes]

    @property
    def count(self) -> int:
        """The number of chunks."""
        return len(self.starts) - 1

    @property
    def digests(self) -> tuple[bytes, ...]:
        """A hash of each chunk's bytes and of what else decides how they are read. A thread computes them: the first read of a file does not need them."""
        return self.hashing.result().chunks

    @property
    def groups(self) -> tuple[bytes | None, ...]:
        """A hash of the bytes of each `GROUP` chunks, by their numbers; None where these chunks have just changed."""
        return self.hashing.result().groups

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

    def _range(self, numbers: Positions) -> Range:
        runs = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
        bounds = [(run[0], run[-1] + 1) for run in runs]
        pieces = [Piece(*map(int, (self.starts[low], self.starts[high], self.rows[low], self.rows[high] - self.rows[low]))) for low, high in bounds]
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
    """

    count: int
    first: int
    last: int
    numbers: Positions
    places: Positions


@dataclass(frozen=True, slots=True)
class KnownChunks:
    """The chunks that a file had: the hash, the bytes and the number of records of each, and the hash of each group."""

    digests: Sequence[bytes]
    sizes: Sequence[int]
    records: Sequence[int]
    groups: Sequence[bytes | None]


@dataclass
class _Walk:
    """A walk through a file from one known chunk to the next. Where a chunk is new, it looks for the place where known chunks go on.

    Args:
        reader: reads the file
        data: the file
        seed: the key of the hashes
        known: the chunks that it had
        starts: where the chunks found so far begin, then where the last one ends
        rows: as in `ContentChunks`
        digests: the hashes of the chunks found so far
        groups: the hashes of groups that are known, by their numbers; None where a chunk of the group is new
    """

    reader: Reader
    data: Buffer
    seed: bytes
    known: KnownChunks
    starts: list[int]
    rows: list[int] = field(default_factory=lambda: [1])
    digests: list[bytes] = field(default_factory=list)
    groups: dict[int, bytes | None] = field(default_factory=dict)

    def found(self) -> bool:
        """Go through the file. Return False where many chunks are new, or it has to be looked at as a whole."""
        number, least, new, early = 0, 0, 0, len(self.known.digests) * _EARLY
        with memoryview(self.data) as view:
            while True:
                passed = self._pass(view, number)
                number, least = passed, passed if passed > number else least
                if self.starts[-1] == len(self.data):
                    return bool(self.digests)
                chunk = self._new_chunk(number) if new <= _MOST_NEW * max(number, early) else None
                if chunk is None:
                    return False
                digest = blake3(view[self.starts[-1] : chunk[0]], key=self.seed).digest(DIGEST)
                self.groups[len(self.digests) // GROUP] = None
                self._add(*chunk, digest)
                met, new = self._places.get(digest, -1), new + 1
                number = met + 1 if met >= least else number + 1
                least = number if met >= least else least

    def hashes(self) -> Hashes:
        """The hashes of the chunks found and of their groups."""
        missing = [number for number in range(_group_count(len(self.digests))) if number not in self.groups]
        made = dict(zip(missing, _group_digests(self.data, self.starts, self.seed, missing), strict=True))
        groups = {**self.groups, **made}
        return Hashes(tuple(self.digests), tuple(groups[number] for number in sorted(groups)))

    def _pass(self, view: memoryview, number: int) -> int:
        """Pass over known chunks from one number on. Return the number of the first one that is not there."""
        digests, sizes, records, seed = self.known.digests, self.known.sizes, self.known.records, self.seed
        end, last = len(self.data), len(digests) - 1
        while number <= last:
            if number % GROUP == 0 and number + GROUP <= last and self._pass_group(view, number):
                number += GROUP
                continue
            at = self.starts[-1]
            stop = at + sizes[number]
            if stop > end or (number == last and stop != end):  # nothing but the end of the file may follow the last one
                return number
            if blake3(view[at:stop], key=seed).digest(DIGEST) != digests[number]:
                return number
            self._add(stop, records[number], digests[number])
            number += 1
        return number

    def _pass_group(self, view: memoryview, number: int) -> bool:
        """Pass over the group that begins with a known chunk. Return False where it is not there."""
        at, end, digest = self.starts[-1], number + GROUP, self.known.groups[number // GROUP]
        if digest is None:
            return False
        stops = [*accumulate(self.known.sizes[number:end], initial=at)][1:]
        if stops[-1] // _RESIDENT > at // _RESIDENT:
            release_pages(self.data)
        if stops[-1] > len(self.data) or blake3(view[at : stops[-1]], key=self.seed).digest(DIGEST) != digest:
            return False
        if len(self.digests) % GROUP == 0:
            self.groups[len(self.digests) // GROUP] = digest
        self.starts += stops
        self.rows += [*accumulate(self.known.records[number:end], initial=self.rows[-1])][1:]
        self.digests += self.known.digests[number:end]
        return True

    def _new_chunk(self, number: int) -> tuple[int, int] | None:
        """The end and the number of records of the chunk that begins here; None where no record follows or the chunk is too large.

        Args:
            number: the known chunk that is not here: this may be its new version
        """
        at, end, words = self.starts[-1], len(self.data), _words(self.data)
        size = self.known.sizes[number] + _SLACK if number < len(self.known.sizes) else self._window
        while size <= CHUNK_BYTES:
            stop = min(at + size, end)
            starts = self.reader.starts_within(self.data, at, stop)
            if starts is None or not len(starts):
                return None
            ends = np.flatnonzero(_last_ones(words, starts[:-1], starts[1:])) + 1
            ends = ends[ends >= LEAST]
            if len(ends):
                return int(starts[ends[0]]), int(ends[0])
            if stop == end:
                return end, len(starts)
            size = max(size * _WIDER, self._window)
        return None

    def _add(self, stop: int, records: int, digest: bytes) -> None:
        if stop // _RESIDENT > self.starts[-1] // _RESIDENT:
            release_pages(self.data)
        self.starts.append(stop)
        self.rows.append(self.rows[-1] + records)
        self.digests.append(digest)

    @cached_property
    def _window(self) -> int:
        """Bytes in which the end of a new chunk is looked for first."""
        return _WINDOW * max(sum(self.known.sizes) // max(len(self.known.sizes), 1), _WORD)

    @cached_property
    def _places(self) -> dict[bytes, int]:
        """The last number of each known chunk, by its hash."""
        return {digest: number for number, digest in enumerate(self.known.digests)}


def chunks_of(reader: Reader, path: Place, name: str, known: KnownChunks | None = None) -> ContentChunks | None:
    """The chunks of a file; None where it cannot be cut before each record. Raises InputError.

    Args:
        reader: reads the file
        path: where it is
        name: how messages call it
        known: the chunks of its last version
    """
    if is_compressed(path) or reader.plan.sections or reader.plan.document:
        return None
    facts, data = store_of(path).identity(path), buffer_of(path, name)
    if len(data) < _WORD:
        return None
    words = _words(data)
    with line_numbers(path, name):
        found = reader.record_starts(data, name, lambda starts: _look(words, starts))
        if found is None:
            return None
        seed = blake3(repr((found.head, reader.plan.undeclared)).encode()).digest()
        walk = _Walk(reader, data, seed, known, [found.begin]) if known is not None else None
        if walk is not None and walk.found():
            return ContentChunks(np.array(walk.starts), np.array(walk.rows), found.head, _done(_settled(walk.hashes(), path, facts)))
        starts, rows = _bounds(words, _released(found.results, data), found.begin, len(data))
    if rows[-1] == 1 or int(np.diff(starts).max()) > CHUNK_BYTES:
        return None
    thread = ThreadPoolExecutor(1)
    hashing = thread.submit(lambda: _settled(_hashes(data, starts, seed), path, facts))
    thread.shutdown(wait=False)
    return ContentChunks(starts, rows, found.head, hashing)


def _done(hashes: Hashes) -> Future[Hashes]:
    done = Future[Hashes]()
    done.set_result(hashes)
    return done


def _settled(hashes: Hashes, path: Place, facts: tuple[object, ...]) -> Hashes:
    """The hashes of a file, or random ones where it changed meanwhile: its records may be from before the change and have to be read again."""
    return hashes if store_of(path).identity(path) == facts else Hashes(*(tuple(os.urandom(DIGEST) for _ in digests) for digests in hashes))


def _released(pieces: Iterable[_Seen | None], data: Buffer) -> Iterator[_Seen | None]:
    """The pieces of a file. Memory of the pieces seen is given back."""
    for number, piece in enumerate(pieces, 1):
        yield piece
        if number % (_RESIDENT // CHUNK_BYTES) == 0:
            release_pages(data)


def _words(data: Buffer) -> Words:
    """The eight bytes that begin at each place."""
    return np.ndarray((len(data) - _WORD + 1,), "<u8", data, strides=(1,))


def _look(words: Words, starts: Positions) -> _Seen | None:
    if not len(starts):
        return None
    numbers = np.flatnonzero(_last_ones(words, starts[:-1], starts[1:])) + 1
    return _Seen(len(starts), int(starts[0]), int(starts[-1]), numbers, starts[numbers])


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


def _bounds(words: Words, pieces: Iterable[_Seen | None], begin: int, end: int) -> tuple[Positions, Positions]:
    """`starts` and `rows` of the chunks."""
    starts, rows, count, before = [begin], [1], 0, None
    for seen in (one for one in pieces if one is not None):
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


def _hashes(data: Buffer, starts: Positions, seed: bytes) -> Hashes:
    count = _group_count(len(starts) - 1)
    return Hashes(_digests(data, starts, seed), _group_digests(data, starts.tolist(), seed, range(count)))


def _group_count(chunks: int) -> int:
    return -(-chunks // GROUP)


def _group_digests(data: Buffer, starts: Sequence[int], seed: bytes, numbers: Iterable[int]) -> tuple[bytes, ...]:
    """The hashes of some groups of chunks."""
    last = len(starts) - 1
    return _hashed(data, ((starts[number * GROUP], starts[min((number + 1) * GROUP, last)]) for number in numbers), seed)


def _digests(data: Buffer, starts: Positions, seed: bytes) -> tuple[bytes, ...]:
    return _hashed(data, pairwise(starts.tolist()), seed)  # with more threads the interpreter's lock costs more than the hashing


def _hashed(data: Buffer, bounds: Iterable[tuple[int, int]], seed: bytes) -> tuple[bytes, ...]:
    """The hashes of parts of a file, which ascend."""
    found, seen = [], 0
    with memoryview(data) as view:
        for start, end in bounds:
            found.append(blake3(view[start:end], key=seed).digest(DIGEST))
            if end - seen > _RESIDENT:
                release_pages(data)
                seen = end
    return tuple(found)
