"""What files of typed columns (Parquet, Arrow) have in common when they are written: their schema, and records held until a group of them is full."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from typing_extensions import override

from storage.formats.base import Column, Session
from storage.values.coerce import arrow_type, is_dynamic


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


class GroupedSession(Session):
    """One file in groups of `group_rows` records. Records are held until a group is full, so that the bytes do not depend on how they came."""

    group_rows: int

    def __init__(self, columns: Sequence[Column]) -> None:
        self.schema = typed_schema(columns)
        self.sink = Drained()
        self._held: list[pa.RecordBatch] = []
        self._count = 0

    @abstractmethod
    def write_group(self, group: pa.Table) -> None:
        """Write a group, which is one chunk a column."""

    @abstractmethod
    def close(self) -> None:
        """Write the end of the file."""

    @override
    def render(self, batch: pa.RecordBatch) -> bytes:
        self._held.append(typed_batch(batch, self.schema))
        self._count += batch.num_rows
        while self._count >= self.group_rows:
            self._write(self.group_rows)
        return self.sink.take()

    @override
    def footer(self) -> bytes:
        if self._count:
            self._write(self._count)
        self.close()
        return self.sink.take()

    def _write(self, rows: int) -> None:
        table = pa.Table.from_batches(self._held, self.schema)
        self._held = table.slice(rows).to_batches()
        self._count -= rows
        self.write_group(table.slice(0, rows).combine_chunks())
