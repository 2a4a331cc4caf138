"""Spill folders of engines, below the folder that the workspace names.

Each process has a folder of its own, and holds its lock until it ends. A folder whose lock nobody holds was left by a killed process. It is removed before
another process begins.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

__all__ = ["own_folder", "purge", "remove_folders"]

PREFIX = "errata-spill-"
LOCK = ".lock"
GRACE_SECONDS = 10.0
"""A younger folder may belong to a process that has not locked it yet."""
_held: dict[Path, tuple[Path, int]] = {}


def own_folder(root: Path) -> Path:
    """Return this process's folder below `root`; create it first if needed. Raises OSError."""
    if root not in _held or not _held[root][0].is_dir():
        purge(root)
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))
        handle = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _held[root] = folder, handle
    return _held[root][0]


def remove_folders() -> None:
    """Remove the folders of this process, after its engines have ended."""
    while _held:
        _, (folder, handle) = _held.popitem()
        os.close(handle)
        shutil.rmtree(folder, ignore_errors=True)


def purge(root: Path) -> None:
    """Remove the folders of killed processes below `root`, as far as possible."""
    with suppress(OSError):
        for folder in sorted(root.glob(f"{PREFIX}*")):
            with suppress(OSError):
                if folder.is_dir() and not folder.is_symlink() and _is_orphan(folder):
                    shutil.rmtree(folder)


def _is_orphan(folder: Path) -> bool:
    """Return whether nobody holds the folder's lock. A folder without a lock is judged only by its age."""
    if time.time() - folder.stat().st_mtime < GRACE_SECONDS:
        return False
    try:
        handle = os.open(folder / LOCK, os.O_RDWR)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True
