"""Row programs on frames: `apply`, `column` and `errors`."""

import pickle
import subprocess
import sys

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import functions as F

from cxl import Schema, Span, SystemTypes, compile_program
from cxl.functions.registry import all_builtins
from cxl.spark import FAILED, INDEX, PASS, Context, apply, column, errors, worker
from cxl.spark.session import session
from cxl.typed import tree
from cxl.types.types import ANY, ARRAY, FLOAT, INT, MAP, STRING

SCHEMA = Schema.of({"id": "int", "a": "int", "b": "int", "x": "float", "s": "string", "items": "array"})
ROWS = {
    "id": [1, 2, 3], "a": [6, 2**63 - 1, None], "b": [2, 1, 5], "x": [1.5, None, float("inf")], "s": [" p ", "q", None], "items": ["[1,2]", "[]", None],
}  # fmt: skip


@pytest.fixture(scope="module")
def frame():
    types = [pa.int64(), pa.int64(), pa.int64(), pa.float64(), pa.string(), pa.string()]
    return session("sail").createDataFrame(pa.table({name: pa.array(values, type_) for (name, values), type_ in zip(ROWS.items(), types, strict=True)}))


def rows(applied, *columns: str) -> list[tuple]:
    chosen = [value.alias(f"e_{name}") for name, value in applied.values.items()]
    table = applied.frame.select("id", *columns, *chosen).toArrow().sort_by("id")
    return [tuple(row.values())[1:] for row in table.to_pylist()]


def test_emits_read_lets_and_earlier_emits(frame) -> None:
    applied = apply(frame, compile_program("let t = b * 2\nemit u = t + 1\nemit b = u\nemit v = b", SCHEMA))
    assert rows(applied) == [(5, 5, 5), (3, 3, 3), (11, 11, 11)]


def test_the_input_stays_as_it_was(frame) -> None:
    applied = apply(frame, compile_program("emit a = 0", SCHEMA))
    assert rows(applied, "a") == [(6, 0), (2**63 - 1, 0), (None, 0)]


def test_a_row_that_fails_is_marked_and_explained(frame) -> None:
    program = compile_program("emit t = a + b", SCHEMA)
    applied = apply(frame, program)
    assert rows(applied, PASS, FAILED) == [(True, False, 8), (True, True, None), (True, False, None)]
    table = errors(applied.frame.filter(F.col(FAILED)), program).select("_cxl_error").toArrow()
    (found,) = table.column(0).to_pylist()
    assert found["category"] == "type_coercion_failure"
    assert "overflow" in found["message"]
    assert found["field"] == "t"
    assert program.text[found["start"] : found["end"]] == "a + b"


def test_a_filter_drops_what_is_not_true_and_hides_later_failures(frame) -> None:
    applied = apply(frame, compile_program("filter a < 10\nemit t = a / (b - 2)", SCHEMA))
    assert [row[:2] for row in rows(applied, PASS, FAILED)] == [(True, True), (False, False), (False, False)]


@pytest.mark.parametrize(
    "text", ["emit t = s.trim() + s", "emit t = a > 1 and b < 3", "emit t = if a == 1 then s else s.upper()", "emit t = a / 2", "emit t = b.abs().is_null() or true and s == 'x'"],
)
def test_what_cannot_fail_says_so(frame, text: str) -> None:
    applied = apply(frame, compile_program(text, SCHEMA))
    assert applied.can_fail is ("abs" in text)


def test_what_is_not_needed_cannot_fail(frame) -> None:
    text = "emit t = if b == 2 then 1 / (b - 2 + 1 - 1 + 0) else 7\nemit u = s.is_null() or 1 / (a ?? 0) >= 0\nemit v = a ?? 1 / (b - 5)"
    assert [row[0] for row in rows(apply(frame, compile_program(text, SCHEMA)), FAILED)] == [True, False, True]


def test_a_nan_is_no_output_but_an_input_may_hold_one(frame) -> None:
    applied = apply(frame, compile_program("emit t = x - x\nemit u = x", SCHEMA))
    assert [row[0] for row in rows(applied, FAILED)] == [False, False, True]


def test_dynamic_values_are_json_text(frame) -> None:
    applied = apply(frame, compile_program("let more = items.map(it => it + b)\nemit n = more.length()\nemit m = more", SCHEMA))
    assert rows(applied) == [(2, "[3,4]"), (0, "[]"), (None, None)]


def test_emit_each_gives_a_numbered_row_for_every_element(frame) -> None:
    applied = apply(frame, compile_program("emit k = b\nemit each it in items { emit v = it * 10 }", SCHEMA))
    assert applied.fans_out
    assert rows(applied, PASS, FAILED, INDEX) == [(True, False, 0, 2, "10"), (True, False, 1, 2, "20"), (False, False, None, None, None), (False, False, None, None, None)]


def test_distinct_gives_its_key_and_who_reached_it(frame) -> None:
    applied = apply(frame, compile_program("filter b < 5\nemit t = a + b\ndistinct by b", SCHEMA))
    (key,) = applied.distinct
    table = applied.frame.select("id", *key.columns, key.reached).toArrow().sort_by("id")
    assert [tuple(row.values())[1:] for row in table.to_pylist()] == [(2, True), (1, False), (5, False)]


def test_metadata_is_beside_the_fields(frame) -> None:
    applied = apply(frame, compile_program('emit meta q = if b > 1 then "hi" else "lo"\nemit r = $meta.q', SCHEMA))
    assert list(applied.meta) == ["q"]
    assert rows(applied) == [("hi",), ("lo",), ("hi",)]


def test_system_variables_are_values_or_columns(frame) -> None:
    program = compile_program("emit t = $vars.rate * $source.row\nemit u = $pipeline.name", SCHEMA, system=SystemTypes(vars={"rate": INT}))
    applied = apply(frame, program, Context({"vars.rate": 10, "source.row": F.col("id"), "pipeline.name": "p"}))
    assert rows(applied) == [(10, "p"), (20, "p"), (30, "p")]


def test_values_whose_kind_only_they_tell_are_texts(frame) -> None:
    given = {"list": [2, "x", {"y": None}], "map": {"m": [1]}, "text": 'a"b', "number": 2, "flag": True, "none": None}
    types = SystemTypes(vars={"list": ARRAY, "map": MAP} | dict.fromkeys(("text", "number", "flag", "none"), ANY))
    made = {**{name: f"$vars.{name}" for name in given}, "size": "$vars.list.length()", "found": "$vars.list.any(it => it == id)", "sum": "$vars.number + id"}
    program = compile_program("\n".join(f"emit {name} = {text}" for name, text in made.items()), SCHEMA, system=types)
    applied = apply(frame, program, Context({f"vars.{name}": value for name, value in given.items()}))
    texts = ('[2,"x",{"y":null}]', '{"m":[1]}', '"a\\"b"', "2", "true", None)
    assert rows(applied) == [(*texts, 3, False, "3"), (*texts, 3, True, "4"), (*texts, 3, False, "5")]


@pytest.mark.parametrize("type_", [FLOAT, ANY])
def test_a_value_that_is_no_number_is_not_emitted(frame, type_) -> None:
    program = compile_program("emit n = $vars.rate", SCHEMA, system=SystemTypes(vars={"rate": type_}))
    applied = apply(frame, program, Context({"vars.rate": float("nan")}))
    assert [row["_cxl_failed"] for row in applied.frame.select("_cxl_failed").toArrow().to_pylist()] == [True] * 3
    assert not apply(frame, program, Context({"vars.rate": float("inf")})).can_fail


def test_a_single_expression_over_columns_with_other_names(frame) -> None:
    program = compile_program("l.n + r.n > 5", Schema(), mode="predicate", inputs={"l": Schema.of({"n": "int"}), "r": Schema.of({"n": "int"})})
    value, failed = column(program.expression, columns={"l.n": F.col("a"), "r.n": F.col("b")})
    table = frame.select("id", value.alias("v"), failed.alias("f")).toArrow().sort_by("id")
    assert [(row["v"], row["f"]) for row in table.to_pylist()] == [(True, False), (None, True), (None, False)]


def test_names_may_hold_any_character() -> None:
    frame = session("sail").createDataFrame(pa.table({"address.city": ["LA"], "we`ird": ["x"]}))
    read = [column(tree.Field(STRING, Span(0, 1), name))[0] for name in frame.columns]
    assert frame.select(*read).toArrow().to_pydict() == {"address.city": ["LA"], "we`ird": ["x"]}


def test_long_chains_and_deep_branches_stay_columns(frame) -> None:
    chain = " + ".join(["b"] * 200)
    nest = "b"
    for level in range(60):
        nest = f"(if b < {100 + level} then {nest} else {level})"
    applied = apply(frame, compile_program(f"emit t = {chain}\nemit u = {nest}", SCHEMA))
    assert rows(applied) == [(400, 2), (200, 1), (1000, 5)]


def test_more_definitions_than_a_plan_can_nest_are_left_to_the_interpreter(frame) -> None:
    links = "\n".join(f"let v{number} = v{number - 1} + 1" for number in range(1, 400))
    program = compile_program(f"filter b < 5\nlet v0 = a\n{links}\nemit last = v399\nemit meta m = b", SCHEMA)
    applied = apply(frame, program)
    assert not applied.fans_out
    assert rows(applied, PASS, FAILED) == [(True, False, 405), (False, True, None), (False, False, None)]
    assert list(applied.meta) == ["m"]


@pytest.mark.parametrize("part", ["program", "expression"])
def test_a_chain_travels_to_the_workers_whatever_its_length(part: str) -> None:
    program = compile_program("emit t = " + " + ".join(["a"] * 20_000), SCHEMA)
    (statement,) = program.statements
    assert isinstance(statement, tree.Emit)
    task = worker.ProgramTask(program, (), 1) if part == "program" else worker.Task(statement.value, (), 1, 1)
    copy = pickle.loads(cloudpickle.dumps(task))  # noqa: S301 -- our own bytes
    expr = copy.program.statements[0].value if part == "program" else copy.expr
    first, chain = tree.spine(expr)
    assert [first.name, *(link.right.name for link in chain)] == ["a"] * 20_000
    assert [(link.op, link.type, link.span) for link in chain] == [(link.op, link.type, link.span) for link in tree.spine(statement.value)[1]]


OTHER_ORDER = """
import pickle, sys
import cxl.functions.string, cxl.functions.regex, cxl.functions.array
from cxl.functions.registry import all_builtins
found = pickle.loads(sys.stdin.buffer.read())
assert len(found) == sum(1 for _ in all_builtins())
wrong = [entry.name for entry, doc in found if entry.doc != doc]
sys.exit(f"other builtins: {wrong}" if wrong else 0)
"""


def test_builtins_arrive_in_a_worker_that_imported_their_modules_in_another_order() -> None:
    sent = [(entry, entry.doc) for entry in all_builtins()]
    process = subprocess.run([sys.executable, "-c", OTHER_ORDER], input=cloudpickle.dumps(sent), capture_output=True, check=False)
    assert process.returncode == 0, process.stderr.decode()
