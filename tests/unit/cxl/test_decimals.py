"""Decimals: random programs against Python's fractions, the tables of the document, edges and hostile input."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxl import CxlErrors, CxlFailure, Schema, compile_program
from cxl.compiler import compile_for, findings_of
from cxl.functions.aggregate import mean, total, weighted_mean
from cxl.runtime.cases import interpret_cases
from cxl.runtime.context import eval_context
from cxl.typed.target import Target
from cxl.types.types import parse_type, type_name
from cxl.values import decimals
from cxl.values.dynamic import canonical, dumps, loads, plain, read_json
from tests.support.cxl_agreement import answers, case, disagreements
from tests.support.examples import examples

MOST = 10**38 - 1


# Random programs against fractions ---------------------------------------------------------------------------------------
class Fails(Exception):
    """The model has no value: an overflow, a division by zero."""


def half_even(value: Fraction, scale: int) -> Fraction:
    """Python's own rounding of fractions is half to even."""
    return Fraction(round(value * 10**scale), 10**scale)


Model = tuple[str, int, Callable[[dict[str, Any]], Fraction | None]]
"""A text, its scale, and its value for a record."""


def checked(scale: int, value: Fraction | None) -> Fraction | None:
    if value is not None and abs(value * 10**scale) > MOST:
        raise Fails
    return value


def leaf(name: str, scale: int) -> Model:
    return name, scale, lambda record: None if record[name] is None else Fraction(record[name])


def literal(units: int, scale: int) -> Model:
    value = Fraction(units, 10**scale)
    return f"{decimals.of_units(units, scale):f}d", scale, lambda record: value


def operation(op: str, left: Model, right: Model) -> Model:
    (text, s, one), (other_text, t, other) = left, right
    scale = {"*": s + t, "/": max(12, s, t)}.get(op, max(s, t))

    def value(record: dict[str, Any]) -> Fraction | None:
        a, b = one(record), other(record)
        if a is None or b is None:
            return None
        if op in "/%" and not b:
            raise Fails
        results: dict[str, Callable[[], Fraction]] = {
            "+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: half_even(a / b, scale), "%": lambda: a - b * int(a / b),
        }  # fmt: skip
        return checked(scale, results[op]())

    return f"({text} {op} {other_text})", scale, value


def negated(part: Model) -> Model:
    text, scale, one = part
    return f"(-{text})", scale, lambda record: None if (found := one(record)) is None else -found


def rounded(places: int, part: Model) -> Model:
    text, _, one = part

    def value(record: dict[str, Any]) -> Fraction | None:
        found = one(record)
        return None if found is None else checked(places, half_even(found, places))

    return f"{text}.round({places})", places, value


def chosen(left: Model, right: Model) -> Model:
    (text, s, one), (other_text, t, other) = left, right
    scale = max(s, t)

    def value(record: dict[str, Any]) -> Fraction | None:
        a, b = one(record), other(record)
        return checked(scale, a if a is not None and b is not None and a < b else b)

    return f"(if {text} < {other_text} then {text} else {other_text})", scale, value


def grown(inner: st.SearchStrategy[Model]) -> st.SearchStrategy[Model]:
    return st.one_of(
        st.builds(operation, st.sampled_from("+-*/%"), inner, inner), st.builds(negated, inner), st.builds(rounded, st.integers(0, 6), inner),
        st.builds(chosen, inner, inner),
    )  # fmt: skip


SCALES = {"a": 2, "b": 4, "c": 0, "e": 12}
leaves = st.one_of(*(st.just(leaf(name, scale)) for name, scale in SCALES.items()), st.builds(literal, st.integers(0, 10**6), st.integers(0, 5)))
models = st.recursive(leaves, grown, max_leaves=5).filter(lambda model: model[1] <= 38)
amounts = st.one_of(st.integers(-200, 200), st.integers(-(10**9), 10**9), st.integers(-MOST, MOST), st.sampled_from([0, MOST, -MOST, 5, 15, 25]))
records = st.fixed_dictionaries({name: st.none() | amounts.map(lambda units, scale=scale: decimals.of_units(units, scale)) for name, scale in SCALES.items()})


def expected(model: Model, record: dict[str, Any]) -> str | None:
    """The digits that the model gives; `fails` where it has none."""
    _, scale, value = model
    try:
        found = value(record)
    except Fails:
        return "fails"
    if found is None:
        return None
    units = found * 10**scale
    assert units.denominator == 1
    digits = str(abs(units.numerator)).rjust(scale + 1, "0")
    return f"{'-' if units < 0 else ''}{digits[: len(digits) - scale]}{'.' if scale else ''}{digits[len(digits) - scale :]}"


@examples(40)
@given(st.lists(st.tuples(models, st.lists(records, min_size=2, max_size=4)), min_size=8, max_size=8))
def test_random_programs_give_the_digits_of_exact_fractions(drawn: list[tuple[Model, list[dict[str, Any]]]]) -> None:
    schema = {name: f"decimal(38,{scale})" for name, scale in SCALES.items()}
    known = [(model, rows) for model, rows in drawn if not findings_of(f"emit x = {model[0]}", Target(schema=Schema.of(schema)))]
    cases = [case(f"emit x = {model[0]}", schema, rows) for model, rows in known]
    found = disagreements(cases)
    assert not found, "\n".join(map(str, found[:4]))
    for model, rows in known:
        for record, answer in zip(rows, answers_of(model[0], schema, rows), strict=True):
            assert answer == expected(model, record), (model[0], record)


def answers_of(text: str, schema: dict[str, str], rows: list[dict[str, Any]]) -> list[str | None]:
    """The interpreter's results for an expression: digits, null, or `fails`."""
    (found,) = interpret_cases([case(f"emit x = {text}", schema, rows)], eval_context())
    return ["fails" if isinstance(one, CxlFailure) else None if one[0]["x"] is None else f"{one[0]['x']:f}" for one in found]


# The document's tables -----------------------------------------------------------------------------------------------------
PROGRAMS = {
    "0.1d + 0.2d": "0.3", "19.99d * 3": "59.97", "19.99d * 0.21d": "4.1979", "1.005d + 2": "3.005", "10.00d / 3": "3.333333333333", "2d / 3": "0.666666666667",
    "1d / 8192": "0.000122070312", "3d / 8192": "0.000366210938", "-7.5d % 2": "-1.5", "7.50d % 0.7d": "0.50", "7 / 2d": "3.500000000000",
    "99999999999999999999999999999999999999d + 1": "overflow", "2.5d.round()": "2", "3.5d.round()": "4", "(-2.5d).round()": "-2", "2.345d.round_to(2)": "2.34",
    "2.355d.round_to(2)": "2.36", "2.5d.round_to(2)": "2.50", "1250d.round(-2)": "1200", "1350d.round(-2)": "1400", "2.1d.ceil()": "3", "(-2.1d).floor()": "-3",
    '"2.560".to_decimal(2)': "2.56", '"2.567".to_decimal(2)': "conver", '"1.5e3".to_decimal(2)': "1500.00", '"1.5e-3".to_decimal(4)': "0.0015",
    "0.1.to_decimal(2)": "0.10", "2.675.to_decimal(2)": "2.68", "0.125.to_decimal(2)": "0.12", "(-12.99d).to_int()": "-12", "-0.00d": "0.00", "1d / 0": "division by zero",
    "1d % 0d": "zero", "(null ?? 1.50d) * 2": "3.00", "{p: 2.50d}.p.type_of()": "Decimal", "[2.50d, 1][0] * 2": "5.00", "[2.50d] == [2.5d]": "true", "[2.0d] == [2]": "true",
    "{p: 2.50d}.p == 2.5d": "true", "{p: 2.50d}.p + 0.5": "Float", "{p: 2.55d}.p.round_to(1)": "2.6", "{p: 2.45d}.p.floor()": "2", "{p: 2.50d}.p.abs().type_of()": "Decimal",
    "[0.5d, 2d].map(it => it.round())": '["0","2"]', '[1.50d, 2d, null].join("/")': "1.50/2/", "[1.50d].length() * 2.5d": "2.5", "{p: 2.5d}.p * 2": "5.0",
    "-({p: 2.50d}.p)": "-2.50", "{p: 2.50d}.p.max(1.5)": "Float", "{p: 2.50d}.p.max(3)": "3.00", "{p: 1.005d}.p.to_decimal(3)": "1.005", "{p: 1d}.catch(2)": '{"p":"1"}',
}  # fmt: skip


FAILURES = {"overflow", "conver", "division by zero", "zero", "Float"}


def shown(answer: Any) -> str:
    """A value as `cxl eval` prints it; the message of a failure."""
    if isinstance(answer, CxlFailure):
        return answer.message
    value = answer[0]["x"]
    return value if isinstance(value, str) else plain(dumps(value) or "null", quoted=isinstance(value, list | dict))


def test_programs_of_the_document_and_their_kin() -> None:
    cases = [case(f"emit x = {text}", {}, [{}]) for text in PROGRAMS]
    assert not (found := disagreements(cases)), "\n".join(map(str, found))
    got = [shown(answer) for (answer,) in interpret_cases(cases, eval_context())]
    wrong = {text: one for (text, want), one in zip(PROGRAMS.items(), got, strict=True) if one != want and not (want in FAILURES and want in one)}
    assert not wrong


REFUSED = [
    ("emit x = p + 0.5", "CXL-T012", 12, "write 0.5d"), ("emit x = p < -0.5", "CXL-T012", 12, "write -0.5d"), ("emit x = p * 1.10", "CXL-T012", 12, "write 1.10d"), ("emit x = p ?? f", "CXL-T012", 12, ".to_decimal(scale)"),
    ("emit x = if true then p else f", "CXL-T012", 30, ".to_float()"), ("emit x = p.clamp(0, 1.5)", "CXL-T012", 21, "1.5d"), ("emit x = f.max(p)", "CXL-T012", 16, ".to_float()"),
    ("emit x = match f { 1d => 1, _ => 2 }", "CXL-T012", 20, ".to_float()"), ("emit x = match true { p > 1 => p, _ => 0.5 }", "CXL-T012", 40, "0.5d"), ("emit x = p.catch(1.5)", "CXL-T012", 18, "1.5d"),
    ("emit x = p + s", "CXL-T004", 12, ".to_decimal(scale)"), ("emit x = p.upper()", "CXL-T002", 12, ".to_string()"), ("emit x = s.left(p)", "CXL-T005", 17, ".to_int()"),
    ("emit x = s.to_decimal()", "CXL-T013", 12, "to_decimal(2)"), ("emit x = f.try_decimal()", "CXL-T013", 12, "try_decimal(2)"), ("emit x = n.to_decimal(39)", "CXL-T013", 23, "0 to 38"),
    ("emit x = n.to_decimal(-1)", "CXL-T013", 23, "0 to 38"), ("emit x = s.to_decimal(n)", "CXL-T013", 23, "0 to 38"), ("emit x = v.to_decimal()", "CXL-T013", 12, "to_decimal(2)"),
    ('emit x = n.to_decimal("2")', "CXL-T013", 23, "0 to 38"), ("emit x = n.try_decimal(2.0)", "CXL-T013", 24, "0 to 38"), ("emit x = n.to_decimal(2d)", "CXL-T013", 23, "0 to 38"),
    ("emit x = q * q", "CXL-T016", 12, "round"), ("emit x = 1_0d", "CXL-P004", 10, "the one suffix is d"), ("emit x = 1.5D", "CXL-P004", 10, "1.50d"), ("emit x = 1e3d", "CXL-P004", 10, "1.50d"),
    (f"emit x = {'9' * 39}d", "CXL-P005", 10, "38 digits"), (f"emit x = 0.{'0' * 38}1d", "CXL-P005", 10, "38 digits"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "column", "help"), REFUSED)
def test_what_is_refused_says_where_and_what_to_do(text: str, code: str, column: int, help: str) -> None:
    schema = Schema.of({"p": "decimal(38,2)", "q": "decimal(38,20)", "f": "float", "n": "int", "s": "string", "v": "any"})
    with pytest.raises(CxlErrors) as caught:
        compile_program(text, schema)
    (found,) = caught.value.diagnostics
    assert (found.code, found.position.column) == (code, column)
    assert help in f"{found.message} {found.help}"


# What a value of any type holds ---------------------------------------------------------------------------------------------
def test_a_value_from_a_source_keeps_its_types_and_one_of_decimals_has_none() -> None:
    schema = Schema.of({"v": "any", "m": "map", "p": "decimal(38,2)"})
    text = 'emit a = v.round(1)\nemit b = v.floor()\nemit c = v * 2\nemit d = (v * p).round(1)\nemit e = m.set("k", p).k.floor()\nemit f = -m.set("k", p).k'
    output = compile_program(text, schema).output
    assert {name: str(type_.base) for name, type_ in output.items()} == {"a": "Float", "b": "Int", "c": "Numeric", "d": "Any", "e": "Any", "f": "Any"}


@pytest.mark.parametrize("value", [Decimal("2.50"), Decimal(5), Decimal("-0.001"), Decimal("0.00"), Decimal(MOST), {"E0": [Decimal("1.0"), 1.0, 1, "1E0", '"1.5E0']}, [1e22, -1e-7, float("inf")]])
def test_the_stored_text_tells_decimals_from_floats(value: Any) -> None:
    text = dumps(value)
    assert text is not None
    assert repr(loads(text)) == repr(value)
    assert dumps(loads(text)) == text
    assert not any(isinstance(one, Decimal) for one in _leaves(read_json(text)))


def _leaves(value: Any) -> list[Any]:
    parts = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else None
    return [value] if parts is None else [leaf for part in parts for leaf in _leaves(part)]


def test_equal_values_share_a_canonical_text() -> None:
    assert {canonical([Decimal(text)]) for text in ("2", "2.0", "2.000")} | {canonical([2])} == {"[2]"}
    assert {canonical(Decimal(text)) for text in ("2.5", "2.50")} == {"2.5E0"}
    assert canonical(2.5) == "2.5"
    found = answers("emit x = 1\nlet k = [p, v]\ndistinct by k", {"p": "decimal(38,2)", "v": "any"}, [{"p": Decimal("2.50"), "v": one} for one in (2.5, 2.5, "x")])
    assert found == [[{"x": 1}], [], [{"x": 1}]]


# Aggregates -----------------------------------------------------------------------------------------------------------------
def of(*texts: str) -> list[Any]:
    return [None if text == "null" else int(text) if text.isdigit() else Decimal(text) for text in texts]


def test_sums_and_means_are_exact() -> None:
    assert str(total(of("0.10", "0.205", "null", "3"))) == "3.305"
    assert str(mean(of("1.10", "2.25"))) == "1.675000000000"
    assert f"{mean([Decimal('0.0000000000005'), Decimal('0.0000000000005')]):f}" == "0.0000000000005"
    assert str(weighted_mean(of("1.10", "2.25"), of("3", "1"))) == "1.387500000000"
    assert weighted_mean(of("1.10"), of("0")) is None
    assert str(total([Decimal(MOST), Decimal(1), Decimal(-1)])) == str(MOST)
    for failing in (lambda: total([Decimal(MOST), Decimal(1)]), lambda: total([Decimal(1), 0.5])):
        with pytest.raises(CxlFailure) as caught:
            failing()
        assert caught.value.category == "aggregate_finalize"


AGGREGATES = {
    "sum(p)": "Nullable(decimal(38,2))", "avg(p)": "Nullable(decimal(38,12))", "avg(q)": "Nullable(decimal(38,20))", "weighted_avg(p, n)": "Nullable(decimal(38,12))",
    "weighted_avg(n, q)": "Nullable(decimal(38,20))", "min(p)": "Nullable(decimal(38,2))", "first(p)": "Nullable(decimal(38,2))", "any(p)": "Nullable(decimal(38,2))",
    "count(p)": "Int", "collect(p)": "Array", "sum(n)": "Nullable(Int)", "avg(n)": "Nullable(Float)", "sum(v)": "Nullable(Numeric)", "avg(v)": "Nullable(Float)",
}  # fmt: skip


def test_the_types_of_aggregates() -> None:
    schema = Schema.of({"p": "decimal(38,2)", "q": "decimal(38,20)", "n": "int", "v": "any", "f": "float"})
    text = "\n".join(f"emit c{index} = {call}" for index, call in enumerate(AGGREGATES))
    output = compile_for(text, Target(schema=schema, mode="aggregate")).output
    assert dict(zip(AGGREGATES, map(str, output.values()), strict=True)) == AGGREGATES
    assert [one.code for one in findings_of("emit x = weighted_avg(p, f)", Target(schema=schema, mode="aggregate"))] == ["CXL-T012"]


# Hostile input --------------------------------------------------------------------------------------------------------------
HOSTILE = {
    f"1e{'9' * 1000}": None, f"1e-{'9' * 1000}": None, f"0e{'9' * 1000}": "0.00", f"{'0' * 100_000}7": "7.00", f"7{'0' * 100_000}e-100000": "7.00", "9" * 100_000: None,
    f"0.{'0' * 100_000}1e100001": "1.00", f"1.{'0' * 100_000}": "1.00", "١٢": None, "1.5\n": None, "+": None, "e5": None, ".e5": None, "+.5e+01": "5.00", "- 1": None, "1,5": None, "１": None,
}  # fmt: skip


def test_texts_of_any_size_are_judged_by_their_digits() -> None:
    found = answers("emit x = s.try_decimal(2)", {"s": "string"}, [{"s": text} for text in HOSTILE])
    assert [None if one[0]["x"] is None else str(one[0]["x"]) for one in found if not isinstance(one, CxlFailure)] == [*HOSTILE.values()]


@pytest.mark.parametrize(("text", "name"), [("decimal(10,2)", "decimal(38,2)"), ("nullable(decimal( 5 , 0 ))", "nullable(decimal(38,0))"), ("decimal(38,38)", "decimal(38,38)")])
def test_a_schema_names_decimals(text: str, name: str) -> None:
    assert type_name(parse_type(text)) == name


@pytest.mark.parametrize("text", ["decimal", "decimal(10)", "decimal(0,0)", "decimal(39,2)", "decimal(2,3)", "decimal(10,-1)", "decimal(a,b)", "decimal(10,2,1)", "nullable(decimal)"])
def test_a_decimal_without_a_possible_scale_is_no_type(text: str) -> None:
    with pytest.raises(ValueError, match="decimal"):
        parse_type(text)
