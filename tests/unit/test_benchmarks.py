"""What the benchmarks rely on: comparisons see every digit, versions differ where they should, results are kept, and the page is written."""

from __future__ import annotations

import pytest

from benchmarks.answers import ROUGH, Answer, difference
from benchmarks.programs import tpch
from benchmarks.tpch import tables

SUITES = [tpch.SUITE]
QUERIES = [pytest.param(suite, query, id=suite.program(query)) for suite in SUITES for query in suite.queries]


@pytest.mark.parametrize(
    ("cell", "kind", "expected"),
    [
        ("12.50", "DECIMAL(15,2)", "12.5"),
        ("12.5", "DOUBLE", "12.50"),
        ("0.050000000001", "DOUBLE", "0.05"),
        ("1e15", "DOUBLE", "1000000000000001"),
        ("", "DOUBLE", ""),
        ("1998-09-02", "DATE", "1998-09-02"),
        ("1998-09-02T10:00:00.250", "TIMESTAMP", "1998-09-02 10:00:00.25"),
        ("1998-09-02T10:00:00", "TIMESTAMP", "1998-09-02 10:00:00"),
        ("7", "BIGINT", "7"),
        ("a, b", "VARCHAR", "a, b"),
    ],
)
def test_equal_cells(tmp_path, cell, kind, expected):
    assert compared(tmp_path, [[cell]], [[expected]], kind) is None


@pytest.mark.parametrize(
    ("cell", "kind", "expected"),
    [
        ("12.51", "DECIMAL(15,2)", "12.5"),
        ("12.500000000001", "DECIMAL(15,2)", "12.5"),
        ("", "DECIMAL(15,2)", "0"),
        ("much", "DECIMAL(15,2)", "0"),
        ("12.500001", "DOUBLE", "12.5"),
        ("", "DOUBLE", "0"),
        ("much", "DOUBLE", "0"),
        ("0", "DOUBLE", ""),
        ("1998-09-03", "DATE", "1998-09-02"),
        ("1998-09-02T10:00:00.251", "TIMESTAMP", "1998-09-02 10:00:00.25"),
        ("8", "BIGINT", "7"),
        ("a", "VARCHAR", "b"),
    ],
)
def test_cells_that_differ(tmp_path, cell, kind, expected):
    assert "row 1 of 1 is" in str(compared(tmp_path, [[cell]], [[expected]], kind))


def test_a_missing_row_and_a_missing_column_differ(tmp_path):
    assert compared(tmp_path, [["1"]], [], "BIGINT") == "1 rows of 1 columns, not 0 of 1"
    assert compared(tmp_path, [["1"]], [["1", "2"]], "BIGINT") == "1 rows of 1 columns, not 1 of 2"


def test_rows_in_another_order_differ_where_the_order_counts(tmp_path):
    assert compared(tmp_path, [["2"], ["1"]], [["1"], ["2"]], "BIGINT") is not None
    assert compared(tmp_path, [["2"], ["1"]], [["1"], ["2"]], "BIGINT", ordered=False) is None


def test_means_of_engines_that_cut_them_agree_roughly(tmp_path):
    assert compared(tmp_path, [["25.546684"]], [["25.54668498797664"]], "DOUBLE", digits=ROUGH) is None


def compared(folder, ours, theirs, kind, **how):
    width = max(map(len, theirs), default=1)
    return difference(written(folder / "ours.csv", ours, 1), Answer(written(folder / "theirs.csv", theirs, width), [kind] * width), **how)


def written(file, rows, width):
    lines = [",".join(map(str, range(width))), *(",".join(f'"{cell}"' if cell else "" for cell in row) for row in rows)]
    file.write_text("".join(f"{line or chr(34) * 2}\n" for line in lines), encoding="utf-8")
    return file


@pytest.mark.parametrize(("suite", "query"), QUERIES)
def test_pipelines_read_columns_of_the_tables(suite, query):
    assert suite.statement(query, "duckdb", 1.0)
    for table, columns in suite.inputs(query).items():
        assert set(columns) <= set(suite.tables[table])


def test_the_fraction_of_query_11_goes_by_the_scale():
    assert [tpch.fraction(scale)["fraction"] for scale in (1.0, 0.1, 0.01)] == ["0.0001", "0.001", "0.01"]


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
