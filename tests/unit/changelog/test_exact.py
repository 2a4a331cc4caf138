"""Exact sums equal `math.fsum` of the surviving values in any order; integer sums are exact or report an overflow."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F

from changelog.exact.ranges import ValueRange, value_ranges
from changelog.exact.rounding import carried, with_totals
from changelog.exact.sums import EXPONENTS, LIMIT, FloatSum, IntSum
from tests.support.changelog_histories import on_engines

FLOATS, INTS = FloatSum("_s"), IntSum("_i")
ordinary = st.builds(math.ldexp, st.floats(-1, 1).map(lambda number: round(number * 2**53) / 2**53), st.integers(-70, 127)).filter(
    lambda number: abs(number) < 2.0**127
)
ties = st.builds(lambda number, side: math.copysign(math.ulp(number) / 2, side), st.floats(1e-3, 1e20), st.sampled_from([1.0, -1.0]))
inside = ordinary.filter(lambda number: number * 2.0**128 == int(number * 2.0**128)) | ties | st.integers(-(10**6), 10**6).map(float)
anything = st.floats() | st.sampled_from([math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 2.0**127])
integers = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([2**63 - 1, -(2**63), 0, -1])


def groups(values):
    return st.lists(st.tuples(st.lists(values, min_size=1, max_size=8), st.lists(anything, max_size=3)), min_size=1, max_size=30)


def fsum(values):
    """Return `math.fsum`, or infinity for a sum beyond the range."""
    special = {value for value in values if not math.isfinite(value)}
    if special:
        return sum(special)
    try:
        return math.fsum(values)
    except OverflowError:  # of a partial sum, perhaps of no more
        return rounded(sum(map(Fraction, values)))


def rounded(total):
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def weighted_rows(engine, batch, column):
    """Return a frame `g, v, w`: the surviving rows of each group, and rows that come and are retracted, in any order."""
    kept = [(at, value, 1) for at, (values, _) in enumerate(batch) for value in values]
    gone = [(at, value, weight) for at, (_, values) in enumerate(batch) for value in values for weight in (1, -1)]
    shuffled = random.Random(len(kept)).sample(kept + gone, len(kept) + len(gone))
    group, value, weight = zip(*shuffled, strict=True)
    return engine.from_arrow(pa.table({"g": group, "v": pa.array(value, column), "w": weight}))


def float_states(frame, spec):
    return frame.select("g", *spec.contributions(F.col("v"), F.col("w"))).groupBy("g").agg(*spec.sums())


def totals(engine, states, *columns):
    return {row["g"]: row for row in engine.to_arrow(states.select("g", *columns)).to_pylist()}


def test_state_columns_are_bigints(engine):
    states = float_states(weighted_rows(engine, [([1.5, None], [])], pa.float64()), FLOATS)
    assert [kind for _, kind in states.select(*FLOATS.columns).dtypes] == ["bigint"] * len(FLOATS.columns)


@on_engines
@given(values=st.lists(st.none() | inside | anything, min_size=1) | st.lists(inside, min_size=1, max_size=3))
def test_rows_add_nothing_to_unused_columns(engine, values):
    frame = engine.from_arrow(pa.table({"v": pa.array(values, pa.float64())}))
    ranges = value_ranges(frame, ["v"])
    silent = FLOATS.unused(ranges["v"]) if ranges else frozenset()
    contributions = engine.to_arrow(frame.select(*FLOATS.contributions(F.col("v"), F.lit(1).cast("bigint")))).to_pydict()
    assert all(set(contributions[name]) == {0} for name in silent)


def test_ordinary_numbers_leave_most_columns_unused():
    spoken = set(FLOATS.columns) - FLOATS.unused(ValueRange(least=-59, most=20, rows=10))
    assert spoken == {name for name, exponent in zip(FLOATS.limbs, EXPONENTS, strict=True) if exponent in (0, -32, -64)}
    assert FLOATS.unused(ValueRange(least=-129, most=20, rows=10)) == frozenset()


@on_engines
@given(batch=groups(inside))
def test_a_sum_equals_that_of_the_survivors(engine, batch):
    states = with_totals(float_states(weighted_rows(engine, batch, pa.float64()), FLOATS).select("g", *FLOATS.carried()), [FLOATS])
    made = totals(engine, states, FLOATS.total().alias("total"), FLOATS.inexact().alias("inexact"))
    assert {at: row["total"] for at, row in made.items()} == {at: fsum(values) for at, (values, _) in enumerate(batch)}
    assert not any(row["inexact"] for row in made.values())


@on_engines
@given(batch=groups(anything | inside))
def test_values_that_do_not_fit_are_reported(engine, batch):
    states = with_totals(float_states(weighted_rows(engine, batch, pa.float64()), FLOATS).select("g", *FLOATS.carried()), [FLOATS])
    made = totals(engine, states, FLOATS.total().alias("total"), FLOATS.inexact().alias("inexact"))
    for at, (values, _) in enumerate(batch):
        finite = [value for value in values if math.isfinite(value)]
        assert made[at]["inexact"] == any(abs(value) >= 2.0**127 or value * 2.0**128 != int(value * 2.0**128) for value in finite)
        if not made[at]["inexact"]:
            assert repr(made[at]["total"]) == repr(fsum(values) + 0.0)


@on_engines
@given(values=st.lists(inside, min_size=2, max_size=20), cut=st.integers(1, 19))
def test_states_merge_and_a_carried_state_has_one_form(engine, values, cut):
    def state(part):
        return float_states(weighted_rows(engine, [(part, [])], pa.float64()), FLOATS).select("g", *FLOATS.carried())

    parts = [part for part in (values[:cut], values[cut:]) if part]
    merged = state(parts[0])
    for part in parts[1:]:
        merged = merged.unionByName(state(part)).groupBy("g").agg(*FLOATS.sums()).select("g", *FLOATS.carried())
    assert engine.to_arrow(merged).to_pylist() == engine.to_arrow(state(values)).to_pylist()


@on_engines
@given(batch=groups(inside), whole=st.lists(st.lists(integers, min_size=1, max_size=6), min_size=1, max_size=30))
def test_carries_are_settled_on_the_driver_as_in_an_engine(engine, batch, whole):
    limbs = float_states(weighted_rows(engine, batch, pa.float64()), FLOATS)
    frame = weighted_rows(engine, [(values, []) for values in whole], pa.int64())
    halves = frame.select("g", *INTS.contributions(F.col("v"), F.col("w"))).groupBy("g").agg(*INTS.sums())
    for states, spec in ((limbs, FLOATS), (halves, INTS)):
        rows = engine.to_arrow(states.select("g", *spec.columns)).sort_by("g")
        made = {name: rows.column(name).to_numpy() for name in spec.columns}
        made |= carried(made, spec)
        there = engine.to_arrow(states.select("g", *spec.carried())).sort_by("g")
        assert {name: values.tolist() for name, values in made.items()} == {name: there.column(name).to_pylist() for name in spec.columns}


def test_many_values_near_the_limit(engine):
    biggest = math.nextafter(2.0**127, 0)
    batch = [([biggest] * 5000 + [-(2.0**-128)], []), ([-biggest] * 5000, [])]
    states = with_totals(float_states(weighted_rows(engine, batch, pa.float64()), FLOATS).select("g", *FLOATS.carried()), [FLOATS])
    assert {at: row["total"] for at, row in totals(engine, states, FLOATS.total().alias("total")).items()} == {
        at: fsum(values) for at, (values, _) in enumerate(batch)
    }


def test_nulls_add_nothing(sail):
    frame = sail.from_arrow(pa.table({"g": [1, 1, 2], "v": pa.array([None, 2.5, None], pa.float64()), "w": [1, 1, 1]}))
    made = totals(sail, with_totals(float_states(frame, FLOATS).select("g", *FLOATS.carried()), [FLOATS]), FLOATS.total().alias("total"))
    assert {at: row["total"] for at, row in made.items()} == {1: 2.5, 2: 0.0}


def test_names_and_limits():
    assert FLOATS.columns == (*(f"_s_{at}" for at in range(8)), "_s_nan", "_s_inf", "_s_ninf", "_s_outside")
    assert (len(EXPONENTS), EXPONENTS[0], EXPONENTS[-1], LIMIT) == (8, 96, -128, 2.0**127)


@on_engines
@given(batch=st.lists(st.tuples(st.lists(integers, min_size=1, max_size=6), st.lists(integers, max_size=3)), min_size=1, max_size=30))
def test_integer_sums_are_exact_or_overflow(engine, batch):
    frame = weighted_rows(engine, batch, pa.int64())
    states = frame.select("g", *INTS.contributions(F.col("v"), F.col("w"))).groupBy("g").agg(*INTS.sums()).select("g", *INTS.carried())
    made = totals(engine, states, INTS.total().alias("total"), INTS.overflows().alias("overflows"))
    for at, (values, _) in enumerate(batch):
        fits = -(2**63) <= sum(values) < 2**63
        assert (made[at]["total"], made[at]["overflows"]) == (sum(values) if fits else None, not fits)
