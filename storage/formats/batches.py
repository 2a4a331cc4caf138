"""Record batches of readers, built from columns of text or from parsed records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import islice
from types import MappingProxyType
from typing import Any, TypeVar

import orjson

from changelog.constant_columns import constant
from changelog.lazy_imports import pa, pc
from storage.formats.base import CHUNK_BYTES, DOCUMENT, ROW, UNDECLARED, Column, ReadPlan, Reject, batch_schema
from storage.formats.values import coerce_values, text_in_file
from storage.values.coerce import Coerced, coerce, coerce_implied
from storage.values.json_text import held
from storage.values.types import arrow_type

BATCH_ROWS = 1 << 16
_R = TypeVar("_R")


def with_gathered(batch: pa.RecordBatch, texts: pa.Array) -> pa.RecordBatch:
    """The batch with `texts`, the result of `gathered`, as UNDECLARED."""
    return batch.add_column(batch.schema.get_field_index(ROW), pa.field(UNDECLARED, pa.string()), texts)


def gathered(records: Sequence[Mapping[str, Any]], undeclared: Sequence[Column], text: Callable[[Any], str | None]) -> pa.Array:
    """The undeclared fields of each record as a JSON object, in the order of the columns; null where it has none.

    Args:
        records: values by column name
        undeclared: the undeclared columns
        text: returns the JSON of a value; None for a value that counts as absent
    """
    places = {column.name: place for place, column in enumerate(undeclared)}
    keys = [orjson.dumps(column.name).decode() + ":" for column in undeclared]

    def as_object(record: Mapping[str, Any]) -> str | None:
        found = sorted((places[name], name) for name in record if name in places)
        members = [keys[place] + value for place, name in found if (value := text(record[name])) is not None]
        return f"{{{','.join(members)}}}" if members else None

    return pa.array(map(as_object, records), pa.string())


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
    implied: Mapping[str, int] = MappingProxyType({}),
) -> Iterator[pa.RecordBatch]:
    """Batches of at most BATCH_ROWS from columns of text or of their declared types.

    Args:
        columns: the data columns of the batches
        text: the cells by column name; a column that it lacks is null
        rows: the records' numbers in the file
        date_formats: the source's own strftime patterns
        rejected: errors that are known already, one a record; null for none
        formats: patterns of single date columns, tried before `date_formats`
        document: each record's DOCUMENT
        undeclared: each record's UNDECLARED
        implied: the digits behind the point of columns whose cells have none
    """
    present = [column for column in columns if column.name in text]
    done = {
        one.name: coerce(text[one.name], one.type, (*formats.get(one.name, ()), *date_formats))
        if one.name not in implied
        else coerce_implied(text[one.name], one.type, implied[one.name])
        for one in present
    }
    batch = assembled(columns, done, rows, rejected, lambda name, where: pc.take(text[name], where).to_pylist())
    if undeclared is not None:
        batch = with_gathered(batch, undeclared)
    if document is not None:
        batch = batch.append_column(pa.field(DOCUMENT, pa.string()), pa.array(document, pa.string()))
    yield from cut(batch)


def _with_nulls(made: Coerced, name: str, records: Sequence[Mapping[str, Any]]) -> Coerced:
    """A column of JSON texts, with `null` for the records that have the field and it is null."""
    is_null = [name in record and record[name] is None for record in records]
    return made._replace(values=pc.replace_with_mask(made.values, pa.array(is_null, pa.bool_()), pa.scalar("null")))


def record_batches(plan: ReadPlan, records: Sequence[Mapping[str, Any] | Reject], first_row: int, *, gathers: bool = False) -> Iterator[pa.RecordBatch]:
    """Batches of parsed records (values by column name) and of rejected ones, numbered from `first_row` on.

    In an undeclared column a null that the record has is the JSON text `null`. `gathers` is `Reader.gathers`.
    """
    texts, records = _gathered_or_refused(plan, records) if gathers else (None, records)
    columns = plan.declared if gathers else plan.columns
    rejected = [record.json() if isinstance(record, Reject) else None for record in records]
    fields: Sequence[Mapping[str, Any]] = [{} if isinstance(record, Reject) else record for record in records]
    values = {column.name: [record.get(column.name) for record in fields] for column in columns}
    done = {column.name: coerce_values(values[column.name], column.type, plan.date_formats) for column in columns}
    done |= {column.name: _with_nulls(done[column.name], column.name, fields) for column in columns[len(plan.declared) :]}
    rows = pa.arange(first_row, first_row + len(records))
    cells = lambda name, where: [text_in_file(values[name][i]) for i in where.to_pylist()]  # noqa: E731
    batch = assembled(columns, done, rows, pa.array(rejected, pa.string()), cells)
    yield from cut(batch if texts is None else with_gathered(batch, texts))


def _gathered_or_refused(plan: ReadPlan, records: Sequence[Mapping[str, Any] | Reject]) -> tuple[pa.Array, Sequence[Mapping[str, Any] | Reject]]:
    """The undeclared fields of records (`gathered`), and the records; of those with an undeclared number that no float holds, rejects."""
    all_held = True

    def text(value: Any) -> str | None:
        nonlocal all_held
        found = held(value)
        all_held = all_held and found is not None
        return found

    texts = gathered([{} if isinstance(record, Reject) else record for record in records], plan.undeclared, text)
    return texts, records if all_held else [record if isinstance(record, Reject) else _held_or_refused(plan, record) for record in records]


def _held_or_refused(plan: ReadPlan, record: Mapping[str, Any]) -> Mapping[str, Any] | Reject:
    fields = {column: text_in_file(record[column.name]) for column in plan.columns if column.name in record}
    wrong = [column for column in plan.undeclared if column in fields and held(record[column.name]) is None]
    if not wrong:
        return record
    detail = "; ".join(f"column '{column.label}': cannot read {fields[column]!r} as {column.type}" for column in wrong)
    return Reject("type_coercion_failure", detail, {column.label: text for column, text in fields.items()})


def next_block(records: Iterator[_R], most: int, *, weigh: bool) -> list[_R]:
    """The next records, at most `most`.

    With `weigh` it stops once they are larger than `CHUNK_BYTES` together: an exploded array repeats all other fields of its record.
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
    *,
    place: Callable[[str, int], str] | None = None,
) -> pa.RecordBatch:
    """One batch of converted columns.

    Args:
        columns: the data columns of the batch
        done: the converted columns by name; a column that it lacks is null
        rows: the records' numbers in the file
        rejected: errors that are known already, one a record; null for none
        cells: returns the text of a column in the rows of some indices
        place: returns where a cell is in its file, by column and index
    """
    values = [done[column.name].values if column.name in done else constant(None, arrow_type(column.type), len(rows)) for column in columns]
    failed = {name: result.failed for name, result in done.items() if result.failed is not None}
    errors = constant(None, pa.string(), len(rows))
    if failed:
        errors = _coercion_errors(columns, failed, list(done), cells, errors, place=place)
    if rejected is not None:
        errors = pc.coalesce(rejected, errors)
    return pa.RecordBatch.from_arrays([*values, rows, errors], schema=batch_schema(columns))


def cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The records in batches of at most BATCH_ROWS; no batch for no records."""
    for start in range(0, batch.num_rows, BATCH_ROWS):
        yield batch.slice(start, BATCH_ROWS)


def _coercion_errors(
    columns: Sequence[Column],
    failed: Mapping[str, pa.Array],
    names: Sequence[str],
    cells: Callable[[str, pa.Array], list[str | None]],
    errors: pa.Array,
    *,
    place: Callable[[str, int], str] | None,
) -> pa.Array:
    """`errors`, with the errors of the records that have a failed cell."""
    some = reduce(pc.or_, failed.values())
    where = pc.indices_nonzero(some)
    text = {name: cells(name, where) for name in names}
    wrong = {name: pc.take(mask, where).to_pylist() for name, mask in failed.items()}
    by_name = {column.name: column for column in columns}
    texts = [
        _coercion_reject({name: text[name][i] for name in names}, {name: f" ({place(name, at)})" if place else "" for name, mask in wrong.items() if mask[i]}, by_name)
        for i, at in enumerate(where.to_pylist())
    ]
    return pc.replace_with_mask(errors, some, pa.array(texts, pa.string()))


def _coercion_reject(fields: Mapping[str, str | None], wrong: Mapping[str, str], columns: Mapping[str, Column]) -> str:
    """The error of a record. `wrong`: the columns that failed, each with its place in the file as messages show it."""
    detail = "; ".join(f"column '{columns[name].label}'{at}: cannot read {fields[name]!r} as {columns[name].type}" for name, at in wrong.items())
    return Reject("type_coercion_failure", detail, {columns[name].label: text for name, text in fields.items()}).json()
