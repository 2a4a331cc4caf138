"""Where bytes are in a text, beside a search byte by byte."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.formats.byte_places import Marks, those_in

LF = 10


def searched(data: bytes) -> list[int]:
    return [place for place, byte in enumerate(data) if byte == LF]


def check(data: bytes) -> None:
    marks, wanted = Marks(np.frombuffer(data, np.uint8), LF), searched(data)
    assert marks.count == len(wanted)
    assert marks.all_places().tolist() == wanted
    assert marks.adjoin == (b"\n\n" in data)
    numbers = np.arange(len(wanted))[:: 1 if len(wanted) < 1000 else 127]
    assert marks.places(numbers).tolist() == [wanted[number] for number in numbers.tolist()]


@given(st.text("ab\n", max_size=400).map(str.encode))
def test_marks(data):
    check(data)


@pytest.mark.parametrize("size", [(1 << 18) - 1, 1 << 18, (1 << 18) + 65, 700_001])
@pytest.mark.parametrize("share", [0.5, 0.01])
def test_marks_of_large_texts(size: int, share: float) -> None:
    chance = random.Random(size)
    check(bytes(LF if chance.random() < share else 97 for _ in range(size)))


@given(st.binary(max_size=300), st.binary(max_size=6))
def test_bytes_that_are_there(data, wanted):
    assert those_in(data, wanted) == set(wanted) & set(data)


def test_bytes_that_are_there_in_one_block_only() -> None:
    data = b"a" * 300_000 + b"x" + b"b" * 600_000
    assert those_in(data, b"xyb") == set(b"xb")
