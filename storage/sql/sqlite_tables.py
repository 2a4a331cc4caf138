"""Tables of SQLite."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from changelog.lazy_imports import pa
from storage.sql.connections import Connection
from storage.sql.names import TableName, quoted
from storage.sql.sqlite import opened, translating
from storage.sql.tables import Column, Dialect, Session, Standing
from storage.values.text import time_text

if TYPE_CHECKING:
    import sqlite3

_SCHEMA: Final = "main"
DIALECT: Final = Dialect(
    types={
        "int": "INTEGER", "float": "REAL", "numeric": "REAL", "decimal": "TEXT", "string": "TEXT", "bool": "INTEGER", "date": "TEXT", "date_time": "TEXT",
        "array": "TEXT", "map": "TEXT", "any": "TEXT", "key": "BLOB",
    },
    same="IS", places=(("rowid",), ("oid",), ("_rowid_",)), schemas=frozenset({_SCHEMA}), own_tables=re.compile("sqlite_.*", re.IGNORECASE | re.DOTALL), most_columns=2000,
)  # fmt: skip


def session(connection: Connection, *, writes: bool) -> Session:
    """A session on a file, which is made where it is written to."""
    if writes:
        connection.make_folder()
    return SqliteSession(connection, opened(connection, "rwc" if writes else "ro"))


class SqliteSession(Session):
    """A session of Python's own module."""

    dialect = DIALECT

    def __init__(self, connection: Connection, database: sqlite3.Connection) -> None:
        super().__init__(connection)
        self._database = database

    def begin(self) -> None:
        """Begin a transaction that writes: it waits here for other processes, and nowhere later."""
        self.execute("BEGIN IMMEDIATE")

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """Execute a statement; the number of rows that it touched."""
        with translating(self.connection):
            return self._database.execute(statement, tuple(parameters)).rowcount

    def fetched(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of an answer."""
        with translating(self.connection):
            return self._database.execute(statement, tuple(parameters)).fetchall()

    def load(self, table: str, columns: Sequence[Column], batches: Iterator[pa.RecordBatch]) -> int:
        """Fill a temporary table whose columns have no types, so that values stay as they are."""
        names = ", ".join(quoted(column.name) for column in columns)
        self.execute(f"CREATE TEMP TABLE {quoted(table)} ({names})")
        return self._inserted(f"temp.{quoted(table)}", columns, batches)

    def fill(self, table: TableName, columns: Sequence[Column], batches: Iterator[pa.RecordBatch]) -> int:
        """Fill the table by insertions; it has the columns in this order."""
        return self._inserted(self.named(table), columns, batches)

    def _inserted(self, table: str, columns: Sequence[Column], batches: Iterator[pa.RecordBatch]) -> int:
        marks = ", ".join("?" for _ in columns)
        rows = 0
        with translating(self.connection):
            for batch in batches:
                values = [_plain(values, column) for values, column in zip(batch.columns, columns, strict=True)]
                self._database.executemany(f"INSERT INTO {table} VALUES ({marks})", zip(*values, strict=True))
                rows += batch.num_rows
        return rows

    def standing(self, table: TableName) -> Standing:
        """What has a name, by the schema. Tables, views and indexes share their names."""
        if (table.schema or _SCHEMA).casefold() != _SCHEMA:
            return Standing()
        found = self.fetched(f"SELECT name, type FROM {_SCHEMA}.sqlite_master WHERE type IN ('table', 'view', 'index') AND lower(name) = lower(?)", (table.table,))
        if not found:
            return Standing()
        columns = self.fetched("SELECT name, type FROM pragma_table_info(?, ?)", (found[0][0], _SCHEMA))
        return Standing(found[0][1], tuple((name, type_.upper()) for name, type_ in columns))

    def place(self, table: TableName, columns: Sequence[str]) -> Sequence[str]:
        """The name of a row's place; a table that is made WITHOUT ROWID has none."""
        [(without,)] = self.fetched("SELECT wr FROM pragma_table_list(?) WHERE schema = ?", (table.table, _SCHEMA))
        return () if without else super().place(table, columns)

    def make_schema(self, schema: str) -> None:
        """Do nothing: a file is the one schema."""

    def reclaim(self, table: TableName) -> None:
        """Write the file anew, and cut off the log beside it."""
        self.execute("VACUUM")
        self.fetched("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _plain(values: pa.Array, column: Column) -> list[Any]:
    """Values as SQLite stores them: decimals with all digits, numbers of several types as floats, dates and times as ISO text, booleans as 0 and 1."""
    if column.type == "numeric":
        values = values.cast(pa.float64())
    if pa.types.is_timestamp(values.type):
        found: list[Any] = time_text(values).to_pylist()
        return found
    return [_stored(value) for value in values.to_pylist()]


def _stored(value: Any) -> Any:
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, dt.date):
        return value.isoformat()
    return int(value) if isinstance(value, bool) else value
