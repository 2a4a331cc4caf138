"""Record batches of an Arrow file to records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from changelog.lazy_imports import pa
from storage.files.errors import Buffer
from storage.formats.base import Range, Reader
from storage.formats.typed.columnar import with_rows
from storage.formats.typed.groups import broken, group_ranges, groups_of


def opened(data: Buffer, name: str, **options: Any) -> Any:
    """The file's schema and batches. Raises InputError."""
    with broken(name, "cannot be read as an Arrow file"):
        return pa.ipc.open_file(pa.BufferReader(pa.py_buffer(data)), options=pa.ipc.IpcReadOptions(**options))


def schema_of(data: Buffer, name: str) -> pa.Schema:
    """The file's columns. Raises InputError."""
    return opened(data, name).schema


def ranges_of(data: Buffer, name: str, target: int) -> list[Range]:
    """Ranges of consecutive record batches of about `target` bytes. Raises InputError."""
    if len(data) <= target:
        return [Range(0, len(data))]
    file = opened(data, name, included_fields=[0])
    count = file.num_record_batches
    rows = [batch.num_rows for batch in _batches(file, range(count), name)]
    return group_ranges([(one, len(data) // max(count, 1)) for one in rows], len(data), target)


def read_records(reader: Reader, data: Buffer, name: str, part: Range | None) -> Iterator[pa.RecordBatch]:
    """The records of a whole file or of some of its batches. Raises InputError."""
    file = opened(data, name)
    batches = _batches(file, groups_of(part, file.num_record_batches), name)
    with broken(name, "cannot be read as an Arrow file"):
        yield from with_rows(reader.plan, batches, part.first_row if part else 1, name, len(data))


def _batches(file: Any, wanted: range, name: str) -> Iterator[pa.RecordBatch]:
    for at in wanted:
        with broken(name, f"batch {at + 1} cannot be read"):
            batch = file.get_batch(at)
            batch.validate(full=True)
        yield batch
