"""The first rows of groups, in the tasks of an engine and by its own window functions."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.transform import first_rows
from operators.transform.first_rows import with_first_rows
from tests.support.changelog_histories import on_engines

TYPES = {"k": pa.int64(), "s": pa.string(), "reached": pa.bool_(), "v": pa.int64(), "_key": pa.binary()}
records = st.lists(st.tuples(st.none() | st.integers(0, 2), st.none() | st.sampled_from(["", "a"]), st.booleans(), st.none() | st.integers(0, 9)), min_size=1, max_size=40)


def rows_of(records):
    """Return rows with keys that do not ascend."""
    return [dict(zip(TYPES, (*record, bytes([at * 7 % 41])), strict=True)) for at, record in enumerate(records)]


def expected(rows, same):
    """Return the rows that stay, by key."""
    found = {}
    for row in sorted(rows, key=lambda row: row["_key"]):
        found.setdefault(tuple(row[name] for name in same) if row["reached"] else row["_key"], row)
    return sorted(found.values(), key=lambda row: row["_key"])


def table_of(rows):
    return pa.table({name: pa.array([row[name] for row in rows], type_) for name, type_ in TYPES.items()})


groups = st.sampled_from([(), ("k",), ("k", "s")])


@pytest.mark.parametrize("in_tasks", [True, False])
@on_engines
@given(records=records, same=groups)
def test_the_first_row_of_each_group_stays(engine, in_tasks, records, same):
    rows = rows_of(records)
    found = engine.to_arrow(with_first_rows(engine.from_arrow(table_of(rows)), same, "reached", in_tasks=in_tasks)).to_pylist()
    assert sorted(found, key=lambda row: row["_key"]) == expected(rows, same)


@given(records=records, size=st.integers(1, 10), gathered=st.integers(1, 2_000))
def test_it_stays_however_many_bytes_are_compared_at_once(records, size, gathered):
    rows = rows_of(records)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(first_rows, "COMPARED_BYTES", gathered)
        found = list(first_rows.Firsts(("k", "s"), "reached")(iter(table_of(rows).to_batches(max_chunksize=size))))
    assert sorted((row for batch in found for row in batch.to_pylist()), key=lambda row: row["_key"]) == expected(rows, ("k", "s"))
