"""Columns that have one value."""

from __future__ import annotations

import pyarrow as pa
import pytest

from changelog.constant_columns import constant


@pytest.mark.parametrize("rows", [0, 1, 1000, 1 << 16, (1 << 16) + 1])
@pytest.mark.parametrize(("value", "kind"), [("ingest", pa.string()), ("x" * 100, pa.string()), (0, pa.int8()), (7, pa.int64()), (None, pa.string()), (None, pa.list_(pa.int64()))])
def test_all_rows_have_the_value(rows: int, value: int | str | None, kind: pa.DataType) -> None:
    column = constant(value, kind, rows)
    assert column.type == kind
    assert column.to_pylist() == [value] * rows
    assert column.null_count == (rows if value is None else 0)


def test_batches_share_memory() -> None:
    one, two = (constant("ingest", pa.string(), rows).buffers() for rows in (10, 30_000))
    assert [buffer and buffer.address for buffer in one] == [buffer and buffer.address for buffer in two]
