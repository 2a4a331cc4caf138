"""MySQL, SQL Server and Oracle, read by connectorx. Each statement is a moment of its own.

Columns have the types that connectorx gives, in Arrow's words. The library binds nothing, so bounds are literals: numbers without quotes, which no database reads
as a float or by the language of the session, and times in the standard form. Some bounds are a little earlier than asked for (`OtherReading.parameter`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from changelog.lazy_imports import pa
from storage.sql.connections import Connection
from storage.sql.errors import Trouble
from storage.sql.names import quoted
from storage.sql.reading import AnswerColumn, Ask, From, Ordered, Reading

if TYPE_CHECKING:
    from storage.sql.reading import Values

_SESSION: Final = {"mysql": ["SET time_zone = '+00:00'"]}
"""The first statement of a session. TIMESTAMP of MySQL is shown in the zone of the session, where an hour comes twice a year."""
_INTEGERS: Final = ("int", "uint")
_FLOATS: Final = ("halffloat", "float", "double")
_FLOAT_STEP: Final = 2.0**-22
"""More than the distance of two neighbours of 32 bits: what is read may be another one than what is compared."""
_TIME_STEP: Final = timedelta(seconds=1)
"""More than a time of SQL Server is rounded by (datetime: to 1/300 s, the minutes of smalldatetime are stored so)."""
_TIMES: Final = {
    ("mysql", "time"): "TIMESTAMP '{} {}'", ("mssql", "time"): "CAST('{}T{}' AS datetime2)", ("oracle", "time"): "TIMESTAMP '{} {}'",
    ("mysql", "zoned"): "TIMESTAMP '{} {}'", ("mssql", "zoned"): "CAST('{}T{}+00:00' AS datetimeoffset)", ("oracle", "zoned"): "TIMESTAMP '{} {} +00:00'",
}  # fmt: skip
"""Literals of a day and a time of UTC, to compare with columns without and with a zone. They do not depend on the session's language, zone and formats."""


def read(connection: Connection) -> Reading:
    """A reader of a server."""
    return OtherReading(connection)


class OtherReading(Reading):
    """Answers of connectorx."""

    asks_more = True

    def _asked(self, statement: str) -> pa.Table:
        """The whole answer. As a stream, an error on the way would be a panic of the library, which writes its text to standard error with whatever secret is in it."""
        import connectorx

        try:
            return connectorx.read_sql(self.connection.address().url(), statement, return_type="arrow", pre_execution_query=_SESSION.get(self.connection.kind))
        except (RuntimeError, ValueError, TypeError, OSError, pa.ArrowException) as error:  # what the library raises, and the parts that it is made of
            raise self.connection.failed(_trouble(str(error)), str(error)) from None

    def quote(self, name: str) -> str:
        """A name in the quotes of its database: MySQL takes what is in double quotes for a text."""
        return "`" + name.replace("`", "``") + "`" if self.connection.kind == "mysql" else quoted(name)

    def described(self, ask: Ask) -> Sequence[AnswerColumn]:
        """The columns of an answer without rows, with Arrow's names of their types."""
        return [AnswerColumn(field.name, str(field.type)) for field in self._asked(f"SELECT * FROM {ask.fragment(self.named)} WHERE 1 = 0").schema]

    def ordered(self, column: AnswerColumn) -> Ordered | None:
        """Numbers and moments. Texts have the order of a collation."""
        if column.type.startswith((*_INTEGERS, "decimal")):
            return Ordered("number", "number", 0 if column.type.startswith(_INTEGERS) else None)
        if column.type in _FLOATS:
            return Ordered("number", "float")
        if column.type.startswith(("date", "timestamp")):
            return Ordered("time", "zoned" if "tz=" in column.type else "time")
        return None

    def first_row(self, statement: str) -> str:
        """The first row as the text of a list."""
        return repr([tuple(row.values()) for row in self._asked(statement).slice(0, 1).to_pylist()])

    def parameter(self, start: From) -> str:
        """The bound as a literal. It came out of the database, as a number or a time. Floats and times are earlier by more than reading them may change them."""
        if start.type == "number":
            return str(start.value)
        if start.type == "float":
            number = float(start.value)
            return repr(number - abs(number) * _FLOAT_STEP)
        time = datetime.fromisoformat(str(start.value))
        day, clock = (time - _TIME_STEP if time - datetime.min > _TIME_STEP else time).isoformat(timespec="microseconds").split("T")
        return _TIMES[self.connection.kind, start.type].format(day, clock)

    def run(self, statement: str, parameters: Sequence[Any], columns: Sequence[AnswerColumn]) -> Iterator[Mapping[str, Values]]:
        """The answer in batches."""
        for batch in self._asked(statement).to_batches():
            yield {column.name: batch.column(column.name) for column in columns}

    def close(self) -> None:
        """Do nothing: each statement has a connection of its own."""


def _trouble(text: str) -> Trouble:
    return "password" if "Access denied" in text or "Login failed" in text else "unreachable" if "onnect" in text else "refused"
