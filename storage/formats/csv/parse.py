"""CSV text to typed batches: Arrow's parser on text that is all in order, with the scanner's record positions where it is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from storage.formats.base import ERROR, InputError, Range, Reject, line_behind
from storage.formats.batches import typed_batches
from storage.formats.csv.cells import DIRECT, has_strange, is_plain, parse_cells
from storage.formats.csv.header import header_of, names_in, to_utf8
from storage.formats.csv.scan import Bytes, Dialect, Records, as_bytes, records, toggles
from storage.values.coerce import base_type

if TYPE_CHECKING:
    from storage.formats.csv import CsvReader, CsvReadOptions


def read_chunk(reader: CsvReader, data: bytes, name: str, part: Range | None) -> Iterator[pa.RecordBatch]:
    """The records of a whole file or of one of its ranges."""
    options = reader.options
    if part is None or not part.head:
        text = to_utf8(options, data, name)
        header = header_of(options.model_copy(update={"encoding": "utf-8"}), text, name)
        reader.plan.check_names(header.names, name, header.line)
        names, body, first = header.names, text[header.end :], 1
        _check_closed(options, body, name, text[: header.end])
    else:
        names, body, first = names_in(options, part.head), to_utf8(options, data, name, part.start), part.first_row
        _check_closed(options, body, name)
    batches = _without_errors(reader, body, names, first)
    if batches is not None:
        yield from batches
        return
    wanted = _wanted(reader, names)
    table = parse_cells(options, body, len(names), wanted)
    yield from _with_rejects(reader, body, names, name, first) if table is None else _typed(reader, table, wanted, first)


def _without_errors(reader: CsvReader, body: bytes, names: Sequence[str], first: int) -> list[pa.RecordBatch] | None:
    """The quicker way, numbers and dates read by Arrow; null where some record has an error or may be read in another way than its text."""
    wanted = _wanted(reader, names)
    types = {wanted[name]: type_ for name, type_ in _direct(reader).items() if name in wanted}
    if not types or not is_plain(reader.options, body):
        return None
    table = parse_cells(reader.options, body, len(names), wanted, types)
    if table is None or has_strange(table):
        return None
    batches = list(_typed(reader, table, wanted, first))
    return None if any(batch.column(ERROR).null_count < batch.num_rows for batch in batches) else batches


def _direct(reader: CsvReader) -> dict[str, pa.DataType]:
    """The types in which Arrow's parser reads columns of the plan."""
    names = {column.name: base_type(column.type) for column in reader.plan.columns}
    return {name: DIRECT[kind] for name, kind in names.items() if kind in DIRECT and not (kind == "date" and reader.plan.date_formats)}


def _typed(reader: CsvReader, table: pa.Table, wanted: dict[str, int], first: int) -> Iterator[pa.RecordBatch]:
    """The records, numbered from `first`, of a table of all their cells."""
    for batch in table.to_batches():
        rows = pa.array(np.arange(first, first + batch.num_rows))
        cells = {name: batch.column(str(index)) for name, index in wanted.items()}
        yield from typed_batches(reader.plan.columns, cells, rows, reader.plan.date_formats)
        first += batch.num_rows


def _check_closed(options: CsvReadOptions, body: bytes, name: str, before: bytes | None = None) -> None:
    """`before`: what stands before the body, None where that is not at hand and lines cannot be counted."""
    dialect = Dialect.of(options)
    if options.quote_char.encode() in body:
        quotes, still_open = toggles(as_bytes(body), dialect, 0, len(body), False)
        if still_open:
            line = None if before is None else line_behind(before + body[: quotes[-1]])
            raise InputError(name, f"a quoted field is never closed: {body[quotes[-1] :][:60].decode(errors='replace')!r}", line=line)


def _wanted(reader: CsvReader, names: Sequence[str]) -> dict[str, int]:
    """Which cell each column of the plan has."""
    places = {name: index for index, name in enumerate(names)}
    return {column.name: places[column.name] for column in reader.plan.columns if column.name in places}


def _columns(table: pa.Table, wanted: dict[str, int]) -> dict[str, pa.Array]:
    return {name: table.column(str(index)).combine_chunks() for name, index in wanted.items()}


def _with_rejects(reader: CsvReader, body: bytes, names: Sequence[str], name: str, first: int) -> Iterator[pa.RecordBatch]:
    """The slower way: every record's position and width are known, so that the bad ones can be told with their numbers."""
    wanted, data = _wanted(reader, names), as_bytes(body)
    found = records(data, Dialect.of(reader.options))
    bad = np.flatnonzero(found.cells != len(names))
    good = np.flatnonzero(found.cells == len(names))
    table = parse_cells(reader.options, _without(body, data, found, bad), len(names), wanted)
    if table is None or table.num_rows != len(good):
        raise InputError(name, "the CSV text cannot be read", line=line_behind(body[: found.starts[0]]))
    order = np.argsort(np.concatenate([good, bad]), kind="stable")
    errors = [None] * len(good) + [_malformed(body, found, index, len(names)) for index in bad.tolist()]
    padding = pa.nulls(len(bad), pa.string())
    text = {key: pa.concat_arrays([cells, padding]).take(pa.array(order)) for key, cells in _columns(table, wanted).items()}
    rows = pa.array(np.arange(first, first + len(found.starts)))
    rejected = pa.array(errors, pa.string()).take(pa.array(order))
    yield from typed_batches(reader.plan.columns, text, rows, reader.plan.date_formats, rejected=rejected)


def _without(body: bytes, data: Bytes, found: Records, bad: np.ndarray) -> bytes:
    keep, at = [], 0
    for index in bad.tolist():
        keep.append(body[at : found.starts[index]])
        at = int(found.ends[index])
    return b"".join([*keep, body[at:]])


def _malformed(body: bytes, found: Records, index: int, width: int) -> str:
    raw = body[found.starts[index] : found.ends[index]].decode("utf-8", "replace")
    return Reject("malformed_record", f"{found.cells[index]} cells where the header has {width}", raw=raw).json()
