"""Blocks of an Avro file to records."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from io import BytesIO
from itertools import islice
from struct import error as StructError
from typing import Any

from changelog.lazy_imports import pa
from storage.files.errors import Buffer
from storage.files.local import check_expansion
from storage.formats.avro.codecs import UnreadableBlock, unpacked
from storage.formats.avro.container import SYNC, Block, Container, damaged, encoded, header
from storage.formats.avro.schema import Prepared, UnreadableSchema, register
from storage.formats.base import Column, Range, Reader, ReadPlan
from storage.formats.batches import assembled, cut
from storage.formats.dotted_members import walked
from storage.formats.typed.groups import group_ranges, groups_of
from storage.formats.typed.mixed import coerce_mixed, text_of_mixed
from storage.values.decimals import json_number

_AT_ONCE = 1 << 13
_WITHOUT_BYTES = 1 << 20
"""Records of a block that may take no bytes."""
_FAULTS = (ArithmeticError, AttributeError, EOFError, LookupError, TypeError, ValueError, StructError, MemoryError)


def opened(data: Buffer, name: str) -> tuple[Container, dict[str, Any], pa.Schema]:
    """The file, the schema by which the library reads it, and its columns. Raises InputError (E630)."""
    file = Container.of(data, name)
    try:
        made, columns, _ = Prepared().record(file.schema)
    except UnreadableSchema as wrong:
        raise damaged(name, str(wrong), 4) from None
    return file, made, columns


def schema_of(data: Buffer, name: str) -> pa.Schema:
    """The columns of a file. Raises InputError."""
    return opened(data, name)[2]


def ranges_of(data: Buffer, name: str, target: int) -> list[Range]:
    """Ranges of consecutive blocks of about `target` bytes. Raises InputError."""
    file = opened(data, name)[0]
    return group_ranges([(block.records, block.end - block.start) for block in file.blocks()], len(data), target)


def read_records(reader: Reader, data: Buffer, name: str, part: Range | None) -> Iterator[pa.RecordBatch]:
    """The records of a whole file or of some of its blocks. Raises InputError."""
    file, schema, _ = opened(data, name)
    blocks = list(file.blocks())
    row = part.first_row if part else 1
    records = _records(file, schema, [blocks[at] for at in groups_of(part, len(blocks))])
    while some := list(islice(records, _AT_ONCE)):
        yield from _typed(reader.plan, some, row)
        row += len(some)


def _typed(plan: ReadPlan, records: list[Mapping[str, Any]], first_row: int) -> Iterator[pa.RecordBatch]:
    found = {column.name: _values(column, records) for column in plan.columns}
    done = {column.name: coerce_mixed(found[column.name], column.type, plan.date_formats) for column in plan.columns}
    rows = pa.arange(first_row, first_row + len(records))
    yield from cut(assembled(plan.columns, done, rows, None, lambda name, where: [text_of_mixed(found[name][at]) for at in where.to_pylist()]))


def _values(column: Column, records: list[Mapping[str, Any]]) -> list[Any]:
    """The values of a column by its name, or at the end of a dotted one."""
    if column.name in records[0]:
        return [_plain(record[column.name]) for record in records]
    steps = column.name.split(".")
    return [_plain(walked(record, steps)) for record in records] if len(steps) > 1 else [None] * len(records)


def _plain(value: Any) -> Any:
    """The same value; a list or a map with members as JSON has them."""
    return _json(value) if isinstance(value, list | dict) else value


def _json(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _json(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_json(one) for one in value]
    if isinstance(value, Decimal):
        return json_number(value)
    return value if value is None or isinstance(value, bool | int | float | str) else text_of_mixed(value)


def _records(file: Container, schema: dict[str, Any], blocks: list[Block]) -> Iterator[Mapping[str, Any]]:
    """The records of blocks, decoded by the library from an unpacked copy of each. Raises InputError (E630)."""
    import fastavro

    register(fastavro.read.LOGICAL_READERS)
    sync = bytes(SYNC)
    head = header({"avro.schema": json.dumps(schema).encode(), "avro.codec": b"null"}, sync)
    total = 0
    for block in blocks:
        before = total

        def grown(size: int, before: int = before) -> None:
            check_expansion(file.name, len(file.data), before + size)

        try:
            text = unpacked(file.codec, bytes(file.data[block.start : block.end]), grown)
        except UnreadableBlock as wrong:
            raise damaged(file.name, f"a block cannot be unpacked: {wrong}", block.offset) from None
        total += len(text)
        if block.records > max(len(text), _WITHOUT_BYTES):
            raise damaged(file.name, "a block has fewer bytes than records", block.offset)
        whole = BytesIO(head + encoded(block.records) + encoded(len(text)) + text + sync)
        try:
            found = list(fastavro.reader(whole))
        except (*_FAULTS, fastavro.schema.SchemaParseException, fastavro.schema.UnknownType) as wrong:
            raise damaged(file.name, f"a record cannot be read: {str(wrong) or type(wrong).__name__}", block.offset) from None
        yield from (one for one in found if isinstance(one, dict))
