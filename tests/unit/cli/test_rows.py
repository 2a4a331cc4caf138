"""Rows as text, JSON, JSON lines and CSV."""

import csv
import datetime as dt
import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.rendering.rows import Look, cell, fitted_widths, json_text, render
from errata.rendering.terminal import cut, escaped, ops_styled, padded, width

ROWS = [
    {"id": 1, "name": "Ana", "total": 1.5, "at": dt.datetime(2026, 1, 2, 3, 4, 5), "tags": ["a", {"b": None}]},
    {"id": 22, "name": None, "total": 10.0, "at": None, "tags": None, "more": b"\x01\xff"},
]


def test_text() -> None:
    assert "".join(render(ROWS, "text")).splitlines() == [
        "id  name  total  at                   tags              more",
        "--  ----  -----  -------------------  ----------------  ----",
        ' 1  Ana     1.5  2026-01-02T03:04:05  ["a",{"b":null}]',
        "22           10                                         01ff",
    ]


@pytest.mark.parametrize(("fit", "widths"), [(300, [30, 200, 1]), (80, [30, 45, 1]), (60, [25, 30, 1]), (30, [12, 13, 1]), (20, [12])])
def test_long_cells_are_cut_until_the_table_fits(fit: int, widths: list[int]) -> None:
    """The widest column is cut first, while it is the widest, down to 12 characters; then columns are left out."""
    hidden: list[str] = []
    *_, line = "".join(render([{"a": "a" * 30, "b": "b" * 200, "n": 7}], "text", look=Look(fit, hidden=hidden.extend))).splitlines()
    assert len(line) <= fit
    assert line.split()[0].endswith("…") == (fit <= 60)
    assert len(line.split()) + len(hidden) == 3


ANSWER = [{"epoch": 12, "op": "+C", "key": "0141320000" * 4, "cause": "correction", "data": '{"id":1,"name":"漢字"}'}, {"epoch": 12, "op": "-R", "key": "01", "cause": "ingest", "data": "{}"}]


def test_the_lead_comes_first_and_stays_whole() -> None:
    hidden: list[str] = []
    table = "".join(render(ANSWER, "text", look=Look(48, ("epoch", "op", "data"), ("cause",), hidden=hidden.extend)))
    assert table.splitlines() == [
        "epoch  op  data                    cause",
        "-----  --  ----------------------  ----------",
        '   12  +C  {"id":1,"name":"漢字"}  correction',
        "   12  -R  {}                      ingest",
    ]
    assert hidden == ["key"]


def test_a_table_that_fits_keeps_its_order() -> None:
    assert "".join(render(ANSWER, "text", look=Look(120, ("data",)))) == "".join(render(ANSWER, "text"))


def test_a_lead_that_is_wider_than_the_terminal_is_cut_or_kept() -> None:
    rows = [{"op": "+A", "data": "x" * 90, "cause": "ingest"}]
    *_, cut_line = "".join(render(rows, "text", look=Look(40, ("op", "data")))).splitlines()
    assert (width(cut_line), cut_line[-1]) == (40, "…")
    _, rule, kept = "".join(render(rows, "text", look=Look(40, ("op", "data"), keep=True))).splitlines()
    assert (len(rule), kept) == (40, f"+A  {'x' * 90}")


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(1, 80), min_size=1, max_size=12), st.integers(8, 200), st.lists(st.sampled_from(["a", "b", "c", "ab"]), max_size=3, unique=True))
def test_widths_fit_and_are_no_larger_than_needed(natural: dict[str, int], fit: int, lead: list[str]) -> None:
    found = fitted_widths(natural, fit, lead)
    assert sum(found.values()) + 2 * (len(found) - 1) <= fit
    assert all(0 < columns <= natural[name] for name, columns in found.items())
    first = [name for name in lead if name in natural]
    if sum(natural[name] + 2 for name in first) <= fit:
        assert all(found[name] == natural[name] for name in first)
    if sum(natural.values()) + 2 * (len(natural) - 1) <= fit:
        assert found == natural


def test_ops_and_verdicts_are_coloured_and_stay_aligned() -> None:
    rows = [{"op": "+A", "data": "+A"}, {"op": "-R", "data": "x"}]
    plain, colored = ("".join(render(rows, "text", look=Look(color=color))) for color in (False, True))
    assert re.sub("\x1b\\[[0-9;]*m", "", colored) == plain
    assert colored.splitlines()[2:] == ["\x1b[32m+A\x1b[0m  +A", "\x1b[31m-R\x1b[0m  x"]
    assert ops_styled("Epoch 2: +A 1,001, -R 2", on=True) == "Epoch 2: \x1b[32m+A\x1b[0m 1,001, \x1b[31m-R\x1b[0m 2"
    assert ops_styled("a+A 1", on=True) == "a+A 1"


@pytest.mark.parametrize(
    ("text", "columns"),
    [("ab", 2), ("漢字", 4), ("e\u0301", 1), ("👍", 2), ("❤\ufe0f", 2), ("a\u200bb", 2), ("ｱ", 1), ("한", 2), ("\u1112\u1161\u11ab", 2), ("…", 1), ("", 0)],
)
def test_the_columns_of_a_text(text: str, columns: int) -> None:
    assert width(text) == columns


@given(st.text(max_size=20), st.integers(1, 20))
def test_a_text_is_cut_to_columns(text: str, columns: int) -> None:
    short = cut(text, columns)
    assert width(short) <= columns
    assert short == text if width(text) <= columns else text.startswith(short.removesuffix("…"))


def test_without_a_width_nothing_is_cut() -> None:
    rows = [{"a": "a" * 300, "b": {"c": "c" * 500}}, {"a": None, "b": {"c": "d" * 900}}]
    head, rule, *lines = "".join(render(rows, "text")).splitlines()
    assert list(map(len, rule.split())) == [300, 908]
    assert [line.split() for line in (head, *lines)] == [["a", "b"], ["a" * 300, f'{{"c":"{"c" * 500}"}}'], [f'{{"c":"{"d" * 900}"}}']]


def test_wide_characters_are_cut_by_their_columns() -> None:
    *_, line = "".join(render([{"a": "漢" * 40}], "text", look=Look(21))).splitlines()
    assert (width(line), line[-2:]) == (21, "漢…")


def test_csv() -> None:
    assert "".join(render(ROWS, "csv", ("id", "op"))).splitlines() == [
        "id,op,name,total,at,tags,more",
        '1,,Ana,1.5,2026-01-02T03:04:05,"[""a"",{""b"":null}]",',
        "22,,,10,,,01ff",
    ]


def test_json_and_jsonl() -> None:
    assert json.loads("".join(render(ROWS, "json"))) == [json.loads(line) for line in render(ROWS, "jsonl")]
    assert json.loads(next(iter(render(ROWS, "jsonl"))))["at"] == "2026-01-02T03:04:05"


def test_no_rows() -> None:
    assert "".join(render([], "json")) == "[]\n"
    assert "".join(render([], "jsonl")) == ""
    assert "".join(render([], "csv", ("a", "b"))) == "a,b\n"
    assert "".join(render([], "text", ("a", "b"))) == "a  b\n-  -\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e21, "1000000000000000000000"), (1e-7, "0.0000001"), (-0.0, "-0"), (0.1, "0.1"), (True, "true"), (float("nan"), "NaN")],
)
def test_cell(value: object, text: str) -> None:
    assert cell(value) == text


def test_json_of_what_json_does_not_have() -> None:
    assert json_text({"n": 2**70, "x": float("inf"), "s": "a\ud800"}) == '{"n":"1180591620717411303424","x":null,"s":"a?"}'


def test_data_cannot_drive_the_terminal() -> None:
    assert escaped("a\x1b[31m\r\n\u202eb") == "a\\x1b[31m\\r\\n\\u202eb"
    assert "\x1b" not in "".join(render([{"\x1bname": "\x1b]0;x\x07"}], "text"))


def test_wide_characters_keep_columns_aligned() -> None:
    lines = "".join(render([{"a": "日本", "b": 1}, {"a": "x", "b": 2}], "text")).splitlines()
    assert {width(line) for line in lines} == {7}
    assert padded("日本", 6) == "日本  "


@given(st.lists(st.dictionaries(st.text(min_size=1, max_size=4), st.text(max_size=8) | st.integers() | st.none(), max_size=4), max_size=6))
def test_any_rows_can_be_read_back(rows: list[dict[str, object]]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = "".join(render(rows, "text")).split("\n")
    assert len(lines) == (len(rows) + 3 if names else len(rows) + 1)
    if names:
        table = list(csv.reader(io.StringIO("".join(render(rows, "csv")), newline="")))
        assert table[0] == names
        assert [[cell(row.get(name)) for name in names] for row in rows] == [row or [""] for row in table[1:]]
