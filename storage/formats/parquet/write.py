"""Records to row groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from typing_extensions import override

from storage.coerce import arrow_type, is_dynamic
from storage.formats.contract import Column, Session, WritePlan

if TYPE_CHECKING:
    from storage.formats.parquet import ParquetWriteOptions

GROUP_ROWS = 1 << 17


def typed_schema(columns: Sequence[Column]) -> pa.Schema:
    """The columns of a file; dynamic ones say of themselves that they hold JSON."""
    return pa.schema([(column.name, pa.json_() if is_dynamic(column.type) else arrow_type(column.type)) for column in columns])


def typed_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch of the plan's columns in the file's types."""
    return pa.RecordBatch.from_arrays([_cast(values, field.type) for values, field in zip(batch.columns, schema, strict=True)], schema=schema)


def _cast(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    if isinstance(wanted, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(wanted, values.cast(wanted.storage_type))
    return values.cast(wanted)


class Drained:
    """A file of which the bytes that were written are taken away again."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self.closed = False

    def write(self, data: Any) -> int:
        """Keep bytes until they are taken."""
        part = bytes(data)
        self._parts.append(part)
        self._size += len(part)
        return len(part)

    def tell(self) -> int:
        """How many bytes were ever written."""
        return self._size

    def flush(self) -> None:
        """Nothing is kept elsewhere."""

    def close(self) -> None:
        """No more will be written."""
        self.closed = True

    def take(self) -> bytes:
        """The bytes since the last time."""
        parts, self._parts = self._parts, []
        return b"".join(parts)


class ParquetSession(Session):
    """One Parquet file. Records are held until a row group is full, so that the bytes do not depend on how they came."""

    def __init__(self, options: ParquetWriteOptions, plan: WritePlan) -> None:
        self._schema = typed_schema(plan.columns)
        self._sink = Drained()
        self._held: list[pa.RecordBatch] = []
        self._count = 0
        compression = None if options.compression == "none" else options.compression
        self._writer = pq.ParquetWriter(self._sink, self._schema, compression=compression, compression_level=options.level)

    @override
    def render(self, batch: pa.RecordBatch) -> bytes:
        self._held.append(typed_batch(batch, self._schema))
        self._count += batch.num_rows
        while self._count >= GROUP_ROWS:
            self._write(GROUP_ROWS)
        return self._sink.take()

    @override
    def footer(self) -> bytes:
        if self._count:
            self._write(self._count)
        self._writer.close()
        return self._sink.take()

    def _write(self, rows: int) -> None:
        table = pa.Table.from_batches(self._held, self._schema)
        group = table.slice(0, rows).combine_chunks()
        self._held = table.slice(rows).to_batches()
        self._count -= rows
        self._writer.write_table(group, row_group_size=GROUP_ROWS)
