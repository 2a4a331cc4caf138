"""Writers of typed columns (Parquet, Arrow): the schema of a file, and records that wait until a group of them is full."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from typing_extensions import override

from changelog.lazy_imports import pa
from storage.formats.base import Column, Session
from storage.values.decimals import decimal_type
from storage.values.text import plain_decimals
from storage.values.types import arrow_type, base_type, is_dynamic


def typed_schema(columns: Sequence[Column]) -> pa.Schema:
    """The schema of a file. Dynamic columns have the Arrow type for JSON, decimals their precision."""
    return pa.schema([(column.name, written_type(column.type)) for column in columns])


def written_type(declared: str) -> pa.DataType:
    """The Arrow type in which a column is written."""
    digits = decimal_type(base_type(declared))
    if digits is not None:
        return pa.decimal128(*digits)
    return pa.json_() if is_dynamic(declared) else arrow_type(declared)


def typed_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch of the plan's columns in the file's types."""
    return pa.RecordBatch.from_arrays([_cast(values, field.type) for values, field in zip(batch.columns, schema, strict=True)], schema=schema)


def _cast(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    if isinstance(wanted, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(wanted, plain_decimals(values.cast(wanted.storage_type)))
    return values.cast(wanted)


class Drained:
    """A file-like object from which written bytes are taken."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self.closed = False

    def write(self, data: Any) -> int:
        """Hold bytes until they are taken; returns their number."""
        part = bytes(data)
        self._parts.append(part)
        self._size += len(part)
        return len(part)

    def tell(self) -> int:
        """The number of bytes written so far, taken or not."""
        return self._size

    def flush(self) -> None:
        """Do nothing: there is no buffer behind this one."""

    def close(self) -> None:
        """Mark the file as closed."""
        self.closed = True

    def take(self) -> bytes:
        """The bytes that were written since the last call."""
        parts, self._parts = self._parts, []
        return b"".join(parts)


class GroupedSession(Session):
    """One file in groups of `group_rows` records. Records wait until a group is full, so the bytes do not depend on the sizes of the batches."""

    group_rows: int

    def __init__(self, columns: Sequence[Column]) -> None:
        self.schema = typed_schema(columns)
        self.sink = Drained()
        self._held: list[pa.RecordBatch] = []
        self._count = 0

    @abstractmethod
    def write_group(self, group: pa.Table) -> None:
        """Write a group that has one chunk a column."""

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
