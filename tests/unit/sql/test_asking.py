"""The statements that a reading asks, by kind of database."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from storage.secrets import Secret
from storage.sql.connections import Connection
from storage.sql.errors import DatabaseError
from storage.sql.names import TableName
from storage.sql.others import OtherReading
from storage.sql.reading import AnswerColumn, Ask, From
from storage.sql.sqlite import SqliteReading


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


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def sqlite_reading(tmp_path: Path, timeout: float | None = None) -> SqliteReading:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        database.execute("CREATE TABLE t (x)")
    return SqliteReading(Connection("shop", Secret(f"sqlite:{tmp_path}/shop.db"), statement_timeout=timeout))


def test_a_statement_of_sqlite_that_takes_too_long_is_a_lost_moment(tmp_path: Path) -> None:
    with closing(sqlite_reading(tmp_path, 0.05)) as reading, pytest.raises(DatabaseError, match="statement_timeout") as caught:
        reading.first_row(ENDLESS)
    assert caught.value.trouble == "moment"


def test_a_signal_ends_a_statement_of_sqlite_as_an_interrupt(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with closing(sqlite_reading(tmp_path)) as reading:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(KeyboardInterrupt):
                reading.first_row(ENDLESS)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_comment_at_the_end_of_a_query_ends_there() -> None:
    reading = OtherReading(Connection("shop", Secret("mssql://h/d")))
    assert reading.statement(Ask(query="SELECT 1 AS a -- all"), [AnswerColumn("a")]) == 'SELECT "a" FROM (\nSELECT 1 AS a -- all\n) errata_answer'
