"""Decoding many keys at once finds the same ends as decoding each key."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from changelog.keys.decode import KeyBytes, arrow_keys, bare_keys
from changelog.keys.encoding import bare, encode_key
from changelog.keys.positions import row_label
from tests.unit.changelog.test_keys import VALUES
from tests.unit.changelog.test_labels import labels


def binary(keys: list[bytes]) -> pl.Series:
    return pl.Series("key", keys, dtype=pl.Binary)


@given(keys=st.lists(st.tuples(st.binary(max_size=3), labels, labels, st.binary(max_size=9))))
def test_labels(keys):
    read = KeyBytes.of(binary([before + row_label(one) + row_label(other) + after for before, one, other, after in keys]))
    starts = pl.Series([len(before) for before, *_ in keys], dtype=pl.Int64).to_numpy()
    ends = read.label_ends(starts)
    assert ends.tolist() == [len(before) + len(row_label(one)) for before, one, *_ in keys]
    assert read.label_ends(ends).tolist() == [len(before) + len(row_label(one)) + len(row_label(other)) for before, one, other, _ in keys]
    assert read.first_numbers(ends).tolist() == [other[0] for _, _, other, _ in keys]


@given(data=st.data(), types=st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4))
def test_values(data, types):
    tuples = data.draw(st.lists(st.tuples(*(st.none() | VALUES[kind] for kind in types)), max_size=5))
    tails = data.draw(st.lists(st.binary(max_size=9), min_size=len(tuples), max_size=len(tuples)))
    keys = [encode_key(values, types) for values in tuples]
    read = KeyBytes.of(binary([key + tail for key, tail in zip(keys, tails, strict=True)]))
    assert read.value_ends(read.start(), types).tolist() == [len(key) for key in keys]


@given(keys=st.lists(st.binary(max_size=4) | st.binary(max_size=3).map(lambda key: key + b"!")))
def test_marks(keys):
    found = bare_keys(binary(keys))
    assert found.to_list() == [bare(key) for key in keys]
    assert arrow_keys(found).to_pylist() == found.to_list()


def test_a_part_of_a_column():
    keys = binary([row_label((number,)) for number in range(1, 9)])
    read = KeyBytes.of(keys.slice(3, 2))
    assert read.first_numbers(read.start()).tolist() == [4, 5]


@pytest.mark.parametrize("key", [b"", b"12345", b"123456\x02", b"123456\x01123", b"\xff" * 20])
def test_no_label(key):
    read = KeyBytes.of(binary([row_label((1,)), key]))
    with pytest.raises(ValueError, match="a key"):
        read.label_ends(read.start())


@pytest.mark.parametrize("key", [b"", b"\x00" * 9, b"\x01\x80", b"\x01abc"])
def test_no_value(key):
    read = KeyBytes.of(binary([key, encode_key([1], ["int"])]))
    with pytest.raises(ValueError, match="a key"):
        read.value_ends(read.start(), ["string" if key.endswith(b"c") else "int"])
