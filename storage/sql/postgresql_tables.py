"""Tables of PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from changelog.lazy_imports import pa
from storage.sql.connections import LOCK_TIMEOUT, Connection
from storage.sql.names import TableName, quoted
from storage.sql.postgresql import Server
from storage.sql.tables import CONTROL, Column, Dialect, Session, Standing

DIALECT: Final = Dialect(
    types={
        "int": "bigint", "float": "double precision", "numeric": "double precision", "decimal": "numeric(DIGITS,SCALE)", "string": "text", "bool": "boolean", "date": "date",
        "date_time": "timestamp with time zone", "array": "json", "map": "json", "any": "json", "key": "bytea",
    },
    same="IS NOT DISTINCT FROM", places=(("tableoid", "ctid"),), incomparable=frozenset({"json"}), reserved=frozenset({"ctid", "xmin", "cmin", "xmax", "cmax", "tableoid"}),
    own_schemas=re.compile("pg_.*|information_schema", re.DOTALL), longest_name=63, most_columns=1600, folds_case=False, key_last=True,
)  # fmt: skip
_KINDS: Final = {
    "r": "table", "p": "table", "v": "view", "m": "materialized view", "S": "sequence", "i": "index", "I": "index", "c": "composite type", "f": "foreign table", "t": "system table",
}  # fmt: skip
"""What a letter of the catalog means."""


def session(connection: Connection, *, writes: bool) -> Session:
    """A session on a server. One that writes waits for the locks of others as long as for a held file."""
    made = PostgresSession(connection)
    if writes:
        made.execute(f"SET lock_timeout = {round((connection.connect_timeout or LOCK_TIMEOUT) * 1000)}")
    return made


class PostgresSession(Session):
    """A session on a server."""

    dialect = DIALECT

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._server = Server(connection)

    def parameter(self, number: int) -> str:
        """The mark of a bound text."""
        return f"CAST(${number} AS text)"

    def locked(self) -> str:
        """The end of a statement that locks its row."""
        return " FOR UPDATE"

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """Execute a statement; the number of rows that it touched."""
        return self._server.execute(statement, parameters)

    def fetched(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a small answer."""
        return self._server.fetched(statement, parameters)

    def load(self, table: str, columns: Sequence[Column], batches: Iterator[pa.RecordBatch]) -> int:
        """Fill a temporary table by COPY. The driver writes decimals without their last zeros: a column with a scale has them."""
        types = ", ".join(f"{quoted(column.name)} {DIALECT.type_of(column.type)}" for column in columns)
        self.execute(f"CREATE TEMP TABLE {quoted(table)} ({types}) ON COMMIT DROP")
        return self._copied(columns, batches, lambda rows: self._server.copy(table, rows, temporary=True))

    def fill(self, table: TableName, columns: Sequence[Column], batches: Iterator[pa.RecordBatch]) -> int:
        """Fill the table by COPY."""
        return self._copied(columns, batches, lambda rows: self._server.copy(table.table, rows, db_schema_name=table.schema))

    def _copied(self, columns: Sequence[Column], batches: Iterator[pa.RecordBatch], copy: Callable[[pa.RecordBatchReader], object]) -> int:
        """Send all batches by one COPY. What their maker raises comes out of it unchanged, not as an error of the driver."""
        first = next(batches, None)
        if first is None:
            return 0
        maker = _Maker()

        def sent() -> Iterator[pa.RecordBatch]:
            with maker.noted():
                for batch in chain((first,), batches):
                    yield _loaded(batch, columns)
                    maker.rows += batch.num_rows

        with maker.raising():
            copy(pa.RecordBatchReader.from_batches(_loaded(first, columns).schema, sent()))
        return maker.rows

    def standing(self, table: TableName) -> Standing:
        """The catalog's answer for a name. A type that is no table's own has the name of a table too."""
        found = self.fetched("SELECT relkind::text, relnamespace = 'pg_catalog'::regnamespace FROM pg_class WHERE oid = to_regclass($1)", (table.quoted,))
        if not found:
            return Standing("type") if self._is_type(table) else Standing()
        [(letter, system)] = found
        kind = ("system " if system else "") + _KINDS.get(letter, "relation")
        columns = self.fetched(
            "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum", (table.quoted,)
        )
        return Standing(kind, tuple((name, type_) for name, type_ in columns))

    def _is_type(self, table: TableName) -> bool:
        """Whether a type has a name where a table of this name is made. The type of arrays of another one makes way for a table."""
        return bool(self.fetched(
            "SELECT 1 FROM pg_type WHERE typname = $1 AND typnamespace = (SELECT oid FROM pg_namespace WHERE nspname = coalesce(nullif($2, ''), current_schema()::text))"
            " AND NOT EXISTS (SELECT 1 FROM pg_type AS element WHERE element.typarray = pg_type.oid)", (table.table, table.schema or "")
        ))

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
        self._server.close()


@dataclass(slots=True)
class _Maker:
    """A maker of batches that the driver reads: how many rows it made, and what stopped it."""

    rows: int = 0
    problem: BaseException | None = None

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note what ends the body; a driver that asks for no more ends it too, which is no problem of the maker."""
        with ExitStack() as stack:
            stack.push(self._note)
            yield

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Raise what stopped the maker in place of what the driver makes of it."""
        with ExitStack() as stack:
            stack.push(self._tell)
            yield

    def _note(self, _kind: object, problem: BaseException | None, _trace: object) -> None:
        self.problem = None if isinstance(problem, GeneratorExit) else problem

    def _tell(self, _kind: object, problem: BaseException | None, _trace: object) -> None:
        if problem is not None and self.problem is not None:
            raise self.problem from None


def _loaded(batch: pa.RecordBatch, columns: Sequence[Column]) -> pa.RecordBatch:
    arrays = [_sent(values, column) for values, column in zip(batch.columns, columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns])


def _sent(values: pa.Array, column: Column) -> pa.Array:
    if column.type == "numeric" and pa.types.is_string(values.type):
        return values.cast(pa.float64())
    return values.cast(pa.int64()) if pa.types.is_integer(values.type) else values
