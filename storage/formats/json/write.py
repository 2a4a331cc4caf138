"""Records to JSON objects, one text each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import orjson

from changelog.lazy_imports import pa, pc
from storage.formats.base import Column, WritePlan
from storage.formats.nested_names import steps_of
from storage.formats.values import text_of
from storage.values.decimals import decimal_text
from storage.values.text import float_text, plain_numbers
from storage.values.types import is_dynamic

_POINT = re.compile(rb"[0-9]\.[0-9]*0[,\]}]|[0-9.]{17}")
"""Matches an object that may have a number that no float writes: with a zero at its end, or with more digits than floats have."""


class _Spelling(NamedTuple):
    """How values are written: a null, and whether decimals are strings."""

    null: bytes
    quoted: bool


def _rows(members: Sequence[Sequence[bytes]], *, some_missing: bool) -> Iterable[tuple[bytes, ...]]:
    """The members of each record, without the ones that it lacks."""
    rows: Iterable[tuple[bytes, ...]] = zip(*members, strict=True)
    return (tuple(filter(None, row)) for row in rows) if some_missing else rows


def objects(batch: pa.RecordBatch, plan: WritePlan, *, pretty: bool, nested: bool = False, quoted: bool = False) -> list[bytes]:
    """Each record as an object with the columns as members, in their order. Under `nested` dotted names are members of objects. `quoted`: decimals are strings."""
    spelled = _Spelling(b"null" if plan.preserve_nulls else b'""', quoted)
    lines = [b"{" + b",".join(row) + b"}" for row in _members(batch, plan, spelled, nested=nested and any(map(_is_path, plan.columns)))]
    return [_pretty(line) for line in lines] if pretty else lines


def _is_path(column: Column) -> bool:
    return "." in column.name or "\\" in column.name


def _members(batch: pa.RecordBatch, plan: WritePlan, spelled: _Spelling, *, nested: bool) -> Iterable[Iterable[bytes]]:
    """The members of each record."""
    if nested:
        return _nested_rows(batch, plan, _tree(plan), spelled)
    keys = [orjson.dumps(column.name) + b":" for column in plan.columns]
    if _is_sparse(batch, plan):
        return _sparse_rows(batch, plan, keys, spelled)
    members = [_texts(batch.column(index), column, key, spelled) for index, (column, key) in enumerate(zip(plan.columns, keys, strict=True))]
    return _rows(members, some_missing=any(column.optional for column in plan.columns)) if members else [()] * batch.num_rows


def _is_sparse(batch: pa.RecordBatch, plan: WritePlan) -> bool:
    """Whether most cells belong to fields that their records lack."""
    absent = sum(batch.column(index).null_count for index, column in enumerate(plan.columns) if column.optional)
    return bool(absent * 2 > batch.num_rows * len(plan.columns))


def _sparse_rows(batch: pa.RecordBatch, plan: WritePlan, keys: Sequence[bytes], spelled: _Spelling) -> list[list[bytes]]:
    """The members that each record has. Only these cost time, not the columns."""
    rows: list[list[bytes]] = [[] for _ in range(batch.num_rows)]
    for index, (column, key) in enumerate(zip(plan.columns, keys, strict=True)):
        _add_members(rows, batch.column(index), column, key, spelled)
    return rows


def _add_members(rows: Sequence[list[bytes]], values: pa.Array, column: Column, key: bytes, spelled: _Spelling) -> None:
    """Add the member of a column to each record that has it."""
    owners: Iterable[list[bytes]] = rows
    if column.optional and values.null_count:
        there = values.is_valid()
        values, owners = values.filter(there), [rows[place] for place in pc.indices_nonzero(there).to_pylist()]
    for row, text in zip(owners, _texts(values, replace(column, optional=False), key, spelled), strict=True):
        row.append(text)


_Tree: TypeAlias = "dict[str, int | _Tree]"
"""The members of an object by name: the index of a column, or an object."""


def _tree(plan: WritePlan) -> _Tree:
    root: _Tree = {}
    for index, column in enumerate(plan.columns):
        *owners, last = steps_of(column.name)
        place = root
        for step in owners:
            inner = place.setdefault(step, {})
            assert isinstance(inner, dict)  # `Writer.clash` looked
            place = inner
        place[last] = index
    return root


def _nested_rows(batch: pa.RecordBatch, plan: WritePlan, tree: _Tree, spelled: _Spelling) -> list[list[bytes]]:
    """The members that each record has; an object without members is none."""
    rows: list[list[bytes]] = [[] for _ in range(batch.num_rows)]
    for name, place in tree.items():
        key = orjson.dumps(name) + b":"
        if isinstance(place, int):
            _add_members(rows, batch.column(place), plan.columns[place], key, spelled)
            continue
        for row, inner in zip(rows, _nested_rows(batch, plan, place, spelled), strict=True):
            if inner:
                row.append(key + b"{" + b",".join(inner) + b"}")
    return rows


def _pretty(line: bytes) -> bytes:
    """An object over several lines, its decimals with all digits; on one line where it is nested too deep for orjson."""
    try:
        value = json.loads(line, parse_float=_number, parse_int=_whole) if _POINT.search(line) else orjson.loads(line)
        return orjson.dumps(value, option=orjson.OPT_INDENT_2)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, RecursionError):
        return line


def _whole(text: str) -> Any:
    """An int, as its text where it has more than 64 bits."""
    return int(text) if len(text) < 19 else orjson.Fragment(text)


def _number(text: str) -> Any:
    """A number with a point: its text where that has other digits than the shortest of its float."""
    value = float(text)
    return value if repr(value) == text else orjson.Fragment(text)


def _texts(values: pa.Array, column: Column, key: bytes, spelled: _Spelling) -> list[bytes]:
    if column.optional:
        return [b"" if cell is None else text for cell, text in zip(values.to_pylist(), _texts(values, replace(column, optional=False), key, spelled), strict=True)]
    bare = _bare_text(values, column, quoted=spelled.quoted)
    if bare is not None:
        return [key + (spelled.null if text is None else text.encode()) for text in bare.to_pylist()]
    return [key + (spelled.null if text is None else orjson.dumps(text)) for text in text_of(values, column, "json").to_pylist()]


def _bare_text(values: pa.Array, column: Column, *, quoted: bool) -> pa.Array | None:
    """The JSON of values that need no quotes; None for other types."""
    if is_dynamic(column.type):
        return plain_numbers(pc.replace_with_mask(values, pc.equal(values, "null"), pa.scalar(None, pa.string())), quoted=quoted)
    if pa.types.is_decimal(values.type):
        return None if quoted else decimal_text(values)
    if pa.types.is_floating(values.type):
        return pc.if_else(pc.is_finite(values), float_text(values), "null")
    return values.cast(pa.string()) if pa.types.is_integer(values.type) or pa.types.is_boolean(values.type) else None
