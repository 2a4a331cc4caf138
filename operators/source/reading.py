"""Files read into op rows: small ones on the driver, large ones in ranges by the engine's tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import orjson

from changelog.frames import chosen, united
from changelog.keys.positions import row_label
from changelog.lazy_imports import np, pa, pc
from changelog.rows import Rows, TaskRows
from operators.source.file_changes import FileRecord, Part
from operators.source.row_layout import RowShape, shaped_schema
from operators.source.scope_paths import ScopePattern
from storage.engines import Engine
from storage.files.local import buffer_of, by_places
from storage.formats import Column, Reader
from storage.formats.base import ROW, Range
from storage.formats.content_chunks import ContentChunks, KnownChunks, chunks_of
from storage.formats.tasks import Task, chunk_reader, read_task, tail_tasks, task_table, tasks_of, undeclared_columns
from storage.stores.places import ObjectPath, Place, Places
from storage.values.coerce import coerce
from storage.values.json_text import canonical
from storage.values.types import is_dynamic

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    RowNumbers: TypeAlias = NDArray[np.int64]

SMALL_BYTES = 2 << 20
"""Files with at most this many bytes together are read on the driver."""


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reads the files of one source.

    Attributes:
        reader: Reader of the format.
        shape: Shape of the op rows.
        number: The source's first key byte.
        places: Where relative paths start, and which stores there are.
        limit: Number of records that a preview reads.
        kept: The only file of a source that reads a service.
        local: Returns the local copy to read in place of a file.
    """

    reader: Reader
    shape: RowShape
    number: int
    places: Places
    limit: int | None = None
    kept: Place | None = None
    """The only file, whatever it is called, of a source that reads a service."""
    local: Callable[[Place], Place] | None = None
    """Where a file is to be read instead: a copy of it."""
    scope: ScopePattern | None = None
    """The pattern of paths that tells the scopes of files."""

    def path(self, record: FileRecord) -> Place:
        """Where a file is to be read; an object in the version that was found."""
        if self.kept is not None:
            return self.kept
        path = self.places / record.path
        if isinstance(path, ObjectPath):
            path = path.at(record.tag or "", record.size)
        return path if self.local is None else self.local(path)

    def prefix(self, record: FileRecord) -> bytes:
        """The first bytes of the keys of a file's records."""
        return bytes([self.number]) + row_label(record.label)

    def is_small(self, parts: Sequence[Part]) -> bool:
        """Whether the files are read on the driver."""
        return self.limit is not None or sum(part.size for part in parts) <= SMALL_BYTES

    def undeclared(self, record: FileRecord) -> FileRecord:
        """The record with the columns of its file that the schema does not name, and the columns that its path fills. Raises InputError."""
        columns = undeclared_columns(self.reader, self.path(record), record.path)
        described = replace(record, undeclared=tuple((column.name, column.type) for column in columns))
        return described if self.scope is None else replace(described, filled=self._lacking(record, self.scope))

    def cell_order(self, record: FileRecord) -> tuple[str, ...]:
        """The names of the columns of a file as the cells of each record follow each other. Only for delimited formats. Raises InputError."""
        return self.reader.cell_order(buffer_of(self.path(record), record.path), record.path)

    def remarks(self, record: FileRecord) -> Sequence[str]:
        """Warnings of the format for a file. Raises InputError."""
        path = self.path(record)
        return tuple(self.reader.remarks(buffer_of(path, record.path), record.path))

    def left_out(self, record: FileRecord) -> Sequence[str]:
        """Counts of what a file has that makes no record, and is no fault. Raises InputError."""
        return tuple(self.reader.left_out(buffer_of(self.path(record), record.path), record.path))

    def _lacking(self, record: FileRecord, scope: ScopePattern) -> tuple[str, ...]:
        """The columns that a pattern of paths names and the file lacks. Raises InputError for a path that does not fit."""
        scope.checked_values(record.path)
        if not scope.types:
            return ()
        plan = self.reader.plan
        others = replace(plan, declared=tuple(column for column in plan.declared if column.label not in scope.types), on_unmapped="auto_widen")
        found = {column.name for column in undeclared_columns(replace(self.reader, plan=others), self.path(record), record.path)}
        return tuple(column.label for column in plan.declared if column.label in scope.types and column.name not in found)

    def chunks(self, record: FileRecord, known: KnownChunks | None = None, *, by_record: bool = False) -> ContentChunks | None:
        """Return the chunks of a large file with known undeclared columns; None for other files, and where it cannot be chunked. Raises InputError.

        Args:
            record: The file.
            known: The chunks of its last version.
            by_record: Whether each record has a hash too.
        """
        if self.limit is not None or record.size <= SMALL_BYTES:
            return None
        return chunks_of(_reader_of(self.reader, record), self.path(record), record.path, known, by_record=by_record)

    def ranges(self, record: FileRecord, chunks: ContentChunks, rows: RowNumbers, target: int) -> tuple[Range, ...]:
        """Return ranges of about `target` bytes that read some records of a chunked file, by their ascending numbers."""
        reader, data = _reader_of(self.reader, record), buffer_of(self.path(record), record.path)
        bounds = {**(chunks.bounds or {})}
        for group in by_places(data, [chunk for chunk in chunks.with_records(rows) if chunk not in bounds]):
            for chunk in group:
                start, end = map(int, chunks.starts[chunk : chunk + 2])
                starts = reader.starts_within(data, start, end)
                assert starts is not None  # the chunk was found by such places
                bounds[chunk] = np.append(starts, end)
        return chunks.reading(rows, bounds, target)

    def schema(self) -> pa.Schema:
        """The Arrow schema of the op rows."""
        return shaped_schema(self.shape, self.reader.schema())

    def on_driver(self, parts: Sequence[Part]) -> tuple[pa.Table, list[FileRecord]]:
        """Return the op rows of files, read on the driver, and the files' entries with their row counts."""
        batches: list[pa.RecordBatch] = []
        counted: list[FileRecord] = []
        left = self.limit
        for part in parts:
            rows = part.rows
            for batch in self._read(part):
                kept = batch.slice(0, left)
                batches.append(kept)
                rows += kept.num_rows
                left = None if left is None else left - kept.num_rows
            counted.append(replace(part.record, rows=rows) if part.ranges is None else part.record)
        return pa.Table.from_batches(batches, self.schema()), counted

    def _read(self, part: Part) -> Iterator[pa.RecordBatch]:
        reader = _reader_of(self.reader, part.record)
        for task in self.tasks(part):
            for batch in read_task(reader, task):
                yield _finish(batch, task.attached, self.shape, self.schema(), _dynamic(part.record))

    def tasks(self, part: Part) -> list[Task]:
        """Return the ranges of a part. The first ones may contain records that were read already; these are dropped."""
        record = part.record
        reader, path = _reader_of(self.reader, record), self.path(record)
        attached = {"prefix": self.prefix(record), "file": record.stored, "order": part.order, "beyond": part.rows, "filled": self._filled(record)}
        if part.ranges is not None:
            return [Task(path, record.path, one, attached) for one in part.ranges]
        tail = tail_tasks(reader, path, record.path, part.start, part.rows + 1, attached=attached) if part.start else None
        return tasks_of(reader, path, record.path, attached) if tail is None else tail

    def _filled(self, record: FileRecord) -> str:
        """The columns that the path of a file fills, with their texts and types, as JSON; empty for none."""
        if self.scope is None or not record.filled:
            return ""
        texts = self.scope.checked_values(record.path)
        return canonical([[name, texts[name], self.scope.types[name]] for name in record.filled])

    def continues(self, part: Part) -> bool:
        """Whether the new end of a file can be read without what precedes it."""
        return bool(part.start) and tail_tasks(self.reader, self.path(part.record), part.record.path, part.start, part.rows + 1) is not None

    def counted(self, part: Part) -> FileRecord:
        """Return the file's entry with its number of rows, by reading the last range."""
        last = self.tasks(part)[-1]
        rows = last.part.first_row - 1 + sum(batch.num_rows for batch in read_task(self.reader, last))
        return replace(part.record, rows=max(rows, part.rows))

    def large(self, engine: Engine, parts: Sequence[Part], places: Mapping[int, RowNumbers] | None = None) -> Rows:
        """Return the op rows of files, read in ranges by the engine's tasks.

        `places`: row numbers by file position. Only ranges with one of these rows are read; their other rows come too.
        """
        alike = [list(group) for _, group in groupby(sorted(parts, key=_columns), key=_columns)]
        found = [self.spread(engine, group[0].record, [task for part in group for task in self._among(part, places)]) for group in alike]
        return found[0] if len(found) == 1 else Rows(engine, frame=_beside([one.as_frame() for one in found]))

    def _among(self, part: Part, places: Mapping[int, RowNumbers] | None) -> list[Task]:
        if places is None:
            return self.tasks(part)
        return holding(self.tasks(part), places[part.order]) if part.order in places else []

    def spread(self, engine: Engine, record: FileRecord, tasks: Sequence[Task]) -> Rows:
        """The op rows of ranges of files that have the undeclared columns of `record`."""
        from pyspark.sql.pandas.types import from_arrow_schema

        attached = pa.schema([("prefix", pa.binary()), ("file", pa.string()), ("order", pa.int64()), ("beyond", pa.int64()), ("filled", pa.string())])
        shape, schema, dynamic = self.shape, self.schema(), _dynamic(record)

        def finish(batch: pa.RecordBatch, values: Mapping[str, Any]) -> pa.RecordBatch:
            return _finish(batch, values, shape, schema, dynamic)

        read = chunk_reader(_reader_of(self.reader, record), attached, finish, places=self.places)
        made_by = TaskRows(engine.spread(task_table(tasks, attached, places=self.places)), read)
        return Rows(engine, frame=made_by.frame(from_arrow_schema(schema)), made_by=made_by)

    def frame(self, engine: Engine, parts: Sequence[Part]) -> DataFrame:
        """The op rows of files, read where their size says."""
        return engine.from_arrow(self.on_driver(parts)[0]) if self.is_small(parts) else self.large(engine, parts).as_frame()


def _beside(frames: Sequence[DataFrame]) -> DataFrame:
    """Unite frames that tasks read. On Sail each one needs a selection in an order of its own, or its columns are not found."""
    names = frames[0].columns
    return chosen(united(*(chosen(frame, names[::-1]) for frame in frames)), names)


def holding(tasks: Sequence[Task], rows: RowNumbers) -> list[Task]:
    """Return the ranges that contain the records with these row numbers."""
    starts = np.array([task.part.first_row for task in tasks])
    return [tasks[at] for at in np.unique(np.searchsorted(starts, rows, side="right") - 1).tolist()]


def _columns(part: Part) -> tuple[tuple[str, str], ...]:
    return part.record.undeclared


def _reader_of(reader: Reader, record: FileRecord) -> Reader:
    return reader.with_undeclared([Column(name, type_) for name, type_ in record.undeclared])


def _dynamic(record: FileRecord) -> frozenset[str]:
    """The undeclared columns of a file that hold JSON text."""
    return frozenset(name for name, type_ in record.undeclared if is_dynamic(type_))


def _finish(batch: pa.RecordBatch, values: Mapping[str, Any], shape: RowShape, schema: pa.Schema, dynamic: frozenset[str]) -> pa.RecordBatch:
    if values["beyond"]:
        batch = batch.filter(pc.greater(batch.column(ROW), values["beyond"]))
    for name, text, kind in orjson.loads(values["filled"]) if values["filled"] else ():
        at = batch.schema.get_field_index(name)
        batch = batch.set_column(at, batch.schema.field(at), pa.repeat(coerce(pa.array([text], pa.string()), kind).values[0], batch.num_rows))
    return shape.batch(batch, bytes(values["prefix"]), values["file"], values["order"], dynamic).cast(schema)
