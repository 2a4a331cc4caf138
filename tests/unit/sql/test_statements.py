"""Queries: one statement that reads, whatever comments, texts and names contain."""

from __future__ import annotations

import pytest

from storage.sql.names import TableName, quoted
from storage.sql.statements import one_statement

READS = [
    "SELECT 1",
    " \n-- DELETE\n select 1",
    "/* a /* nested */ ; */ WITH x AS (SELECT 1) SELECT * FROM x",
    "(SELECT 1) UNION (SELECT 2)",
    "VALUES (1), (2)",
    "TABLE orders",
    "SELECT ';' || \"a;b\" || $$;$$ || $tag$ ; $$ $tag$ FROM t",
    "SELECT e'it\\';s' FROM t",
    "SELECT a[1] FROM t -- ; at the end",
]
WRITES = ["DELETE FROM t", "INSERT INTO t VALUES (1)", "", "-- nothing", "EXPLAIN SELECT 1", "SELECT 1; DROP TABLE t", "SELECT 1;; SELECT 2", "SELECT 'a' ; ' '", "SET x = 1", "COPY t TO STDOUT"]


@pytest.mark.parametrize("text", READS)
def test_a_statement_that_reads_stays_as_it_is(text: str) -> None:
    assert one_statement(text) == text


@pytest.mark.parametrize("text", READS)
def test_a_last_semicolon_is_cut(text: str) -> None:
    end = "\n;" if "--" in text.splitlines()[-1] else ";"
    assert one_statement(f"{text}{end} -- and a comment;\n;").removesuffix("\n") == text


@pytest.mark.parametrize("text", WRITES)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="query"):
        one_statement(text)


@pytest.mark.parametrize(
    ("text", "schema", "table"),
    [("orders", None, "orders"), ("sales.orders", "sales", "orders"), ('sales."my.table"', "sales", "my.table"), ('"a""b"', None, 'a"b'), ("Straße", None, "Straße"), ('"my ""best"" orders"', None, 'my "best" orders')],
)
def test_names_of_tables(text: str, schema: str | None, table: str) -> None:
    assert TableName.parse(text) == TableName(schema, table)


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a.b.c", '"a', 'a"b"', '""', "a b; DROP TABLE t"[:0] or "a\x00b"])
def test_other_texts_are_no_names(text: str) -> None:
    with pytest.raises(ValueError, match=r"table|parts"):
        TableName.parse(text)


def test_a_quoted_name_cannot_be_left() -> None:
    assert quoted('x"; DROP TABLE t; --') == '"x""; DROP TABLE t; --"'
