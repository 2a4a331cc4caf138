"""Row groups of a Parquet file to records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from changelog.lazy_imports import pa, pq
from storage.files.errors import Buffer
from storage.formats.base import Range, Reader
from storage.formats.batches import BATCH_ROWS
from storage.formats.typed.columnar import longest_in, rows_of_length, with_rows
from storage.formats.typed.groups import broken, group_ranges, groups_of

_LARGE = 64 << 20
_PAGE = re.compile(rb"\x15[\x80-\xff]*[\x00-\x7f]\x15([\x80-\xff]*[\x00-\x7f])", re.DOTALL)


def opened(data: Buffer, name: str) -> Any:
    """The file's metadata and content. Raises InputError."""
    with broken(name, "cannot be read as Parquet"):
        return pq.ParquetFile(pa.BufferReader(pa.py_buffer(data)))


def schema_of(data: Buffer, name: str) -> pa.Schema:
    """The file's columns. Raises InputError."""
    return opened(data, name).schema_arrow


def ranges_of(data: Buffer, name: str, target: int) -> list[Range]:
    """Ranges of consecutive row groups of about `target` bytes. Raises InputError."""
    file = opened(data, name).metadata
    sizes = [(file.row_group(at).num_rows, file.row_group(at).total_byte_size) for at in range(file.num_row_groups)]
    return group_ranges(sizes, len(data), target)


def read_records(reader: Reader, data: Buffer, name: str, part: Range | None) -> Iterator[pa.RecordBatch]:
    """The records of a whole file or of some of its row groups. Raises InputError."""
    file = opened(data, name)
    present = set(file.schema_arrow.names)
    wanted = [column for column in {top for one in reader.plan.columns for top in (one.name, one.name.partition(".")[0])} if column in present]
    groups = list(groups_of(part, file.metadata.num_row_groups))
    with broken(name, "cannot be read as Parquet"):
        batches = _batches(file, data, groups, sorted(wanted)) if wanted else _bare(file, groups)
        yield from with_rows(reader.plan, batches, part.first_row if part else 1, name, len(data))


def _batches(file: Any, data: Buffer, groups: Sequence[int], wanted: list[str]) -> Iterator[pa.RecordBatch]:
    """The row groups in batches, with few rows where a dictionary has long values, which every row may repeat."""
    for group in groups:
        chunks = [chunk for chunk in map(file.metadata.row_group(group).column, range(file.metadata.num_columns)) if chunk.path_in_schema.partition(".")[0] in wanted]
        longest = max((_longest(data, group, chunk) for chunk in chunks if _has_large_dictionary(data, chunk)), default=0)
        yield from file.iter_batches(rows_of_length(longest), row_groups=[group], columns=wanted)


def _has_large_dictionary(data: Buffer, chunk: Any) -> bool:
    """Whether the values of a column, out of its dictionary, may be much larger than the file."""
    if chunk.physical_type != "BYTE_ARRAY" or not chunk.has_dictionary_page:
        return False
    return bool(_unpacked_size(data[chunk.dictionary_page_offset :][:16]) * min(chunk.num_values, BATCH_ROWS) > _LARGE)


def _unpacked_size(header: bytes) -> int:
    """The bytes of a page by the beginning of its header, which is type and size in Thrift's compact protocol; the maximum for another header."""
    found = _PAGE.match(header)
    return sum((byte & 0x7F) << 7 * place for place, byte in enumerate(found[1])) >> 1 if found else 1 << 31


def _longest(data: Buffer, group: int, chunk: Any) -> int:
    """The bytes of the longest value of a column's dictionary, which is read with the first row. For a nested column the bytes of the dictionary."""
    if "." in chunk.path_in_schema:
        return _unpacked_size(data[chunk.dictionary_page_offset :][:16])
    name = chunk.path_in_schema
    first = next(pq.ParquetFile(pa.BufferReader(pa.py_buffer(data)), read_dictionary=[name]).iter_batches(1, row_groups=[group], columns=[name]))
    values = first.column(0)
    return longest_in(values.dictionary if pa.types.is_dictionary(values.type) else values)


def _bare(file: Any, groups: list[int]) -> Iterator[pa.RecordBatch]:
    """Batches without columns, for a file that has none of the declared ones."""
    for group in groups:
        count = file.metadata.row_group(group).num_rows
        yield pa.RecordBatch.from_arrays([pa.nulls(count)], [""])

