"""Means and weighted means are the exact quotients, rounded once; fractions are the reference."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from changelog.exact.quotients import divided
from changelog.exact.rounding import FloatSum, IntSum, Mean, Ratio, carried, contributions, rounded

CHANCE = np.random.default_rng(7)


def float_values(count: int, spread: int) -> np.ndarray:
    return CHANCE.integers(-(2**53), 2**53, count) * 2.0 ** CHANCE.integers(-spread - 40, spread - 40, count)


def states(total: FloatSum | IntSum, values: np.ndarray, groups: np.ndarray, count: int) -> dict[str, np.ndarray]:
    """Return the sums of groups in carried form."""
    parts = contributions(total, values, np.ones(len(values), dtype=bool), np.ones(len(values), dtype="i8"))
    sums = {name: np.zeros(count, dtype="i8") for name in total.columns}
    for name, part in parts.items():
        np.add.at(sums[name], groups, part.astype("i8"))
    return sums | carried(sums, total)


def batch_of(columns):
    import pyarrow as pa

    return pa.RecordBatch.from_pydict(columns)


@pytest.mark.parametrize("spread", [1, 3, 20, 60])
def test_means_of_floats_and_ints(spread):
    groups = np.repeat(np.arange(4000), CHANCE.integers(1, 12, 4000))
    counts = np.bincount(groups)
    ints = CHANCE.integers(-(2**63), 2**63 - 1, len(groups)) >> CHANCE.integers(0, 20, len(groups))
    for total, values in ((FloatSum("f"), float_values(len(groups), spread)), (IntSum("i"), ints)):
        found = rounded(batch_of(states(total, values, groups, 4000) | {"n": counts}), Mean("m", total, "n"))
        exact = [Fraction(0)] * 4000
        for group, value in zip(groups, values.tolist(), strict=True):
            exact[group] += Fraction(value)
        assert found.tolist() == [float(one / int(count)) for one, count in zip(exact, counts, strict=True)]


@pytest.mark.parametrize("spread", [1, 3, 20])
def test_weighted_means(spread):
    groups = np.repeat(np.arange(2000), CHANCE.integers(1, 9, 2000))
    weights, products = np.abs(float_values(len(groups), spread)), float_values(len(groups), spread)
    above, below = FloatSum("p"), FloatSum("w")
    found = rounded(batch_of(states(above, products, groups, 2000) | states(below, weights, groups, 2000)), Ratio("m", above, below))
    exact = [(sum(map(Fraction, products[groups == group].tolist())), sum(map(Fraction, weights[groups == group].tolist()))) for group in range(2000)]
    assert found.tolist() == [float(one / other) for one, other in exact]


def test_quotients_that_lie_between_two_doubles():
    """Sums that are three or seven times a number of 54 places, and their neighbours."""
    half = (2**53 + CHANCE.integers(0, 2**52, 3000)) * 2 + 1
    for by in (2, 3, 6, 7, 12):
        for beside in (-1, 0, 1):
            sums = [int(one) * by * 2**40 + beside for one in half]
            high = np.array([float(one) for one in sums])
            low = np.array([float(one - int(near)) for one, near in zip(sums, high, strict=True)])
            assert divided(high, low, np.full(len(sums), float(by))).tolist() == [float(Fraction(one, by)) for one in sums]


def test_no_values_and_no_weights():
    total = FloatSum("f")
    nothing = states(total, np.zeros(0), np.zeros(0, dtype="i8"), 1)
    assert math.isnan(rounded(batch_of(nothing | {"n": np.zeros(1, dtype="i8")}), Mean("m", total, "n"))[0])
