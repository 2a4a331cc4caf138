"""Tables of DuckDB."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from changelog.lazy_imports import pa
from storage import durable
from storage.sql.connections import Connection
from storage.sql.duckdb import named, opened, translating
from storage.sql.names import TableName, quoted, temporary
from storage.sql.tables import Column, Dialect, Session, Standing

DIALECT: Final = Dialect(
    types={
        "int": "BIGINT", "float": "DOUBLE", "numeric": "DOUBLE", "decimal": "DECIMAL(DIGITS,SCALE)", "string": "VARCHAR", "bool": "BOOLEAN", "date": "DATE",
        "date_time": "TIMESTAMP WITH TIME ZONE", "array": "JSON", "map": "JSON", "any": "JSON", "key": "BLOB",
    },
    same="IS NOT DISTINCT FROM", places=(("rowid",),), own_schemas=re.compile("pg_catalog|information_schema", re.IGNORECASE), alters=False,
)  # fmt: skip

_COPY: Final = "errata copy"
"""The name of a copy of a file while it is made."""


def session(connection: Connection, *, writes: bool) -> Session:
    """A session on a file, which is made where it is written to."""
    if writes:
        connection.make_folder()
    return DuckSession(connection, opened(connection, read_only=not writes))


class DuckSession(Session):
    """A session of the library."""

    dialect = DIALECT

    def __init__(self, connection: Connection, database: Any) -> None:
        super().__init__(connection)
        self._database = database

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """Execute a statement; the number of rows that it touched."""
        with translating(self.connection):
            answer = self._database.execute(statement, list(parameters)).fetchall() if parameters else self._database.execute(statement).fetchall()
        return int(answer[0][0]) if answer and isinstance(answer[0][0], int) else 0

    def fetched(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of an answer."""
        with translating(self.connection):
            found: list[tuple[Any, ...]] = self._database.execute(statement, list(parameters)).fetchall()
        return found

    def named(self, table: TableName) -> str:
        """A table as statements name it."""
        return named(self._database, table)

    def make_schema(self, schema: str) -> None:
        """Make a schema where there is none."""
        [(catalog,)] = self.fetched("SELECT current_database()")
        self.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(catalog)}.{quoted(schema)}")

    def load(self, table: str, columns: Sequence[Column], batches: Iterator[pa.RecordBatch]) -> int:
        """Fill a temporary table out of Arrow."""
        types = ", ".join(f"{quoted(column.name)} {DIALECT.type_of(column.type)}" for column in columns)
        self.execute(f"CREATE TEMP TABLE {quoted(table)} ({types})")
        return self._inserted(quoted(table), columns, batches)

    def fill(self, table: TableName, columns: Sequence[Column], batches: Iterator[pa.RecordBatch]) -> int:
        """Fill the table out of Arrow; it has the columns in this order."""
        return self._inserted(self.named(table), columns, batches)

    def _inserted(self, table: str, columns: Sequence[Column], batches: Iterator[pa.RecordBatch]) -> int:
        rows, name = 0, temporary(table, "batch")
        with translating(self.connection):
            for batch in batches:
                given = pa.Table.from_arrays([_loaded(values, column) for values, column in zip(batch.columns, columns, strict=True)], names=[column.name for column in columns])
                self._database.register(name, given)
                self._database.execute(f"INSERT INTO {table} SELECT * FROM {quoted(name)}")
                self._database.unregister(name)
                rows += batch.num_rows
        return rows

    def standing(self, table: TableName) -> Standing:
        """The table or view that has a name, by the catalog."""
        schema = "current_schema()" if table.schema is None else "?"
        given = [table.table] if table.schema is None else [table.table, table.schema]
        where = f"lower(table_name) = lower(?) AND table_schema = {schema} AND table_catalog = current_database()"
        found = self.fetched(f"SELECT table_type FROM information_schema.tables WHERE {where}", given)
        if not found:
            return Standing()
        columns = self.fetched(f"SELECT column_name, data_type FROM information_schema.columns WHERE {where} ORDER BY ordinal_position", given)
        return Standing("table" if found[0][0] == "BASE TABLE" else "view", tuple((name, type_) for name, type_ in columns))

    def reclaim(self, table: TableName) -> None:
        """Copy the database to a new file, which takes the place of this one: a file of DuckDB keeps the bytes of rows that are gone."""
        path = self.connection.file()
        copy = durable.staging_path(path)
        [(name,)] = self.fetched("SELECT current_database()")
        self.execute(f"ATTACH '{str(copy).replace(chr(39), chr(39) * 2)}' AS {quoted(_COPY)}")
        self.execute(f"COPY FROM DATABASE {quoted(name)} TO {quoted(_COPY)}")
        self.execute(f"DETACH {quoted(_COPY)}")
        copy.chmod(path.stat().st_mode)
        self._database.close()
        durable.replace(copy, path)
        self._database = opened(self.connection, read_only=False)

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _loaded(values: pa.Array, column: Column) -> pa.Array:
    return values.cast(pa.float64()) if column.type == "numeric" and pa.types.is_string(values.type) else values
