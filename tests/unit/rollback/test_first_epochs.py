"""Since when rejects are there, against a walk through their versions one by one."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from changelog.arrow_algebra import fold
from changelog.ops import Op
from changelog.rows import Rows
from errata.rollback.first_epochs import first_epochs
from tests.support.examples import examples

SCHEMA = pa.schema({"_epoch": pa.int64(), "_op": pa.int8(), "_key": pa.binary(), "_error": pa.string(), "_ck:a": pa.string(), "a": pa.int64()})
VERSIONS = st.lists(st.one_of(st.none(), st.tuples(st.sampled_from("xy"), st.one_of(st.none(), st.integers(0, 1)), st.sampled_from("pq"))), max_size=8)
"""The content of a record in each epoch (its error, its data, its group); None where it is not there."""


@examples(100)
@given(st.lists(VERSIONS, min_size=1, max_size=3))
def test_an_entry_is_as_old_as_what_it_says(histories: list[list[Any]]) -> None:
    rows, expected = list[tuple[Any, ...]](), {}
    for number, history in enumerate(histories):
        key, before, since = bytes([number]), None, 0
        for epoch, now in enumerate(history, 1):
            if before != now:
                rows += [] if before is None else [(epoch, Op.RETRACT if now is None else Op.CORRECT_FROM, key, before[0], before[2], before[1])]
                rows += [] if now is None else [(epoch, Op.APPEND if before is None else Op.CORRECT_TO, key, now[0], now[2], now[1])]
            since = since if before is not None and now is not None and before[:2] == now[:2] else epoch
            before = now
        if before is not None:
            expected[key] = since
    op_rows = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
    live = fold(op_rows)
    found = first_epochs(live, Rows(cast("Any", None), op_rows), ["a"])
    assert dict(zip(live.column("_key").to_pylist(), found.to_list(), strict=True)) == expected
