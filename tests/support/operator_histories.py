"""Records of one operator's input as op rows, and the live rows that the operator has after them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from changelog.algebra import fold
from changelog.ops import Op
from operators.testing import Memory


def op_rows(schema: pa.Schema, before: Mapping[int, tuple[Any, ...]], after: Mapping[int, tuple[Any, ...]]) -> pa.Table:
    """The op rows from some records to others.

    Args:
        schema: `_op`, `_key`, `_cause` and the columns of the records.
        before: The records that were there, by number.
        after: The records that are there now.
    """
    made: list[tuple[Op, int, tuple[Any, ...]]] = []
    for number in sorted({*before, *after}):
        old, new = before.get(number), after.get(number)
        if old != new:
            made += [] if old is None else [(Op.RETRACT if new is None else Op.CORRECT_FROM, number, old)]
            made += [] if new is None else [(Op.APPEND if old is None else Op.CORRECT_TO, number, new)]
    rows = [(int(op), number.to_bytes(4, "big"), "ingest", *values) for op, number, values in made]
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def live(memory: Memory) -> list[dict[str, Any]]:
    """The live rows of a node without their envelope, in the order of their keys."""
    assert memory.own is not None
    rows = fold(memory.rows(memory.own)).on_driver().as_table().to_pylist()
    return sorted(({name: value for name, value in row.items() if name not in ("_epoch", "_op", "_cause")} for row in rows), key=lambda row: row["_key"])
