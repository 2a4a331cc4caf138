"""Running sums equal `math.fsum` of each frame, or report a value that did not fit."""

from __future__ import annotations

import math
from fractions import Fraction

import pyarrow as pa
from hypothesis import assume, given
from hypothesis import strategies as st
from pyspark.sql import Window, functions

from changelog.exact.ranges import ValueRange, value_ranges
from changelog.exact.windows import WindowSum, shared_unit
from tests.support.changelog_histories import on_engines
from tests.unit.changelog.test_exact import fsum

prices = st.integers(-(10**9), 10**9).map(lambda cents: cents / 100)
ties = st.integers(0, 60).flatmap(lambda places: st.sampled_from([1.0, -1.0, 2.0**-places, -(2.0**-places), 1.0 + 2.0**-52]))
near = st.builds(math.ldexp, prices | ties, st.integers(-900, 900))
anything = st.floats() | st.sampled_from([math.nan, math.inf, -math.inf, 1.7e308, -1.7e308, 5e-324, 0.0, -0.0, 2.0**-1022])


def partitions(values):
    return st.lists(st.lists(st.none() | values, min_size=1, max_size=9), min_size=1, max_size=30)


def running(engine, batch, *, mean=False, shared=False):
    """Return the results of each partition with their notes, in order. `shared`: in a shared unit, where there is one."""
    rows = [(part, place, value) for part, values in enumerate(batch) for place, value in enumerate(values)]
    part, place, value = zip(*rows, strict=True)
    frame = engine.from_arrow(pa.table({"part": part, "place": place, "v": pa.array(value, pa.float64())}))
    ordered = Window.partitionBy("part").orderBy("place")
    so_far, whole = (ordered.rowsBetween(Window.unboundedPreceding, end) for end in (Window.currentRow, Window.unboundedFollowing))
    unit = shared_unit(value_ranges(frame, ["v"])["v"]) if shared else None
    assume(unit is not None or not shared)
    total = WindowSum("_s", "v", so_far, whole, mean, unit)
    sums = {name: functions.sum(name).over(so_far) for name in total.added}
    for layer in (*total.parts(), sums, *total.results()):
        frame = frame.withColumns(layer)
    found = engine.to_arrow(frame.orderBy("part", "place").select("part", "_s", total.outside.alias("outside"))).to_pylist()
    return [[(row["_s"], row["outside"]) for row in found if row["part"] == at] for at in range(len(batch))]


def so_far(values):
    """Return the exact sum of the values up to each row, rounded once. None without values."""
    known = [[value for value in values[: at + 1] if value is not None] for at in range(len(values))]
    return [repr(fsum(found) + 0.0) if found else "None" for found in known]


@on_engines
@given(batch=partitions(prices | ties))
def test_sums_of_values_of_like_size_are_exact(engine, batch):
    for values, found in zip(batch, running(engine, batch), strict=True):
        assert [(repr(value), outside) for value, outside in found] == [(expected, False) for expected in so_far(values)]


@on_engines
@given(scale=st.integers(-900, 900), batch=partitions(st.integers(-(2**60), 2**60).map(float) | prices))
def test_sums_in_a_shared_unit_are_exact(engine, scale, batch):
    scaled = [[None if value is None else math.ldexp(value, scale) for value in values] for values in batch]
    for values, found in zip(scaled, running(engine, scaled, shared=True), strict=True):
        assert [(repr(value), outside) for value, outside in found] == [(expected, False) for expected in so_far(values)]


def test_a_unit_is_shared_up_to_what_two_parts_hold():
    assert shared_unit(ValueRange(least=-20, most=55, rows=1 << 22)) == -20
    assert shared_unit(ValueRange(least=-20, most=56, rows=1 << 22)) is None
    assert shared_unit(ValueRange(least=-1001, most=-1000, rows=1)) is None


@on_engines
@given(values=st.lists(st.none() | near | anything, min_size=1))
def test_a_value_range_holds_all_values_where_they_are_finite(engine, values):
    frame = engine.from_arrow(pa.table({"v": pa.array(values, pa.float64())}))
    found = value_ranges(frame, ["v"])
    known = [value for value in values if value is not None]
    assert list(found) == (["v"] if all(map(math.isfinite, known)) else [])
    for one in found.values():
        assert all(value % Fraction(2) ** one.least == 0 and abs(value) < Fraction(2) ** one.most for value in map(Fraction, known) if value)
        assert one.rows == len(values)


@on_engines
@given(batch=partitions(near | anything))
def test_a_sum_is_exact_or_reports_a_value(engine, batch):
    for values, found in zip(batch, running(engine, batch), strict=True):
        largest = max((abs(value) for value in values if value is not None and math.isfinite(value)), default=0.0)
        for at, ((value, _), expected) in enumerate(zip(found, so_far(values), strict=True)):
            if not any(outside for _, outside in found[: at + 1]):
                assert repr(value) == expected
        fits = [value is None or not math.isfinite(value) or value % max(math.ldexp(largest, -105), 2.0**-1000) == 0 for value in values]
        assert all(not outside for fit, (_, outside) in zip(fits, found, strict=True) if fit and largest > 2.0**-890)


@on_engines
@given(batch=partitions(prices))
def test_means_divide_the_exact_sum(engine, batch):
    for values, found in zip(batch, running(engine, batch, mean=True), strict=True):
        known = [[value for value in values[: at + 1] if value is not None] for at in range(len(values))]
        assert [value for value, _ in found] == [float(sum(map(Fraction, part)) / len(part)) if part else None for part in known]


@on_engines
@given(batch=st.just([[2.0**970] * 20, [math.nextafter(math.inf, 0)] * 3 + [-math.nextafter(math.inf, 0)] * 3, [-(2.0**52) - 1, 0.5, 0.5]]))
def test_large_sums_are_rounded_once(engine, batch):
    for values, found in zip(batch, running(engine, batch), strict=True):
        assert [(repr(value), outside) for value, outside in found] == [(expected, False) for expected in so_far(values)]


@on_engines
@given(shared=st.booleans())
def test_means_are_finite_where_sums_are_not(engine, shared):
    assert running(engine, [[1e308] * 3, [-1e308] * 2], shared=shared, mean=True) == [[(1e308, False)] * 3, [(-1e308, False)] * 2]
