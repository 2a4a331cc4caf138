"""Diagnostics of the language: every code has an example that shows it, a repaired one, and a golden text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxl import CxlErrors, Schema, Span, TextOrigin, compile_program
from cxl.codes import CODES, SETTINGS, find, page
from cxl.compiler import findings_of
from cxl.diagnostics.diagnostics import MOST_SHOWN, Diagnostic, Label, did_you_mean

HERE = Path(__file__).parent
GOLDEN = HERE / "golden" / "codes.txt"
SOURCES = sorted((HERE.parents[2] / "cxl").rglob("*.py"))


@pytest.mark.parametrize("entry", CODES, ids=lambda entry: entry.code)
def test_the_example_has_the_code_and_the_repaired_one_has_none(entry):
    assert [one.code for one in findings_of(entry.wrong, SETTINGS[entry.setting])] == [entry.code]
    assert findings_of(entry.right, SETTINGS[entry.repaired_setting or entry.setting]) == ()


def test_every_code_of_the_source_is_explained_and_every_explained_one_is_used():
    used = {
        code for path in SOURCES if path.name != "codes.py" for code in re.findall(r'"(CXL-[A-Z]\d{3}|E\d{3})"', path.read_text("utf-8"))
    }
    assert used == {entry.code for entry in CODES}


def rendered(entry):
    shown = findings_of(entry.wrong, SETTINGS[entry.setting], TextOrigin(entry.wrong, "example.cxl"))
    return "\n".join(one.render() for one in shown)


@pytest.mark.parametrize("entry", CODES, ids=lambda entry: entry.code)
def test_golden(entry):
    goldens = dict(part.split("\n", 1) for part in GOLDEN.read_text("utf-8").split("=== ")[1:])
    assert rendered(entry) == goldens[entry.code].rstrip("\n")


def test_a_page_has_the_example_and_its_repair():
    text = page(find("CXL-T004"))
    assert text.startswith("CXL-T004: ")
    assert "    emit x = amount + name\n" in text
    assert "    emit x = amount.to_string() + name\n" in text
    assert find("CXL-X999") is None


# Places -----------------------------------------------------------------------------------------------------------------


def test_the_excerpt_has_carets_and_labels():
    with pytest.raises(CxlErrors) as caught:
        compile_program("emit a = 1\nemit total = amount + name", Schema.of({"amount": "int", "name": "string"}))
    assert str(caught.value).splitlines() == [
        "error[CXL-T004]: cannot apply '+' to Int and String",
        " --> <inline>:2:21",
        "  |",
        "2 | emit total = amount + name",
        "  |              ------ ^ ---- String",
        "  |              Int",
        "  = help: convert one operand: .to_int() or .to_string()",
    ]


@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=6), max_size=6),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_lines_and_columns_count_from_one_in_characters(lines, end):
    text, origin = end.join(lines), TextOrigin(end.join(lines), "f.cxl")
    offset = 0
    for number, line in enumerate(lines, 1):
        for column in range(len(line)):
            place = origin.locate(offset + column)
            assert (place.file, place.line, place.column) == ("f.cxl", number, column + 1)
        assert origin.line_text(number) == line
        offset += len(line) + len(end)
    assert origin.locate(len(text) + 5).line == max(len(lines), 1)


class Block:
    """A program in a YAML block scalar: its lines are indented and begin on line 25."""

    def __init__(self, text):
        self.lines = text.split("\n")

    def locate(self, offset):
        place = TextOrigin("\n".join(self.lines), "pipelines/orders.yaml").locate(offset)
        return type(place)(place.file, place.line + 24, place.column + 6)

    def line_text(self, line):
        return "      " + self.lines[line - 25]


def test_places_are_those_of_the_file_that_holds_the_program():
    text = "emit a = 1\nemit total = amount + name"
    with pytest.raises(CxlErrors) as caught:
        compile_program(text, Schema.of({"amount": "int", "name": "string"}), origin=Block(text))
    lines = caught.value.diagnostics[0].render('node "totals"').splitlines()
    assert lines[1:5] == [
        '  --> pipelines/orders.yaml:26:27   (node "totals")',
        "   |",
        "26 |       emit total = amount + name",
        "   |                    ------ ^ ---- String",
    ]


def test_long_lines_are_cut_around_the_place():
    with pytest.raises(CxlErrors) as caught:
        compile_program("emit x = 1" + " + 1" * 5_000 + " + zzz" + " + 1" * 5_000)
    lines = str(caught.value).splitlines()
    assert max(map(len, lines)) < 200
    assert lines[3][lines[4].index("^") :].startswith("zzz")


def test_many_errors_are_counted():
    with pytest.raises(CxlErrors) as caught:
        compile_program("emit x = zzz\n" * (MOST_SHOWN + 7))
    assert len(caught.value.diagnostics) == MOST_SHOWN + 7
    assert str(caught.value).endswith("... and 7 more")


def test_without_an_origin_a_diagnostic_still_renders():
    found = Diagnostic("CXL-T004", "message", Span(3, 5), labels=(Label(Span(0, 1), "Int"),), help="help")
    assert found.render() == "error[CXL-T004]: message\n --> <inline>:1:4\n  = help: help"


ADVICE = """
s + 1                   | .to_int() or .to_string()
s * 2                   | convert one operand: .to_int()
s - 0.5                 | convert one operand: .to_float()
p == 1                  | .to_int() or .to_bool()
d == "2024-01-01"       | .to_date() or .to_string()
d < m                   | .to_date() or .to_datetime()
d - d                   | diff_days
d + 1                   | .add_days(n)
p + p                   | '+' is not defined for Bool
i and p                 | both operands must be Bool
i.upper()               | convert it: .to_string()
s.abs()                 | convert it: .to_int() or .to_float()
d.add_days(1.5)         | convert it: .to_int()
i.min("a")              | convert it: .to_int() or .to_float()
i = 1                   | equality is written ==
i <> 1                  | unequal is written !=
match i { 1 -> 2 }      | the arrow is written =>
i is null               | value.is_null()
s like "x"              | contains
p AND p                 | did you mean 'and'?
TRUE                    | did you mean 'true'?
None                    | write null
"""


@pytest.mark.parametrize("line", ADVICE.strip().splitlines())
def test_the_help_says_what_to_write(line):
    text, _, help = (part.strip() for part in line.rpartition("|"))
    schema = Schema.of({"i": "int", "s": "string", "p": "bool", "d": "date", "m": "date_time"})
    with pytest.raises(CxlErrors) as caught:
        compile_program(f"emit x = {text}", schema)
    assert help in caught.value.diagnostics[0].help


def test_a_trace_level_is_named():
    with pytest.raises(CxlErrors, match="unknown trace level 'wrn'") as caught:
        compile_program('trace wrn "x"')
    assert caught.value.diagnostics[0].help == "did you mean 'warn'?"


def test_names_are_offered_when_they_are_near():
    assert did_you_mean("amoutn", ["price", "amount"]) == "did you mean 'amount'?"
    assert did_you_mean("AMOUNT", ["amount", "AMOUNTS"]) == "did you mean 'amount'?"
    assert did_you_mean("q", ["amount"]) == ""
