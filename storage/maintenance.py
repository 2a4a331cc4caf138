"""What keeps the hundredth small run as quick as the tenth: tables of many files are put together by the run that finds them so."""

from __future__ import annotations

from collections.abc import Iterable

from storage.ledger import Ledger
from storage.tables import ChangelogTable

MANY_FILES = 20
"""A table with more files is put together."""


def put_together(tables: Iterable[ChangelogTable]) -> None:
    """Put the files of those tables together that have too many, in new versions of the tables."""
    for table in tables:
        if table.files() > MANY_FILES:
            table.optimize()


def put_entries_together(ledger: Ledger) -> None:
    """The same for the ledger."""
    if ledger.files() > MANY_FILES:
        ledger.compact()
