"""Row groups to records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from storage.formats.base import Buffer, InputError, Range, Reader
from storage.formats.batches import BATCH_ROWS
from storage.formats.typed.columnar import longest_in, rows_of_length, with_rows

BROKEN = (pa.ArrowException, OSError, MemoryError, UnicodeDecodeError, ValueError, NotImplementedError)
"""What the library raises of a file that is none."""
_LARGE = 64 << 20
_PAGE = re.compile(rb"\x15[\x80-\xff]*[\x00-\x7f]\x15([\x80-\xff]*[\x00-\x7f])", re.DOTALL)


def opened(data: Buffer, name: str) -> Any:
    """The file's metadata and content. Raises InputError."""
    try:
        return pq.ParquetFile(pa.BufferReader(pa.py_buffer(data)))
    except BROKEN as wrong:
        raise InputError(name, f"cannot be read as Parquet: {first_line(wrong)}") from None


def schema_of(data: Buffer, name: str) -> pa.Schema:
    """The file's columns. Raises InputError."""
    return opened(data, name).schema_arrow


def ranges_of(data: Buffer, name: str, target: int) -> list[Range]:
    """Row groups that follow each other, about `target` bytes together. Their bytes are the whole file's; `head` names the first and the last."""
    file = opened(data, name).metadata
    sizes = [(file.row_group(at).num_rows, file.row_group(at).total_byte_size) for at in range(file.num_row_groups)]
    return grouped(sizes, len(data), target)


def grouped(sizes: list[tuple[int, int]], end: int, target: int) -> list[Range]:
    """Ranges of groups of so many records and bytes."""
    parts: list[Range] = []
    first, row, held, records = 0, 1, 0, 0
    for at, (rows, size) in enumerate(sizes):
        held, records = held + size, records + rows
        if held >= target or at == len(sizes) - 1:
            parts.append(Range(0, end, row, b"%d %d" % (first, at)))
            first, row, held, records = at + 1, row + records, 0, 0
    return parts or [Range(0, end)]


def groups_of(part: Range | None, count: int) -> range:
    """The groups of a range."""
    if part is None or not part.head:
        return range(count)
    first, last = map(int, part.head.split())
    return range(first, last + 1)


def read_records(reader: Reader, data: Buffer, name: str, part: Range | None) -> Iterator[pa.RecordBatch]:
    """The records of a whole file or of some of its row groups. Raises InputError."""
    file = opened(data, name)
    present = set(file.schema_arrow.names)
    wanted = [column for column in {top for one in reader.plan.columns for top in (one.name, one.name.partition(".")[0])} if column in present]
    groups = list(groups_of(part, file.metadata.num_row_groups))
    try:
        batches = _batches(file, data, groups, sorted(wanted)) if wanted else _bare(file, groups)
        yield from with_rows(reader.plan, batches, part.first_row if part else 1, name, len(data))
    except BROKEN as wrong:
        raise InputError(name, f"cannot be read as Parquet: {first_line(wrong)}") from None


def _batches(file: Any, data: Buffer, groups: Sequence[int], wanted: list[str]) -> Iterator[pa.RecordBatch]:
    """The row groups in batches of few rows where a dictionary has long values: each may come in every row."""
    for group in groups:
        chunks = [chunk for chunk in map(file.metadata.row_group(group).column, range(file.metadata.num_columns)) if chunk.path_in_schema.partition(".")[0] in wanted]
        longest = max((_longest(data, group, chunk) for chunk in chunks if _has_large_dictionary(data, chunk)), default=0)
        yield from file.iter_batches(rows_of_length(longest), row_groups=[group], columns=wanted)


def _has_large_dictionary(data: Buffer, chunk: Any) -> bool:
    """Whether values out of a column's dictionary may be much larger than the file."""
    if chunk.physical_type != "BYTE_ARRAY" or not chunk.has_dictionary_page:
        return False
    return bool(_unpacked_size(data[chunk.dictionary_page_offset :][:16]) * min(chunk.num_values, BATCH_ROWS) > _LARGE)


def _unpacked_size(header: bytes) -> int:
    """The bytes of a page from the beginning of its header: type, then size, as numbers of the compact protocol of Thrift; the most that there can be where it is none."""
    found = _PAGE.match(header)
    return sum((byte & 0x7F) << 7 * place for place, byte in enumerate(found[1])) >> 1 if found else 1 << 31


def _longest(data: Buffer, group: int, chunk: Any) -> int:
    """The bytes of the longest value of a column's dictionary, which comes with its first row; of a nested column all of the dictionary's bytes."""
    if "." in chunk.path_in_schema:
        return _unpacked_size(data[chunk.dictionary_page_offset :][:16])
    name = chunk.path_in_schema
    first = next(pq.ParquetFile(pa.BufferReader(pa.py_buffer(data)), read_dictionary=[name]).iter_batches(1, row_groups=[group], columns=[name]))
    values = first.column(0)
    return longest_in(values.dictionary if pa.types.is_dictionary(values.type) else values)


def _bare(file: Any, groups: list[int]) -> Iterator[pa.RecordBatch]:
    """Batches without columns, for a file that has none of those that are declared."""
    for group in groups:
        count = file.metadata.row_group(group).num_rows
        yield pa.RecordBatch.from_arrays([pa.nulls(count)], [""])


def first_line(wrong: Exception) -> str:
    """What an exception says, in short."""
    return (str(wrong).splitlines() or [type(wrong).__name__])[0]
