"""What a record that cannot be read may say in some columns: the truth is always among it, and hardly anything else."""

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
from errata.erasure.unread_records import NamingColumn, readings, typed
from tests.support.examples import examples

ORDER = ("day", "id", "customer", "amount")
ID = NamingColumn("id", Type(Kind.INT), frozenset({"id"}), ())
CUSTOMER = NamingColumn("customer", Type(Kind.STRING), frozenset({"customer", "name"}), ())
CELLS = st.text("ab1 ,;\"'é-", max_size=6)


def said(text: str, *columns: NamingColumn, orders: tuple[tuple[str, ...], ...] = ()) -> list[tuple[object, ...]]:
    """The readings of a text, typed."""
    rows = typed(columns, list(readings(columns, text, orders)))
    return [tuple(row[column.name] for column in columns) for row in rows.to_pylist()]


def line(cells: list[str], delimiter: str = ",") -> str:
    written = io.StringIO()
    csv.writer(written, delimiter=delimiter, lineterminator="").writerow(cells)
    return written.getvalue()


@examples(60)
@given(st.integers(0, 10**6), st.text("abcé,; '-", min_size=4, max_size=12), st.lists(CELLS, min_size=2, max_size=2), st.lists(st.tuples(st.integers(0, 4), CELLS), max_size=3), st.sampled_from(",;|\t"))
def test_a_line_with_further_cells_may_say_what_it_says(number: int, name: str, others: list[str], further: list[tuple[int, str]], delimiter: str) -> None:
    cells = [others[0], str(number), name, others[1]]
    for at, cell in further:
        cells.insert(at, cell)
    assert (number, name) in said(line(cells, delimiter), ID, CUSTOMER, orders=(ORDER,))
    assert (number,) in said(line(cells, delimiter), ID, orders=(ORDER,))


@examples(60)
@given(st.integers(0, 10**6), st.text(min_size=1, max_size=12).filter(lambda one: one == one.strip()), st.sampled_from(["", ', "day"', ', "day":']), st.booleans(), st.booleans())
def test_a_line_of_json_may_say_what_it_says(number: int, name: str, end: str, ascii_only: bool, turned: bool) -> None:
    members = [f'"id": {number}', f'"name":{json.dumps(name, ensure_ascii=ascii_only)}']
    text = "{" + ",".join(reversed(members) if turned else members) + end
    assert (number, name) in said(text, ID, CUSTOMER)


@pytest.mark.parametrize(
    ("text", "orders"),
    [
        ("2026,17,ben,1,more", (ORDER,)), ("2026;17;ben;1;more", (ORDER,)), ("2026,17,ben", (ORDER,)), ("2026,17,ben,5,more,1", (ORDER, (*ORDER, "x"))),
        ('{"id": 17, "amount": 1', ()), ("<r><id>17</id><amount>1</amount>", ()), ('<r id="17" amount="1">', ()), ("{id: 17, amount: 1", ()),
    ],
)  # fmt: skip
def test_a_number_elsewhere_is_not_the_number_of_the_column(text: str, orders: tuple[tuple[str, ...], ...]) -> None:
    found = said(text, ID, orders=orders)
    assert (17,) in found
    assert (1,) not in found


@pytest.mark.parametrize(("text", "orders"), [('17, "amount": 1}', ()), ("2026 17 ben 1", (ORDER,)), ("17;1", (("other", "more"),))])
def test_a_text_that_tells_no_place_may_say_any_of_its_words(text: str, orders: tuple[tuple[str, ...], ...]) -> None:
    assert {(17,), (1,)} <= set(said(text, ID, orders=orders))


def test_a_name_elsewhere_may_be_the_column() -> None:
    assert ("annabella",) in said("2026,17,x,x,x,x,annabella", CUSTOMER, orders=(ORDER,))
    assert ("annabella",) in said('{"name": "x", "custo: "annabella"', CUSTOMER)
    assert (17, "annabella") in said("2026,17,x,x,annabella", ID, CUSTOMER, orders=(ORDER,))


def test_long_lines_have_few_readings() -> None:
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefgh", k=7)) for _ in range(2_000)]
    for text, orders in [(" ".join(words), ()), (",".join(words), (ORDER,)), ("{" + ",".join(f'"id": {word}' for word in words), ())]:
        begun = time.monotonic()
        assert len(list(readings([ID, CUSTOMER], text, orders))) <= 20_000
        assert time.monotonic() - begun < 2
