"""Text to declared types: accepted spellings by an independent grammar, empty cells, failures, dates."""

import json
import math
import re
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.values.coerce import coerce
from storage.values.types import arrow_type, base_type, is_dynamic
from tests.support.examples import examples

NUMERIC_TEXT = st.one_of(
    st.text(alphabet="+-.0123456789eE_ xinfaNty", max_size=8),
    st.integers().map(str),
    st.floats().map(repr),
    st.text(max_size=4),
)
FLOAT = re.compile(r"[+-]?(inf|infinity|nan|([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?)", re.IGNORECASE)


def one(text, declared, formats=()):
    """The value of one cell and whether it failed."""
    result = coerce(pa.array([text], pa.string()), declared, formats)
    assert result.values.type == arrow_type(declared)
    return result.values[0].as_py(), bool(result.failed and result.failed[0].as_py())


def expected_int(text):
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        return None
    return int(text) if -(2**63) <= int(text) < 2**63 else None


@given(text=NUMERIC_TEXT)
@examples(500)
def test_int(text):
    assert one(text, "int") == (expected_int(text), expected_int(text) is None and text != "")


@given(text=NUMERIC_TEXT)
@examples(500)
def test_float(text):
    value, failed = one(text, "float")
    if FLOAT.fullmatch(text) and not ("inf" not in text.lower() and math.isinf(float(text))):
        assert not failed
        assert repr(value) == repr(float(text)).replace("-nan", "nan")
    else:
        assert (value, failed) == (None, text != "")


@given(text=st.one_of(st.sampled_from(["true", "YES", "1", "oN", "False", "no", "0", "OFF", "", "t", "2", " true"]), st.text(max_size=4)))
def test_bool(text):
    known = {"true": True, "yes": True, "1": True, "on": True, "false": False, "no": False, "0": False, "off": False}
    ascii_lower = text.lower() if text.isascii() else text
    assert one(text, "bool") == (known.get(ascii_lower), ascii_lower not in known and text != "")


DATES = [
    ("2024-02-29", date(2024, 2, 29)), ("2/29/2024", date(2024, 2, 29)), ("2024/2/9", date(2024, 2, 9)), ("02-29-2024", date(2024, 2, 29)),
    ("2024-2-9", date(2024, 2, 9)), ("2023-02-29", None), ("0000-01-01", None), ("24-01-01", None), (" 2024-01-01", None),
    ("2024-01-01T00:00:00", None), ("20240101", None), ("12024-01-01", None), ("2024-13-01", None), ("13/13/2024", None), ("9999-12-31", date(9999, 12, 31)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), DATES)
def test_date(text, value):
    assert one(text, "date") == (value, value is None)


TIMES = [
    ("2024-02-29T01:02:03", datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC)), ("2024-02-29 1:2:3", datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC)),
    ("2/29/2024 23:59:59", datetime(2024, 2, 29, 23, 59, 59, tzinfo=UTC)), ("02/29/2024 07:05", datetime(2024, 2, 29, 7, 5, tzinfo=UTC)),
    ("2024-02-29", None), ("2024-02-29T24:00:00", None), ("2024-02-29T01:02:03.5", datetime(2024, 2, 29, 1, 2, 3, 500_000, tzinfo=UTC)),
    ("2024-2-9 1:2:3.123456789", datetime(2024, 2, 9, 1, 2, 3, 123_456, tzinfo=UTC)),
    ("2024-02-29T01:02:03.", None), ("2024-02-29T01:02", None),
    ("2024-02-29  01:02:03", None), ("0000-01-01 00:00:00", None), ("2024-02-29T01:02+01", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), TIMES)
def test_date_time(text, value):
    assert one(text, "date_time") == (value, value is None)


ZONED = [
    ("2024-03-15T23:30:00-05:00", datetime(2024, 3, 16, 4, 30, tzinfo=UTC)), ("2024-03-15 10:00:00+02:00", datetime(2024, 3, 15, 8, tzinfo=UTC)),
    ("2024-3-5t1:2:3.1234567z", datetime(2024, 3, 5, 1, 2, 3, 123_456, tzinfo=UTC)), ("2024-03-01T00:15:00+05:45", datetime(2024, 2, 29, 18, 30, tzinfo=UTC)),
    ("2024-03-15T10:00:00-00:00", datetime(2024, 3, 15, 10, tzinfo=UTC)), ("0001-01-01T00:01:00+00:01", datetime(1, 1, 1, tzinfo=UTC)),
    *((text, None) for text in ("0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "2024-03-15T10:00:00+0200", "2024-03-15T10:00:00+02", "2024-03-15T10:00:00 Z",
      "2024-03-15T10:00:00UTC", "2024-03-15T10:00:00+24:00", "2024-03-15T10:00:00+01:60", "2024-03-15T10:00:60Z", "2024-03-15Z", "2024-03-15T10:00Z", "2024-03-15T10:00:00ZZ",
      "2024-03-15T10:00:00Z\n", "3/15/2024 10:00:00Z", "2024-03-15T10:00:00+02:00[Europe/Berlin]", "2024-02-30T10:00:00Z", "2024-03-15t10:00:00")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), ZONED)
@pytest.mark.parametrize("others", [[], ["2024-01-01T00:00:00+01:00"], ["2024-01-01T00:00:00", "1/1/2024 10:00"]], ids=["alone", "zoned", "mixed"])
def test_a_time_with_an_offset_is_in_utc(text, value, others):
    assert coerce(pa.array([text, *others]), "date_time").values[0].as_py() == value
    assert one(text, "date_time") == (value, value is None)


@given(st.lists(st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=st.timezones() | st.just(UTC)), min_size=1))
def test_times_of_all_zones_read_back(moments):
    texts = [moment.isoformat() for moment in moments]
    known = [text for text in texts if len(text.rpartition("+" if "+" in text else "-")[2]) == 5]  # a few zones of long ago have seconds
    found = coerce(pa.array(known, pa.string()), "date_time")
    assert found.values.to_pylist() == [moment.astimezone(UTC) for moment, text in zip(moments, texts, strict=True) if text in known]


def test_formats_of_the_pipeline_come_before_offsets():
    assert one("2024-03-15 10:00:00 +02:00", "date_time", ["%Y-%m-%d %H:%M:%S %z"]) == (datetime(2024, 3, 15, 8, tzinfo=UTC), False)
    assert one("2024-03-15T10:00:00Z", "date_time", ["%d.%m.%Y %H:%M"]) == (datetime(2024, 3, 15, 10, tzinfo=UTC), False)
    assert one("2024-03-15T10:00:00Z", "date") == (None, True)


@given(day=st.dates())
def test_every_real_date_reads_back(day):
    assert one(day.isoformat(), "date") == (day, False)


def test_a_bad_cell_leaves_the_others_alone():
    result = coerce(pa.array(["2024-01-05", "", "5/1/2024", "x", None]), "date")
    assert result.values.to_pylist() == [date(2024, 1, 5), None, date(2024, 5, 1), None, None]
    assert result.failed.to_pylist() == [False, False, False, True, False]


def test_the_pipelines_formats_come_first():
    assert one("05/01/2024", "date", ["%d/%m/%Y"]) == (date(2024, 1, 5), False)
    assert one("01/31/2024", "date", ["%d/%m/%Y"]) == (date(2024, 1, 31), False)
    assert one("5 Jan 2024", "date_time", ["%d %b %Y"]) == (datetime(2024, 1, 5, tzinfo=UTC), False)
    assert one("2024.01.05 10h", "date_time", ["%Y.%m.%d %Hh%M", "%d.%m.%y"]) == (None, True)
    assert one("2024.01.05 10h15", "date", ["%Y.%m.%d %Hh%M"]) == (date(2024, 1, 5), False)


@pytest.mark.parametrize("declared", ["int", "float", "numeric", "bool", "date", "date_time", "nullable(int)"])
def test_an_empty_cell_is_null(declared):
    assert one("", declared) == (None, False)


def test_text_stays_and_dynamic_text_is_json():
    assert one("", "string") == ("", False)
    assert one(" 01 ", "nullable(string)") == (" 01 ", False)
    assert one('a"b', "any") == ('"a\\"b"', False)
    assert one(None, "any") == (None, False)


def test_digits_beyond_the_largest_float_are_none():
    values, failed = coerce(pa.array(["1e400", "-1e400", "1" + "0" * 309, "1.8e308", "1.7e308", "inf", "-Infinity", "1e-400", None]), "float")
    assert values.to_pylist() == [None, None, None, None, 1.7e308, float("inf"), float("-inf"), 0.0, None]
    assert failed.to_pylist() == [True] * 4 + [False] * 5


@given(text=NUMERIC_TEXT)
@examples(500)
def test_numeric_is_an_int_or_else_a_float(text):
    whole, (real, _) = expected_int(text), one(text, "float")
    number = whole if whole is not None else real
    held = number is not None and math.isfinite(number)
    value, failed = one(text, "numeric")
    assert failed == (not held and text != "")
    assert (value is not None) == held
    assert not held or repr(json.loads(value)) == repr(number)


def test_types():
    assert base_type("nullable(nullable(int))") == "int"
    assert is_dynamic("nullable(any)")
    assert not is_dynamic("string")


@pytest.mark.parametrize(
    ("text", "declared", "value", "failed"),
    [
        ('[1, "a"]', "array", '[1,"a"]', False), ('{"k": 1}', "map", '{"k":1}', False), ("", "array", None, False), ("", "map", None, False),
        ("text", "array", None, True), ('{"k": 1}', "array", None, True), ("[1]", "map", None, True), ("[1", "nullable(array)", None, True),
    ],
)  # fmt: skip
def test_arrays_and_maps_are_json_of_that_kind(text, declared, value, failed):
    """No column ever holds a value of another type."""
    assert one(text, declared) == (value, failed)
