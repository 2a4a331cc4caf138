"""Tables of PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from changelog.lazy_imports import pa
from storage.sql.connections import LOCK_TIMEOUT, Connection
from storage.sql.names import TableName, quoted
from storage.sql.postgresql import opened, translating
from storage.sql.tables import CONTROL, Column, Dialect, Session, Standing

DIALECT: Final = Dialect(
    types={
        "int": "bigint", "float": "double precision", "numeric": "double precision", "decimal": "numeric(DIGITS,SCALE)", "string": "text", "bool": "boolean", "date": "date",
        "date_time": "timestamp with time zone", "array": "json", "map": "json", "any": "json", "key": "bytea",
    },
    same="IS NOT DISTINCT FROM", place="ctid", casts=dict.fromkeys(("decimal", "array", "map", "any"), "text"), compares_texts=True, longest_name=63, folds_case=False,
)  # fmt: skip
_LOADED: Final = {"decimal": "text", "array": "text", "map": "text", "any": "text"}
"""Types whose values are loaded as texts: the driver binds decimals without their last zeros, and has no JSON."""


def session(connection: Connection, *, writes: bool) -> Session:
    """A session on a server. One that writes waits for the locks of others as long as for a held file."""
    made = PostgresSession(connection, opened(connection))
    if writes:
        made.execute(f"SET lock_timeout = {round((connection.connect_timeout or LOCK_TIMEOUT) * 1000)}")
    return made


class PostgresSession(Session):
    """A session of the ADBC driver."""

    dialect = DIALECT

    def __init__(self, connection: Connection, database: Any) -> None:
        super().__init__(connection)
        self._database = database

    def parameter(self, number: int) -> str:
        """The mark of a bound text."""
        return f"CAST(${number} AS text)"

    def locked(self) -> str:
        """What a statement ends with so that it locks its row."""
        return " FOR UPDATE"

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """Execute a statement; the number of rows that it touched."""
        with translating(self.connection), self._database.cursor() as cursor:
            cursor.execute(statement, parameters=tuple(map(str, parameters)) or None)
            return int(cursor.rowcount)

    def fetched(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a small answer."""
        with translating(self.connection), self._database.cursor() as cursor:
            cursor.execute(statement, parameters=tuple(map(str, parameters)) or None)
            return list(cursor.fetchall())

    def load(self, table: str, columns: Sequence[Column], batches: Iterator[pa.RecordBatch]) -> int:
        """Fill a temporary table by COPY."""
        types = ", ".join(f"{quoted(column.name)} {_loaded_type(column.type)}" for column in columns)
        self.execute(f"CREATE TEMP TABLE {quoted(table)} ({types}) ON COMMIT DROP")
        rows = 0
        for batch in batches:
            if batch.num_rows:
                given = pa.Table.from_arrays([_loaded(values, column) for values, column in zip(batch.columns, columns, strict=True)], names=[column.name for column in columns])
                with translating(self.connection), self._database.cursor() as cursor:
                    cursor.adbc_ingest(table, given, mode="append", temporary=True)
                rows += batch.num_rows
        return rows

    def standing(self, table: TableName) -> Standing:
        """What the catalog says of a name."""
        [(kind,)] = self.fetched("SELECT (SELECT relkind::text FROM pg_class WHERE oid = to_regclass($1))", (table.quoted,))
        if kind is None:
            return Standing()
        columns = self.fetched(
            "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum", (table.quoted,)
        )
        return Standing("table" if kind in ("r", "p") else "view", tuple((name, type_) for name, type_ in columns))

    def make_schema(self, schema: str) -> None:
        """Make a schema where there is none; one that is there needs no right to make it."""
        if not self.fetched("SELECT 1 FROM pg_namespace WHERE nspname = $1", (schema,)):
            self.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}")

    def reclaim(self, table: TableName) -> None:
        """Write the table anew; the server's log keeps its own time."""
        for one in (table, table.beside(CONTROL)):
            self.execute(f"VACUUM (FULL) {one.quoted}")

    def close(self) -> None:
        """End the connection."""
        self._database.close()


def _kind(type_: str) -> str:
    return "decimal" if type_.startswith("decimal(") else type_ if type_ in DIALECT.types else "any"


def _loaded_type(type_: str) -> str:
    return _LOADED.get(_kind(type_)) or DIALECT.type_of(type_)


def _loaded(values: pa.Array, column: Column) -> pa.Array:
    if column.type == "numeric" and pa.types.is_string(values.type):
        return values.cast(pa.float64())
    if pa.types.is_decimal(values.type):
        return values.cast(pa.string())
    return values.cast(pa.int64()) if pa.types.is_integer(values.type) else values
