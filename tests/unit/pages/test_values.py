"""Values of data on pages: short, escaped, and quick whatever they hold."""

from __future__ import annotations

import time
from decimal import Decimal

import pytest

from errata.inspect.history import RowChange
from errata.pages.links import Links
from errata.pages.rendering import render
from errata.pages.values import MOST_COLUMNS, MOST_SIGNS, fields, lines, short, shown


@pytest.mark.parametrize(
    ("value", "text", "number"),
    [
        ("plain", "plain", False),
        (12_345, "12,345", True),
        (-1.5, "-1.5", True),
        (True, "true", False),
        (Decimal("12.50"), "12.50", True),
        ({"a": [1, None]}, '{"a":[1,null]}', False),
        (b"\x01\xff", "01ff", False),
        ("a\nb\x00\x1b[31m", "a\\nb\\x00\\x1b[31m", False),
        ("\u202eevil", "\\u202eevil", False),
    ],
)
def test_a_value_is_text_without_control_characters(value, text, number):
    found = shown(value)
    assert (found.text, found.number, found.null) == (text, number, False)


def test_null_is_no_text():
    assert (shown(None).null, shown(None).text) == (True, "")


def test_ten_megabytes_are_cut_at_once():
    began = time.process_time()
    found = shown("<script>" * 1_300_000)
    assert (len(found.text), found.cut) == (MOST_SIGNS + 1, True)
    assert found.text.endswith("…")
    assert time.process_time() - began < 0.5


def test_markup_in_values_and_names_is_escaped():
    change = RowChange(1, "ingest", "00", None, {"<b>name</b>": "<script>alert(1)</script>"})
    html = render("changes.html", view=Changes(lines([change])), links=Links(live=True))
    assert "<script>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "&lt;b&gt;name&lt;/b&gt;" in html


class Changes:
    """A page of changes of one node."""

    name, epoch, when, in_order = "<i>node</i>", 1, "", True

    def __init__(self, found):
        from errata.pages.paging import part

        self.lines, self.part = found, part(1, 50, 1)


def test_a_wide_row_shows_its_first_columns():
    row = {f"c{at}": at for at in range(3_000)}
    found = lines([RowChange(1, "ingest", "00", None, row)])
    assert (len(found.columns), found.hidden, len(fields(row))) == (MOST_COLUMNS, 3_000 - MOST_COLUMNS, MOST_COLUMNS)


def test_a_change_behind_the_cut_still_shows_as_one():
    long = "x" * 300
    [line] = lines([RowChange(2, "correction", "00", {"a": f"{long}1", "b": 1}, {"a": f"{long}2", "b": 1})]).rows
    assert [cell.differs for cell in line.cells] == [True, False]


def test_short_leaves_short_texts_alone():
    assert short("one") == "one"
    assert short("one two", 3) == "one…"
