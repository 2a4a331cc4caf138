"""PostgreSQL, by the ADBC driver. Types that the driver would change are selected as text, or as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, TypeVar

from changelog.lazy_imports import pa, pc
from storage.sql.calls import awaited
from storage.sql.connections import Connection
from storage.sql.errors import Trouble
from storage.sql.names import quoted
from storage.sql.reading import AnswerColumn, Ask, From, Ordered, Reading
from storage.values.decimals import json_number

if TYPE_CHECKING:
    from storage.sql.reading import Values

T = TypeVar("T")
_THEMSELVES: Final = frozenset({"smallint", "integer", "bigint", "real", "double precision", "boolean", "text", "character varying", "character", "bytea", "name", "bpchar", "oid"})
_MOMENTS: Final = frozenset({"date", "timestamp without time zone", "timestamp with time zone"})
_ORDERS: Final = {
    **dict.fromkeys(("smallint", "integer", "bigint", "oid"), Ordered("number", "bigint", 0)),
    **{name: Ordered("number", name) for name in ("numeric", "real", "double precision")},
    "date": Ordered("time", "timestamp without time zone"), **{name: Ordered("time", name) for name in ("timestamp without time zone", "timestamp with time zone")},
    **dict.fromkeys(("text", "character varying", "name"), Ordered("text", "text")), **dict.fromkeys(("character", "bpchar"), Ordered("text", "bpchar")), "uuid": Ordered("text", "uuid"),
}  # fmt: skip
_SQLSTATE = re.compile(r"SQLSTATE:? ?([0-9A-Z]{5})")
_STATES: Final[Mapping[str, Trouble]] = {"23505": "unique", "55P03": "busy", "22P05": "character"}
_PASSWORD = ("password authentication failed", "no password supplied", "no pg_hba.conf entry")
_LOST = ("server closed the connection", "connection to server was lost", "no connection to the server", "SSL connection has been closed", "could not receive data", "could not send data")


def settings(connection: Connection) -> dict[str, str]:
    """The parameters beside the address: the time to connect, and the name of the program."""
    return {"connect_timeout": str(max(2, round(connection.timeout))), "application_name": "errata"}  # libpq's least is 2


class Server:
    """A session on a server. A signal cancels what it waits for."""

    def __init__(self, connection: Connection) -> None:
        import adbc_driver_postgresql.dbapi as driver

        self._connection = connection
        address = connection.address()
        given = {name for name, _ in address.options}
        extra = {name: value for name, value in settings(connection).items() if name not in given}
        with translating(connection, connecting=True):
            self._database = driver.connect(address.url(extra), autocommit=True)
        for statement in ("SET client_encoding = 'UTF8'", "SET timezone = 'UTC'", "SET datestyle = 'ISO'", "SET intervalstyle = 'postgres'", "SET extra_float_digits = 1", "SET bytea_output = 'hex'"):
            self.execute(statement)
        if connection.statement_timeout is not None:
            self.execute(f"SET statement_timeout = {round(connection.statement_timeout * 1000)}")

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """Execute a statement; the number of rows that it touched. Raises DatabaseError."""
        with self._cursor() as cursor:
            self._awaited(lambda: _asked(cursor, statement, parameters))
            return int(cursor.rowcount)

    def fetched(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a small answer. Raises DatabaseError."""
        with self._cursor() as cursor:
            return self._awaited(lambda: _asked(cursor, statement, parameters).fetchall())

    def described(self, statement: str) -> pa.Schema:
        """The columns of an answer, without asking for it. Raises DatabaseError."""
        with self._cursor() as cursor:
            return self._awaited(lambda: cursor.adbc_execute_schema(statement))

    def batches(self, statement: str, parameters: Sequence[Any] = ()) -> Iterator[pa.RecordBatch]:
        """The batches of an answer while the server sends them. Raises DatabaseError."""
        with self._cursor() as cursor:
            reader = self._awaited(lambda: _asked(cursor, statement, parameters).fetch_record_batch())
            while (batch := self._awaited(lambda: next(reader, None))) is not None:
                yield batch

    def copy(self, table: str, rows: pa.RecordBatchReader, **place: Any) -> None:
        """Append rows to a table by COPY. Raises DatabaseError."""
        with self._cursor() as cursor:
            self._awaited(lambda: cursor.adbc_ingest(table, rows, mode="append", **place))

    def close(self) -> None:
        """End the session, and its transaction with it."""
        self._database.close()

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        with translating(self._connection), self._database.cursor() as cursor:
            yield cursor

    def _awaited(self, call: Callable[[], T]) -> T:
        return awaited(call, self._database.adbc_cancel)


def _asked(cursor: Any, statement: str, parameters: Sequence[Any]) -> Any:
    """The cursor with the answer to a statement. All parameters are bound as texts."""
    return cursor.execute(statement, parameters=tuple(map(str, parameters)) or None)


@contextmanager
def translating(connection: Connection, *, connecting: bool = False) -> Iterator[None]:
    """Turn exceptions of the driver into DatabaseError."""
    from adbc_driver_manager import Error

    try:
        yield
    except (Error, pa.ArrowException, OSError, RuntimeError, ValueError, TypeError) as error:  # rows that are read on the way fail in Arrow
        text, state = str(error), getattr(error, "sqlstate", None) or ""
        if not connecting and not isinstance(error, Error) and "[libpq]" not in text:  # whatever fails with the address, its text may have it
            raise
        found = _SQLSTATE.search(text)
        raise connection.failed(_trouble(state or (found[1] if found else ""), text, connecting=connecting), _plain(text)) from None


def _trouble(state: str, text: str, *, connecting: bool) -> Trouble:
    """The meaning of a SQLSTATE: 08, 40, 57, 72 are lost moments, 23 constraints, 54 limits."""
    if connecting:
        refused = state.startswith("28") or any(sign in text for sign in _PASSWORD)
        return "password" if refused else "refused" if state.startswith("3D") or "does not exist" in text else "unreachable"
    if state in _STATES:
        return _STATES[state]
    if state == "54000" and "index row" in text:
        return "key"
    lost = state[:2] in ("08", "40", "57", "72") or any(sign in text for sign in _LOST)
    return "moment" if lost else "constraint" if state.startswith("23") else "refused"


def _plain(text: str) -> str:
    """The server's text without the driver's own words around it."""
    text = re.sub(r"^[A-Z_]+: ", "", text)
    return re.sub(r"(Query was:.*)?\.? ?(Detail|SQLSTATE): .*$", "", text, flags=re.DOTALL)


def read(connection: Connection) -> Reading:
    """A read transaction of a server."""
    return PostgresReading(connection)


class PostgresReading(Reading):
    """A transaction that is repeatable read and read only."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._server = Server(connection)
        with ExitStack() as opening:
            opening.callback(self.close)
            self._server.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            opening.pop_all()

    def described(self, ask: Ask) -> Sequence[AnswerColumn]:
        """The columns with the names of their types; of a domain the type that it is of."""
        names = list(self._server.described(f"{ask.whole} LIMIT 0").names)
        if not names or len(set(names)) < len(names):
            return [AnswerColumn(name) for name in names]
        types = ", ".join(f"pg_typeof(errata_answer.{quoted(name)})::oid::bigint" for name in names)
        [row] = self._server.fetched(f"SELECT {types} FROM (SELECT 1) AS errata_one LEFT JOIN {ask.fragment()} ON false")
        named = self._named(sorted(set(row)))
        return [AnswerColumn(name, named.get(oid, "")) for name, oid in zip(names, row, strict=True)]

    def _named(self, oids: Sequence[int]) -> Mapping[int, str]:
        """The name of each type by its number; domains by what they are made of."""
        numbers = ", ".join(map(str, map(int, oids)))
        found = self._server.fetched(
            f"WITH RECURSIVE made(first, oid, base) AS (SELECT oid, oid, typbasetype FROM pg_type WHERE oid IN ({numbers})"
            " UNION ALL SELECT made.first, pg_type.oid, pg_type.typbasetype FROM made JOIN pg_type ON pg_type.oid = made.base WHERE made.base <> 0)"
            " SELECT first::bigint, format_type(oid, NULL) FROM made WHERE base = 0"
        )
        return dict(found)

    def first_row(self, statement: str) -> str:
        """The first row as the server writes it."""
        rows = self._server.fetched(f"SELECT errata_answer::text FROM (\n{statement}\n) AS errata_answer LIMIT 1")
        return str(rows[0][0]) if rows else ""

    def expression(self, column: AnswerColumn) -> str:
        """A column itself, as text, as JSON, or, of moments, with the odd ones beside it as text."""
        name = quoted(column.name)
        if column.type in _THEMSELVES:
            return name
        if column.type in _MOMENTS:
            inside = f"isfinite({name}) AND {name} >= '0001-01-01' AND {name} < '10000-01-01'"
            return f"CASE WHEN {inside} THEN {name} END AS {name}, CASE WHEN NOT ({inside}) THEN {name}::text END AS {quoted(_odd(column.name))}"
        if column.type.endswith("[]"):
            return f"to_jsonb({name})::text AS {name}"
        return f"{name}::text AS {name}"

    def ordered(self, column: AnswerColumn) -> Ordered | None:
        """Numbers, moments and texts."""
        return _ORDERS.get(column.type)

    def parameter(self, start: From) -> str:
        """The bound text as the type that it is compared as. Texts compare by their bytes, as Errata compares them, whatever the column's collation is."""
        return f"CAST($1 AS {start.type})" + (' COLLATE "C"' if start.type in ("text", "bpchar") else "")

    def run(self, statement: str, parameters: Sequence[Any], columns: Sequence[AnswerColumn]) -> Iterator[Mapping[str, Values]]:
        """The batches while the server sends them."""
        for batch in self._server.batches(statement, parameters):
            yield {column.name: _values(batch, column) for column in columns}

    def close(self) -> None:
        """End the connection, and the transaction with it."""
        self._server.close()


def _odd(name: str) -> str:
    """The name of the column with the odd values; the server cuts longer ones, so that it is made of a hash."""
    return "errata_odd_" + blake2b(name.encode(), digest_size=16).hexdigest()


def _values(batch: pa.RecordBatch, column: AnswerColumn) -> Values:
    values = batch.column(column.name)
    if isinstance(values.type, pa.BaseExtensionType):
        values = values.storage
    if column.type in _MOMENTS:
        odd = batch.column(_odd(column.name))
        return values if odd.null_count == len(odd) else [text if text is not None else value for value, text in zip(_moments(values), odd.to_pylist(), strict=True)]
    if column.type == "numeric[]":
        return [None if text is None else _exact(json.loads(text, parse_float=Decimal, parse_int=Decimal)) for text in values.to_pylist()]
    if column.type.endswith("[]") or column.type in ("json", "jsonb"):
        return pa.ExtensionArray.from_storage(pa.json_(pa.string()), values.cast(pa.string()))
    if column.type == "numeric":
        return pc.replace_substring_regex(values, r"^(-?[0-9]+)\.0+$", r"\1")
    return values


def _exact(value: Any) -> Any:
    """An array with numbers that have the digits of its decimals, where there are such."""
    if isinstance(value, list):
        return [_exact(one) for one in value]
    return json_number(value) if isinstance(value, Decimal) else value


def _moments(values: pa.Array) -> list[str | None]:
    """Dates and times of UTC as ISO text."""
    naive = values if values.type == pa.date32() else values.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))
    return [None if value is None else value.isoformat() for value in naive.to_pylist()]
