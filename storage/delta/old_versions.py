"""Removal of old versions of a table. A long log makes each opening slow.

The last versions stay: a reader may have begun with one, and a run that fails goes back to the one that was committed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from storage.delta.scrubbing import LOG, purge, version_of
from storage.stores.folders import Folder

__all__ = ["KEPT_VERSIONS", "oldest_kept", "remove_old_versions"]

KEPT_VERSIONS: Final = 100
"""The number of versions that stay readable, at least. A version of Errata that keeps more has to expect that states lack older ones."""
_STEP: Final = 50
"""The versions after which old ones are removed again: so a version pays for the removal of one."""


def remove_old_versions(folder: Folder, uri: str, before: int, version: int, label: str) -> None:
    """Remove what only old versions of a table need: their log and their data files. One durable step a file.

    Args:
        folder: The folder of the table.
        uri: The path or URI of the table.
        before: The version of the last removal, or of any commit since.
        version: The version that is committed now.
        label: The table in the names of steps.

    Raises:
        StorageError: The store does not answer, or the log cannot be read.
    """
    if before // _STEP == version // _STEP:
        return
    log = list(folder.names(LOG))
    oldest = oldest_kept(log, version)
    if any(known < oldest for known in map(version_of, log) if known is not None):
        purge(folder, uri, oldest, label)


def oldest_kept(log: Iterable[str], version: int) -> int:
    """Return the version from which on nothing is removed while this one is the newest. It has a checkpoint, unless it is 0.

    Args:
        log: The files of the log, by their names inside the table.
        version: The newest version.
    """
    checkpoints = (known for name in log if name.endswith(".checkpoint.parquet") and (known := version_of(name)) is not None)
    return max((known for known in checkpoints if known <= version - KEPT_VERSIONS), default=0)
