"""The logical hash against a plain model of its specification, and the equalities and inequalities that the tests of arrow-digest state."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.odf.logical_hash import LogicalHash, UnhashedType
from tests.support.examples import examples

BYTES = Callable[[Any], bytes]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def length(content: bytes) -> bytes:
    return struct.pack("<Q", len(content)) + content


def number(code: str) -> BYTES:
    return lambda value: struct.pack(f"<{code}", value)


def int_type(signed: int, width: int) -> bytes:
    return struct.pack("<HBQ", 1, signed, width)


COLUMNS: dict[str, tuple[pa.DataType, bytes, BYTES, Any]] = {
    "int64": (pa.int64(), int_type(1, 64), number("q"), st.integers(-(2**63), 2**63 - 1)),
    "uint64": (pa.uint64(), int_type(0, 64), number("Q"), st.integers(0, 2**64 - 1)),
    "int32": (pa.int32(), int_type(1, 32), number("i"), st.integers(-(2**31), 2**31 - 1)),
    "uint8": (pa.uint8(), int_type(0, 8), number("B"), st.integers(0, 255)),
    "double": (pa.float64(), struct.pack("<HQ", 2, 64), number("d"), st.floats(allow_nan=False)),
    "bool": (pa.bool_(), struct.pack("<H", 5), lambda value: bytes([value + 1]), st.booleans()),
    "text": (pa.string(), struct.pack("<H", 4), lambda value: length(value.encode()), st.text(max_size=5)),
    "bytes": (pa.binary(), struct.pack("<H", 3), length, st.binary(max_size=5)),
    "decimal": (pa.decimal128(38, 2), struct.pack("<HQQQ", 6, 128, 38, 2), lambda value: int(value.scaleb(2)).to_bytes(16, "little", signed=True), st.decimals(-999, 999, places=2)),
    "date": (pa.date32(), struct.pack("<HQH", 7, 32, 0), lambda value: struct.pack("<i", (value - date(1970, 1, 1)).days), st.dates()),
    "moment": (
        pa.timestamp("ms", "UTC"), struct.pack("<HH", 9, 1) + length(b"UTC"), lambda value: struct.pack("<q", (value - EPOCH).days * 86_400_000 + (value - EPOCH).seconds * 1000),
        st.datetimes(timezones=st.just(UTC), allow_imaginary=False).map(lambda one: one.replace(microsecond=0)),
    ),
    "list": (pa.list_(pa.int32()), struct.pack("<H", 11) + int_type(1, 32), lambda value: struct.pack("<Q", len(value)) + b"".join(number("i")(one) for one in value), st.lists(st.integers(0, 9), max_size=3)),
}  # fmt: skip
TABLES = st.dictionaries(st.sampled_from(sorted(COLUMNS)), st.none(), min_size=1).flatmap(
    lambda names: st.tuples(st.just(sorted(names)), st.lists(st.fixed_dictionaries({name: st.none() | COLUMNS[name][3] for name in sorted(names)}), max_size=6))
)


def model(names: list[str], rows: list[dict[str, Any]]) -> bytes:
    """The hash by the specification, value by value."""
    whole = hashlib.sha3_256(b"".join(length(name.encode()) + struct.pack("<Q", 0) for name in names))
    for name in names:
        _, type_bytes, content, _ = COLUMNS[name]
        whole.update(hashlib.sha3_256(type_bytes + b"".join(b"\0" if row[name] is None else content(row[name]) for row in rows)).digest())
    return whole.digest()


def digest(*batches: pa.RecordBatch) -> bytes:
    hasher = LogicalHash(batches[0].schema)
    for batch in batches:
        hasher.update(batch)
    return hasher.result().digest


@pytest.mark.property
@given(table=TABLES, cut=st.integers(0, 6))
@examples(100, 30)
def test_it_is_that_of_the_specification_however_rows_are_cut(table: tuple[list[str], list[dict[str, Any]]], cut: int) -> None:
    names, rows = table
    batch = pa.RecordBatch.from_pylist(rows, pa.schema([(name, COLUMNS[name][0]) for name in names]))
    assert digest(batch.slice(0, cut), batch.slice(cut)) == model(names, rows)


def column(values: pa.Array) -> bytes:
    return digest(pa.RecordBatch.from_arrays([values], ["a"]))


def pairs() -> Iterator[tuple[pa.Array, pa.Array, bool]]:
    """Arrays of the tests of arrow-digest, and whether their hashes are equal."""
    some = pa.array([1, 2, 3], pa.int32())
    yield some, pa.array([1, 2, 3], pa.int32()), True
    yield some, pa.array([1, 2, None, 3], pa.int32()), False
    yield some, pa.array([1, 2, 3], pa.uint32()), False
    flags = pa.array([True, False, True, False, True, True])
    yield flags, pa.array([True, False, True, False, True, False]), False
    yield flags, pa.array([False, False, True, False, True, True]), False
    texts = pa.array(["foo", "bar", "baz"])
    yield texts, texts.cast(pa.large_string()), True
    yield texts, texts.cast(pa.string_view()), True
    yield texts, texts.dictionary_encode(), True
    yield texts, pa.array(["foo", "bar", "", "baz"]), False
    yield texts, pa.array(["foo", "bar", None, "baz"]), False
    numbers = pa.list_(pa.int32())
    lists = pa.array([[0, 1, 2], None, [3, None, 4, 5], [6, 7]], numbers)
    yield lists, lists.cast(pa.large_list(pa.int32())), True
    yield lists, pa.array([[0, 1, 2], None, [3, None, 4, 100], [6, 7]], numbers), False
    yield lists, pa.array([[0, 1, 2], None, [3, None, 4], [5, 6, 7]], numbers), False
    blobs = pa.array([b"one", b"two", b"", b"three"])
    yield blobs, blobs.cast(pa.binary_view()), True
    yield blobs, pa.array([b"one", b"two", b"three"]), False
    yield blobs, pa.array([b"one", b"two", None, b"three"]), False
    yield pa.array([b"one", b"two"]), pa.array([b"one", b"two"], pa.binary(3)), True


@pytest.mark.parametrize(("one", "other", "equal"), list(pairs()))
def test_equal_values_have_equal_hashes(one: pa.Array, other: pa.Array, equal: bool) -> None:
    assert (column(one) == column(other)) is equal


def test_structs_are_their_columns_one_level_down() -> None:
    inner = pa.struct([("c", pa.string()), ("d", pa.int32())])
    rows = [{"c": "a", "d": 3}, {"c": "b", "d": 2}]
    batch = pa.record_batch({"b": pa.array(rows, inner)})
    whole = hashlib.sha3_256(b"".join(length(name) + struct.pack("<Q", level) for name, level in ((b"b", 0), (b"c", 1), (b"d", 1))))
    whole.update(hashlib.sha3_256(struct.pack("<H", 4) + length(b"a") + length(b"b")).digest())
    whole.update(hashlib.sha3_256(int_type(1, 32) + struct.pack("<ii", 3, 2)).digest())
    assert digest(batch) == whole.digest()
    gone = pa.record_batch({"b": pa.array([rows[0], None], inner)})
    assert digest(gone) == digest(pa.record_batch({"b": pa.array([rows[0], {"c": None, "d": None}], inner)})) != digest(batch)
    assert digest(pa.record_batch({"bee": pa.array(rows, inner)})) != digest(batch)


def test_columns_of_json_are_texts() -> None:
    texts = pa.array(['{"a":1}', None])
    assert column(pa.ExtensionArray.from_storage(pa.json_(), texts)) == column(texts)


@pytest.mark.parametrize("values", [pa.array([time(1, 2)]), pa.array([Decimal("1.5")], pa.decimal256(40, 1)), pa.array([1.5], pa.float32()), pa.array([date(2024, 1, 1)], pa.date64())])
def test_further_types_of_one_width_have_one(values: pa.Array) -> None:
    assert len(column(values)) == 32


def test_a_map_has_none() -> None:
    with pytest.raises(UnhashedType, match="no logical hash of columns of type map"):
        LogicalHash(pa.schema([("a", pa.map_(pa.string(), pa.int64()))]))


def moment(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}+00:00")


CRATE: dict[str, tuple[pa.Array, str]] = {
    "int64": (pa.array([1, None, -(2**63)]), "0bb541a3873e9e9f97d86975ee77d45481c3397684d7e3f61612416f6c950093"),
    "uint64": (pa.array([0, 2**64 - 1, None], pa.uint64()), "c9cf6f7b5e9dab5f3bfe73c936169256e8c95e20a0db5151416557ddf466e842"),
    "int32": (pa.array([1, 2, None], pa.int32()), "99cf317861f6bc281d3e78adca09b98d769c030cc0ee0939721f753a70a370c8"),
    "uint8": (pa.array([0, 1, 2, 3], pa.uint8()), "f6062e7722fec8d59567486442bab6c8851f0cc567407d8faff219dd62180a12"),
    "double": (pa.array([1.5, None, -0.0]), "edd44094733445c0821f88df5479778a5e425ff43829cbe8a18b8b59334fc4d2"),
    "bool": (pa.array([True, False, None]), "b4303af273f82c9538b23786f147df27137904f620066b541d54b0d2927f6b5c"),
    "string": (pa.array(["", "é", None, "abc"]), "7bf17a795759810b6d1e685596caf0574a9190d4fe9601f44b662938bf7217f7"),
    "binary": (pa.array([b"", b"\x00\xff", None]), "adb65e9328dbc2c1402e7d6958b6df2c26e9d4ec4b1924593a7ef3744f701e38"),
    "decimal": (pa.array([Decimal("1.50"), None, Decimal("-999999.99")], pa.decimal128(38, 2)), "67fc1d5bcf3b3460b63b89af8f7bbe59385eb08708a6056257b4544b54a27cbd"),
    "date": (pa.array([date(2024, 2, 29), None, date(1969, 12, 31)]), "0876f8f3ca15f9f968d6d366d551ed718bdc677aa20e919a6126b50838939d83"),
    "millisecond": (pa.array([moment("2024-02-29T12:30:00"), None], pa.timestamp("ms", "UTC")), "414f1d6deeb1ef0765be321def0a87c73841768f25eb64f6c2377d226598fd6b"),
    "microsecond": (pa.array([moment("1969-12-31T23:59:59.999999"), None], pa.timestamp("us", "UTC")), "9a83a982fea23af98c67aec104e3d3fcf873e76e75226660e79392094ed5cb18"),
    "local": (pa.array([datetime(2024, 2, 29, 12, 30), None], pa.timestamp("us")), "7b949f725189e4dfeb042ce2bb260df8e9066a0282c18eb57e2fb151cf96ee00"),
    "list": (pa.array([[1, None], None, []], pa.list_(pa.int32())), "6566244f5e5f003e6068fdd8494f66643956471960be7107c23ea901cf3195a1"),
}


@pytest.mark.parametrize("name", sorted(CRATE))
def test_the_published_crate_has_the_same_hashes(name: str) -> None:
    """Each column, of that name, was written to a Parquet file and hashed by arrow-digest 58.0.0 with parquet 58.4.1."""
    values, expected = CRATE[name]
    assert digest(pa.RecordBatch.from_arrays([values], [name])).hex() == expected
