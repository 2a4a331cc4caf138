"""The statements that a reading asks, by kind of database."""

from __future__ import annotations

import signal
import sqlite3
import sys
import time
from collections import deque
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from storage.secrets import Secret
from storage.sql.connections import Connection
from storage.sql.errors import DatabaseError
from storage.sql.names import TableName
from storage.sql.others import OtherReading
from storage.sql.reading import AnswerColumn, Ask, From, one_moment
from storage.sql.sqlite import SqliteReading


def other(kind: str) -> OtherReading:
    return OtherReading(Connection("shop", Secret(f"{kind}://h/d")))


@pytest.mark.parametrize(("kind", "name"), [("mysql", "`a``b`"), ("mssql", '"a`b"'), ("oracle", '"a`b"')])
def test_names_have_the_quotes_of_their_database(kind: str, name: str) -> None:
    table = "`s`.`t`" if kind == "mysql" else '"s"."t"'
    asked = other(kind).statement(Ask(TableName("s", "t")), [AnswerColumn("a`b")], From("a`b", "7", "number"))
    assert asked == f"SELECT {name} FROM {table} errata_answer WHERE {name} >= 7 OR {name} IS NULL"


@pytest.mark.parametrize("kind", ["mysql", "mssql", "oracle"])
@pytest.mark.parametrize(
    ("type_", "order", "scale"),
    [
        ("int64", "number", 0), ("uint64", "number", 0), ("decimal128(38, 10)", "number", None), ("float", "float", None), ("double", "float", None),
        ("date32[day]", "time", None), ("date64[ms]", "time", None), ("timestamp[us]", "time", None), ("timestamp[ns, tz=UTC]", "zoned", None),
        ("large_string", None, None), ("string", None, None), ("large_binary", None, None), ("bool", None, None), ("time64[us]", None, None), ("null", None, None),
    ],
)  # fmt: skip
def test_numbers_and_times_of_other_databases_are_ordered(kind: str, type_: str, order: str | None, scale: int | None) -> None:
    found = other(kind).ordered(AnswerColumn("c", type_))
    assert (None if found is None else (found.bound, found.scale)) == (None if order is None else (order, scale))


@pytest.mark.parametrize(
    ("kind", "type_", "value", "literal"),
    [
        ("mysql", "number", "9007199254740993", "9007199254740993"),  # in quotes MySQL compares it as a float, and Oracle reads it by the language
        ("oracle", "number", "-1.50", "-1.50"),
        ("mssql", "float", "4194304.0", "4194303.0"),
        ("mysql", "float", "0", "0.0"),
        ("mysql", "time", "2026-03-01 12:00:00.123456", "TIMESTAMP '2026-03-01 11:59:59.123456'"),
        ("mysql", "time", "2026-03-01", "TIMESTAMP '2026-02-28 23:59:59.000000'"),
        ("mysql", "zoned", "2026-03-01", "TIMESTAMP '2026-02-28 23:59:59.000000'"),
        ("mssql", "time", "2026-03-01 12:00:00", "CAST('2026-03-01T11:59:59.000000' AS datetime2)"),  # datetime would read it by the language
        ("mssql", "zoned", "2026-03-01 12:00:00", "CAST('2026-03-01T11:59:59.000000+00:00' AS datetimeoffset)"),
        ("oracle", "time", "2026-03-01 12:00:00", "TIMESTAMP '2026-03-01 11:59:59.000000'"),  # a text would be read by NLS_DATE_FORMAT
        ("oracle", "zoned", "2026-03-01 12:00:00", "TIMESTAMP '2026-03-01 11:59:59.000000 +00:00'"),
        ("oracle", "time", "0001-01-01 00:00:00", "TIMESTAMP '0001-01-01 00:00:00.000000'"),
    ],
)
def test_bounds_of_other_databases_are_literals_that_no_session_reads_otherwise(kind: str, type_: str, value: str, literal: str) -> None:
    assert other(kind).parameter(From("c", value, type_)) == literal


class Asked:
    """A double of connectorx: the statements that are asked, and the answer."""

    def __init__(self, answer: pa.Table) -> None:
        self.answer = answer
        self.asked: list[tuple[str, object]] = []

    def read_sql(self, url: str, statement: str, *, return_type: str, pre_execution_query: object) -> pa.Table:
        self.asked.append((statement, pre_execution_query))
        return self.answer


@pytest.mark.parametrize(("kind", "first"), [("mysql", ["SET time_zone = '+00:00'"]), ("mssql", None), ("oracle", None)])
def test_columns_have_the_types_of_an_answer_and_mysql_shows_times_of_utc(kind: str, first: object, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Asked(pa.table({"id": pa.array([], pa.int64()), "name": pa.array([], pa.large_string())}))
    monkeypatch.setitem(sys.modules, "connectorx", library)
    assert other(kind).described(Ask(TableName(None, "t"))) == [AnswerColumn("id", "int64"), AnswerColumn("name", "large_string")]
    assert [one for _, one in library.asked] == [first]


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def test_a_statement_of_duckdb_that_takes_longer_than_it_may_is_interrupted(tmp_path: Path) -> None:
    """The next statement has its own time."""
    import duckdb

    duckdb.connect(str(tmp_path / "shop.duckdb")).close()
    connection = Connection("shop", Secret(f"duckdb:{tmp_path}/shop.duckdb"), statement_timeout=0.2)
    endless = "SELECT count(*) FROM range(100000) AS a, range(100000) AS b, range(100000) AS c WHERE a.range + b.range + c.range = -1"
    for ask in (lambda reading: reading.first_row(endless), lambda reading: list(reading.batches(Ask(query=endless), [AnswerColumn("count_star()")]))):
        with one_moment(connection) as reading, pytest.raises(DatabaseError, match="statement_timeout") as caught:
            ask(reading)
        assert caught.value.trouble == "moment"
    with one_moment(connection) as reading:
        assert reading.first_row("SELECT 1") == "(1,)"


@pytest.mark.parametrize(
    ("made", "name", "row"),
    [
        ([], "shop.t", "main"), ([], "main.t", "main"), ([], "MAIN.t", "main"), (["CREATE SCHEMA shop", "CREATE TABLE shop.shop.t AS SELECT 'schema' AS a"], "shop.t", "schema"),
        (["CREATE SCHEMA other", "CREATE TABLE other.t AS SELECT 'other' AS a"], "other.t", "other"),
    ],
)  # fmt: skip
def test_a_table_of_duckdb_is_named_by_its_schema_or_by_the_file(made: list[str], name: str, row: str, tmp_path: Path) -> None:
    assert duck_values(tmp_path, made, name, "a") == [row]


@pytest.mark.parametrize(("name", "column"), [("information_schema.tables", "table_name"), ("pg_catalog.pg_tables", "tablename")])
def test_schemas_of_duckdb_itself_are_read(name: str, column: str, tmp_path: Path) -> None:
    assert "t" in duck_values(tmp_path, [], name, column)


def duck_values(tmp_path: Path, made: list[str], name: str, column: str) -> list[str]:
    """The values of a column of a table, in a file that is made with a table `t` and more."""
    import duckdb

    with duckdb.connect(str(tmp_path / "shop.duckdb")) as database:
        for statement in ("CREATE TABLE main.t AS SELECT 'main' AS a", *made):
            database.execute(statement)
    with one_moment(Connection("shop", Secret(f"duckdb:{tmp_path}/shop.duckdb"))) as reading:
        ask = Ask(TableName.parse(name))
        columns = [one for one in reading.described(ask) if one.name == column]
        return [value for batch in reading.batches(ask, columns) for value in pa.array(batch[column]).to_pylist()]


SLOW = "SELECT md5(repeat(range::VARCHAR, 20)) AS a FROM range(100000000)"


def duck(tmp_path: Path, timeout: float) -> Connection:
    import duckdb

    duckdb.connect(str(tmp_path / "shop.duckdb")).close()
    return Connection("shop", Secret(f"duckdb:{tmp_path}/shop.duckdb"), statement_timeout=timeout)


def test_an_answer_of_duckdb_that_takes_longer_than_it_may_is_interrupted_between_its_batches(tmp_path: Path) -> None:
    with one_moment(duck(tmp_path, 0.3)) as reading:
        batches = reading.batches(Ask(query=SLOW), [AnswerColumn("a", "VARCHAR")])
        assert len(next(batches)["a"]) > 0
        with pytest.raises(DatabaseError, match="statement_timeout") as caught:
            deque(batches, maxlen=0)
        assert caught.value.trouble == "moment"


def test_time_between_the_batches_of_duckdb_is_not_that_of_the_statement(tmp_path: Path) -> None:
    with one_moment(duck(tmp_path, 0.5)) as reading:
        batches = reading.batches(Ask(query="SELECT range AS a FROM range(1000000)"), [AnswerColumn("a", "BIGINT")])
        rows, until = len(next(batches)["a"]), time.monotonic() + 0.8
        while time.monotonic() < until:
            sum(range(1000))
        assert rows + sum(len(batch["a"]) for batch in batches) == 1_000_000


def test_a_value_that_duckdb_cannot_make_late_in_its_answer_is_told(tmp_path: Path) -> None:
    query = "SELECT (CASE WHEN range = 2000000 THEN 'x' ELSE '1' END)::INTEGER AS a FROM range(3000000)"
    with one_moment(duck(tmp_path, 60.0)) as reading, pytest.raises(DatabaseError, match="Could not convert string 'x'") as caught:
        deque(reading.batches(Ask(query=query), [AnswerColumn("a", "INTEGER")]), maxlen=0)
    assert caught.value.trouble == "refused"


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


def test_a_name_in_a_query_of_duckdb_is_no_variable_of_this_program(tmp_path: Path) -> None:
    import duckdb

    duckdb.connect(str(tmp_path / "shop.db")).close()
    connection = Connection("shop", Secret("duckdb:shop.db"), folder=tmp_path)
    with one_moment(connection) as reading, pytest.raises(DatabaseError, match="Table with name self does not exist"):
        reading.described(Ask(query="SELECT * FROM self"))
