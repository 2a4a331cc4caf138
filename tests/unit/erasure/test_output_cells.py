"""Values in the cells of written files are found however a file spells them."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.erasure.output_cells import DLQ, written_cells
from errata.erasure.search import Search
from errata.erasure.spelling import as_cell, spelled
from errata.erasure.values import Values
from errata.plan.plan import Plan
from tests.support.erasing import shop
from tests.support.examples import examples
from tests.support.pipelines import Folder

COLUMNS = '{ name: day, type: date }, { name: at, type: date_time }, { name: amount, type: float }, { name: price, type: "decimal(20,4)" }, { name: note, type: string }'
OUTPUTS = [f"{{ type: output, name: {kind}, input: orders, config: {{ name: {kind}, type: {kind}, path: out.{kind}, mapping: {{ moment: at }} }} }}" for kind in ("csv", "json")]


@cache
def plan() -> Plan:
    with tempfile.TemporaryDirectory() as place:
        folder = Folder(Path(place))
        folder.write("pipeline.yaml", shop(COLUMNS, *OUTPUTS).replace("name: shop }", 'name: shop, date_formats: ["%d.%m.%Y %H:%M:%S%.f", "%d.%m.%Y"] }'))
        folder.write("in/orders.csv", "id,customer,day,at,amount,price,note\n")
        return folder.load().loaded.plan


def times(moment: datetime) -> Iterator[str]:
    """The spellings of a time that sources and outputs have."""
    plain = moment.isoformat(sep=" ")
    yield from (plain, moment.isoformat(), f"{plain}Z", moment.isoformat() + "+00:00")
    yield moment.strftime("%Y-%m-%dT%H:%M:%S.%f")
    yield moment.strftime("%d.%m.%Y %H:%M:%S.%f")
    yield moment.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=2, minutes=30))).isoformat()


def days(day: date) -> Iterator[str]:
    yield from (day.isoformat(), day.strftime("%d.%m.%Y"), day.strftime("%m/%d/%Y"), day.strftime("%Y/%m/%d"))


def numbers(number: Decimal) -> Iterator[str]:
    yield from (f"{number:.4f}", f"{number.normalize():f}", f"{number:f}00")


def floats(number: float) -> Iterator[str]:
    yield from (repr(number), f"{Decimal(repr(number)):f}", f"{number:.17e}")


MOMENTS = st.datetimes(datetime(1900, 1, 2), datetime(9000, 1, 1))
VALUES = st.one_of(
    st.tuples(st.just("at"), MOMENTS), st.tuples(st.just("day"), st.dates(date(1000, 1, 1))), st.tuples(st.just("amount"), st.floats(allow_nan=False, allow_infinity=False)),
    st.tuples(st.just("price"), st.decimals(-(10**15), 10**15, places=4)),
)  # fmt: skip
SPELLED = {"at": times, "day": days, "amount": floats, "price": numbers}
KINDS = {"at": pl.Datetime("us", "UTC"), "day": pl.Date, "amount": pl.Float64, "price": pl.Decimal(38, 4)}


def as_csv(name: str, *cells: str) -> bytes:
    written = io.StringIO()
    csv.writer(written).writerows([(name,), *((cell,) for cell in cells)])
    return written.getvalue().encode()


def found(values: Values, node: str, content: bytes) -> bool:
    cells = written_cells(plan(), node, content)
    assert cells is not None
    return Search(values).in_columns(cells)


@examples(60)
@given(VALUES)
def test_a_value_is_found_in_every_spelling(given: tuple[str, object]) -> None:
    name, value = given
    values = Values()
    values.add_rows(pl.DataFrame({name: pl.Series([value], dtype=KINDS[name])}))
    shown = "moment" if name == "at" else name
    for spelling in SPELLED[name](value):  # type: ignore[operator]
        assert found(values, "csv", as_csv(shown, "x", spelling)), spelling
        assert found(values, DLQ, as_csv(name, spelling)), spelling
        assert found(values, "json", json.dumps([{shown: spelling}]).encode()), spelling
        assert not found(values, "csv", as_csv("note", spelling))
    if name in ("amount", "price"):
        assert found(values, "json", b'{"amount": 1}\n{"%s": %s}' % (name.encode(), str(value).encode()))
    if name == "at":
        assert isinstance(value, datetime)
        assert not any(found(values, "csv", as_csv("moment", other)) for other in times(value + timedelta(hours=2, seconds=1)))


@pytest.mark.parametrize("cell", ["=a", "-b", "@c"])
def test_a_cell_that_is_guarded_is_found(cell: str) -> None:
    assert found(Values(cells={"note": {cell}}), "csv", as_csv("note", f"'{cell}"))


def test_values_of_arrays_and_maps_are_spelled_as_cells_are() -> None:
    values = Values()
    values.add_rows(pl.DataFrame({"note": [[datetime(2026, 3, 1, 12, 30)]], "more": [{"a": Decimal("12.50")}]}))
    assert values == Values(cells={"note": {"2026-03-01T12:30:00"}, "more": {"12.5"}})


@examples(60)
@given(VALUES)
def test_one_value_is_spelled_as_in_a_column(given: tuple[str, object]) -> None:
    name, value = given
    assert as_cell(value) == spelled(pl.Series([value], dtype=KINDS[name]))[0]
