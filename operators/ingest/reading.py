"""Reading files into op rows: small ones on the driver, large ones in ranges on the executors (DESIGN section 8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from changelog.labels import row_label
from operators.ingest.files import FileRecord
from operators.ingest.shape import RowShape, shaped_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from storage.engines import Engine
    from storage.formats import Reader
    from storage.formats.chunks import Task

SMALL_BYTES = 2 << 20
"""Files that have no more bytes together are read on the driver."""


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reads the files of one source. `number` is the source's first key byte; `folder` is where relative paths start."""

    reader: Reader
    shape: RowShape
    number: int
    folder: Path

    def prefix(self, record: FileRecord) -> bytes:
        """The first bytes of the keys of a file's records."""
        return bytes([self.number]) + row_label(record.label)

    def key_type(self, name: str) -> str:
        """The name of a declared column's type as keys encode it."""
        kind = next(column.type for column in self.reader.plan.declared if column.name == name).removeprefix("nullable(").removesuffix(")")
        return {"datetime": "date_time"}.get(kind, kind)

    def is_small(self, records: Sequence[FileRecord]) -> bool:
        """Whether the files are read on the driver."""
        return sum(record.size for record in records) <= SMALL_BYTES

    def undeclared(self, record: FileRecord) -> tuple[tuple[str, str], ...]:
        """The columns of a file that the schema does not name. Raises InputError."""
        from storage.formats.chunks import undeclared_columns

        columns = undeclared_columns(self.reader, self.folder / record.path, record.path)
        return tuple((column.name, column.type) for column in columns)

    def schema(self) -> pa.Schema:
        """The Arrow schema of the op rows."""
        return shaped_schema(self.shape, self.reader.schema())

    def small(self, records: Sequence[FileRecord]) -> pa.Table:
        """The op rows of files, read here, with `_row` as the last column."""
        import pyarrow as pa

        batches = [batch for record in records for batch in self._read(record)]
        return pa.Table.from_batches(batches, self.schema())

    def _read(self, record: FileRecord) -> Iterator[pa.RecordBatch]:
        from storage.formats.chunks import read_task

        reader = _reader_of(self.reader, record)
        for task in self._tasks(record):
            for batch in read_task(reader, task):
                yield _finish(batch, task.attached, self.shape, self.schema())

    def _tasks(self, record: FileRecord) -> list[Task]:
        from storage.formats.chunks import tasks_of

        attached = {"prefix": self.prefix(record), "file": record.path}
        return tasks_of(_reader_of(self.reader, record), self.folder / record.path, record.path, attached)

    def large(self, engine: Engine, records: Sequence[FileRecord]) -> DataFrame:
        """The op rows of files, read in ranges by the engine's tasks; files with the same undeclared columns together."""
        alike = groupby(sorted(records, key=lambda record: record.undeclared), key=lambda record: record.undeclared)
        return reduce(lambda left, right: left.unionByName(right), [self._spread(engine, list(group)) for _, group in alike])

    def _spread(self, engine: Engine, records: Sequence[FileRecord]) -> DataFrame:
        import pyarrow as pa

        from pyspark.sql.pandas.types import from_arrow_schema

        from storage.formats.chunks import chunk_reader, task_table

        attached = pa.schema([("prefix", pa.binary()), ("file", pa.string())])
        tasks = [task for record in records for task in self._tasks(record)]
        shape, schema = self.shape, self.schema()

        def finish(batch: pa.RecordBatch, values: Mapping[str, Any]) -> pa.RecordBatch:
            return _finish(batch, values, shape, schema)

        read = chunk_reader(_reader_of(self.reader, records[0]), attached, finish)
        spread = engine.from_arrow(task_table(tasks, attached)).repartition(len(tasks))
        return spread.mapInArrow(read, from_arrow_schema(schema))


def _reader_of(reader: Reader, record: FileRecord) -> Reader:
    from storage.formats import Column

    return reader.with_undeclared([Column(name, type_) for name, type_ in record.undeclared])


def _finish(batch: pa.RecordBatch, values: Mapping[str, Any], shape: RowShape, schema: pa.Schema) -> pa.RecordBatch:
    return shape.batch(batch, bytes(values["prefix"]), values["file"]).cast(schema)
