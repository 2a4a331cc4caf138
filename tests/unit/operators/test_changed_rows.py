"""Windows over large partitions: only the rows that a change can reach are compared, and the rows are what one full run gives."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from changelog.rows import Limits
from operators.core.operator import INEXACT_SUM
from operators.testing import Memory, bound
from operators.transform.window.operator import AnalyticTransform
from tests.support.operator_histories import live, op_rows

if TYPE_CHECKING:
    from storage.engines import Engine

ITEMS = pa.schema([("_op", pa.int8()), ("_key", pa.binary()), ("_cause", pa.string()), ("g", pa.string()), ("o", pa.int64()), ("v", pa.float64())])
Record = tuple[str | None, int | None, float | None]
Records = dict[int, Record]
PROGRAMS = {
    "running": "emit total = $window.sum(v)\nemit mean = $window.avg(v)\nemit place = $window.row_number()\nemit n = $window.count()\nemit low = $window.min(v)",
    "ranks": "emit place = $window.rank()\nemit dense = $window.dense_rank()\nemit first = $window.first_value(v)\nemit last = $window.last().v",
    "around": "emit before = $window.lag(2).v\nemit behind = $window.lead(3).v",
    "ahead": "emit behind = $window.lead(1).v\nemit total = $window.sum(v)",
    "back": "emit before = $window.lag(1).v",
    "lists": "emit all = $window.collect(v)",
    "filtered": "emit place = $window.row_number()\nfilter place > 3",
    "failing": "emit before = $window.lag(1).v\nemit share = 1 / (v - $window.lag(1).v)",
    "arguments": "emit total = $window.sum(1 / v)",
    "failing layers": "emit before = $window.lag(1).v\nemit shares = $window.sum(1 / before)",
    "shifting layers": "let a = $window.lag(5).v\nlet q = 1 / a\nemit z = $window.lag(1).q\nlet b = $window.lag(1).v\nlet c = b + 100\nemit y = $window.lag(4).c",
    "layers": "emit total = $window.sum(v)\nemit step = total - $window.lag(1).v",
}
SEVERAL = ("failing layers", "shifting layers")
"""Programs whose windows read other windows: all rows of their changed partitions are computed."""
ORDERS: dict[str, list[Any]] = {
    "up": [{"field": "o"}],
    "down": [{"field": "o", "order": "desc", "null_order": "first"}],
    "two": [{"field": "v", "order": "desc"}, {"field": "o", "null_order": "first"}],
    "source": [],
}


def record(chance: random.Random) -> Record:
    """A record of one of three partitions, with ties and nulls in its order."""
    return chance.choice(["a", "b", None]), chance.choice([None, *range(12)]), chance.choice([None, 0.0, -0.0, 0.1, 0.2, 0.3, 1e9, 2.0, 5.0])


def histories(chance: random.Random) -> Sequence[Records]:
    """Records, and what becomes of them: changes at the head, in the middle and at the tail of partitions, moves between them, rows that go."""
    records: Records = {number: record(chance) for number in range(60)}
    of_a = sorted((number for number, (g, _, _) in records.items() if g == "a"), key=lambda number: (records[number][1] is None, records[number][1] or 0, number))
    steps = [records]
    for step in (
        {of_a[-1]: None},  # the last row goes
        {of_a[0]: ("b", 3, 2.0)},  # the first one moves to another partition
        {of_a[len(of_a) // 2]: ("a", None, 7.0)},
        {100: ("a", 11, 1.5), 101: (None, 99, 1e-9), 102: ("new", 1, 1.0)},
        {number: record(chance) for number in chance.sample(sorted(records), 4)},
        dict.fromkeys((100, 102)),
    ):
        after = dict(steps[-1]) | {number: values for number, values in step.items() if values is not None}
        steps.append({number: values for number, values in after.items() if step.get(number, values) is not None})
    return steps


QUICK = {("running", "up"), ("failing layers", "up"), ("shifting layers", "down"), ("ranks", "two"), ("around", "down"), ("failing", "source")}
PAIRS = [pytest.param(program, order, marks=() if (program, order) in QUICK else pytest.mark.deep) for program in PROGRAMS for order in ORDERS]


@pytest.mark.parametrize("many", [False, True], ids=["held rows", "other values"])
@pytest.mark.parametrize(("program", "order"), PAIRS)
def test_the_rows_are_what_one_full_run_gives(sail: Engine, monkeypatch: pytest.MonkeyPatch, program: str, order: str, many: bool) -> None:
    kept = AnalyticTransform.of_reached
    reached = list[int]()

    def noted(self: AnalyticTransform, context: Any) -> Any:
        reached.append(1)
        return kept(self, context)

    monkeypatch.setattr(AnalyticTransform, "of_reached", noted)
    monkeypatch.setattr("operators.core.following.exceed", lambda rows, most, held: False)
    monkeypatch.setattr("operators.transform.window.operator.require_share", lambda *counts: None)
    monkeypatch.setattr("operators.transform.window.operator.are_many", lambda context: many)
    window = {"partition_by": ["g"], "sort_by": ORDERS[order]}
    operator = bound("transform", {"analytic_window": window, "cxl": PROGRAMS[program]}, "g:string, o:int, v:float")
    memory, before = Memory(sail, operator), dict[int, Record]()
    steps = histories(random.Random(f"{program} {order}"))
    for number, records in enumerate(steps):
        memory.answer([op_rows(ITEMS, before, records)])
        before = records
        if number % 3 == 0 or number == len(steps) - 1:
            whole = Memory(sail, operator)
            whole.answer([op_rows(ITEMS, {}, records)])
            assert live(memory) == live(whole), number
    assert len(reached) == (0 if program in SEVERAL else len(steps) - 1)


@pytest.mark.parametrize("many", [False, True], ids=["held rows", "other values"])
def test_a_sum_that_columns_do_not_hold_is_noticed_ahead_of_the_change(sail: Engine, monkeypatch: pytest.MonkeyPatch, many: bool) -> None:
    monkeypatch.setattr("operators.transform.window.operator.are_many", lambda context: many)
    operator = bound("transform", {"analytic_window": {"partition_by": ["g"], "sort_by": [{"field": "o"}]}, "cxl": "emit total = $window.sum(v)"}, "g:string, o:int, v:float")
    memory, records = Memory(sail, operator), dict[int, Record]()
    steps: list[Records] = [{number: ("a", number, 1e-40) for number in range(4)}, {4: ("a", 4, 1e9)}]
    made = []
    for step in steps:
        made.append(memory.answer([op_rows(ITEMS, records, records | step)]))
        records |= step
    errors = [[row["_error"] for row in answer.to_pylist() if row["_error"] is not None] for answer in made]
    assert errors[0] == []
    assert any(INEXACT_SUM in error for error in errors[1])


@pytest.mark.parametrize(("partitions", "held", "follows"), [(2, 1000, True), (2, 0, False), (15, 1000, False)])
def test_partitions_with_many_of_the_rows_are_computed_as_a_whole(sail: Engine, monkeypatch: pytest.MonkeyPatch, partitions: int, held: int, follows: bool) -> None:
    """Changes of two of 30 partitions are followed where the values that differ are held, changes of half of them never."""
    monkeypatch.setattr("operators.transform.window.operator.are_many", lambda context: True)
    rebuilt = list[int]()
    kept = AnalyticTransform.rebuild
    monkeypatch.setattr(AnalyticTransform, "rebuild", lambda self, *context: rebuilt.append(1) or kept(self, *context))
    operator = bound("transform", {"analytic_window": {"partition_by": ["g"], "sort_by": [{"field": "o"}]}, "cxl": "emit place = $window.row_number()"}, "g:string, o:int, v:float")
    memory = Memory(sail, operator, limits=Limits(held_rows=1000, narrow_rows=held), few=False)
    before: Records = {number: (f"g{number % 30}", number, float(number)) for number in range(300)}
    after = before | {number: (f"g{number}", -1, 0.5) for number in range(partitions)}
    memory.answer([op_rows(ITEMS, {}, before)])
    memory.answer([op_rows(ITEMS, before, after)])
    whole = Memory(sail, operator)
    whole.answer([op_rows(ITEMS, {}, after)])
    assert (live(memory), bool(rebuilt)) == (live(whole), not follows)
