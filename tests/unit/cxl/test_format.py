"""The formatter keeps the program and its comments."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxl import CxlErrors, compile_program
from cxl.syntax.canonical import canonical_text
from cxl.syntax.format import WIDTH, format_text
from cxl.syntax.parse import Parsed, comments, parse_program
from cxl.syntax.reader import tokens_of
from tests.support import cxl_trees as trees


@st.composite
def laid_out(draw):
    """A program with blanks, line ends and comments between its tokens."""
    tokens = tokens_of(canonical_text(Parsed(draw(trees.programs), None, ())))
    return "".join(token + draw(trees.separators) for token in tokens[:-1])


@given(laid_out())
def test_the_tree_stays(text):
    assert parse_program(format_text(text)).statements == parse_program(text).statements


@given(laid_out())
def test_formatting_twice_changes_nothing(text):
    once = format_text(text)
    assert format_text(once) == once


@given(laid_out())
def test_comments_stay_in_order(text):
    before, after = (comments(one) for one in (text, format_text(text)))
    assert [comment.text for comment in after] == [comment.text for comment in before]


@given(laid_out(), laid_out())
def test_the_fingerprint_sees_the_tree_and_nothing_else(one, other):
    same = parse_program(one).statements == parse_program(other).statements
    assert (canonical_text(parse_program(one)) == canonical_text(parse_program(other))) == same


FORMATTED = [
    ("", ""),
    ("emit  x=1+2*3", "emit x = 1 + 2 * 3\n"),
    ("emit x = ((1 + 2)) * (3)", "emit x = (1 + 2) * 3\n"),
    ("emit x = (a ?? b) ?? c", "emit x = (a ?? b) ?? c\n"),
    ("let a=1 let b=2", "let a = 1\nlet b = 2\n"),
    ("emit x = 'it\\'s \"q\"'", 'emit x = "it\'s \\"q\\""\n'),
    ('filter s.matches("\\d+")', 'filter s.matches("\\d+")\n'),
    ("# top\n\n\n\nemit a = 1   # why\n# end", "# top\n\nemit a = 1  # why\n# end\n"),
    ("emit each x in xs outer {\n\n emit y = x }", "emit each x in xs outer {\n  emit y = x\n}\n"),
    ('emit a = match s { "x" => 1, _ => 2, }', 'emit a = match s {\n  "x" => 1,\n  _ => 2\n}\n'),
    ("emit $meta.q = 1", "emit meta q = 1\n"),
    ("emit x = if a then (if b then 1) else 2", "emit x = if a then (if b then 1) else 2\n"),
    ("emit x = 100000000000000000000000.0", "emit x = 100000000000000000000000.0\n"),
    ("emit x=[ 1,2 , ]", "emit x = [1, 2]\n"),
    ("emit x = { a : 1,'b c':2, \"if\": 3, [ k ]:4, '':5, _a: 6, '_': 7 }", 'emit x = {a: 1, "b c": 2, if: 3, [k]: 4, "": 5, _a: 6, "_": 7}\n'),
    ("emit x = [ (i*2) for i in(xs) if (i>0) ]", "emit x = [i * 2 for i in xs if i > 0]\n"),
    ("emit x = match ({a: 1}.b) { _ => 1 }", "emit x = match ({a: 1}.b) { _ => 1 }\n"),
    ("emit each x in (({}.b)) { }", "emit each x in ({}.b) {\n}\n"),
    ("trace warn ([1]) trace ([1])", "trace warn ([1])\ntrace [1]\n"),
    ("emit x = #2024-1-5#", "emit x = #2024-01-05#\n"),
]


@pytest.mark.parametrize(("text", "formatted"), FORMATTED)
def test_style(text, formatted):
    assert format_text(text) == formatted


def test_long_statements_are_broken_at_their_loosest_operators():
    parts = [f"a_rather_long_name_{index}" for index in range(8)]
    formatted = format_text("emit total = " + " + ".join(parts))
    assert formatted.splitlines()[0] == f"emit total = {parts[0]}"
    assert formatted.splitlines()[1:] == [f"  + {part}" for part in parts[1:]]
    assert max(map(len, formatted.splitlines())) <= WIDTH


def test_long_arrays_and_maps_have_a_part_a_line():
    names = [f"a_rather_long_name_{index}" for index in range(8)]
    assert format_text(f"emit x = [{','.join(names)}]").splitlines() == ["emit x = [", *(f"  {name}," for name in names[:-1]), f"  {names[-1]}", "]"]
    entries = [f"{name}: {index}" for index, name in enumerate(names)]
    assert format_text(f"emit x = {{{','.join(entries)}}}").splitlines() == ["emit x = {", *(f"  {one}," for one in entries[:-1]), f"  {entries[-1]}", "}"]


def test_a_program_in_error_is_not_formatted():
    with pytest.raises(CxlErrors, match="CXL-P010"):
        format_text("emit x = )")


def test_normal_text_leaves_out_what_does_not_count():
    one = compile_program("emit a = 1 + 2 # sum\n\nemit b=a")
    assert one.normal_text() == compile_program("emit a = (1 + 2)\nemit b = a").normal_text()
    assert one.normal_text() != compile_program("emit a = 2 + 1\nemit b = a").normal_text()
