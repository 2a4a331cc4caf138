"""`distinct` follows the first record of each key: the rows are what one full run gives, and live records are read only where a first record left its key."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from operators.testing import Memory, bound
from operators.transform.distinct import DistinctTransform
from tests.support.operator_histories import live, op_rows

if TYPE_CHECKING:
    from storage.engines import Engine

ITEMS = pa.schema([("_op", pa.int8()), ("_key", pa.binary()), ("_cause", pa.string()), ("g", pa.string()), ("v", pa.float64())])
Record = tuple[str | None, float]
Records = dict[int, Record]
PROGRAMS = {
    "plain": "distinct by g",
    "several fields": "emit g = g\nemit v = v\ndistinct",
    "inexact": "distinct by v",
    "failing ahead": "emit share = 6 / v\ndistinct by g",
    "failing behind": "distinct by g\nemit share = 6 / v",
    "filtered ahead": "filter v > 1\ndistinct by g",
    "filtered behind": "distinct by g\nfilter v > 1",
}
GROUPS = [None, "a", "b", "c", "d"]


def changed(records: Records, chance: random.Random) -> Records:
    """The records after some went, came or changed, among them first ones."""
    after = dict(records)
    for number in chance.sample(range(30), 6):
        if number in after and chance.random() < 0.4:
            del after[number]
        else:
            after[number] = (chance.choice(GROUPS), chance.choice([0.0, -0.0, 1.0, 2.0, 3.0]))
    return after


def read(operator: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with each reading of live records."""
    kept, found = DistinctTransform.of_affected, list[int]()

    def noted(self: DistinctTransform, context: Any, index: int, affected: Any) -> Any:
        found.append(index)
        return kept(self, context, index, affected)

    monkeypatch.setattr(type(operator), "of_affected", noted)
    return found


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_rows_are_what_one_full_run_gives(sail: Engine, program: str) -> None:
    chance = random.Random(program)
    operator = bound("transform", {"cxl": PROGRAMS[program]}, "g:string, v:float")
    memory, before = Memory(sail, operator), Records()
    records: Records = {number: (chance.choice(GROUPS), chance.choice([0.0, 1.0, 2.0])) for number in range(0, 30, 3)}
    for _ in range(8):
        memory.answer([op_rows(ITEMS, before, records)])
        whole = Memory(sail, operator)
        whole.answer([op_rows(ITEMS, {}, records)])
        assert live(memory) == live(whole)
        before, records = records, changed(records, chance)


@pytest.mark.parametrize(
    ("change", "reads"),
    [
        ({5: ("a", 1.0)}, False),  # behind the first one
        ({5: ("new", 1.0)}, False),  # a new key
        ({1: ("a", 1.0)}, False),  # ahead of it
        ({2: ("a", 9.0)}, False),  # the first one, corrected
        ({4: None}, False),  # another one goes
        ({2: None}, True),  # the first one goes
        ({2: ("b", 1.0)}, True),  # it gets another key
        ({2: ("b", 1.0), 1: ("a", 1.0)}, True),
    ],
)
def test_live_records_are_read_where_the_first_one_left(sail: Engine, monkeypatch: pytest.MonkeyPatch, change: dict[int, Record | None], reads: bool) -> None:
    operator = bound("transform", {"cxl": "distinct by g"}, "g:string, v:float")
    memory, found = Memory(sail, operator), read(operator, monkeypatch)
    records: Records = {2: ("a", 1.0), 3: ("b", 1.0), 4: ("a", 2.0), **{number: (str(number), 1.0) for number in range(10, 30)}}
    memory.answer([op_rows(ITEMS, {}, records)])
    after = {number: values for number, values in {**records, **change}.items() if values is not None}
    memory.answer([op_rows(ITEMS, records, after)])
    assert bool(found) == reads
    whole = Memory(sail, operator)
    whole.answer([op_rows(ITEMS, {}, after)])
    assert live(memory) == live(whole)
