"""Files and tables of one run: staged before the commit, published after it, removed when the run fails."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from errata.core.failures import StorageFailed
from storage import durable
from storage.durable import undoing
from storage.errors import StorageError


@dataclass(frozen=True, slots=True)
class Written:
    """A finished file beside its target, and what the ledger keeps of it."""

    staged: Path
    target: Path
    size: int
    mtime_ns: int
    wanted: Path
    """The target; where its name has a suffix since another file has that name, the path without it."""
    told: Mapping[str, Any] = field(default_factory=dict)
    """What else it takes to write the file a second time."""

    def json(self, folder: Path) -> dict[str, Any]:
        """Path (below the pipeline's folder where it lies there), size, mtime, the path that was wanted instead, further members."""
        wanted = {} if self.wanted == self.target else {"instead_of": os.path.relpath(self.wanted, folder)}
        return {"path": os.path.relpath(self.target, folder), "size": self.size, "mtime_ns": self.mtime_ns, **wanted, **self.told}


@dataclass(slots=True)
class StagedTable:
    """A table to be written once the epoch stands: `steps` do it in order. `node`: the output, of a table of a database."""

    steps: list[Callable[[], None]] = field(default_factory=list)
    node: str = ""

    def publish(self) -> None:
        """Write. Raises StorageError."""
        for step in self.steps:
            step()


@dataclass(slots=True)
class StagedFiles:
    """The files of one run: staged before the commit, published after it; removed when the run fails."""

    written: list[Written] = field(default_factory=list)
    gone: dict[Path, Mapping[str, Any]] = field(default_factory=dict)
    """Files that are to be removed, with what the ledger keeps of them."""
    tables: list[StagedTable] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    """The outputs whose databases refused the rows."""
    formulas: bool = False
    """Whether it was warned of text that a spreadsheet would run."""
    _begun: dict[Path, dict[str, list[Path]]] = field(default_factory=dict)
    _targets: set[Path] = field(default_factory=set)

    def publish(self) -> None:
        """Rename everything over its target, bring tables up to date, remove what is not written any more.

        Raises:
            StorageFailed: Tables of databases were refused; all others are written.
        """
        for one in self.written:
            durable.publish(one.staged, one.target)
        for path in self.gone:
            durable.step(f"remove:{path.name}", lambda path=path: path.unlink(missing_ok=True))  # type: ignore[misc]  # lambda default binds the loop variable
        failures = []
        for table in self.tables:
            try:
                table.publish()
            except StorageFailed as failure:
                failures.append(failure)
                self.refused.add(table.node)
        self.written, self.gone, self.tables, self._targets = [], {}, [], set()
        if failures:
            first, *others = failures
            first.details = (*first.details, *(one.message for one in others))
            raise first

    def date(self, before: Mapping[Path, Mapping[str, Any]]) -> None:
        """Give files that are only brought back the times that the ledger has of them, so that the next run finds them as they were."""
        for one in self.written:
            entry = before.get(one.target)
            if entry is not None and entry.get("size") == one.size:
                os.utime(one.staged, ns=(entry["mtime_ns"], entry["mtime_ns"]))

    def discard(self) -> None:
        """Remove what was staged."""
        for one in self.written:
            one.staged.unlink(missing_ok=True)

    def sweep(self, target: Path) -> None:
        """Remove what a run that was killed had begun to write in the place of a file."""
        if target.parent not in self._begun:
            self._begun[target.parent] = durable.staged_in(target.parent)
        for begun in self._begun[target.parent].pop(target.name, ()):
            begun.unlink(missing_ok=True)

    def stage(self, target: Path, parts: Iterator[bytes], *, wanted: Path | None = None) -> Written:
        """Write a file beside its target, which may take the place of the one `wanted`. Raises StorageFailed, also where another output of the run wrote it."""
        if target in self._targets:
            raise StorageFailed(f"two outputs write {target}", help="give one of them another path")
        self._targets.add(target)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            self.sweep(target)
            staged = durable.staging_path(target)
            stat = _filled(staged, parts)
        except OSError as error:
            raise StorageFailed(f"cannot write {target}: {error.strerror}") from error
        one = Written(staged, target, stat.st_size, stat.st_mtime_ns, wanted or target)
        self.written.append(one)
        return one


def holds(path: Path, parts: Iterator[bytes]) -> bool:
    """Whether a file is what these parts make. Raises OSError."""
    with path.open("rb") as handle:
        return all(handle.read(len(part)) == part for part in parts) and not handle.read(1)


def _filled(path: Path, parts: Iterator[bytes]) -> os.stat_result:
    """Write a file; remove it where that fails."""
    with undoing(lambda: path.unlink(missing_ok=True)):
        with path.open("wb") as handle:
            handle.writelines(parts)
        return path.stat()


def is_intact(entry: Mapping[str, Any], folder: Path) -> bool:
    """Whether a file that the ledger names is still there as it was written."""
    try:
        stat = (folder / entry["path"]).stat()
    except OSError:
        return False
    return (stat.st_size, stat.st_mtime_ns) == (entry["size"], entry["mtime_ns"])


def table_is_intact(entry: Mapping[str, Any], place: str) -> bool:
    """Whether a table holds what the ledger says that it was given."""
    from storage.delta.published_table import PublishedTable  # only outputs that are tables need it

    try:
        return bool(PublishedTable(place).mark() == entry["mark"])
    except StorageError:
        return False
