"""The user's cache: Delta jars and JVM archives, kept from run to run and made anew where they are missing."""

import os
from pathlib import Path

__all__ = ["cache_folder"]


def cache_folder() -> Path:
    """ERRATA_CACHE, else `errata` in XDG_CACHE_HOME, else `~/.cache/errata`. Not made here."""
    named = os.environ.get("ERRATA_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "errata"
