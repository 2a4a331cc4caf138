"""Positions (labels): the place of a row in its file, or of a file among the files of its source.

A label is a tuple of numbers below 2**48, and compares like a tuple. Row 5 of a file is `(5,)`. A row inserted later between rows 5 and 6 is
`(5, n)`, one before the first row is `(0, n)`. The last number is never 0, so there is always room on both sides.

As bytes, each number takes 6 bytes big-endian, followed by 01 where another number follows, and by 00 at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from changelog.lazy_imports import np, pa

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

LabelTuple: TypeAlias = tuple[int, ...]

_WIDTH: Final = 6
_LIMIT: Final = 1 << (8 * _WIDTH)
_STRIDE: Final = 1 << 24
_ENDS, _CONTINUES = b"\x00", b"\x01"


def row_label(numbers: Sequence[int]) -> bytes:
    """Return the bytes of a label. Raises OverflowError for a number outside 0 to 2**48 - 1, and ValueError for no numbers."""
    if not numbers:
        raise ValueError("a label has at least one number")
    return _CONTINUES.join(number.to_bytes(_WIDTH, "big") for number in numbers) + _ENDS


def parse_label(data: bytes, start: int = 0) -> tuple[LabelTuple, int]:
    """Return the label that begins at byte `start`, and the place after it. Raises ValueError where none begins."""
    numbers, at = [], start
    while True:
        closing = data[at + _WIDTH : at + _WIDTH + 1]
        if closing not in (_ENDS, _CONTINUES):
            raise ValueError(f"no label at byte {start}")
        numbers.append(int.from_bytes(data[at : at + _WIDTH], "big"))
        at += _WIDTH + 1
        if closing == _ENDS:
            return tuple(numbers), at


def row_labels(prefix: bytes, numbers: npt.NDArray[np.int64]) -> pa.Array:
    """Return the keys `prefix` + label `(number,)` as a binary Arrow array."""
    count, width = len(numbers), len(prefix) + _WIDTH + 1
    keys = bytearray((prefix + bytes(_WIDTH) + _ENDS) * max(count, 1))
    high, low = (np.ndarray((count,), kind, keys, len(prefix) + at, (width,)) for kind, at in ((">u2", 0), (">u4", 2)))
    high[:], low[:] = numbers >> 32, numbers & 0xFFFF_FFFF
    offsets = np.arange(0, (count + 1) * width, width, dtype=np.int32)
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(keys)])


def labels_between(low: LabelTuple | None, high: LabelTuple | None, count: int) -> list[LabelTuple]:
    """Return `count` labels in order, strictly between `low` and `high` (None: open). After the last row they count on by one.

    Pass neighbours of the old version, including removed rows, so that no row takes the label of a row removed in the same run.
    Raises ValueError unless `low` < `high`.
    """
    if low is not None and high is not None and low >= high:
        raise ValueError(f"no label lies between {low} and {high}")
    if high is None:
        start = low[0] if low else 0
        return [(start + step,) for step in range(1, count + 1)]
    prefix, floor, ceiling = _room(low or (), high, count)
    return [(*prefix, number) for number in _spread(floor, ceiling, count)]


def _room(low: LabelTuple, high: LabelTuple, count: int) -> tuple[LabelTuple, int, int]:
    """Return the shallowest level with `count` free numbers: its prefix, and the numbers that bound it."""
    depth, bounded = 0, True
    while True:
        floor = low[depth] if depth < len(low) else 0
        ceiling = high[depth] if bounded else _LIMIT
        if ceiling - floor > count:
            return (*low[:depth], *(0,) * (depth - len(low))), floor, ceiling
        bounded = bounded and floor == ceiling
        depth += 1


def _spread(floor: int, ceiling: int, count: int) -> Iterator[int]:
    """Return numbers strictly between the bounds: in the middle of a fresh level, else next to the row that they follow or precede.

    A stride leaves room between them, so that a label grows only after many insertions at one place.
    """
    stride = min((ceiling - floor) // (count + 1), _STRIDE)
    if floor and ceiling == _LIMIT:
        first = floor + stride
    elif ceiling < _LIMIT and not floor:
        first = ceiling - count * stride
    else:
        first = floor + (ceiling - floor - (count - 1) * stride) // 2
    return iter(range(first, first + count * stride, stride)) if stride else iter(())
