"""Record batches of an Arrow file to records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from storage.formats.base import Buffer, InputError, Range, Reader
from storage.formats.parquet.read import BROKEN, first_line, grouped, groups_of
from storage.formats.typed.columnar import with_rows


def opened(data: Buffer, name: str, **options: Any) -> Any:
    """The file's schema and batches. Raises InputError."""
    try:
        return pa.ipc.open_file(pa.BufferReader(pa.py_buffer(data)), options=pa.ipc.IpcReadOptions(**options))
    except BROKEN as wrong:
        raise InputError(name, f"cannot be read as an Arrow file: {first_line(wrong)}") from None


def schema_of(data: Buffer, name: str) -> pa.Schema:
    """The file's columns. Raises InputError."""
    return opened(data, name).schema


def ranges_of(data: Buffer, name: str, target: int) -> list[Range]:
    """Record batches that follow each other, about `target` bytes together. Their bytes are the whole file's; `head` names the first and the last."""
    if len(data) <= target:
        return [Range(0, len(data))]
    file = opened(data, name, included_fields=[0])
    count = file.num_record_batches
    rows = [batch.num_rows for batch in _batches(file, range(count), name)]
    return grouped([(one, len(data) // max(count, 1)) for one in rows], len(data), target)


def read_records(reader: Reader, data: Buffer, name: str, part: Range | None) -> Iterator[pa.RecordBatch]:
    """The records of a whole file or of some of its batches. Raises InputError."""
    file = opened(data, name)
    batches = _batches(file, groups_of(part, file.num_record_batches), name)
    try:
        yield from with_rows(reader.plan, batches, part.first_row if part else 1, name, len(data))
    except BROKEN as wrong:
        raise InputError(name, f"cannot be read as an Arrow file: {first_line(wrong)}") from None


def _batches(file: Any, wanted: range, name: str) -> Iterator[pa.RecordBatch]:
    for at in wanted:
        try:
            batch = file.get_batch(at)
            batch.validate(full=True)
        except BROKEN as wrong:
            raise InputError(name, f"batch {at + 1} cannot be read: {first_line(wrong)}") from None
        yield batch
