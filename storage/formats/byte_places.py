"""Where bytes are in a text, found with numpy."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

from changelog.lazy_imports import np

if TYPE_CHECKING:
    import numpy.typing as npt

    Bytes: TypeAlias = npt.NDArray[np.uint8]
    Positions: TypeAlias = npt.NDArray[np.int64]

_BLOCK: Final = 1 << 18
"""Bytes that are looked at together: what is made of them stays in the processor's cache, which takes a third of the time of the whole text."""
_WORD: Final = 64
"""Places of a text that are counted together."""


def holds(data: Bytes, byte: int) -> bool:
    """Return whether a byte is there. A copy is searched in a fifth of the time that comparing all bytes takes."""
    return data.tobytes().find(byte) >= 0


def those_in(data: bytes | Bytes, wanted: bytes) -> frozenset[int]:
    """Return which of some bytes are there. A block is searched for all of them before the next one comes to the processor's cache."""
    left, view = set(wanted), memoryview(data)  # type: ignore[arg-type]  # arrays are buffers too
    for start in range(0, len(view), _BLOCK):
        block = view[start : start + _BLOCK].tobytes()
        left -= {byte for byte in left if byte in block}
    return frozenset(wanted) - left


def places_of(data: Bytes, byte: int, *others: int) -> Positions:
    """Return where a byte or one of the others is, in ascending order. The others are seldom there."""
    found = []
    for start in range(0, len(data), _BLOCK) or (0,):
        places = np.flatnonzero(_marks(data[start : start + _BLOCK], byte, *others))
        places += start
        found.append(places)
    return found[0] if len(found) == 1 else np.concatenate(found)


class PlacesBehind:
    """The places of a text that come behind some bytes and have none of them, as a bit for each place. Places are found where they are asked for, which takes less time than finding all of them.

    Args:
        data: the text
        wanted: the bytes; the first one is the frequent one
        first: whether the first place counts as one behind such a byte
        last: whether the place at the end of the text counts as one of the text
    """

    def __init__(self, data: Bytes, wanted: bytes, *, first: bool, last: bool) -> None:
        size = len(data)
        marks = np.zeros((size // _WORD + 1) * (_WORD // 8), np.uint8)
        for start in range(0, size, _BLOCK):
            bits = np.packbits(_marks(data[start : start + _BLOCK], *wanted))
            marks[start // 8 : start // 8 + len(bits)] = bits
        behind: Bytes = np.right_shift(marks, 1)
        behind[1:] |= marks[:-1] << 7
        behind[0] |= first << 7
        behind &= ~marks
        if not last:
            behind[size // 8] &= ~np.uint8(128 >> size % 8)
        self._bits = behind

    @cached_property
    def _counts(self) -> Positions:
        """How many places are found up to the end of each word."""
        return np.cumsum(np.bitwise_count(self._bits.view(np.uint64)), dtype=np.int64)

    def __len__(self) -> int:
        return int(self._counts[-1])

    def __getitem__(self, numbers: Positions) -> Positions:
        """Return the places with some numbers, which count from 0."""
        words = np.searchsorted(self._counts, numbers, side="right")
        before = np.where(words, self._counts[words - 1], 0)
        bits = np.unpackbits(self._bits.reshape(-1, _WORD // 8)[words], axis=1)
        inside = np.argmax(np.cumsum(bits, axis=1, dtype=np.uint8) == (numbers - before + 1)[:, None], axis=1)
        found: Positions = words * _WORD + inside
        return found


def _marks(block: Bytes, byte: int, *others: int) -> npt.NDArray[np.bool_]:
    """Return which bytes are one byte or one of the others, which are seldom there."""
    marks: npt.NDArray[np.bool_] = block == byte
    for other in others:
        if holds(block, other):
            marks |= block == other
    return marks
