"""The ledger: a Delta table with one row per committed run.

The append of its row commits a run. Rows of an epoch that the ledger does not have do not exist for readers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

from changelog.lazy_imports import pa
from storage import durable
from storage.delta.columns import declared, new_fields
from storage.delta.maintenance import PROPERTIES, fragmented_below
from storage.delta.scan import Within, add_actions, values
from storage.delta.up_to_date import bring_up_to_date
from storage.engines.machine import require_for_tables
from storage.errors import LedgerMoved, StorageError, storing
from storage.lazy_deltalake import deltalake
from storage.state.entry import FORMAT, KINDS, NAMES, ChainFault, Entry, chained, entry_of, row_of, verify_chain

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = ["Ledger", "ledger_ways_out"]


class Ledger:
    """The ledger table of one pipeline, by path or URI. Reads and appends with delta-rs, without an engine.

    Every method raises StorageError where the table cannot be read, and where the state has another format.
    """

    def __init__(self, uri: str) -> None:
        """Store the place; the table is opened later. Raises EngineUnavailable where the limits of this process are too low for tables."""
        require_for_tables()
        self.uri = uri
        self._opened: DeltaTable | None = None

    def head(self) -> Entry | None:
        """Return the entry of the last committed run, None before the first."""
        return max(self._read(newest=True), key=lambda entry: entry.place, default=None)

    def entries(self, *, checked: bool = True) -> list[Entry]:
        """Return all entries, oldest first. Raises StorageError for an entry that differs from its hash, unless `checked` is False."""
        return sorted(self._read(checked=checked), key=lambda entry: entry.place)

    def started(self, epochs: Collection[int]) -> dict[int, datetime]:
        """Return the start of the runs of these epochs. Later maintenance of an epoch does not count."""
        with storing(self.uri):
            try:
                rows = values(self._table(), ["epoch", "started"], Within("epoch", among=epochs))
            except deltalake.exceptions.TableNotFoundError:
                return {}
        found = sorted(zip(rows["epoch"], rows["started"], strict=True), reverse=True)
        return {epoch: moment.astimezone(UTC) for epoch, moment in found}

    def append(self, entry: Entry, expected_head: Entry | None, *, afresh: bool = False) -> Entry:
        """Commit a run. One durable step.

        Args:
            entry: The entry of the run.
            expected_head: The head that the run read; the new entry links to it.
            afresh: Begin a new chain with this entry and drop the older ones in the same commit (`--full-refresh`). Until the commit lands,
                the older entries and the table versions that they name stay valid.

        Returns:
            The entry as written, with its hash.

        Raises:
            LedgerMoved: The head is another one, or another process commits at the same moment.
        """
        sealed = entry.sealed("" if afresh else expected_head.hash if expected_head else "")
        self._commit([sealed], expected_head, "overwrite" if afresh else "append")
        return sealed

    def rewrite(self, entries: Sequence[Entry], expected_head: Entry) -> Entry:
        """Commit a run with all entries anew: its own is the last one, the others take the place of those before (`errata erase`). One durable step.

        Returns:
            The last entry as written, with its hash.

        Raises:
            LedgerMoved: The head is another one, or another process commits at the same moment.
        """
        sealed = chained(entries)
        self._commit(sealed, expected_head, "overwrite")
        return sealed[-1]

    def _commit(self, rows: Sequence[Entry], expected_head: Entry | None, mode: Literal["append", "overwrite"]) -> None:
        expected, link = (expected_head.epoch, expected_head.hash) if expected_head else (None, "")
        with storing(self.uri):
            table = self._created()
            if self._head_of(table) != (expected, link):
                raise LedgerMoved(self.uri, expected)
            once = deltalake.CommitProperties(max_commit_retries=0)
            try:
                durable.step("append:ledger", lambda: deltalake.write_deltalake(table, _rows(rows), mode=mode, commit_properties=once))
            except deltalake.exceptions.CommitFailedError as conflict:
                raise LedgerMoved(self.uri, expected) from conflict

    def checkpoint(self) -> int:
        """Write a checkpoint of the present version, so that readers need no older log, and return that version. One durable step."""
        with storing(self.uri):
            table = self._table()
            durable.step("checkpoint:ledger", table.create_checkpoint)
            return int(table.version())

    def fence(self, run: str) -> None:
        """Keep commits out that another run began before. One durable step. Does nothing where there is no ledger yet."""
        with storing(self.uri):
            try:
                table = self._table()
            except deltalake.exceptions.TableNotFoundError:
                return
            durable.step("fence:ledger", lambda: table.alter.set_table_description(f"taken over by run {run}"))

    def data_files(self) -> set[str]:
        """Return the data files of the ledger, by their paths inside the table."""
        with storing(self.uri):
            return {unquote(str(path)) for (path,) in add_actions(self._table(), "path")}

    def files(self) -> int:
        """Return the number of data files."""
        return len(self.data_files())

    def version(self) -> int:
        """Return the newest version of the ledger's table."""
        with storing(self.uri):
            return int(self._table().version())

    def compact(self, target_bytes: int | None = None) -> None:
        """Compact the entries into few files, or only files with fewer bytes than this. One durable step."""
        with storing(self.uri):
            table = self._table()
            durable.step("optimize:ledger", lambda: table.optimize.compact(target_size=target_bytes))

    def compact_if_fragmented(self) -> bool:
        """Compact the small files if there are many, and return whether there were."""
        with storing(self.uri):
            below = fragmented_below(size for (size,) in add_actions(self._table(), "size_bytes"))
        if below:
            self.compact(below)
        return below is not None

    def verify_chain(self) -> list[ChainFault]:
        """Return the faults in the chain of hashes."""
        return verify_chain(self.entries(checked=False))

    def _head_of(self, table: DeltaTable) -> tuple[int | None, str]:
        newest = max(self._entries(table, newest=True), key=lambda entry: entry.place, default=None)
        return (newest.epoch, newest.hash) if newest else (None, "")

    def _read(self, *, newest: bool = False, checked: bool = True) -> list[Entry]:
        with storing(self.uri):
            try:
                found = self._entries(self._table(), newest=newest)
            except deltalake.exceptions.TableNotFoundError:
                return []
            except (ValueError, TypeError, KeyError) as problem:
                raise StorageError(self.uri, f"the ledger cannot be read ({type(problem).__name__}); {ledger_ways_out(self.uri)}") from problem
        wrong = [entry.epoch for entry in found if checked and entry.hash != entry.digest()]
        if wrong:
            raise StorageError(self.uri, f"epoch {wrong[0]} is not what was committed; {ledger_ways_out(self.uri)}")
        return found

    def _entries(self, table: DeltaTable, *, newest: bool) -> list[Entry]:
        """Read all entries, or only entries of the newest epoch. Raises StorageError where one has another format."""
        last = max((last for (last,) in add_actions(table, "max.epoch")), default=0) if newest else None
        if "format" not in {field.name for field in table.schema().fields}:
            raise _other_format(self.uri, "no number")
        columns = values(table, list(NAMES), Within("epoch", first=last))
        if other := set(columns["format"]) - {FORMAT}:
            raise _other_format(self.uri, f"number {max(map(str, other))}")
        return [entry_of(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]

    def _table(self) -> DeltaTable:
        """Return the present table. It is opened once; later calls add what came since."""
        if self._opened is None:
            self._opened = deltalake.DeltaTable(self.uri)
        else:
            bring_up_to_date(self._opened, self.uri)
        return self._opened

    def _created(self) -> DeltaTable:
        try:
            return self._table()
        except deltalake.exceptions.TableNotFoundError:
            schema = new_fields(declared(_COLUMNS))
            return durable.step("create:ledger", lambda: deltalake.DeltaTable.create(self.uri, schema, configuration=PROPERTIES))


_COLUMNS = {name: KINDS.get(name, "string") for name in NAMES}


def ledger_ways_out(uri: str) -> str:
    """Return the remedies for a damaged ledger."""
    return f"put it back from a copy, or {_anew(uri)}"


def _other_format(uri: str, found: str) -> StorageError:
    return StorageError(uri, f"the format of this state has {found}, this version of Errata reads number {FORMAT}; {_anew(uri)}")


def _anew(uri: str) -> str:
    return f"move {uri.rpartition('/')[0]} away and run with --force, which computes everything anew"


def _rows(entries: Sequence[Entry]) -> Any:
    return pa.Table.from_pylist([row_of(entry) for entry in entries], pa.schema(declared(_COLUMNS)))
