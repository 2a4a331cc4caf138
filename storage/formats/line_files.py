"""Files of one record a line, cut into ranges of whole lines with the number of the first record.

Blank lines are no records. A byte order mark at the beginning of the file belongs to no line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from changelog.lazy_imports import np
from storage.files.errors import Buffer
from storage.formats import limits
from storage.formats.base import CHUNK_BYTES, Range, Scanned, Starts, StartsOfPiece, T
from storage.formats.byte_places import places_of

if TYPE_CHECKING:
    import numpy.typing as npt

Bytes: TypeAlias = "npt.NDArray[np.uint8]"
_LF, _CR = 10, 13
_BOM = b"\xef\xbb\xbf"


@cache
def _spaces() -> npt.NDArray[np.bool_]:
    """Whether each byte value is white space."""
    spaces = np.zeros(256, np.bool_)
    spaces[[9, 10, 11, 12, 13, 32]] = True
    return spaces


def line_ranges_of(data: Buffer, name: str, target: int, *, blank_lines: bool = False) -> list[Range]:
    """Ranges of whole lines of about `target` bytes. With `blank_lines` a line of white space is a record and only an empty one is not.

    Raises InputError for a line that is too long.
    """
    bounds = _bounds(data, target)
    long = next((start for start, end in pairwise(bounds) if end - start > target + limits.RECORD_BYTES), None)
    if long is not None:
        raise limits.record_too_long(name, offset=long, what="a line")
    view = np.frombuffer(data, np.uint8)
    parts = list(pairwise(bounds))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        counts = list(pool.map(lambda part: len(_lines_of(view, *part, blank_lines=blank_lines)), parts))
    rows = np.concatenate([[1], 1 + np.cumsum(counts)]).tolist()
    return [Range(start, end, row, b"lines") for (start, end), row in zip(parts, rows, strict=False)]


def scan_lines(data: Buffer, look: Callable[[StartsOfPiece], T], *, blank_lines: bool = False) -> Scanned[T]:
    """Call `look` with the places where the lines that are records begin."""
    return Scanned(b"lines", 0, _results(data, look, blank_lines=blank_lines))


def lines_within(data: Buffer, start: int, end: int, *, blank_lines: bool = False) -> Starts:
    """The places before `end` where lines begin that are records. One line begins at `start`."""
    return _lines_of(np.frombuffer(data, np.uint8), start, end, blank_lines=blank_lines)


def _results(data: Buffer, look: Callable[[StartsOfPiece], T], *, blank_lines: bool) -> Iterator[T]:
    view = np.frombuffer(data, np.uint8)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        parts = pairwise(_bounds(data, CHUNK_BYTES // 2))
        yield from pool.map(lambda part: look(_lines_of(view, *part, blank_lines=blank_lines)), parts)


def _bounds(data: Buffer, target: int) -> list[int]:
    """0 and the ends of pieces of whole lines of about `target` bytes."""
    bounds = [0]
    while bounds[-1] < len(data):
        at = data.find(b"\n", bounds[-1] + target - 1)
        bounds.append(at + 1 if at >= 0 else len(data))
    return bounds


def _lines_of(view: Bytes, start: int, end: int, *, blank_lines: bool) -> Starts:
    """The places where lines begin that are records, in a piece of a file that begins with a line."""
    if start == 0 and view[: min(len(_BOM), end)].tobytes() == _BOM:
        start = len(_BOM)
    return filled_lines(view[start:end], blank_lines=blank_lines) + start


def filled_lines(text: Bytes, *, blank_lines: bool = False) -> Starts:
    """Where the lines begin that have more than white space; with `blank_lines` the ones that have more than a carriage return."""
    ends = places_of(text, _LF)
    starts = np.concatenate([[0], ends + 1])
    ends = np.concatenate([ends, [len(text)]])
    filled = ends > starts
    starts, ends = starts[filled], ends[filled]
    if blank_lines:
        whole: Starts = starts[(ends - starts > 1) | (text[starts] != _CR)]
        return whole
    doubtful = np.flatnonzero(_spaces()[text[starts]])
    return np.delete(starts, [i for i in doubtful.tolist() if _spaces()[text[starts[i] : ends[i]]].all()])
