"""What only old versions of a table need is removed: to open a table takes longer the more versions its log has.

Some old versions stay. Readers may have begun with one, and a run that fails goes back to the last committed one.
"""

from __future__ import annotations

import re
from typing import Final

from storage.delta.scrubbing import LOG, purge
from storage.stores.folders import Folder

__all__ = ["KEPT_VERSIONS", "oldest_kept", "remove_old_versions"]

KEPT_VERSIONS: Final = 100
"""The number of versions that stay readable, at least. A version of Errata that keeps more has to expect that states lack older ones."""
_STEP: Final = 50
"""The versions after which old ones are removed again: so a version pays for the removal of one."""
_VERSION: Final = re.compile(r"_delta_log/(\d{20})\.")
_CHECKPOINT: Final = re.compile(r"_delta_log/(\d{20})\.checkpoint\.parquet")


def remove_old_versions(folder: Folder, uri: str, before: int, version: int, label: str) -> None:
    """Remove what only old versions of a table need: their log and their data files. One durable step a file.

    Args:
        folder: The folder of the table.
        uri: The path or URI of the table.
        before: The version of the last removal, or of any commit since.
        version: The version that is committed now.
        label: The table in the names of steps.

    Raises:
        StorageError: The store does not answer.
    """
    if before // _STEP == version // _STEP:
        return
    oldest = oldest_kept(folder, version)
    if any(int(name[1]) < oldest for name in map(_VERSION.match, folder.names(LOG)) if name is not None):
        purge(folder, uri, oldest, label)


def oldest_kept(folder: Folder, version: int) -> int:
    """Return the version from which on nothing is removed while this one is the newest. It has a checkpoint, unless it is 0."""
    found = (int(name[1]) for name in map(_CHECKPOINT.fullmatch, folder.names(LOG)) if name is not None)
    return max((checkpoint for checkpoint in found if checkpoint <= version - KEPT_VERSIONS), default=0)
