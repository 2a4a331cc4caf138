"""The parser: trees, recovery from errors, and no other failure for any text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxl import CxlErrors, Schema, compile_program
from cxl.syntax.canonical import canonical_text, expression_text
from cxl.syntax.parse import Parsed, parse_expression, parse_program
from cxl.syntax.reader import tokens_of
from tests.support import cxl_trees as trees
from tests.support.examples import examples

# written | the same with every operator in parentheses
PRECEDENCE = """
2 + 3 * 4                | 2 + (3 * 4)
10 - 2 - 3               | (10 - 2) - 3
a ?? b ?? c              | a ?? (b ?? c)
a + b ?? 0               | (a + b) ?? 0
a ?? 1 + 2               | a ?? (1 + 2)
a or b and c             | a or (b and c)
not a and b              | (not a) and b
not a == b               | (not a) == b
-a * b                   | (-a) * b
-a.abs()                 | -(a.abs())
a < b == c               | (a < b) == c
a + 1 > b * 2            | (a + 1) > (b * 2)
1 + if p then 2 else 3 + 4 | 1 + (if p then 2 else (3 + 4))
if a then b ?? c else d  | if a then (b ?? c) else d
a or b ?? c              | (a or b) ?? c
- - 5                    | -(-5)
2 - -3                   | 2 - (-3)
not not a                | not (not a)
a.b[0].c                 | ((a.b)[0]).c
if a then if b then 1 else 2 | if a then (if b then 1 else 2)
"""


@pytest.mark.parametrize("line", PRECEDENCE.strip().splitlines())
def test_precedence(line):
    written, grouped = (part.strip() for part in line.split("|"))
    assert parse_expression(written).expression == parse_expression(grouped).expression


# One program a line, "/" is a line break: the number of statements, or the code, line and column of each error.
STATEMENTS = r"""
                                                 | 0
# only a comment                                 | 0
let x = 1 let y = 2 emit z = x + y               | 3
emit a = 10 / - 3 / emit b = n / ?? 5            | 2
emit a = s / .trim() / .upper()                  | 1
emit a = if n then 1 / else 2                    | 1
emit each = info + outer emit meta = sum         | 2
emit meta q = 1 emit $meta.q = 2                 | 2
distinct distinct by k filter x                  | 3
trace "a" trace warn "b" trace info if c then "d" trace info | 4
use a.b.c as d use e                             | 2
emit x = a.filter(it => it.match[it])            | 1
emit each x in a outer { emit each y in x { } }  | 1
emit x = count(*) + count()                      | 1
emit d = #2024-12-31# # a date                   | 1
emit x = [] / emit y = [1, [a],] / emit z = {}   | 3
emit x = {type: 1, if: 2, "a b": 3, [k]: 4,}.a   | 1
emit x = [for for for in in if if] / emit y = 1  | CXL-P010 1:34
emit x = [for for for in in if not for] / emit y = for + in | 2
emit x = match ({a: 1}) { {b: 2} => {}, [1] => [2] } | 1
emit x = match a { 1 => b {c: 2} => 3 for => 4 } | 1
emit each x in ({a: [1]}).a { emit y = {b: x} }  | 1
trace warn {a: 1} / trace warn ([1]) / trace warn[1] | 3
emit x = a / [1] / emit y = 2                    | 2
emit x = [1 2] / emit y = [1                     | CXL-P001 1:13, CXL-P001 2:12
emit x = {a} / emit y = {a: } / emit z = {1: 2}  | CXL-P001 1:12, CXL-P010 2:14, CXL-P001 3:11
emit x = {a: 1 b: 2} / emit y = {_: 1}           | CXL-P001 1:16, CXL-P001 2:11
emit x = {let: 1 filter: 2} / emit y = 3 filter  | CXL-P001 1:18, CXL-P010 2:18
emit x = [i of xs] / emit y = [i for i of xs] / emit z = [i for 1 in xs] | CXL-P001 1:13, CXL-P001 2:19, CXL-P001 3:17
emit x = [i for i in xs, 2] / emit y = [i for i in xs if ] | CXL-P001 1:24, CXL-P010 2:28
emit x = match {a: 1} { _ => 1 } / emit y = 2    | CXL-P001 1:18
emit each x in {a: 1}.a { emit y = x } / emit z = ) | CXL-P010 1:16, CXL-P010 2:10
emit x =                                         | CXL-P010 1:9
emit x = 1 / }                                   | CXL-P011 2:1
emit x = ) / emit y = ] / emit z = 1             | CXL-P010 1:10, CXL-P010 2:10
emit x = match a { 1 => } / emit y = 2           | CXL-P010 1:25
emit each x of xs { / emit a = 1 / } / emit = 2  | CXL-P001 1:13, CXL-P001 4:6
emit each x in xs { / emit = 1 / emit b = 2 / } / emit c = 3 | CXL-P001 2:6
emit each x in xs { emit a = 1                   | CXL-P001 1:31
amount + 1                                       | CXL-P011 1:1
emit x = a && b / emit y = !a / emit z = a || b  | CXL-P007 1:12, CXL-P007 2:10, CXL-P007 3:12
emit x = now()                                   | CXL-P001 1:13
emit x = _                                       | CXL-P010 1:10
emit x = items.map(item => item)                 | CXL-P012 1:20
let f = it => it                                 | CXL-P012 1:12
emit x = 1_000                                   | CXL-P004 1:10
emit x = 9223372036854775808                     | CXL-P005 1:10
emit x = -9223372036854775808                    | CXL-P005 1:11
#1 note                                          | CXL-P006 1:1
emit $record.x = 1                               | CXL-P014 1:6
use shared.*                                     | CXL-P013 1:12
emit é = 1                                       | CXL-P002 1:6
emit x = "abc / emit y = 'd                      | CXL-P003 1:10, CXL-P003 2:10
"""


@pytest.mark.parametrize("line", [line for line in STATEMENTS.split("\n") if "|" in line])
def test_statements_and_their_errors(line):
    written, _, expected = line.rpartition("| ")
    parsed = parse_program(written.strip().replace(" / ", "\n"))
    shown = ", ".join(f"{error.code} {_place(written, error)}" for error in parsed.errors)
    assert (shown or str(len(parsed.statements))) == expected.strip()


def _place(written, error):
    before = written.strip().replace(" / ", "\n")[: error.span.start]
    return f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


def test_a_backslash_before_an_ordinary_character_stays():
    values = [parse_expression(text).expression.value for text in (r'"\d+\n\"\\"', r"'it\'s'")]
    assert values == ['\\d+\n"\\', "it's"]


def test_literals_are_intact_in_every_script():
    assert parse_expression('"café ☕ 日本 😀"').expression.value == "café ☕ 日本 😀"


def test_syntax_errors_say_what_could_have_come_there():
    (error,) = parse_program("emit x = if a 1 else 2").errors
    assert error.message == "expected 'then', found '1'"
    assert "if condition then value" in error.help


@given(trees.programs)
def test_what_is_written_is_read_back(program):
    parsed = parse_program(canonical_text(Parsed(program, None, ())))
    assert parsed.errors == ()
    assert parsed.statements == program


@given(trees.expressions)
def test_an_expression_is_read_back(expression):
    assert parse_expression(expression_text(expression)).expression == expression


@given(trees.programs, st.data())
def test_blanks_line_ends_and_comments_only_separate(program, data):
    text = canonical_text(Parsed(program, None, ()))
    tokens = tokens_of(text)
    spaced = "".join(token + data.draw(trees.separators) for token in tokens[:-1])
    assert parse_program(spaced).statements == parse_program(text).statements


SCHEMA = Schema.of({"amount": "int", "name": "string", "items": "array", "day": "date", "m": "map"})


def compile_or_diagnose(text):
    """Compile; the time it took. A program that does not compile has diagnostics with places inside of the text."""
    start = time.process_time()
    found = ()
    try:
        compile_program(text, SCHEMA).normal_text()
    except CxlErrors as errors:
        found = errors.diagnostics
        shown = str(errors)
        assert shown.startswith("error[")
    assert all(0 <= one.span.start <= len(text) and one.position.line >= 1 for one in found)
    return time.process_time() - start


@given(st.lists(st.sampled_from(trees.WORDS), max_size=40).map(" ".join) | st.text(max_size=60))
def test_any_text_ends_in_a_program_or_in_diagnostics(text):
    assert compile_or_diagnose(text) < 2


MUTATIONS = 10
"""Damaged texts of each program: to draw a program takes far longer than to read it."""


@examples(500)
@given(trees.programs, st.randoms(use_true_random=True))
def test_a_mutated_program_ends_in_a_program_or_in_diagnostics(program, chance):
    text = canonical_text(Parsed(program, None, ()))
    for _ in range(MUTATIONS):
        assert compile_or_diagnose(mutated(text, chance)) < 2


def mutated(text, chance):
    """The text with up to four pieces of up to three characters replaced by words of the language or by nothing."""
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, len(text))
        text = text[:at] + chance.choice(["", *trees.WORDS]) + text[at + chance.randint(0, 3) :]
    return text


DEEP = {
    "terms": ("emit x = amount" + " + amount" * 20_000, None),
    "conditions": ("filter true" + " and true" * 20_000, None),
    "statements": ("emit x = 1\n" * 5_000, None),
    "arguments": ("emit x = name.concat(" + ", ".join(["name"] * 20_000) + ")", None),
    "parentheses": ("emit x = " + "(" * 20_000 + "1" + ")" * 20_000, "CXL-P008"),
    "signs": ("emit x = " + "-" * 20_000 + "1", "CXL-P008"),
    "methods": ("emit x = name" + ".trim()" * 20_000, "CXL-P008"),
    "alternatives": ("emit x = amount" + " ?? amount" * 20_000, "CXL-P008"),
    "branches": ("emit x = " + "if true then 1 else " * 20_000 + "2", "CXL-P008"),
    "blocks": ("emit each x in items {" * 20_000 + "}" * 20_000, "CXL-P008"),
    "arrays": ("emit x = " + "[" * 20_000 + "]" * 20_000, "CXL-P008"),
    "maps": ("emit x = " + "{a: " * 20_000 + "1" + "}" * 20_000, "CXL-P008"),
    "keys": ("emit x = " + "{[" * 20_000, "CXL-P008"),
    "comprehensions": ("emit x = " + "[" * 20_000 + "1" + " for a in items]" * 20_000, "CXL-P008"),
    "64 literals": ("emit x = " + "[{a: " * 32 + "1" + "}]" * 32, None),
    "65 literals": ("emit x = " + "[{a: " * 32 + "[]" + "}]" * 32, "CXL-P008"),
    "64 literals in parentheses": ("emit x = " + "([" * 64 + "1" + "])" * 64, None),
    "elements": ("emit x = [" + ", ".join(["amount"] * 20_000) + "]", None),
    "entries": ("emit x = {" + ", ".join(f"k{at}: {at}" for at in range(10_000)) + "}", None),
    "arrays beside each other": ("emit x = [" + ", ".join(["[1]"] * 5_000) + "]", None),
    "arms of arrays": ("emit x = match items { " + "[1] => 2, " * 300 + "_ => 3 }", None),
    "indices": ("emit x = items" + "[0]" * 250, None),
    "nested 250": ("emit x = " + "(" * 250 + "1" + ")" * 250, None),
    "huge integer": ("emit x = " + "9" * 1_000_000, "CXL-P005"),
    "huge string": ('emit x = "' + "a" * 1_000_000 + '"', "CXL-P016"),
}


@pytest.mark.parametrize("what", DEEP)
def test_large_programs_end_in_a_value_or_a_diagnostic(what):
    text, code = DEEP[what]
    try:
        compile_program(text, SCHEMA)
        found = None
    except CxlErrors as errors:
        found = errors.diagnostics[0].code
    assert found == code
