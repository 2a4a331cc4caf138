"""Writing op rows in the tasks that make them: each task writes Parquet files, and one commit adds the files to the table.

The engine's own writer would cost as much as making and writing the rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from changelog.columns import EPOCH, ERROR, KEY, OP
from changelog.constant_columns import constant
from changelog.frames import mapped
from changelog.lazy_imports import pa, pc
from changelog.rows import TaskRows
from storage.delta.columns import Storing
from storage.delta.data_files import local_folder

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable
    from deltalake.transaction import AddAction, RemoveAction


HELD_BYTES: Final = 64 << 20
"""Bytes of rows in memory that become one file."""
_ROW_GROUP = 1 << 20
_PAGE_ROWS = 20_000
"""Rows per page, as in files of delta-rs. Readers skip pages."""
_WITH_BOUNDS: Final = (EPOCH, OP, ERROR, KEY, "_file", "_row")
"""Columns by whose bounds readers skip pages. Bounds of the others would take a sixth of the time of writing."""
_SLICES, _SLICE = 16, 256
"""Number and rows of the slices of a sample."""
_SHARE_OF_TEXTS, _SHARE_OF_VALUES = 1 / 2, 1 / 4
"""Distinct values in a sample, at most, of a column with a dictionary."""
_SHORT: Final = 64
"""Bytes of a value in columns that are not compressed, on average."""
_NEAR: Final = 1 << 40
"""Between the least and the greatest value of a sample, at most, where the differences of values are stored."""
_NEVER_LEFT_OUT: Final = frozenset(_WITH_BOUNDS) - {ERROR}
"""Columns that are stored even where they are null throughout."""
_FILE_ROW: Final = "path string, size bigint, modified bigint, stats string"


def write_made_rows(table: DeltaTable, made: TaskRows, storing: Storing, epoch: int, properties: CommitProperties) -> None:
    """Let tasks write the rows that they make under an epoch, then commit the files. Readers see them after the commit.

    Args:
        table: The table.
        made: How tasks make the rows.
        storing: How the table stores rows.
        epoch: The epoch of the rows.
        properties: Properties of the commit.
    """
    from deltalake.transaction import AddAction

    files = mapped(made.seeds, _Writing(table.table_uri, local_folder(table), storing, epoch, made.work), _FILE_ROW).collect()
    actions: list[AddAction | RemoveAction] = [AddAction(row["path"], row["size"], {}, row["modified"], data_change=True, stats=row["stats"]) for row in files]
    if actions:
        table.create_write_transaction(actions, "append", table.schema(), commit_properties=properties)


@dataclass(frozen=True)
class _Writing:
    """The work of a task: it makes rows, writes them, and returns one row per file. Picklable.

    Attributes:
        uri: The table's place.
        folder: Its folder; None where it is not local.
        storing: How the table stores rows.
        epoch: The epoch of the rows.
        work: Makes the rows.
    """

    uri: str
    folder: Path | None
    storing: Storing
    epoch: int
    work: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for held in _gathered(self.work(batches)):
            epochs = pa.chunked_array([constant(self.epoch, pa.int64(), batch.num_rows) for batch in held])
            yield self._file(self.storing.table(pa.Table.from_batches(held).append_column(EPOCH, epochs)))

    def _file(self, rows: pa.Table) -> pa.RecordBatch:
        import pyarrow.parquet as pq
        from deltalake._internal import DeltaFileSystemHandler

        path = f"part-{uuid4()}.snappy.parquet"
        encodings = _encodings(rows)
        stored = _stored(rows, encodings)
        bounds = [name for name in _WITH_BOUNDS if name in stored.column_names]
        settings: dict[str, Any] = {"write_statistics": bounds, "write_page_index": True, **encodings.settings(stored.column_names)}
        if self.folder is not None:
            pq.write_table(stored, self.folder / path, _ROW_GROUP, max_rows_per_page=_PAGE_ROWS, **settings)
            size = (self.folder / path).stat().st_size
        else:
            sink = pa.BufferOutputStream()
            pq.write_table(stored, sink, _ROW_GROUP, max_rows_per_page=_PAGE_ROWS, **settings)
            content = sink.getvalue().to_pybytes()
            stream = DeltaFileSystemHandler(self.uri).open_output_stream(path)
            stream.write(content)
            stream.close()  # type: ignore[attr-defined]  # the stub lacks it
            size = len(content)
        found = {"path": [path], "size": [size], "modified": [time.time_ns() // 1_000_000], "stats": [self._stats(rows)]}
        return pa.RecordBatch.from_pydict(found)

    def _stats(self, rows: pa.Table) -> str:
        """Return the statistics of a file for the log, in the JSON of Delta's protocol."""
        import orjson

        counted = [name for name in (EPOCH, OP, ERROR) if name in rows.column_names]
        bounds = {name: pc.min_max(rows.column(name)).as_py() for name in counted if name != ERROR}  # errors may be long
        return orjson.dumps({
            "numRecords": rows.num_rows,
            "minValues": {name: pair["min"] for name, pair in bounds.items() if pair["min"] is not None},
            "maxValues": {name: pair["max"] for name, pair in bounds.items() if pair["max"] is not None},
            "nullCount": {name: rows.column(name).null_count for name in counted},
        }).decode()  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Encodings:
    """How columns are stored.

    Attributes:
        dictionaries: Columns with a dictionary.
        differences: Columns of ints that are stored as differences.
        compressed: Columns that are compressed.
        constants: Columns of texts that seem to have one value.
        nested: Whether columns have members, whose names are not known here.
    """

    dictionaries: frozenset[str]
    differences: frozenset[str]
    compressed: frozenset[str]
    constants: frozenset[str]
    nested: bool

    def settings(self, names: Sequence[str]) -> dict[str, Any]:
        """Return what `write_table` takes for columns."""
        each = {name: "snappy" if name in self.compressed else "none" for name in names}
        return {
            "use_dictionary": [name for name in names if name in self.dictionaries],
            "column_encoding": {name: "DELTA_BINARY_PACKED" for name in names if name in self.differences},
            "compression": "snappy" if self.nested else each,
        }


def _encodings(rows: pa.Table) -> _Encodings:
    """Return how the columns of rows are stored. A sample decides.

    Columns with few values get a dictionary. Its indices are small already, so that compressing them only takes time. To compress numbers takes
    longer than to write them, and each reader has to undo it. Ints that are near each other are stored as differences instead.
    """
    starts = range(0, rows.num_rows, max(rows.num_rows // _SLICES, _SLICE))
    sample = pa.concat_tables([rows.slice(start, _SLICE) for start in starts])
    found: dict[str, set[str]] = {name: set() for name in ("dictionaries", "differences", "compressed", "constants")}
    for field in rows.schema:
        for way in _ways_to_store(sample.column(field.name), field.type):
            found[way].add(field.name)
    nested = any(pa.types.is_nested(kind) for kind in rows.schema.types)
    return _Encodings(nested=nested, **{way: frozenset(names) for way, names in found.items()})


def _ways_to_store(values: pa.ChunkedArray, kind: pa.DataType) -> Iterator[str]:
    """Yield the fields of `_Encodings` that name a column with such values."""
    plain = not (pa.types.is_binary(kind) or pa.types.is_nested(kind))
    distinct = pc.count_distinct(values, mode="all").as_py() if plain else len(values)
    if plain and distinct <= len(values) * (_SHARE_OF_TEXTS if pa.types.is_string(kind) else _SHARE_OF_VALUES):
        yield "dictionaries"
        if distinct > len(values) * _SHARE_OF_VALUES or values.nbytes > _SHORT * len(values):
            yield "compressed"
        if distinct == 1 and pa.types.is_string(kind):
            yield "constants"
    elif pa.types.is_int64(kind) or pa.types.is_timestamp(kind):
        if _are_near(values):
            yield "differences"
    elif not pa.types.is_floating(kind):
        yield "compressed"


def _are_near(values: pa.ChunkedArray) -> bool:
    """Return whether the ints of a sample, or its times, lie near each other."""
    bounds = pc.min_max(values.cast(pa.int64())).as_py()
    return bounds["min"] is not None and bounds["max"] - bounds["min"] <= _NEAR


def _stored(rows: pa.Table, encodings: _Encodings) -> pa.Table:
    """Return rows as a file holds them, quicker to write and to read. Columns that are null throughout are left out: readers take a missing column for nulls.

    Columns without nulls are required ones, and a text that all rows have is in the file once.
    """
    columns = {}
    for field, column in zip(rows.schema, rows.columns, strict=True):
        if column.null_count < rows.num_rows or field.name in _NEVER_LEFT_OUT:
            columns[field.name] = _once(column) if field.name in encodings.constants else column
    nullable = {name: column.null_count > 0 or pa.types.is_nested(column.type) for name, column in columns.items()}
    return pa.table(columns, schema=pa.schema([pa.field(name, column.type, nullable[name]) for name, column in columns.items()]))


def _once(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Return a column of texts with a dictionary of one, where all rows have the same text and none is null."""
    if column.null_count or not pc.all(pc.equal(_unshared(column), column[0])).as_py():
        return column
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), len(column)), pa.array([column[0].as_py()], column.type))


def _unshared(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column without the chunks that share the memory of a longer one."""
    places = [(chunk.offset, *(None if buffer is None else buffer.address for buffer in chunk.buffers())) for chunk in column.chunks]  # an empty buffer is false
    longest = dict(sorted(zip(places, column.chunks, strict=True), key=lambda one: len(one[1])))
    return pa.chunked_array(list(longest.values()), column.type)


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Yield groups of batches of about `HELD_BYTES`. Leaves out batches without rows."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            size += batch.nbytes
        if size >= HELD_BYTES:
            yield held
            held, size = [], 0
    if held:
        yield held
