"""Lines of JSON objects as columns at once, by Arrow's parser, where that is sure to give what parsing line by line gives.

Arrow takes for good what JSON is not (NaN, two objects on a line, text that is no UTF-8, any depth), and an undeclared number tells it less than its text: such lines, and lines
whose values are not of one kind a column, are left to the parser of lines. A difference is a defect.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.json as pajson

from storage.formats import limits
from storage.formats.batches import assembled
from storage.formats.line_files import filled_lines
from storage.values.coerce import Coerced, base_type, coerce

if TYPE_CHECKING:
    from storage.formats.base import Column, ReadPlan

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


def flat_batch(plan: ReadPlan, text: bytes, first_row: int, *, all_known: bool = False) -> pa.RecordBatch | None:
    """The records of whole lines, numbered from `first_row` on; None where they have to be parsed one by one.

    all_known: a member that is no column is none of a record that is right, so its line has to be parsed
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
    """The first records of whole lines, as many as are needed to meet every member of any of them; None where they have to be parsed one by one.

    A sample of lines shows the members and their kinds. Arrow's parser then says whether another line has others. It is not asked to find them:
    it would make a column for each, and lines that each have one of their own would become as many columns as there are lines, each of that length.
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
    """The kinds of the members of some records. Raises ArrowException where they have none."""
    names = dict.fromkeys(name for record in records for name in record)
    return {name: pa.array([record.get(name) for record in records]).type for name in names}


def _loose(kind: pa.DataType) -> pa.DataType:
    """The same kind, in which ints are floats."""
    if pa.types.is_integer(kind):
        return pa.float64()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(member.name, _loose(member.type)) for member in kind])
    return pa.list_(_loose(kind.value_type)) if pa.types.is_list(kind) else kind


def _count(kinds: Mapping[str, pa.DataType]) -> int:
    """How many columns they are, those inside others counted."""
    inner = ({member.name: member.type for member in kind} if pa.types.is_struct(kind) else {} for kind in kinds.values())
    return sum(1 + _count(members) for members in inner)


def _paths_of(records: Iterable[Any]) -> set[tuple[str, ...]]:
    """The paths to all members, also those inside of members."""
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
    """The members of some names of the lines that begin at `starts`; None where some line may be no object, a value not of its kind, or with "error" where there are others."""
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

