"""Folders of this process: for what engines spill, below the folder that the workspace names, and for other temporary files.

Each process has folders of its own, and locks them until it ends. The lock is on the folder itself, so it stays when a cleaner removes old files. A folder
that nobody locks was left by a killed process. It is removed before another process begins.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from threading import RLock

from storage.at_exit import at_exit

__all__ = ["files_folder", "purge", "remove_spilled", "spill_folder", "temporary_folder"]

SPILLED, TEMPORARY = "errata-spill-", "errata-files-"
"""How the names of the folders begin."""
GRACE_SECONDS = 10.0
"""A younger folder may belong to a process that has not locked it yet."""
_held: dict[tuple[Path, str], tuple[Path, int]] = {}
_one_at_a_time = RLock()
"""A thread that ends the process may be the one that makes a folder."""


def spill_folder(root: Path) -> Path:
    """This process's folder below `root` for what engines spill; made, with `root`'s orphans removed, where there is none. Raises OSError."""
    return _own(root, SPILLED)


def files_folder(root: str | None = None) -> Path:
    """This process's folder for temporary files, below `root`, else below the system's folder for them. Raises OSError."""
    return _own(Path(root or tempfile.gettempdir()), TEMPORARY)


def temporary_folder(name: str, root: str | None = None) -> Path:
    """A new folder in this process's folder for temporary files. Raises OSError."""
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=files_folder(root)))


def remove_spilled() -> None:
    """Remove what engines of this process spilled, after they have ended."""
    _remove(SPILLED)


def purge(root: Path | None = None, prefix: str = TEMPORARY) -> None:
    """Remove the folders of killed processes below `root`, or below the system's folder for temporary files, as far as possible."""
    with suppress(OSError):
        for folder in sorted(Path(root or tempfile.gettempdir()).glob(f"{prefix}*")):
            with suppress(OSError):
                if folder.is_dir() and not folder.is_symlink() and _is_orphan(folder):
                    shutil.rmtree(folder)


def _own(root: Path, prefix: str) -> Path:
    key = root, prefix
    with _one_at_a_time:
        folder, handle = _held.get(key, (None, None))
        if folder is not None and folder.is_dir():
            return folder
        if handle is not None:  # somebody removed the folder
            os.close(handle)
        purge(root, prefix)
        made = Path(tempfile.mkdtemp(prefix=prefix, dir=root))
        _held[key] = made, os.open(made, os.O_RDONLY | os.O_DIRECTORY)
        with suppress(OSError):  # some network file systems lock no folders, and nobody takes a folder there for an orphan
            fcntl.flock(_held[key][1], fcntl.LOCK_EX)
        return made


def _remove(*prefixes: str) -> None:
    with _one_at_a_time:
        for key in [key for key in _held if key[1] in prefixes]:
            folder, handle = _held.pop(key)
            shutil.rmtree(folder, ignore_errors=True)
            os.close(handle)


def _is_orphan(folder: Path) -> bool:
    """Return whether nobody locks the folder. Raises OSError where a process does, or where folders cannot be locked."""
    if time.time() - folder.stat().st_mtime < GRACE_SECONDS:
        return False
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(handle)
    return True


at_exit(_remove, SPILLED, TEMPORARY)
