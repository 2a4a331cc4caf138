"""Rows as text, JSON, JSON lines and CSV."""

import csv
import datetime as dt
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.rendering.rows import cell, json_text, render
from errata.rendering.terminal import escaped, padded, width

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


@pytest.mark.parametrize(("fit", "widths"), [(300, [30, 200, 1]), (80, [30, 45, 1]), (60, [25, 30, 1]), (10, [16, 16, 1])])
def test_long_cells_are_cut_until_the_table_fits(fit: int, widths: list[int]) -> None:
    """The widest column is cut first, while it is the widest, down to 16 characters."""
    *_, line = "".join(render([{"a": "a" * 30, "b": "b" * 200, "n": 7}], "text", fit=fit)).splitlines()
    assert sorted(map(len, line.split())) == sorted(widths)
    assert line.split()[1].endswith("b..." if fit < 200 else "bbbb")


def test_without_a_width_nothing_is_cut() -> None:
    rows = [{"a": "a" * 300, "b": {"c": "c" * 500}}, {"a": None, "b": {"c": "d" * 900}}]
    head, rule, *lines = "".join(render(rows, "text")).splitlines()
    assert list(map(len, rule.split())) == [300, 908]
    assert [line.split() for line in (head, *lines)] == [["a", "b"], ["a" * 300, f'{{"c":"{"c" * 500}"}}'], [f'{{"c":"{"d" * 900}"}}']]


def test_wide_characters_are_cut_by_their_columns() -> None:
    *_, line = "".join(render([{"a": "漢" * 40}], "text", fit=21)).splitlines()
    assert (width(line), line[-3:]) == (21, "...")


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
