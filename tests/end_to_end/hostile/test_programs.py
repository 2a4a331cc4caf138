"""Programs that are small as texts and large once they run: each ends soon, with what it asks for or with a diagnostic."""

import pytest

HEAD = """\
pipeline: { name: programs }
error_handling: { strategy: continue, dlq: { path: dlq.csv } }
nodes:
  - type: source
    name: s
    config: { name: s, type: csv, path: in.csv, schema: [{ name: a, type: int }, { name: b, type: string }] }
  - type: transform
    name: x
    input: s
    config:
      cxl: |
"""
TAIL = """\
  - type: output
    name: o
    input: x
    config: { name: o, type: csv, path: o.csv }
"""


def project(*lines):
    return {"pipeline.yaml": HEAD + "".join(f"        {line}\n" for line in lines) + TAIL, "in.csv": "a,b\n1,z\n"}


def chain(step, length):
    return [f"let x{number} = {step.format(f'x{number - 1}')}" for number in range(1, length + 1)]


@pytest.mark.parametrize(("emitted", "value"), [("x40", 2**40), ("1", 1)])
def test_a_chain_of_lets_that_each_read_the_one_before_twice(bed, emitted, value):
    ended = bed.run(project("let x0 = a", *chain("{0} + {0}", 40), f"emit z = {emitted}"))
    assert ended.code == 0
    assert (ended.folder / "o.csv").read_text() == f"a,b,z\n1,z,{value}\n"


def test_a_chain_of_calls_that_each_read_their_argument_twice(bed):
    ended = bed.run(project("fn d(x) = x + x", f"emit z = {'d(' * 30}a{')' * 30}", "filter z > 0"))
    assert (ended.folder / "o.csv").read_text() == f"a,b,z\n1,z,{2**30}\n"


@pytest.mark.parametrize("step", ["{0}.concat({0})", "{0} + {0}", '{0}.replace("z", {0})'])
def test_a_text_that_doubles_line_by_line_is_a_failure_of_its_record(bed, step):
    ended = bed.run(project("let x0 = b + b", *chain(step, 44), "emit z = x44.length()"), limit_mb=1024)
    assert ended.code == 2
    assert "exceeds the limit of 10485760" in (ended.folder / "dlq.csv").read_text()


def test_functions_that_call_the_one_before_twice_are_refused(bed):
    ended = bed.run(project("fn f0(x) = x + x", *(f"fn f{n}(x) = f{n - 1}(x) + f{n - 1}(x)" for n in range(1, 40)), "emit z = f39(a)"))
    assert ended.code == 1
    assert "error[CXL-T017]" in ended.err
    assert "Nothing was changed." in ended.err


@pytest.mark.parametrize(
    "line", [f'emit z = b.to_date("{"%Y-" * 133_000}")', f'emit z = now.format_date("{"%Y-" * 133_000}")', f'emit z = b.matches("{"a|b" * 200_000}")']
)
def test_a_literal_of_half_a_megabyte_is_refused(bed, line):
    ended = bed.run(project(line))
    assert ended.code == 1
    assert "error[CXL-P016]: string literal of " in ended.err
    assert "pipeline.yaml:12:" in ended.err


@pytest.mark.parametrize("line", ['emit z = now.format_date("{0}")', 'emit z = b.to_date("{0}")', 'emit z = b.matches("{0}")'])
def test_a_literal_as_long_as_it_may_be(bed, line):
    assert bed.run(project(line.format("%Y-" * 21_000))).code in (0, 2)


def test_two_thousand_emits(bed):
    ended = bed.run(project(*(f"emit z{number} = a" for number in range(2000))), seconds=10)
    assert ended.code == 0
    assert (ended.folder / "o.csv").read_text().splitlines()[1] == "1,z" + ",1" * 2000
