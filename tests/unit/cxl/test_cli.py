"""The `cxl` command: output, errors and exit codes."""

from __future__ import annotations

import csv
import io
import json
import resource
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from cxl.cli import main
from cxl.commands.evaluate import infer

ROOT = Path(__file__).parents[3]


@pytest.fixture
def cxl(capsys, monkeypatch, tmp_path):
    """Run the command in an empty folder; exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def call(*words, stdin=""):
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        code = main(list(words))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


# arguments | output
DOCUMENTED = [
    (["-e", "emit result = 1 + 2"], {"result": 3}),
    (["-e", "let tax = 0.21", "-e", "emit net = price * (1 - tax)", "--field", "price=100"], {"net": 79.0}),
    (["-e", "emit t = amount.type_of()", "--field", "amount=42"], {"t": "Int"}),
    (["-e", "emit t = name.type_of()", "--field", "name=Alice"], {"t": "String"}),
    (["-e", "emit total = price * qty", "--record", '{"price": 10.5, "qty": 3}'], {"total": 31.5}),
    (["-e", "emit a = 1", "-e", 'emit b = "two"', "-e", "emit c = true"], {"a": 1, "b": "two", "c": True}),
    (["-e", "emit d = #2024-03-15#"], {"d": "2024-03-15"}),
    (["-e", "emit name = $pipeline.name"], {"name": "cxl-eval"}),
    (["-e", "emit safe = raw.try_int() ?? 0", "--field", "raw=abc"], {"safe": 0}),
    (["-e", 'emit x = "a,b,c".split(",")'], {"x": ["a", "b", "c"]}),
]


@pytest.mark.parametrize(("words", "expected"), DOCUMENTED)
def test_eval_prints_the_emitted_record(cxl, words, expected):
    code, out, err = cxl("eval", *words)
    assert (code, err) == (0, "")
    assert json.loads(out) == expected


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["eval", "emit a = 1"], "there is no file 'emit a = 1'; a program is given with -e"),
        (["check", "orders.yaml"], "'orders.yaml' is no CXL program; for a pipeline: errata check orders.yaml"),
    ],
)
def test_what_is_no_file_of_a_program_is_told(cxl, words, said):
    code, out, err = cxl(*words)
    assert (code, out) == (2, "")
    assert said in err


def test_the_version_is_that_of_the_package(cxl):
    assert cxl("--version") == (0, f"cxl {version('errata')}\n", "")


def test_the_output_has_one_member_a_line(cxl):
    _, out, _ = cxl("eval", "-e", 'emit a = 1.5 emit b = "x y".split(" ")')
    assert out == '{\n  "a": 1.5,\n  "b": ["x", "y"]\n}\n'


def test_fan_out_is_an_array_and_a_dropped_record_is_empty(cxl):
    assert json.loads(cxl("eval", "-e", "emit each x in xs { emit y = x }", "--record", '{"xs": [1, 2]}')[1]) == [{"y": 1}, {"y": 2}]
    assert json.loads(cxl("eval", "-e", "emit each x in xs { emit y = x }", "--record", '{"xs": []}')[1]) == []
    code, out, err = cxl("eval", "-e", "filter false")
    assert (code, out) == (0, "{}\n")
    assert "filtered" in err


def test_traces_go_to_standard_error(cxl):
    program = ("-e", 'trace "a"', "-e", "trace debug 1 + 1", "-e", 'trace info "b"', "-e", 'trace warn if v > 1 then "c"', "-e", "emit x = v", "--field", "v=2")
    out = '{\n  "x": 2\n}\n'
    assert cxl("eval", *program) == (0, out, "info: b\nwarn: c\n")
    assert cxl("eval", "-v", *program) == (0, out, "trace: a\ndebug: 2\ninfo: b\nwarn: c\n")
    assert cxl("eval", "-q", *program) == (0, out, "warn: c\n")


def test_a_program_comes_from_a_file_or_from_standard_input(cxl, tmp_path):
    (tmp_path / "p.cxl").write_text("\ufeffemit x = amount * 2\r\nemit f = $pipeline.source_file", "utf-8")
    assert json.loads(cxl("eval", "p.cxl", "--field", "amount=2")[1]) == {"x": 4, "f": "p.cxl"}
    assert json.loads(cxl("eval", "-", stdin="emit x = 1")[1]) == {"x": 1}
    assert json.loads(cxl("eval", "-e", "emit x = a", "--record", "-", stdin='{"a": 3}')[1]) == {"x": 3}


def test_modules_are_read_below_the_rules_path(cxl, tmp_path):
    (tmp_path / "rules" / "etl").mkdir(parents=True)
    (tmp_path / "rules" / "etl" / "clean.cxl").write_text("fn name(raw) = raw.trim().upper()\nlet most = 9.5", "utf-8")
    assert json.loads(cxl("eval", "-e", 'use etl.clean as c emit a = c::name(" x ") emit b = c::most')[1]) == {"a": "X", "b": 9.5}
    (tmp_path / "rules").rename(tmp_path / "other")
    assert cxl("eval", "-e", "use etl.clean as c emit b = c::most", "--rules-path", "other")[0] == 0
    assert cxl("eval", "-e", "use etl.clean as c emit b = c::most")[0] == 1


BAD_CALLS = [
    (["eval", "-e", "emit x = )"], 1, "error[CXL-P010]"),
    (["eval", "-e", "emit x = 1 / z", "--field", "z=0"], 1, "division by zero"),
    (["eval", "missing.cxl"], 2, "missing.cxl"),
    (["eval", "-e", "emit x = 1", "--record", "{"], 2, "invalid JSON record"),
    (["eval", "-e", "emit x = 1", "--record", "[]"], 2, "invalid JSON record"),
    (["eval", "-e", "emit x = 1", "--record", "{}", "--field", "a=1"], 2, "--field and --record"),
    (["eval", "-e", "emit x = 1", "--field", "a"], 2, "NAME=VALUE"),
    (["eval"], 2, "file or -e"),
    (["check", "missing.cxl"], 2, "missing.cxl"),
    (["fmt", "missing.cxl"], 2, "missing.cxl"),
    (["eval", "--jsonl"], 2, "line 1"),
    (["eval", "-e", "emit x = s", "--record", '{"s": "\\ud800"}'], 2, "invalid JSON record"),
    (["fn", "uper"], 1, "did you mean 'upper'?"),
    (["nothing"], 2, "nothing"),
]


@pytest.mark.parametrize(("words", "code", "said"), BAD_CALLS)
def test_exit_codes(cxl, words, code, said):
    found, out, err = cxl(*words, stdin="no json\n")
    assert (found, out) == (code, "")
    assert said in err


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("42", 42),
        ("-7", -7),
        ("10.5", 10.5),
        ("1e3", 1000.0),
        ("true", True),
        ("null", None),
        ("Alice", "Alice"),
        ("", ""),
        ("1_0", "1_0"),
        (" 1", " 1"),
        ("+7", 7),
        ("9223372036854775808", 9223372036854775808.0),
        ("Nan", "Nan"),
        ("-Infinity", "-Infinity"),
        ("1e400", "1e400"),
        ("\u0663", "\u0663"),
    ],
)
def test_fields_have_the_type_of_their_text(text, value):
    assert (infer(text), type(infer(text))) == (value, type(value))


def test_integers_beyond_64_bits_are_no_ints(cxl):
    code, out, _ = cxl("eval", "-e", "emit t = a.type_of()", "--field", "a=9223372036854775808")
    assert (code, json.loads(out)) == (0, {"t": "Float"})


# Cases ------------------------------------------------------------------------------------------------------------------


def test_cases_are_answered_line_by_line(cxl):
    cases = [
        {
            "id": "a",
            "program": "emit x = n / d",
            "schema": {"n": "int", "d": "int"},
            "records": [{"n": 6, "d": 2}, {"n": 1, "d": 0}, {"n": 1}],
        },
        {"id": "b", "program": "emit x = zzz", "schema": {}, "records": []},
        {
            "id": "c",
            "program": "emit y = d.year() emit t = t",
            "schema": {"d": "date", "t": "date_time"},
            "records": [{"d": "2024-05-06", "t": "2024-05-06T07:08:09"}],
        },
        {"id": "d", "program": "filter n > 1", "schema": {"n": "float"}, "records": [{"n": 1}, {"n": 2}]},
    ]
    code, out, _ = cxl("eval", "--jsonl", stdin="\n".join(map(json.dumps, cases)))
    answers = {answer["id"]: answer for answer in map(json.loads, out.splitlines())}
    assert code == 0
    assert answers["a"]["results"] == [[{"x": 3}], {"error": "division by zero", "category": "type_coercion_failure"}, [{"x": None}]]
    assert answers["c"]["results"] == [[{"y": 2024, "t": "2024-05-06T07:08:09"}]]
    assert answers["d"]["results"] == [[], [{}]]
    (found,) = answers["b"]["diagnostics"]
    assert {name: found[name] for name in ("code", "severity", "line", "column", "length")} == {
        "code": "CXL-R001", "severity": "error", "line": 1, "column": 10, "length": 3,
    }  # fmt: skip


MISFITS = [
    ({"n": "int"}, [{"n": 1.5}, {"n": 2}, {"n": "5"}, {"n": True}, {"n": 99999999999999999999}], [0, 2, 3, 4]),
    ({"n": "date"}, [{"n": "2024-02-30"}, {"n": 5}, {"n": "2024-02-29"}, {"n": "x"}], [0, 1, 3]),
    ({"n": "date_time"}, [{"n": "10:00"}, {"n": "2024-02-29T10:00:00"}, {"n": "2024-02-29T10:00:00Z"}, {"n": "2024-02-29 10:00:00+02:00"}, {"n": "2024-02-29T10:00:00+0200"}], [0, 4]),
    ({"n": "date_time"}, [{"n": text} for text in ("2024-3-5 1:02:03Z", "3/5/2024 1:02", "2024-03-05T01:02:03.1234567", "2024-03-05", "2024-03-05T01:02", "2024-W10-2T01:02:03", "2024-03-05x01:02:03", "2024-03-05T010203")], [3, 4, 5, 6, 7]),
    ({"n": "date"}, [{"n": "20240305"}, {"n": "2024-W10-2"}], [0, 1]),
    ({"n": "string"}, [{"n": 5}], [0]),
    ({"n": "float"}, [], []),
]


@pytest.mark.parametrize("backend", ["interpreter", "spark"])
def test_a_record_that_does_not_fit_its_schema_fails_alone(cxl, backend):
    cases = [{"id": str(at), "program": "emit x = 1", "schema": schema, "records": records} for at, (schema, records, _) in enumerate(MISFITS)]
    code, out, _ = cxl("eval", "--jsonl", "--backend", backend, "--engine", "sail", stdin="\n".join(map(json.dumps, cases)))
    assert code == 0
    for line, (schema, records, failing) in zip(out.splitlines(), MISFITS, strict=True):
        results = json.loads(line)["results"]
        assert len(results) == len(records)
        assert [index for index, one in enumerate(results) if "error" in one] == failing, schema
        assert all("field 'n'" in one["error"] for one in results if "error" in one)


def test_the_spark_backend_gives_the_same_answers(cxl):
    case = {"id": "a", "program": "emit x = n * 2", "schema": {"n": "int"}, "records": [{"n": 6}, {"n": 2**62}]}
    answers = [
        cxl("eval", "--jsonl", "--backend", backend, "--engine", "sail", stdin=json.dumps(case))[1] for backend in ("interpreter", "spark")
    ]
    assert json.loads(answers[0])["results"][0] == [{"x": 12}]
    assert answers[0] == answers[1]


BROKEN = """
import dataclasses, sys
from pyspark.sql import functions as F
from cxl.cli import main
from cxl.spark import cases

planned = cases._plan

def plan(spark, case, context):
    made = planned(spark, case, context)
    return dataclasses.replace(made, frame=made.frame.filter(F.raise_error(F.lit("out of order")))) if "broken" in case.program.text else made

cases._plan = plan
sys.exit(main(sys.argv[1:]))
"""


def broken(*words, stdin=""):
    """Run the command in a process of its own, since it keeps its session; programs that speak of `broken` end the job that they are part of."""
    done = subprocess.run([sys.executable, "-c", BROKEN, *words], input=stdin, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("engine", ["sail", "spark"])
def test_a_case_that_the_engine_fails_on_takes_no_other_answer_with_it(engine):
    cases = [{"id": f"c{n}", "program": f"emit {'broken' if n in (2, 5) else 'x'} = n + {n}", "schema": {"n": "int"}, "records": [{"n": 1}]} for n in range(7)]
    code, out, err = broken("eval", "--jsonl", "--backend", "spark", "--engine", engine, stdin="\n".join(map(json.dumps, cases)))
    assert code == 70
    assert {one["id"]: one["results"] for one in map(json.loads, out.splitlines())} == {f"c{n}": [[{"x": n + 1}]] for n in (0, 1, 3, 4, 6)}
    assert [line.partition(":")[2].split(":")[0] for line in err.splitlines() if line.startswith("error:")] == [f" the engine failed on case 'c{n}'" for n in (2, 5)]
    assert err.count("out of order") >= 2


def test_a_program_that_the_engine_fails_on_has_no_answer():
    code, out, err = broken("eval", "-e", "emit broken = n", "--field", "n=1", "--backend", "spark", "--engine", "sail")
    assert (code, out) == (70, "")
    assert "the engine failed on the program" in err
    assert "out of order" in err


@pytest.mark.parametrize("module", ["cxl", "cxl.cli"])
def test_the_package_runs_as_the_command(module):
    done = subprocess.run([sys.executable, "-m", module, "eval", "-e", "emit x = 1"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, json.loads(done.stdout), done.stderr) == (0, {"x": 1}, "")
    assert subprocess.run([sys.executable, "-m", module, "eval", "-e", "emit x ="], cwd=ROOT, capture_output=True, check=False).returncode == 1


# check, fmt, fn ---------------------------------------------------------------------------------------------------------


def test_check_says_ok_or_shows_every_error(cxl, tmp_path):
    (tmp_path / "good.cxl").write_text("filter amount > 0\nemit x = amount * rate", "utf-8")
    (tmp_path / "bad.cxl").write_text('emit x = "a" + 1\nemit y = )', "utf-8")
    assert cxl("check", "good.cxl") == (0, "ok: good.cxl is valid\n", "")
    code, out, err = cxl("check", "good.cxl", "bad.cxl")
    assert (code, out) == (1, "ok: good.cxl is valid\n")
    assert "bad.cxl:1:14" in err
    assert "bad.cxl:2:10" in err


def test_check_with_fields_knows_their_types(cxl, tmp_path):
    (tmp_path / "p.cxl").write_text("emit x = amoutn\nemit y = amount.upper()", "utf-8")
    code, _, err = cxl("check", "p.cxl", "--field", "amount=int")
    assert code == 1
    assert "did you mean 'amount'?" in err
    assert "method 'upper' expects String, got Int" in err
    assert cxl("check", "p.cxl", "--field", "amount=nothing")[0] == 2


@pytest.mark.parametrize(
    "text", ["emit t = sum(amount) / count(*)\nemit k = region", "emit x = $window.lag(1).amount", "fn f(x) = x + base\nlet base = 2"]
)
def test_check_takes_aggregates_windows_and_modules(cxl, tmp_path, text):
    (tmp_path / "p.cxl").write_text(text, "utf-8")
    assert cxl("check", "p.cxl")[0] == 0


def test_fmt_prints_checks_and_writes(cxl, tmp_path):
    file = tmp_path / "p.cxl"
    file.write_text("emit x=1 # one\n", "utf-8")
    assert cxl("fmt", "p.cxl") == (0, "emit x = 1  # one\n", "")
    assert cxl("fmt", "--check", "p.cxl") == (1, "", "p.cxl is not formatted\n")
    assert cxl("fmt", "--write", "p.cxl") == (0, "", "")
    assert file.read_text("utf-8") == "emit x = 1  # one\n"
    assert cxl("fmt", "--check", "p.cxl") == (0, "", "")
    assert cxl("fmt", "-", stdin="let  a=1") == (0, "let a = 1\n", "")
    file.write_text("emit x = )", "utf-8")
    assert cxl("fmt", "p.cxl")[0] == 1


def test_fn_lists_every_builtin_and_explains_one(cxl):
    code, out, _ = cxl("fn")
    assert code == 0
    for name in (
        "upper",
        "round_to",
        "diff_months",
        "try_datetime",
        "is_null",
        "parent_name",
        "flat_map",
        "remove_field",
        "weighted_avg",
        "not_exists",
    ):
        assert f"{name}(" in out
    code, out, _ = cxl("fn", "pad_left")
    assert code == 0
    assert out.startswith("String.pad_left(width: Int[, char: String]) -> String\n")
    assert "=>" in out


@pytest.mark.parametrize("form", ["json", "jsonl", "csv"])
def test_fn_tells_programs_the_same(cxl, form):
    """Every command takes `--format text|json|jsonl|csv` where it prints rows."""
    read = {"json": json.loads, "jsonl": lambda text: [json.loads(line) for line in text.splitlines()], "csv": lambda text: list(csv.DictReader(io.StringIO(text)))}[form]
    for words in ((), ("pad_left",)):
        code, out, _ = cxl("fn", *words, "--format", form)
        rows = [row for row in read(out) if row["name"] == "pad_left"]
        assert (code, [(row["kind"], row["receiver"], row["signature"]) for row in rows]) == (0, [("method", "String", "pad_left(width: Int[, char: String]) -> String")])


@pytest.mark.parametrize(
    ("words", "streams"),
    [(("check", "a.cxl"), ("ok: a.cxl is valid\n", "")), (("eval", "-e", "filter false"), ("", "note: record filtered by predicate or dropped as duplicate\n"))],
)
def test_notes_are_told_unless_it_is_quiet(cxl, tmp_path, words, streams):
    """Every command takes `-q/--quiet`, `-v`, `--no-color`."""
    (tmp_path / "a.cxl").write_text("emit a = 1\n")
    answers = [cxl(*words, *more)[1:] for more in ((), ("-v", "--no-color"), ("-q",))]
    assert answers == [answers[0]] * 2 + [tuple(text.replace(note, "") for text, note in zip(answers[0], streams, strict=True))]
    assert answers[0] != answers[2]
    assert cxl("check", "gone.cxl", "-q")[2] != ""


def test_a_start_takes_few_times_what_the_standard_library_takes():
    def seconds(program):
        """Of a processor: how long it takes beside other work says nothing of the command."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    library = min(seconds("import argparse, dataclasses, datetime, decimal, json, re, typing") for _ in range(5))
    command = min(seconds("import sys; from cxl.cli import main; sys.exit(main(['eval', '-e', 'emit x = 1']))") for _ in range(5))
    assert command < 9 * library  # 6 times at the time of writing
