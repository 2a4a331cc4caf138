"""Reading databases: all statements of a connection in one moment, answers in batches."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from storage.sql.connections import Connection
from storage.sql.errors import DatabaseError
from storage.sql.names import TableName, quoted

if TYPE_CHECKING:
    from typing import TypeAlias

    import pyarrow as pa

    Order: TypeAlias = Literal["number", "time", "text"]
    """How values follow each other. Texts by their bytes."""
    Values: TypeAlias = pa.Array | list[Any]
    """The values of a column: typed, or each in its own type."""

TRIES: Final = 3
PAUSES: Final = (0.3, 1.0)
"""Seconds between tries to connect."""
BATCH_ROWS: Final = 20_000
ALIAS: Final = "errata_answer"
"""The name of a table or query in a statement. It has no AS before it, which Oracle refuses."""
_MODULES: Final = {"sqlite": "sqlite", "duckdb": "duckdb", "postgresql": "postgresql", "mysql": "others", "mssql": "others", "oracle": "others"}


@dataclass(frozen=True, slots=True)
class AnswerColumn:
    """A column of an answer: its name, and its type in the words of the database; empty where values have types of their own."""

    name: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class Ordered:
    """A column that a database orders as Errata does.

    Attributes:
        order: How its values follow each other.
        bound: The type of bounds that are compared with it: it has every value of the column, and those between them.
        scale: Decimal places of its numbers; None where they have any.
    """

    order: Order
    bound: str
    scale: int | None = None


@dataclass(frozen=True, slots=True)
class From:
    """The bound of a cursor: rows at or behind a value, and rows without one.

    Attributes:
        column: The column of the cursor.
        value: The value.
        type: The type that the value is compared as, in the words of the database.
        forms: Where times are texts: patterns of GLOB of the texts that compare as times. Others are asked for too, from `since` on.
        since: The least of the other texts.
    """

    column: str
    value: Any
    type: str = ""
    forms: tuple[str, ...] = ()
    since: str = ""


@dataclass(frozen=True, slots=True)
class Ask:
    """A table or a query."""

    table: TableName | None = None
    query: str | None = None

    def fragment(self, named: Callable[[TableName], str] = attrgetter("quoted")) -> str:
        """The text behind FROM. A query has lines of its own, so that a comment at its end ends there. `named`: how statements name a table."""
        return f"{named(self.table)} {ALIAS}" if self.table is not None else f"(\n{self.query}\n) {ALIAS}"

    @property
    def whole(self) -> str:
        """The statement that asks for all rows and columns."""
        return f"SELECT * FROM {self.fragment()}"


class Reading(ABC):
    """A read transaction of a connection. What is read lies in one moment.

    Attributes:
        asks_more: Whether the answer to a bound may have rows before it.
    """

    asks_more: ClassVar[bool] = False

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    @abstractmethod
    def described(self, ask: Ask) -> Sequence[AnswerColumn]:
        """The columns of an answer, without asking for rows. Raises DatabaseError."""

    @abstractmethod
    def first_row(self, statement: str) -> str:
        """The first row of a statement as text. Raises DatabaseError."""

    @abstractmethod
    def run(self, statement: str, parameters: Sequence[Any], columns: Sequence[AnswerColumn]) -> Iterator[Mapping[str, Values]]:
        """The batches of a statement that `statement` made. Raises DatabaseError."""

    @abstractmethod
    def close(self) -> None:
        """End the transaction and the connection."""

    def quote(self, name: str) -> str:
        """A name as the database quotes it."""
        return quoted(name)

    def named(self, table: TableName) -> str:
        """A table as statements name it."""
        return table.quoted_by(self.quote)

    def expression(self, column: AnswerColumn) -> str:
        """How a column is selected, with its name."""
        return self.quote(column.name)

    def ordered(self, column: AnswerColumn) -> Ordered | None:
        """How a column whose type is known is ordered; None for an order of its own."""
        return None

    def compared(self, start: From) -> str:
        """How a statement names the column of a cursor where it is compared."""
        return self.quote(start.column)

    def parameter(self, start: From) -> str:
        """How a statement names the bound value of a cursor."""
        return "?"

    def bound(self, start: From) -> Sequence[Any]:
        """The bound values of a statement."""
        return [start.value]

    def batches(self, ask: Ask, columns: Sequence[AnswerColumn], start: From | None = None) -> Iterator[Mapping[str, Values]]:
        """The rows of an answer. Raises DatabaseError."""
        yield from self.run(self.statement(ask, columns, start), [] if start is None else self.bound(start), columns)

    def statement(self, ask: Ask, columns: Sequence[AnswerColumn], start: From | None = None) -> str:
        """The statement that is asked."""
        text = f"SELECT {', '.join(map(self.expression, columns)) or '1'} FROM {ask.fragment(self.named)}"
        return text if start is None else f"{text} WHERE {self.condition(start)}"

    def condition(self, start: From) -> str:
        """How rows from a bound on are asked for."""
        return f"{self.compared(start)} >= {self.parameter(start)} OR {self.quote(start.column)} IS NULL"


def shown(kind: str, ask: Ask, start: From | None) -> str:
    """The statement that is asked, as far as no connection is needed: with all columns, and with bounds that are not cast, as the server knows the types."""
    if start is None:
        return ask.whole
    name = quoted(start.column)
    return f"{ask.whole} WHERE " + (import_module("storage.sql.sqlite").condition(start) if kind == "sqlite" else f"{name} >= ? OR {name} IS NULL")


@contextmanager
def one_moment(connection: Connection) -> Iterator[Reading]:
    """A read transaction. Raises DatabaseError after three tries, and ConnectionFault."""
    connection.require_library()
    module = import_module(f"storage.sql.{_MODULES[connection.kind]}")
    reading: Reading = tried(lambda: module.read(connection))
    try:
        yield reading
    finally:
        reading.close()


def tried(connect: Any) -> Any:
    """The result of `connect`, tried again with growing pauses where there is no answer. Raises DatabaseError."""
    for pause in (*PAUSES, None):
        try:
            return connect()
        except DatabaseError as error:
            if error.trouble != "unreachable" or pause is None:
                raise
            time.sleep(pause)
    raise AssertionError("the last try returns or raises")
