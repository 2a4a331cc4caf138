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
"""Bytes of a text whose marks are counted together."""


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
        block = data[start : start + _BLOCK]
        marks = block == byte
        for other in others:
            if holds(block, other):
                marks |= block == other
        places = np.flatnonzero(marks)
        places += start
        found.append(places)
    return found[0] if len(found) == 1 else np.concatenate(found)


class Marks:
    """Where a byte is in a text, as a bit for each byte of the text. Places are found where they are asked for, which takes a third of the time of finding all of them."""

    def __init__(self, data: Bytes, byte: int) -> None:
        self._bits = np.zeros(-(-len(data) // _WORD) * (_WORD // 8), np.uint8)
        for start in range(0, len(data), _BLOCK):
            marks = np.packbits(data[start : start + _BLOCK] == byte)
            self._bits[start // 8 : start // 8 + len(marks)] = marks

    @cached_property
    def _counts(self) -> Positions:
        """How many marks are up to the end of each word."""
        return np.cumsum(np.bitwise_count(self._bits.view(np.uint64)), dtype=np.int64)

    @property
    def count(self) -> int:
        """The number of marks."""
        return int(self._counts[-1]) if len(self._counts) else 0

    @property
    def adjoin(self) -> bool:
        """Whether a mark is next to another one."""
        bits = self._bits
        return bool((bits & (bits >> 1)).any() or (bits[:-1] & (bits[1:] >> 7) & 1).any())

    def places(self, numbers: Positions) -> Positions:
        """Return the places of the marks with some numbers, which count from 0."""
        words = np.searchsorted(self._counts, numbers, side="right")
        before = np.where(words, self._counts[words - 1], 0)
        bits = np.unpackbits(self._bits.reshape(-1, _WORD // 8)[words], axis=1)
        inside = np.argmax(np.cumsum(bits, axis=1, dtype=np.uint8) == (numbers - before + 1)[:, None], axis=1)
        found: Positions = words * _WORD + inside
        return found

    def all_places(self) -> Positions:
        """Return the places of all marks."""
        return np.flatnonzero(np.unpackbits(self._bits))
