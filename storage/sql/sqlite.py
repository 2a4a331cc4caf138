"""SQLite, by Python's own module. Its values have types, its columns have none."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from storage.sql.connections import Connection
from storage.sql.errors import DatabaseError, Trouble
from storage.sql.names import quoted
from storage.sql.reading import BATCH_ROWS, AnswerColumn, Ask, From, Reading

if TYPE_CHECKING:
    from storage.sql.reading import Values

_BOUND: Final = "? COLLATE BINARY"
"""A bound value, compared by bytes whatever the column's collation is."""
_STEPS = 100_000
"""Steps of SQLite's machine between two looks at the clock and at signals."""


def opened(connection: Connection, mode: str) -> sqlite3.Connection:
    """Open the file. Raises DatabaseError where it is not there, or is no database."""
    path = connection.file()
    if mode == "ro":
        connection.require_file()
    with translating(connection):
        database = sqlite3.connect(f"file:{quote(str(path))}?mode={mode}", uri=True, timeout=connection.timeout, isolation_level=None, check_same_thread=False)
        database.text_factory = _text
    return database


def _text(value: bytes) -> str:
    """A text; hexadecimal digits where it is no UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.hex()


@contextmanager
def translating(connection: Connection) -> Iterator[None]:
    """Turn exceptions of the module into DatabaseError."""
    try:
        yield
    except sqlite3.Error as error:
        raise connection.failed(_trouble(error), str(error)) from None
    except (OverflowError, UnicodeEncodeError) as error:
        raise connection.failed("refused", str(error)) from None


def _trouble(error: sqlite3.Error) -> Trouble:
    text = str(error)
    if isinstance(error, sqlite3.IntegrityError):
        return "unique" if text.startswith("UNIQUE") else "constraint"
    if "locked" in text or "busy" in text:
        return "busy"
    return "refused"


def read(connection: Connection) -> Reading:
    """A read transaction of a file."""
    return SqliteReading(connection)


def condition(start: From) -> str:
    """How rows from a bound on are asked for. Texts compare by their bytes. A text has all numbers before it, and may have later times of other forms before it: both are asked for too."""
    name = quoted(start.column)
    text = f"{name} >= {_BOUND} OR {name} IS NULL"
    if not isinstance(start.value, str):
        return text
    known = " OR ".join([f"{name} GLOB ?"] * len(start.forms))
    others = f" OR ({name} >= {_BOUND} AND {name} < {_BOUND} AND NOT ({known}))" if start.forms else ""
    return f"{text} OR {name} < ''{others}"


class SqliteReading(Reading):
    """A read transaction of a SQLite file: `mode=ro`, `query_only`."""

    asks_more = True

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._database = opened(connection, "ro")
        self._until: float | None = None
        self._allowed = connection.statement_timeout
        self._database.set_progress_handler(self._overdue, _STEPS)
        with translating(connection):
            self._database.execute("PRAGMA query_only = 1")
            self._database.execute("BEGIN")
            self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()

    def _overdue(self) -> int:
        return int(self._until is not None and time.monotonic() > self._until)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Turn exceptions of the module into DatabaseError. A statement that is cut short is overdue; else a signal came, which the module swallows."""
        try:
            with translating(self.connection):
                yield
        except DatabaseError as error:
            if error.reason != "interrupted":
                raise
            if not self._overdue():
                raise KeyboardInterrupt from None
            raise self.connection.failed("moment", "the statement takes longer than statement_timeout") from None

    def _execute(self, statement: str, parameters: Sequence[Any] = ()) -> sqlite3.Cursor:
        self._until = None if self._allowed is None else time.monotonic() + self._allowed
        try:
            return self._database.execute(statement, tuple(parameters))
        except sqlite3.Warning as error:  # a second statement, in Python 3.11
            raise sqlite3.ProgrammingError(str(error)) from None

    def described(self, ask: Ask) -> Sequence[AnswerColumn]:
        """The columns by the description of an answer without rows: a quoted name that is no column would be a text."""
        with self._asking():
            cursor = self._execute(f"{ask.whole} LIMIT 0")
        return [AnswerColumn(name) for name, *_ in cursor.description]

    def first_row(self, statement: str) -> str:
        """The first row as the text of a list."""
        with self._asking():
            row = self._execute(statement).fetchone()
        return repr(row)

    def bound(self, start: From) -> Sequence[Any]:
        """The bound, and the place and the forms that tell texts of other forms."""
        return [start.value, start.since, start.value, *start.forms] if start.forms else [start.value]

    def condition(self, start: From) -> str:
        """How rows from a bound on are asked for."""
        return condition(start)

    def run(self, statement: str, parameters: Sequence[Any], columns: Sequence[AnswerColumn]) -> Iterator[Mapping[str, Values]]:
        """The values of each column, each by its own storage class."""
        names = [column.name for column in columns]
        with self._asking():
            cursor = self._execute(statement, parameters)
            while rows := cursor.fetchmany(BATCH_ROWS):
                yield dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))

    def close(self) -> None:
        """Close the file."""
        self._database.close()
