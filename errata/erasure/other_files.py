"""Files below the state folder that are no tables: answers of services, and whatever others put there, such as logs and reports."""

from __future__ import annotations

import re
from typing import Final

from errata.erasure.search import Search
from storage import durable
from storage.stores.folders import Folder

TABLES: Final = ("ledger/", "changelog/", "state/", "rollback/")
_KEPT_BELOW: Final = ("identities/",)
_KEPT: Final = frozenset({"claim", "anchor.json", ".gitignore", "erasure.key"})
_FETCHED: Final = "fetched/"
_COPY: Final = re.compile(r"fetched/[^/]+/dataset/")
"""The beginning of the names of files in the copy of a dataset."""


def clear(folder: Folder, search: Search, *, dry: bool = False) -> list[str]:
    """Let no other file below a state's folder hold a value, and return the ones that did. One durable step a file.

    A value in a text, also in a compressed one, is blanked. Kept answers of a service, which the next run asks again, and files of other kinds are removed;
    of the copy of a dataset all files, since a part of it is of no use. A dry call only looks.
    """
    found: list[str] = []
    names = list(folder.names())
    for name in names:
        if not is_other(name) or name in found or not _holds(search, folder.read(name)):
            continue
        copy = _COPY.match(name)
        with_it = [other for other in names if other.startswith(copy[0])] if copy else [name]
        found += with_it
        for one in [] if dry else reversed(with_it):  # the head of a copy goes before its data
            _clear(folder, one, None if one.startswith(_FETCHED) else search.blanked(folder.read(one)))
    return found


def is_other(name: str) -> bool:
    """Whether a file below a state's folder is none of Errata's tables and marks."""
    return not name.startswith((*TABLES, *_KEPT_BELOW)) and name not in _KEPT


def _holds(search: Search, content: bytes) -> bool:
    """Whether a file holds a value; a text also one that other records have inside of theirs, where it is a word of its own."""
    if search.found_in(content):
        return True
    blanked = search.blanked(content) if search.values.parts else None
    return blanked is not None and blanked != content


def _clear(folder: Folder, name: str, content: bytes | None) -> None:
    if content is None:
        durable.step(f"remove:{name}", lambda: folder.remove(name))
    else:
        durable.step(f"blank:{name}", lambda: folder.replace(name, content))
