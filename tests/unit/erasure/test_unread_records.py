"""Possible values of columns in a record that cannot be read: the truth is always among them, and hardly anything else."""

from __future__ import annotations

import csv
import io
import json
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxl.types.types import Kind, Type
from errata.erasure.unread_records import Layout, NamingColumn, readings, typed
from tests.support.examples import examples

ORDER = Layout(("day", "id", "customer", "amount"))
ID = NamingColumn("id", Type(Kind.INT), frozenset({"id"}), ())
CUSTOMER = NamingColumn("customer", Type(Kind.STRING), frozenset({"customer", "name"}), ())
CELLS = st.text("ab1 ,;\"'é-", max_size=6)


def said(text: str, *columns: NamingColumn, layout: Layout | None = None) -> list[tuple[object, ...]]:
    """The readings of a text, typed."""
    rows = typed(columns, list(readings(columns, text, layout)))
    return [tuple(row[column.name] for column in columns) for row in rows.to_pylist()]


def line(cells: list[str], delimiter: str = ",") -> str:
    written = io.StringIO()
    csv.writer(written, delimiter=delimiter, lineterminator="").writerow(cells)
    return written.getvalue()


@examples(60)
@given(st.integers(0, 10**6), st.text("abcé,; '-", min_size=4, max_size=12), st.lists(CELLS, min_size=2, max_size=2), st.lists(st.tuples(st.integers(0, 4), CELLS), max_size=3), st.sampled_from(",;|\t~^"))
def test_a_line_with_further_cells_may_say_what_it_says(number: int, name: str, others: list[str], further: list[tuple[int, str]], delimiter: str) -> None:
    cells = [others[0], str(number), name, others[1]]
    for at, cell in further:
        cells.insert(at, cell)
    layout = Layout(ORDER.order, delimiter)
    assert (number, name) in said(line(cells, delimiter), ID, CUSTOMER, layout=layout)
    assert (number,) in said(line(cells, delimiter), ID, layout=layout)


@examples(60)
@given(st.integers(0, 10**6), st.text(min_size=1, max_size=12).filter(lambda one: one == one.strip()), st.sampled_from(["", ', "day"', ', "day":']), st.booleans(), st.booleans())
def test_a_line_of_json_may_say_what_it_says(number: int, name: str, end: str, ascii_only: bool, turned: bool) -> None:
    members = [f'"id": {number}', f'"name":{json.dumps(name, ensure_ascii=ascii_only)}']
    text = "{" + ",".join(reversed(members) if turned else members) + end
    assert (number, name) in said(text, ID, CUSTOMER)


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("2026,17,ben,1,more", ORDER), ("2026;17;ben;1;more", Layout(ORDER.order, ";")), ("2026,17,ben", ORDER), ("2026,17,ben,5,more;1", ORDER), ("2026,'17',ben,5,1", Layout(ORDER.order, ",", "'")),
        ('{"id": 17, "amount": 1', None), ("<r><id>17</id><amount>1</amount>", None), ('<r id="17" amount="1">', None), ("{id: 17, amount: 1", None),
        ('{"id":17,"product":{"id":1},"qty":', None), ('{"product":{"id":1,"x":[{"id":1}]},"id":17,"qty":', None), ('{"id":17,"note":"was id 1, \\"id\\":1","qty":', None),
    ],
)  # fmt: skip
def test_a_number_elsewhere_is_not_the_number_of_the_column(text: str, layout: Layout | None) -> None:
    found = said(text, ID, layout=layout)
    assert (17,) in found
    assert (1,) not in found


@pytest.mark.parametrize(("text", "layout"), [('17, "amount": 1}', None), ("2026 17 ben 1", ORDER), ("17,1", Layout(("other", "more")))])
def test_a_text_that_tells_no_place_may_say_any_of_its_words(text: str, layout: Layout | None) -> None:
    assert {(17,), (1,)} <= set(said(text, ID, layout=layout))


def test_a_name_elsewhere_may_be_the_column() -> None:
    assert ("annabella",) in said("2026,17,x,x,x,x,annabella", CUSTOMER, layout=ORDER)
    assert ("annabella",) in said('{"name": "x", "custo: "annabella"', CUSTOMER)
    assert (17, "annabella") in said("2026,17,x,x,annabella", ID, CUSTOMER, layout=ORDER)


def test_long_lines_have_few_readings() -> None:
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefgh", k=7)) for _ in range(2_000)]
    for text, layout in [(" ".join(words), None), (",".join(words), ORDER), ("{" + ",".join(f'"id": {word}' for word in words), None)]:
        begun = time.monotonic()
        assert len(list(readings([ID, CUSTOMER], text, layout))) <= 20_000
        assert time.monotonic() - begun < 2
