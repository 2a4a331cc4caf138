"""Tables that receive rows: their columns, what a database has, and the session that writes."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from storage.sql.connections import Connection
from storage.sql.names import TableName, listed, quoted
from storage.sql.reading import tried

if TYPE_CHECKING:
    import pyarrow as pa

CONTROL: Final = "_errata_outputs"
KEY: Final = "_key"
"""The column of a row's own key."""
_CONTROL_COLUMNS: Final = (
    ("pipeline", "string"), ("output", "string"), ("table_name", "string"), ("chain", "string"), ("epoch", "int"), ("execution_id", "string"), ("columns", "any"),
    ("written_at", "date_time"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, and its type as CXL names it; `key` for the row's own key."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns of a table.

    Attributes:
        primary_key: Names of the columns of the primary key.
        mode: `mirror` or `op_rows`.
        form: The form of op rows.
    """

    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]
    mode: str = "mirror"
    form: str | None = None

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    @property
    def text(self) -> str:
        """The shape as the control row keeps it."""
        columns = [[column.name, column.type] for column in self.columns]
        return json.dumps({"columns": columns, "primary_key": list(self.primary_key), "mode": self.mode, "form": self.form}, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class ControlRow:
    """The content of a table: the rows of an output at an epoch of a ledger, which `chain` tells from others."""

    table_name: str
    chain: str
    epoch: int
    execution_id: str
    columns: str


@dataclass(frozen=True, slots=True)
class Standing:
    """A table in a database before a run.

    Attributes:
        kind: What has the table's name, in the database's words: `table` for one that can be written to, `view`, `sequence`; None where nothing has.
        columns: The columns of a table or view, with types as the database names them.
        control: The control row of an output; None where there is none.
    """

    kind: str | None = None
    columns: tuple[tuple[str, str], ...] = ()
    control: ControlRow | None = None


NOTHING: Final = Standing()


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one kind of database writes.

    Attributes:
        types: Its type of each CXL type.
        same: Compares two expressions, null with null too.
        places: Names that together are a row's place in its table, in the order in which they are tried. A column hides the ones that have its name.
        alters: Whether columns of a table with a primary key can be altered.
        incomparable: Types without an equality: with one, rows are compared by the text of all their values, and it is in no primary key.
        reserved: Names that no column can have.
        schemas: The only names of schemas; None where schemas are made.
        own_tables: Names of tables that the database keeps for itself.
        own_schemas: Names of schemas that it keeps for itself.
        longest_name: The bytes of a name at most; None for no limit.
        most_columns: The columns of a table at most; None for no limit.
        folds_case: Whether names that differ by case alone are one.
        key_last: Whether a table takes its primary key when its rows are there: one index is built, and not kept up row by row.
    """

    types: Mapping[str, str]
    same: str
    places: tuple[tuple[str, ...], ...]
    alters: bool = True
    incomparable: frozenset[str] = frozenset()
    reserved: frozenset[str] = frozenset()
    schemas: frozenset[str] | None = None
    own_tables: re.Pattern[str] | None = None
    own_schemas: re.Pattern[str] | None = None
    longest_name: int | None = None
    most_columns: int | None = None
    folds_case: bool = True
    key_last: bool = False

    def type_of(self, type_: str) -> str:
        """The database's type of a CXL type."""
        if type_.startswith("decimal("):
            digits, scale = type_.removeprefix("decimal(").rstrip(")").split(",")
            return self.types["decimal"].replace("DIGITS", digits.strip()).replace("SCALE", scale.strip())
        return self.types.get(type_, self.types["any"])


class Session(ABC):
    """A connection that writes. Everything between `begin` and `commit` lands together."""

    dialect: Dialect

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    @abstractmethod
    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """Execute a statement; the number of rows that it touched. Raises DatabaseError."""

    @abstractmethod
    def fetched(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a small answer. Raises DatabaseError."""

    @abstractmethod
    def load(self, table: str, columns: Sequence[Column], batches: Iterator[pa.RecordBatch]) -> int:
        """Make a temporary table of these columns and fill it; the number of rows. Raises DatabaseError."""

    @abstractmethod
    def fill(self, table: TableName, columns: Sequence[Column], batches: Iterator[pa.RecordBatch]) -> int:
        """Write rows straight into a table that this transaction made; their number. Raises DatabaseError."""

    @abstractmethod
    def standing(self, table: TableName) -> Standing:
        """The table or view that has a name, without a control row. Raises DatabaseError."""

    @abstractmethod
    def reclaim(self, table: TableName) -> None:
        """Write a table, or the file that it is in, anew, so that rows which are gone are gone from disk too. Raises DatabaseError."""

    @abstractmethod
    def close(self) -> None:
        """End the connection; what was not committed is gone."""

    def begin(self) -> None:
        """Begin a transaction."""
        self.execute("BEGIN")

    def commit(self) -> None:
        """Commit the transaction."""
        self.execute("COMMIT")

    def parameter(self, number: int) -> str:
        """The mark of a bound value, numbered from 1."""
        return "?"

    def locked(self) -> str:
        """The end of a statement that locks the rows that it reads."""
        return ""

    def named(self, table: TableName) -> str:
        """A table as statements name it."""
        return table.quoted

    def place(self, table: TableName, columns: Sequence[str]) -> Sequence[str]:
        """The names that together are a row's place in a table with these columns; none where nothing has the place."""
        taken = {name.casefold() for name in columns}
        return next((names for names in self.dialect.places if taken.isdisjoint(names)), ())

    # -- the control table

    def look(self, table: TableName, pipeline: str, output: str) -> Standing:
        """The table or view that has a name, with the control row of an output."""
        control = table.beside(CONTROL)
        found = self.standing(table)
        if self.standing(control).kind is None:
            return found
        return Standing(found.kind, found.columns, self._control(control, pipeline, output, ""))

    def claim(self, table: TableName, pipeline: str, output: str) -> ControlRow | None:
        """Make the control table where there is none, lock the row of an output, and return it; None for a new one."""
        control = table.beside(CONTROL)
        columns = ", ".join(f"{quoted(name)} {self.dialect.type_of(type_)}" for name, type_ in _CONTROL_COLUMNS)
        self.execute(f"CREATE TABLE IF NOT EXISTS {self.named(control)} ({columns}, PRIMARY KEY (pipeline, output))")
        marks = f"{self.parameter(1)}, {self.parameter(2)}"
        self.execute(f"INSERT INTO {self.named(control)} (pipeline, output, epoch) VALUES ({marks}, 0) ON CONFLICT (pipeline, output) DO NOTHING", (pipeline, output))
        found = self._control(control, pipeline, output, self.locked())
        return None if found is None or not found.chain else found

    def note(self, table: TableName, pipeline: str, output: str, row: ControlRow, moment: str) -> None:
        """Write the control row of an output, which was claimed."""
        given = {**asdict(row), "written_at": moment}
        kinds = dict(_CONTROL_COLUMNS)
        sets = ", ".join(f"{quoted(name)} = {self._bound(number, kinds[name])}" for number, name in enumerate(given, 1))
        where = f"pipeline = {self.parameter(len(given) + 1)} AND output = {self.parameter(len(given) + 2)}"
        self.execute(f"UPDATE {self.named(table.beside(CONTROL))} SET {sets} WHERE {where}", (*map(str, given.values()), pipeline, output))

    def _bound(self, number: int, type_: str) -> str:
        return f"CAST({self.parameter(number)} AS {self.dialect.type_of(type_)})"

    def _control(self, control: TableName, pipeline: str, output: str, ending: str) -> ControlRow | None:
        names = ("table_name", "chain", "epoch", "execution_id", "columns")
        where = f"pipeline = {self.parameter(1)} AND output = {self.parameter(2)}"
        rows = self.fetched(f"SELECT {listed(names)} FROM {self.named(control)} WHERE {where}{ending}", (pipeline, output))
        if not rows or not isinstance(rows[0][2], int):  # a row without an epoch is somebody else's
            return None
        name, chain, epoch, execution, columns = rows[0]
        return ControlRow(name or "", chain or "", epoch, execution or "", columns or "")

    # -- tables

    def make(self, table: TableName, shape: Shape, batches: Iterator[pa.RecordBatch]) -> int:
        """Make a table with its rows; their number. Raises DatabaseError."""
        columns = [f"{quoted(column.name)} {self.dialect.type_of(column.type)}" for column in shape.columns]
        key = f"PRIMARY KEY ({listed(shape.primary_key)})" if shape.primary_key else ""
        if table.schema is not None:
            self.make_schema(table.schema)
        if key and self.dialect.key_last:
            self.execute(f"CREATE TABLE {self.named(table)} ({', '.join(columns)})")
            rows = self.fill(table, shape.columns, batches)
            self.execute(f"ALTER TABLE {self.named(table)} ADD {key}")
            return rows
        self.execute(f"CREATE TABLE {self.named(table)} ({', '.join(filter(None, (*columns, key)))})")
        return self.fill(table, shape.columns, batches)

    def make_schema(self, schema: str) -> None:
        """Make a schema where there is none."""
        self.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}")

    def drop(self, table: TableName) -> None:
        """Remove a table."""
        self.execute(f"DROP TABLE {self.named(table)}")


_MODULES: Final[Mapping[str, str]] = {"sqlite": "sqlite_tables", "duckdb": "duckdb_tables", "postgresql": "postgresql_tables"}


def _module(connection: Connection) -> Any:
    connection.require_library()
    return import_module(f"storage.sql.{_MODULES[connection.kind]}")


def dialect_of(connection: Connection) -> Dialect:
    """How the database of a connection writes."""
    found: Dialect = _module(connection).DIALECT
    return found


@contextmanager
def session_of(connection: Connection, *, writes: bool) -> Iterator[Session]:
    """A session, for looking alone or for writing. Raises DatabaseError after three tries."""
    open_: Callable[..., Session] = _module(connection).session
    session: Session = tried(lambda: open_(connection, writes=writes))
    try:
        yield session
    finally:
        session.close()


def look(connection: Connection, table: TableName, pipeline: str, output: str) -> Standing:
    """The table or view that has a name, and the control row of an output. A file that is not there is not made. Raises DatabaseError."""
    path = connection.address().path
    if path is not None and not path.exists():
        return NOTHING
    with session_of(connection, writes=False) as session:
        return session.look(table, pipeline, output)
