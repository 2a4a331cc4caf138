"""Typed columns (Parquet, Arrow, Delta) to declared types, with a mask of the cells that do not convert.

Text goes by the rules of `storage.values.coerce`, other values by the ones of `storage.formats.values`: a conversion that loses something fails. A date
is a date_time at midnight and the reverse. A timestamp without a zone is UTC. Bytes are text where they are UTF-8. Lists, structs and maps are JSON text; one with a decimal whose digits no
Int and no Float has fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import orjson

from changelog.lazy_imports import pa, pc
from storage.files.local import check_expansion
from storage.formats.base import Column, ReadPlan
from storage.formats.batches import BATCH_ROWS, assembled, cut
from storage.formats.dotted_members import Members
from storage.formats.missing_columns import missing_columns
from storage.formats.values import coerce_decimals_in, coerce_values, text_of_value
from storage.values.coerce import Coerced, coerce
from storage.values.decimals import DecimalType, converted, decimal_type, json_number, plain_digits
from storage.values.json_text import canonical
from storage.values.text import float_text, plain_decimals, time_text
from storage.values.types import DYNAMIC, arrow_type, base_type, timestamp_type

JSON = "arrow.json"
_AT_ONCE = 64 << 20
"""Bytes of a column that are decoded from a dictionary at a time."""


def undeclared_fields(schema: pa.Schema, plan: ReadPlan, name: str, holder: str = "file") -> tuple[Column, ...]:
    """The columns that the plan does not name, with the type any. `holder`: what messages say has the columns.

    Raises InputError where the policy is reject and there are some, and where required columns are missing (E238).
    """
    plan.check_names(schema.names, name)
    members = Members.of(plan.declared)
    if lacking := plan.lacking(members.present(schema)):

        raise missing_columns(plan, lacking, schema.names, name, holder=holder)
    return plan.undeclared_among(members.names(schema), name, type_="any")


def typed_columns(plan: ReadPlan, batch: pa.RecordBatch, first_row: int) -> Iterator[pa.RecordBatch]:
    """A batch of a file as a reader's batches, numbered from `first_row` on."""
    found = {column.name: values for column in plan.columns if (values := _found(batch, column.name)) is not None}
    done = {column.name: coerce_array(found[column.name], column.type, plan.date_formats) for column in plan.columns if column.name in found}
    rows = pa.arange(first_row, first_row + batch.num_rows)
    yield from cut(assembled(plan.columns, done, rows, None, lambda name, where: texts(found[name], where.to_pylist())))


def texts(values: pa.Array, places: Sequence[int]) -> list[str | None]:
    """Some cells as text, one by one: Arrow's `take` does not support every type."""
    if pa.types.is_decimal(values.type):
        return [None if (cell := values[place].as_py()) is None else plain_digits(cell) for place in places]
    found = [text_of_value(plain_values(values.slice(place, 1))[0]) for place in places]
    return plain_decimals(pa.array(found, pa.string())).to_pylist() if pa.types.is_nested(values.type) else found


def with_rows(plan: ReadPlan, batches: Iterator[pa.RecordBatch], first_row: int, name: str, size: int) -> Iterator[pa.RecordBatch]:
    """`typed_columns` of consecutive batches. Raises InputError where they are much larger than their file of `size` bytes."""
    unpacked = 0
    for batch in batches:
        rows = _rows_at_once(batch)
        for start in range(0, batch.num_rows, rows):
            for typed in typed_columns(plan, batch.slice(start, rows), first_row + start):
                unpacked += typed.nbytes
                check_expansion(name, size, unpacked)
                yield typed
        first_row += batch.num_rows


def _rows_at_once(batch: pa.RecordBatch) -> int:
    """The number of rows to decode at a time: few where a dictionary has long values, which every row may repeat."""
    return rows_of_length(max((longest_in(values.dictionary) for values in batch.columns if pa.types.is_dictionary(values.type)), default=0))


def rows_of_length(longest: int) -> int:
    """The number of rows to hold at a time if their longest value has `longest` bytes."""
    return max(1, min(BATCH_ROWS, _AT_ONCE // max(longest, 1)))


def longest_in(values: pa.Array) -> int:
    """The bytes of the longest text; 0 for values of another type."""
    kind = values.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
        return 0
    return pc.max(pc.binary_length(values)).as_py() or 0


def _found(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    """A column by its name, or the member of a struct or a map by a dotted name."""
    if name in batch.schema.names:
        return batch.column(name)
    first, *steps = name.split(".")
    values = batch.column(first) if first in batch.schema.names else None
    for step in steps:
        values = None if values is None else _member(values, step)
    return values if steps else None


def _member(values: pa.Array, key: str) -> pa.Array | None:
    """The member of structs, or of maps with keys of text."""
    kind = values.type
    if pa.types.is_map(kind):
        return pc.map_lookup(values, pa.scalar(key, kind.key_type), "last") if pa.types.is_string(kind.key_type) or pa.types.is_large_string(kind.key_type) else None
    return pc.struct_field(values, key) if pa.types.is_struct(kind) and kind.get_field_index(key) >= 0 else None


def coerce_array(values: pa.Array, declared: str, date_formats: Sequence[str] = ()) -> Coerced:
    """Convert a typed column to its declared type."""
    name, kind = base_type(declared), values.type
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == JSON and name in DYNAMIC:
            return _parsed(values.storage.cast(pa.string()))
        return coerce_array(values.storage, declared, date_formats)
    if pa.types.is_dictionary(kind):
        return coerce_array(values.dictionary_decode(), declared, date_formats)
    if pa.types.is_null(kind):
        return Coerced(pa.nulls(len(values), arrow_type(declared)), None)
    text = _text(values)
    if text is not None:
        return coerce(text, declared, date_formats)
    digits = decimal_type(name)
    if digits is not None and (pa.types.is_decimal(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return _decimals(values, digits)
    direct = _direct(values, name)
    if direct is not None:
        return Coerced(direct, None)
    if name in ("date", "date_time") and pa.types.is_temporal(kind):
        return _moments(values, declared)
    return coerce_decimals_in(plain_values(values), declared, date_formats)


def _decimals(values: pa.Array, digits: DecimalType) -> Coerced:
    """Numbers as decimals by value; a number that does not fit fails."""
    found = converted(values, digits)
    failed = pc.and_(pc.is_null(found), pc.is_valid(values))
    return Coerced(found, failed if failed.true_count else None)


def _text(values: pa.Array) -> pa.Array | None:
    """Text, or bytes as text; None for values of another type."""
    kind = values.type
    if pa.types.is_string(kind):
        return values
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return values.cast(pa.string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind) or pa.types.is_binary_view(kind):
        return pa.array(plain_values(values), pa.string())
    return None


def _parsed(text: pa.Array) -> Coerced:
    """JSON text in its compact form; other text fails."""
    made = [_json(cell) for cell in text.to_pylist()]
    values = pa.array(made, pa.string())
    failed = pc.and_(pc.is_null(values), pc.is_valid(text))
    return Coerced(values, failed if failed.true_count else None)


def _json(text: str | None) -> str | None:
    try:
        return None if text is None else canonical(orjson.loads(text))
    except orjson.JSONDecodeError:
        return None


def _direct(values: pa.Array, name: str) -> pa.Array | None:
    """A column converted as a whole; None where each cell needs a look."""
    kind = values.type
    make = next((make for wanted, holds, make in _conversions() if name == wanted and holds(kind)), None)
    if make is None:
        return None
    try:
        return make(values)
    except pa.ArrowInvalid:
        return None


def _naive(values: pa.Array) -> pa.Array:
    """Timestamps in UTC, without a zone."""
    unit = values.type.unit
    return values if values.type.tz is None else values.cast(pa.timestamp(unit, "UTC")).cast(pa.timestamp(unit))


def _utc(values: pa.Array) -> pa.Array:
    """Timestamps in microseconds of UTC. Raises ArrowInvalid where digits would be lost."""
    return _naive(values).cast(pa.timestamp("us")).cast(timestamp_type())


@cache
def _conversions() -> tuple[tuple[str, Callable[[pa.DataType], bool], Callable[[pa.Array], pa.Array]], ...]:
    """Declared type, whether an Arrow type converts as a whole, the conversion, which may raise ArrowInvalid."""
    return (
        ("int", pa.types.is_integer, lambda values: values.cast(pa.int64())),
        ("float", lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind), lambda values: values.cast(pa.float64(), safe=pa.types.is_floating(values.type))),
        ("int", pa.types.is_decimal, lambda values: values.cast(pa.int64())),
        ("float", pa.types.is_decimal, lambda values: values.cast(pa.string()).cast(pa.float64())),
        ("bool", pa.types.is_boolean, lambda values: values),
        ("date", pa.types.is_date, lambda values: values.cast(pa.date32())),
        ("date_time", pa.types.is_timestamp, _utc),
        ("string", pa.types.is_integer, lambda values: values.cast(pa.string())),
        ("string", pa.types.is_floating, lambda values: float_text(values.cast(pa.float64()))),
        ("string", pa.types.is_boolean, lambda values: values.cast(pa.string())),
        ("string", pa.types.is_date, lambda values: values.cast(pa.date32()).cast(pa.string())),
        ("string", pa.types.is_timestamp, lambda values: time_text(_utc(values).cast(pa.timestamp("us")))),
        ("string", pa.types.is_decimal, lambda values: pa.array([None if cell is None else format(cell, "f") for cell in values.to_pylist()], pa.string())),
    )


def _moments(values: pa.Array, declared: str) -> Coerced:
    """Dates as date_times and the other way round; a timestamp that holds more than the declared type can fails."""
    if pa.types.is_date(values.type):
        return Coerced(values.cast(pa.date32()).cast(pa.timestamp("us")).cast(timestamp_type()), None)
    if not pa.types.is_timestamp(values.type):
        return coerce_values(plain_values(values), declared)
    day, given = base_type(declared) == "date", _naive(values)
    whole = pc.floor_temporal(given, unit="day" if day else "microsecond")
    fits = pc.fill_null(pc.equal(whole, given), True)
    kept = pc.if_else(fits, whole, pa.scalar(None, whole.type)).cast(pa.timestamp("us"))
    failed = pc.invert(fits)
    return Coerced(kept.cast(pa.date32()) if day else kept.cast(timestamp_type()), failed if failed.true_count else None)


def plain_values(values: pa.Array) -> list[Any]:
    """Cells as JSON has them: decimals as numbers where one has their digits, dates and times in ISO form, bytes as text (as hexadecimal where they are no UTF-8)."""
    if isinstance(values.type, pa.BaseExtensionType):
        return plain_values(values.storage)
    return [_plain(cell) for cell in values.to_pylist(maps_as_pydicts="lossy")]


def _plain(cell: Any) -> Any:
    if cell is None or isinstance(cell, (str, int, float)):
        return cell
    if isinstance(cell, dict):
        return {str(text_of_value(_plain(key))): _plain(value) for key, value in cell.items()}
    if isinstance(cell, (list, tuple)):
        return [_plain(value) for value in cell]
    return _plain_scalar(cell)


def _plain_scalar(cell: Any) -> Any:
    if isinstance(cell, Decimal):
        return json_number(cell)
    if isinstance(cell, datetime):
        return (cell if cell.tzinfo is None else cell.astimezone(UTC).replace(tzinfo=None)).isoformat()
    if isinstance(cell, (date, time)):
        return cell.isoformat()
    if isinstance(cell, timedelta):
        return cell.total_seconds()
    if isinstance(cell, bytes):
        return _bytes_text(cell)
    return str(cell)


def _bytes_text(cell: bytes) -> str:
    try:
        return cell.decode()
    except UnicodeDecodeError:
        return cell.hex()
