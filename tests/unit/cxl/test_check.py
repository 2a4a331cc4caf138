"""The compiler: accepted programs, inferred types, every error at once."""

from __future__ import annotations

import time

import pytest

from cxl import CxlErrors, Schema, SystemTypes, Target, compile_program, conjuncts, parse_type
from cxl.compiler import findings_of
from cxl.typed.lineage import origins
from cxl.typed.modules import Modules
from cxl.types.types import BOOL, FLOAT, INT, NUMERIC, STRING, Type, type_name, unify

FIELDS = Schema.of(
    {"i": "int", "f": "float", "s": "string", "b": "bool", "d": "date", "t": "date_time", "xs": "array", "m": "map", "v": "any",
     "n": "numeric", "ni": "nullable(int)"}
)  # fmt: skip

# expression | its type
TYPES = """
1 + 2                              | int
1 + 2.5                            | float
i / 2                              | int
null + 5                           | nullable(int)
ni + 1                             | nullable(int)
ni + 1.5                           | nullable(float)
s + "x"                            | string
i > 2                              | bool
ni > 2                             | nullable(bool)
i == f                             | bool
not b                              | bool
b and ni > 1                       | nullable(bool)
-f                                 | float
n + 1                              | numeric
n * 1.5                            | float
v                                  | any
ni ?? 0                            | int
ni ?? 0.5                          | float
if b then 1 else 2                 | int
if b then 1 else 2.5               | float
if b then 1                        | nullable(int)
if b then 1 else "a"               | any
match i { 1 => "a", _ => "b" }     | string
match { b => 1, _ => null }        | nullable(int)
s.length()                         | int
s.upper()                          | string
s.split(",")                       | array
s.to_int()                         | int
i.to_float()                       | float
d.year()                           | int
d.add_days(1)                      | date
t.add_days(1)                      | date_time
i.is_null()                        | bool
xs.map(it => it)                   | array
[i, s]                             | array
[x for x in xs]                    | array
[x for x in v]                     | nullable(array)
{a: ni, [s]: 1}                    | map
{a: ni}.a                          | any
[1][0]                             | any
xs.length()                        | int
m.a                                | any
xs[0]                              | any
now                                | date_time
$pipeline.name                     | string
$pipeline.total_count              | int
$source.event_time                 | nullable(date_time)
"""


@pytest.mark.parametrize("line", TYPES.strip().splitlines())
def test_types_of_expressions(line):
    written, expected = (part.strip() for part in line.rsplit("|", 1))
    program = compile_program(written, FIELDS, mode="expression")
    assert type_name(program.expression.type) == expected


UNIFICATION = [
    (INT, INT, INT), (Type(parse_type("any").kind), INT, INT), (NUMERIC, INT, INT), (NUMERIC, FLOAT, FLOAT), (INT, FLOAT, FLOAT),
    (parse_type("null"), STRING, STRING.or_null), (INT.or_null, FLOAT, FLOAT.or_null), (STRING, INT, None), (BOOL, INT, None),
    (parse_type("date"), parse_type("date_time"), None), (parse_type("array"), parse_type("map"), None),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "expected"), UNIFICATION)
def test_types_unify_by_the_table(left, right, expected):
    assert unify(left, right) == expected
    assert unify(right, left) == expected


# program ("/" is a line break) | code line:column of each error; all of them, in the order of the text
ERRORS = """
emit x = zzz + yyy                         | CXL-R001 1:10, CXL-R001 1:16
emit x = zzz + "a" * 2                     | CXL-R001 1:10, CXL-T004 1:20
emit x = zzz.upper().left("a") + 1         | CXL-R001 1:10, CXL-T005 1:27
let a = zzz / emit b = a + 1 / emit c = a.upper() | CXL-R001 1:9
emit x = late / let late = 1               | CXL-R002 1:10
let x = x + 1                              | CXL-R002 1:9
emit i = i + 1 / emit j = i + 1            |
emit x = S                                 | CXL-R001 1:10
emit x = it                                | CXL-R003 1:10
emit each r in xs { emit y = r } / filter r > 1 | CXL-R001 2:8
emit x = $engine.a                         | CXL-R004 1:10
emit x = $vars.rate + $pipeline.nmae       | E200 1:16, E200 1:33
emit x = $record.k / emit y = $source.rwo  | E200 1:18, E200 2:18
emit x = $source.file() / emit y = $doc.a  | CXL-R005 1:18, CXL-R005 2:10
emit x = s + i / emit y = i - d / emit z = d + 1 | CXL-T004 1:12, CXL-T004 2:12, CXL-T004 3:12
emit x = d == t / emit y = s == 1 / emit z = b > 1 | CXL-T004 1:12, CXL-T004 2:12, CXL-T004 3:12
emit x = xs < xs                           | CXL-T004 1:13
emit x = xs == xs                          |
emit x = -s / emit y = not i / emit z = i and b | CXL-T004 1:10, CXL-T004 2:10, CXL-T004 3:12
emit x = not i == 1                        | CXL-T004 1:10
filter i / filter s.length() / filter v / filter null | CXL-T006 1:8, CXL-T006 2:8
emit x = if i then 1 / emit y = match { s => 1, _ => 2 } | CXL-T006 1:13, CXL-T006 2:18
emit x = xs.filter(it => 1) / emit y = xs.any(it => it) | CXL-T006 1:26
emit x = match s { 1 => 2, _ => 3 } / emit y = match i { 1.5 => 2, null => 1, _ => 3 } | CXL-T004 1:20
emit x = match s { "a" => 1 }              | CXL-T007 1:10
emit x = s.uper() / emit y = null.upper().nope() | CXL-T001 1:12, CXL-T001 2:23
emit x = i.upper() / emit y = xs.abs() / emit z = v.upper() | CXL-T002 1:12, CXL-T002 2:13
emit x = s.left() / emit y = s.upper(1, 2) / emit z = s.concat() | CXL-T003 1:12, CXL-T003 2:12
emit x = s.left(null) / emit y = s.left(v) / emit z = s.left(f) | CXL-T005 3:17
emit x = s.concat(v, i) / emit y = s.concat(1, v) | CXL-T005 1:22, CXL-T005 2:19
emit x = s.matches("[") / emit y = s.find(s) / emit z = s.matches("(?=a)") | CXL-T008 1:20, CXL-T008 2:17, CXL-T008 3:20
emit x = s.find(it => true) / emit y = xs.map(1) / emit z = s.upper(it => 1) | CXL-T010 1:17, CXL-T010 2:17, CXL-T003 3:12
emit each x in s { } / emit each y in null outer { } / emit each z in null { } / emit each w in v { } | CXL-T009 1:16, CXL-T009 3:16
emit x = s.name / emit y = i[0] / emit z = xs["a"] | CXL-T011 1:12, CXL-T011 2:10
emit x = sum(i) / filter count(*) > 1      | CXL-A001 1:10, CXL-A001 2:8
emit x = nope(i) / emit y = upper(s)       | CXL-R008 1:10, CXL-R008 2:10
emit x = q::f(1)                           | CXL-R006 1:10
emit x = $window.sum(i) / emit y = $window.nope(i) | CXL-W001 1:18, CXL-W002 2:18
emit x = [1] + 1 / emit y = [1].upper() / emit z = [1] < [2] | CXL-T004 1:14, CXL-T002 2:14, CXL-T004 3:14
emit x = [a for a in s if b] / emit y = [a for a in xs if i] / emit z = [a for a in null if a] | CXL-T014 1:22, CXL-T006 2:28
emit x = [a for a in xs if a.zzz] / emit y = a / emit z = [zzz for a in zzz] | CXL-R001 2:10, CXL-R001 3:11, CXL-R001 3:24
emit x = [it for it in xs] / emit y = [it for a in xs]  | CXL-R003 2:11
emit x = {a: zzz, "a": 1, b: 2, b: 3, ["a"]: 4} | CXL-R001 1:14, CXL-P015 1:19, CXL-P015 1:33
emit x = {[i]: 1, [null]: 2, [xs]: 3, [v]: 4, [s]: 5} | CXL-T015 1:12, CXL-T015 1:20, CXL-T015 1:31
emit x = {a: 1} + 1 / emit y = {a: 1}.b + 1 / emit z = -[1] | CXL-T004 1:17, CXL-T004 3:10
fn f(a) = [x for x in a] / emit x = f(s) / emit y = f(xs) | CXL-T014 2:10
emit x = ) / emit y = zzz                  | CXL-P010 1:10, CXL-R001 2:10
"""


@pytest.mark.parametrize("line", [line for line in ERRORS.strip().splitlines() if line])
def test_every_independent_error_at_its_place(line):
    written, _, expected = line.rpartition("|")
    assert errors_of(written.strip().replace(" / ", "\n")) == expected.strip()


def errors_of(text, schema=FIELDS, **settings):
    try:
        compile_program(text, schema, **settings)
    except CxlErrors as errors:
        return ", ".join(f"{one.code} {one.position.line}:{one.position.column}" for one in errors.diagnostics)
    return ""


def test_a_near_name_is_offered():
    with pytest.raises(CxlErrors) as caught:
        compile_program("emit x = amoutn\nemit y = $pipeline.nmae\nemit z = amount.roud()", Schema.of({"amount": "float"}))
    helps = [one.help for one in caught.value.diagnostics]
    assert helps == ["did you mean 'amount'?", "did you mean 'name'?", "did you mean 'round'?"]


def test_what_a_program_emits_and_reads():
    text = "let r = $vars.rate\nfilter b\nemit total = i * r\nemit s = s\nemit total = total + 1.5\nemit meta q = now\ndistinct by s"
    program = compile_program(text, FIELDS, system=SystemTypes(vars={"rate": INT}))
    assert {name: type_name(type_) for name, type_ in program.output.items()} == {"total": "float", "s": "string"}
    assert list(program.meta) == ["q"]
    assert program.reads == {"b", "i", "s"}
    assert program.reads_system == {"vars.rate", "now"}
    assert not program.deterministic
    assert compile_program("emit x = $source.row + $vars.rate", system=SystemTypes(vars={"rate": INT})).deterministic


def test_emits_of_blocks_are_columns_and_late_ones_are_not():
    text = "emit a = 1\nemit each x in xs {\n  emit b = x\n  emit each y in x { emit c = y }\n  emit late = 1\n}\nemit later = 2"
    program = compile_program(text, FIELDS)
    assert list(program.output) == ["a", "b", "c"]
    assert [one.code for one in program.warnings] == ["CXL-L001", "CXL-L001"]


# Aggregates and windows -------------------------------------------------------------------------------------------------


def test_an_aggregate_is_taken_apart():
    text = 'let r = 2\nfilter i > 1\nemit t = sum(i * r) + r\nemit n = count(*)\nemit k = if max(f) > 3.5 then s else "z"\nemit u = t + sum(i * r)'
    program = compile_program(text, FIELDS, mode="aggregate", group_by=("s",))
    assert [(call.function.name, call.star, call.columns, call.column) for call in program.calls] == [
        ("sum", False, ("__arg_0",), "__agg_0"), ("count", True, (), "__agg_1"), ("max", False, ("__arg_1",), "__agg_2"),
    ]  # fmt: skip
    assert list(program.before.output) == ["__arg_0", "__arg_1"]
    assert [type(one).__name__ for one in program.before.statements] == ["Let", "Filter", "Emit", "Emit"]
    assert list(program.after.schema) == ["s", "__agg_0", "__agg_1", "__agg_2"]
    assert [type(one).__name__ for one in program.after.statements] == ["Let", "Emit", "Emit", "Emit", "Emit"]
    assert program.reads == {"i", "f", "s"}
    assert program.after.reads == {"s"}


AGGREGATE_ERRORS = """
let x = sum(i)                             | CXL-A003 1:9
filter sum(i) > 1 / emit x = count(*)      | CXL-A002 1:8
emit x = sum(max(i))                       | CXL-A004 1:14
emit x = i + sum(i) / emit y = s           | CXL-A005 1:10
let k = i * 2 / emit x = k                 | CXL-A005 1:9
let k = i * 2 / emit x = sum(k)            |
emit x = $source.row / emit y = max($source.row) | CXL-A007 1:10
distinct / emit each x in xs { } / emit meta q = 1 | CXL-A006 1:1, CXL-A006 2:1, CXL-A006 3:1
emit x = sum(s) / emit y = avg(i, i) / emit z = sum(*) | CXL-T005 1:14, CXL-T003 2:10, CXL-T005 3:10
emit x = (sum(i) - sum(i))/sum(f) * 100  |
emit x = max(i) > 100 / emit y = sum(i).to_string() + s |
emit x = {n: count(*), all: [sum(i), s]} / emit y = [v * 2 for v in collect(i) if v > 1] |
emit n = count(*) / emit y = [v * n for v in collect(i)] / emit i = n |
emit x = [sum(i) for v in collect(i)] / emit y = [v for v in collect(i) if v > avg(i)] | CXL-A004 1:11, CXL-A004 2:40
emit x = [v + i for v in collect(i)] / emit y = [v for v in xs] | CXL-A005 1:15, CXL-A005 2:22
emit x = collect(i).map(it => sum(it)) / emit y = sum(xs.map(it => it).length()) | CXL-R003 1:35
emit x = sum([v for v in xs].length()) / emit y = max([sum(i)].length()) | CXL-A004 2:15
"""


@pytest.mark.parametrize("line", [line for line in AGGREGATE_ERRORS.strip().splitlines() if line])
def test_rules_of_aggregates(line):
    written, _, expected = line.rpartition("|")
    assert errors_of(written.strip().replace(" / ", "\n"), mode="aggregate", group_by=("s",)) == expected.strip()


def test_windows_are_taken_apart():
    text = "let double = i * 2\nemit run = $window.sum(double)\nemit i = $window.lag(1)\nemit before = $window.lag(1).s\nfilter i > 1"
    program = compile_program(text, FIELDS, window=True)
    assert [(use.function.name, use.member, use.column) for use in program.windows] == [
        ("sum", None, "__win_0"), ("lag", "i", "__win_1"), ("lag", "s", "__win_2"),
    ]  # fmt: skip
    [layer] = program.layers
    assert [type(one).__name__ for one in layer.before.statements] == ["Emit"] * 2  # the calls of `lag` share their argument
    assert layer.before.reads == {"i"}
    assert list(program.after.output) == ["run", "i", "before"]
    assert type_name(program.after.output["before"]) == "nullable(string)"


def test_windows_over_windows_come_behind_them():
    text = "emit run = $window.sum(i)\nlet most = $window.max(run)\nemit i = most + 1\nemit back = $window.lag(1).i\nemit first = $window.first().s"
    program = compile_program(text, FIELDS, window=True)
    assert [[use.function.name for use in layer.uses] for layer in program.layers] == [["sum", "first"], ["max"], ["lag"]]
    assert [sorted(layer.before.schema.keys() - program.schema.keys()) for layer in program.layers] == [[], ["__win_0", "__win_3"], ["__win_0", "__win_1", "__win_3"]]
    assert program.reads == {"i", "s"}
    assert origins(program) == {"run": {"i"}, "i": {"i"}, "back": {"i"}, "first": {"s"}}


def test_what_a_statement_defined_hides_the_field_in_rows_of_the_window_too():
    program = compile_program("emit i = i * 2\nemit a = $window.first_value(i)\nemit b = $window.first().i\nemit c = $window.lag(1).i", FIELDS, window=True)
    assert [use.read_field for use in program.windows] == [None, None, None]
    plain = compile_program("emit b = $window.first().i\nemit i = i\nemit c = $window.first().i", FIELDS, window=True)
    assert [use.read_field for use in plain.windows] == ["i"]
    other = compile_program("emit i = i * 2\nemit b = $window.first().i", FIELDS, window=True, window_schema=FIELDS)
    assert [use.read_field for use in other.windows] == ["i"]


def test_a_bare_row_needs_a_field_of_the_target_s_name():
    assert errors_of("emit x = $window.lag(1)", window=True) == "CXL-W003 1:18"
    assert errors_of("emit i = $window.lag(1)", window=True) == ""
    assert errors_of("emit x = $window.lag(1).nope", window=True) == "CXL-R001 1:25"
    assert errors_of("emit x = $window.sum($window.sum(i))", window=True) == "CXL-W004 1:30"
    assert errors_of("emit x = xs.map(it => $window.sum(it)) emit y = [$window.sum(v) for v in xs if $window.max(v) > 1]", window=True) == "CXL-R003 1:35, CXL-R003 1:62, CXL-R003 1:92"
    assert errors_of("emit each v in xs { emit y = $window.sum(v) }", window=True) == "CXL-R003 1:42"
    assert errors_of("emit x = [v + $window.sum(i) for v in xs] emit y = [1, $window.sum([w for w in xs].length())]", window=True) == ""
    assert errors_of("emit x = $window.start", mode="aggregate") == "CXL-W001 1:10"
    assert errors_of("emit x = $window.start", mode="aggregate", window_bounds=True) == ""


# Combine, state ---------------------------------------------------------------------------------------------------------

INPUTS = {"o": Schema.of({"id": "int", "at": "date", "ok": "bool"}), "p": Schema.of({"id": "float", "from": "date", "ok": "bool"})}


def test_a_predicate_falls_apart_into_conjuncts():
    program = compile_program("o.id == p.id\n and o.at >= p.from and (o.ok or p.ok) and o.ok", mode="predicate", inputs=INPUTS)
    parts = [(part.op, sorted(part.left_inputs), sorted(part.right_inputs), sorted(part.inputs)) for part in conjuncts(program)]
    assert parts == [
        ("==", ["o"], ["p"], ["o", "p"]), (">=", ["o"], ["p"], ["o", "p"]), (None, [], [], ["o", "p"]), (None, [], [], ["o"]),
    ]  # fmt: skip
    assert program.reads == {"o.id", "p.id", "o.at", "p.from", "o.ok", "p.ok"}


def test_fields_of_a_combine_are_qualified():
    assert errors_of("id == 1", mode="predicate", inputs=INPUTS) == "CXL-R010 1:1"
    assert errors_of("o.idd == 1", mode="predicate", inputs=INPUTS) == "CXL-R001 1:3"
    assert errors_of("emit x = o.id\nemit y = x", inputs=INPUTS) == ""


def test_a_state_expression_reads_the_record_with_and_without_this():
    program = compile_program("first(this.s) ?? s", FIELDS, mode="set", inputs={"this": FIELDS})
    assert [call.function.name for call in program.calls] == ["first"]
    assert program.reads == {"s"}


def test_bodies_name_what_they_did_not_opt_in_to():
    system = SystemTypes(unexposed=frozenset({"pipeline.cutoff"}))
    assert errors_of("emit x = $pipeline.cutoff", system=system) == "E173 1:10"


# Modules ----------------------------------------------------------------------------------------------------------------

MODULES = Modules.of({
    "shared.dates": "fn fiscal_year(d) = if d.month() < 4 then d.year() - 1 else d.year()\n"
    "fn quarter(d) = match { d.month() <= 3 => 1, _ => 2 }\nfn fiscal_quarter(d) = quarter(d.add_months(-3))\n"
    "let vat = base * 2\nlet base = 10",
    "broken": "fn f(x) = x.nope()\nfn g(x) = g(x)\nlet a = b\nlet b = a\nemit z = 1",
})  # fmt: skip
MODULE_ERRORS = """
use shared.dates as d / emit x = d::fiscal_quarter(d) + d::vat |
use shared.dates / emit x = dates::fiscal_year(d)              |
use shared.dates as d / emit x = d::fiscal_year(i)             | CXL-T002 2:10
use shared.dates as d / emit x = d::fiscal_year()              | CXL-T003 2:13
use shared.dates as d / emit x = d::nope / emit y = d::vat(1)  | CXL-R007 2:13, CXL-R007 3:13
use nothing.here as q / emit x = q::f(1)                       | CXL-R006 1:1
use broken as q / emit x = q::f(1) + q::g(2)                   | CXL-T001 1:13, CXL-R009 2:11, CXL-R009 3:9, CXL-R009 4:9, CXL-R007 5:1
fn twice(x) = x * 2 / emit y = twice(i) + twice(f)             |
fn twice(x) = x * i / emit y = twice(1)                        | CXL-R001 1:19
"""


@pytest.mark.parametrize("line", [line for line in MODULE_ERRORS.strip().splitlines() if line])
def test_modules(line):
    written, _, expected = line.rpartition("|")
    assert errors_of(written.strip().replace(" / ", "\n"), modules=MODULES) == expected.strip()


def test_used_modules_count_in_the_fingerprint():
    texts = [
        compile_program("use m\nemit x = m::a", modules=Modules.of({"m": text})).normal_text()
        for text in ("let a = 1", "let a = 2", "let  a=1 #")
    ]
    assert texts[0] == texts[2] != texts[1]


def test_twenty_statements_compile_in_fifty_milliseconds():
    line = 'emit f{0} = if i + {0} > 10 then (s.trim().upper() + "x").left(5) else match s {{ "a" => "b", _ => s ?? "z" }}'
    text = "\n".join(line.format(number) for number in range(20))
    compile_program(text, FIELDS)
    start = time.process_time()
    for _ in range(5):
        compile_program(text, FIELDS)
    assert (time.process_time() - start) / 5 < 0.05


@pytest.mark.parametrize(
    ("text", "mode", "code", "help"),
    [
        ("emit total = sum(total)", "aggregate", "CXL-R001", "fields: amount, name"),
        ("emit amout = sum(amout)", "aggregate", "CXL-R001", "did you mean 'amount'?"),
        ("let x = x + 1", "row", "CXL-R002", "a name can be read behind the statement that defines it"),
        ("emit y = x\nlet x = 1", "row", "CXL-R002", "a name can be read behind the statement that defines it"),
        ("emit x = coalesce(amount, 0)", "row", "CXL-R008", "the first of two values that is not null is written value ?? other"),
        ("emit x = amount.coalesce(0)", "row", "CXL-T001", "the first of two values that is not null is written value ?? other"),
        ("emit x = nvl(amount, 0)", "row", "CXL-R008", "write value ?? other"),
    ],
)
def test_a_name_that_the_input_lacks_and_a_function_of_another_language(text, mode, code, help):
    found = findings_of(text, Target(schema=Schema.of({"amount": "int", "name": "string"}), mode=mode))
    assert [(one.code, one.help) for one in found] == [(code, help)]
