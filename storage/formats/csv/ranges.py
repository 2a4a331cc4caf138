"""A CSV file cut into ranges of whole records, whose first record's number is known: counted by threads, quotes respected."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from storage.formats.contract import MAX_RECORD_BYTES, Buffer, InputError, Range
from storage.formats.csv import CsvReadOptions
from storage.formats.csv.header import Header, header_of
from storage.formats.csv.scan import CR, LF, Bytes, Dialect, Positions, as_bytes, outside, terminators, toggles


@dataclass(frozen=True, slots=True)
class _Piece:
    """What one stretch of bytes adds: record ends in it, its first line end (-1: none) and whether a record ends there."""

    ended: int
    first: int
    first_ends: bool


class _OpenQuoteError(Exception):
    """The file ends inside a quoted field; its argument is where the last quote stands."""


def ranges_of(options: CsvReadOptions, data: Buffer, name: str, target: int) -> list[Range]:
    """Ranges of about `target` bytes; one for a small file or an encoding that cannot be cut. Raises InputError."""
    if len(data) <= target or not options.cuttable:
        return [Range(0, len(data))]
    header = header_of(options, data, name)
    view, dialect = as_bytes(data), Dialect.of(options)
    starts = [header.end, *(_behind_quotes(view, dialect, at) for at in range(header.end + target, len(data), target))]
    bounds = list(pairwise(sorted({*starts, len(data)})))
    try:
        pieces = _pieces(view, dialect, bounds)
    except _OpenQuoteError as wrong:
        raise InputError(name, "a quoted field is never closed", offset=wrong.args[0]) from None
    parts = _joined(pieces, header, len(data), has_header=options.has_header)
    if max((part.end - part.start for part in parts), default=0) > target + MAX_RECORD_BYTES:
        raise InputError(name, f"a record is longer than {MAX_RECORD_BYTES >> 20} MB")
    return parts


def _pieces(view: Bytes, dialect: Dialect, bounds: Sequence[tuple[int, int]]) -> list[_Piece]:
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        quotes = list(pool.map(lambda bound: int(np.count_nonzero(view[slice(*bound)] == dialect.quote)), bounds))
        if any(quotes):
            return _with_quotes(view, dialect, bounds, quotes, pool)
        return list(pool.map(lambda bound: _plain(view, *bound), bounds))


def _behind_quotes(view: Bytes, dialect: Dialect, at: int) -> int:
    """No stretch begins behind a quote: what that quote means is known only with its neighbours."""
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


def _with_quotes(view: Bytes, dialect: Dialect, bounds: Sequence[tuple[int, int]], counts: Sequence[int], pool: Executor) -> list[_Piece]:
    """As in well-formed text a stretch begins inside quotes when the quotes before it are odd; where that proves wrong, it is looked at again."""
    guesses = [bool(seen & 1) for seen in accumulate(counts, initial=0)]

    def scan(bound: tuple[int, int], inside: bool) -> tuple[_Piece, Positions, bool]:
        found, after = toggles(view, dialect, *bound, inside)
        return _outside_quotes(view, bound, found, inside), found, after

    pieces, inside, last_quote = [], False, 0
    for bound, guess, guessed in zip(bounds, guesses, pool.map(scan, bounds, guesses), strict=False):
        piece, found, after = guessed if guess == inside else scan(bound, inside)
        pieces.append(piece)
        inside, last_quote = after, int(found[-1]) if len(found) else last_quote
    if inside:
        raise _OpenQuoteError(last_quote)
    return pieces


def _outside_quotes(view: Bytes, bound: tuple[int, int], quotes: Positions, inside: bool) -> _Piece:
    start, end = bound
    lines = outside(np.flatnonzero(terminators(view[start:end])) + start, quotes, inside)
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
