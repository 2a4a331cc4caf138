"""Lines of JSON objects as columns at once, by Arrow's parser, where that is sure to give what parsing line by line gives.

Arrow takes for good what JSON is not (NaN, two objects on a line, text that is no UTF-8, any depth), and an undeclared number tells it less than its text: such lines, and lines
whose values are not of one kind a column, are left to the parser of lines. A difference is a defect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.json as pajson

from storage.coerce import Coerced, base_type, coerce
from storage.formats.batches import assembled
from storage.formats.lines import filled_lines

if TYPE_CHECKING:
    from storage.formats.contract import Column, ReadPlan

_SAMPLE = 50
"""Lines by which the kinds of the values are guessed; a guess that is wrong costs time."""
_DEEPEST = 900
_LF, _CR, _OPEN, _CLOSE = b"\n\r{}"
_BRACKET = ord("[")
_NO_NUMBER = re.compile(rb"[:,\[\s-](?:NaN|Inf(?:inity)?)\s*[,\]}]")
_KINDS: Mapping[frozenset[type], pa.DataType] = {
    frozenset({str}): pa.string(),
    frozenset({int}): pa.int64(),
    frozenset({bool}): pa.bool_(),
    frozenset({float}): pa.float64(),
    frozenset({int, float}): pa.float64(),
}
_USUAL: Mapping[str, pa.DataType] = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
_AS_TEXT = frozenset({pa.int64(), pa.bool_()})
"""Kinds whose text is the same as it stands in the file and as a value."""


def flat_batch(plan: ReadPlan, text: bytes, first_row: int) -> pa.RecordBatch | None:
    """The records of whole lines, of which the first has number `first_row`; None where they have to be parsed one by one."""
    if plan.array_paths or any("." in column.name for column in plan.declared):
        return None
    kinds = _kinds(plan.columns, text)
    table = None if kinds is None else _parsed(text, kinds)
    if table is None:
        return None
    done = {column.name: _coerced(table.column(column.name).combine_chunks(), column, plan, text) for column in plan.columns}
    sure = {name: values for name, values in done.items() if values is not None and values.failed is None}
    if len(sure) < len(done):
        return None
    rows = pa.array(np.arange(first_row, first_row + table.num_rows))
    return assembled(plan.columns, sure, rows, None, lambda _name, _where: [])


def fields_in(text: bytes) -> pa.Schema | None:
    """The members of any record, in order of first appearance; None where they have to be parsed one by one."""
    table = _parsed(text, None)
    return None if table is None else table.schema


def _parsed(text: bytes, kinds: Mapping[str, pa.DataType] | None) -> pa.Table | None:
    """The members of some names, or of all, of each line; None where some line may be no object, or a value not of its kind."""
    starts = filled_lines(np.frombuffer(text, np.uint8))
    if not len(starts) or not _is_plain(text, starts):
        return None
    schema = None if kinds is None else pa.schema(list(kinds.items()))
    try:
        table = pajson.read_json(
            pa.BufferReader(text),
            read_options=pajson.ReadOptions(use_threads=False, block_size=len(text) + 1),
            parse_options=pajson.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer" if kinds is None else "ignore"),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        return None
    return table if table.num_rows == len(starts) else None


def _is_plain(text: bytes, starts: np.ndarray) -> bool:
    """Whether each line stands in braces, so that no object goes on over a line end, and has nothing in it that Arrow takes and JSON has not."""
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
    """Whether a value may be one of the numbers that JSON has not."""
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
    """Whether no line has so many brackets that it might be nested too deep."""
    if text.count(b"{") + text.count(b"[") < len(starts) + _DEEPEST:
        return True
    brackets = (view == _OPEN) | (view == _BRACKET)
    return bool(np.add.reduceat(brackets, starts, dtype=np.int64).max() < _DEEPEST)


def _kinds(columns: Sequence[Column], text: bytes) -> dict[str, pa.DataType] | None:
    """How Arrow shall read each column, as the first lines look; None where it cannot read one."""
    try:
        records: list[Any] = [orjson.loads(line) for line in text[: _SAMPLE << 10].split(b"\n", _SAMPLE)[:-1][:_SAMPLE] if line.strip()]
    except orjson.JSONDecodeError:
        return None
    if not all(isinstance(record, dict) for record in records):
        return None
    found = {column.name: _kind(column, [record.get(column.name) for record in records]) for column in columns}
    return {name: kind for name, kind in found.items() if kind is not None} if all(found.values()) else None


def _kind(column: Column, values: Sequence[Any]) -> pa.DataType | None:
    seen = frozenset(type(value) for value in values if value is not None)
    declared = base_type(column.type)
    kind = _KINDS.get(seen) if seen else _USUAL.get(declared, pa.string())
    return pa.float64() if declared == "float" and kind == pa.int64() else kind


def _coerced(values: pa.Array, column: Column, plan: ReadPlan, text: bytes) -> Coerced | None:
    """A column as its declared type; None where the value alone does not tell."""
    declared = base_type(column.type)
    if values.null_count and column in plan.undeclared and b"null" in text:
        return None  # of undeclared fields a null that the record has is kept
    if pa.types.is_string(values.type):
        return coerce(values, column.type, plan.date_formats)
    if _USUAL.get(declared) == values.type:
        return None if pa.types.is_floating(values.type) and not _is_sure(values) else Coerced(values, None)
    if values.type not in _AS_TEXT or declared not in ("string", "any", *(("numeric",) if pa.types.is_integer(values.type) else ())):
        return None
    return Coerced(values.cast(pa.string()), None)


def _is_sure(values: pa.Array) -> bool:
    """Whether no value is infinite or the zero that an int of the text `-0` would not be."""
    numbers = values.fill_null(1.0).to_numpy(zero_copy_only=False)
    return bool(np.isfinite(numbers).all()) and not np.signbit(numbers[numbers == 0]).any()

