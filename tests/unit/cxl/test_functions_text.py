"""Values as text and as JSON: numbers, dates, dynamic values."""

import json
from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxl.values.dynamic import dumps, loads
from cxl.values.text import date_time_text, display, float_text, type_of

FLOATS = """
1.0                     1
-250.0                  -250
0.1                     0.1
-0.0                    -0
1e21                    1000000000000000000000
1e-7                    0.0000001
12345678.9              12345678.9
1.2345678901234568e17   123456789012345680
"""


@pytest.mark.parametrize("line", FLOATS.strip().splitlines())
def test_float_text(line: str) -> None:
    value, text = line.split()
    assert float_text(float(value)) == text


def test_the_least_float_has_all_its_zeros() -> None:
    assert float_text(5e-324) == f"0.{'0' * 323}5"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_float_text_reads_back_without_an_exponent(value: float) -> None:
    text = float_text(value)
    assert float(text) == value
    assert "e" not in text
    assert not text.endswith(".0")
    digits = text.lstrip("-").replace(".", "").strip("0")
    assert len(digits) <= len(repr(value).lstrip("-").split("e")[0].replace(".", "").strip("0"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""), (True, "true"), (7, "7"), (float("nan"), "NaN"), (float("-inf"), "-inf"), (date(24, 1, 5), "0024-01-05"),
        (datetime(2024, 1, 5, 10, 20, 30), "2024-01-05T10:20:30"), ([1, None, 2.0, True], "[1, , 2, true]"), ({"a": 1, "b": "x"}, "{a: 1, b: x}"),
    ],
)  # fmt: skip
def test_display(value: object, text: str) -> None:
    assert display(value) == text


@pytest.mark.parametrize(("micros", "text"), [(0, "2024-01-05T10:20:30"), (500_000, "2024-01-05T10:20:30.5"), (1, "2024-01-05T10:20:30.000001")])
def test_a_fraction_is_as_short_as_it_can_be(micros: int, text: str) -> None:
    assert date_time_text(datetime(2024, 1, 5, 10, 20, 30, micros)) == text


NAMES = [(None, "Null"), (True, "Bool"), (1, "Int"), (1.0, "Float"), ("", "String"), (date(2024, 1, 1), "Date"), (datetime(2024, 1, 1), "DateTime"), ([], "Array"), ({}, "Map")]


@pytest.mark.parametrize(("value", "name"), NAMES)
def test_type_of(value: object, name: str) -> None:
    assert type_of(value) == name


# Dynamic values ---------------------------------------------------------------------------------------------------------
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text())
VALUES = st.recursive(LEAVES, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=4)), max_leaves=12)


def same(left: object, right: object) -> bool:
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return isinstance(right, dict) and list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    return type(left) is type(right) and repr(left) == repr(right)


@given(VALUES)
def test_a_dynamic_value_reads_back_with_types_and_order(value: object) -> None:
    assert same(loads(dumps(value)), value)


@given(VALUES.filter(lambda value: value is not None))
def test_a_dynamic_value_has_one_spelling(value: object) -> None:
    text = dumps(value)
    assert dumps(loads(text)) == text
    assert json.loads(text) is not Ellipsis


def test_spellings() -> None:
    assert dumps({"b": 1, "a": [1.0, None, True, "é\n"], "d": date(2024, 1, 5)}) == '{"b":1,"a":[1.0,null,true,"é\\n"],"d":"2024-01-05"}'
    assert dumps(float("inf")) == "1e999"
    assert dumps([float("nan")]) == "[null]"
    assert dumps(None) is None
    assert loads("12345678901234567890") == pytest.approx(12345678901234567890.0)


@pytest.mark.parametrize("text", ["{", "NaN", "[1,]", ""])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        loads(text)
