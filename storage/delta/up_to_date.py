"""Bringing an opened table to its newest version."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from storage.uris import is_local

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = ["bring_up_to_date"]


def bring_up_to_date(table: DeltaTable, uri: str) -> None:
    """Bring an opened table to its newest version.

    A long log takes long to list. So a local table is listed only if its log has the file of the next version. For a table that is a hundred versions
    behind, this file may have been removed. Nobody keeps one open so long: writers hold the claim, and other readers pin their version.
    """
    if not (is_local(uri) and _is_newest(Path(uri.removeprefix("file://")), table.version())):
        table.update_incremental()


def _is_newest(table: Path, version: int) -> bool:
    return not (table / "_delta_log" / f"{version + 1:020}.json").exists()
