"""Where bytes are in a text, found with numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from changelog.lazy_imports import np

if TYPE_CHECKING:
    import numpy.typing as npt

    Bytes: TypeAlias = npt.NDArray[np.uint8]
    Positions: TypeAlias = npt.NDArray[np.int64]

_BLOCK: Final = 1 << 18
"""Bytes that are looked at together: what is made of them stays in the processor's cache, which takes a third of the time of the whole text."""


def holds(data: Bytes, byte: int) -> bool:
    """Return whether a byte is there. A copy is searched in a fifth of the time that comparing all bytes takes."""
    return data.tobytes().find(byte) >= 0


def count_of(data: Bytes, byte: int) -> int:
    """Return how often a byte is there."""
    return int(np.count_nonzero(data == byte)) if holds(data, byte) else 0


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
