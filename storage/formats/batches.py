"""Record batches as readers give them: typed data columns, ROW, ERROR."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import islice
from types import MappingProxyType
from typing import Any, TypeVar

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from storage.formats.base import CHUNK_BYTES, DOCUMENT, ERROR, ROW, UNDECLARED, Column, ReadPlan, Reject
from storage.formats.values import coerce_values, text_of_value
from storage.values.coerce import Coerced, arrow_type, coerce
from storage.values.json_text import canonical

BATCH_ROWS = 1 << 16
_R = TypeVar("_R")


def batch_schema(columns: Sequence[Column], *, document: bool = False, gathered: bool = False) -> pa.Schema:
    """Data columns, UNDECLARED where it is wanted, then ROW, ERROR and, where it is wanted, DOCUMENT."""
    data = [pa.field(column.label, arrow_type(column.type)) for column in columns]
    last = [pa.field(DOCUMENT, pa.string())] if document else []
    others = [pa.field(UNDECLARED, pa.string())] if gathered else []
    return pa.schema([*data, *others, pa.field(ROW, pa.int64()), pa.field(ERROR, pa.string()), *last])


def with_gathered(batch: pa.RecordBatch, texts: pa.Array) -> pa.RecordBatch:
    """The batch with the JSON objects of its records' undeclared fields as UNDECLARED."""
    return batch.add_column(batch.schema.get_field_index(ROW), pa.field(UNDECLARED, pa.string()), texts)


def gathered(records: Sequence[Mapping[str, Any]], undeclared: Sequence[Column], text: Callable[[Any], str | None]) -> pa.Array:
    """The undeclared fields that each record has as a JSON object in the order of the columns, null where there are none.

    text: the JSON of a value, null for one that counts as absent.
    """
    places = {column.name: place for place, column in enumerate(undeclared)}
    keys = [orjson.dumps(column.name).decode() + ":" for column in undeclared]

    def told(record: Mapping[str, Any]) -> str | None:
        found = sorted((places[name], name) for name in record if name in places)
        members = [keys[place] + value for place, name in found if (value := text(record[name])) is not None]
        return f"{{{','.join(members)}}}" if members else None

    return pa.array(map(told, records), pa.string())


def with_document(batches: Iterator[pa.RecordBatch], text: str) -> Iterator[pa.RecordBatch]:
    """The batches with the same DOCUMENT, a `document_text`, on every record."""
    for batch in batches:
        yield batch.append_column(pa.field(DOCUMENT, pa.string()), pa.repeat(pa.scalar(text), batch.num_rows))


def document_text(sections: Mapping[str, Any]) -> str:
    """Sections as the JSON text of a DOCUMENT cell; dates and times in ISO form."""
    return orjson.dumps(sections).decode()


def typed_batches(
    columns: Sequence[Column],
    text: Mapping[str, pa.Array],
    rows: pa.Array,
    date_formats: Sequence[str],
    *,
    rejected: pa.Array | None = None,
    formats: Mapping[str, Sequence[str]] = MappingProxyType({}),
    document: Sequence[str] | None = None,
    undeclared: pa.Array | None = None,
) -> Iterator[pa.RecordBatch]:
    """Batches of at most BATCH_ROWS from columns of text or of their types already; a column that `text` lacks is null.

    `rejected` are errors known already; `formats` are patterns of single date columns, which are tried before `date_formats`;
    `document` is each record's DOCUMENT, `undeclared` its UNDECLARED.
    """
    present = [column for column in columns if column.name in text]
    done = {one.name: coerce(text[one.name], one.type, (*formats.get(one.name, ()), *date_formats)) for one in present}
    batch = assembled(columns, done, rows, rejected, lambda name, where: pc.take(text[name], where).to_pylist())
    if undeclared is not None:
        batch = with_gathered(batch, undeclared)
    if document is not None:
        batch = batch.append_column(pa.field(DOCUMENT, pa.string()), pa.array(document, pa.string()))
    yield from cut(batch)


def _told_nulls(made: Coerced, told: Sequence[bool]) -> Coerced:
    """A column of JSON texts with those nulls in it that its records have."""
    return made._replace(values=pc.replace_with_mask(made.values, pa.array(told, pa.bool_()), pa.scalar("null")))


def _nulls_there(name: str, records: Sequence[Mapping[str, Any]]) -> list[bool]:
    """Which records have a field, and it is null."""
    return [name in record and record[name] is None for record in records]


def record_batches(plan: ReadPlan, records: Sequence[Mapping[str, Any] | Reject], first_row: int, *, gathers: bool = False) -> Iterator[pa.RecordBatch]:
    """Batches of parsed records (values by column name) and of records rejected already, numbered on from `first_row`.

    In an undeclared column a null that the record has is the JSON text `null`. `gathers`: as `Reader.gathers`.
    """
    columns = plan.declared if gathers else plan.columns
    rejected = [record.json() if isinstance(record, Reject) else None for record in records]
    fields: Sequence[Mapping[str, Any]] = [{} if isinstance(record, Reject) else record for record in records]
    values = {column.name: [record.get(column.name) for record in fields] for column in columns}
    done = {column.name: coerce_values(values[column.name], column.type, plan.date_formats) for column in columns}
    done |= {column.name: _told_nulls(done[column.name], _nulls_there(column.name, fields)) for column in columns[len(plan.declared) :]}
    rows = pa.arange(first_row, first_row + len(records))
    cells = lambda name, where: [text_of_value(values[name][i]) for i in where.to_pylist()]  # noqa: E731
    batch = assembled(columns, done, rows, pa.array(rejected, pa.string()), cells)
    yield from cut(with_gathered(batch, gathered(fields, plan.undeclared, canonical)) if gathers else batch)


def next_block(records: Iterator[_R], most: int, *, weigh: bool) -> list[_R]:
    """The next records, at most `most`.

    weigh: stop once they are more than `CHUNK_BYTES` together, as an array that is exploded repeats all other fields of its record
    """
    if not weigh:
        return list(islice(records, most))
    block, left = list[_R](), CHUNK_BYTES
    for record in islice(records, most):
        block.append(record)
        if isinstance(record, Mapping):
            left -= sum(len(value) for value in record.values() if isinstance(value, str))
        if left < 0:
            break
    return block


def assembled(
    columns: Sequence[Column],
    done: Mapping[str, Coerced],
    rows: pa.Array,
    rejected: pa.Array | None,
    cells: Callable[[str, pa.Array], list[str | None]],
) -> pa.RecordBatch:
    """One batch of converted columns; a column that `done` lacks is null. `cells` gives the text that a column had in some rows."""
    values = [done[column.name].values if column.name in done else pa.nulls(len(rows), arrow_type(column.type)) for column in columns]
    failed = {name: result.failed for name, result in done.items() if result.failed is not None}
    errors = pa.nulls(len(rows), pa.string())
    if failed:
        errors = _coercion_errors(columns, failed, list(done), cells, errors)
    if rejected is not None:
        errors = pc.coalesce(rejected, errors)
    return pa.RecordBatch.from_arrays([*values, rows, errors], schema=batch_schema(columns))


def cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The same records in batches of at most BATCH_ROWS; nothing for none."""
    for start in range(0, batch.num_rows, BATCH_ROWS):
        yield batch.slice(start, BATCH_ROWS)


def _coercion_errors(
    columns: Sequence[Column],
    failed: Mapping[str, pa.Array],
    names: Sequence[str],
    cells: Callable[[str, pa.Array], list[str | None]],
    errors: pa.Array,
) -> pa.Array:
    """The errors of records with at least one bad cell; `cells` gives the text that a column had in some rows."""
    some = reduce(pc.or_, failed.values())
    where = pc.indices_nonzero(some)
    text = {name: cells(name, where) for name in names}
    wrong = {name: pc.take(mask, where).to_pylist() for name, mask in failed.items()}
    by_name = {column.name: column for column in columns}
    told = [
        _coercion_reject({name: text[name][i] for name in names}, [name for name, mask in wrong.items() if mask[i]], by_name)
        for i in range(len(where))
    ]
    return pc.replace_with_mask(errors, some, pa.array(told, pa.string()))


def _coercion_reject(fields: Mapping[str, str | None], wrong: Sequence[str], columns: Mapping[str, Column]) -> str:
    detail = "; ".join(f"column '{columns[name].label}': cannot read {fields[name]!r} as {columns[name].type}" for name in wrong)
    return Reject("type_coercion_failure", detail, {columns[name].label: text for name, text in fields.items()}).json()
