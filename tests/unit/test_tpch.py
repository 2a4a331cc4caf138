"""What the benchmark over TPC-H relies on: its comparison sees every digit, and its versions differ where they should."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from benchmarks.tpch import tables
from benchmarks.tpch.answers import QUERIES, columns_of, difference, fraction, pipeline
from benchmarks.tpch.tables import COLUMNS


@pytest.mark.parametrize(
    ("cell", "value"),
    [("12.50", Decimal("12.5")), ("12.5", 12.5), ("0.050000000001", 0.05), ("1998-09-02", date(1998, 9, 2)), ("7", 7), ("", None), ("a, b", "a, b")],
)
def test_equal_cells(tmp_path, cell, value):
    assert found(tmp_path, [cell], [value]) is None


@pytest.mark.parametrize(
    ("cell", "value"),
    [("12.51", Decimal("12.5")), ("12.500001", 12.5), ("", 0.0), ("", Decimal(0)), ("0", None), ("1998-09-03", date(1998, 9, 2)), ("8", 7), ("a", "b")],
)
def test_cells_that_differ(tmp_path, cell, value):
    assert found(tmp_path, [cell], [value]) == f"row 1 is {[cell]}, not {[value]}"


def test_a_missing_row_and_a_missing_cell_differ(tmp_path):
    assert found(tmp_path, ["1"]) == "1 rows, not 0"
    assert "not [1, 2]" in str(found(tmp_path, ["1"], [1, 2]))


def found(folder, cells, *rows):
    text = ",".join(f'"{cell}"' for cell in cells)
    (folder / "result.csv").write_text(f"head\n{text}\n", encoding="utf-8")
    return difference(folder / "result.csv", rows)


@pytest.mark.parametrize("number", QUERIES)
def test_pipelines_read_columns_of_the_tables(number):
    assert pipeline(number).with_suffix(".sql").exists()
    for table, columns in columns_of(number).items():
        assert set(columns) <= set(COLUMNS[table].split())


def test_the_fraction_of_query_11_goes_by_the_scale():
    assert [f"{fraction(scale):f}" for scale in (1, 0.1, 0.01)] == ["0.0001", "0.001", "0.01"]


def test_orders_leave_and_come_back_at_the_end():
    data = b"o_orderkey,o_custkey\n1,7\n2,8\n3,9\n"
    assert tables._without(data, frozenset([b"2"])) == b"o_orderkey,o_custkey\n1,7\n3,9\n"
    assert tables._at_the_end(data, frozenset([b"2"])) == b"o_orderkey,o_custkey\n1,7\n3,9\n2,8\n"


def test_one_price_of_a_share_is_halved():
    lines = [b'%d,%d,5,10.01,"a, b"\n' % (part, part) for part in range(20)]
    head, *changed = tables._with_other_prices(b"".join((b"head\n", *lines)), "partsupp", 10).splitlines(keepends=True)
    assert head == b"head\n"
    assert [number for number, line in enumerate(changed) if line != lines[number]] == [1, 11]
    assert changed[1] == b'1,1,5,5.01,"a, b"\n'
