"""Values of data on pages: short, escaped, and quick whatever they hold."""

from __future__ import annotations

import time
from decimal import Decimal

import pytest

from errata.inspect.history import RowChange
from errata.pages.links import Links
from errata.pages.rendering import render
from errata.pages.values import MOST_COLUMNS, MOST_SIGNS, fields, figure, lines, paragraphs, short, shown


@pytest.mark.parametrize(
    ("value", "text", "number"),
    [
        ("plain", "plain", False),
        (12_345, "12345", True),
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


@pytest.mark.parametrize(
    ("value", "text"),
    [(1, "1"), (-1234, "-1,234"), (1234567, "1,234,567"), (Decimal("1234567.123456"), "1,234,567.123456"), (123456.75, "123,456.75"), (Decimal("-999.5"), "-999.5"), (None, ""), (float("inf"), "inf")],
)
def test_a_figure_has_separators_of_thousands_before_the_point(value, text):
    assert figure(value).text == text


def test_line_ends_of_a_text_stay_and_other_control_characters_do_not():
    assert paragraphs("a\nb\x1b\tc", 100) == "a\nb\\x1b\\tc"
    assert paragraphs("abc", 2) == "ab…"


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
