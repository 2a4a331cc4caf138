"""Decimal cells: their spellings, the digits of JSON numbers, rounding, and texts; Python's decimal module is the reference."""

from __future__ import annotations

import json
import math
import re
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import formats
from storage.files.errors import InputError
from storage.formats.base import ERROR, UNDECLARED, Column, ReadPlan
from storage.formats.batches import record_batches
from storage.formats.json.change_feeds import ordered
from storage.formats.json.exact_numbers import parsed_exactly
from storage.values.decimals import DecimalType, converted, decimal_text, first_beyond, parsed, plain_digits, rounded, unscaled
from storage.values.json_text import WrittenFloat
from tests.support.examples import examples

WIDE = Context(prec=400)
SPELLED = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
digits = st.text("0123456789", max_size=40)
cells = st.builds(
    lambda sign, whole, point, fraction, power: sign + whole + point + fraction + power,
    st.sampled_from(["", "-", "+"]), digits, st.sampled_from(["", "."]), digits | st.sampled_from(["0", "00", "50"]), st.sampled_from(["", "", "e2", "E-2", "e+37", "e-999999999"]),
)  # fmt: skip
kinds = st.integers(0, 38).flatmap(lambda scale: st.integers(max(scale, 1), 38).map(lambda precision: DecimalType(precision, scale)))


def meant(text: str, kind: DecimalType) -> Decimal | None:
    """The value of a cell by the rules, None where it does not fit."""
    if SPELLED.fullmatch(text) is None:
        return None
    mantissa, _, power = text.lower().partition("e")
    if abs(int(power or "0")) > 1000:
        return Decimal(0).scaleb(-kind.scale, WIDE) if not mantissa.strip("+-.0") else None
    number = Fraction(mantissa) * Fraction(10) ** int(power or "0") * 10**kind.scale
    return Decimal(int(number)).scaleb(-kind.scale, WIDE) if number.denominator == 1 and abs(number) < 10**kind.precision else None


@examples(400, least=60)
@given(texts=st.lists(cells | st.sampled_from(["", ".", "+", "1_0", " 1", "1 ", "1,0", "nan", "inf", "0x1", "\u0663", "1e", "--1"]), min_size=1, max_size=12), kind=kinds)
def test_cells_are_read_by_their_digits(texts: list[str], kind: DecimalType) -> None:
    found = parsed(pa.array(texts), kind)
    assert found.to_pylist() == [meant(text, kind) if text else None for text in texts]
    assert found.type == pa.decimal128(38, kind.scale)
    assert decimal_text(found).to_pylist() == [None if one is None else f"{one:f}" for one in found.to_pylist()]


def test_an_exponent_costs_no_more_than_its_digits() -> None:
    kind = DecimalType(38, 2)
    assert unscaled("1e" + "9" * 60_000, kind) is None
    assert unscaled("0e" + "9" * 60_000, kind) == 0
    assert unscaled("1e-" + "9" * 60_000, kind) is None


units = st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-2000, 2000)


@examples(200, least=40)
@given(numbers=st.lists(units, min_size=1, max_size=8), scale=st.integers(0, 38), wanted=st.integers(0, 38))
def test_outputs_round_half_to_even(numbers: list[int], scale: int, wanted: int) -> None:
    values = [Decimal(number).scaleb(-scale, WIDE) for number in numbers]
    expected = [value.quantize(Decimal(1).scaleb(-wanted, WIDE), ROUND_HALF_EVEN, WIDE) for value in values]
    column = pa.array(values, pa.decimal128(38, scale))
    if any(abs(value.scaleb(wanted, WIDE)) >= 10**38 for value in expected):
        with pytest.raises(OverflowError):
            rounded(column, wanted)
    else:
        assert rounded(column, wanted).to_pylist() == expected


@examples(200, least=40)
@given(numbers=st.lists(units, min_size=1, max_size=8), scale=st.integers(0, 38), kind=kinds)
def test_decimals_are_converted_by_value(numbers: list[int], scale: int, kind: DecimalType) -> None:
    values = [Decimal(number).scaleb(-scale, WIDE) for number in numbers]
    assert converted(pa.array(values, pa.decimal128(38, scale)), kind).to_pylist() == [meant(f"{value:f}", kind) for value in values]


def test_the_first_value_of_too_many_digits_is_told() -> None:
    column = pa.array([Decimal("9.99"), None, Decimal("-10.00"), Decimal("11.00")], pa.decimal128(38, 2))
    assert (first_beyond(column, 3), first_beyond(column, 4), first_beyond(column, 38)) == ("-10.00", None, None)


def test_zero_has_no_sign() -> None:
    assert [plain_digits(Decimal(text)) for text in ("-0.00", "0E+3", "-1E-7", "12.50")] == ["0.00", "0", "-0.0000001", "12.50"]


# JSON ---------------------------------------------------------------------------------------------------------------------
SCHEMA = (Column("price", "decimal(20,2)"), Column("f", "float"), Column("a", "any"))
NUMBERS = ["2.5", "12345678901234567.89", "1e2", "25E-1", "-0", "7", "true", '"3.1"', "null", "2.567", '"x"', "[1]", "99999999999999999999", "0.1000", "1E400"]


def read(text: str, schema: tuple[Column, ...] = SCHEMA, **options: str) -> list[dict[str, object]]:
    reader = formats.reader("json", options, ReadPlan(schema))
    return [row for batch in reader.read(text.encode(), "f") for row in batch.to_pylist()]


PRICES = ["2.50", "12345678901234567.89", "100.00", "2.50", "0.00", "7.00", "1.00", "3.10", None, None, None, None, None, "0.10", None]
"""The values of the column for `NUMBERS`."""


@pytest.mark.parametrize("form", ["ndjson", "array"])
def test_json_numbers_are_read_by_their_digits(form: str) -> None:
    lines = [f'{{"price":{number},"f":1.50,"a":{{"x":2.50}}}}' for number in NUMBERS]
    rows = read("\n".join(lines) + "\n" if form == "ndjson" else f"[{','.join(lines)}]", format=form)
    good = [(None if row["price"] is None else f"{row['price']:f}", row["f"], row["a"]) for row in rows if row[ERROR] is None]
    rejected = [json.loads(str(row[ERROR]))["fields"]["price"] for row in rows if row[ERROR] is not None]
    assert good == [(price, 1.5, '{"x":2.5}') for price, number in zip(PRICES, NUMBERS, strict=True) if price is not None or number == "null"]
    assert rejected == ["2.567", "x", "[1]", "99999999999999999999", "1E400"]


BESIDE = (*SCHEMA, Column("n", "numeric"), Column("l", "array"), Column("m", "map"), Column("s", "string"), Column("i", "int"))
LONG = "9" * 400


@pytest.mark.parametrize(
    ("name", "text"),
    [("f", "1e400"), ("f", f"-{LONG}"), ("n", "-1e400"), ("n", LONG), ("a", "1E400"), ("a", '{"x":[1,-1e400]}'), ("l", "[1e400]"), ("l", f"{'[' * 300}1e400{']' * 300}"), ("m", '{"k":[1e400]}'), ("i", "1e400"), ("price", "-1e999999999999")],
)  # fmt: skip
def test_a_number_that_no_float_holds_rejects_its_record(name: str, text: str) -> None:
    rows = read(f'{{"b":0,"{name}":{text}}}\n{{"price":2,"f":2.5}}\n', BESIDE, format="ndjson")
    error = json.loads(str(rows[0][ERROR]))
    assert (error["category"], error["fields"][name]) == ("type_coercion_failure", text)
    assert (rows[1][ERROR], rows[1]["f"]) == (None, 2.5)


def test_decimal_and_string_columns_have_the_digits_of_a_number_that_no_float_holds() -> None:
    lines = [f'{{"price":1{"0" * 400}E-400,"s":-1.50e400}}', '{"price":1,"s":{"k":[1e400]}}', f'{{"price":1,"s":{LONG}}}', '{"price":1e400,"f":NaN}']
    rows = read("\n".join(lines), BESIDE, format="ndjson")
    assert [(row["price"], row["s"]) for row in rows[:3]] == [(Decimal("1.00"), "-1.50e400"), (Decimal("1.00"), '{"k":[1e400]}'), (Decimal("1.00"), LONG)]
    assert [row[ERROR] for row in rows[:3]] == [None] * 3
    assert json.loads(str(rows[3][ERROR]))["category"] == "malformed_record"


@pytest.mark.parametrize("gathers", [False, True])
def test_an_undeclared_number_that_no_float_holds_rejects_its_record(gathers: bool) -> None:
    plan = ReadPlan((SCHEMA[0],), undeclared=(Column("u", "any"),), on_unmapped="auto_widen")
    records = [{"price": WrittenFloat("1.50"), "u": [WrittenFloat("-1e400")]}, {"price": 2, "u": WrittenFloat("2.50")}]
    rows = [row for batch in record_batches(plan, records, 1, gathers=gathers) for row in batch.to_pylist()]
    error = json.loads(rows[0][ERROR])
    assert (error["category"], error["fields"]) == ("type_coercion_failure", {"price": "1.50", "u": "[-1e400]"})
    assert (rows[1][ERROR], rows[1][UNDECLARED if gathers else "u"]) == (None, '{"u":2.5}' if gathers else "2.5")


def test_a_version_that_no_float_holds_is_none() -> None:
    assert ordered(WrittenFloat("1e400")) is None
    assert ordered(WrittenFloat("2.50")) == ordered(Decimal("2.5"))


@pytest.mark.parametrize("form", ["ndjson", "array"])
@pytest.mark.parametrize("text", ['{"price":1e400,"a":"\\ud800"}', '{"a":"\\ud800","price":1e400}', '{"price":1e400,"\\uDC00":1}', '{"price":1e400,"a":"1\n"}', '{"price":1e400,"f":01e400}', '{"price":1e400,"f":1e400.5}'])
def test_what_is_no_json_is_refused_beside_a_number_that_no_float_holds(text: str, form: str) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        parsed_exactly(text.encode())
    if form == "ndjson" and "\n" not in text:
        [row] = read(text + "\n", format=form)
        assert json.loads(str(row[ERROR]))["category"] == "malformed_record"
    else:
        with pytest.raises(InputError, match="not valid JSON"):
            read(f"[{text}]", format="array")


def test_strings_stay_beside_a_number_that_no_float_holds() -> None:
    assert parsed_exactly(rb'{"n":-1e400,"a\"-1e400":["1e400","\\",-2E400,"\ud83d\ude00"]}') == {"n": -math.inf, 'a"-1e400': ["1e400", "\\", -math.inf, "\U0001f600"]}


@examples(60, least=15)
@given(numbers=st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**17), max_value=10**17) | st.integers(-(10**17), 10**17), min_size=1, max_size=30))
def test_lines_parsed_by_arrow_have_the_same_values(numbers: list[Decimal | int]) -> None:
    text = "".join(f'{{"price":{number},"f":0.5,"a":1}}\n' for number in numbers)
    quick, exact = read(text), read(text + '{"price":1e0,"f":0.5,"a":1}\n')
    assert [row["price"] for row in quick] == [row["price"] for row in exact[:-1]] == [Decimal(number) for number in numbers]


@pytest.mark.parametrize(("kind", "expected"), [("number", '{"p":-0.50,"a":{"x":[2.50,1.5]}}'), ("string", '{"p":"-0.50","a":{"x":["2.50",1.5]}}')])
def test_json_outputs_write_numbers_or_texts(kind: str, expected: str) -> None:
    plan = formats.WritePlan((Column("p", "decimal(38,2)"), Column("a", "any")))
    batch = pa.record_batch([pa.array([Decimal("-0.50")], pa.decimal128(38, 2)), pa.array(['{"x":[2.50E0,1.5]}'])], ["p", "a"])
    writer = formats.writer("json", {"format": "ndjson", "decimals": kind}, plan)
    assert writer.render(batch).decode() == expected + "\n"


def test_pretty_json_keeps_all_digits() -> None:
    plan = formats.WritePlan((Column("p", "decimal(38,2)"), Column("n", "decimal(38,0)")))
    batch = pa.record_batch([pa.array([Decimal("12345678901234567.80")], pa.decimal128(38, 2)), pa.array([Decimal(10**37)], pa.decimal128(38, 0))], ["p", "n"])
    text = formats.writer("json", {"pretty": True}, plan).render(batch).decode()
    assert text == f'\n{{\n  "p": 12345678901234567.80,\n  "n": {10**37}\n}}'


# Fixed width ----------------------------------------------------------------------------------------------------------------
LAYOUT = {"fields": [{"name": "a", "type": "decimal", "start": 0, "width": 8, "pad": "0", "justify": "right", "implied_decimals": 2}]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("00001250", "12.50"), ("-0000005", "-0.05"), ("+0000100", "1.00"), ("00000000", "0.00"), ("   -5   ", "-0.05"), ("        ", None), ("0001.250", "bad"), ("12e2    ", "bad")],
)
def test_implied_decimals_are_read(text: str, expected: str | None) -> None:
    reader = formats.reader("fixed_width", {}, ReadPlan((Column("a", "decimal(8,2)"),), layout=LAYOUT))
    [row] = [row for batch in reader.read((text + "\n").encode(), "f") for row in batch.to_pylist()]
    shown = "bad" if row[ERROR] is not None else None if row["a"] is None else f"{row['a']:f}"
    assert shown == expected


@pytest.mark.parametrize(("value", "expected"), [("12.50", "00001250"), ("-0.05", "-0000005"), (None, " " * 8)])
def test_implied_decimals_are_written(value: str | None, expected: str) -> None:
    plan = formats.WritePlan((Column("a", "decimal(38,2)"),), layout=LAYOUT)
    batch = pa.record_batch([pa.array([None if value is None else Decimal(value)], pa.decimal128(38, 2))], ["a"])
    assert formats.writer("fixed_width", {}, plan).render(batch).decode() == expected + "\n"


@given(st.lists(st.floats() | st.integers(-(10**6), 10**6).map(lambda n: n / 100) | st.none(), max_size=8), kinds)
@examples(100)
def test_floats_are_read_by_their_shortest_digits(values: list[float | None], kind: DecimalType) -> None:
    wanted = [None if value is None else meant(repr(value), kind) for value in values]
    assert converted(pa.array(values, pa.float64()), kind).to_pylist() == wanted
