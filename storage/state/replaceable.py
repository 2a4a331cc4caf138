"""Tables of others that a run was allowed to replace and whose database refused the rows, noted in the state: the next run needs no `--force`."""

from __future__ import annotations

from storage.state.location import State
from storage.state.notes import note, noted

__all__ = ["note_replaceable", "replaceable", "spend_replaceable"]

NAME = "replaceable"


def replaceable(state: State, output: str) -> str | None:
    """The identity (`Looked.identity`) of the table that an output may replace; one with another identity is not meant. Raises StorageError."""
    return noted(state, NAME).get(output)


def note_replaceable(state: State, output: str, identity: str) -> None:
    """Note the table that an output may still replace. One durable step. Raises StorageError."""
    note(state, NAME, {**noted(state, NAME), output: identity})


def spend_replaceable(state: State, output: str) -> None:
    """Take back what is noted of an output, in one durable step where something is. Raises StorageError."""
    found = noted(state, NAME)
    if found.pop(output, None) is not None:
        note(state, NAME, found)
