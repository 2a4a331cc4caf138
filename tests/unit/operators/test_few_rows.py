"""Few rows are compared and told apart on the driver; an engine says the same of them."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from changelog.rows import Rows
from errata.state.suppressed_rows import readmitting, truth
from operators.core.row_type import Status
from operators.source.diff.sides import numbered
from tests.support.changelog_histories import NAMES, images, on_engines
from tests.support.changelog_model import printed

if TYPE_CHECKING:
    from storage.engines import Engine

KINDS = pa.schema([(NAMES[0], pa.string()), (NAMES[1], pa.float64()), (NAMES[2], pa.int64())])
SCHEMA = pa.schema([("_op", pa.int8()), ("_key", pa.binary()), ("_cause", pa.string()), ("_error", pa.string()), ("_status", pa.int8()), *KINDS])


def image_table(rows: list[tuple[Any, ...]], **columns: pa.Array) -> pa.Table:
    return pa.table({**columns, **{field.name: pa.array([row[at] for row in rows], field.type) for at, field in enumerate(KINDS)}})


@given(old=st.lists(images, max_size=6), new=st.lists(images, max_size=6))
def test_numbers_are_the_same_where_images_print_the_same(old: list[tuple[Any, ...]], new: list[tuple[Any, ...]]) -> None:
    before, now = numbered(image_table(old), image_table(new), NAMES)
    numbers = [*before.tolist(), *now.tolist()]
    for (one, image), (other, another) in combinations(zip(numbers, [*old, *new], strict=True), 2):
        assert (one == other) == (printed(image) == printed(another))


said = st.sampled_from([(None, None), ('{"category":"bad"}', None), ('{"by": "a:00"}', Status.SUPPRESSED), ('{"by": "b:01"}', Status.COUNTED)])
live_rows = st.dictionaries(st.binary(min_size=1, max_size=3), st.tuples(said, images), max_size=8)


def live_table(rows: dict[bytes, Any]) -> pa.Table:
    keys = [key + b"!" if error else key for key, ((error, _), _) in rows.items()]
    own = {"_error": [error for (error, _), _ in rows.values()], "_status": pa.array([status for (_, status), _ in rows.values()], pa.int8())}
    return image_table([image for _, image in rows.values()], _key=pa.array(keys, pa.binary()), **own).cast(pa.schema([SCHEMA.field(name) for name in SCHEMA.names if name not in ("_op", "_cause")]))


def in_words(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.select(sorted(rows.column_names)).to_pylist()))


@on_engines
@given(rows=live_rows)
def test_the_truth_is_that_of_an_engine(sail: Engine, rows: dict[bytes, Any]) -> None:
    live = live_table(rows)
    found = truth(Rows(sail, live))
    assert found.are_here
    assert in_words(found.as_table()) == in_words(truth(Rows(sail, frame=sail.from_arrow(live))).as_table())


@on_engines
@given(rows=live_rows, gone=st.integers(0, 8))
def test_records_are_tried_again_as_by_an_engine(sail: Engine, rows: dict[bytes, Any], gone: int) -> None:
    held = live_table({key: images for key, images in rows.items() if images[0][1] is not None})
    bare = truth(Rows(sail, held)).as_table().slice(0, gone)
    delta = bare.append_column("_op", pa.array([1] * bare.num_rows, pa.int8())).append_column("_cause", pa.array(["correction"] * bare.num_rows, pa.string())).select(SCHEMA.names)
    here = readmitting(Rows(sail, delta), Rows(sail, held)).consolidated()
    there = readmitting(Rows(sail, frame=sail.from_arrow(delta)), Rows(sail, frame=sail.from_arrow(held))).consolidated()
    assert (here.are_here, there.are_here) == (True, False)
    assert in_words(here.as_table()) == in_words(there.as_table())
