"""A CSV file cut into ranges of whole records with the number of the first record. Threads count them and respect quotes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, Generic, TypeAlias, cast

from changelog.lazy_imports import np
from storage.files.errors import Buffer, InputError
from storage.files.local import by_parts
from storage.formats import limits
from storage.formats.base import CHUNK_BYTES, Range, Scanned, StartsOfPiece, T
from storage.formats.byte_places import PlacesBehind, those_in
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
        plain: called with each piece without quotes
        quoted: called with another piece, or one that is inside quotes, and its line ends outside quotes; makes the same of a piece without quotes as `plain`
    """

    data: Buffer
    start: int
    dialect: Dialect
    name: str
    plain: Callable[[Bound], T]
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
            looked = list(by_parts(self.data, pool.map(self._first_look, bounds), target))
            yield from self._results(bounds, looked, pool)

    def _first_look(self, bound: Bound) -> _Looked[T]:
        """What is made of a piece without quotes, or how many it has."""
        piece, quote = self.view[slice(*bound)], self.dialect.quote
        return _Looked(int(np.count_nonzero(piece == quote)), None) if those_in(piece, bytes([quote])) else _Looked(0, self.plain(bound))

    def _results(self, bounds: Sequence[Bound], looked: Sequence[_Looked[T]], pool: Executor) -> Iterator[T]:
        """The results for the pieces.

        In well-formed text a piece begins inside quotes if the number of quotes before it is odd. Where this guess is wrong, a piece with quotes is scanned again.
        """
        guesses = [bool(seen & 1) for seen in accumulate((one.quotes for one in looked), initial=0)]
        quoted = [(bound, guess) for bound, guess, one in zip(bounds, guesses, looked, strict=False) if one.quotes]
        scans = zip(quoted, pool.map(lambda one: self._scanned(*one), quoted), strict=True)
        inside, last_quote = False, 0
        for bound, one in zip(bounds, looked, strict=True):
            if one.quotes:
                (_, guess), guessed = next(scans)
                made, found, inside = guessed if guess == inside else self._scanned(bound, inside)
                yield made
                last_quote = int(found[-1]) if len(found) else last_quote
            else:
                yield self.quoted(bound, np.empty(0, np.int64)) if inside else cast("T", one.made)
        if inside:
            raise InputError(self.name, "a quoted field is never closed", offset=last_quote)

    def _scanned(self, bound: Bound, inside: bool) -> tuple[T, Positions, bool]:
        found, after = toggles(self.view, self.dialect, *bound, inside, first=self.start)
        lines = line_ends(self.view[slice(*bound)]) + bound[0]
        return self.quoted(bound, outside(lines, found, inside)), found, after


@dataclass(frozen=True)
class _LineStarts:
    """Where records begin in a piece without quotes: found by bits where some are asked for, all at once where all are.

    Args:
        view: the bytes of the file
        start: where the piece begins
        end: where it ends
        begins: whether it is the first one
    """

    view: Bytes
    start: int
    end: int
    begins: bool

    @cached_property
    def _places(self) -> PlacesBehind:
        goes_on = self.end < len(self.view) and self.view[self.end] not in (LF, CR)
        return PlacesBehind(self.view[self.start : self.end], bytes([LF, CR]), first=self.begins, last=bool(goes_on))

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, numbers: int | Positions) -> Any:
        if isinstance(numbers, int):
            return self[np.array([range(len(self))[numbers]])][0]
        return self._places[numbers] + self.start

    def __iter__(self) -> Iterator[int]:
        return iter(np.asarray(self).tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Positions:
        return _starts(self.view, self.begins, self.start, line_ends(self.view[self.start : self.end]) + self.start)


def ranges_of(options: CsvReadOptions, data: Buffer, name: str, target: int) -> list[Range]:
    """Ranges of about `target` bytes; one range for a small file or an encoding that cannot be cut. Raises InputError."""
    if len(data) <= target or not options.cuttable:
        return [Range(0, len(data))]
    header = header_of(options, data, name)
    view, dialect = as_bytes(data), Dialect.of(options)
    scan = _Scan(data, header.end, dialect, name, lambda bound: _plain(view, *bound), lambda _, lines: _outside_quotes(view, lines))
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

    def plain(bound: Bound) -> T:
        return look(_LineStarts(view, *bound, begins=bound[0] == header.end))

    return Scanned(header.head, header.end, _Scan(data, header.end, dialect, name, plain, quoted).pieces(CHUNK_BYTES // 2))


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
    return [Range(start, end, row, header.head) for start, end, row in zip(starts, ends, rows, strict=True) if end > start]
