"""Parquet files of op rows, as datasets have them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from changelog.lazy_imports import pa, pc, pq
from storage.files.errors import Buffer
from storage.odf.chain import Slice, damaged
from storage.odf.columns import Vocabulary
from storage.odf.logical_hash import LogicalHash
from storage.odf.multiformats import SHA3_256, Multihash, sha3_of_file

__all__ = ["WrittenSlice", "check_slice", "first_taking_back", "slice_schema", "write_slice"]

GROUP_ROWS = 1 << 17


@dataclass(frozen=True, slots=True)
class WrittenSlice:
    """A finished file: its hashes, its bytes, its rows, and the last event time in it."""

    logical: Multihash
    physical: Multihash
    size: int
    rows: int
    latest: datetime | None


def slice_schema(vocabulary: Vocabulary, data: Sequence[pa.Field]) -> pa.Schema:
    """The columns of every file of a dataset: the dataset's own, then the data."""
    offset, op, system_time, event_time = vocabulary.names
    moment = pa.timestamp("ms", "UTC")
    own = [pa.field(offset, pa.uint64(), nullable=False), pa.field(op, pa.uint8(), nullable=False), pa.field(system_time, moment, nullable=False)]
    return pa.schema([*own, pa.field(event_time, moment, nullable=False), *data])


def write_slice(batches: Iterable[pa.RecordBatch], schema: pa.Schema, event_time: str, target: Path, documents: Collection[str] = ()) -> WrittenSlice:
    """Write batches of a schema, whose first column is the offset, to a new file. Columns of `documents` are texts of JSON, and the file says so."""
    hasher, rows, latest = LogicalHash(schema), 0, list[Any]()
    plain = [name for name in schema.names if name != schema.names[0]]
    marked = pa.schema([one.with_type(pa.json_()) if one.name in documents else one for one in schema])
    with pq.ParquetWriter(target, marked, compression="snappy", use_dictionary=plain, column_encoding={schema.names[0]: "DELTA_BINARY_PACKED"}) as writer:
        for batch in _grouped(batches):
            hasher.update(batch)
            rows += batch.num_rows
            latest.append(pc.max(batch.column(event_time)).as_py())
            writer.write_batch(batch.cast(marked), row_group_size=GROUP_ROWS)
    return WrittenSlice(hasher.result(), sha3_of_file(target), target.stat().st_size, rows, max(filter(None, latest), default=None))


def check_slice(content: Buffer, one: Slice, place: str) -> None:
    """Raise InputError (E660) where a file has other bytes than its name says, or other rows than its block."""
    if str(Multihash(SHA3_256, hashlib.sha3_256(content).digest())) != one.name:
        raise damaged(place, f"{one.key} has another content than its name says")
    rows = _opened(content, one.key, place).metadata.num_rows
    if rows != one.end - one.start + 1:
        raise damaged(place, f"{one.key} has {rows} rows, and its block says offsets {one.start} to {one.end}")


def first_taking_back(content: Buffer, vocabulary: Vocabulary, place: str) -> int | None:
    """The offset of the first row that is no append; None where all are. Raises InputError (E660)."""
    file = _opened(content, vocabulary.op, place)
    if vocabulary.op not in file.schema_arrow.names or vocabulary.offset not in file.schema_arrow.names:
        raise damaged(place, f"a data file has no columns '{vocabulary.offset}' and '{vocabulary.op}'")
    table = file.read([vocabulary.offset, vocabulary.op])
    others = table.filter(pc.not_equal(table.column(vocabulary.op), 0)).column(vocabulary.offset)
    return None if not len(others) else int(pc.min(others).as_py())


def _opened(content: Buffer, name: str, place: str) -> Any:
    try:
        return pq.ParquetFile(pa.BufferReader(pa.py_buffer(content)))
    except (pa.ArrowException, OSError) as wrong:
        raise damaged(place, f"{name} is no Parquet file: {wrong}") from wrong


def _grouped(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    """The same rows in batches of a row group, the last one smaller, so that the bytes do not depend on the batches."""
    held = list[pa.RecordBatch]()
    for batch in batches:
        held.append(batch)
        while sum(one.num_rows for one in held) >= GROUP_ROWS:
            whole = pa.Table.from_batches(held)
            yield from whole.slice(0, GROUP_ROWS).combine_chunks().to_batches()
            held = whole.slice(GROUP_ROWS).to_batches()
    if held:
        yield from pa.Table.from_batches(held).combine_chunks().to_batches()
