"""Where bytes are in a text, beside a search byte by byte."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.formats.byte_places import PlacesBehind, those_in

LF = 10


def searched(data: bytes, *, first: bool, last: bool) -> list[int]:
    behind = [found.start() for found in re.finditer(rb"(?<=[\n\r])(?![\n\r])", data)]
    begin = [0] if first and (data or last) and data[:1] not in (b"\n", b"\r") else []
    return begin + [at for at in behind if at < len(data) + last]


def check(data: bytes, *, first: bool, last: bool) -> None:
    places, wanted = PlacesBehind(np.frombuffer(data, np.uint8), b"\n\r", first=first, last=last), searched(data, first=first, last=last)
    assert len(places) == len(wanted)
    numbers = np.arange(len(wanted))[:: 1 if len(wanted) < 1000 else 127]
    assert places[numbers].tolist() == [wanted[number] for number in numbers.tolist()]


@given(st.text("ab\n\r", max_size=400).map(str.encode), st.booleans(), st.booleans())
def test_places_behind_line_ends(data, first, last):
    check(data, first=first, last=last)


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, (1 << 18) - 1, 1 << 18, 700_001])
@pytest.mark.parametrize("first", [True, False])
def test_texts_without_a_line_end_have_a_place_only_where_they_begin(size: int, first: bool) -> None:
    places = PlacesBehind(np.full(size, 97, np.uint8), b"\n\r", first=first, last=True)
    assert len(places) == first
    assert places[np.arange(int(first))].tolist() == [0] * first


@pytest.mark.parametrize("size", [(1 << 18) - 1, 1 << 18, (1 << 18) + 65, 700_001])
@pytest.mark.parametrize("share", [0.5, 0.01])
def test_places_behind_line_ends_of_large_texts(size: int, share: float) -> None:
    chance = random.Random(size)
    check(bytes(LF if chance.random() < share else 97 for _ in range(size)), first=True, last=True)


@given(st.binary(max_size=300), st.binary(max_size=6))
def test_bytes_that_are_there(data, wanted):
    assert those_in(data, wanted) == set(wanted) & set(data)


def test_bytes_that_are_there_in_one_block_only() -> None:
    data = b"a" * 300_000 + b"x" + b"b" * 600_000
    assert those_in(data, b"xyb") == set(b"xb")
