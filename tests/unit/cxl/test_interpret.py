"""The interpreter, statement by statement: values, what is evaluated at all, failures, fan-out, metadata."""

from __future__ import annotations

import json
import math
from datetime import date, datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxl import CxlFailure, Schema, SystemTypes, compile_program
from cxl.runtime.context import Context, eval_context
from cxl.runtime.interpret import Runner, evaluate, run
from cxl.typed.modules import Modules
from cxl.types.types import INT, STRING

FIELDS = Schema.of(
    {
        "i": "int",
        "j": "int",
        "f": "float",
        "s": "string",
        "b": "bool",
        "xs": "array",
        "m": "map",
        "v": "any",
        "w": "any",
        "d": "date",
        "q": "bool",
    }
)
RECORD = {
    "i": 7,
    "j": None,
    "f": 2.5,
    "s": "ab",
    "b": True,
    "xs": [1, 2, 3],
    "m": {"k": {"n": [5]}},
    "v": "text",
    "w": 4,
    "d": date(2024, 1, 31),
    "q": None,
}

# expression | its value as JSON, or the words of its failure
VALUES = r"""
7 / 2                                  | 3
-7 / 2                                 | -3
-7 % 3                                 | -1
7 % -3                                 | 1
-7.5 % 2                               | -1.5
2 + 3.5                                | 5.5
1 / 0                                  | ! division by zero
1.0 / 0                                | ! division by zero
1 % 0                                  | ! zero
j / 0                                  | null
9223372036854775807 + 1                | ! overflow
-9223372036854775807 - 2               | ! overflow
4611686018427387904 * 2                | ! overflow
-(-9223372036854775807 - 1)            | ! overflow
(-9223372036854775807 - 1) / -1        | ! overflow
9223372036854775807 + 1.0              | 9.223372036854775807e18
"a" + "b"                              | "ab"
"a" + null                             | null
null == null                           | null
j != 1                                 | null
1 == 1.0                               | true
"10" < "9"                             | true
not q                                  | null
false and q                            | false
q and false                            | false
q and true                             | null
true or q                              | true
q or true                              | true
q or false                             | null
false and 1 / 0 == 1                   | false
true or 1 / 0 == 1                     | true
i ?? 1 / 0                             | 7
j ?? 1 / 0                             | ! division by zero
1 / 0 ?? 3                             | ! division by zero
if b then 1 else 1 / 0                 | 1
if q then 1 else 2                     | 2
if i > 9 then 1                        | null
if b then 1 else 2.5                   | 1.0
match i { 7 => "a", 1 / 0 => "b", _ => "c" } | "a"
match j { 1 => "a", _ => "c" }         | "c"
match j { null => "n", _ => "c" }      | "n"
match { j == 1 => "a", i > 1 => "b", _ => 1 / 0 } | "b"
xs[1]                                  | 2
xs[3]                                  | null
xs[-1]                                 | null
m.k.n[0]                               | 5
m["k"]["n"]                            | [5]
m.nope.deep                            | null
v.k                                    | null
v + w                                  | null
v == w                                 | false
v < w                                  | false
w + 1                                  | 5
w * 0.5                                | 2.0
v + "!"                                | "text!"
v and true                             | null
v.upper()                              | "TEXT"
w.upper()                              | null
w.abs()                                | 4
v.length()                             | 4
xs.filter(it => it > 1)                | [2, 3]
xs.map(it => it * i)                   | [7, 14, 21]
xs.map(it => xs.filter(it => it > 1).length() + it) | [3, 4, 5]
xs.any(it => it == j)                  | false
xs.map(it => 6 / (it - 1))             | ! division by zero
null.upper()                           | null
s.left(null)                           | null
j.catch(3)                             | 3
s.to_int()                             | ! convert
s.try_int()                            | null
d                                      | "2024-01-31"
xs == xs                               | true
null.trim().upper().length()           | null
[1, 2.5, null, "t", true, [i], {a: j}] | [1, 2.5, null, "t", true, [7], {"a": null}]
[d] == [d]                             | true
[d][0] == d                            | true
[x * i for x in xs if x > 1]           | [14, 21]
[x for x in xs if q]                   | []
[x.z for x in xs]                      | [null, null, null]
[i for i in [i, i]]                    | [7, 7]
[[r * c for c in xs] for r in [1, i]]  | [[1, 2, 3], [7, 14, 21]]
[xs.map(it => it + x) for x in xs if x < 2] | [[2, 3, 4]]
xs.map(it => [it for it in [it, 0]])   | [[1, 0], [2, 0], [3, 0]]
[x for x in m.nope]                    | null
[x for x in null]                      | null
[x for x in v]                         | ! array
[x for x in w]                         | ! array
[1 / (x - 2) for x in xs]              | ! division by zero
{z: 1, "a.b": 2, [s]: 3}               | {"z": 1, "a.b": 2, "ab": 3}
{a: {b: i}}.a.b                        | 7
{}["a"]                                | null
{[m.nope]: 1}                          | ! key
{[w]: 1}                               | ! key
{ab: 1, [s]: 2}                        | ! duplicate key 'ab'
match ({a: 1}) { {a: 2} => 1, {a: 1} => 2, _ => 3 } | 2
[[s.repeat(4000000)], s.repeat(4000000)] | ! large
["a".repeat(10485700)].length()        | 1
["\n".repeat(5242880)]                 | ! large
{a: m.set("a\.b", 1)}.a["a.b"]         | 1
m.unset("k.n[0]")                      | {"k": {"n": []}}
m.unset("k.n[0].z")                    | {"k": {"n": [5]}}
m.unset("k\.n")                        | {"k": {"n": [5]}}
m.set("k\\\\.n", 1).keys()                  | ["k", "k\\"]
m.set("a\\b\\", 1).keys()              | ["k", "a\\b\\"]
"""


@pytest.mark.parametrize("line", VALUES.strip().splitlines())
def test_values(line):
    written, _, expected = line.rpartition("|")
    program = compile_program(written.strip(), FIELDS, mode="expression")
    if expected.strip().startswith("!"):
        with pytest.raises(CxlFailure, match=expected.strip(" !")):
            evaluate(program, RECORD, Context())
        return
    value = evaluate(program, RECORD, Context())
    wanted = json.loads(expected)
    shown = value.isoformat() if isinstance(value, date) else value
    assert (shown, type(shown)) == (wanted, type(wanted))


INTS = st.integers(-(2**63), 2**63 - 1)


def outcome(op, left, right):
    """The result of an Int operation, by exact arithmetic."""
    if op in "/%" and right == 0:
        return "zero"
    quotient = math.trunc(Fraction(left, right)) if right else 0
    value = {"+": left + right, "-": left - right, "*": left * right, "/": quotient, "%": left - quotient * right}[op]
    return value if -(2**63) <= value < 2**63 else "overflow"


@given(INTS, INTS | st.integers(-3, 3), st.sampled_from("+-*/%"))
def test_integer_arithmetic_is_exact_or_fails(left, right, op):
    program = compile_program(f"a {op} b", Schema.of({"a": "int", "b": "int"}), mode="expression")
    try:
        found = evaluate(program, {"a": left, "b": right}, Context())
    except CxlFailure as failure:
        found = "zero" if "zero" in failure.message else "overflow" if "overflow" in failure.message else failure.message
    assert found == outcome(op, left, right)


KLEENE = {True: 1.0, None: 0.5, False: 0.0}


@given(*[st.sampled_from([True, False, None])] * 2)
def test_three_valued_logic(left, right):
    schema, record = Schema.of({"a": "bool", "b": "bool"}), {"a": left, "b": right}
    results = [evaluate(compile_program(text, schema, mode="expression"), record, Context()) for text in ("a and b", "a or b", "not a")]
    weights = [min(KLEENE[left], KLEENE[right]), max(KLEENE[left], KLEENE[right]), 1 - KLEENE[left]]
    assert [KLEENE[one] for one in results] == weights


# Statements -------------------------------------------------------------------------------------------------------------

# program ("/" is a line break) | the records that the record above becomes
PROGRAMS = """
emit i = i * 2 / emit j = i * 2                       | [{"i": 14, "j": 28}]
let x = i let x = x + 1 emit r = x                    | [{"r": 8}]
emit x = 1 / emit y = 2 / emit x = 3                  | [{"x": 3, "y": 2}]
filter i > 7 / emit r = 1 / j                         | []
filter j > 1 / emit r = 1                             | []
                                                      | [{}]
emit each x in xs { emit y = x + i }                  | [{"y": 8}, {"y": 9}, {"y": 10}]
emit a = 1 / emit each x in xs { filter true }        | ! filter
emit each x in v { emit y = x }                       | ! array
emit a = 1 / emit each x in m.nope { emit y = x }     | []
emit a = 1 / emit each x in m.nope outer { emit y = x } | [{"a": 1, "y": null}]
emit each x in xs { let i = i + x / emit y = i }      | [{"y": 8}, {"y": 9}, {"y": 10}]
emit each x in xs { emit each y in xs { emit p = x * y } / emit late = 1 } | [{"p": 1}, {"p": 2}, {"p": 3}, {"p": 2}, {"p": 4}, {"p": 6}, {"p": 3}, {"p": 6}, {"p": 9}]
emit each it in xs { emit each it in xs { filter 1 > it } } | ! filter
trace info if i > 100 then 1 / 0 / emit a = 1         | [{"a": 1}]
fn twice(x) = x * 2 / emit a = twice(i) + twice(f)    | [{"a": 19.0}]
emit meta q = i + 1 / emit a = $meta.q                | [{"a": 8}]
"""


@pytest.mark.parametrize("line", PROGRAMS.strip("\n").splitlines())
def test_programs(line):
    written, _, expected = line.rpartition("|")
    text = written.strip().replace(" / ", "\n") if "1 / 0" not in written and "1 / j" not in written else _lines(written)
    program = compile_program(text, FIELDS)
    if expected.strip().startswith("!"):
        with pytest.raises(CxlFailure, match=expected.strip(" !")):
            run(program, RECORD, Context())
    else:
        assert run(program, RECORD, Context()) == json.loads(expected)


def _lines(written):
    return written.strip().replace("1 / 0", "1/0").replace("1 / j", "1/j").replace(" / ", "\n")


def test_a_failure_says_category_place_and_field():
    program = compile_program("emit ok = 1\nemit bad = i + 10 / (i - 7)", FIELDS)
    with pytest.raises(CxlFailure) as caught:
        run(program, RECORD, Context())
    failure = caught.value
    assert (failure.category, failure.message, failure.field) == ("type_coercion_failure", "division by zero", "bad")
    assert program.text[failure.span.start : failure.span.end].startswith("10 / (i - 7")
    assert program.locate(failure.span).line == 2


def test_a_nan_that_cxl_computes_is_a_failure_and_one_of_the_input_is_not():
    nan = {**RECORD, "f": math.nan}
    assert math.isnan(run(compile_program("emit f = f\nlet g = f\nemit h = g", FIELDS), nan, Context())[0]["h"])
    with pytest.raises(CxlFailure) as caught:
        run(compile_program("emit x = f + 1", FIELDS), nan, Context())
    assert caught.value.category == "nan_in_output_field"


def test_floats_follow_ieee_754():
    assert run(compile_program("emit x = 100000000.0 * f * f", FIELDS), {**RECORD, "f": 1e200}, Context()) == [{"x": math.inf}]


def test_expansion_has_a_limit_over_all_levels():
    program = compile_program("emit each x in xs { emit each y in xs { emit p = y } }", FIELDS)
    assert len(run(program, RECORD, Context(max_expansion=9))) == 9
    with pytest.raises(CxlFailure, match="expansion") as caught:
        run(program, RECORD, Context(max_expansion=8))
    assert caught.value.category == "expansion_limit_exceeded"


def test_metadata_goes_with_each_record():
    program = compile_program('emit meta q = "a"\nemit each x in xs { emit meta n = x\n emit y = x }', FIELDS)
    assert [output.meta for output in Runner(program).outputs(RECORD, Context())] == [{"q": "a", "n": n} for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("name", "values", "firsts"),
    [
        ("v", [1, 1.0, True, "1", None, None, [1], [1], {"a": 1}, math.inf, math.inf], [0, 1, 2, 3, 4, 6, 8, 9]),
        ("f", [1.0, 1.0, -0.0, 0.0, None, math.nan, math.nan], [0, 2, 4, 5]),
        ("s", ["a", "A", "", None, "a"], [0, 1, 2, 3]),
    ],
)
def test_distinct_remembers_over_the_records_of_a_runner(name, values, firsts):
    runner = Runner(compile_program(f"emit x = {name}\ndistinct", FIELDS))
    assert [index for index, value in enumerate(values) if runner.run({name: value}, Context())] == firsts


def test_traces_go_where_the_context_says():
    seen = []
    context = Context(trace=lambda level, text: seen.append((level, text)))
    run(compile_program('trace "a"\ntrace warn if b then i\ntrace error if not b then "no"', FIELDS), RECORD, context)
    assert seen == [("trace", "a"), ("warn", "7")]


def test_system_variables_come_from_the_context():
    system = SystemTypes(vars={"rate": INT}, record={"note": STRING}, qualified={"orders": {"n": INT}})
    text = "emit a = $vars.rate * 2\nemit b = $record.note\nemit c = $source.row\nemit d = $doc.head.id\nemit e = now\nemit f = $source.orders.n"
    values = {"vars.rate": 3, "source.row": 9, "doc.head.id": "H", "source.orders.n": 4}
    context = Context(values, now=lambda: datetime(2024, 5, 6, 7, 8, 9))
    assert run(compile_program(text, system=system), {}, context) == [
        {"a": 6, "b": None, "c": 9, "d": "H", "e": datetime(2024, 5, 6, 7, 8, 9), "f": 4}
    ]  # fmt: skip


def test_now_is_one_time_for_a_record_and_another_for_the_next():
    clock = (datetime(2024, 1, 1, hour) for hour in range(24))
    program = compile_program("let first = now\nlet days = now.diff_days(now.add_days(-3))\nemit same = now == first\nemit days = days\nemit hour = now.hour()")
    runner, context = Runner(program), Context(now=lambda: next(clock))
    assert [runner.run({}, context) for _ in range(2)] == [[{"same": True, "days": 3, "hour": 0}], [{"same": True, "days": 3, "hour": 1}]]


def test_an_argument_of_a_function_is_evaluated_once(caplog):
    modules = Modules.of({"m": "fn twice(a) = a + a"})
    with caplog.at_level("DEBUG", "cxl.trace"):
        assert run(compile_program('use m\nemit h = m::twice(i.debug("asked"))', FIELDS, modules=modules), RECORD, Context()) == [{"h": 14}]
    assert caplog.messages == ["asked: 7"]


def test_an_aggregate_runs_as_two_row_programs():
    text = 'let rate = 2\nfilter i > 1\nemit total = sum(i * rate) + rate\nemit label = s + "!"\nemit n = count(*)'
    program = compile_program(text, FIELDS, mode="aggregate", group_by=("s",))
    assert run(program.before, {"i": 3, "s": "k"}, Context()) == [{"__arg_0": 6}]
    assert run(program.before, {"i": 1, "s": "k"}, Context()) == []
    assert run(program.after, {"s": "k", "__agg_0": 10, "__agg_1": 2}, Context()) == [{"total": 12, "label": "k!", "n": 2}]


def test_qualified_fields_are_read_by_their_full_name():
    inputs = {"o": Schema.of({"id": "int"}), "p": Schema.of({"id": "float"})}
    program = compile_program("o.id == p.id", mode="predicate", inputs=inputs)
    assert evaluate(program, {"o.id": 1, "p.id": 1.0}, Context()) is True


def test_long_chains_and_deep_trees_are_evaluated():
    schema = Schema.of({"n": "int"})
    assert run(compile_program("emit x = n" + " + n" * 20_000, schema), {"n": 1}, Context()) == [{"x": 20_001}]
    assert run(compile_program("emit x = " + "1 + (" * 250 + "n" + ")" * 250, schema), {"n": 1}, Context()) == [{"x": 251}]


def test_the_context_of_eval_has_fixed_values():
    text = "emit a = $pipeline.name\nemit b = $pipeline.batch_id\nemit c = $pipeline.source_file\nemit d = $pipeline.source_row"
    zero = "00000000-0000-0000-0000-000000000000"
    assert run(compile_program(text), {}, eval_context()) == [{"a": "cxl-eval", "b": zero, "c": "<inline>", "d": 1}]
