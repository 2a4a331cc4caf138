"""The interpreter and Spark columns give the same bytes: every builtin on a grid of edge values, operators, random programs."""

from datetime import date, datetime
from decimal import Decimal
from itertools import islice, product
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from cxl.compiler import compile_program, findings_of
from cxl.functions.registry import Builtin, all_builtins
from cxl.runtime.cases import interpret_cases
from cxl.runtime.context import eval_context
from cxl.typed import tree
from cxl.typed.rewrite import membership
from cxl.typed.target import Target
from cxl.types.types import Kind, Schema, Type
from cxl.values.decimals import of_units, units_of
from cxl.values.dynamic import dumps, loads
from cxl.values.failure import CxlFailure
from tests.support.cxl_agreement import answers, case, disagreements
from tests.support.examples import examples

INTS = [0, 1, -1, 2, 7, -7, 12, 400, 10**7, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63), None]
FLOATS = [0.0, -0.0, 0.5, -0.5, 1.0, 2.5, -2.5, 1.005, 2.675, 19.995, 0.1 + 0.2, 1e7, 12345678.9, 1e16, 1e21, 1e-7, 5e-324, 1.7e308,
          0.49999999999999994, 4503599627370497.5, 9.3e18, 2.0**63, -(2.0**63), float("inf"), float("-inf"), float("nan"), None]  # fmt: skip
STRINGS = ["", " ", "abc", "  a b\u3000", "\u001cq\u200b", "straße", "İΑΣ", "a\nb", "é́x", "😀b", "12", "+5", "-7", " 5", "٣", "1e3", "5.", ".5", "1d", "0x10",
           "inf", "-Infinity", "NaN", "1e400", "9223372036854775808", "00012", "true", "YES", "No", "on", "2024-03-15", "2024-3-5", "2024-02-30", "0000-01-01",
           "10000-01-01", "2024-03-1T", "2024-03-15 ", "2024-03-15T10:20:30", "2024-03-15T10:20:30.123456789", "2024-03-15T10:20:60", "2024-03-15T24:00:00",
           "1969-12-31T23:59:59.5", "0001-01-01T00:00:00", "2024-03-15T23:30:00-05:00", "2024-03-15t10:20:30.1234567z", "2024-03-15t10:20:30", "2024-02-30T10:00:00Z",
           "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "2024-03-15T10:00:00+0200", "2024-03-15T10:00:00 Z", "2024-03-15T10:00:00+24:00", "2024-03-15T24:00:00Z", "15/03/2024", "5/3/24", "/data/a/sales.csv", "a/b/", "./a", "a/..", ".bashrc", "archive.tar.gz", "foo.",
           "/", "a//b/c.txt", "a,b,,c", "order-12345", "x\r\n", "a.b|c$", None]  # fmt: skip
DATES = [date(1, 1, 1), date(1582, 10, 10), date(1969, 12, 31), date(1970, 1, 1), date(2020, 2, 29), date(2021, 1, 3), date(2024, 1, 31), date(2024, 12, 30), date(9999, 12, 31), None]
DATE_TIMES = [datetime(1, 1, 1), datetime(1900, 1, 1, 1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 1, 31, 10, 20, 30, 500000),
              datetime(2024, 2, 29), datetime(2024, 9, 1, 12, 0, 0, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), None]  # fmt: skip
BOOLS = [True, False, None]
DECIMALS = [Decimal(text) for text in ("0.00", "0.01", "-0.01", "0.50", "-0.50", "1.00", "1.50", "2.50", "-2.50", "3.50", "12.34", "-7.49", "999.99", "1000000.00",
            "9007199254740993.01", "92233720368547758.07", "-92233720368547758.08", "9223372036854775807.99", "9223372036854775808.00", "12345678901234567.89",
            f"{'9' * 35}.99", f"-{'9' * 35}.99", f"{'9' * 36}.99", f"-{'9' * 36}.99", f"1{'0' * 35}.00")] + [None]  # fmt: skip
WHOLE_DECIMALS = [None if one is None else Decimal(int(one)) for one in DECIMALS] + [Decimal(10**38 - 1), Decimal(1 - 10**38), Decimal(2**63), Decimal(5 * 10**37)]
FINE_DECIMALS = [Decimal(units).scaleb(-20) for units in (0, 1, -1, 5 * 10**19, -5 * 10**19, 25 * 10**19, 5, 15, 10**20, 123456789012345678)] + [
    Decimal("99999999999999999.99999999999999999999"), Decimal("-99999999999999999.99999999999999999999"), None]  # fmt: skip
ARRAYS = [[], [1, 2, 3], ["a", None, 2.5, True], [[1], {"k": "v"}, None], None]
MAPS = [{}, {"a": 1, "b": {"c": [1, 2]}}, {"é": None, "": "x"}, None]
VALUES: dict[str, list[Any]] = {
    "int": INTS, "float": FLOATS, "string": STRINGS, "date": DATES, "date_time": DATE_TIMES, "bool": BOOLS, "array": ARRAYS, "map": MAPS,
    "decimal(38,2)": DECIMALS,
}  # fmt: skip
NAMES = {Kind.INT: "int", Kind.FLOAT: "float", Kind.STRING: "string", Kind.DATE: "date", Kind.DATE_TIME: "date_time", Kind.BOOL: "bool", Kind.ARRAY: "array", Kind.MAP: "map",
         Kind.DECIMAL: "decimal(38,2)"}  # fmt: skip
SMALL: dict[str, list[Any]] = {
    "int": [0, 1, 2, 5, -3, 2**40, None], "float": [0.0, -1.5, 2.5, float("nan"), None], "string": ["", "a", "2", "b ", ".", "é", None],
    "date": [date(2024, 2, 29), date(1, 1, 1), None], "date_time": [datetime(2024, 2, 29, 12), datetime(9999, 12, 31), None],
    "bool": BOOLS, "array": ARRAYS[1:3], "map": MAPS[1:3],
    "decimal(38,2)": [Decimal("0.00"), Decimal("-1.50"), Decimal("2.50"), Decimal(f"{'9' * 36}.99"), None],
}  # fmt: skip
LITERALS = {
    "int": ["0", "2", "-3", "20", "9223372036854775807"], "float": ["0.5", "-1.25"], "string": ['""', '"a"', '"é."', '"%d/%m/%Y"'], "bool": ["true"],
    "date": ["#2024-02-29#"], "date_time": [], "array": [], "map": [], "decimal(38,2)": ["0d", "2.500d", "-1.25d"],
}  # fmt: skip
PATTERNS = ['"[a-z]+"', '"^\\\\s*$"', '"(a)(x)?"', '"[0-9]{2}"', '"a.b"', '"(?i)STRASSE|é"', '"\\\\d+"', '"[^\\\\w]"', '"x*"', '"(a|b)+c?"', '"\\\\ba"', '"([^,]*),?"', '"$"']
FORMATS = ['"%d/%m/%Y"', '"%Y-%m-%dT%H:%M:%S"', '"%-d.%_m.%y %j %U %W %u %w %q %C"', '"%A %a %B %b %e %h %F %D %v"', '"%G-W%V-%g"', '"%I:%M %p %P %l %k %s"',
           '"%H%M%S%.3f%.f%f%6f"', '"%c|%r|%R|%T%%%n"', '"%d-%b-%Y"', '"plain"', '"%Q"']  # fmt: skip


def kinds(accepted: Type | tuple[Type, ...] | None) -> list[str]:
    """The schema types that a receiver or parameter takes."""
    types = accepted if isinstance(accepted, tuple) else (accepted,)
    found: list[str] = []
    for type_ in types:
        if type_ is None or type_.kind is Kind.ANY:
            found.extend(VALUES)
        else:
            found.extend(["int", "float"] if type_.kind is Kind.NUMERIC else [NAMES[type_.kind]])
    return list(dict.fromkeys(found))


def literal_arguments(entry: Builtin) -> list[str]:
    """Some argument lists of literals, with every number of arguments that is allowed."""
    def one(index: int) -> list[str]:
        param = entry.param(index)
        if param.regex:
            return PATTERNS
        if param.name == "format":
            return FORMATS
        return [text for kind in kinds(param.accepts) for text in LITERALS[kind]]

    lists = []
    for count in range(entry.required, len(entry.params) + 1):
        lists.extend(", ".join(args) for args in islice(product(*(one(index) for index in range(count))), 60))
    return lists


def field_programs(entry: Builtin, receiver: str) -> list[tuple[str, dict[str, str]]]:
    """Calls whose arguments are fields."""
    if any(param.regex or param.closure for param in entry.params) or not entry.params:
        return []
    choices = [kinds(entry.param(index).accepts) for index in range(max(entry.required, 1))]
    return [
        (f"emit x = r.{entry.name}({', '.join(f'a{i}' for i in range(len(types)))})", {"r": receiver, **{f"a{i}": t for i, t in enumerate(types)}})
        for types in islice(product(*choices), 9)
    ]  # fmt: skip


def grid(schema: dict[str, str]) -> list[dict[str, Any]]:
    """Records over the edge values: all of the receiver, the small ones of arguments; of very many some hundred."""
    values = [VALUES[type_] if name == "r" else SMALL[type_] for name, type_ in schema.items()]
    records = [dict(zip(schema, row, strict=True)) for row in product(*values)]
    return records if len(records) <= 400 else Random(len(records)).sample(records, 400)


def is_refused(text: str, schema: dict[str, str]) -> bool:
    """Whether a Decimal meets a Float, or has no scale."""
    return bool({one.code for one in findings_of(text, Target(schema=Schema.of(schema)))} & {"CXL-T012", "CXL-T013", "CXL-T016"})


METHODS = sorted({entry.name for entry in all_builtins() if entry.kind == "method" and not any(param.closure for param in entry.params)})


@pytest.mark.parametrize("name", METHODS)
def test_a_builtin_gives_the_same_on_every_edge_value(name: str) -> None:
    cases = []
    for entry in (one for one in all_builtins() if one.kind == "method" and one.name == name and not any(p.closure for p in one.params)):
        for receiver in kinds(entry.receiver):
            programs = [(f"emit x = r.{name}({arguments})", {"r": receiver}) for arguments in literal_arguments(entry)]
            programs += field_programs(entry, receiver)
            cases.extend(case(text, schema, grid(schema)) for text, schema in programs if not is_refused(text, schema))
    found = disagreements(cases)
    assert not found, "\n".join(map(str, found[:6]))


OPERATORS = ["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">="]


@pytest.mark.parametrize("left", ["int", "float"])
@pytest.mark.parametrize("right", ["int", "float"])
def test_numeric_operators_give_the_same(left: str, right: str) -> None:
    schema = {"l": left, "r": right}
    records = [{"l": a, "r": b} for a, b in product(VALUES[left], VALUES[right])]
    found = disagreements([case(f"emit x = l {op} r", schema, records) for op in OPERATORS])
    assert not found, "\n".join(map(str, found[:6]))


FOUR_DIGITS = [None if one is None else of_units(units_of(one, 2) % 10**38, 4) for one in DECIMALS]
EXACT = {"decimal(38,2)": DECIMALS, "decimal(38,0)": WHOLE_DECIMALS, "decimal(38,20)": FINE_DECIMALS, "int": INTS}


PAIRS = [("decimal(38,2)", "decimal(38,2)"), ("decimal(38,0)", "decimal(38,2)"), ("decimal(38,20)", "decimal(38,0)"), ("decimal(38,20)", "decimal(38,20)"), ("int", "decimal(38,2)"), ("decimal(38,2)", "int")]


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_operators_of_decimals_give_the_same(left: str, right: str) -> None:
    schema = {"l": left, "r": right}
    records = [{"l": a, "r": b} for a, b in product(EXACT[left], EXACT[right])]
    programs = [f"emit x = l {op} r" for op in OPERATORS]
    programs += ["emit x = l.min(r)", "emit x = l.max(r)", "emit x = l ?? r", "emit x = l.catch(r)", "emit x = if l < r then l else r", "emit x = match l { r => 1, 2.5d => 2, _ => 3 }"]
    found = disagreements([case(text, schema, records) for text in programs if not is_refused(text, schema)])
    assert not found, "\n".join(map(str, found[:6]))


LITERALS_OF_DECIMALS = ["0.1d + {}", "{} - 0.001d", "{} * 3", "1.21d * {}", "-2.5d * {}", "{} / 3", "{} / 7.5d", "1 / {}", "{} % 0.7d", "-{}", "{} == 2.50d", "{} > 2", "{} ?? 0", "{} * 0.2d + 0.005d"]


@pytest.mark.parametrize("type_", [type_ for type_ in EXACT if type_ != "int"])
def test_decimals_and_literals_give_the_same(type_: str) -> None:
    rounded = [f"x.round({places})" for places in (*range(-2, 4), 19, 20, 21, 38, 39, "null", "n")] + ["x.round_to(2)", "x.round()"]
    converted = [f"x.{prefix}_decimal({scale})" for prefix, scale in product(("to", "try"), (0, 1, 20, 38, ""))]
    programs = [f"emit y = {text}" for text in (*(one.format("x") for one in LITERALS_OF_DECIMALS), *rounded, *converted)]
    programs += [f"let m = {places}\nemit y = x.round(m)\nemit z = y * 1d" for places in (1, 3, 38)] + ["fn r(a, m) = a.round_to(m)\nemit y = r(x, 1)\nemit z = -y"]
    records = [{"x": value, "n": places} for value, places in product(EXACT[type_], (0, 2, -2, 40, None))]
    schema = {"x": type_, "n": "int"}
    found = disagreements([case(text, schema, records) for text in programs if not is_refused(text, schema)])
    assert not found, "\n".join(map(str, found[:6]))


COMPUTED = [*(f"r.try_{kind}()" for kind in ("int", "float", "bool", "date", "datetime")), *(f"r.try_decimal({scale})" for scale in (0, 2, 12, 20, 38)), "r.to_string()", "r.round()", "r.round(1)", "r.floor()",
            "r.abs()", "-r", "r * 2", "r + 1", "r / 2", "r % 2", "r - r", "(-r).min(1)", "(-r).clamp(-1, 1)", "r.length()", "r.year()", "r.add_days(1)", "r.trim()", "r ?? 0d"]  # fmt: skip
CONSTANTS = ["0", "5", "-7", "0.0", "2.5", '""', '"2024-03-15"', "#2024-02-29#", "0d", "2.50d", "-0.005d", "true"]


@pytest.mark.parametrize("type_", [*(type_ for type_ in VALUES if type_ not in ("array", "map")), "decimal(38,0)", "decimal(38,20)"])
def test_what_is_computed_compares_with_constants_alike(type_: str) -> None:
    """An engine that takes a cast away from one side of a comparison must see what the cast does."""
    values = [*{**VALUES, **EXACT}[type_], *([Decimal("5.50"), Decimal("-7.01")] if type_ == "decimal(38,2)" else [])]
    pairs = [(one, sign, other) for computed in COMPUTED for constant in CONSTANTS for sign in ("==", "<") for one, other in ((computed, constant), (constant, computed))]
    texts = [f"{one} {sign} {other}" for one, sign, other in pairs if not findings_of(f"emit x = {one} {sign} {other}", Target(schema=Schema.of({"r": type_})))]
    programs = ["\n".join(f"emit x{at} = {text}" for at, text in enumerate(texts[start : start + 40])) for start in range(0, len(texts), 40)]
    found = disagreements([case(text, {"r": type_}, [{"r": value} for value in values]) for text in programs])
    assert not found, "\n".join(map(str, found[:3]))


@pytest.mark.parametrize("expression", ["k.try_int() == 5", "k.to_int() == 5", "5 == k.try_int()", "not (k.to_int() != 5)"])
def test_a_decimal_without_its_fraction_is_compared_as_such(expression: str) -> None:
    assert answers(f"emit x = {expression}", {"k": "decimal(38,2)"}, [{"k": Decimal("5.50")}, {"k": Decimal("-5.50")}]) == [[{"x": True}], [{"x": False}]]


@pytest.mark.parametrize("type_", ["string", "date", "date_time", "bool"])
def test_comparisons_give_the_same(type_: str) -> None:
    records = [{"l": a, "r": b} for a, b in product([*VALUES[type_][:12], None], repeat=2)]
    programs = [f"emit x = l {op} r" for op in OPERATORS[5:]] + (["emit x = l + r"] if type_ == "string" else [])
    programs += ["emit x = l and r", "emit x = l or r", "emit x = not l"] if type_ == "bool" else []
    programs += ["emit x = l ?? r", "emit x = match l { r => 1, _ => 2 }", "emit x = if l == r then l else r"]
    found = disagreements([case(text, {"l": type_, "r": type_}, records) for text in programs])
    assert not found, "\n".join(map(str, found[:6]))


BOUNDS = [("v.clamp(0, 5)", 2.5, 2.5), ("v.clamp(0, 5)", 7.25, 5.0), ("v.max(5)", 7.25, 7.25), ("7.min(v)", 2.5, 2.5), ("v.min(v)", 2, 2), ("v.max(0) * 2", 1.5, 3.0)]


@pytest.mark.parametrize("type_", ["any", "numeric", "map"])
@pytest.mark.parametrize(("expression", "value", "expected"), BOUNDS)
def test_a_bound_of_a_number_of_any_type_cuts_nothing_off(expression: str, value: float, expected: float, type_: str) -> None:
    record = {"v": {"k": value} if type_ == "map" else value}
    text = f"emit x = {expression}".replace("v", 'v["k"]' if type_ == "map" else "v")
    assert answers(text, {"v": type_}, [record]) == [[{"x": expected}]]


def test_a_great_int_and_a_float_of_a_numeric_field_are_compared_as_floats() -> None:
    assert answers("emit x = v.max(w)", {"v": "int", "w": "numeric"}, [{"v": 2**63 - 1, "w": 7.25}]) == [[{"x": 2.0**63}]]


def test_concat_shows_what_is_no_text() -> None:
    record = {"m": {"n": 1, "none": None}, "xs": [1, None, "b", 2.0], "v": True}
    text = 'emit one = "a".concat(m["n"])\nemit all = "a".concat(m.none, xs[0], 2.5.to_string(), v)\nemit each_one = xs.map(it => "n".concat(it))'
    assert answers(text, {"m": "map", "xs": "array", "v": "any"}, [record]) == [[{"one": "a1", "all": "a12.5true", "each_one": ["n1", "n", "nb", "n2"]}]]
    assert answers('emit x = v.concat("b")', {"v": "any"}, [{"v": 1}, {"v": "a"}]) == [[{"x": None}], [{"x": "ab"}]]


@pytest.mark.parametrize("statement", ["let y =", "emit y ="])
def test_dates_in_dynamic_values_are_dates_in_later_statements(statement: str) -> None:
    text = f"{statement} xs.map(it => it.to_date())\nlet z = y\nemit a = z[0].year()\nemit b = y.filter(it => it.year() > 2000).length()\nemit c = z"
    shown = {"a": 2024, "b": 1, "c": ["2024-02-29", "1999-12-31"]}
    (found,) = answers(text, {"xs": "array"}, [{"xs": ["2024-02-29", "1999-12-31"]}])
    assert not isinstance(found, CxlFailure)
    assert [loads(dumps({name: value for name, value in record.items() if name != "y"})) for record in found] == [shown]


UNSHIELDED = [
    "o + s.to_int()", "s.to_int() - o", "o == s.to_int()", "(o < s.to_int()) ?? true", "if s.to_int() == o then 1 else 2", "match o { s.to_int() => 1, _ => 2 }", "(1 / n) * o + 3",
    "(7.5 / n.to_float()).to_string()", "(7.5 / n.to_float()).to_string().length() ?? 0", "t.replace(s.to_int().to_string(), t)", 's.to_float().format("")', "t + (1.5 / n.to_float()).to_string()",
]  # fmt: skip


@pytest.mark.parametrize("expression", UNSHIELDED)
def test_a_part_that_fails_is_not_hidden_by_a_null_beside_it(expression: str) -> None:
    """`and`, `or`, `??`, `if` and `match` evaluate only what they need."""
    schema = {"o": "int", "s": "string", "n": "int", "t": "string"}
    (failed, other) = answers(f"emit x = {expression}", schema, [{"o": None, "s": "abc", "n": 0, "t": None}, {"o": None, "s": "12", "n": 1, "t": None}])
    assert isinstance(failed, CxlFailure)
    assert not isinstance(other, CxlFailure)


@pytest.mark.parametrize("chain", [" + ".join(f"c{at}" for at in range(80)), " + ".join(f"c{at} / c{at + 1}" for at in range(0, 80, 2))])
def test_a_chain_of_many_fields_fails_wherever_a_part_does(chain: str) -> None:
    names = [f"c{at}" for at in range(80)]
    rows: list[dict[str, int | None]] = [dict.fromkeys(names, 1), dict.fromkeys(names, 1) | {"c79": None}, dict.fromkeys(names, 1) | {"c40": 2**63 - 1, "c41": 0, "c42": 2, "c79": None}]
    whole, null, failed = answers(f"emit x = {chain}", dict.fromkeys(names, "int"), rows)
    assert (whole, null) == ([{"x": 80 if "/" not in chain else 40}], [{"x": None}])
    assert isinstance(failed, CxlFailure)


LAZY = [
    ('if b then "z" else s.right(1).capture("[a-z]")', "xa", "a", "z"), ('(if b then s + "x" else s.right(1)).capture("a|x")', "-xa", "a", "x"),
    ('(if b then null else s.right(10).to_date("%d/%m/%Y"))', "on 05/03/2024", date(2024, 3, 5), None), ('s.right(n).capture("b.*")', "a😀bé", "bé", None),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "text", "expected", "other"), LAZY)
def test_the_end_of_a_text_can_be_read_further_where_no_record_needs_it(expression: str, text: str, expected: Any, other: Any) -> None:
    schema = {"b": "bool", "s": "string", "n": "int"}
    records = [{"b": False, "s": text, "n": 2}, {"b": True, "s": text, "n": 1}, {"b": True, "s": "", "n": 9}, {"b": None, "s": None, "n": None}]
    found = answers(f"emit x = {expression}", schema, records)
    assert (found[0], found[1], found[3]) == ([{"x": expected}], [{"x": other}], [{"x": None}])


PADDED = [
    ('to_date("%e %b %Y")', [" 5 Mar 2024", "5 Mar 2024", "15 Mar 2024"], [date(2024, 3, 5), date(2024, 3, 5), date(2024, 3, 15)]),
    ('try_date("%d %b %Y")', [" 5 Mar 2024", "5 Mar 2024"], [None, date(2024, 3, 5)]),
    ('try_date("%b%e, %Y")', ["Mar 5, 2024", "Mar15, 2024"], [date(2024, 3, 5), date(2024, 3, 15)]),
    ('to_date("%Y-%_m-%e")', ["2024- 3- 5", "2024-12-15"], [date(2024, 3, 5), date(2024, 12, 15)]),
    ('to_datetime("%v %k:%M")', [" 5-Mar-2024  4:05", "15-Mar-2024 14:05"], [datetime(2024, 3, 5, 4, 5), datetime(2024, 3, 15, 14, 5)]),
]  # fmt: skip


@pytest.mark.parametrize(("call", "texts", "expected"), PADDED)
def test_what_format_date_pads_with_blanks_is_read_again(call: str, texts: list[str], expected: list[Any]) -> None:
    assert answers(f"emit x = s.{call}", {"s": "string"}, [{"s": text} for text in texts]) == [[{"x": value}] for value in expected]


@pytest.mark.parametrize("format_", ["%e %b %Y", "%e|%m|%y", "%a %b %e %Y", "%v", "%_d.%_m.%Y", "%Y %_j"])
def test_a_date_is_read_as_it_was_written(format_: str) -> None:
    days = [date(2024, 1, 5), date(2024, 2, 29), date(2024, 12, 31)]
    assert answers(f'emit x = d.format_date("{format_}").to_date("{format_}")', {"d": "date"}, [{"d": day} for day in days]) == [[{"x": day}] for day in days]


@pytest.mark.parametrize("format_", ["%Y-%m-%d", "%F"])
@pytest.mark.parametrize("read", ["to_date", "try_date"])
def test_an_iso_date_is_written_and_read_without_a_text(format_: str, read: str) -> None:
    days = [date(1, 1, 1), date(999, 12, 31), date(1969, 12, 31), date(2024, 2, 29), date(9999, 12, 31)]
    moments = [datetime(day.year, day.month, day.day, 23, 59, 59, 999_999) for day in days]
    text = f'emit x = d.format_date("{format_}")\nemit y = d.format_date("{format_}").{read}()'
    for kind, values in (("date", days), ("date_time", moments)):
        found = answers(text, {"d": kind}, [{"d": value} for value in (*values, None)])
        assert found == [*([{"x": day.isoformat(), "y": day}] for day in days), [{"x": None, "y": None}]]


MEMBERS = {"int": ["1, -7, 400, 9223372036854775807", "0", "2, -1.5", "2, null"], "string": ['"", "abc", "straße", "é́x"', '"12", 12'], "date": ["#2020-02-29#, #1970-01-01#"],
           "float": ["0.5, 1.0"], "bool": ["true, true"], "decimal(38,2)": ["0.50d, 1d"]}  # fmt: skip


@pytest.mark.parametrize("type_", MEMBERS)
def test_a_value_among_constants_is_the_same(type_: str) -> None:
    """Also where the value fails: it is computed once, and fails as for the first constant."""
    schema, values = {"r": type_}, ["r", "if r.is_null() then null else r"]
    values += ["r.to_int()"] if type_ == "string" else ["r * 3"] if type_ == "int" else []
    elements = [*MEMBERS[type_], *(["1, 12, 400"] if type_ == "string" else [])]
    bodies = [f"{left} {op} {right}" for op in ("==", "!=", "<", ">=") for value in values for left, right in (("it", value), (value, "it"))]
    programs = [f"emit x = [{some}].any(it => {body})" for some in elements for body in bodies]
    found = disagreements([case(text, schema, grid(schema)) for text in programs if not is_refused(text, schema)])
    assert not found, "\n".join(map(str, found[:6]))


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("[1, -2].any(it => it == i)", "(1,-2) == i"),
        ('["a"].any(it => s != it)', "(a) != s"),
        ("[1, 2].any(it => it == s)", ""),
        ("[1, 2.5].any(it => it == i)", ""),
        ("[1, null].any(it => it == i)", ""),
        ("[1, i].any(it => it == i)", ""),
        ("[1, 2].any(it => it == it)", ""),
        ("[1, 2].any(it => it + i == i)", ""),
        ("[1, 2].any(it => it == i or i == 3)", ""),
        ("[1, 2].find(it => it == i)", ""),
        ("a.any(it => it == i)", ""),
    ],
)
def test_a_value_among_constants_is_known(text: str, known: str) -> None:
    """Engines compute it themselves."""
    program = compile_program(f"emit x = {text}", Schema.of({"i": "int", "s": "string", "a": "array"}))
    [call] = [node for node in program.nodes() if isinstance(node, tree.Call)]
    found = membership(call)
    assert known == ("" if found is None else f"({','.join(map(str, found.constants))}) {found.comparison.op} {getattr(found.value, 'name', None)}")


DECISIONS = ["filter {}\nemit x = 1", "emit x = if {} then 1 else 2", "emit x = match {{ {} => 1, _ => 2 }}", 'trace if {} then "t"\nemit x = 1', "emit x = v.any(it => {})"]


@pytest.mark.parametrize("condition", ["a", "v[0]", "o.k", "null"])
def test_what_decides_may_be_of_any_type(condition: str) -> None:
    schema = {"a": "any", "v": "array", "o": "map"}
    records = [{"a": value, "v": [value], "o": {"k": value}} for value in (True, False, None, 1, "true", [True])]
    found = disagreements([case(text.format(condition), schema, records) for text in DECISIONS])
    assert not found, "\n".join(map(str, found[:6]))


@pytest.mark.parametrize(("type_", "values"), [("float", [0.0, -0.0, 1.0]), ("any", [1, 1.0, "1", True, None, "null", [1], [1]]), ("array", [[1], [1], [1.0], None]), ("map", [{"a": 1}, {"a": 1}])])
def test_distinct_has_the_same_keys(type_: str, values: list[Any]) -> None:
    found = disagreements([case(text, {"x": type_}, [{"x": one} for one in values]) for text in ("distinct by x\nemit y = x", "emit y = x\ndistinct")])
    assert not found, "\n".join(map(str, found[:6]))


BLOCKS = [
    ("emit each x in xs { emit v = x }\nemit each y in ys { emit w = y }", [{"v": 1}, {"v": 2}, {"w": 3}]),
    ("emit a = 0\nemit each x in xs { emit v = x }\nemit a = 1\nemit b = 2\nemit each y in ys { emit w = y }", [{"a": 0, "v": 1}, {"a": 0, "v": 2}, {"a": 1, "b": 2, "w": 3}]),
    ("emit each x in xs { emit each y in ys { emit w = y }\nemit v = x\nemit each z in ys { } }", [{"w": 3}, {"v": 1}, {"w": 3}, {"v": 2}]),
    ("emit each x in xs { }\nemit each y in ys { emit w = y }", [{}, {}, {"w": 3}]),
    ("emit each x in xs { emit v = 1d }\nemit each y in ys { emit v = 2.50d }", [{"v": Decimal("1.00")}, {"v": Decimal("1.00")}, {"v": Decimal("2.50")}]),
    ("emit each x in xs { emit v = 1 }\nemit each y in ys { emit v = 2.5 }", [{"v": 1.0}, {"v": 1.0}, {"v": 2.5}]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), BLOCKS)
def test_a_record_has_the_fields_of_its_own_block(text: str, expected: list[dict[str, int]]) -> None:
    assert answers(text, {"xs": "array", "ys": "array"}, [{"xs": [1, 2], "ys": [3]}, {"xs": None, "ys": []}]) == [expected, []]


NESTED = [
    "emit x = [i, s, d, m, null, [v], {a: o}]", "emit x = {i: i, [s]: d, z: {m: m}}", "emit x = [e for e in v]", "emit x = [i / e for e in v if e > 0]",
    "emit x = [{k: e, d: d} for e in v if e != null] emit y = x[0].d == d", "let a = [d, m] emit x = a emit y = a[0].year() emit z = [e for e in a].length()",
    "emit x = [[e, v.length()] for e in v] emit y = x", 'let k = s emit x = [k + e for e in s.split("")]', "emit each e in [i, {k: s}] { emit x = e emit y = [e] }",
    "emit x = {a: [i, j]}.a[0] emit y = {}[s]", "distinct by v emit x = [v]", "filter [i] == [j] emit x = 1", "emit x = [1 / i, s.to_int()]", "emit x = {[s]: 1, a: 2}.unset(s)",
]  # fmt: skip


@pytest.mark.parametrize("text", NESTED)
def test_arrays_and_maps_are_the_same(text: str) -> None:
    rows = zip(
        [1, 0, None, 7], [1, 1, None, 0], ["a", "", None, "2 b"], [date(2024, 2, 29), None, date(1, 1, 1), date(2024, 1, 1)], [datetime(2024, 2, 29, 12), None, None, datetime(1, 1, 1)],
        [[1, 2.5], None, [], [0, "x", None]], [{}, None, {"a": [1]}, {"b": None}], strict=True,
    )  # fmt: skip
    schema = {name: SCHEMA[name] for name in "ijsdmvo"}
    found = disagreements([case(text, schema, [dict(zip(schema, row, strict=True)) for row in rows])])
    assert not found, "\n".join(map(str, found[:6]))


@given(st.lists(st.none() | st.integers(-3, 3)), st.integers(-3, 3))
def test_a_comprehension_maps_what_a_filter_keeps(values: list[int | None], least: int) -> None:
    text = "emit x = [e * 2 for e in v if e > n] emit y = v.filter(it => it > n).map(it => it * 2)"
    kept = [value * 2 for value in values if value is not None and value > least]
    assert interpret_cases([case(text, {"v": "array", "n": "int"}, [{"v": values, "n": least}])], eval_context()) == [[[{"x": kept, "y": kept}]]]


# Random programs --------------------------------------------------------------------------------------------------------
SCHEMA = {"i": "int", "j": "int", "x": "float", "y": "float", "s": "string", "t": "string", "p": "bool", "q": "bool", "d": "date", "m": "date_time", "v": "array", "o": "map",
          "k": "decimal(38,2)", "l": "decimal(38,4)"}  # fmt: skip


def binary(left: st.SearchStrategy[str], ops: list[str], right: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(left, st.sampled_from(ops), right).map(lambda parts: f"({parts[0]} {parts[1]} {parts[2]})")


def call(receiver: st.SearchStrategy[str], names: list[str], *args: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(receiver, st.sampled_from(names), *args).map(lambda parts: f"({parts[0]}).{parts[1]}({', '.join(parts[2:])})")


def choice(condition: st.SearchStrategy[str], branch: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    whole = st.tuples(condition, branch, branch)
    return st.one_of(
        whole.map(lambda parts: f"(if {parts[0]} then {parts[1]} else {parts[2]})"),
        whole.map(lambda parts: f"(match {{ {parts[0]} => {parts[1]}, _ => {parts[2]} }})"),
        st.tuples(branch, branch).map(lambda parts: f"({parts[0]} ?? {parts[1]})"),
    )


KINDS = ["int", "float", "decimal", "string", "bool", "date", "moment"]
ints, floats, exact, strings, bools, dates, moments = (st.deferred(lambda kind=kind: EXPRESSIONS[kind]) for kind in KINDS)
small = st.sampled_from(["0", "1", "2", "5", "(-3)", "i"])
EXPRESSIONS: dict[str, st.SearchStrategy[str]] = {
    "int": st.one_of(
        st.sampled_from(["i", "j", "0", "3", "1000000"]), binary(ints, ["+", "-", "*", "/", "%"], ints), call(strings, ["length"]), call(floats, ["floor", "ceil"]),
        call(ints, ["abs"]), call(ints, ["min", "max"], ints), call(st.one_of(strings, exact), ["to_int", "try_int"]), call(dates, ["year", "month", "day"]),
        call(dates, ["diff_days", "diff_months", "diff_years"], st.one_of(dates, moments)), call(moments, ["hour", "minute", "second"]), choice(bools, ints),
        st.sampled_from(["v.length()", "o.keys().length()", "s.to_int()", "(i * i)", "[e for e in v if e != i].length()", "{a: i, [t]: j}.keys().length()"]),
        st.tuples(ints, strings).map(lambda parts: f"[{parts[0]}, {parts[1]}, d].length()"), ints.map(lambda one: f"(-{one})"),
    ),
    "float": st.one_of(
        st.sampled_from(["x", "y", "0.5", "100.0", "s.to_float()", "(x / y)"]), binary(floats, ["+", "-", "*", "/"], st.one_of(floats, ints)), call(floats, ["round", "round_to"], st.sampled_from(["0", "2"])),
        call(floats, ["abs"]), call(floats, ["min", "max"], st.one_of(floats, ints)), call(ints, ["to_float"]), call(st.one_of(strings, exact), ["try_float"]), choice(bools, floats),
    ),
    "decimal": st.one_of(
        st.sampled_from(["k", "l", "0d", "1.25d", "-0.005d", "s.to_decimal(2)", "s.try_decimal(1)", "x.try_decimal(3)", "(k / l)", "v.find(it => it == k).try_decimal(2)"]),
        binary(exact, ["+", "-", "*", "/", "%"], st.one_of(exact, ints)), binary(ints, ["+", "*", "/"], exact), call(exact, ["round", "round_to"], st.sampled_from(["0", "2", "-1", "i"])),
        call(exact, ["abs", "ceil", "floor"]), call(exact, ["min", "max", "catch"], st.one_of(exact, ints)), call(ints, ["to_decimal", "try_decimal"], st.sampled_from(["0", "2", "25"])),
        call(exact, ["to_decimal", "try_decimal"], st.sampled_from(["", "0", "6"])), choice(bools, st.one_of(exact, ints)), exact.map(lambda one: f"(-{one})"),
    ),
    "string": st.one_of(
        st.sampled_from(["s", "t", '"a"', '" b-"']), binary(strings, ["+"], strings), call(strings, ["upper", "lower", "trim", "reverse"]), call(strings, ["left", "right"], small),
        call(strings, ["substring"], small, small), call(strings, ["pad_left", "pad_right"], small), call(st.one_of(ints, floats, exact), ["to_string"]),
        call(strings, ["replace"], st.just('"a"'), strings), call(st.one_of(dates, moments), ["format_date"], st.just('"%Y/%m/%d %a"')), choice(bools, strings),
        strings.map(lambda one: f"{{k: [{one}]}}.k[0].to_string()"), ints.map(lambda one: f'[e.to_string() + t for e in [{one}, s, d]].join("|")'),
        st.sampled_from(['s.split(",").join("-")', "v[0].to_string()", "o.a.to_string()", "s.replace(t, s.to_int().to_string())"]),
    ),
    "bool": st.one_of(
        st.sampled_from(["p", "q", "true", "s.to_bool()"]), binary(ints, OPERATORS[5:], ints), binary(floats, OPERATORS[5:], st.one_of(floats, ints)), binary(exact, OPERATORS[5:], st.one_of(exact, ints)), binary(strings, OPERATORS[5:], strings),
        binary(dates, OPERATORS[5:], dates), binary(bools, ["and", "or"], bools), bools.map(lambda one: f"(not {one})"), call(st.one_of(ints, strings, dates, exact), ["is_null", "is_empty"]),
        call(strings, ["contains", "starts_with", "ends_with"], strings), choice(bools, bools), st.just("v.any(it => it == i)"),
    ),
    "date": st.one_of(st.sampled_from(["d", "#2024-02-29#", "s.to_date()"]), call(dates, ["add_days", "add_months", "add_years"], ints), call(strings, ["try_date"]), choice(bools, dates)),
    "moment": st.one_of(st.just("m"), call(moments, ["add_days", "add_months"], small), choice(bools, moments)),
}  # fmt: skip

statements = st.one_of(
    st.tuples(st.sampled_from(KINDS), st.sampled_from(["let", "emit"])).flatmap(
        lambda pick: st.tuples(st.just(pick[1]), st.sampled_from(["e", "f", "g"]), EXPRESSIONS[pick[0]])
    ),
    bools.map(lambda condition: ("filter", "", condition)),
)


def text_of(parts: list[tuple[str, str, str]]) -> str:
    return "\n".join(f"filter {expr}" if kind == "filter" else f"{kind} {name} = {expr}" for kind, name, expr in parts)


EDGES = {name: st.sampled_from({**VALUES, "decimal(38,4)": FOUR_DIGITS}[type_]) for name, type_ in SCHEMA.items()}


@examples(134, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.lists(statements, min_size=1, max_size=5), st.lists(st.fixed_dictionaries(EDGES), min_size=3, max_size=5)), min_size=15, max_size=15))
def test_random_programs_give_the_same(drawn: list[tuple[list[tuple[str, str, str]], list[dict[str, Any]]]]) -> None:
    programs = [(text_of(parts), records) for parts, records in drawn]
    found = disagreements([case(text, SCHEMA, records) for text, records in programs if not is_refused(text, SCHEMA)])
    assert not found, "\n".join(map(str, found[:4]))
