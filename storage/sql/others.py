"""MySQL, SQL Server and Oracle, read by connectorx. Each statement is a moment of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from changelog.lazy_imports import pa
from storage.sql.connections import Connection
from storage.sql.errors import Trouble
from storage.sql.names import quoted
from storage.sql.reading import AnswerColumn, Ask, From, Reading

if TYPE_CHECKING:
    from storage.sql.reading import Values


def read(connection: Connection, *, beside_writer: bool = False) -> Reading:
    """A reader of a server."""
    return OtherReading(connection)


class OtherReading(Reading):
    """Answers of connectorx."""

    def _asked(self, statement: str) -> pa.Table:
        import connectorx

        try:
            return connectorx.read_sql(self.connection.address().url(), statement, return_type="arrow")
        except (RuntimeError, ValueError, TypeError, OSError, pa.ArrowException) as error:  # what the library raises, and the parts that it is made of
            raise self.connection.failed(_trouble(str(error)), str(error)) from None

    def quote(self, name: str) -> str:
        """A name in the quotes of its database: MySQL takes what is in double quotes for a text."""
        return "`" + name.replace("`", "``") + "`" if self.connection.kind == "mysql" else quoted(name)

    def described(self, ask: Ask) -> Sequence[AnswerColumn]:
        """The columns of an answer without rows."""
        return [AnswerColumn(name) for name in self._asked(f"SELECT * FROM {ask.fragment(self.quote)} WHERE 1 = 0").column_names]

    def first_row(self, statement: str) -> str:
        """The first row as the text of a list."""
        return repr([tuple(row.values()) for row in self._asked(statement).slice(0, 1).to_pylist()])

    def parameter(self, start: From) -> str:
        """The value as a text or a number: connectorx binds nothing. It came out of the database."""
        value = start.value
        return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''").replace("\\", "\\\\") + "'"

    def run(self, statement: str, parameters: Sequence[Any], columns: Sequence[AnswerColumn]) -> Iterator[Mapping[str, Values]]:
        """The answer in batches."""
        for batch in self._asked(statement).to_batches():
            yield {column.name: batch.column(column.name) for column in columns}

    def close(self) -> None:
        """Do nothing: each statement has a connection of its own."""


def _trouble(text: str) -> Trouble:
    return "password" if "Access denied" in text or "Login failed" in text else "unreachable" if "onnect" in text else "refused"
