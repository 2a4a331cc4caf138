"""Whether an opened table is the newest one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from storage.uris import is_local

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = ["bring_up_to_date"]


def bring_up_to_date(table: DeltaTable, uri: str) -> None:
    """Let an opened table be its newest version.

    To list a log takes longer the more versions it has. A local table is up to date where its log lacks the next version, so nothing is listed. The next
    version of one that was opened a hundred versions ago may have been removed: who keeps a table open so long holds the claim, or reads a version for good.
    """
    if not (is_local(uri) and _is_newest(Path(uri.removeprefix("file://")), table.version())):
        table.update_incremental()


def _is_newest(table: Path, version: int) -> bool:
    return not (table / "_delta_log" / f"{version + 1:020}.json").exists()
