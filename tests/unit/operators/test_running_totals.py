"""Running totals in the tasks of an engine, and by its own window functions, are the sums of each frame."""

from __future__ import annotations

from functools import cmp_to_key

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxl.types.types import DATE, FLOAT, INT, STRING
from operators.transform.window.frames import Frames, Ordering
from operators.transform.window.running_totals import with_running_totals
from tests.support.changelog_histories import on_engines

numbers = st.none() | st.integers(-(2**62), 2**62)
TYPES = {"g": pa.int64(), "^.*$": pa.string(), "i": pa.int64(), "f": pa.float64(), "s": pa.string(), "d": pa.date32(), "v": pa.int64(), "w": pa.int64()}
rows = st.fixed_dictionaries({
    "g": st.none() | st.integers(0, 2), "^.*$": st.none() | st.sampled_from(["", "a"]),
    "i": st.none() | st.integers(-1, 1), "f": st.none() | st.sampled_from([-1.5, -0.0, 0.0, 2.0]), "s": st.none() | st.sampled_from(["", "a", "ab", "é"]),
    "d": st.none() | st.dates(), "v": numbers, "w": numbers.map(lambda value: value or 0),
})  # fmt: skip
orders = st.lists(st.sampled_from([("i", INT), ("f", FLOAT), ("s", STRING), ("d", DATE)]).flatmap(lambda one: st.builds(Ordering, *map(st.just, one), st.booleans(), st.booleans())), max_size=3)


def precedes(one, other, order):
    """Return a negative number where a row is ahead of another one, a positive one where it is behind."""
    for key in order:
        a, b = one[key.field], other[key.field]
        if a is None or b is None:
            found = 0 if a is b else -1 if (a is None) == key.nulls_first else 1
        else:
            found = ((a > b) - (a < b)) * (-1 if key.descending else 1)
        if found:
            return found
    return -1 if one["_key"] < other["_key"] else 1


def wrapped(value):
    """Return an int as 64 bits hold it."""
    return (value + 2**63) % 2**64 - 2**63


def expected(records, fields, order, name):
    """Return the sum of the values so far for each key; None without values."""
    found, so_far = {}, {}
    for record in sorted(records, key=cmp_to_key(lambda one, other: precedes(one, other, order))):
        values = so_far.setdefault(tuple(record[field] for field in fields), [])
        values += [] if record[name] is None else [record[name]]
        found[record["_key"]] = wrapped(sum(values)) if values else None
    return found


@pytest.mark.parametrize("in_tasks", [True, False])
@on_engines
@given(records=st.lists(rows, min_size=1, max_size=30), order=orders, fields=st.sampled_from([("g",), ("g", "^.*$")]))
def test_totals_are_the_sums_of_the_values_so_far(engine, in_tasks, records, order, fields):
    records = [record | {"_key": bytes([at * 7 % 31])} for at, record in enumerate(records)]
    table = pa.table({name: pa.array([record[name] for record in records], type_) for name, type_ in {**TYPES, "_key": pa.binary()}.items()})
    frame = with_running_totals(engine.from_arrow(table), ["v", "w"], Frames(tuple(order), fields=fields), in_tasks=in_tasks)
    found = engine.to_arrow(frame).to_pylist()
    for name in ("v", "w"):
        assert {row["_key"]: row[name] for row in found} == expected(records, fields, order, name)
    assert {row["_key"]: row["d"] for row in found} == {record["_key"]: record["d"] for record in records}
