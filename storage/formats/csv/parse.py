"""CSV text to typed batches: by Arrow's parser for well-formed text, else with the record positions of the scanner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from changelog.lazy_imports import np, pa
from storage.files.errors import InputError, line_after
from storage.formats.base import ERROR, Range, Reader, ReadPlan, Reject
from storage.formats.batches import typed_batches
from storage.formats.csv.cells import direct_types, has_strange, is_plain, parse_cells, special_in
from storage.formats.csv.header import header_of, names_in, to_utf8
from storage.formats.csv.options import CsvReadOptions
from storage.formats.csv.scan import Bytes, Dialect, Records, as_bytes, records, toggles
from storage.values.types import base_type

_Reader: TypeAlias = Reader[CsvReadOptions]


def read_chunk(reader: _Reader, data: bytes, name: str, part: Range | None) -> Iterator[pa.RecordBatch]:
    """The records of a whole file or of one of its ranges. Raises InputError."""
    options, plan = reader.options, reader.plan
    if part is None or not part.head:
        text = to_utf8(options, data, name)
        header = header_of(options.model_copy(update={"encoding": "utf-8"}), text, name)
        plan.check_names(header.names, name, header.line)
        names, body, first, before = header.names, text[header.end :], 1, text[: header.end]
    else:
        names, body, first, before = names_in(options, part.head), to_utf8(options, data, name, part.start), part.first_row, b""
    special = special_in(options, body)
    if ord(options.quote_char) in special:
        _check_closed(options, body, name, before=before, start=part.start if part is not None and part.head else None)
    wanted = _wanted(plan, names)
    batches = _without_errors(reader, body, len(names), wanted, first) if is_plain(options, body, special) else None
    if batches is not None:
        yield from batches
        return
    table = parse_cells(options, body, len(names), wanted)
    yield from _with_rejects(reader, body, names, name, first) if table is None else _typed(plan, table, wanted, first)


def _without_errors(reader: _Reader, body: bytes, width: int, wanted: dict[str, int], first: int) -> list[pa.RecordBatch] | None:
    """The fast way for plain text: Arrow reads numbers and dates. None where some record has an error, or Arrow may read a cell differently from its text."""
    types = {wanted[name]: type_ for name, type_ in _direct(reader.plan).items() if name in wanted}
    if not types:
        return None
    table = parse_cells(reader.options, body, width, wanted, types)
    if table is None or has_strange(table):
        return None
    batches = list(_typed(reader.plan, table, wanted, first))
    return None if any(batch.column(ERROR).null_count < batch.num_rows for batch in batches) else batches


def _direct(plan: ReadPlan) -> dict[str, pa.DataType]:
    """The types of the columns that Arrow's parser reads."""
    direct = direct_types()
    names = {column.name: base_type(column.type) for column in plan.columns}
    return {name: direct[kind] for name, kind in names.items() if kind in direct and not (kind == "date" and plan.date_formats)}


def _typed(plan: ReadPlan, table: pa.Table, wanted: dict[str, int], first: int) -> Iterator[pa.RecordBatch]:
    """The records of a table of all their cells, numbered from `first` on."""
    for batch in table.to_batches():
        rows = pa.array(np.arange(first, first + batch.num_rows))
        cells = {name: batch.column(str(index)) for name, index in wanted.items()}
        yield from typed_batches(plan.columns, cells, rows, plan.date_formats)
        first += batch.num_rows


def _check_closed(options: CsvReadOptions, body: bytes, name: str, *, before: bytes = b"", start: int | None = None) -> None:
    """Raise InputError where a quote stays open.

    Args:
        options: The options of the file.
        body: The records, as UTF-8.
        name: How messages call the file.
        before: The text before the body, for the number of the line.
        start: The byte of the file where the body begins, where that is not after the header; then the error has the byte instead of the line.
    """
    dialect = Dialect.of(options)
    quotes, still_open = toggles(as_bytes(body), dialect, 0, len(body), False)
    if not still_open:
        return
    text, rest = body[: quotes[-1]], body[quotes[-1] :]
    message = f"a quoted field is never closed: {rest[:60].decode(errors='replace')!r}"
    if start is None:
        raise InputError(name, message, line=line_after(before + text))
    raise InputError(name, message, offset=start + len(text if options.encoding.startswith("utf-8") else text.decode()))


def _wanted(plan: ReadPlan, names: Sequence[str]) -> dict[str, int]:
    """The index of the cell of each column of the plan."""
    places = {name: index for index, name in enumerate(names)}
    return {column.name: places[column.name] for column in plan.columns if column.name in places}


def _columns(table: pa.Table, wanted: dict[str, int]) -> dict[str, pa.Array]:
    return {name: table.column(str(index)).combine_chunks() for name, index in wanted.items()}


def _with_rejects(reader: _Reader, body: bytes, names: Sequence[str], name: str, first: int) -> Iterator[pa.RecordBatch]:
    """The slow way: the scanner finds each record and the number of its cells, so that malformed ones become rejects."""
    options, plan, width = reader.options, reader.plan, len(names)
    wanted, data = _wanted(plan, names), as_bytes(body)
    found = records(data, Dialect.of(options))
    bad = np.flatnonzero(found.cells != width)
    good = np.flatnonzero(found.cells == width)
    table = parse_cells(options, _without(body, data, found, bad), width, wanted)
    if table is None or table.num_rows != len(good):
        raise InputError(name, "the CSV text cannot be read", line=line_after(body[: found.starts[0]]))
    order = np.argsort(np.concatenate([good, bad]), kind="stable")
    errors = [None] * len(good) + [_malformed(body, found, index, width) for index in bad.tolist()]
    padding = pa.nulls(len(bad), pa.string())
    text = {key: pa.concat_arrays([cells, padding]).take(pa.array(order)) for key, cells in _columns(table, wanted).items()}
    rows = pa.array(np.arange(first, first + len(found.starts)))
    rejected = pa.array(errors, pa.string()).take(pa.array(order))
    yield from typed_batches(plan.columns, text, rows, plan.date_formats, rejected=rejected)


def _without(body: bytes, data: Bytes, found: Records, bad: np.ndarray) -> bytes:
    keep, at = [], 0
    for index in bad.tolist():
        keep.append(body[at : found.starts[index]])
        at = int(found.ends[index])
    return b"".join([*keep, body[at:]])


def _malformed(body: bytes, found: Records, index: int, width: int) -> str:
    raw = body[found.starts[index] : found.ends[index]].decode("utf-8", "replace")
    return Reject("malformed_record", f"{found.cells[index]} cells where the header has {width}", raw=raw).json()
