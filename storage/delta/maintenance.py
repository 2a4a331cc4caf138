"""What keeps the hundredth small run as quick as the tenth: tables of many files are put together by the run that finds them so."""

from __future__ import annotations

from collections.abc import Iterable

from storage.delta.changelog_table import ChangelogTable
from storage.state.ledger import Ledger

MANY_FILES = 20
"""A table with more small files is put together."""
SMALL_FILE = 4 << 20
"""Bytes up to which a file is a small one: to write it anew costs less than to open it run by run."""


def put_together(tables: Iterable[ChangelogTable]) -> None:
    """Put the small files of those tables together that have too many, in new versions of the tables; large files stay as they are."""
    for table in tables:
        if table.files(below=SMALL_FILE) > MANY_FILES:
            table.optimize(SMALL_FILE)


def put_entries_together(ledger: Ledger) -> bool:
    """Whether the ledger had many small files, which are put together."""
    many = ledger.files() > MANY_FILES
    if many:
        ledger.compact()
    return many
