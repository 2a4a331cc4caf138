"""The longest selection that is in order: which files kept their place, which anchors of two versions go together."""

from __future__ import annotations

from bisect import bisect_left


def longest_ascending(values: list[int]) -> list[int]:
    """Positions of a longest strictly ascending subsequence."""
    tails: list[int] = []
    ends: list[int] = []
    before = [-1] * len(values)
    for at, value in enumerate(values):
        place = bisect_left(tails, value)
        before[at] = ends[place - 1] if place else -1
        if place == len(tails):
            tails.append(value)
            ends.append(at)
        else:
            tails[place], ends[place] = value, at
    chain: list[int] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        chain.append(at)
        at = before[at]
    return chain[::-1]


def longest_in_order(labels: list[tuple[int, ...]]) -> set[int]:
    """Positions of a longest selection of labels that ascend: the files that kept their place."""
    ranks = {label: rank for rank, label in enumerate(sorted(set(labels)))}
    return set(longest_ascending([ranks[label] for label in labels]))
