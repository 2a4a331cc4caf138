"""Record batches as readers give them: typed data columns, `_row`, `_error`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from storage.coerce import arrow_type, coerce
from storage.formats.contract import ERROR, ROW, Column, Reject

BATCH_ROWS = 1 << 16


def batch_schema(columns: Sequence[Column]) -> pa.Schema:
    """Data columns, then `_row` and `_error`."""
    data = [pa.field(column.name, arrow_type(column.type)) for column in columns]
    return pa.schema([*data, pa.field(ROW, pa.int64()), pa.field(ERROR, pa.string())])


def typed_batches(
    columns: Sequence[Column], text: Mapping[str, pa.Array], rows: pa.Array, date_formats: Sequence[str], rejected: pa.Array | None = None
) -> Iterator[pa.RecordBatch]:
    """Batches of at most BATCH_ROWS from text columns; a column that `text` lacks is null; `rejected` are errors known already."""
    values, failed = [], {}
    for column in columns:
        cells = text.get(column.name)
        if cells is None:
            values.append(pa.nulls(len(rows), arrow_type(column.type)))
            continue
        result = coerce(cells, column.type, date_formats)
        values.append(result.values)
        if result.failed is not None:
            failed[column.name] = result.failed
    errors = _merged(rejected, _coercion_errors(columns, text, failed, len(rows)))
    yield from cut(pa.RecordBatch.from_arrays([*values, rows, errors], schema=batch_schema(columns)))


def cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The same records in batches of at most BATCH_ROWS; nothing for none."""
    for start in range(0, batch.num_rows, BATCH_ROWS):
        yield batch.slice(start, BATCH_ROWS)


def _merged(first: pa.Array | None, second: pa.Array) -> pa.Array:
    return second if first is None else pc.coalesce(first, second)


def _coercion_errors(columns: Sequence[Column], text: Mapping[str, pa.Array], failed: Mapping[str, pa.Array], rows: int) -> pa.Array:
    if not failed:
        return pa.nulls(rows, pa.string())
    any_failed = None
    for mask in failed.values():
        any_failed = mask if any_failed is None else pc.or_(any_failed, mask)
    where = pc.indices_nonzero(any_failed)
    cells = {name: pc.take(column, where).to_pylist() for name, column in text.items()}
    wrong = {name: pc.take(mask, where).to_pylist() for name, mask in failed.items()}
    types = {column.name: column.type for column in columns}
    told = [_coercion_reject({n: c[i] for n, c in cells.items()}, [n for n, w in wrong.items() if w[i]], types) for i in range(len(where))]
    return pc.replace_with_mask(pa.nulls(rows, pa.string()), any_failed, pa.array(told, pa.string()))


def _coercion_reject(fields: Mapping[str, str | None], wrong: Sequence[str], types: Mapping[str, str]) -> str:
    detail = "; ".join(f"column '{name}': cannot read {fields[name]!r} as {types[name]}" for name in wrong)
    return Reject("type_coercion_failure", detail, fields).json()
