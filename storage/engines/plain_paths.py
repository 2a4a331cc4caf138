"""Places of tables as engines take them: local tables may be reached through symbolic links with plain names."""

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import TypeAlias

from storage.uris import is_local

__all__ = ["engine_uri"]

PLAIN_PATH = re.compile(r"[A-Za-z0-9_./-]+")
Born: TypeAlias = tuple[int, int]
"""When and as what file the first entry of a table's log was written: another table at the same place has another one."""

_aliases: dict[str, str] = {}
_shown: dict[str, tuple[Born, str]] = {}
"""The tables that engines were shown, by their places, and where."""


def engine_uri(uri: str) -> str:
    """A table's place as engines take it: local ones may be links, which last as long as the process.

    Sail misreads blanks, brackets and non-ASCII letters in local paths (it writes beside the table), so such a folder has a link with a plain name.
    It keeps what it knows of a version of a table by the place, so a table that takes the place of one that was deleted has a link of its own.
    """
    if not is_local(uri):
        return uri
    born, (before, place) = _born(uri), _shown.get(uri, (None, ""))
    if born is None or born == before:
        return place or _plain(uri)
    place = _plain(uri) if before is None else _beside(uri, _linked)
    _shown[uri] = born, place
    return place


def _born(uri: str) -> Born | None:
    """Of the table that is at a place; None where its log does not begin with its first entry."""
    try:
        first = Path(uri.removeprefix("file://"), "_delta_log", f"{0:020}.json").stat()
    except OSError:
        return None
    return first.st_ino, first.st_mtime_ns


def _plain(uri: str) -> str:
    """A place whose name engines read."""
    return uri if PLAIN_PATH.fullmatch(uri) else _beside(uri, _alias)


def _beside(uri: str, link: Callable[[str], str]) -> str:
    """A place by way of a link to its folder."""
    folder, _, name = uri.removeprefix("file://").rpartition("/")
    return f"{link(folder)}/{name}"


def _alias(folder: str) -> str:
    if folder not in _aliases:
        _aliases[folder] = _linked(folder)
    return _aliases[folder]


def _linked(folder: str) -> str:
    place = tempfile.mkdtemp(prefix="errata-links-", dir=_links())
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    link = Path(place, blake2b(folder.encode(), digest_size=8).hexdigest())
    link.symlink_to(folder, target_is_directory=True)
    return str(link)


def _links() -> str:
    """The folder for links: the one for temporary files, or one that there is on every Unix where engines do not read that one's name."""
    given = tempfile.gettempdir()
    return given if PLAIN_PATH.fullmatch(given) or not os.access("/tmp", os.W_OK) else "/tmp"  # noqa: S108  # a folder of one's own is made in it
