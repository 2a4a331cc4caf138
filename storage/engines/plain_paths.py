"""Places of tables as engines take them: local tables may be reached through symbolic links with plain names."""

import os
import re
import tempfile
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import TypeAlias

from storage.process_folders import temporary_folder
from storage.uris import is_local

__all__ = ["engine_uri"]

PLAIN_PATH = re.compile(r"[A-Za-z0-9_./-]+")
Born: TypeAlias = tuple[int, int]
"""Inode and time of the first entry of a table's log. Another table at the same place has others."""

_aliases: dict[str, str] = {}
_shown: dict[str, tuple[Born, str]] = {}
"""Tables that engines have seen, by place, with the path that engines use."""


def engine_uri(uri: str) -> str:
    """Return the place of a table for engines. It may be a link, which lasts as long as the process.

    Sail misreads blanks, brackets and non-ASCII letters in local paths, and then writes to another folder. So such a folder gets a link with a plain name.
    Sail also caches versions of tables by place. So a table that replaces a deleted one gets a link of its own.
    """
    if not is_local(uri):
        return uri
    born, (before, place) = _born(uri), _shown.get(uri, (None, ""))
    if born is None or born == before:
        return place or _plain(uri)
    place = _plain(uri) if before is None else _linked_place(uri, _linked)
    _shown[uri] = born, place
    return place


def _born(uri: str) -> Born | None:
    """Return the identity of the table at a place. None where the first entry of its log is missing."""
    try:
        first = Path(uri.removeprefix("file://"), "_delta_log", f"{0:020}.json").stat()
    except OSError:
        return None
    return first.st_ino, first.st_mtime_ns


def _plain(uri: str) -> str:
    """Return a place whose name engines read."""
    return uri if PLAIN_PATH.fullmatch(uri) else _linked_place(uri, _alias)


def _linked_place(uri: str, link: Callable[[str], str]) -> str:
    """Return a place through a link to its folder."""
    folder, _, name = uri.removeprefix("file://").rpartition("/")
    return f"{link(folder)}/{name}"


def _alias(folder: str) -> str:
    if folder not in _aliases:
        _aliases[folder] = _linked(folder)
    return _aliases[folder]


def _linked(folder: str) -> str:
    link = temporary_folder("links", _links()) / blake2b(folder.encode(), digest_size=8).hexdigest()
    link.symlink_to(folder, target_is_directory=True)
    return str(link)


def _links() -> str:
    """Return the folder for links: the temporary folder, or `/tmp` where engines do not read its name."""
    given = tempfile.gettempdir()
    return given if PLAIN_PATH.fullmatch(given) or not os.access("/tmp", os.W_OK) else "/tmp"  # noqa: S108  # a folder of one's own is made in it
