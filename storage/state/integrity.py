"""Seals: the size and hash of every file that a committed version of a table consists of (QUALITY, 14: tampering is seen).

A run seals what it added in its ledger entry: data files, and the files of the Delta log. The entry's own hash, and through the
chain that of every later entry, covers them. The ledger cannot seal itself; its files, and how far it goes, are in the anchor, a
file beside it that is replaced after each commit. Local states only: an object store keeps checksums of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import orjson

from storage import durable
from storage.errors import Damaged, StorageError
from storage.files.discovery import content_hash
from storage.state.entry import Entry, verify_chain
from storage.state.ledger import Ledger, ledger_ways_out
from storage.state.location import State

__all__ = ["Fault", "anchor_ledger", "check_content", "check_ledger_end", "check_ledger_files", "check_tables", "require_ledger", "seal_tables"]

HASHED_BYTES = 64 << 20
"""How many bytes of its tables' data files a run hashes, small files first. It checks only the sizes of the other files."""

Seals = dict[str, list[Any]]
"""By a file's name inside its table: its size and its hash."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A file that is not what was sealed: the table's path in the state folder, the epoch that sealed it (0: none did), what is wrong."""

    table: str
    epoch: int
    detail: str


def _log_files(table: Path, version: int) -> Iterator[Path]:
    """The files of the Delta log that a version has."""
    for suffix in ("json", "checkpoint.parquet"):
        file = table / "_delta_log" / f"{version:020d}.{suffix}"
        if file.exists():
            yield file


def _added(log: Path) -> Iterator[str]:
    """The data files that a commit adds."""
    for line in log.read_bytes().splitlines():
        action = orjson.loads(line) if line else {}
        if "add" in action:
            yield unquote(action["add"]["path"])


def _seal_of(file: Path) -> list[Any]:
    return [file.stat().st_size, content_hash(file)]


def seals_between(table: Path, before: int | None, now: int) -> Seals:
    """The seals of what the versions behind `before` (None: from the first on) up to `now` brought, as far as it is still there."""
    found: Seals = {}
    for version in range(0 if before is None else before + 1, now + 1):
        for log in _log_files(table, version):
            found[f"_delta_log/{log.name}"] = _seal_of(log)
            if log.suffix == ".json":
                found |= {name: _seal_of(table / name) for name in _added(log) if (table / name).exists()}
    return found


def seal_tables(state: State, before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, Seals]:
    """The seals of what a run brought to the tables of a state, by table; nothing for a state that is not local.

    The files, and the folders that name them, are on disk before this returns.
    """
    if not state.local:
        return {}
    made = {path: seals_between(Path(state.table(path)), before.get(path), version) for path, version in now.items() if before.get(path) != version}
    durable.sync(Path(state.table(path)) / name for path, seals in made.items() for name in seals)
    return {path: seals for path, seals in made.items() if seals}


def check_tables(state: State, entries: Iterable[Entry]) -> Iterator[Fault]:
    """What of the tables is not as the ledger's entries sealed it."""
    sealed: dict[str, dict[str, tuple[int, list[Any]]]] = {}
    head: Entry | None = None
    for entry in entries:
        head = entry
        for path, seals in entry.files.items():
            sealed.setdefault(path, {}).update({name: (entry.epoch, seal) for name, seal in seals.items()})
    if head is None or not state.local:
        return
    for path, version in sorted(head.tables.items()):
        yield from _check_table(Path(state.table(path)), path, int(version), sealed.get(path, {}), head.epoch)


def _check_table(table: Path, path: str, version: int, sealed: Mapping[str, tuple[int, list[Any]]], epoch: int) -> Iterator[Fault]:
    """Bytes first: a table whose files are not what they were is not opened."""
    changed = [Fault(path, of, f"{name} {detail}") for name, (of, seal) in sealed.items() if (detail := _difference(table / name, seal))]
    if changed:
        yield from changed
        return
    try:
        live = _live_files(table, version)
    except StorageError as problem:
        yield Fault(path, epoch, f"version {version} of the table cannot be read: {problem}")
        return
    yield from (Fault(path, sealed[name][0] if name in sealed else epoch, f"{name} is missing") for name in sorted(live) if not (table / name).exists())
    yield from (Fault(path, epoch, f"{name} belongs to no committed run") for name in sorted(live - set(sealed)))
    yield from _later(table, path, version, epoch, set(sealed))


def _live_files(table: Path, version: int | None) -> set[str]:
    from deltalake import DeltaTable

    from storage.errors import storing

    with storing(str(table)):
        found = DeltaTable(str(table), version=version)
        return {unquote(str(path)) for path in found.get_add_actions(flatten=True).column("path").to_pylist()}


def _later(table: Path, path: str, version: int, epoch: int, sealed: Collection[str]) -> Iterator[Fault]:
    """What versions beyond the committed one did to committed epochs; what they add to a later epoch, the next run takes back."""
    from deltalake import DeltaTable

    from storage.delta.scan import add_actions
    from storage.errors import storing

    try:
        with storing(str(table)):
            newest = DeltaTable(str(table))
            if newest.version() <= version:
                return
            names = newest.get_add_actions(flatten=True).column("path").to_pylist()
            lowest = [low for (low,) in add_actions(newest, "min._epoch")]
    except StorageError:
        return  # told by the check of the committed version
    told = dict(zip((unquote(str(name)) for name in names), lowest, strict=True))
    changed = [name for name, low in told.items() if name not in sealed and low <= epoch]
    gone = [name for name in _live_files(table, version) if name not in told]
    for found, what in ((changed, "adds rows to committed epochs"), (gone, "takes rows of committed epochs away")):
        if found:
            yield Fault(path, epoch, f"a version behind {version}, which no run committed, {what}")


def _difference(file: Path, seal: list[Any]) -> str:
    """What is wrong with a file; a data file that is gone may be one that no version needs any more."""
    try:
        size = file.stat().st_size
    except OSError:
        return "is missing" if file.suffix == ".json" else ""
    if size != seal[0]:
        return f"has {size} bytes, not {seal[0]}"
    return "" if content_hash(file) == seal[1] else "does not have the content that was written"


# -- the ledger


def _anchor_file(state: State) -> Path:
    return Path(state.root) / "anchor.json"


def _anchor(state: State) -> dict[str, Any] | None:
    """The anchor, None where there is none. Raises ValueError for one that cannot be read."""
    try:
        found = orjson.loads(_anchor_file(state).read_bytes())
    except FileNotFoundError:
        return None
    if not isinstance(found, dict) or found.pop("digest", "") != _digest(found):
        raise ValueError("its content is not what was written")
    return found


def _digest(anchor: Mapping[str, Any]) -> str:
    return sha256(orjson.dumps(anchor, option=orjson.OPT_SORT_KEYS)).hexdigest()


def anchor_ledger(state: State, ledger: Ledger, head: Entry, live: Mapping[str, Collection[str]]) -> None:
    """Note how far the ledger goes, what its files are, and the seals of the data files that tables consist of. One durable step.

    `live` has the data files of the tables that changed; other tables keep their files. Does nothing for a state that is not local.
    """
    if not state.local:
        return
    version = ledger.version()
    try:
        before = _anchor(state) or {}
    except ValueError:
        before = {}
    new = seals_between(Path(state.ledger), before.get("version"), version)
    durable.sync(Path(state.ledger) / name for name in new)
    seals = _needed(dict(before.get("files", {})) | new, ledger.data_files())
    anchor = {"epoch": head.epoch, "hash": head.hash, "version": version, "files": seals, "live": _live_seals(before, head, live)}
    text = orjson.dumps(anchor | {"digest": _digest(anchor)})
    durable.step("anchor", lambda: _write(_anchor_file(state), text))


def _needed(seals: Seals, live: Collection[str]) -> Seals:
    """The seals of what reading a table takes: its live data files, and its log from the last checkpoint on."""
    log = "_delta_log/"
    first = max((name.split(".")[0] for name in seals if name.startswith(log) and name.endswith(".checkpoint.parquet")), default="")
    return {name: seal for name, seal in seals.items() if (name.split(".")[0] >= first if name.startswith(log) else name in live)}


def _write(target: Path, text: bytes) -> None:
    staged = durable.staging_path(target)
    staged.write_bytes(text)
    durable.replace(staged, target)


def _live_seals(anchor: Mapping[str, Any], head: Entry, live: Mapping[str, Collection[str]]) -> dict[str, Seals]:
    """The seals of the data files of each table that an entry names, as far as the anchor before it or the entry has them."""
    sealed: Mapping[str, Seals] = {**anchor.get("live", {})}
    found = {path: seals for path, seals in sealed.items() if path in head.tables}
    for path, names in live.items():
        known = {**sealed.get(path, {}), **head.files.get(path, {})}
        found[path] = {name: known[name] for name in names if name in known}
    return found


def require_ledger(state: State, head: Entry | None) -> None:
    """Raise StorageError where the ledger does not end where its anchor says. An anchor that is lost or cannot be read says nothing."""
    if not state.local:
        return
    try:
        anchor = _anchor(state)
    except ValueError:
        return
    if anchor is None or (head is not None and _names(anchor, head)):
        return
    for fault in _check_end(anchor, Ledger(state.ledger).entries(checked=False)):
        raise StorageError(state.ledger, f"{fault.detail}; {ledger_ways_out(state.ledger)}")


def check_content(state: State, head: Entry, live: Mapping[str, Mapping[str, int]]) -> None:
    """Raise StorageError where a file of the ledger or of a table is not what was sealed.

    `live` has the data files of each table with their sizes. Files are hashed up to `HASHED_BYTES`, those of tables first. Nothing is done for a state that is not local.
    """
    if not state.local:
        return
    try:
        anchor = _anchor(state) or {}
    except ValueError:
        anchor = {}
    sealed = _live_seals(anchor, head, live)
    wanted = [(False, size, path, name, seal) for path, files in live.items() for name, size in files.items() if (seal := sealed[path].get(name))]
    wanted += [(True, seal[0], "ledger", name, seal) for name, seal in anchor.get("files", {}).items()]
    left = HASHED_BYTES
    for _, size, path, name, seal in sorted(wanted):
        if size > left:
            continue
        left -= size
        detail = _difference(Path(state.table(path)) / name, seal)
        if detail and path == "ledger":
            raise StorageError(state.ledger, f"{name} {detail}; {ledger_ways_out(state.ledger)}")
        if detail:
            raise Damaged(state.table(path), head.tables.get(path, 0), f"{name} {detail}")


def check_ledger_files(state: State) -> Iterator[Fault]:
    """Files of the ledger that are not what the anchor says; bytes alone, nothing is opened."""
    if not state.local:
        return
    try:
        anchor = _anchor(state)
    except ValueError as problem:
        yield Fault("ledger", 0, f"anchor.json cannot be read: {problem}")
        return
    for name, seal in (anchor or {}).get("files", {}).items():
        detail = _difference(Path(state.ledger) / name, seal)
        if detail:
            yield Fault("ledger", 0, f"{name} {detail}")


def check_ledger_end(state: State, entries: list[Entry]) -> Iterator[Fault]:
    """Whether the ledger ends where the anchor says that it does."""
    if not state.local:
        return
    anchor = _anchor(state)
    if anchor is not None:
        yield from _check_end(anchor, entries)
    elif entries and not _just_begun(state, entries):
        yield Fault("ledger", entries[-1].epoch, "anchor.json is missing")


def _just_begun(state: State, entries: list[Entry]) -> bool:
    """Whether the ledger may be that of a first run that ended before its anchor was written: one entry, and no table goes beyond it."""
    from deltalake import DeltaTable

    from storage.errors import storing

    try:
        with storing(state.root):
            return len(entries) == 1 and all(DeltaTable(state.table(path)).version() == version for path, version in entries[0].tables.items())
    except StorageError:
        return False


def _names(anchor: Mapping[str, Any], head: Entry) -> bool:
    """Whether an anchor is that of an entry, or of the one before it: a commit may have ended before its anchor was written."""
    return anchor.get("hash") in (head.hash, head.previous, head.counters.get("replaces"))


def _check_end(anchor: Mapping[str, Any], entries: list[Entry]) -> Iterator[Fault]:
    """Whether the ledger lost what was anchored. It may go further, as anchors of later commits may not have been written."""
    known = entries if not verify_chain(entries) else entries[-1:]
    if any(_names(anchor, entry) for entry in known):
        return
    last = entries[-1].epoch if entries else 0
    if anchor.get("epoch", 0) > last:
        yield Fault("ledger", int(anchor["epoch"]), f"dropped: epoch {anchor['epoch']} was committed, the ledger ends with epoch {last}")
    else:
        yield Fault("ledger", last, f"its last entry is not the one that was committed as epoch {anchor.get('epoch')}")
