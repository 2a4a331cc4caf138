"""Files and tables of one run: staged before the commit, published after it, removed when the run fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from errata.core.failures import StorageFailed
from storage.durable import undoing
from storage.errors import StorageError
from storage.files.stores import store_of
from storage.stores.client import Occupied, StoreFailed
from storage.stores.places import Place, Places
from storage.uris import below


@dataclass(frozen=True, slots=True)
class Written:
    """A finished file that waits for its target, and what the ledger keeps of it.

    Attributes:
        kept: What the ledger knows it by: its size, and its time or its content.
        first: Whether nothing is at its target yet.
    """

    staged: Path
    target: Place
    kept: Mapping[str, Any]
    wanted: Place
    """The target; where its name has a suffix since another file has that name, the path without it."""
    first: bool = False
    members: Mapping[str, Any] = field(default_factory=dict)
    """Further values that are needed to write the file a second time."""

    @property
    def size(self) -> int:
        """Its bytes."""
        return int(self.kept["size"])

    def json(self, folder: Path) -> dict[str, Any]:
        """Path (below the pipeline's folder where it lies there) or URI, what it is known by, the path that was wanted instead, further members."""
        wanted = {} if self.wanted == self.target else {"instead_of": below(str(self.wanted), folder)}
        return {"path": below(str(self.target), folder), **self.kept, **wanted, **self.members}


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
    gone: dict[Place, Mapping[str, Any]] = field(default_factory=dict)
    """Files that are to be removed, with what the ledger keeps of them."""
    tables: list[StagedTable] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    """The outputs whose databases refused the rows."""
    formulas: bool = False
    """Whether it was warned of text that a spreadsheet would run."""
    unwritten: set[str] = field(default_factory=set)
    """The places that a store did not take."""
    occupied: dict[str, str] = field(default_factory=dict)
    """Unwritten places at which an object of somebody else came meanwhile, with its identity."""
    _begun: dict[Place, dict[str, list[Path]]] = field(default_factory=dict)
    _targets: set[Place] = field(default_factory=set)

    def publish(self) -> None:
        """Bring everything to its target, bring tables up to date, remove what is not written any more.

        Raises:
            StorageFailed: Tables of databases, or objects, were refused; all others are written.
        """
        failures: list[StorageFailed] = []
        for one in self.written:
            with self._noting(one.target, failures):
                store_of(one.target).publish(one.staged, one.target, first=one.first)
        for place in self.gone:
            with self._noting(place, failures):
                store_of(place).remove(place)
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

    @contextmanager
    def _noting(self, place: Place, failures: list[StorageFailed]) -> Iterator[None]:
        """Note the failure of a store, so that the other places are written."""
        try:
            yield
        except StorageError as error:
            failures.append(StorageFailed(str(error), again=isinstance(error, StoreFailed) and error.again))
            self.unwritten.add(str(place))
            if isinstance(error, Occupied):
                self.occupied[str(place)] = error.identity

    def date(self, before: Mapping[Place, Mapping[str, Any]]) -> None:
        """Give files that are only brought back the times that the ledger has of them, so that the next run finds them as they were."""
        for one in self.written:
            entry = before.get(one.target)
            if entry is not None and entry.get("size") == one.size:
                store_of(one.target).date(one.staged, entry)

    def discard(self) -> None:
        """Remove what was staged."""
        for one in self.written:
            one.staged.unlink(missing_ok=True)

    def sweep(self, target: Place) -> None:
        """Remove what a run that was killed had begun to write in the place of a file."""
        if target.parent not in self._begun:
            self._begun[target.parent] = store_of(target).sweep(target.parent)
        for begun in self._begun[target.parent].pop(target.name, ()):
            begun.unlink(missing_ok=True)

    def stage(self, target: Place, parts: Iterator[bytes], *, wanted: Place | None = None) -> Written:
        """Write a file that waits for its target, which may take the place of the one `wanted`. Raises StorageFailed, also where another output of the run wrote it."""
        if target in self._targets:
            raise StorageFailed(f"two outputs write {target}", help="give one of them another path")
        self._targets.add(target)
        try:
            store, first = store_of(target), not target.exists()
            self.sweep(target)
            staged = store.staging(target)
            _fill(staged, parts)
            one = Written(staged, target, store.kept(staged), wanted or target, first)
        except OSError as error:
            raise StorageFailed(f"cannot write {target}: {error.strerror}") from error
        except StorageError as error:
            raise StorageFailed(f"cannot write {error}") from error
        self.written.append(one)
        return one


def holds(place: Place, parts: Iterator[bytes]) -> bool:
    """Whether a file is what these parts make. Raises OSError and StorageError."""
    with store_of(place).open(place) as handle:
        return all(handle.read(len(part)) == part for part in parts) and not handle.read(1)


def _fill(path: Path, parts: Iterator[bytes]) -> None:
    """Write a file; remove it where that fails."""
    with undoing(lambda: path.unlink(missing_ok=True)), path.open("wb") as handle:
        handle.writelines(parts)


def is_intact(entry: Mapping[str, Any], places: Places) -> bool:
    """Whether a file that the ledger names is still there as it was written. Raises StorageError where its store gives no answer."""
    place = places / entry["path"]
    return store_of(place).holds(place, entry)


def table_is_intact(entry: Mapping[str, Any], place: str) -> bool:
    """Whether a table holds what the ledger says that it was given."""
    from storage.delta.published_table import PublishedTable  # only outputs that are tables need it

    try:
        return bool(PublishedTable(place).mark() == entry["mark"])
    except StorageError:
        return False
