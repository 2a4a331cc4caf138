"""Labels compare like their tuples, and there is room between any two."""

from __future__ import annotations

import itertools
import random
from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changelog.keys.positions import labels_between, parse_label, row_label

numbers = st.integers(0, 2**48 - 1) | st.integers(0, 3)
labels = st.lists(numbers, min_size=1, max_size=4).map(tuple).filter(lambda label: label[-1] > 0)


@given(left=labels, right=labels)
def test_labels_compare_as_tuples(left, right):
    assert (row_label(left) < row_label(right)) == (left < right)


@given(label=labels, before=st.binary(max_size=3), after=st.binary(max_size=9))
def test_labels_parse(label, before, after):
    data = before + row_label(label) + after
    assert parse_label(data, len(before)) == (label, len(data) - len(after))


@given(one=st.none() | labels, other=st.none() | labels, count=st.integers(0, 300))
def test_labels_between_are_between_and_in_order(one, other, count):
    low, high = (one, other) if one is None or other is None or one < other else (other, one)
    if low is not None and low == high:
        return
    made = labels_between(low, high, count)
    assert len(made) == count
    bounded = [*([low] if low else []), *made, *([high] if high else [])]
    assert all(left < right for left, right in itertools.pairwise(bounded))
    assert all(label[-1] > 0 and max(label) < 2**48 for label in made)


def test_a_first_version_counts_from_one_and_a_longer_one_goes_on():
    assert labels_between(None, None, 3) == [(1,), (2,), (3,)]
    assert labels_between((3,), None, 2) == [(4,), (5,)]
    assert labels_between((3, 7), None, 1) == [(4,)]


@pytest.mark.parametrize(("low", "high"), [((5,), (6,)), (None, (1,)), ((5, 1), (5, 2)), ((5,), (5, 1)), (None, (0, 0, 1))])
def test_neighbours_have_room_for_many(low, high):
    made = labels_between(low, high, 100_000)
    assert made[0] > (low or ())
    assert made[-1] < high
    assert made == sorted(set(made))


@pytest.mark.parametrize("where", ["anywhere", "front", "back", "one place"])
def test_thousands_of_insertions_keep_their_order(where):
    random_ = random.Random(where)
    held = labels_between(None, None, 10)
    place = {"anywhere": lambda: random_.randint(0, len(held)), "front": lambda: 0, "back": lambda: len(held), "one place": lambda: 5}[
        where
    ]
    for _ in range(3000):
        at = place()
        low, high = held[at - 1] if at else None, held[at] if at < len(held) else None
        new = labels_between(low, high, random_.randint(1, 3))
        assert bisect_left(held, new[0]) == bisect_left(held, new[-1]) == at
        held[at:at] = new
    assert held == sorted(set(held))
    assert max(len(row_label(label)) for label in held) <= 7 * 4


def test_bounds_in_the_wrong_order():
    with pytest.raises(ValueError, match=r"no label lies between \(6,\) and \(5,\)"):
        labels_between((6,), (5,), 1)


@pytest.mark.parametrize("data", [b"", b"\x00" * 6, b"\x00" * 6 + b"\x02"])
def test_what_is_no_label(data):
    with pytest.raises(ValueError, match="no label at byte 0"):
        parse_label(data)


@pytest.mark.parametrize(("label", "error"), [((), ValueError), ((2**48,), OverflowError), ((-1,), OverflowError)])
def test_what_has_no_bytes(label, error):
    with pytest.raises(error):
        row_label(label)
