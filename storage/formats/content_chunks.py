"""Large files in stretches: runs of records that end where their content says so, so that a change moves no ends but those around it (DESIGN section 6).

A record is the last one of its stretch where a hash of three samples of its bytes is among the lowest of `RECORDS` equal parts, unless the stretch has fewer than `LEAST`
records by then. Two versions of a file so have the same stretches but where they differ, whatever was put in or taken out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from storage.files.local import buffer_of, is_compressed
from storage.formats.base import CHUNK_BYTES, Buffer, Piece, Range, Reader
from storage.formats.tasks import told_by_line

Positions: TypeAlias = npt.NDArray[np.int64]
Words: TypeAlias = npt.NDArray[np.uint64]

RECORDS = 128
"""Records of a stretch on an average, as far as the content has them."""
LEAST = 16
"""Records that a stretch has at least, but for the last one."""
DIGEST = 16
"""Bytes of a stretch's hash."""
_WORD = 8
_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xFF51AFD7ED558CCD], np.uint64)


@dataclass(frozen=True, slots=True)
class ContentChunks:
    """The stretches of a file, each with one record at least.

    `starts`: where each begins, and at last where the file ends. `rows`: the number of the first record of each, and at last the number behind the last
    record. `head`: `Range.head` of what is read.
    """

    starts: Positions
    rows: Positions
    head: bytes
    hashing: Future[tuple[bytes, ...]]

    @property
    def count(self) -> int:
        """How many stretches there are."""
        return len(self.starts) - 1

    @property
    def digests(self) -> tuple[bytes, ...]:
        """A hash of each one's bytes and of what else decides what is read of them: made in a thread, since a file is read for the first time without them."""
        return self.hashing.result()

    @property
    def records(self) -> int:
        """How many records the file has."""
        return int(self.rows[-1]) - 1

    def ranges(self, chosen: Positions | None = None, target: int = CHUNK_BYTES) -> tuple[Range, ...]:
        """Ranges of about `target` bytes that read all stretches, or those of some numbers in ascending order."""
        numbers = np.arange(self.count) if chosen is None else chosen
        filled = np.cumsum(self.starts[numbers + 1] - self.starts[numbers]) // target
        groups = np.split(numbers, np.flatnonzero(np.diff(filled)) + 1)
        return tuple(self._range(group) for group in groups if len(group))

    def holding(self, rows: Positions) -> tuple[Range, ...]:
        """Ranges of the stretches in which the records of some numbers stand."""
        return self.ranges(np.unique(np.searchsorted(self.rows, rows, side="right") - 1))

    def _range(self, numbers: Positions) -> Range:
        runs = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
        bounds = [(run[0], run[-1] + 1) for run in runs]
        pieces = [Piece(*map(int, (self.starts[low], self.starts[high], self.rows[low], self.rows[high] - self.rows[low]))) for low, high in bounds]
        return Range(pieces[0].start, pieces[-1].end, pieces[0].first_row, self.head, tuple(pieces) if len(pieces) > 1 else ())


@dataclass(frozen=True, slots=True)
class _Seen:
    """The records that begin in a piece of a file: how many, where the first and the last do, and those that begin a stretch: their number here, from 0, and place."""

    count: int
    first: int
    last: int
    numbers: Positions
    places: Positions


def stretches_of(reader: Reader, path: Path, name: str) -> ContentChunks | None:
    """The stretches of a file; None where its format or content does not let it be cut before each record. Raises InputError."""
    if is_compressed(path) or reader.plan.sections or reader.plan.document:
        return None
    facts, data = _facts(path), buffer_of(path, name)
    if len(data) < _WORD:
        return None
    words = _words(data)
    with told_by_line(path, name):
        found = reader.record_starts(data, name, lambda starts: _look(words, starts))
        if found is None:
            return None
        starts, rows = _chosen(words, found.looked, found.begin, len(data))
    if rows[-1] == 1 or int(np.diff(starts).max()) > CHUNK_BYTES:
        return None
    seed = blake3(repr((found.head, reader.plan.undeclared)).encode()).digest()
    thread = ThreadPoolExecutor(1)
    hashing = thread.submit(lambda: _settled(_digests(data, starts, seed), path, facts))
    thread.shutdown(wait=False)
    return ContentChunks(starts, rows, found.head, hashing)


def _facts(path: Path) -> tuple[int, ...]:
    """What changes where a file does; nothing of one that is gone."""
    try:
        told = path.stat()
    except FileNotFoundError:
        return ()
    return told.st_ino, told.st_size, told.st_mtime_ns


def _settled(digests: tuple[bytes, ...], path: Path, facts: tuple[int, ...]) -> tuple[bytes, ...]:
    """The hashes of a file; such as nothing else has where it was written to meanwhile: its records may have been read before that, and shall be read again."""
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
    """Whether the records that begin at `starts`, the next ones `behind`, may be the last of their stretches."""
    if not len(starts):
        return np.empty(0, np.bool_)
    lengths = behind - starts
    mixed = lengths.astype(np.uint64) * _FACTORS[0]
    places = (starts, starts + (lengths >> 1), behind - _WORD)
    limit = len(words) - 1
    for place, factor in zip(places, _FACTORS[1:], strict=True):
        inside = place if starts[0] >= _WORD and behind[-1] <= limit else np.clip(place, 0, limit)
        mixed += words[inside] * factor
    mixed ^= mixed >> np.uint64(32)
    mixed *= _FACTORS[0]
    last: npt.NDArray[np.bool_] = mixed < np.uint64((1 << 64) // RECORDS)
    return last


def _chosen(words: Words, looked: Iterable[_Seen | None], begin: int, end: int) -> tuple[Positions, Positions]:
    """`starts` and `rows` of the stretches."""
    starts, rows, count, before = [begin], [1], 0, None
    for seen in (one for one in looked if one is not None):
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
    with memoryview(data) as view:  # more threads would hand the interpreter to each other more often than they hash
        return tuple(blake3(view[start:end], key=seed).digest(DIGEST) for start, end in pairwise(starts.tolist()))


__all__ = ["DIGEST", "ContentChunks", "stretches_of"]
