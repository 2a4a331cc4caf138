"""Where CSV records begin and end, found with numpy in the bytes.

A quote has a meaning only where it opens or closes a field. In well-formed text every quote does: a doubled quote closes and opens again. A byte is then
inside quotes if the number of quotes before it is odd. `toggles` checks this (a separator comes before each opening and after each closing quote) and
goes through the quotes one by one where it fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from changelog.lazy_imports import np
from storage.formats.byte_places import holds, places_of
from storage.formats.csv.options import CsvReadOptions

if TYPE_CHECKING:
    import numpy.typing as npt

Bytes: TypeAlias = "npt.NDArray[np.uint8]"
Positions: TypeAlias = "npt.NDArray[np.int64]"
Mask: TypeAlias = "npt.NDArray[np.bool_]"
LF, CR = 10, 13


@dataclass(frozen=True, slots=True)
class Dialect:
    """The two characters that structure a file, as bytes."""

    delimiter: int
    quote: int

    @classmethod
    def of(cls, options: CsvReadOptions) -> Dialect:
        """The characters of the options."""
        return cls(ord(options.delimiter), ord(options.quote_char))

    def separators(self) -> tuple[int, int, int]:
        """The bytes before an opening and after a closing quote."""
        return self.delimiter, LF, CR


@dataclass(frozen=True, slots=True)
class Records:
    """The records of a text: where each begins and ends (its line end not included), its number of cells; whether a quote stays open at the end."""

    starts: Positions
    ends: Positions
    cells: Positions
    open_quote: bool


def terminators(data: Bytes) -> Mask:
    """Which bytes are LF or CR. CR LF are two line ends with an empty line between, which is no record."""
    lines: Mask = data == LF
    if holds(data, CR):
        lines |= data == CR
    return lines


def line_ends(data: Bytes) -> Positions:
    """Where the `terminators` are."""
    return places_of(data, LF, CR)


def toggles(data: Bytes, dialect: Dialect, start: int, end: int, inside: bool, *, first: int = 0) -> tuple[Positions, bool]:
    """The positions in [start, end) of the quotes that open or close a field, and whether `end` is inside quotes.

    Args:
        data: the text
        dialect: its characters
        start: where to begin
        end: where to end
        inside: whether `start` is inside quotes
        first: where the first record begins, after a byte order mark
    """
    quotes = np.flatnonzero(data[start:end] == dialect.quote) + start
    if not len(quotes) or _well_formed(data, dialect, quotes, inside, first):
        return quotes, inside ^ bool(len(quotes) & 1)
    return _one_by_one(data, dialect, quotes, inside, first)


def _well_formed(data: Bytes, dialect: Dialect, quotes: Positions, inside: bool, first: int) -> bool:
    opening = quotes[1::2] if inside else quotes[0::2]
    closing = quotes[0::2] if inside else quotes[1::2]
    allowed = _neighbours(dialect)
    before = allowed[data[opening - 1]] | (opening == first)
    last = len(data) - 1
    behind = allowed[data[np.minimum(closing + 1, last)]] | (closing == last)
    return bool(before.all() and behind.all())


@cache
def _neighbours(dialect: Dialect) -> Mask:
    """Whether each byte may stand beside a quote that opens or closes a field."""
    allowed = np.zeros(256, np.bool_)
    allowed[[*dialect.separators(), dialect.quote]] = True
    return allowed


def _one_by_one(data: Bytes, dialect: Dialect, quotes: Positions, inside: bool, first: int) -> tuple[Positions, bool]:
    opens = np.isin(data[quotes - 1], dialect.separators()) | (quotes == first)
    kept, closed = [], -2
    for position, may_open in zip(quotes.tolist(), opens.tolist(), strict=True):
        if inside:
            inside, closed = False, position
        elif may_open or closed == position - 1:
            inside = True
        else:
            continue
        kept.append(position)
    return np.array(kept, np.int64), inside


def outside(positions: Positions, quotes: Positions, inside: bool = False) -> Positions:
    """The positions that are outside quotes. `inside`: whether the text before the first quote is inside."""
    if not len(quotes):
        return positions[:0] if inside else positions
    odd = np.searchsorted(quotes, positions) & 1
    kept: Positions = positions[odd == int(inside)]
    return kept


def records(data: Bytes, dialect: Dialect) -> Records:
    """Every record of a text that begins outside quotes."""
    quotes, still_open = toggles(data, dialect, 0, len(data), False)
    lines = outside(line_ends(data), quotes)
    bounds = np.concatenate([np.array([-1]), lines, np.array([len(data)])])
    starts, ends = bounds[:-1] + 1, bounds[1:]
    filled = ends > starts
    starts, ends = starts[filled], ends[filled]
    delimiters = outside(np.flatnonzero(data == dialect.delimiter), quotes)
    cells = np.searchsorted(delimiters, ends) - np.searchsorted(delimiters, starts) + 1
    return Records(starts, ends, cells, still_open)


def as_bytes(data: Any) -> Bytes:
    """A buffer as an array of bytes, without a copy."""
    return np.frombuffer(data, np.uint8)
