"""Lines of JSON objects parsed to columns by Arrow, where the result is sure to equal parsing line by line.

Arrow accepts text that is no JSON: NaN, two objects on a line, invalid UTF-8, any depth. And it loses the text of undeclared numbers. Such lines, and
columns whose values have several types, are parsed line by line. A difference between the two ways is a defect.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal

import orjson

from changelog.lazy_imports import np, pa, pajson
from storage.formats import limits
from storage.formats.base import Column, ReadPlan
from storage.formats.batches import assembled
from storage.formats.line_files import filled_lines
from storage.values.coerce import Coerced, coerce
from storage.values.decimals import converted, decimal_type
from storage.values.types import arrow_type, base_type

_SAMPLE = 50
"""Lines from which the types of the values are guessed. A wrong guess costs only time."""
_DEEPEST = 900
_LF, _CR, _OPEN, _CLOSE = b"\n\r{}"
_BRACKET = ord("[")
_LONG_NUMBER = re.compile(rb"[0-9.]{38}|[0-9]\.?[eE][+-]?[0-9]")
"""Matches what may be a number that Arrow does not read exactly as a decimal."""
_NO_NUMBER = re.compile(rb"[:,\[\s-](?:NaN|Inf(?:inity)?)\s*[,\]}]")


@cache
def _kind_of_types() -> Mapping[frozenset[type], pa.DataType]:
    """The Arrow type for values of some Python types."""
    return {
        frozenset({str}): pa.string(),
        frozenset({int}): pa.int64(),
        frozenset({bool}): pa.bool_(),
        frozenset({float}): pa.float64(),
        frozenset({int, float}): pa.float64(),
    }


@cache
def _usual_kinds() -> Mapping[str, pa.DataType]:
    """The Arrow type in which a column of a declared type is read."""
    return {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}


def flat_batch(plan: ReadPlan, text: bytes, first_row: int, *, all_known: bool = False) -> pa.RecordBatch | None:
    """The records of whole lines, numbered from `first_row` on; None where they have to be parsed one by one.

    With `all_known` every member is a column, so a line with another member has to be parsed.
    """
    if plan.array_paths or any("." in column.name for column in plan.declared):
        return None
    starts = filled_lines(np.frombuffer(text, np.uint8))
    if not len(starts) or len(plan.columns) * len(starts) > limits.CELLS:
        return None
    kinds = _kinds(plan.columns, text)
    table = None if kinds is None else _parsed(text, kinds, others="error" if all_known else "ignore", starts=starts)
    if table is None:
        return None
    done = {column.name: _coerced(table.column(column.name).combine_chunks(), column, plan, text) for column in plan.columns}
    sure = {name: values for name, values in done.items() if values is not None and values.failed is None}
    if len(sure) < len(done):
        return None
    rows = pa.array(np.arange(first_row, first_row + table.num_rows))
    return assembled(plan.columns, sure, rows, None, lambda _name, _where: [])


def records_with_all_members(text: bytes) -> list[dict[str, Any]] | None:
    """The first of the records of whole lines until all members of all records occurred; None where the lines have to be parsed one by one.

    A sample of lines gives the members and their types. Arrow's parser then checks that no line has others. It does not collect the members itself:
    lines that each have a member of their own would become as many columns as there are lines, each of that length.
    """
    starts = filled_lines(np.frombuffer(text, np.uint8))
    if not len(starts):
        return None
    try:
        sample = [orjson.loads(_line_at(text, start)) for start in starts[:: max(len(starts) // _SAMPLE, 1)].tolist()]
        kinds = _kinds_of(sample) if all(isinstance(record, dict) for record in sample) else None
    except (orjson.JSONDecodeError, pa.ArrowException, OverflowError, UnicodeEncodeError):
        return None
    if kinds is None or _count(kinds) * len(starts) > limits.CELLS:
        return None
    loose = {name: _loose(kind) for name, kind in kinds.items()}
    tries = (kinds,) if loose == kinds else (kinds, loose)
    if all(_parsed(text, each, others="error", starts=starts) is None for each in tries):
        return None
    return _until_all_are_met(text, starts, _paths_of(sample))


def _line_at(text: bytes, start: int) -> bytes:
    end = text.find(b"\n", start)
    return text[start:end] if end >= 0 else text[start:]


def _kinds_of(records: Sequence[dict[str, Any]]) -> dict[str, pa.DataType]:
    """The Arrow types of the members of some records. Raises ArrowException where a member has none."""
    names = dict.fromkeys(name for record in records for name in record)
    return {name: pa.array([record.get(name) for record in records]).type for name in names}


def _loose(kind: pa.DataType) -> pa.DataType:
    """The same type with floats for ints."""
    if pa.types.is_integer(kind):
        return pa.float64()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(member.name, _loose(member.type)) for member in kind])
    return pa.list_(_loose(kind.value_type)) if pa.types.is_list(kind) else kind


def _count(kinds: Mapping[str, pa.DataType]) -> int:
    """The number of columns, nested ones included."""
    inner = ({member.name: member.type for member in kind} if pa.types.is_struct(kind) else {} for kind in kinds.values())
    return sum(1 + _count(members) for members in inner)


def _paths_of(records: Iterable[Any]) -> set[tuple[str, ...]]:
    """The paths to all members, nested ones included."""
    found: set[tuple[str, ...]] = set()
    for record in records:
        found.update(_paths(record, ()))
    return found


def _paths(value: dict[str, Any], before: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, member in value.items():
        yield (*before, name)
        if isinstance(member, dict):
            yield from _paths(member, (*before, name))


def _until_all_are_met(text: bytes, starts: np.ndarray, paths: set[tuple[str, ...]]) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    for start in starts.tolist():
        record = orjson.loads(_line_at(text, start))
        new = paths.intersection(_paths(record, ()))
        if new or not records:
            records.append(record)
            paths -= new
        if not paths:
            break
    return records


def _parsed(text: bytes, kinds: Mapping[str, pa.DataType], *, others: Literal["ignore", "error"], starts: np.ndarray) -> pa.Table | None:
    """The members in `kinds` of the lines that begin at `starts`.

    None where a line may be no object, a value has another type, or, with `others="error"`, there are other members.
    """
    if not _is_plain(text, starts):
        return None
    try:
        table = pajson.read_json(
            pa.BufferReader(text),
            read_options=pajson.ReadOptions(use_threads=False, block_size=len(text) + 1),
            parse_options=pajson.ParseOptions(explicit_schema=pa.schema(list(kinds.items())), unexpected_field_behavior=others),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        return None
    return table if table.num_rows == len(starts) else None


def _is_plain(text: bytes, starts: np.ndarray) -> bool:
    """Whether each line is in braces, so that no object spans lines, and has nothing that Arrow accepts and JSON does not."""
    view = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(view == _LF)
    ends = np.append(ends, len(view))[np.searchsorted(ends, starts)]
    last = view[ends - 1]
    if (last == _CR).any():
        last = np.where(last == _CR, view[np.maximum(ends - 2, 0)], last)
    if not (view[starts] == _OPEN).all() or not (last == _CLOSE).all() or b"\0" in text:
        return False
    return not _has_no_number(text) and _is_utf8(text) and _is_shallow(text, view, starts)


def _has_no_number(text: bytes) -> bool:
    """Whether a value may be a number that JSON does not have."""
    return (b"NaN" in text or b"Inf" in text) and _NO_NUMBER.search(text) is not None


def _is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_shallow(text: bytes, view: np.ndarray, starts: np.ndarray) -> bool:
    """Whether no line has enough brackets to be nested too deep."""
    if text.count(b"{") + text.count(b"[") < len(starts) + _DEEPEST:
        return True
    brackets = (view == _OPEN) | (view == _BRACKET)
    return bool(np.add.reduceat(brackets, starts, dtype=np.int64).max() < _DEEPEST)


def _kinds(columns: Sequence[Column], text: bytes) -> dict[str, pa.DataType] | None:
    """The type in which Arrow reads each column, by the first lines; None where it cannot read one."""
    try:
        records: list[Any] = [orjson.loads(line) for line in text[: _SAMPLE << 10].split(b"\n", _SAMPLE)[:-1][:_SAMPLE] if line.strip()]
    except orjson.JSONDecodeError:
        return None
    if not all(isinstance(record, dict) for record in records):
        return None
    if any(decimal_type(base_type(column.type)) for column in columns) and _LONG_NUMBER.search(text) is not None:
        return None
    found = {column.name: _kind(column, [record.get(column.name) for record in records]) for column in columns}
    return {name: kind for name, kind in found.items() if kind is not None} if all(found.values()) else None


def _kind(column: Column, values: Sequence[Any]) -> pa.DataType | None:
    seen = frozenset(type(value) for value in values if value is not None)
    declared = base_type(column.type)
    if decimal_type(declared):
        return arrow_type(declared)
    kind = _kind_of_types().get(seen) if seen else _usual_kinds().get(declared, pa.string())
    return pa.float64() if declared == "float" and kind == pa.int64() else kind


def _coerced(values: pa.Array, column: Column, plan: ReadPlan, text: bytes) -> Coerced | None:
    """A column as its declared type; None where the result depends on the text in the file."""
    declared = base_type(column.type)
    if values.null_count and column in plan.undeclared and b"null" in text:
        return None  # a null that the record has is the JSON text `null`
    digits = decimal_type(declared)
    if digits is not None:
        fitting = converted(values, digits)
        return Coerced(fitting, None) if fitting.null_count == values.null_count else None
    if pa.types.is_string(values.type):
        return coerce(values, column.type, plan.date_formats)
    if _usual_kinds().get(declared) == values.type:
        return None if pa.types.is_floating(values.type) and not _is_sure(values) else Coerced(values, None)
    is_int = pa.types.is_integer(values.type)
    if not (is_int or pa.types.is_boolean(values.type)) or declared not in ("string", "any", *(("numeric",) if is_int else ())):
        return None
    return Coerced(values.cast(pa.string()), None)  # the text of a JSON int or bool is that of its value


def _is_sure(values: pa.Array) -> bool:
    """Whether no value is infinite or a negative zero, which the int `-0` is not."""
    numbers = values.fill_null(1.0).to_numpy(zero_copy_only=False)
    return bool(np.isfinite(numbers).all()) and not np.signbit(numbers[numbers == 0]).any()

