"""Changelog tables: Delta tables of op rows that are only appended to.

Arrow tables on the driver are written with delta-rs, DataFrames with their engine; both give the same table. Tables use the oldest Delta protocol
(reader 1, writer 2), so that delta-rs, Spark and Sail all read them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING
from urllib.parse import unquote

from deltalake import ColumnProperties, CommitProperties, DeltaTable, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.schema import Field, Schema

from changelog.columns import CAUSE, EPOCH, ERROR, KEY, OP, column
from changelog.frames import with_schema
from changelog.lazy_imports import F, pa
from changelog.ops import NEGATIVE
from changelog.rows import TaskRows
from storage import durable
from storage.delta import maintenance
from storage.delta.chosen_rows import Choice, InRanges, blank_columns, chosen_rows, newest_rows
from storage.delta.columns import Placement, Storing, TableSchema, declared, in_place, logical_column, logical_table, place, stored_columns
from storage.delta.marks import mark_of
from storage.delta.scan import Condition, Given, Ranges, Within, add_actions, scanned, scanned_within
from storage.delta.scrubbing import Change, file_rows, rewriting
from storage.delta.statistics import TableStatistics
from storage.delta.task_writer import write_made_rows
from storage.delta.time_travel import frame_at
from storage.delta.up_to_date import bring_up_to_date
from storage.engines.arrow import spark_schema
from storage.engines.plain_paths import engine_uri
from storage.errors import Damaged, Overtaken, StorageError, damaged, engine_failures, storing
from storage.uris import is_local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage.engines import Engine

__all__ = ["Appended", "ChangelogTable"]

MOST_CONDITIONS = 8
"""Ranges of keys that become conditions of a scan, at most."""
SIGNATURE = " of run "
"""Text between the epoch and the run in the `userMetadata` of a commit."""


@dataclass(frozen=True, slots=True)
class Appended:
    """Result of an append: the number of rows added, and the table's version afterwards."""

    rows: int
    version: int


@dataclass(frozen=True, slots=True)
class _Rejects:
    """Cached op rows of rejects up to an epoch, read at a version of the table."""

    epoch: int
    version: int
    rows: pa.Table


class ChangelogTable:
    """A Delta table of op rows at a local path or an object-store URI.

    Args:
        uri: Path or URI of the table.
        schema: The columns, with or without `_epoch`. Without a schema the table's own columns are read, and the first append declares them.
        pinned: Version to read, whatever came later. A pinned table is not written.
        writer: The only run that writes the table while this object is used. The log is then read once, and a commit of another run raises `Overtaken`.
        raw: Read and replace rows by stored fields, including the fields of a column's earlier types.

    Raises:
        StorageError: The place does not answer. Every method may raise it.
    """

    def __init__(self, uri: str, schema: TableSchema | None = None, *, pinned: int | None = None, writer: str = "", raw: bool = False) -> None:
        self.uri = uri
        self.label = "/".join(uri.rstrip("/").split("/")[-2:])
        self._schema = schema
        self._pinned = pinned
        self._raw = raw
        self._writer = writer
        self._fixed = bool(writer) or pinned is not None
        self._opened: DeltaTable | None = None
        self._rejects: _Rejects | None = None

    @cached_property
    def _columns(self) -> list[pa.Field] | None:
        """Declared columns, including the system columns."""
        return None if self._schema is None else _with_system(declared(self._schema))

    # -- metadata

    def exists(self) -> bool:
        """Return whether the table was created."""
        return self._open() is not None

    def version(self) -> int | None:
        """Return the newest version, 0 for a table that was never written. None where there is no table."""
        table = self._open()
        return None if table is None else table.version()

    def columns(self) -> list[str]:
        """Return the logical names of the columns."""
        return [where.column.name for where in self._placements(self._open())]

    @property
    def statistics(self) -> TableStatistics:
        """Counts of the op rows, from the table's log."""
        table = self._open()
        return TableStatistics(self.uri, table, any(where.column.name == ERROR for where in self._placements(table)))

    def mark(self) -> str:
        """Return the mark of the present version (`storage.delta.marks`)."""
        with storing(self.uri):
            return mark_of(self._required())

    def data_files(self) -> dict[str, int]:
        """Return the size in bytes of each data file, by its path inside the table."""
        with storing(self.uri):
            return _sizes(self._required())

    # -- appending

    def append(self, data: DataFrame | pa.Table | TaskRows, epoch: int, *, distinct: Collection[str] = ()) -> Appended:
        """Add op rows under an epoch. Creates or widens the table first. One durable step, or two for a new or wider table.

        Args:
            data: The op rows.
            epoch: The epoch.
            distinct: Columns of a table on the driver whose values hardly repeat: no dictionary is looked for.
        """
        with storing(self.uri):
            table, placements = self._prepared(data)
            before = 0 if isinstance(data, pa.Table) else self.statistics.rows()
            self._forget_rejects_since(epoch)
            self._commit("append", table, lambda: self._write(data, epoch, table, placements, distinct), by_engine=not isinstance(data, pa.Table))
            return Appended(data.num_rows if isinstance(data, pa.Table) else self.statistics.rows() - before, table.version())

    def replace(self, frame: DataFrame, epoch: int) -> Appended:
        """Replace the op rows of the last epoch. `frame` may read the table. One durable step."""
        with storing(self.uri):
            table, placements = self._prepared(frame)
            others = self.statistics.rows() - sum(self.statistics.counts(epoch).values())
            self._forget_rejects_since(epoch)
            stamped = frame.select(*stored_columns(table.schema().fields, placements, {EPOCH: F.lit(epoch).cast("bigint")}))
            writer = stamped.write.format("delta").mode("overwrite").option("userMetadata", self._signed(epoch))
            writer = writer.option("replaceWhere", f"{EPOCH} = {epoch:d}") if others else writer  # to look for other rows takes a job
            self._commit("replace", table, lambda: writer.save(engine_uri(self.uri)), by_engine=True)
            return Appended(self.statistics.rows() - others, table.version())

    def create(self) -> None:
        """Create the empty table, or add the columns that it lacks. Needs a schema."""
        with storing(self.uri):
            self._ensured(self._columns or [])

    def _prepared(self, data: DataFrame | pa.Table) -> tuple[DeltaTable, list[Placement]]:
        columns = self._columns or _with_system(declared(data.schema))
        table = self._ensured(columns)
        return table, place(table.schema().fields, columns)

    def _ensured(self, columns: Sequence[pa.Field]) -> DeltaTable:
        table = self._open()
        placements = place(table.schema().fields if table else [], columns)
        missing = [where.stored for where in placements if where.missing]
        if table is None:
            return durable.step(f"create:{self.label}", lambda: self._create(missing))
        if missing:
            self._commit("widen", table, lambda: table.alter.add_columns(missing, commit_properties=self._once()))
        return table

    def _create(self, fields: list[Field]) -> DeltaTable:
        try:
            self._opened = DeltaTable.create(self.uri, Schema(fields), configuration=maintenance.PROPERTIES, commit_properties=self._once())
        except DeltaError as problem:
            if self._writer and DeltaTable.is_deltatable(self.uri):
                raise Overtaken(self.uri) from problem
            raise
        return self._opened

    def _write(self, data: DataFrame | pa.Table | TaskRows, epoch: int, table: DeltaTable, placements: Sequence[Placement], distinct: Collection[str]) -> None:
        if isinstance(data, pa.Table):
            rows = Storing.of(table.schema().fields, placements).table(_stamped(data, epoch))
            write_deltalake(table, rows, mode="append", commit_properties=self._once(self._signed(epoch)), writer_properties=_writing(placements, distinct))
        elif isinstance(data, TaskRows):
            write_made_rows(table, data, Storing.of(table.schema().fields, placements), epoch, self._once(self._signed(epoch)))
        else:
            storing, others = Storing.as_stored(table.schema().fields), [field for field in table.schema().fields if field.name != EPOCH]
            made = with_schema(data.select(*stored_columns(others, placements, {})), spark_schema(pa.schema([field for field in storing.fields if field.name != EPOCH])))
            write_made_rows(table, TaskRows(made, iter), storing, epoch, self._once(self._signed(epoch)))

    # -- reading

    def read(self, engine: Engine, *, epochs: tuple[int, int] | None = None, at: int | None = None) -> DataFrame:
        """Return op rows as a DataFrame.

        Args:
            engine: The engine that will read the rows.
            epochs: First and last epoch to read.
            at: Last epoch to read.
        """
        table = self._required()
        placements = self._placements(table)
        stored = [name for where in placements for name in where.read]
        frame = engine.session.read.format("delta").load(engine_uri(self.uri)) if self._pinned is None else frame_at(engine, self.uri, table, stored)
        if epochs is not None:
            frame = frame.where(F.col(EPOCH).between(*epochs))
        if at is not None:
            frame = frame.where(F.col(EPOCH) <= at)
        return with_schema(frame.select(*map(logical_column, placements)), spark_schema(pa.schema([where.column.remove_metadata() for where in placements])))

    def read_arrow(self, *, epochs: tuple[int, int] | None = None, at: int | None = None) -> pa.Table:
        """Return the same rows as `read` on the driver, without an engine. For small tables and for commands that only read."""
        return self._read_arrow(Within(EPOCH, *(epochs or (None, None))), Within(EPOCH, last=at))

    def rejects_arrow(self, at: int | None = None) -> pa.Table:
        """Return the op rows of rejects up to epoch `at` on the driver.

        Skips files without rejects, and pages without rejects of other files. Where only this run writes the table, epochs that were read once are cached.
        """
        known = self._rejects
        if known is None or (at is not None and at < known.epoch):
            rows = self._read_arrow(Within(EPOCH, last=at), Given(ERROR))
            if at is not None and self._fixed:
                self._rejects = _Rejects(at, self._required().version(), rows)
            return rows
        return known.rows if at == known.epoch else pa.concat_tables([known.rows, self._read_arrow(Within(EPOCH, known.epoch + 1, at), Given(ERROR))])

    def _forget_rejects_since(self, epoch: int) -> None:
        if self._rejects is not None and self._rejects.epoch >= epoch:
            self._rejects = None

    def ranges_arrow(self, ranges: Sequence[tuple[bytes, bytes]], at: int | None = None) -> pa.Table:
        """Return the op rows up to epoch `at` whose keys lie in one of the ranges, on the driver and maybe without `_cause`.

        Ranges ascend and do not overlap; each excludes its second key. Pages without a key of few ranges are skipped. Keys are compared with many ranges.
        """
        if len(ranges) > MOST_CONDITIONS:
            return self.chosen_arrow(InRanges(KEY, ranges), at)
        return self._read_arrow(Within(EPOCH, last=at), Ranges(KEY, ranges))

    def chosen_arrow(self, choice: Choice, at: int | None = None) -> pa.Table:
        """Return the op rows up to epoch `at` that are chosen, on the driver and without `_cause`."""
        rows = self.few_chosen_arrow(choice, at)
        assert rows is not None  # any number of them
        return rows

    def few_chosen_arrow(self, choice: Choice, at: int | None = None, most: int | None = None) -> pa.Table | None:
        """Return the same rows. None where there are more than `most`."""
        return self._without_cause(lambda table, names: chosen_rows(table, names, choice, at, most))

    def newest_arrow(self, keys: Sequence[bytes], at: int | None = None, most: int | None = None) -> pa.Table | None:
        """Return the rows that some keys, which ascend, have in the last of their epochs up to `at`, on the driver and without `_cause`.

        None where more than `most` rows are read to find them.
        """
        return self._without_cause(lambda table, names: newest_rows(table, names, keys, at, most))

    def _without_cause(self, read: Callable[[DeltaTable, Sequence[str]], pa.Table | None]) -> pa.Table | None:
        """Return what `read` finds in the table, given the names of its stored columns without `_cause`."""
        with storing(self.uri):
            placements = [where for where in self._placements(self._required()) if where.column.name != CAUSE]
            rows = read(self._required(), [name for where in placements for name in where.read])
            return None if rows is None else logical_table(rows, placements)

    def blank(self, names: Collection[str]) -> frozenset[str]:
        """Return which of Errata's own columns have no value in any stored row, by the metadata of the data files. Of a table that is not local, none is known."""
        with storing(self.uri):
            return blank_columns(self._required(), names)

    def given_arrow(self, column: str) -> pa.Table:
        """Return the rows that have a value in one of Errata's own columns, on the driver."""
        return self._read_arrow(Given(column))

    def _read_arrow(self, *conditions: Condition) -> pa.Table:
        with storing(self.uri):
            placements = self._placements(self._required())
            wanted = [name for where in placements for name in where.read]
            return logical_table(scanned(self._required(), wanted, *conditions), placements)

    def part_arrow(self, names: Collection[str], epochs: Within, keys: tuple[bytes, bytes] | None = None, most: int | None = None) -> pa.Table:
        """Return some columns of the op rows of some epochs on the driver, without an engine.

        Args:
            names: The columns, by their logical names.
            epochs: Which epochs, for example `Within(EPOCH, 3, 7)`.
            keys: The first and the last key. None: all.
            most: The number of rows after which reading ends, in any order. None: all are read.
        """
        with storing(self.uri):
            placements = [where for where in self._placements(self._required()) if where.column.name in names]
            wanted = [name for where in placements for name in where.read]
            conditions = [epochs] if keys is None else [epochs, Ranges(KEY, [(keys[0], keys[1] + b"\0")])]
            return logical_table(scanned(self._required(), wanted, *conditions, most=most), placements)

    def within(self, size: int, names: Collection[str], epochs: Within) -> pa.Table | None:
        """Return some columns of the op rows of some epochs on the driver, without an engine; None where they take more than `size` bytes there."""
        with storing(self.uri):
            placements = [where for where in self._placements(self._required()) if where.column.name in names]
            rows = scanned_within(self._required(), [name for where in placements for name in where.read], size, epochs)
            return None if rows is None else logical_table(rows, placements)

    def taken_back(self, at: int | None = None) -> pa.Table:
        """Return the `_key` and `_epoch` of every retraction up to epoch `at`, on the driver. For tables with few retractions."""
        with storing(self.uri):
            return scanned(self._required(), [KEY, EPOCH], Within(OP, min(NEGATIVE), max(NEGATIVE)), Within(EPOCH, last=at))

    # -- integrity

    def check(self, version: int, mark: str) -> None:
        """Raise `Damaged` unless the committed version is there and complete: its log has this mark, and its files have their sizes.

        Reads only the log. On an object store the sizes of files are not compared.
        """
        with damaged(self.uri, version):
            table = self._open()
            if table is None:
                raise Damaged(self.uri, version, "the table is gone")
            if table.version() < version:
                raise Damaged(self.uri, version, f"the newest version is {table.version()}")
            if mark_of(table) != mark:
                table = DeltaTable(self.uri, version=version)
                if table.version() != version or mark_of(table) != mark:
                    raise Damaged(self.uri, version, "the log does not say what was committed")
            wrong = _wrong_file(self.uri, _sizes(table)) if is_local(self.uri) else ""
        if wrong:
            raise Damaged(self.uri, version, wrong)

    # -- exclusive writing

    def fence(self) -> None:
        """Add a version, so that no commit lands that another run began before it. One durable step."""
        table = self._open()
        if table is not None:
            with storing(self.uri):
                self._commit("fence", table, lambda: table.alter.set_table_description(f"taken over by run {self._writer}", commit_properties=self._once()))

    def require_untouched(self) -> None:
        """Raise `Overtaken` where the table has a version that this object did not write."""
        table = self._opened
        if table is not None and self._writer:
            with storing(self.uri):
                known = table.version()
                bring_up_to_date(table, self.uri)
            if table.version() != known:
                raise Overtaken(self.uri)

    def _commit(self, name: str, table: DeltaTable, action: Callable[[], object], *, by_engine: bool = False) -> None:
        """Make the next version of the table. One durable step. Raises `Overtaken` where another run made a version meanwhile.

        A commit of delta-rs fails when its version exists. A commit of an engine may land after another run's, or not at all where it has no rows.
        An engine may also fail after its commit has landed. The next run takes that version away, as it does after any failed run.
        """
        before = table.version()
        try:
            durable.step(f"{name}:{self.label}", action)
        except engine_failures(CommitFailedError) as problem:
            now = DeltaTable(self.uri)
            landed = now.version() - before
            if self._writer and (landed > 1 or (landed == 1 and not (by_engine and self._is_own(now)))):
                raise Overtaken(self.uri) from problem
            raise
        bring_up_to_date(table, self.uri)
        landed = table.version() - before
        if self._writer and (landed > 1 or (landed == 1 and by_engine and self._is_foreign(table))):
            raise Overtaken(self.uri)

    def _is_foreign(self, table: DeltaTable) -> bool:
        """Return whether another run signed the newest commit."""
        return SIGNATURE in _signature(table) and not self._is_own(table)

    def _is_own(self, table: DeltaTable) -> bool:
        """Return whether this run signed the newest commit."""
        return _signature(table).endswith(f"{SIGNATURE}{self._writer}")

    def _signed(self, epoch: int) -> str:
        """Return the signature of a commit: the epoch and the run."""
        return f"epoch {epoch}{SIGNATURE}{self._writer}" if self._writer else f"epoch {epoch}"

    def _once(self, text: str = "") -> CommitProperties:
        """Return properties of a commit that is not retried where the run is the only writer."""
        return CommitProperties(custom_metadata={"userMetadata": text} if text else None, max_commit_retries=0 if self._writer else None)

    # -- maintenance

    def optimize(self, target_bytes: int) -> None:
        """Compact files with fewer bytes than this in a new version; no row changes. One durable step."""
        table = self._open()
        if table is not None:
            with storing(self.uri):
                self._commit("optimize", table, lambda: table.optimize.compact(target_size=target_bytes, commit_properties=self._once()))

    def compact_if_fragmented(self) -> None:
        """Compact the small files where there are many, in a new version. Files that are large beside them stay unchanged."""
        below = maintenance.fragmented_below(self.data_files().values())
        if below:
            self.optimize(below)

    def replace_before(self, rows: DataFrame | pa.Table, epoch: int, *, distinct: Collection[str] = (), given: str | None = None) -> None:
        """Replace all rows of earlier epochs by these rows, which have `_epoch`, in a new version. One durable step.

        Args:
            rows: The rows.
            epoch: The epoch from which on rows stay.
            distinct: Columns whose values hardly repeat: to look for a dictionary would take half of the time of writing.
            given: One of Errata's own columns; rows that have no value in it stay. Only for rows on the driver.
        """
        with storing(self.uri):
            table = self._required()
            placements = self._placements(table)
            earlier = " AND ".join([f"{EPOCH} < {int(epoch)}", *([] if given is None else Given(given).conditions())])
            self._forget_rejects_since(0)
            if isinstance(rows, pa.Table):
                stored = Storing.of(table.schema().fields, placements).table(rows)
                writing = _writing(placements, distinct)
                self._commit("fold", table, lambda: write_deltalake(table, stored, mode="overwrite", predicate=earlier, commit_properties=self._once(), writer_properties=writing))
            else:
                frame = rows.select(*stored_columns(table.schema().fields, placements, {EPOCH: column(EPOCH)}))
                writer = frame.write.format("delta").mode("overwrite").option("replaceWhere", earlier)
                self._commit("fold", table, lambda: writer.save(engine_uri(self.uri)), by_engine=True)

    def vacuum(self) -> None:
        """Remove files that no version of the last week needs."""
        table = self._open()
        if table is not None:
            with storing(self.uri):
                durable.step(f"vacuum:{self.label}", lambda: table.vacuum(dry_run=False))
                bring_up_to_date(table, self.uri)

    # -- scrubbing

    def stored_rows(self) -> Iterator[pa.Table]:
        """Yield the op rows of each data file, in the fields that are stored."""
        table = self._open()
        if table is not None:
            with storing(self.uri):
                for _, rows in file_rows(table):
                    yield rows

    def rewrite(self, change: Change) -> None:
        """Let the rows of each data file become others, in a new version. One durable step; none where nothing changes."""
        with storing(self.uri):
            table = self._required()
            actions = rewriting(table, change)
            if actions:
                self._forget_rejects_since(0)
                self._commit("scrub", table, lambda: table.create_write_transaction(actions, "append", table.schema(), commit_properties=self._once()))

    def checkpoint(self) -> None:
        """Write a checkpoint of the present version, so that readers need no older log. One durable step."""
        with storing(self.uri):
            durable.step(f"checkpoint:{self.label}", self._required().create_checkpoint)

    # -- repair

    def restore(self, version: int | None) -> bool:
        """Bring the table back to a version, or to the empty table where `version` is None. Return whether anything changed."""
        table = self._open()
        if table is None:
            return False
        with storing(self.uri):
            bring_up_to_date(table, self.uri)  # a write that failed may have landed
            if table.version() == (version or 0):
                return False
            if self._same_as(table, version or 0):
                return False
            if self._rejects is not None and self._rejects.version > (version or 0):
                self._rejects = None
            self._commit("restore", table, lambda: table.restore(version or 0, commit_properties=self._once()))
            return True

    def _same_as(self, table: DeltaTable, version: int) -> bool:
        then = DeltaTable(self.uri, version=version)
        return set(then.file_uris()) == set(table.file_uris()) and then.schema().to_json() == table.schema().to_json()

    def clear(self) -> None:
        """Remove all rows in a new version (`--full-refresh`). `restore` to an older version brings them back."""
        table = self._open()
        if table is not None and self.statistics.rows():
            self._forget_rejects_since(0)
            with storing(self.uri):
                self._commit("clear", table, lambda: table.delete(commit_properties=self._once()))

    def discard(self) -> None:
        """Remove the table with all its files. One durable step. Only for local tables."""
        durable.step(f"discard:{self.label}", lambda: rmtree(self.uri.removeprefix("file://"), ignore_errors=True))
        self._opened = self._rejects = None

    # -- the log

    def _open(self) -> DeltaTable | None:
        with storing(self.uri):
            if self._opened is not None:
                if not self._fixed:
                    bring_up_to_date(self._opened, self.uri)
                return self._opened
            try:
                self._opened = DeltaTable(self.uri, version=self._pinned)
            except TableNotFoundError as problem:
                if self._pinned is not None:
                    raise StorageError(self.uri, f"the table is gone, the ledger says version {self._pinned}") from problem
                return None
            return self._opened

    def _required(self) -> DeltaTable:
        table = self._open()
        if table is None:
            raise FileNotFoundError(f"there is no changelog table at {self.uri}")
        return table

    def _placements(self, table: DeltaTable | None) -> list[Placement]:
        stored = table.schema().fields if table else []
        return in_place(stored) if self._raw else place(stored, self._columns)


def _writing(placements: Sequence[Placement], distinct: Collection[str]) -> WriterProperties:
    """Return how files are written: without a dictionary of columns whose values hardly repeat."""
    return WriterProperties(column_properties={where.stored.name: ColumnProperties(dictionary_enabled=False) for where in placements if where.column.name in distinct} or None)


def _signature(table: DeltaTable) -> str:
    return str(table.history(1)[0].get("userMetadata") or "")


def _stamped(rows: pa.Table, epoch: int) -> pa.Table:
    """Return the rows with `_epoch`."""
    others = {name: rows.column(name) for name in rows.column_names if name != EPOCH}
    return pa.table({EPOCH: pa.repeat(pa.scalar(epoch, pa.int64()), rows.num_rows), **others})


def _sizes(table: DeltaTable) -> dict[str, int]:
    return {unquote(path): size for path, size in add_actions(table, "path", "size_bytes")}


def _wrong_file(uri: str, sizes: Mapping[str, int]) -> str:
    """Return the problem of the first data file that is missing or has another size. Empty where all are right."""
    folder = uri.removeprefix("file://")
    for name, size in sizes.items():
        try:
            found = Path(folder, name).stat().st_size
        except OSError:
            return f"{name} is missing"
        if found != size:
            return f"{name} has {found:,} bytes, not {size:,}"
    return ""


def _with_system(columns: Sequence[pa.Field]) -> list[pa.Field]:
    """Return `_epoch`, `_op` and `_error` first, where Delta keeps statistics, then the other columns."""
    named: Mapping[str, pa.Field] = {column.name: column for column in columns}
    first = [pa.field(EPOCH, pa.int64()), *(named[name] for name in (OP, ERROR) if name in named)]
    return [*first, *(column for name, column in named.items() if name not in (EPOCH, OP, ERROR))]
