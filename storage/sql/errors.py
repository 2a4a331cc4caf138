"""Errors between Errata and a database."""

from __future__ import annotations

from typing import Literal

from storage.errors import OutsideError

Trouble = Literal["unreachable", "password", "moment", "refused", "unique", "constraint", "key", "character", "busy"]
"""The kind of failure.

* `unreachable`: there is no answer; another try may have one
* `password`: the server refuses the user
* `moment`: the connection or the transaction was lost; a new transaction may succeed
* `refused`: the server refuses the statement
* `unique`: a key or a unique index has the values already
* `constraint`: another constraint, or a trigger
* `key`: a value is too long for an index
* `character`: the encoding of the database lacks a character
* `busy`: another process holds the database
"""


class DatabaseError(OutsideError):
    """A database cannot be reached, or refuses a statement. The text is the driver's, without secrets.

    Args:
        connection: The name of the connection.
        place: Host, port and database, or the path of the file.
        trouble: What happened.
        reason: The driver's text.
    """

    def __init__(self, connection: str, place: str, trouble: Trouble, reason: str) -> None:
        self.connection, self.place, self.trouble, self.reason = connection, place, trouble, reason
        super().__init__(self.with_reason(reason))

    def with_reason(self, reason: str) -> str:
        """The text with another reason."""
        return f"connection '{self.connection}' ({self.place}): {reason}" if self.place else f"connection '{self.connection}': {reason}"


class CannotHold(Exception):
    """A name or a value that a database cannot hold (E614), or columns that cannot be altered (E616)."""

    def __init__(self, code: str, message: str, help: str = "") -> None:
        self.code, self.message, self.help = code, message, help
        super().__init__(f"{code}: {message}")
