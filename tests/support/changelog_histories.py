"""Strategies for valid changelogs, and their way into DataFrames and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from hypothesis import strategies as st

from tests.support.changelog_model import Row, State, printed, same
from tests.support.examples import examples

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage.engines.base import Engine

on_engines = examples(24)
"""A property whose every example is a job of an engine: fewer examples, each of many changelogs."""

NAMES = ("n.a", "v", "b`c")
KINDS = (pa.string(), pa.float64(), pa.int64())
numbers = st.sampled_from([None, 0.0, -0.0, float("nan"), -float("nan"), float("inf"), -float("inf"), 1.5, 5e-324])
images = st.tuples(st.sampled_from([None, "", "x"]), numbers, st.sampled_from([None, 0, 7]))
keys = st.sampled_from([b"", b"\x00", b"a", b"a\x00", b"\xff"])
states = st.dictionaries(keys, images)


def moves(epoch: int, old: State, new: State) -> list[Row]:
    """The rows of an epoch that lead from one state to another."""
    rows = []
    for key in sorted(old.keys() | new.keys()):
        left, right = old.get(key), new.get(key)
        both = left is not None and right is not None
        if both and same(left, right):
            continue
        rows += [Row(epoch, 2 if both else 1, key, f"c{epoch}", left)] if left is not None else []
        rows += [Row(epoch, 3 if both else 0, key, f"c{epoch}", right)] if right is not None else []
    return rows


@st.composite
def histories(draw) -> list[Row]:
    """A valid changelog of up to five epochs over a few keys."""
    state: State = {}
    rows: list[Row] = []
    for epoch, target in enumerate(draw(st.lists(states, max_size=5)), 1):
        rows += moves(epoch, state, target)
        kept = {key: image for key, image in target.items() if key not in state or not same(state[key], image)}
        state = {key: image for key, image in state.items() if key in target} | kept
    return rows


def table(rows: list[Row]) -> pa.Table:
    columns = {
        "_epoch": pa.array([row.epoch for row in rows], pa.int64()),
        "_op": pa.array([row.op for row in rows], pa.int8()),
        "_key": pa.array([row.key for row in rows], pa.binary()),
        "_cause": pa.array([row.cause for row in rows], pa.string()),
    }
    data = {name: pa.array([row.image[at] for row in rows], kind) for at, (name, kind) in enumerate(zip(NAMES, KINDS, strict=True))}
    return pa.table({**columns, **data})


def frame(engine: Engine, rows: list[Row]) -> DataFrame:
    return engine.from_arrow(table(rows))


def live_frame(engine: Engine, state: State) -> DataFrame:
    rows = [Row(1, 0, key, "", image) for key, image in state.items()]
    return frame(engine, rows).drop("_op", "_cause")


def collected(engine: Engine, delta: DataFrame) -> list[tuple]:
    """Op, key and printed image of each row of a delta, sorted."""
    return ops_of(engine.to_arrow(delta))


def ops_of(delta: pa.Table) -> list[tuple]:
    rows = delta.to_pylist()
    return sorted((row["_op"], row["_key"], printed(tuple(row[name] for name in NAMES))) for row in rows)


def collected_state(engine: Engine, live: DataFrame) -> dict:
    return state_of(engine.to_arrow(live))


def state_of(live: pa.Table) -> dict:
    rows = live.to_pylist()
    state = {row["_key"]: printed(tuple(row[name] for name in NAMES)) for row in rows}
    assert len(state) == len(rows), "a key is live more than once"
    return state


def together(batches: list[list[Row]]) -> list[Row]:
    """Many changelogs in one: the keys of each under its number."""
    return [row._replace(key=bytes([at]) + row.key) for at, rows in enumerate(batches) for row in rows]


def within(states_of: list[State]) -> State:
    return {bytes([at]) + key: image for at, state in enumerate(states_of) for key, image in state.items()}
