"""Records to JSON objects, one text each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from storage.coerce import is_dynamic
from storage.formats.texts import float_text, text_of

if TYPE_CHECKING:
    from storage.formats.contract import Column, WritePlan


def objects(batch: pa.RecordBatch, plan: WritePlan, *, pretty: bool) -> list[bytes]:
    """Each record as an object whose members are the columns in their order."""
    null = b"null" if plan.preserve_nulls else b'""'
    keys = [orjson.dumps(column.name) + b":" for column in plan.columns]
    members = [_texts(batch.column(index), column, key, null) for index, (column, key) in enumerate(zip(plan.columns, keys, strict=True))]
    lines = [b"{" + b",".join(row) + b"}" for row in zip(*members, strict=True)] if members else [b"{}"] * batch.num_rows
    return [orjson.dumps(orjson.loads(line), option=orjson.OPT_INDENT_2) for line in lines] if pretty else lines


def _texts(values: pa.Array, column: Column, key: bytes, null: bytes) -> list[bytes]:
    if pa.types.is_floating(values.type):
        finite = pc.if_else(pc.is_finite(values), float_text(values), "null")
        return [key + (null if text is None else text.encode()) for text in finite.to_pylist()]
    bare = pa.types.is_integer(values.type) or pa.types.is_boolean(values.type) or is_dynamic(column.type)
    texts = (values.cast(pa.string()) if bare else text_of(values, column, "json")).to_pylist()
    if bare:
        return [key + (null if text is None or text == "null" else text.encode()) for text in texts]
    return [key + (null if text is None else orjson.dumps(text)) for text in texts]
