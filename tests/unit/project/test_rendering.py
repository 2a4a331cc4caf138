"""Diagnostics as text and as objects. The goldens are in `golden/`, one text for each case."""

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxl import CxlErrors, compile_program
from cxl.types.types import Schema
from errata.core.diagnostics import Diagnostic, Label, PipelineErrors, from_cxl, ordered, raise_errors
from errata.rendering.diagnostics import as_object, as_text, one_as_text
from errata.yaml import SourceText, parse_yaml

GOLDEN = Path(__file__).parent / "golden"

ORDERS = """\
nodes:
  - type: transform
    name: totals
    config:
      cxl: |
        # a remark
        emit total = amount + name
        emit next = amuont
"""


def _orders() -> tuple[Diagnostic, ...]:
    document = parse_yaml(ORDERS, file="pipelines/orders.yaml")
    path = ("nodes", 0, "config", "cxl")
    text = document.value["nodes"][0]["config"]["cxl"]
    with pytest.raises(CxlErrors) as caught:
        compile_program(text, Schema.of({"amount": "int", "name": "string"}), origin=document.origin(path))
    return tuple(from_cxl(one, node="totals") for one in caught.value.diagnostics)


def _two_files() -> tuple[Diagnostic, ...]:
    here = SourceText("vars:\n  limit: {type: string}\n", "acme.channel.yaml")
    label = Label("declared int", "pipeline.yaml", 3, 12, 1)
    place = here.span(16, 22)
    return (
        Diagnostic.at(
            place, "E107", "variable 'limit' is declared int, overridden as string", labels=(label,), help="give it int", lines=here
        ),
    )


CASES = {
    "language-in-a-block": _orders,
    "key-twice": lambda: parse_yaml("name: a\nother: b\nmore: c\nname: d\n", file="p.yaml").diagnostics,
    "label-in-another-file": _two_files,
    "wide-characters": lambda: parse_yaml("naïve: 日本 ${UNSET_NAME}\n", file="p.yaml", env={}).diagnostics,
    "tab-and-control": lambda: parse_yaml("a:\n\tb: 1\n", file="p\x1b[31m.yaml").diagnostics,
    "no-place": lambda: (Diagnostic("FILE-001", "cannot read p.yaml: No such file or directory", file="p.yaml"),),
    "long-line": lambda: parse_yaml(f"a: {'x' * 300} ${{UNSET_NAME}} {'y' * 300}", file="p.yaml", env={}).diagnostics,
    "warning-and-error": lambda: (
        Diagnostic("W104", "channel 'acme' is for other.yaml", "warning", "acme.channel.yaml", node=""),
        Diagnostic("E004", "there is no node 'ordrs'", node="totals", help="did you mean 'orders'?"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    assert as_text(CASES[name]()) == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def test_carets_stand_below_what_they_mean() -> None:
    found = _orders()[0]
    lines = one_as_text(found).splitlines()
    shown, marks = lines[3], lines[4]
    assert shown[marks.index("^")] == "+"
    assert (found.file, found.line, found.column) == ("pipelines/orders.yaml", 7, 29)


def test_object_has_all_members() -> None:
    found = as_object(_orders()[0])
    assert list(found) == ["code", "severity", "message", "file", "line", "column", "length", "node", "labels", "help"]
    assert found["node"] == "totals"


def test_colour_only_where_it_is_wanted() -> None:
    found = _orders()
    assert "\x1b" not in as_text(found)
    assert "\x1b[1;31merror" in as_text(found, color=True)


def test_order_is_that_of_the_file_and_nothing_comes_twice() -> None:
    late, early = (Diagnostic("E001", "x", file="f", line=line, column=1) for line in (9, 2))
    assert ordered([late, early, late]) == (early, late)


def test_warnings_do_not_raise() -> None:
    warning = Diagnostic("W103", "x", "warning")
    raise_errors([warning])
    with pytest.raises(PipelineErrors) as caught:
        raise_errors([warning, Diagnostic("E001", "y")])
    assert len(caught.value.diagnostics) == 2


@given(st.text(max_size=80), st.integers(1, 90), st.integers(0, 90), st.text(max_size=20), st.integers(1, 90))
def test_any_place_in_any_line_is_shown_without_control_characters(line: str, column: int, length: int, label: str, at: int) -> None:
    source = SourceText(line, "f")
    labels = (Label(label, "f", 1, at, 1),)
    text = one_as_text(Diagnostic("E001", label, "error", "f", 1, column, length, "n", labels, label, source))
    categories = {unicodedata.category(character) for character in text.replace("\n", "")}
    assert not categories & {"Cc", "Cs", "Zl", "Zp"}
    assert not {unicodedata.bidirectional(character) for character in text} & {
        "RLO",
        "LRO",
        "RLE",
        "LRE",
        "RLI",
        "LRI",
        "FSI",
        "PDI",
        "PDF",
    }
