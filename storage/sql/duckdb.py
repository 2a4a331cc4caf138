"""DuckDB files, by the library's own Arrow answers."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from changelog.lazy_imports import pa
from storage.sql.connections import Connection
from storage.sql.errors import DatabaseError, Trouble
from storage.sql.names import TableName, quoted
from storage.sql.reading import BATCH_ROWS, AnswerColumn, Ask, From, Ordered, Reading

if TYPE_CHECKING:
    from storage.sql.reading import Values

_MOMENTS: Final = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"})
_TEXTS: Final = ("HUGEINT", "UHUGEINT", "UBIGINT", "UUID", "ENUM", "TIME", "INTERVAL", "BIT", "BIGNUM", "VARINT")
_PAUSE: Final = 0.2
_ORDERS: Final = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"), Ordered("number", "HUGEINT", 0)),
    **{name: Ordered("number", name) for name in ("FLOAT", "DOUBLE")},
    **dict.fromkeys(_MOMENTS, Ordered("time", "TIMESTAMP")), "TIMESTAMP WITH TIME ZONE": Ordered("time", "TIMESTAMP WITH TIME ZONE"),
    "VARCHAR": Ordered("text", "VARCHAR"), "UUID": Ordered("text", "UUID"),
}  # fmt: skip
_DECIMAL: Final = re.compile(r"DECIMAL\(\d+,(\d+)\)")


def opened(connection: Connection, *, read_only: bool) -> Any:
    """Open the file, waiting while another process holds it. Raises DatabaseError."""
    import duckdb

    path, until = connection.file(), time.monotonic() + connection.timeout
    if read_only:
        connection.require_file()
    while True:
        try:
            with translating(connection):
                database = duckdb.connect(str(path), read_only=read_only)
                database.execute("SET TimeZone = 'UTC'")
                database.execute("SET python_enable_replacements = false")  # a table that is not there is no variable of this program
                return database
        except DatabaseError as error:
            if error.trouble != "busy" or time.monotonic() > until:
                raise
            time.sleep(_PAUSE)


def named(database: Any, table: TableName) -> str:
    """A table as statements name it. Where the file has its schema, the file's catalog comes before it, which may have the name of a schema too.

    DuckDB's own schemas are in no file, and what looks like a schema may be the catalog.
    """
    if table.schema is None:
        return table.quoted
    found = database.execute("SELECT database_name FROM duckdb_schemas() WHERE database_name = current_database() AND lower(schema_name) = lower(?)", [table.schema]).fetchall()
    return f"{quoted(found[0][0])}.{table.quoted}" if found else table.quoted


@contextmanager
def translating(connection: Connection) -> Iterator[None]:
    """Turn exceptions of the library into DatabaseError."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise connection.failed(_trouble(error), str(error)) from None


def _trouble(error: Any) -> Trouble:
    text = str(error)
    if "Could not set lock" in text or "Conflicting lock" in text:
        return "busy"
    kind = type(error).__name__
    if kind == "ConstraintException":
        return "unique" if "uplicate key" in text or "unique" in text.lower() else "constraint"
    return "moment" if kind == "TransactionException" and "onflict" in text else "refused"


def read(connection: Connection) -> Reading:
    """A read transaction of a file. Where this process writes to it later in the run, it is read by itself too."""
    return DuckReading(connection)


@dataclass(slots=True)
class _Time:
    """The time that one statement may still take, None for any. Only the calls into the library count, not what is done with the rows between them."""

    connection: Connection
    database: Any
    left: float | None

    @contextmanager
    def spent(self) -> Iterator[None]:
        """Make one call. Raises DatabaseError for exceptions of the library, and where the time is over: then the call is interrupted."""
        if self.left is None:
            with self._translating():
                yield
            return
        over, began = threading.Event(), time.monotonic()

        def stop() -> None:
            over.set()
            self.database.interrupt()

        timer = threading.Timer(self.left, stop)
        timer.daemon = True
        timer.start()
        try:
            with self._translating():
                yield
        except DatabaseError:
            if not over.is_set():
                raise
        finally:
            timer.cancel()
            timer.join()  # nothing interrupts what comes behind the call
        if over.is_set():
            raise self.connection.failed("moment", "the statement takes longer than statement_timeout")
        self.left = max(self.left - (time.monotonic() - began), 0.0)

    @contextmanager
    def _translating(self) -> Iterator[None]:
        """`translating`, also of what the library's Arrow readers raise."""
        try:
            with translating(self.connection):
                yield
        except OSError as error:
            raise self.connection.failed("refused", str(error)) from None


class DuckReading(Reading):
    """A read transaction of a DuckDB file that is opened for reading."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._database = opened(connection, read_only=True)
        with translating(connection):
            self._database.execute("BEGIN")

    def _time(self) -> _Time:
        """The time of one statement."""
        return _Time(self.connection, self._database, self.connection.statement_timeout)

    def described(self, ask: Ask) -> Sequence[AnswerColumn]:
        """The columns with DuckDB's names of their types."""
        with self._time().spent():
            answer = self._database.execute(f"SELECT * FROM {ask.fragment(self.named)} LIMIT 0")
        return [AnswerColumn(name, str(type_)) for name, type_, *_ in answer.description]

    def first_row(self, statement: str) -> str:
        """The first row as the text of a list."""
        with self._time().spent():
            return repr(self._database.execute(statement).fetchone())

    def named(self, table: TableName) -> str:
        """A table as statements name it."""
        return named(self._database, table)

    def expression(self, column: AnswerColumn) -> str:
        """A column itself, as text, or, of moments, with the odd ones beside it as text."""
        name = quoted(column.name)
        if column.type in _MOMENTS:
            plain = f"{name}::TIMESTAMP" if column.type == "TIMESTAMP_NS" else name
            inside = f"isfinite({name}) AND year({name}) BETWEEN 1 AND 9999"
            return f"CASE WHEN {inside} THEN {plain} END AS {name}, CASE WHEN NOT ({inside}) THEN {name}::VARCHAR END AS {quoted(_odd(column.name))}"
        return f"{name}::VARCHAR AS {name}" if column.type.startswith(_TEXTS) and not column.type.endswith("]") else name

    def ordered(self, column: AnswerColumn) -> Ordered | None:
        """Numbers, moments and texts."""
        digits = _DECIMAL.fullmatch(column.type)
        return _ORDERS.get(column.type) if digits is None else Ordered("number", f"DECIMAL(38,{digits[1]})", int(digits[1]))

    def compared(self, start: From) -> str:
        """The column; one of texts by their bytes, whatever its collation is."""
        return quoted(start.column) + (" COLLATE C" if start.type == "VARCHAR" else "")

    def parameter(self, start: From) -> str:
        """The bound text as the type that it is compared as."""
        return f"CAST(? AS {start.type})"

    def run(self, statement: str, parameters: Sequence[Any], columns: Sequence[AnswerColumn]) -> Iterator[Mapping[str, Values]]:
        """The batches of DuckDB's own answer."""
        allowed = self._time()
        with allowed.spent():
            reader = self._database.sql(statement, params=[str(one) for one in parameters] or None).to_arrow_reader(BATCH_ROWS)
        while True:
            with allowed.spent():
                batch = next(reader, None)
            if batch is None:
                return
            yield {column.name: _values(batch, column) for column in columns}

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _odd(name: str) -> str:
    return f"\x01errata odd {name}"


def _values(batch: pa.RecordBatch, column: AnswerColumn) -> Values:
    values = batch.column(column.name)
    if column.type == "JSON":
        return pa.ExtensionArray.from_storage(pa.json_(pa.string()), values.cast(pa.string()))
    if column.type not in _MOMENTS:
        return values
    odd = batch.column(_odd(column.name))
    if odd.null_count == len(odd):
        return values
    naive = values if pa.types.is_date(values.type) else values.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))
    return [text if text is not None else None if value is None else value.isoformat() for value, text in zip(naive.to_pylist(), odd.to_pylist(), strict=True)]
