"""Files below the state folder that are no tables: answers of services, and whatever others put there, such as logs and reports."""

from __future__ import annotations

from typing import Final

from errata.erasure.search import Search
from storage import durable
from storage.stores.folders import Folder

TABLES: Final = ("ledger/", "changelog/", "state/", "rollback/")
_KEPT: Final = frozenset({"claim", "anchor.json", ".gitignore", "erasure.key"})
_FETCHED: Final = "fetched/"


def clear(folder: Folder, search: Search, *, dry: bool = False) -> list[str]:
    """Let no other file below a state's folder hold a value, and return the ones that did. One durable step a file.

    A value in a text, also in a compressed one, is blanked. Kept answers of a service, which the next run asks again, and files of other kinds are removed.
    A dry call only looks.
    """
    found = []
    for name in list(folder.names()):
        if name.startswith(TABLES) or name in _KEPT or not search.found_in(content := folder.read(name)):
            continue
        found.append(name)
        if not dry:
            _clear(folder, name, None if name.startswith(_FETCHED) else search.blanked(content))
    return found


def _clear(folder: Folder, name: str, content: bytes | None) -> None:
    if content is None:
        durable.step(f"remove:{name}", lambda: folder.remove(name))
    else:
        durable.step(f"blank:{name}", lambda: folder.replace(name, content))
