"""Files of one record a line, cut into ranges of whole lines whose first record's number is known: blank lines are no records."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from storage.formats import limits
from storage.formats.base import CHUNK_BYTES, Buffer, Looked, Range, Starts, T

Bytes: TypeAlias = npt.NDArray[np.uint8]
_LF, _CR = 10, 13
_SPACES = np.zeros(256, np.bool_)
_SPACES[[9, 10, 11, 12, 13, 32]] = True


def line_ranges_of(data: Buffer, name: str, target: int, *, blank_lines: bool = False) -> list[Range]:
    """Ranges of about `target` bytes that end behind a line end; `blank_lines`: one of white space is a record, only an empty one is not.

    Raises InputError for a line beyond the cap.
    """
    bounds = _bounds(data, target)
    long = next((start for start, end in pairwise(bounds) if end - start > target + limits.RECORD_BYTES), None)
    if long is not None:
        raise limits.record_too_long(name, offset=long, what="a line")
    view = np.frombuffer(data, np.uint8)
    parts = list(pairwise(bounds))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        counts = list(pool.map(lambda part: count_lines(view[part[0] : part[1]], blank_lines=blank_lines), parts))
    rows = np.concatenate([[1], 1 + np.cumsum(counts)]).tolist()
    return [Range(start, end, row, b"lines") for (start, end), row in zip(parts, rows, strict=False)]


def looked_at_lines(data: Buffer, look: Callable[[Starts], T], *, blank_lines: bool = False) -> Looked[T]:
    """What `look` makes of the places where lines begin that are records."""
    return Looked(b"lines", 0, _looked(data, look, blank_lines=blank_lines))


def _looked(data: Buffer, look: Callable[[Starts], T], *, blank_lines: bool) -> Iterator[T]:
    view = np.frombuffer(data, np.uint8)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        parts = pairwise(_bounds(data, CHUNK_BYTES // 2))
        yield from pool.map(lambda part: look(filled_lines(view[part[0] : part[1]], blank_lines=blank_lines) + part[0]), parts)


def _bounds(data: Buffer, target: int) -> list[int]:
    """The ends of pieces of about `target` bytes, each behind a line end, and ahead of them 0."""
    bounds = [0]
    while bounds[-1] < len(data):
        at = data.find(b"\n", bounds[-1] + target - 1)
        bounds.append(at + 1 if at >= 0 else len(data))
    return bounds


def count_lines(text: Bytes, *, blank_lines: bool = False) -> int:
    """How many `filled_lines` a text has."""
    return len(filled_lines(text, blank_lines=blank_lines))


def filled_lines(text: Bytes, *, blank_lines: bool = False) -> Starts:
    """Where the lines of a text begin that have more than white space in them or, with `blank_lines`, more than a carriage return."""
    ends = np.flatnonzero(text == _LF)
    starts = np.concatenate([[0], ends + 1])
    ends = np.concatenate([ends, [len(text)]])
    filled = ends > starts
    starts, ends = starts[filled], ends[filled]
    if blank_lines:
        whole: Starts = starts[(ends - starts > 1) | (text[starts] != _CR)]
        return whole
    doubtful = np.flatnonzero(_SPACES[text[starts]])
    return np.delete(starts, [i for i in doubtful.tolist() if _SPACES[text[starts[i] : ends[i]]].all()])
