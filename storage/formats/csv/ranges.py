"""A CSV file cut into ranges of whole records with the number of the first record. Threads count them and respect quotes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Generic, TypeAlias, cast

from changelog.lazy_imports import np
from storage.files.errors import Buffer, InputError
from storage.files.local import by_parts
from storage.formats import limits
from storage.formats.base import CHUNK_BYTES, Range, Scanned, StartsOfPiece, T
from storage.formats.byte_places import Marks, those_in
from storage.formats.csv.header import Header, header_of
from storage.formats.csv.options import CsvReadOptions
from storage.formats.csv.scan import CR, LF, Bytes, Dialect, Positions, as_bytes, line_ends, outside, terminators, toggles

Bound: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Piece:
    """The record ends in a piece of a file, its first line end (-1: none) and whether a record ends there."""

    ended: int
    first: int
    first_ends: bool


@dataclass(frozen=True, slots=True)
class _Looked(Generic[T]):
    """The number of quotes in a piece of a file, and what was made of it where it has none."""

    quotes: int
    made: T | None


@dataclass(frozen=True, slots=True)
class _Scan(Generic[T]):
    """A file that is scanned in pieces.

    Args:
        data: its bytes
        start: where its records begin
        dialect: its delimiter and quote
        name: how messages call it
        plain: called with each piece of a file without quotes, and whether the piece has CRs
        quoted: called with each piece of another file and its line ends outside quotes
    """

    data: Buffer
    start: int
    dialect: Dialect
    name: str
    plain: Callable[[Bound, bool], T]
    quoted: Callable[[Bound, Positions], T]

    @property
    def view(self) -> Bytes:
        """Its bytes as numbers."""
        return as_bytes(self.data)

    def pieces(self, target: int) -> Iterator[T]:
        """The results for the pieces of about `target` bytes, in order. Raises InputError."""
        view, start = self.view, self.start
        starts = [start, *(_after_quotes(view, self.dialect, at) for at in range(start + target, len(view), target))]
        bounds = list(pairwise(sorted({*starts, len(view)})))
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            found = list(by_parts(self.data, pool.map(self._first_look, bounds), target))
            quotes = [one.quotes for one in found]
            yield from self._with_quotes(bounds, quotes, pool) if any(quotes) else (cast("T", one.made) for one in found)

    def _first_look(self, bound: Bound) -> _Looked[T]:
        """What is made of a piece without quotes, or how many it has."""
        piece, quote = self.view[slice(*bound)], self.dialect.quote
        there = those_in(piece, bytes([quote, CR]))
        return _Looked(int(np.count_nonzero(piece == quote)), None) if quote in there else _Looked(0, self.plain(bound, CR in there))

    def _with_quotes(self, bounds: Sequence[Bound], counts: Sequence[int], pool: Executor) -> Iterator[T]:
        """The results for a file with quotes.

        In well-formed text a piece begins inside quotes if the number of quotes before it is odd. Where this guess is wrong, the piece is scanned again.
        """
        guesses = [bool(seen & 1) for seen in accumulate(counts, initial=0)]
        inside, last_quote = False, 0
        for bound, guess, guessed in zip(bounds, guesses, pool.map(self._scanned, bounds, guesses), strict=False):
            made, found, after = guessed if guess == inside else self._scanned(bound, inside)
            yield made
            inside, last_quote = after, int(found[-1]) if len(found) else last_quote
        if inside:
            raise InputError(self.name, "a quoted field is never closed", offset=last_quote)

    def _scanned(self, bound: Bound, inside: bool) -> tuple[T, Positions, bool]:
        found, after = toggles(self.view, self.dialect, *bound, inside, first=self.start)
        lines = line_ends(self.view[slice(*bound)]) + bound[0]
        return self.quoted(bound, outside(lines, found, inside)), found, after


@dataclass(frozen=True, slots=True)
class _LineStarts:
    """Where records begin in a piece without quotes, CRs and empty lines.

    Args:
        start: where the piece begins
        marks: its line ends
        first: 1 where a record begins with the piece, else 0
        count: the number of records that begin in it
    """

    start: int
    marks: Marks
    first: int
    count: int

    @classmethod
    def of(cls, view: Bytes, start: int, end: int, *, begins: bool) -> _LineStarts | None:
        """The records of a piece without quotes and CRs; None where it has empty lines. `begins`: whether the first one begins with the piece, not behind a line end."""
        marks, ends, last = Marks(view[start:end], LF), bool(view[end - 1] == LF), end == len(view)
        if marks.adjoin or (begins and view[start] == LF) or (ends and not last and view[end] in (LF, CR)):
            return None
        return cls(start, marks, int(begins), marks.count + begins - (ends and last))

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, numbers: int | Positions) -> Any:
        if isinstance(numbers, int):
            return self[np.array([range(self.count)[numbers]])][0]
        behind = self.marks.places(np.maximum(numbers - self.first, 0)) + self.start + 1
        return np.where(numbers < self.first, self.start, behind)

    def __iter__(self) -> Iterator[int]:
        return iter(np.asarray(self).tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Positions:
        behind = self.marks.all_places() + self.start + 1
        return np.concatenate([np.full(self.first, self.start), behind])[: self.count]


def ranges_of(options: CsvReadOptions, data: Buffer, name: str, target: int) -> list[Range]:
    """Ranges of about `target` bytes; one range for a small file or an encoding that cannot be cut. Raises InputError."""
    if len(data) <= target or not options.cuttable:
        return [Range(0, len(data))]
    header = header_of(options, data, name)
    view, dialect = as_bytes(data), Dialect.of(options)
    scan = _Scan(data, header.end, dialect, name, lambda bound, _: _plain(view, *bound), lambda _, lines: _outside_quotes(view, lines))
    pieces = list(scan.pieces(target))
    parts = _joined(pieces, header, len(data), has_header=options.has_header)
    long = next((part.start for part in parts if part.end - part.start > target + limits.RECORD_BYTES), None)
    if long is not None:
        raise limits.record_too_long(name, offset=long)
    return parts


def scan_records(options: CsvReadOptions, data: Buffer, name: str, look: Callable[[StartsOfPiece], T]) -> Scanned[T] | None:
    """Call `look` with the places where records begin; None for an encoding that cannot be cut. Raises InputError."""
    if not options.cuttable:
        return None
    header = header_of(options, data, name)
    view, dialect = as_bytes(data), Dialect.of(options)

    def quoted(bound: Bound, lines: Positions) -> T:
        return look(_starts(view, bound[0] == header.end, bound[0], lines))

    def plain(bound: Bound, has_cr: bool) -> T:
        starts = None if has_cr else _LineStarts.of(view, *bound, begins=bound[0] == header.end)
        return quoted(bound, line_ends(view[slice(*bound)]) + bound[0]) if starts is None else look(starts)

    return Scanned(header.text, header.end, _Scan(data, header.end, dialect, name, plain, quoted).pieces(CHUNK_BYTES // 2))


def starts_within(options: CsvReadOptions, data: Buffer, start: int, end: int) -> Positions:
    """The places before `end` where records begin. `start` is outside quotes."""
    view, dialect = as_bytes(data)[start:end], Dialect.of(options)
    quotes, _ = toggles(view, dialect, 0, len(view), False)
    return _starts(view, True, 0, outside(line_ends(view), quotes)) + start


def _starts(view: Bytes, begins: bool, start: int, lines: Positions) -> Positions:
    """Where records begin after line ends and, with `begins`, at `start`."""
    behind = lines + 1
    if len(behind) and behind[-1] == len(view):
        behind = behind[:-1]
    first = view[behind]
    empty = (first == LF) | (first == CR)
    found = behind[~empty] if empty.any() else behind
    return np.concatenate([[start], found]) if begins and start < len(view) and view[start] not in (LF, CR) else found


def _after_quotes(view: Bytes, dialect: Dialect, at: int) -> int:
    """The next place that is not after a quote. The meaning of a quote depends on its neighbours, so they stay in one piece."""
    while at < len(view) and view[at - 1] == dialect.quote:
        at += 1
    return at


def _plain(view: Bytes, start: int, end: int) -> _Piece:
    lines = terminators(view[start:end])
    before = np.empty_like(lines)
    before[1:] = lines[:-1]
    before[0] = start == 0 or view[start - 1] in (LF, CR)
    first = int(lines.argmax())
    if not lines[first]:
        return _Piece(0, -1, False)
    return _Piece(int(np.count_nonzero(lines & ~before)), first + start, not before[first])


def _outside_quotes(view: Bytes, lines: Positions) -> _Piece:
    if not len(lines):
        return _Piece(0, -1, False)
    before = view[lines - 1]
    ends = (before != LF) & (before != CR) & (lines > 0)
    return _Piece(int(np.count_nonzero(ends)), int(lines[0]), bool(ends[0]))


def _joined(pieces: Sequence[_Piece], header: Header, size: int, *, has_header: bool) -> list[Range]:
    starts, rows, seen = [header.end], [1], 0
    for index, piece in enumerate(pieces):
        if index and piece.first >= 0:
            starts.append(piece.first + 1)
            rows.append(1 + seen + piece.first_ends - has_header)
        seen += piece.ended
    ends = [*starts[1:], size]
    return [Range(start, end, row, header.text) for start, end, row in zip(starts, ends, rows, strict=True) if end > start]
