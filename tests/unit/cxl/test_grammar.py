"""The parser that is made of the grammar: its tables, its examples of errors, and when lark is loaded."""

from __future__ import annotations

import subprocess
import sys

import lark
import pytest
from lark.parsers.lalr_analysis import Shift

from cxl.syntax import tables
from cxl.syntax.errors import NAMES
from cxl.syntax.parse import parse_program
from cxl.syntax.reader import _examples


def test_every_place_for_a_name_has_an_example():
    states = tables.parser().parser.parser._parse_table.states
    names_only = {state for state, actions in states.items() if actions.get("NAME", (None,))[0] is Shift and "INT" not in actions}
    assert names_only == {state for state, example in _examples().items() if example in NAMES}


def test_tables_of_another_lark_are_left_aside(monkeypatch):
    tables.parser.cache_clear()
    monkeypatch.setattr(lark, "__version__", "0")
    again = tables.parser()
    tables.parser.cache_clear()
    assert len(again.parser.parser._parse_table.states) == len(tables.parser().parser.parser._parse_table.states)


def test_a_text_is_what_loads_lark():
    code = "import sys, cxl; before = 'lark' in sys.modules; cxl.compile_program('emit x = 1'); print(before, 'lark' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["False", "True"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fn f(a, b, c d) = 1", "expected ',', found 'd'"),
        ("use a.b.c.5", "expected a module, found '5'"),
        ("emit each .x in y { }", "expected a name for the element, found '.'"),
        ("emit x.y = 1", "expected '=', found '.'"),
        ("emit $.* emit y = 1", "expected an input, found '$'"),
        ("emit x = match a { _ }", "'_' is only a pattern of match"),
        ("emit x = f(* 2)", "expected expression, found '*'"),
        ("emit each a in b outer emit", "expected '{', found 'emit'"),
        ("emit x = items.map(_ => 1)", "the parameter of a closure is always 'it', found '_'"),
    ],
)
def test_the_message_says_what_belongs_there(text, message):
    assert parse_program(text).errors[0].message == message


def test_words_of_context_are_names_elsewhere():
    text = "emit each = outer(in) + meta.each emit meta = info trace info - 1 emit x = match a { 1 => b outer => c, outer::d => 2 }"
    parsed = parse_program(text)
    assert parsed.errors == ()
    assert len(parsed.statements) == 4
