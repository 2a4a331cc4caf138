"""Objects of others at the places of a pipeline's new objects, noted in its state: the ledger named the places before the store refused to write there."""

from __future__ import annotations

from collections.abc import Mapping

from storage.state.location import State
from storage.state.notes import note, noted

__all__ = ["note_occupied", "occupied"]

NAME = "occupied"


def occupied(state: State) -> Mapping[str, str]:
    """The identity (`Facts.identity`) of each object that was in the way, by its URI. One that has another identity now is not meant. Raises StorageError."""
    return noted(state, NAME)


def note_occupied(state: State, found: Mapping[str, str]) -> None:
    """Note objects that are in the way, beside what was noted before. One durable step. Raises StorageError."""
    note(state, NAME, {**occupied(state), **found})
