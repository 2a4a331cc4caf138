"""Rows of changed chunks that did not change, found by their keys."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from operators.source.diff.sides import unchanged
from tests.support.examples import examples

Image = tuple[str | None, float | None]
images = st.tuples(st.sampled_from(["a", "b", "", None]), st.sampled_from([0.0, -0.0, 1.5, float("nan"), None]))
SCHEMA = pa.schema([("_key", pa.binary()), ("_file", pa.string()), ("word", pa.string()), ("size", pa.float64())])


def table(rows: dict[int, Image]) -> pa.Table:
    """Rows under their keys, in this order."""
    columns: list[list[Any]] = [[bytes([key]) for key in rows], ["a.csv"] * len(rows), [word for word, _ in rows.values()], [size for _, size in rows.values()]]
    return pa.table([pa.array(values, kind.type) for values, kind in zip(columns, SCHEMA, strict=True)], SCHEMA)


@examples(400, 60)
@given(st.dictionaries(st.integers(0, 20), images), st.dictionaries(st.integers(0, 20), images), st.randoms())
def test_pairs_of_equal_keys_and_prints(old: dict[int, Image], new: dict[int, Image], chance: Any) -> None:
    kept = {key: old[key] for key in old if chance.random() < 0.6}
    order = chance.sample(sorted({**new, **kept}), len({**new, **kept}))
    now = {key: {**new, **kept}[key] for key in order}
    left, right = unchanged(table(old), table(now), ["_file", "word", "size"])
    keys = (list(old), list(now))
    assert [keys[0][at] for at in left] == [keys[1][at] for at in right]
    assert {keys[0][at] for at in left} == {key for key in old if key in now and repr(old[key]) == repr(now[key])}
