"""Messages of change feeds as events, and versions as bytes that compare as values do."""

from __future__ import annotations

import json
from base64 import b64encode
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import formats
from storage.formats.base import EVENT, EVENT_KEPT, EventPlan
from storage.formats.json.change_feeds import ordered
from tests.support.examples import examples

numbers = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.integers(-3, 3).map(float))


@examples(2000, 300)
@given(st.one_of(st.tuples(numbers, numbers), st.tuples(st.text(), st.text())))
def test_versions_compare_as_values(pair: tuple[Any, Any]):
    one, other = pair
    left, right = ordered(one), ordered(other)
    assert left is not None
    assert right is not None
    assert (left < right, left == right) == (one < other, one == other)


@pytest.mark.parametrize(
    ("value", "scale"),
    [("é", "2"), (b64encode(b"\x7f" * 3_000).decode(), "2"), ("AQ==", "9" * 5_000), ("AQ==", "²"), ("AQ==", "9999"), ("AQ==", "-9999")],
)
def test_no_decimal_of_a_message_ends_the_run_or_makes_a_long_text(value: str, scale: str):
    schema = {"type": "struct", "fields": [{"field": "after", "fields": [typed("v", "org.apache.kafka.connect.data.Decimal", scale=scale)]}]}
    [row] = read([{"schema": schema, "payload": {"op": "c", "after": {"id": 1, "v": value}}}], {"id": "int", "v": "string"})
    assert row["v"] in (value, "1")


def test_numbers_come_before_texts():
    values = [-(10**30), -1.5, -1, 0, 0.1, 2, 10, 10**30, "", "10", "9", "a", "a\x00", "ab"]
    found = [ordered(value) for value in values]
    assert all(left is not None and right is not None and left < right for left, right in pairwise(found))
    assert ordered(None) is None
    assert ordered(5) == ordered(5.0)
    assert ordered(0) == ordered(-0.0)


def read(messages: list[Any], columns: dict[str, str], **options: Any) -> list[dict[str, Any]]:
    declared = tuple(formats.Column(name, kind, declared=name) for name, kind in columns.items())
    plan = formats.ReadPlan(declared=declared, on_unmapped="drop", events=EventPlan(("id",)))
    reader = formats.reader("json", {"format": "ndjson", "cdc": {"format": "debezium", **options}}, plan)
    text = "".join(json.dumps(message) + "\n" for message in messages).encode()
    return [row for batch in reader.read(text, "in.jsonl") for row in batch.to_pylist()]


def typed(name: str, logical: str, **parameters: str) -> dict[str, Any]:
    return {"field": name, "type": "x", "name": logical, "parameters": parameters}


@pytest.mark.parametrize(
    ("logical", "value", "kind", "shown"),
    [
        ("io.debezium.time.Date", 19730, "string", "2024-01-08"),
        ("io.debezium.time.Date", -1, "date", "1969-12-31"),
        ("io.debezium.time.Timestamp", 1704706200000, "string", "2024-01-08T09:30:00"),
        ("io.debezium.time.MicroTimestamp", 1704706200000001, "string", "2024-01-08T09:30:00.000001"),
        ("io.debezium.time.NanoTimestamp", 1704706200000001999, "string", "2024-01-08T09:30:00.000001"),
        ("io.debezium.time.MicroTimestamp", 1704706200000000, "int", "1704706200000000"),
        ("io.debezium.time.ZonedTimestamp", "2024-01-08T09:30:00Z", "string", "2024-01-08T09:30:00Z"),
        ("org.apache.kafka.connect.data.Date", 0, "string", "1970-01-01"),
        ("org.apache.kafka.connect.data.Timestamp", -1, "string", "1969-12-31T23:59:59.999000"),
    ],
)
def test_times_have_the_units_of_their_schema(logical: str, value: Any, kind: str, shown: str):
    schema = {"fields": [{"field": "after", "fields": [typed("at", logical)]}]}
    [row] = read([{"schema": schema, "payload": {"op": "c", "after": {"id": 1, "at": value}}}], {"id": "int", "at": kind})
    assert str(row["at"]) == shown


@pytest.mark.parametrize(("text", "scale", "shown"), [("BNI=", "2", "12.34"), ("+y4=", "2", "-12.34"), ("AQ==", "3", "0.001"), ("AQ==", "0", "1"), ("AQ==", "-2", "100"), ("?", "2", "?")])
def test_decimals_are_digits(text: str, scale: str, shown: str):
    schema = {"fields": [{"field": "after", "fields": [typed("n", "org.apache.kafka.connect.data.Decimal", scale=scale)]}]}
    [row] = read([{"schema": schema, "payload": {"op": "c", "after": {"id": 1, "n": text}}}], {"id": "int", "n": "string"})
    assert row["n"] == shown


def test_a_number_without_schema_has_the_configured_unit():
    after = {"id": 1, "day": 1, "at": 90_000}
    [row] = read([{"op": "c", "after": after}], {"id": "int", "day": "date", "at": "date_time"}, time_unit="s")
    assert (row["day"].isoformat(), row["at"].replace(tzinfo=None).isoformat()) == ("1970-01-02", "1970-01-02T01:00:00")


def test_unavailable_values_are_named():
    [row] = read([{"op": "u", "after": {"id": 1, "a": "__debezium_unavailable_value", "b": "x"}}], {"id": "int", "a": "string", "b": "string"})
    assert (row["a"], row["b"], row[EVENT_KEPT]) == (None, "x", "\x1fa\x1f")


def test_each_line_is_one_event():
    messages: list[Any] = [{"ts_ms": 5}, {"op": "m"}, {"op": "d", "before": {"id": 1}}, {"op": "c", "after": {"id": 1}}, {"op": "t"}, None]
    assert [row[EVENT] for row in read(messages, {"id": "int"})] == [0, 0, 2, 1, 3, 0]
