"""The alignment of two versions of a file: always a common subsequence, and a full one where it is plain to see."""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from operators.source.diff.alignment import align, align_ranges
from operators.source.file_changes import longest_in_order

values = st.lists(st.integers(0, 6), max_size=30)
distinct = st.lists(st.integers(0, 200), max_size=40, unique=True)


def paired(old: list[int], new: list[int]) -> list[tuple[int, int]]:
    left, right = align(np.array(old, np.int64), np.array(new, np.int64))
    return list(zip(left.tolist(), right.tolist(), strict=True))


def longest_common(old: list[int], new: list[int]) -> int:
    """The length of the longest common subsequence, by the textbook's table."""
    row = [0] * (len(new) + 1)
    for value in old:
        before = 0
        for at, other in enumerate(new, 1):
            before, row[at] = row[at], before + 1 if value == other else max(row[at], row[at - 1])
    return row[-1]


@given(values, values)
def test_pairs_are_equal_and_ascend_on_both_sides(old: list[int], new: list[int]):
    pairs = paired(old, new)
    assert all(old[left] == new[right] for left, right in pairs)
    assert all(one[0] < two[0] and one[1] < two[1] for one, two in pairwise(pairs))
    assert len(pairs) <= longest_common(old, new)


@given(values)
def test_equal_versions_pair_fully(rows: list[int]):
    assert paired(rows, rows) == [(at, at) for at in range(len(rows))]


versions = st.lists(st.integers(0, 6), max_size=8)


@st.composite
def edited(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """A version, and the same with another record in one place, or with two records in each other's places."""
    rows = draw(st.lists(st.integers(0, 9), min_size=2, max_size=8, unique=True))
    one, other = draw(st.integers(0, len(rows) - 1)), draw(st.integers(0, len(rows) - 1))
    now = list(rows)
    now[one], now[other] = rows[other] if one != other else 10, rows[one] if one != other else 10
    return rows, now


@given(st.lists(st.tuples(versions, versions) | edited(), max_size=6), st.data())
def test_ranges_are_aligned_each_by_itself(ranges: list[tuple[list[int], list[int]]], data: st.DataObject):
    """Between the ranges lie records that belong to none."""
    sides, slices = [], []
    for side in zip(*ranges, strict=True) if ranges else ((), ()):
        gaps = [data.draw(st.integers(0, 2)) for _ in side]
        begins = list(accumulate((gap + len(rows) for gap, rows in zip(gaps, side, strict=True)), initial=0))
        slices.append([slice(end - len(rows), end) for end, rows in zip(begins[1:], side, strict=True)])
        sides.append(np.array([value for gap, rows in zip(gaps, side, strict=True) for value in (*[0] * gap, *rows)], np.int64))
    old, new = sides
    found = align_ranges(*slices, lambda left, right: old[left] == new[right], lambda left, right: (old[left], new[right]))
    alone = [(was.start + left, now.start + right) for was, now, (one, other) in zip(*slices, ranges, strict=True) for left, right in paired(one, other)]
    assert list(zip(*(side.tolist() for side in found), strict=True)) == alone


@given(values, values, values, values)
def test_common_ends_stay(head: list[int], tail: list[int], old: list[int], new: list[int]):
    pairs = paired(head + old + tail, head + new + tail)
    assert len(pairs) >= len(head) + len(tail)
    assert pairs[: len(head)] == [(at, at) for at in range(len(head))]


@given(distinct, st.data())
def test_of_records_that_occur_once_the_longest_selection_in_order_stays(old: list[int], data: st.DataObject):
    new = data.draw(st.permutations(old))
    assert len(paired(old, new)) == longest_common(old, new)


@given(distinct, st.data())
def test_insertions_and_removals_leave_the_rest_in_place(rows: list[int], data: st.DataObject):
    kept = [row for row in rows if data.draw(st.booleans())]
    assert [rows[left] for left, _ in paired(rows, kept)] == kept
    assert [rows[right] for _, right in paired(kept, rows)] == kept


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12, unique=True))
def test_the_longest_selection_of_labels_in_order(labels: list[tuple[int, ...]]):
    chosen = sorted(longest_in_order(labels))
    picked = [labels[at] for at in chosen]
    assert picked == sorted(picked)
    assert len(picked) == longest_common([sorted(labels).index(label) for label in labels], list(range(len(labels))))
