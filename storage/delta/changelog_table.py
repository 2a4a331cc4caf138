"""Changelog tables: Delta tables that are only ever appended to (DESIGN sections 3, 4 and 7).

What is on the driver as Arrow goes through delta-rs, what is an engine's DataFrame through the engine; both ways give the
same table. Only the oldest Delta protocol is used (reader 1, writer 2), so that delta-rs, Spark and Sail all read it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING
from urllib.parse import unquote

from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.schema import Field, Schema

from changelog.columns import EPOCH, ERROR, KEY, OP, column
from changelog.frames import making, told
from changelog.lazy_imports import F, pa
from changelog.ops import NEGATIVE, Op
from storage import durable
from storage.delta.columns import Placement, Storing, TableSchema, declared, in_place, logical_column, logical_table, place, stored_columns
from storage.delta.marks import mark_of
from storage.delta.scan import Condition, Given, Ranges, Within, add_actions, scanned
from storage.delta.time_travel import frame_at
from storage.engines.plain_paths import engine_uri
from storage.errors import Damaged, Overtaken, StorageError, damaged, engine_failures, storing
from storage.uris import is_local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage.engines import Engine

__all__ = ["Appended", "ChangelogTable"]

WHOLE_FILE = 32 << 20
"""Bytes from which on a file is left as it is when small ones are put together."""
SIGNATURE = " of run "
"""The text between the epoch and the run in the `userMetadata` of a commit."""
PROPERTIES = {
    "delta.dataSkippingNumIndexedCols": "3",  # `_epoch`, `_op`, `_error`: what readers prune by and counts come from
    "delta.enableExpiredLogCleanup": "false",  # the version that the ledger names must stay restorable
    "delta.checkpointInterval": "10",  # a table is opened a few times a run, and each log entry since the last checkpoint is read then
}


@dataclass(frozen=True, slots=True)
class Appended:
    """What an append did: the rows that it added and the table's version after it."""

    rows: int
    version: int


@dataclass(frozen=True, slots=True)
class _Rejects:
    """The op rows of rejects up to an epoch, as they were read at a version of the table."""

    epoch: int
    version: int
    rows: pa.Table


class ChangelogTable:
    """A Delta table of op rows at a local path or an object-store URI.

    `schema` declares the columns, `_epoch` with them or not; without it the table's own are read, and the first append
    decides. `pinned`: the version that is read, whatever came later; such a table is
    not written. `raw`: rows are read and replaced field by field as they are stored, what a column held in other types too. `writer`: the run that alone
    writes the table while this object is used, so that its log is read once; a commit of anybody else raises `Overtaken`. Raises `storage.errors.StorageError` where the place does not answer.
    """

    def __init__(
        self, uri: str, schema: TableSchema | None = None, *, pinned: int | None = None, writer: str = "", raw: bool = False
    ) -> None:
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
        """The declared columns, the system's with them."""
        return None if self._schema is None else _with_system(declared(self._schema))

    # -- what there is

    def exists(self) -> bool:
        """Whether the table was created."""
        return self._open() is not None

    def version(self) -> int | None:
        """The newest version of the table, None where there is no table. A table that was created and never written has 0."""
        table = self._open()
        return None if table is None else table.version()

    def columns(self) -> list[str]:
        """The logical names of the columns."""
        return [where.column.name for where in self._placements(self._open())]

    def rows(self) -> int:
        """The number of op rows in the table, from its log."""
        table = self._open()
        return 0 if table is None else _row_count(table)

    def rows_near(self, epochs: tuple[int, int]) -> int:
        """How many op rows the files have that may hold rows of the epochs from the first to the last named."""
        files = add_actions(self._required(), "num_records", f"min.{EPOCH}", f"max.{EPOCH}")
        return sum(rows for rows, low, high in files if low <= epochs[1] and high >= epochs[0])

    def rows_before(self, epoch: int) -> int:
        """How many op rows are of earlier epochs. Reads `_epoch` where a file may hold rows of both sides."""
        files, first = self._files(), epoch
        while across := [low for _, low, high, *_ in files if low < first <= high]:
            first = min(across)
        told = sum(rows for rows, _, high, *_ in files if high < first)
        if first == epoch:
            return told
        with storing(self.uri):
            return told + int(scanned(self._required(), [EPOCH], Within(EPOCH, first, epoch - 1)).num_rows)

    def first_epoch(self) -> int:
        """The earliest epoch of a row, 0 where there is none: that of the base, once earlier ones are folded."""
        return min((first for _, first, *_ in self._files()), default=0)

    def retractions(self) -> int:
        """How many rows take something back at most: those of the files whose statistics do not rule it out."""
        return sum(rows for rows, *_, highest in self._files() if highest > Op.APPEND)

    def counts(self, epoch: int) -> dict[Op, int]:
        """How many rows of each operation an epoch brought. Reads `_op` only of the files whose statistics do not tell."""
        totals = dict.fromkeys(Op, 0)
        files = [file for file in self._files() if file[1] <= epoch <= file[2]]
        if all(low == high == epoch and first == last for _, low, high, first, last in files):
            for count, _, _, op, _ in files:
                totals[Op(op)] += count
            return totals
        with storing(self.uri):
            found = scanned(self._required(), [OP], Within(EPOCH, epoch, epoch)).column(OP).value_counts().to_pylist()
        return totals | {Op(entry["values"]): entry["counts"] for entry in found}

    def rejected_rows(self) -> int | None:
        """How many op rows are of rejects, by the statistics of the files; None where these do not tell."""
        table = self._required()
        if ERROR not in {where.column.name for where in self._placements(table)}:
            return 0
        files = add_actions(table, "num_records", f"null_count.{ERROR}")
        return None if any(nulls is None for _, nulls in files) else sum(rows - nulls for rows, nulls in files)

    def sound(self, epoch: int) -> dict[Op, int] | None:
        """The `counts` of an epoch whose rows are no rejects (`_error` is null), where the statistics of the files tell; else None. Reads no rows."""
        table = self._required()
        if ERROR in {where.column.name for where in self._placements(table)}:
            files = add_actions(table, "num_records", f"min.{EPOCH}", f"max.{EPOCH}", f"min.{OP}", f"max.{OP}", f"null_count.{ERROR}")
        else:
            files = [(*file, file[0]) for file in self._files()]
        own = [file for file in files if file[1] <= epoch <= file[2]]
        plain = all(low == high and first == last and nulls == rows for rows, low, high, first, last, nulls in own)
        return {op: sum(file[0] for file in own if file[3] == op) for op in Op} if plain else None

    # -- appending

    def append(self, data: DataFrame | pa.Table, epoch: int) -> Appended:
        """Add op rows under an epoch, creating or widening the table first. One durable step (two where it is new or wider)."""
        with storing(self.uri):
            table, placements = self._prepared(data)
            before = 0 if isinstance(data, pa.Table) else _row_count(table)
            self._changing(epoch)
            self._commit("append", table, lambda: self._write(data, epoch, table, placements), by_engine=not isinstance(data, pa.Table))
            return Appended(data.num_rows if isinstance(data, pa.Table) else _row_count(table) - before, table.version())

    def replace(self, frame: DataFrame, epoch: int) -> Appended:
        """Put op rows in the place of those that an epoch, the last one, has; the frame may read the table. One durable step."""
        with storing(self.uri):
            table, placements = self._prepared(frame)
            others = _row_count(table) - sum(self.counts(epoch).values())
            self._changing(epoch)
            stamped = frame.select(*stored_columns(table.schema().fields, placements, {EPOCH: F.lit(epoch).cast("bigint")}))
            writer = stamped.write.format("delta").mode("overwrite").option("userMetadata", self._signed(epoch))
            writer = writer.option("replaceWhere", f"{EPOCH} = {epoch:d}") if others else writer  # to look for other rows takes a job
            self._commit("replace", table, lambda: writer.save(engine_uri(self.uri)), by_engine=True)
            return Appended(_row_count(table) - others, table.version())

    def create(self) -> None:
        """Make the empty table, or the columns that it lacks, without adding rows. Needs a schema."""
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
            self._opened = DeltaTable.create(self.uri, Schema(fields), configuration=PROPERTIES, commit_properties=self._once())
        except DeltaError as problem:
            if self._writer and DeltaTable.is_deltatable(self.uri):
                raise Overtaken(self.uri) from problem
            raise
        return self._opened

    def _commit(self, name: str, table: DeltaTable, action: Callable[[], object], *, by_engine: bool = False) -> None:
        """Make the next version of the table. One durable step. Raises `Overtaken` where a version came meanwhile that is not this run's.

        A commit of delta-rs fails where its version is taken. One of an engine may land behind another run's, or not at all where it has no rows.
        """
        before = table.version()
        try:
            durable.step(f"{name}:{self.label}", action)
        except engine_failures(CommitFailedError) as problem:
            if self._writer and DeltaTable(self.uri).version() > before:
                raise Overtaken(self.uri) from problem
            raise
        table.update_incremental()
        landed = table.version() - before
        if self._writer and (landed > 1 or (landed == 1 and by_engine and self._foreign(table))):
            raise Overtaken(self.uri)

    def _foreign(self, table: DeltaTable) -> bool:
        """Whether the newest commit says that another run made it."""
        signed = str(table.history(1)[0].get("userMetadata") or "")
        return SIGNATURE in signed and not signed.endswith(f"{SIGNATURE}{self._writer}")

    def _signed(self, epoch: int) -> str:
        """What a commit says of itself: the epoch, and the run that made it."""
        return f"epoch {epoch}{SIGNATURE}{self._writer}" if self._writer else f"epoch {epoch}"

    def _once(self, text: str = "") -> CommitProperties:
        """A commit that fails where the next version of the table is taken, as only this run writes it."""
        return CommitProperties(custom_metadata={"userMetadata": text} if text else None, max_commit_retries=0 if self._writer else None)

    def fence(self) -> None:
        """Make a version after which no commit lands that was begun before it. One durable step."""
        table = self._open()
        if table is not None:
            with storing(self.uri):
                self._commit("fence", table, lambda: table.alter.set_table_description(f"taken over by run {self._writer}", commit_properties=self._once()))

    def require_untouched(self) -> None:
        """Raise `Overtaken` where the table has a version that this object does not know."""
        table = self._opened
        if table is not None and self._writer:
            with storing(self.uri):
                known = table.version()
                table.update_incremental()
            if table.version() != known:
                raise Overtaken(self.uri)

    def _write(self, data: DataFrame | pa.Table, epoch: int, table: DeltaTable, placements: Sequence[Placement]) -> None:
        if isinstance(data, pa.Table):
            rows = Storing.of(table.schema().fields, placements).table(_stamped(data, epoch))
            write_deltalake(table, rows, mode="append", commit_properties=self._once(self._signed(epoch)))
        elif (made := making(data)) is not None:
            from storage.delta.task_writer import write

            write(table, made, Storing.of(table.schema().fields, placements), epoch, self._once(self._signed(epoch)))
        else:
            self._write_by_engine(data, epoch, table, placements)

    def _write_by_engine(self, frame: DataFrame, epoch: int, table: DeltaTable, placements: Sequence[Placement]) -> None:
        columns = stored_columns(table.schema().fields, placements, {EPOCH: F.lit(epoch).cast("bigint")})
        frame.select(*columns).write.format("delta").mode("append").option("userMetadata", self._signed(epoch)).save(engine_uri(self.uri))

    # -- reading

    def read(self, engine: Engine, *, epochs: tuple[int, int] | None = None, at: int | None = None) -> DataFrame:
        """The op rows as a DataFrame: of the epochs from the first to the last named, or up to `at`."""
        from storage.engines.arrow import spark_schema

        table = self._required()
        placements = self._placements(table)
        stored = [name for where in self._placements(table) for name in where.read]
        frame = engine.session.read.format("delta").load(engine_uri(self.uri)) if self._pinned is None else frame_at(engine, self.uri, table, stored)
        if epochs is not None:
            frame = frame.where(F.col(EPOCH).between(*epochs))
        if at is not None:
            frame = frame.where(F.col(EPOCH) <= at)
        return told(frame.select(*map(logical_column, placements)), spark_schema(pa.schema([where.column.remove_metadata() for where in placements])))

    def read_arrow(self, *, epochs: tuple[int, int] | None = None, at: int | None = None) -> pa.Table:
        """The same rows on the driver, without an engine: for small tables and for commands that only look."""
        return self._read_arrow(Within(EPOCH, *(epochs or (None, None))), Within(EPOCH, last=at))

    def rejects_arrow(self, at: int | None = None) -> pa.Table:
        """The op rows of rejects up to epoch `at` on the driver: of files without any nothing is read, of others the pages that have some.

        Where nobody else writes the table, those of the epochs that were read once are not read again.
        """
        known = self._rejects
        if known is None or (at is not None and at < known.epoch):
            rows = self._read_arrow(Within(EPOCH, last=at), Given(ERROR))
            if at is not None and self._fixed:
                self._rejects = _Rejects(at, self._required().version(), rows)
            return rows
        return known.rows if at == known.epoch else pa.concat_tables([known.rows, self._read_arrow(Within(EPOCH, known.epoch + 1, at), Given(ERROR))])

    def _changing(self, epoch: int) -> None:
        """Forget what was read of epochs from this one on: they are about to change."""
        if self._rejects is not None and self._rejects.epoch >= epoch:
            self._rejects = None

    def ranges_arrow(self, ranges: Sequence[tuple[bytes, bytes]], at: int | None = None) -> pa.Table:
        """The op rows up to epoch `at` on the driver whose keys lie within one of some ranges, the second key of each left out."""
        return self._read_arrow(Within(EPOCH, last=at), Ranges(KEY, ranges))

    def _read_arrow(self, *conditions: Condition) -> pa.Table:
        with storing(self.uri):
            placements = self._placements(self._required())
            wanted = [name for where in placements for name in where.read]
            return logical_table(scanned(self._required(), wanted, *conditions), placements)

    def taken_back(self, at: int | None = None) -> pa.Table:
        """The keys that were taken back, up to an epoch, and when (`_key`, `_epoch`), on the driver: for tables with few retractions."""
        with storing(self.uri):
            return scanned(self._required(), [KEY, EPOCH], Within(OP, min(NEGATIVE), max(NEGATIVE)), Within(EPOCH, last=at))

    # -- soundness

    def mark(self) -> str:
        """The mark of the table's present version (`storage.delta.marks`)."""
        with storing(self.uri):
            return mark_of(self._required())

    def data_files(self) -> dict[str, int]:
        """The size of each data file, by its path inside the table."""
        with storing(self.uri):
            return _sizes(self._required())

    def check(self, version: int, mark: str) -> None:
        """Raise `Damaged` unless the version that the ledger names is there and whole: its log gives the mark, and its files have their sizes.

        Reads the log alone. On an object store the sizes of files are not looked up.
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

    def discard(self) -> None:
        """Remove the table with all its files. One durable step; only for a local table."""
        durable.step(f"discard:{self.label}", lambda: rmtree(self.uri.removeprefix("file://"), ignore_errors=True))
        self._opened = self._rejects = None

    # -- maintenance

    def files(self, below: int | None = None) -> int:
        """How many data files the table has, of those with fewer bytes than `below`."""
        table = self._open()
        return 0 if table is None else sum(below is None or size < below for (size,) in add_actions(table, "size_bytes"))

    def optimize(self, whole: int = WHOLE_FILE) -> None:
        """Put files of fewer bytes than `whole` together in a new version; no row changes. One durable step."""
        table = self._open()
        if table is not None:
            with storing(self.uri):
                self._commit("optimize", table, lambda: table.optimize.compact(target_size=whole, commit_properties=self._once()))

    def replace_before(self, rows: DataFrame | pa.Table, epoch: int) -> None:
        """Let rows (with `_epoch`, all earlier than `epoch`) take the place of all that are earlier, in a new version. One durable step."""
        with storing(self.uri):
            table = self._required()
            placements = self._placements(table)
            earlier = f"{EPOCH} < {int(epoch)}"
            self._changing(0)
            if isinstance(rows, pa.Table):
                stored = Storing.of(table.schema().fields, placements).table(rows)
                self._commit("fold", table, lambda: write_deltalake(table, stored, mode="overwrite", predicate=earlier, commit_properties=self._once()))
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
                table.update_incremental()

    # -- repair

    def restore(self, version: int | None) -> bool:
        """Bring the table back to a version, None: to the empty table. True where something had to be taken back."""
        table = self._open()
        if table is None:
            return False
        with storing(self.uri):
            table.update_incremental()  # a write that failed may have landed
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
        """Take all rows out of the table in a new version (`--full-refresh`); `restore` to an older one brings them back."""
        table = self._open()
        if table is not None and _row_count(table):
            self._changing(0)
            with storing(self.uri):
                self._commit("clear", table, lambda: table.delete(commit_properties=self._once()))

    # -- the log

    def _open(self) -> DeltaTable | None:
        with storing(self.uri):
            if self._opened is not None:
                if not self._fixed:
                    self._opened.update_incremental()
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

    def _files(self) -> list[tuple[int, ...]]:
        """Of each file: rows, first and last epoch, lowest and highest op."""
        table = self._open()
        if table is None:
            return []
        return add_actions(table, "num_records", f"min.{EPOCH}", f"max.{EPOCH}", f"min.{OP}", f"max.{OP}")


def _stamped(rows: pa.Table, epoch: int) -> pa.Table:
    """The rows with `_epoch`."""
    others = {name: rows.column(name) for name in rows.column_names if name != EPOCH}
    return pa.table({EPOCH: pa.repeat(pa.scalar(epoch, pa.int64()), rows.num_rows), **others})


def _sizes(table: DeltaTable) -> dict[str, int]:
    return {unquote(path): size for path, size in add_actions(table, "path", "size_bytes")}


def _wrong_file(uri: str, sizes: Mapping[str, int]) -> str:
    """What is wrong with the first data file that is not there or has another size; empty where none is."""
    folder = uri.removeprefix("file://")
    for name, size in sizes.items():
        try:
            found = Path(folder, name).stat().st_size
        except OSError:
            return f"{name} is missing"
        if found != size:
            return f"{name} has {found:,} bytes, not {size:,}"
    return ""


def _row_count(table: DeltaTable) -> int:
    return sum(rows for (rows,) in add_actions(table, "num_records"))


def _with_system(columns: Sequence[pa.Field]) -> list[pa.Field]:
    """`_epoch`, `_op` and `_error` first, where statistics are kept, then the rest."""
    named: Mapping[str, pa.Field] = {column.name: column for column in columns}
    first = [pa.field(EPOCH, pa.int64()), *(named[name] for name in (OP, ERROR) if name in named)]
    return [*first, *(column for name, column in named.items() if name not in (EPOCH, OP, ERROR))]
