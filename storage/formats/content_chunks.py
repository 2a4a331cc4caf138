"""Content-defined chunks of large files. The content decides where a chunk ends, so a change of the file moves only the ends near it.

A record is the last one of its chunk where a hash of three samples of its bytes is below 1/`RECORDS` of the hash's range, and the chunk has at least
`LEAST` records. Two versions of a file have the same chunks except where they differ, whatever was inserted or deleted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from blake3 import blake3

from changelog.lazy_imports import np
from storage.files.errors import Buffer
from storage.files.local import buffer_of, is_compressed
from storage.formats.base import CHUNK_BYTES, Piece, Range, Reader
from storage.formats.tasks import line_numbers

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
_WORD = 8


@cache
def _factors() -> Words:
    """The odd factors that mix the samples."""
    return np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xFF51AFD7ED558CCD], np.uint64)


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
    hashing: Future[tuple[bytes, ...]]

    @property
    def count(self) -> int:
        """The number of chunks."""
        return len(self.starts) - 1

    @property
    def digests(self) -> tuple[bytes, ...]:
        """A hash of each chunk's bytes and of what else decides how they are read. A thread computes them: the first read of a file does not need them."""
        return self.hashing.result()

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


def chunks_of(reader: Reader, path: Path, name: str) -> ContentChunks | None:
    """The chunks of a file; None where it cannot be cut before each record. Raises InputError."""
    if is_compressed(path) or reader.plan.sections or reader.plan.document:
        return None
    facts, data = _facts(path), buffer_of(path, name)
    if len(data) < _WORD:
        return None
    words = _words(data)
    with line_numbers(path, name):
        found = reader.record_starts(data, name, lambda starts: _look(words, starts))
        if found is None:
            return None
        starts, rows = _bounds(words, found.results, found.begin, len(data))
    if rows[-1] == 1 or int(np.diff(starts).max()) > CHUNK_BYTES:
        return None
    seed = blake3(repr((found.head, reader.plan.undeclared)).encode()).digest()
    thread = ThreadPoolExecutor(1)
    hashing = thread.submit(lambda: _settled(_digests(data, starts, seed), path, facts))
    thread.shutdown(wait=False)
    return ContentChunks(starts, rows, found.head, hashing)


def _facts(path: Path) -> tuple[int, ...]:
    """Inode, size and time of a file, which change when the file does; nothing for a file that is gone."""
    try:
        facts = path.stat()
    except FileNotFoundError:
        return ()
    return facts.st_ino, facts.st_size, facts.st_mtime_ns


def _settled(digests: tuple[bytes, ...], path: Path, facts: tuple[int, ...]) -> tuple[bytes, ...]:
    """The hashes of a file, or random ones where it changed meanwhile: its records may be from before the change and have to be read again."""
    return digests if _facts(path) == facts else tuple(os.urandom(DIGEST) for _ in digests)


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


def _digests(data: Buffer, starts: Positions, seed: bytes) -> tuple[bytes, ...]:
    with memoryview(data) as view:  # with more threads the interpreter's lock costs more than the hashing
        return tuple(blake3(view[start:end], key=seed).digest(DIGEST) for start, end in pairwise(starts.tolist()))

