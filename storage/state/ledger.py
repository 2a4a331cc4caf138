"""The ledger: one row a committed run, each with the hash of the one before it (DESIGN section 5, step 5).

The append of its row is the commit of a run: rows of an epoch that the ledger does not have do not exist for readers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

import orjson

from changelog.lazy_imports import pa
from storage import durable
from storage.delta.maintenance import MANY_FILES, PROPERTIES
from storage.engines.machine import require_for_tables
from storage.errors import LedgerMoved, StorageError, storing

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = ["ChainFault", "Entry", "Ledger", "ledger_ways_out", "verify_chain"]

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """A committed run. `started` and `finished` are in UTC; the mappings hold JSON values with text keys.

    `plan` has the fingerprints by node, `tables` the version of each table by its path in the state folder, `nodes` the
    counts by node (`+A`, `-R`, `-C`, `+C`, `rows_in`, `rows_out`, `filtered`, `rejected`), `sources` cursor and files by
    source, `files` the seals of what the run wrote by table (`storage.state.integrity`), `marks` what each table consists of (`storage.delta.marks`), the counter `gone` the output files that it removes, `replaces` the hash of the head of the chain that it replaces. `base` the epoch that older ones were folded to. An entry whose counters have the `kind` compact is
    maintenance: it keeps the epoch of the entry before and changes no row. `previous` is the hash of the entry before, empty for the first; `hash` is filled in by `sealed`.
    """

    epoch: int
    execution_id: str
    batch_id: str
    started: datetime
    finished: datetime
    exit_code: int
    plan: Json = field(default_factory=dict)
    tables: Json = field(default_factory=dict)
    nodes: Json = field(default_factory=dict)
    sources: Json = field(default_factory=dict)
    counters: Json = field(default_factory=dict)
    files: Json = field(default_factory=dict)
    marks: Json = field(default_factory=dict)
    previous: str = ""
    hash: str = ""

    def sealed(self, previous: str) -> Entry:
        """The entry as the ledger keeps it: linked to the one before, with its own hash."""
        linked = replace(self, previous=previous)
        return replace(linked, hash=linked.digest())

    def digest(self) -> str:
        """SHA-256, in hexadecimal, of the canonical JSON of everything but `hash`."""
        return sha256(b"\n".join(f"{name}=".encode() + _canonical(value) for name, value in self._parts())).hexdigest()

    def _parts(self) -> Iterator[tuple[str, Any]]:
        """All members but the hash."""
        return ((name, value) for name, value in asdict(self).items() if name != "hash")

    @property
    def maintains(self) -> bool:
        """Whether the entry is maintenance of the epoch before."""
        return self.counters.get("kind") == "compact"

    @property
    def folded(self) -> Mapping[str, int]:
        """How many op rows of each node are no more since the epochs before a base were folded; later rows are numbered behind them."""
        found: Mapping[str, int] = self.counters.get("folded", {})
        return found

    @property
    def place(self) -> tuple[int, datetime]:
        """What entries are ordered by."""
        return self.epoch, self.finished


NAMES = tuple(member.name for member in fields(Entry))
MOMENTS = ("started", "finished")
DOCUMENTS = frozenset({"plan", "tables", "nodes", "sources", "counters", "files", "marks"})
KINDS = {"epoch": "bigint", "exit_code": "int", "started": "timestamp", "finished": "timestamp"}


@dataclass(frozen=True, slots=True)
class ChainFault:
    """What is wrong with the ledger at an epoch: `edited`, `unlinked` (dropped, inserted or reordered) or `repeated`."""

    epoch: int
    kind: Literal["edited", "unlinked", "repeated"]
    detail: str


class Ledger:
    """The ledger table of one pipeline, by its path or URI. Reads and appends with delta-rs; no engine is started."""

    def __init__(self, uri: str) -> None:
        """Open it later. Raises EngineUnavailable where this process may not have what reading tables takes."""
        require_for_tables()
        self.uri = uri
        self._opened: DeltaTable | None = None

    def head(self) -> Entry | None:
        """The last committed run, None before the first."""
        return max(self._read(newest=True), key=lambda entry: entry.place, default=None)

    def entries(self, *, checked: bool = True) -> list[Entry]:
        """Every committed run, oldest first. Raises StorageError where one is not what was committed, unless that is not to be `checked`."""
        return sorted(self._read(checked=checked), key=lambda entry: entry.place)

    def started(self, epochs: Collection[int]) -> dict[int, datetime]:
        """When the runs of these epochs began; maintenance of an epoch begins later."""
        from deltalake.exceptions import TableNotFoundError

        from storage.delta.scan import Within, values

        with storing(self.uri):
            try:
                rows = values(self._table(), ["epoch", "started"], Within("epoch", among=epochs))
            except TableNotFoundError:
                return {}
        found = sorted(zip(rows["epoch"], rows["started"], strict=True), reverse=True)
        return {epoch: moment.astimezone(UTC) for epoch, moment in found}

    def append(self, entry: Entry, expected_head: Entry | None, *, afresh: bool = False) -> Entry:
        """Commit a run: add its entry, linked to `expected_head`, and give it as it was written.

        `afresh` begins a new chain with this entry and drops the older ones in the same commit (`--full-refresh`): until it
        lands they stand, and so do the table versions that they name. One durable step. Raises `LedgerMoved` where the head is no longer the one that was expected, also where another
        process commits at the same moment.
        """
        from deltalake import CommitProperties, write_deltalake
        from deltalake.exceptions import CommitFailedError

        expected, link = (expected_head.epoch, expected_head.hash) if expected_head else (None, "")
        sealed = entry.sealed("" if afresh else link)
        mode: Literal["append", "overwrite"] = "overwrite" if afresh else "append"
        with storing(self.uri):
            table = self._created()
            if self._head_of(table) != (expected, link):
                raise LedgerMoved(self.uri, expected)
            once = CommitProperties(max_commit_retries=0)
            try:
                durable.step("append:ledger", lambda: write_deltalake(table, _rows([sealed]), mode=mode, commit_properties=once))
            except CommitFailedError as conflict:
                raise LedgerMoved(self.uri, expected) from conflict
        return sealed

    def fence(self, run: str) -> None:
        """Let no commit land that another run began before. One durable step; nothing where there is no ledger yet."""
        from deltalake.exceptions import TableNotFoundError

        with storing(self.uri):
            try:
                table = self._table()
            except TableNotFoundError:
                return
            durable.step("fence:ledger", lambda: table.alter.set_table_description(f"taken over by run {run}"))

    def data_files(self) -> set[str]:
        """The data files of the ledger, by their paths inside the table."""
        from storage.delta.scan import add_actions

        with storing(self.uri):
            return {unquote(str(path)) for (path,) in add_actions(self._table(), "path")}

    def files(self) -> int:
        """How many data files the ledger has."""
        return len(self.data_files())

    def version(self) -> int:
        """The newest version of the ledger's table."""
        with storing(self.uri):
            return int(self._table().version())

    def compact(self) -> None:
        """Put the entries into few files. One durable step."""
        with storing(self.uri):
            table = self._table()
            durable.step("optimize:ledger", table.optimize.compact)

    def compact_if_fragmented(self) -> bool:
        """Compact the entries if they lie in many files, and return whether they did."""
        fragmented = self.files() > MANY_FILES
        if fragmented:
            self.compact()
        return fragmented

    def verify_chain(self) -> list[ChainFault]:
        """What is wrong with the chain of hashes; empty where nothing is."""
        return verify_chain(self.entries(checked=False))

    def _head_of(self, table: Any) -> tuple[int | None, str]:
        newest = max(_entries(table, newest=True), key=lambda entry: entry.place, default=None)
        return (newest.epoch, newest.hash) if newest else (None, "")

    def _read(self, *, newest: bool = False, checked: bool = True) -> list[Entry]:
        from deltalake.exceptions import TableNotFoundError

        with storing(self.uri):
            try:
                found = _entries(self._table(), newest=newest)
            except TableNotFoundError:
                return []
            except (ValueError, TypeError, KeyError) as problem:
                raise StorageError(self.uri, f"the ledger cannot be read ({type(problem).__name__}); {ledger_ways_out(self.uri)}") from problem
        wrong = [entry.epoch for entry in found if checked and entry.hash != entry.digest()]
        if wrong:
            raise StorageError(self.uri, f"epoch {wrong[0]} is not what was committed; {ledger_ways_out(self.uri)}")
        return found


    def _table(self) -> DeltaTable:
        """The table as it is now: opened once, then what came since is added."""
        from deltalake import DeltaTable

        if self._opened is None:
            self._opened = DeltaTable(self.uri)
        else:
            self._opened.update_incremental()
        return self._opened

    def _created(self) -> Any:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        from storage.delta.columns import declared, new_fields

        try:
            table = self._table()
        except TableNotFoundError:
            schema = new_fields(declared({name: KINDS.get(name, "string") for name in NAMES}))
            return durable.step("create:ledger", lambda: DeltaTable.create(self.uri, schema, configuration=PROPERTIES))
        missing = set(NAMES) - {field.name for field in table.schema().fields}
        if missing:
            fields = new_fields(declared({name: KINDS.get(name, "string") for name in NAMES if name in missing})).fields
            durable.step("widen:ledger", lambda: table.alter.add_columns(fields))
        return table


def ledger_ways_out(uri: str) -> str:
    """What to do about a ledger that is damaged."""
    return f"put it back from a copy, or move {uri.rpartition('/')[0]} away and run with --force, which computes everything anew"


def verify_chain(entries: Sequence[Entry]) -> list[ChainFault]:
    """Check entries in the order of their epochs: each has the hash of its content and names the hash of the one before."""
    faults: list[ChainFault] = []
    previous, last = "", 0
    for entry in entries:
        if entry.hash != entry.digest():
            faults.append(ChainFault(entry.epoch, "edited", "its content does not have the hash that it was committed with"))
        if entry.epoch == last and not entry.maintains:
            faults.append(ChainFault(entry.epoch, "repeated", "the ledger has this epoch more than once"))
        elif entry.previous != previous or entry.epoch != last + (0 if entry.maintains else 1):
            faults.append(ChainFault(entry.epoch, "unlinked", f"it does not follow the entry of epoch {last}"))
        previous, last = entry.hash, entry.epoch
    return faults


def _entries(table: Any, *, newest: bool) -> list[Entry]:
    from storage.delta.scan import Within, add_actions, values

    last = max((last for (last,) in add_actions(table, "max.epoch")), default=0) if newest else None
    there = {field.name for field in table.schema().fields}
    columns = values(table, [name for name in NAMES if name in there], Within("epoch", first=last))
    return [_entry(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]


def _rows(entries: Sequence[Entry]) -> Any:

    from storage.delta.columns import declared

    schema = pa.schema(declared({name: KINDS.get(name, "string") for name in NAMES}))
    return pa.Table.from_pylist([_row(entry) for entry in entries], schema)


def _row(entry: Entry) -> Json:
    return {name: _canonical(value).decode() if name in DOCUMENTS else value for name, value in asdict(entry).items()}


def _entry(row: Mapping[str, Any]) -> Entry:
    read = {name: orjson.loads(value or "{}") if name in DOCUMENTS else value for name, value in row.items()}
    return Entry(**read | {name: read[name].astimezone(UTC) for name in MOMENTS})


def _canonical(value: Any) -> bytes:
    """JSON with sorted keys and without blanks; moments in UTC to the microsecond."""
    if isinstance(value, datetime):
        value = value.astimezone(UTC).isoformat(timespec="microseconds")
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
