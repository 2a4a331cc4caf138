"""The statements that a reading asks, by kind of database."""

from __future__ import annotations

import pytest

from storage.sql.connections import Connection
from storage.sql.names import TableName
from storage.sql.others import OtherReading
from storage.sql.reading import AnswerColumn, Ask, From
from storage.sql.secrets import Secret


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        ("mysql", "SELECT `a``b` FROM `s`.`t` errata_answer WHERE `a``b` >= 'it''s' OR `a``b` IS NULL"),
        ("mssql", 'SELECT "a`b" FROM "s"."t" errata_answer WHERE "a`b" >= \'it\'\'s\' OR "a`b" IS NULL'),
        ("oracle", 'SELECT "a`b" FROM "s"."t" errata_answer WHERE "a`b" >= \'it\'\'s\' OR "a`b" IS NULL'),
    ],
)
def test_names_have_the_quotes_of_their_database(kind: str, asked: str) -> None:
    reading = OtherReading(Connection("shop", Secret(f"{kind}://h/d")))
    column = AnswerColumn("a`b")
    assert reading.statement(Ask(TableName("s", "t")), [column], From("a`b", "it's")) == asked


def test_a_comment_at_the_end_of_a_query_ends_there() -> None:
    reading = OtherReading(Connection("shop", Secret("mssql://h/d")))
    assert reading.statement(Ask(query="SELECT 1 AS a -- all"), [AnswerColumn("a")]) == 'SELECT "a" FROM (\nSELECT 1 AS a -- all\n) errata_answer'
