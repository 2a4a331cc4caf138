"""Versions of the files of a benchmark: which rows are corrected, and how a run tells that a file changed."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

CORRECTED: Final = 0.1
SECOND: Final = 1_000_000_000


def corrected_place(share: int) -> int:
    """Which one of `share` rows is corrected."""
    return int(CORRECTED * share)


def write_once(folder: Path, write: Callable[[Path], None]) -> Path:
    """Have a folder with the versions `0` and up written, unless it is there already. Returns it.

    The files of each version get times of their own: a clock may give two files that are written one after the other the same.
    """
    if not folder.exists():
        partial = folder.with_name(f"{folder.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        write(partial)
        now = time.time_ns()
        versions = sorted(place for place in partial.iterdir() if place.name.isdecimal())
        for version in reversed(versions):  # a file that several versions share keeps the time of the first
            for file in version.iterdir():
                moment = now + int(version.name) * SECOND
                os.utime(file, ns=(moment, moment))
        partial.rename(folder)
    return folder
