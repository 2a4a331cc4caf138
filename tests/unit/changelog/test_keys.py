"""Keys compare like their tuples, decode to them, and are the same bytes on both engines."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F

from changelog.keys.arrow import encoded
from changelog.keys.encoding import decode_key, encode_key
from changelog.keys.positions import row_label, row_labels
from changelog.keys.spark import key_column, row_label_column, with_index, with_prefix
from tests.support.changelog_histories import on_engines

EDGES = [0.0, -0.0, 5e-324, -5e-324, 2.0**-1022, 2.0**-1022 - 5e-324, 1.7976931348623157e308, math.inf, -math.inf, math.nan]
powers = st.builds(
    lambda power, toward: math.nextafter(2.0**power, toward), st.integers(-1074, 1023), st.sampled_from([0.0, math.inf, 1.0])
)
SCALE = 5
"""Of the decimals in Arrow columns."""
decimals = st.builds(lambda number, scale: Decimal(number).scaleb(-scale, Context(prec=38)), st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-300, 300), st.integers(0, 38))
VALUES = {
    "int": st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3),
    "float": st.floats() | st.sampled_from(EDGES) | powers | powers.map(lambda number: -number),
    "decimal": st.integers(-(10**38) + 1, 10**38 - 1).map(lambda number: Decimal(number).scaleb(-SCALE, Context(prec=38))) | st.sampled_from([Decimal(0), Decimal("2.50"), Decimal("-2.5")]),
    "bool": st.booleans(),
    "string": st.text() | st.text("\x00\x01a\U0010ffff\uffff", max_size=4),
    "any": st.sampled_from(["null", '{"a":1}', "[1,2]"]),
    "date": st.dates(),
    "date_time": st.datetimes(),
}
ARROW = {
    "int": pa.int64(),
    "float": pa.float64(),
    "decimal": pa.decimal128(38, SCALE),
    "bool": pa.bool_(),
    "string": pa.string(),
    "any": pa.string(),
    "date": pa.date32(),
    "date_time": pa.timestamp("us", "UTC"),
}
TYPES = tuple(VALUES)
rows = st.tuples(*(st.none() | VALUES[kind] for kind in TYPES))


def ranked(value):
    """Return a value that Python orders like keys: NaN above all numbers, null above all values, text by code point."""
    if value is None:
        return (1, 0, 0)
    if isinstance(value, float):
        return (0, 1, 0.0) if math.isnan(value) else (0, 0, value)
    return (0, 0, value)


@st.composite
def same_types(draw):
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    tuples = st.tuples(*(st.none() | VALUES[kind] for kind in types))
    return types, draw(tuples), draw(tuples)


@given(case=same_types())
def test_keys_compare_as_tuples(case):
    types, left, right = case
    expected = tuple(map(ranked, left)) < tuple(map(ranked, right))
    assert (encode_key(left, types) < encode_key(right, types)) == expected


@given(case=same_types())
def test_no_key_begins_another(case):
    types, left, right = case
    one, other = encode_key(left, types), encode_key(right, types)
    assert one == other or not other.startswith(one)


@given(row=rows, tail=st.binary(max_size=4))
def test_keys_decode(row, tail):
    back = decode_key(encode_key(row, TYPES) + tail, TYPES)
    aware = tuple(value.replace(tzinfo=dt.UTC) if isinstance(value, dt.datetime) else value for value in row)
    assert tuple(map(ranked, back)) == tuple(map(ranked, aware))


@given(batch=st.lists(rows, max_size=30), start=st.integers(0, 3))
def test_arrays_make_the_same_bytes(batch, start):
    """Slices of arrays have the same keys."""
    arrays = [(pa.array([row[at] for row in batch], ARROW[kind]).slice(start), kind) for at, kind in enumerate(TYPES)]
    assert encoded(arrays).to_pylist() == [encode_key(row, TYPES) for row in batch[start:]]
    for at, pair in enumerate(arrays):
        assert encoded([pair]).to_pylist() == [encode_key([row[at]], [TYPES[at]]) for row in batch[start:]]


@on_engines
@given(batch=st.lists(rows, min_size=1, max_size=200))
def test_engines_make_the_same_bytes(engine, batch):
    arrays = {f"c{at}": pa.array([row[at] for row in batch], ARROW[kind]) for at, kind in enumerate(TYPES)}
    frame = engine.from_arrow(pa.table({"n": pa.array(range(len(batch))), **arrays}))
    key = key_column([(F.col(f"c{at}"), kind) for at, kind in enumerate(TYPES)])
    made = engine.to_arrow(frame.select("n", key.alias("key"))).to_pylist()
    assert {row["n"]: row["key"] for row in made} == {at: encode_key(row, TYPES) for at, row in enumerate(batch)}


def test_every_power_of_two_and_its_neighbours(engine):
    numbers = [
        math.nextafter(sign * 2.0**power, toward)
        for power in range(-1074, 1024)
        for sign in (1, -1)
        for toward in (0.0, sign * 2.0**power, sign * math.inf)
    ]
    frame = engine.from_arrow(pa.table({"v": numbers}))
    made = engine.to_arrow(frame.select("v", key_column([(F.col("v"), "float")]).alias("key"))).to_pylist()
    assert [row["v"] for row in made if row["key"] != encode_key([row["v"]], ["float"])] == []


def test_numbers_that_are_equal_have_one_key():
    assert encode_key([0.0], ["float"]) == encode_key([-0.0], ["float"])
    assert encode_key([math.nan], ["float"]) == encode_key([-math.nan], ["float"])


@given(pair=st.tuples(decimals | st.integers(-(2**63), 2**63 - 1), decimals))
def test_decimals_compare_by_value_whatever_their_scales(pair):
    left, right = (encode_key([value], ["decimal"]) for value in pair)
    assert (left < right, left == right) == (pair[0] < pair[1], pair[0] == pair[1])
    assert decode_key(left, ["decimal"]) == (pair[0],)


@given(values=st.lists(decimals, min_size=1, max_size=20))
def test_columns_of_any_scale_make_the_same_bytes(values):
    for value in values:
        column = pa.array([value, None], pa.decimal128(38, -value.as_tuple().exponent))
        assert encoded([(column, "decimal")]).to_pylist() == [encode_key([one], ["decimal"]) for one in (value, None)]


def test_spellings_of_one_number_have_one_key():
    spelled = [Decimal(2), 2, Decimal("2.0"), Decimal("2.000000"), Decimal("2E+0")]
    assert len({encode_key([value], ["decimal"]) for value in spelled}) == 1
    assert encode_key([Decimal("-0.00")], ["decimal"]) == encode_key([0], ["decimal"])


def test_the_empty_tuple(engine):
    frame = engine.from_arrow(pa.table({"v": [1]})).select(key_column([]).alias("key"))
    assert engine.to_arrow(frame)["key"].to_pylist() == [encode_key([], [])] == [b""]


@pytest.mark.parametrize(
    ("values", "types", "error", "words"),
    [([2**63], ["int"], OverflowError, "int too big"), ([Decimal("1e-39")], ["decimal"], OverflowError, "more than 38 digits"), ([1], ["number"], KeyError, "number"), ([1], [], ValueError, "zip")],
)
def test_what_has_no_key(values, types, error, words):
    with pytest.raises(error, match=words):
        encode_key(values, types)


@pytest.mark.parametrize("key", [b"", b"\x03", b"\x00"])
def test_what_is_no_key(key):
    with pytest.raises(ValueError, match="not a key of"):
        decode_key(key, ["int"])


def test_derived_keys(engine):
    frame = engine.from_arrow(pa.table({"key": [b"\x01\xff"], "index": [258], "row": [2**40 + 3]}))
    made = frame.select(
        with_prefix(b"\x07", F.col("key")).alias("p"),
        with_index(F.col("key"), F.col("index")).alias("i"),
        row_label_column(F.col("row")).alias("r"),
    )
    expected = {"p": b"\x07\x01\xff", "i": b"\x01\xff\x00\x00\x01\x02", "r": row_label([2**40 + 3])}
    assert engine.to_arrow(made).to_pylist() == [expected]


@given(prefix=st.binary(max_size=9), numbers=st.lists(st.integers(0, 2**48 - 1), max_size=50))
def test_arrow_keys_of_rows(prefix, numbers):
    assert row_labels(prefix, np.array(numbers, np.int64)).to_pylist() == [prefix + row_label([number]) for number in numbers]
