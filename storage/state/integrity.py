"""Integrity of a state: seals (size and hash) of every file of its tables, and the anchor of the ledger. They show tampering.

A run adds the seals of its new data files and log files to its ledger entry. The hash of the entry covers them, and so does the hash of every later
entry through the chain. The ledger cannot seal itself. Its files and its length are in the anchor, a file next to it that is replaced after each commit.
This holds for local states. An object store has its own checksums.
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
from storage.delta.old_versions import oldest_kept
from storage.delta.scan import add_actions
from storage.delta.scrubbing import LOG
from storage.errors import Damaged, StorageError, storing
from storage.files.discovery import content_hash
from storage.lazy_deltalake import deltalake
from storage.state.entry import Entry, verify_chain
from storage.state.ledger import Ledger, ledger_ways_out
from storage.state.location import State
from storage.stores.folders import folder_at

__all__ = ["Fault", "anchor_ledger", "check_content", "check_ledger_end", "check_ledger_files", "check_tables", "require_ledger", "seal_tables", "seal_whole"]

HASHED_BYTES = 64 << 20
"""Bytes of data files that a run hashes, small files first. It checks only the sizes of other files."""

MISSING = "is missing"
"""What is wrong with a file that is not there."""

Seals = dict[str, list[Any]]
"""Size and hash by file name inside the table."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A file that differs from its seal: path of the table in the state folder, epoch that sealed the file (0: none), and what is wrong."""

    table: str
    epoch: int
    detail: str


def _log_files(table: Path, version: int) -> Iterator[Path]:
    """Yield the files of a version in the Delta log."""
    for suffix in ("json", "checkpoint.parquet"):
        file = table / "_delta_log" / f"{version:020d}.{suffix}"
        if file.exists():
            yield file


def _added(log: Path) -> Iterator[str]:
    """Yield the data files that a commit adds."""
    for line in log.read_bytes().splitlines():
        action = orjson.loads(line) if line else {}
        if "add" in action:
            yield unquote(action["add"]["path"])


def _seal_of(file: Path) -> list[Any]:
    return [file.stat().st_size, content_hash(file)]


def seals_between(table: Path, before: int | None, now: int) -> Seals:
    """Return the seals of the present files that versions after `before` (None: all versions) up to `now` added."""
    found: Seals = {}
    for version in range(0 if before is None else before + 1, now + 1):
        for log in _log_files(table, version):
            found[f"{LOG}{log.name}"] = _seal_of(log)
            if log.suffix == ".json":
                found |= {name: _seal_of(table / name) for name in _added(log) if (table / name).exists()}
    return found


def seal_tables(state: State, before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, Seals]:
    """Return the seals of the files that a run added, by table. Empty for a state that is not local.

    The files, and the folders that name them, are flushed to disk first.
    """
    if not state.local:
        return {}
    made = {path: seals_between(Path(state.table(path)), before.get(path), version) for path, version in now.items() if before.get(path) != version}
    durable.sync(Path(state.table(path)) / name for path, seals in made.items() for name in seals)
    return {path: seals for path, seals in made.items() if seals}


def seal_whole(state: State, now: Mapping[str, int]) -> dict[str, Seals]:
    """Return the seals of all files that tables need at their versions, where nothing older stays. Empty for a state that is not local."""
    if not state.local:
        return {}
    found: dict[str, Seals] = {}
    for path, version in now.items():
        table = Path(state.table(path))
        names = [*sorted(_live_files(table, version)), *(f"{LOG}{log.name}" for log in _log_files(table, version))]
        found[path] = {name: _seal_of(table / name) for name in names}
    durable.sync(Path(state.table(path)) / name for path, seals in found.items() for name in seals)
    return found


def check_tables(state: State, entries: Iterable[Entry]) -> Iterator[Fault]:
    """Yield the files of tables that differ from the seals in the ledger's entries."""
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
    """Yield the faults of a table. Compares bytes first; a table with changed files is not opened. The log of old versions may have been removed."""
    first = f"{LOG}{oldest_kept(folder_at(str(table)).names(LOG), version):020}"
    wrong = ((name, of, _difference(table / name, seal)) for name, (of, seal) in sealed.items())
    changed = [Fault(path, of, f"{name} {detail}") for name, of, detail in wrong if detail and not (detail == MISSING and name < first)]
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
    with storing(str(table)):
        found = deltalake.DeltaTable(str(table), version=version)
        return {unquote(str(path)) for path in found.get_add_actions(flatten=True).column("path").to_pylist()}


def _later(table: Path, path: str, version: int, epoch: int, sealed: Collection[str]) -> Iterator[Fault]:
    """Yield what versions after the committed one did to committed epochs. The next run undoes what they added to a later epoch."""
    try:
        with storing(str(table)):
            newest = deltalake.DeltaTable(str(table))
            if newest.version() <= version:
                return
            names = newest.get_add_actions(flatten=True).column("path").to_pylist()
            lowest = [low for (low,) in add_actions(newest, "min._epoch")]
    except StorageError:
        return  # the check of the committed version reports it
    lowest_epochs = dict(zip((unquote(str(name)) for name in names), lowest, strict=True))
    changed = [name for name, low in lowest_epochs.items() if name not in sealed and low <= epoch]
    gone = [name for name in _live_files(table, version) if name not in lowest_epochs]
    for found, what in ((changed, "adds rows to committed epochs"), (gone, "takes rows of committed epochs away")):
        if found:
            yield Fault(path, epoch, f"a version behind {version}, which no run committed, {what}")


def _difference(file: Path, seal: list[Any]) -> str:
    """Return what is wrong with a file. A missing data file is no fault here, because a version may no longer need it."""
    try:
        size = file.stat().st_size
    except OSError:
        return MISSING if file.suffix == ".json" else ""
    if size != seal[0]:
        return f"has {size} bytes, not {seal[0]}"
    return "" if content_hash(file) == seal[1] else "does not have the content that was written"


# -- the ledger


def _anchor_file(state: State) -> Path:
    return Path(state.root) / "anchor.json"


def _anchor(state: State) -> dict[str, Any] | None:
    """Return the anchor, None where there is none. Raises ValueError for a damaged anchor."""
    try:
        found = orjson.loads(_anchor_file(state).read_bytes())
    except FileNotFoundError:
        return None
    if not isinstance(found, dict) or found.pop("digest", "") != _digest(found):
        raise ValueError("its content is not what was written")
    return found


def _digest(anchor: Mapping[str, Any]) -> str:
    return sha256(orjson.dumps(anchor, option=orjson.OPT_SORT_KEYS)).hexdigest()


def anchor_ledger(state: State, ledger: Ledger, head: Entry, live: Mapping[str, Collection[str]], *, since: int | None = None) -> None:
    """Write the anchor: the head of the ledger, and the seals of its files and of the live data files of all tables. One durable step.

    `live` has the data files of the changed tables; other tables keep theirs. `since`: the version of the ledger after which its files are sealed
    anew, where it is not that of the last anchor. Does nothing for a state that is not local.
    """
    if not state.local:
        return
    version = ledger.version()
    try:
        before = _anchor(state) or {}
    except ValueError:
        before = {}
    new = seals_between(Path(state.ledger), before.get("version") if since is None else since, version)
    durable.sync(Path(state.ledger) / name for name in new)
    seals = _needed(dict(before.get("files", {})) | new, ledger.data_files())
    anchor = {"epoch": head.epoch, "hash": head.hash, "version": version, "files": seals, "live": _live_seals(before, head, live)}
    text = orjson.dumps(anchor | {"digest": _digest(anchor)})
    durable.step("anchor", lambda: _write(_anchor_file(state), text))


def _needed(seals: Seals, live: Collection[str]) -> Seals:
    """Return the seals of the files that a reader needs: live data files, and the log from the last checkpoint on."""
    first = max((name.split(".")[0] for name in seals if name.startswith(LOG) and name.endswith(".checkpoint.parquet")), default="")
    return {name: seal for name, seal in seals.items() if (name.split(".")[0] >= first if name.startswith(LOG) else name in live)}


def _write(target: Path, text: bytes) -> None:
    staged = durable.staging_path(target)
    staged.write_bytes(text)
    durable.replace(staged, target)


def _live_seals(anchor: Mapping[str, Any], head: Entry, live: Mapping[str, Collection[str]]) -> dict[str, Seals]:
    """Return the seals of the live data files of each table, from the last anchor or the entry."""
    sealed: Mapping[str, Seals] = {**anchor.get("live", {})}
    found = {path: seals for path, seals in sealed.items() if path in head.tables}
    for path, names in live.items():
        known = {**sealed.get(path, {}), **head.files.get(path, {})}
        found[path] = {name: known[name] for name in names if name in known}
    return found


def require_ledger(state: State, head: Entry | None) -> None:
    """Raise StorageError where the ledger does not end where its anchor says. Ignores a missing or damaged anchor."""
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
    """Raise StorageError where a file of the ledger or of a table differs from its seal.

    `live` has the data files of each table with their sizes. Hashes up to `HASHED_BYTES`, files of tables first. Does nothing for a state that is not
    local.
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
    """Yield the files of the ledger that differ from the anchor. Compares bytes and opens no table."""
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
    """Yield a fault where the ledger does not end where the anchor says."""
    if not state.local:
        return
    anchor = _anchor(state)
    if anchor is not None:
        yield from _check_end(anchor, entries)
    elif entries and not _just_begun(state, entries):
        yield Fault("ledger", entries[-1].epoch, "anchor.json is missing")


def _just_begun(state: State, entries: list[Entry]) -> bool:
    """Return whether a first run may have ended before it wrote the anchor: there is one entry, and no table has later versions."""
    try:
        with storing(state.root):
            return len(entries) == 1 and all(deltalake.DeltaTable(state.table(path)).version() == version for path, version in entries[0].tables.items())
    except StorageError:
        return False


def _names(anchor: Mapping[str, Any], head: Entry) -> bool:
    """Return whether an anchor belongs to an entry or the one before it. A run may have ended before it wrote its anchor."""
    return anchor.get("hash") in (head.hash, head.previous, head.counters.get("replaces"))


def _check_end(anchor: Mapping[str, Any], entries: list[Entry]) -> Iterator[Fault]:
    """Yield a fault where the ledger lost the anchored entry. It may have later entries, whose anchors were not written."""
    known = entries if not verify_chain(entries) else entries[-1:]
    if any(_names(anchor, entry) for entry in known):
        return
    last = entries[-1].epoch if entries else 0
    if anchor.get("epoch", 0) > last:
        yield Fault("ledger", int(anchor["epoch"]), f"dropped: epoch {anchor['epoch']} was committed, the ledger ends with epoch {last}")
    else:
        yield Fault("ledger", last, f"its last entry is not the one that was committed as epoch {anchor.get('epoch')}")
