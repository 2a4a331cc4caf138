"""Writing op rows in the tasks that make them: each task writes Parquet files, and one commit adds the files to the table.

The engine's own writer would cost as much as making and writing the rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from changelog.columns import EPOCH, ERROR, KEY, OP
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

    files = made.seeds.mapInArrow(_Writing(table.table_uri, local_folder(table), storing, epoch, made.work), _FILE_ROW).collect()
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
            rows = pa.Table.from_batches(held)
            yield self._file(self.storing.table(rows.append_column(EPOCH, pa.repeat(pa.scalar(self.epoch, pa.int64()), rows.num_rows))))

    def _file(self, rows: pa.Table) -> pa.RecordBatch:
        import pyarrow.parquet as pq
        from deltalake._internal import DeltaFileSystemHandler

        path = f"part-{uuid4()}.snappy.parquet"
        dictionaries, compression = _encodings(rows)
        bounds = [name for name in _WITH_BOUNDS if name in rows.column_names]
        settings: dict[str, Any] = {"use_dictionary": dictionaries, "compression": compression, "write_statistics": bounds, "write_page_index": True}
        if self.folder is not None:
            pq.write_table(rows, self.folder / path, _ROW_GROUP, max_rows_per_page=_PAGE_ROWS, **settings)
            size = (self.folder / path).stat().st_size
        else:
            sink = pa.BufferOutputStream()
            pq.write_table(rows, sink, _ROW_GROUP, max_rows_per_page=_PAGE_ROWS, **settings)
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


def _encodings(rows: pa.Table) -> tuple[list[str], str | dict[str, str]]:
    """Return the columns to be written with a dictionary, and the compression of the columns.

    A sample decides. Columns with few values get a dictionary. Its indices are small already, so that compressing them only takes time.
    """
    starts = range(0, rows.num_rows, max(rows.num_rows // _SLICES, _SLICE))
    sample = pa.concat_tables([rows.slice(start, _SLICE) for start in starts])
    dictionaries, compression = [], {field.name: "snappy" for field in rows.schema}
    for field in rows.schema:
        if pa.types.is_binary(field.type) or pa.types.is_nested(field.type):
            continue
        values, text = sample.column(field.name), pa.types.is_string(field.type)
        distinct = pc.count_distinct(values, mode="all").as_py()
        if distinct <= sample.num_rows * (_SHARE_OF_TEXTS if text else _SHARE_OF_VALUES):
            dictionaries.append(field.name)
            if distinct <= sample.num_rows * _SHARE_OF_VALUES and values.nbytes <= _SHORT * len(values):
                compression[field.name] = "none"
    return dictionaries, "snappy" if any(pa.types.is_nested(kind) for kind in rows.schema.types) else compression


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
