"""Alignment of two versions of a file, like a text diff: which records stayed, went and came.

It compares one 64-bit hash for each record, in numpy, as a patience diff does:

1. Common records at both ends are trimmed.
2. Records that are unique on both sides become anchors. The longest run of anchors in the same order is used.
3. The records between two anchors are matched from both ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from changelog.lazy_imports import np
from operators.source.file_changes import longest_ascending

if TYPE_CHECKING:
    from numpy.typing import NDArray

Hashes: TypeAlias = "NDArray[np.int64]"
Positions: TypeAlias = "NDArray[np.int64]"
Mask: TypeAlias = "NDArray[np.bool_]"
Pairs: TypeAlias = tuple[Positions, Positions]


def align(old: Hashes, new: Hashes) -> Pairs:
    """Positions of the records that stayed, in the old and in the new version: two ascending arrays of one length.

    Equal arrays pair up fully. Deterministic; not always the longest common subsequence, always a common subsequence.
    """
    pairs: list[Pairs] = []
    stack = [(0, len(old), 0, len(new))]
    while stack:
        low, high, start, end = stack.pop()
        if high - low == end - start == 1:
            _note(pairs, low, start, int(old[low] == new[start]))
            continue
        head = _common(old[low:high], new[start:end])
        _note(pairs, low, start, head)
        low, start = low + head, start + head
        tail = _common(old[low:high][::-1], new[start:end][::-1])
        high, end = high - tail, end - tail
        _note(pairs, high, end, tail)
        if low < high and start < end:
            runs = _runs(*_anchors(old[low:high], new[start:end]))
            for left, right, length in runs:
                _note(pairs, low + left, start + right, length)
            stack.extend(_between(runs, (low, high), (start, end)))
    if not pairs:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return _in_order(pairs)


def align_ranges(before: Sequence[slice], now: Sequence[slice], alike: Callable[[Positions, Positions], Mask], hashes: Callable[[Positions, Positions], Pairs]) -> Pairs:
    """Align ranges of two versions pair by pair as `align` does, and return the positions of the records that stayed in the versions.

    Where a range has one length in both and at most one record differs, the others stayed in their places, and nothing is hashed.

    Args:
        before: Ascending ranges of positions in the old version.
        now: As many of the new version.
        alike: Which records at some positions, in the old and in the new version, are equal.
        hashes: The hashes of the records at some positions in the old version, and at others in the new one.
    """
    old, new = _bounds(before), _bounds(now)
    level = old[:, 1] - old[:, 0] == new[:, 1] - new[:, 0]
    left, right = _positions(old[level]), _positions(new[level])
    same, range_of = alike(left, right), np.repeat(np.flatnonzero(level), old[level, 1] - old[level, 0])
    settled = level & (np.bincount(range_of[~same], minlength=len(level)) <= 1)
    kept = same & settled[range_of]
    pairs = [(left[kept], right[kept])]
    if not settled.all():
        old, new = old[~settled], new[~settled]
        left, right = _positions(old), _positions(new)
        parts = [_parts(values, bounds) for values, bounds in zip((*hashes(left, right), left, right), (old, new, old, new), strict=True)]
        for old_hashes, new_hashes, at_left, at_right in zip(*parts, strict=True):
            stayed = align(old_hashes, new_hashes)
            pairs.append((at_left[stayed[0]], at_right[stayed[1]]))
    return _in_order(pairs)


def _bounds(ranges: Sequence[slice]) -> NDArray[np.int64]:
    """Begin and end of each range, a row each."""
    return np.array([(one.start, one.stop) for one in ranges], np.int64).reshape(-1, 2)


def _positions(bounds: NDArray[np.int64]) -> Positions:
    """The positions in ranges, one range after the other."""
    sizes = bounds[:, 1] - bounds[:, 0]
    found: Positions = np.arange(int(sizes.sum())) + np.repeat(bounds[:, 0] - (np.cumsum(sizes) - sizes), sizes)
    return found


def _parts(values: NDArray[np.int64], bounds: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The values at positions of ranges by range, as `_positions` orders them."""
    return np.split(values, np.cumsum(bounds[:, 1] - bounds[:, 0])[:-1])


def _in_order(pairs: Sequence[Pairs]) -> Pairs:
    """All pairs, in order."""
    left_side, right_side = (np.concatenate(side) for side in zip(*pairs, strict=True))
    order = np.argsort(left_side, kind="stable")
    return left_side[order], right_side[order]


def align_beyond(old: Hashes, new: Hashes, floor: int, again: Mask) -> tuple[Positions, Positions, bool]:
    """Align two versions whose first `floor` records are known by their number.

    A known record stays as long as the new version has that many records. What follows is aligned like a text.

    Args:
        old: Hashes of the old version.
        new: Hashes of the new version.
        floor: Number of known records.
        again: Mask of old records that stay only if their hash is the same.

    Returns:
        Positions of the records that stayed, before and now, and whether a change of a known record was ignored.
    """
    known = min(floor, len(old), len(new))
    same = old[:known] == new[:known]
    head = np.flatnonzero(same | ~again[:known])
    left, right = align(old[floor:], new[floor:])
    return np.concatenate([head, left + floor]), np.concatenate([head, right + floor]), bool((~same & ~again[:known]).any())


def _note(pairs: list[Pairs], left: int, right: int, length: int) -> None:
    if length:
        pairs.append((np.arange(left, left + length), np.arange(right, right + length)))


def _common(left: Hashes, right: Hashes) -> int:
    """Length of the common prefix."""
    length = min(len(left), len(right))
    differing = np.flatnonzero(left[:length] != right[:length])
    return int(differing[0]) if len(differing) else length


def _runs(left: Positions, right: Positions) -> list[tuple[int, int, int]]:
    """Anchors side by side on both sides as one: where the run begins on the left and on the right, and its length."""
    if not len(left):
        return []
    breaks = np.flatnonzero((np.diff(left) != 1) | (np.diff(right) != 1)) + 1
    starts = np.concatenate([[0], breaks])
    lengths = np.diff(np.concatenate([starts, [len(left)]]))
    return list(zip(left[starts].tolist(), right[starts].tolist(), lengths.tolist(), strict=True))


def _between(runs: list[tuple[int, int, int]], before: tuple[int, int], after: tuple[int, int]) -> list[tuple[int, int, int, int]]:
    """Return the gaps between runs of anchors; none where there is no anchor."""
    if not runs:
        return []
    (low, high), (start, end) = before, after
    opens = [(low, start), *((low + left + length, start + right + length) for left, right, length in runs)]
    closes = [*((low + left, start + right) for left, right, _ in runs), (high, end)]
    return [(left, stop, right, close) for (left, right), (stop, close) in zip(opens, closes, strict=True) if left < stop and right < close]


def _anchors(old: Hashes, new: Hashes) -> Pairs:
    """Records that occur once on either side, in the longest selection that is in order on both."""
    left, right = _once(old), _once(new)
    _, at_left, at_right = np.intersect1d(old[left], new[right], assume_unique=True, return_indices=True)
    positions = np.stack([left[at_left], right[at_right]])
    positions = positions[:, np.argsort(positions[0])]
    if len(positions[1]) < 2 or bool((np.diff(positions[1]) > 0).all()):
        return positions[0], positions[1]
    kept = longest_ascending(positions[1].tolist())
    return positions[0][kept], positions[1][kept]


def _once(hashes: Hashes) -> Positions:
    _, first, counts = np.unique(hashes, return_index=True, return_counts=True)
    return np.asarray(first[counts == 1], np.int64)
