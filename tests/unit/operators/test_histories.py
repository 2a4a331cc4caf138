"""Outputs with a history, as text tables and against a plain model over random histories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from changelog.columns import EPOCH
from changelog.rows import Rows
from operators.core.operator import Operator
from operators.testing import Memory, bound, check
from tests.support.examples import examples
from tests.support.histories import Fact, Recording, by_time, in_order, printed, untimed

if TYPE_CHECKING:
    from storage.engines import Engine

COLUMNS = "no:int, thing:string, since:int, city:string, size:float, ended:bool"
INPUT = pa.schema(
    [
        ("_op", pa.int8()), ("_key", pa.binary()), ("_cause", pa.string()), ("no", pa.int64()), ("thing", pa.string()), ("since", pa.int64()), ("city", pa.string()),
        ("size", pa.float64()), ("ended", pa.bool_()),
    ]
)  # fmt: skip


def history(columns: str = COLUMNS, **settings: Any) -> Operator:
    exclude = ["no", "ended"] if columns == COLUMNS else []
    return bound("output", {"type": "csv", "path": "out.csv", "exclude": exclude, "history": {"key": ["thing"], **settings}}, columns, name="out")


def test_a_late_version_cuts_the_one_before_it(sail: Engine) -> None:
    check(sail, history("thing:string, since:int, city:string", valid_from="since"), """
        input  | op | key | thing | since | city
        before | +A | 1   | ann   | 10    | Rome
        before | +A | 2   | ann   | 30    | Oslo
        before | +A | 3   | bob   | 10    | Bern
        delta  | +A | 4   | ann   | 20    | Nice
        output | op | thing | since | city | valid_from | valid_to | is_current
        expect | -C | ann   | 10    | Rome | 10         | 30       | false
        expect | +C | ann   | 10    | Rome | 10         | 20       | false
        expect | +A | ann   | 20    | Nice | 20         | 30       | false
    """)  # fmt: skip


def test_a_begin_that_moves_is_another_row(sail: Engine) -> None:
    check(sail, history("thing:string, since:date, city:string", valid_from="since"), """
        input  | op | key | thing | since      | city
        before | +A | 1   | ann   | 2024-01-01 | Rome
        before | +A | 2   | ann   | 2024-03-01 | Oslo
        delta  | -C | 2   | ann   | 2024-03-01 | Oslo
        delta  | +C | 2   | ann   | 2024-03-15 | Oslo
        output | op | thing | valid_from | valid_to   | is_current
        expect | -C | ann   | 2024-01-01 | 2024-03-01 | false
        expect | +C | ann   | 2024-01-01 | 2024-03-15 | false
        expect | -R | ann   | 2024-03-01 |            | true
        expect | +A | ann   | 2024-03-15 |            | true
    """)  # fmt: skip


def test_a_row_without_a_time_is_a_reject(sail: Engine) -> None:
    check(sail, history("thing:string, since:int, city:string", valid_from="since"), """
        input  | op | key | thing | since | city
        before | +A | 1   | ann   | 10    | Rome
        delta  | +A | 2   | ann   |       | Oslo
        output | op | thing | city | error
        expect | +A |       |      | null_event_time
        input  | op | key | thing | since | city
        delta  | -C | 2   | ann   |       | Oslo
        delta  | +C | 2   | ann   | 20    | Oslo
        output | op | thing | city | error
        expect | -C | ann   | Rome |
        expect | +C | ann   | Rome |
        expect | +A | ann   | Oslo |
        expect | -R |       |      | null_event_time
    """)  # fmt: skip


def test_what_says_when_a_thing_ended_may_fail(sail: Engine) -> None:
    check(sail, history("thing:string, since:int, city:string", valid_from="since", deleted="city.to_int() > 5"), """
        input  | op | key | thing | since | city
        before | +A | 1   | ann   | 10    | 3
        delta  | +A | 2   | ann   | 20    | Oslo
        output | op | thing | error
        expect | +A |       | type_coercion_failure
    """)  # fmt: skip


def test_columns_are_named_as_they_come_or_as_they_are_written(sail: Engine) -> None:
    written = {"type": "csv", "path": "out.csv", "mapping": {"who": "thing", "valid_from": "since"}}
    for key, time in (("thing", "since"), ("who", "valid_from")):
        operator = bound("output", {**written, "history": {"key": [key], "valid_from": time, "deleted": "who == 'x'"}}, "thing:string, since:int, n:int")
        assert list(operator.output.data) == ["who", "valid_from", "n", "valid_to", "is_current"]


facts = st.builds(
    Fact,
    st.sampled_from(["a", "b", None]),
    st.sampled_from([1, 2, 3, 4, None]),
    st.tuples(st.sampled_from(["x", "y", None]), st.sampled_from([0.0, -0.0, float("nan"), None])),
    st.sampled_from([False, False, True, None]),
)
steps = st.lists(st.dictionaries(st.integers(1, 6), facts, max_size=6), min_size=2, max_size=5)


def delta(old: Mapping[int, Fact], new: Mapping[int, Fact]) -> pa.Table:
    """The op rows from some facts to others."""
    rows = []
    for key in sorted({*old, *new}):
        before, after = old.get(key), new.get(key)
        if before is not None and after is not None and printed((before.thing, before.since, before.said, before.ended)) == printed((after.thing, after.since, after.said, after.ended)):
            continue
        both = before is not None and after is not None
        rows += [] if before is None else [(2 if both else 1, key, before)]
        rows += [] if after is None else [(3 if both else 0, key, after)]
    values = [[op, bytes([key]), "ingest", key, fact.thing, fact.since, *fact.said, fact.ended] for op, key, fact in rows]
    return pa.table([pa.array(column, field.type) for column, field in zip(zip(*values, strict=True) if values else [[]] * len(INPUT), INPUT, strict=True)], INPUT)


def step(memory: Memory, before: Mapping[int, Fact], now: Mapping[int, Fact]) -> None:
    """A run; an operator is not asked where nothing changed."""
    changes = delta(before, now)
    if changes.num_rows or not memory.epoch:
        memory.answer([changes])
    else:
        memory.epoch += 1


def live_and_rejected(memory: Memory) -> tuple[list[dict[str, Any]], list[bytes]]:
    """The live rows in the order of the file, and the keys of rejects."""
    assert memory.own is not None
    rows = memory.live_own().on_driver().as_table().sort_by("_key").to_pylist()
    bad = [row["_key"] for row in rows if row.get("_error") is not None]
    return [row for row in rows if row.get("_error") is None], bad


@given(steps=steps)
@examples(32)
def test_by_event_time(sail: Engine, steps: list[dict[int, Fact]]) -> None:
    memory, before = Memory(sail, history(valid_from="since", deleted="ended")), {}
    for now in steps:
        step(memory, before, now)
        rows, bad = live_and_rejected(memory)
        found = [(row["thing"], row["since"], (row["city"], row["size"]), row["valid_from"], row["valid_to"]) for row in rows]
        assert printed(tuple(found)) == printed(tuple(in_order(by_time(now))))
        assert all(row["is_current"] == (row["valid_to"] is None) for row in rows)
        assert bad == [bytes([key]) + b"!" for key in untimed(now)]
        before = now


@pytest.mark.parametrize("timed", [False, True])
@given(steps=steps)
@examples(32)
def test_by_recording(sail: Engine, timed: bool, steps: list[dict[int, Fact]]) -> None:
    more = {"valid_from": "since"} if timed else {}
    memory, before, model = Memory(sail, history(recorded="epoch", deleted="ended", **more)), {}, Recording(timed)
    begin, end = ("recorded_from", "recorded_to") if timed else ("valid_from", "valid_to")
    for epoch, now in enumerate(steps, 1):
        step(memory, before, now)
        model.tell(epoch, now)
        found = []
        for row in live_and_rejected(memory)[0]:
            bounds = (row["valid_from"], row["valid_to"]) if timed else (None, None)
            found.append(((row["thing"], row["since"], (row["city"], row["size"]), *bounds), row[begin], row[end]))
            assert row["is_current"] == (row[end] is None and bounds[1] is None)
        assert printed(tuple(found)) == printed(tuple((row.version, row.begin, row.end) for row in model.in_order()))
        before = now


@given(steps=steps)
@examples(24)
def test_a_change_of_logic_begins_where_a_correction_would(sail: Engine, steps: list[dict[int, Fact]]) -> None:
    memory, model = Memory(sail, history(recorded="epoch", deleted="ended")), Recording(False)
    for epoch, now in enumerate(steps, 1):
        before = steps[epoch - 2] if epoch > 1 else {}
        if epoch < len(steps):
            step(memory, before, now)
        else:  # the rows of the input are all others by logic
            memory.epoch = epoch
            memory.inputs = [delta({}, now).append_column(EPOCH, pa.array([epoch] * len(now), pa.int64()))]
            made = memory.operator.rebuild(memory).consolidated().on_driver().as_table()
            assert memory.own is not None
            dated = made.append_column(EPOCH, pa.array([epoch] * made.num_rows, pa.int64()))
            memory.own = pa.concat_tables([memory.own, dated.select(memory.own.column_names).cast(memory.own.schema)])
        model.tell(epoch, now)
    found = [((row["thing"], row["since"], (row["city"], row["size"]), None, None), row["valid_from"], row["valid_to"]) for row in live_and_rejected(memory)[0]]
    assert printed(tuple(found)) == printed(tuple((row.version, row.begin, row.end) for row in model.in_order()))


def test_a_history_of_another_kind_begins_again(sail: Engine) -> None:
    facts = {1: Fact("a", 1, ("x", None))}
    memory = Memory(sail, history(recorded="epoch"))
    memory.answer([delta({}, facts)])
    memory.operator, memory.epoch = history(valid_from="since", recorded="epoch"), 2
    prior = memory.own
    assert prior is not None
    memory.own = prior.append_column("recorded_from", pa.nulls(1, pa.int64())).append_column("recorded_to", pa.nulls(1, pa.int64())).append_column("_error", pa.nulls(1, pa.string()))
    made = memory.operator.rebuild(memory).consolidated().on_driver().as_table().to_pylist()
    assert sorted((row["_op"], row["valid_from"], row["recorded_from"]) for row in made) == [(0, 1, 2), (1, 1, None)]


def test_a_first_step_may_have_no_rows(sail: Engine) -> None:
    memory = Memory(sail, history(recorded="epoch"))
    assert memory.answer([delta({}, {})]).num_rows == 0
    assert isinstance(memory.live_own(), Rows)
