"""The changelog algebra in plain Python, slow and obvious: what `changelog` must agree with.

An image is a tuple of values; a live state maps keys to images; a delta is a list of `Row`s.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple

Image = tuple[Any, ...]
State = dict[bytes, Image]

SIGN = {0: 1, 1: -1, 2: -1, 3: 1}
INVERSE = {0: 1, 1: 0, 2: 3, 3: 2}


class Row(NamedTuple):
    epoch: int
    op: int
    key: bytes
    cause: str
    image: Image


def printed(image: Image) -> tuple[str, ...]:
    """Images are the same where they print the same; every NaN prints alike."""
    return tuple("nan" if isinstance(value, float) and math.isnan(value) else repr(value) for value in image)


def same(left: Image | None, right: Image | None) -> bool:
    return (left is None) == (right is None) and (left is None or printed(left) == printed(right))


def fold(rows: list[Row], at: int | None = None) -> State:
    """The live state by replay: epoch after epoch, what is taken back before what is brought in."""
    state: State = {}
    for row in sorted(rows, key=lambda row: (row.epoch, SIGN[row.op])):
        if at is not None and row.epoch > at:
            break
        if SIGN[row.op] < 0:
            assert same(state.pop(row.key), row.image)
        else:
            assert row.key not in state
            state[row.key] = row.image
    return state


def difference(old: State, new: State, columns: list[int] | None = None) -> set[tuple]:
    """The op, key and printed image of each row between two states; only `columns` count, where they are given."""
    rows = set()
    for key in old.keys() | new.keys():
        left, right = old.get(key), new.get(key)
        if not same(chosen(left, columns), chosen(right, columns)):
            rows |= changes(key, left, right)
    return rows


def chosen(image: Image | None, columns: list[int] | None) -> Image | None:
    return image if image is None or columns is None else tuple(image[at] for at in columns)


def changes(key: bytes, left: Image | None, right: Image | None) -> set[tuple]:
    both = left is not None and right is not None
    went = set() if left is None else {(2 if both else 1, key, printed(left))}
    came = set() if right is None else {(3 if both else 0, key, printed(right))}
    return went | came


def net(rows: list[Row]) -> set[tuple]:
    """The net change of each key: images counted with their signs."""
    counts: dict[bytes, Counter] = {}
    images = {printed(row.image): row.image for row in rows}
    for row in rows:
        counts.setdefault(row.key, Counter())[printed(row.image)] += SIGN[row.op]
    result = set()
    for key, weights in counts.items():
        went = [image for image, weight in weights.items() if weight < 0]
        came = [image for image, weight in weights.items() if weight > 0]
        result |= changes(key, images[went[0]] if went else None, images[came[0]] if came else None)
    return result


def applied(state: State, delta: set[tuple]) -> dict[bytes, tuple[str, ...]]:
    """A state after a delta of printed rows: each taken back must be there as it says, none brought in may be."""
    result = {key: printed(image) for key, image in state.items()}
    for op, key, image in sorted(delta, key=lambda row: SIGN[row[0]]):
        if SIGN[op] < 0:
            assert result.pop(key) == image
        else:
            assert key not in result
            result[key] = image
    return result
