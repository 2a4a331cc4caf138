"""When a node computes all rows in place of following a delta."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from changelog.rows import Limits
from operators.core import following
from operators.core.following import Outgrown
from operators.core.operator import Operator
from operators.testing import Memory, bound

if TYPE_CHECKING:
    from storage.engines import Engine

ITEMS = pa.schema([("_op", pa.int8()), ("_key", pa.binary()), ("_cause", pa.string()), ("id", pa.int64()), ("g", pa.int64())])
CORRECTED, CAME = ((2, 3), (0,))


def rows(numbers: Sequence[int], groups: int, ops: Sequence[int] = CAME) -> pa.Table:
    """Op rows of records by number, each in a group; a group is written as a number below `groups`."""
    made = [(op, number.to_bytes(4, "big"), "ingest", number, number % groups + (op == 3) * groups) for number in numbers for op in ops]
    return pa.table([pa.array(column, kind.type) for column, kind in zip(zip(*made, strict=True) if made else [[]] * len(ITEMS), ITEMS, strict=True)], ITEMS)


def way(monkeypatch: pytest.MonkeyPatch, memory: Memory, deltas: Sequence[pa.Table]) -> str:
    """How a node answers: `followed`, `by counts`, or `on the way` where it turned to all rows."""
    seen = ["followed"]
    kind, decided = type(memory.operator), following.are_too_many

    def are_too_many(operator: Operator, context: Any) -> bool:
        seen[:] = ["by counts"] if decided(operator, context) else seen
        return decided(operator, context)

    answer = kind.answer

    def answering(self: Operator, context: Any) -> Any:
        try:
            return answer(self, context)  # type: ignore[arg-type]  # the class of the operator
        except Outgrown:
            seen[:] = ["on the way"]
            raise

    with monkeypatch.context() as patch:
        patch.setattr(following, "are_too_many", are_too_many)
        patch.setattr(kind, "answer", answering)
        memory.answer(deltas)
    return seen[0]


NODES: Mapping[str, Operator] = {
    "distinct": bound("transform", {"cxl": "distinct by g"}, "id:int, g:int"),
    "chain": bound("transform", {"cxl": "distinct by g\ndistinct by id"}, "id:int, g:int"),
    "collect": bound("aggregate", {"group_by": ["g"], "cxl": "emit ids = collect(id)"}, "id:int, g:int"),
    "sums": bound("aggregate", {"group_by": ["g"], "cxl": "emit total = sum(id)"}, "id:int, g:int"),
    "least": bound("aggregate", {"group_by": ["g"], "cxl": "emit low = min(id)"}, "id:int, g:int"),
    "window": bound("transform", {"analytic_window": {"partition_by": ["g"], "sort_by": [{"field": "id"}]}, "cxl": "emit n = $window.row_number()"}, "id:int, g:int"),
}


@pytest.mark.parametrize(
    ("node", "changed", "expected"),
    [
        ("distinct", range(5), "followed"),
        ("distinct", range(0, 400, 2), "by counts"),  # 400 op rows for 400 live rows
        ("distinct", range(95), "on the way"),  # 95 of 200 keys
        ("collect", range(70), "followed"),
        ("collect", range(95), "on the way"),
        ("window", range(70), "followed"),
        ("window", range(95), "on the way"),
        ("chain", range(1), "followed"),
        ("chain", range(5), "by counts"),
        ("sums", range(0, 400, 2), "followed"),
        ("least", range(300), "followed"),  # the lists of most groups run out, which takes one pass over the input
    ],
)
def test_counts_decide(sail: Engine, monkeypatch: pytest.MonkeyPatch, node: str, changed: range, expected: str) -> None:
    memory = Memory(sail, NODES[node])
    memory.answer([rows(range(400), 200)])
    assert way(monkeypatch, memory, [rows(changed, 200, CORRECTED)]) == expected


@pytest.mark.parametrize(
    ("drivers", "items", "expected"),
    [
        (CORRECTED, {}, "followed"),
        ((), {1: CORRECTED}, "followed"),  # 2 drivers
        ((), dict.fromkeys(range(30), CORRECTED), "by counts"),  # 60 op rows for 200 live rows
        ((), dict.fromkeys(range(200, 250), CAME), "followed"),  # no driver has these keys
        ((), dict.fromkeys((200, 401, 601), CAME), "followed"),
    ],
)
def test_build_rows_that_lead_to_many_drivers(sail: Engine, monkeypatch: pytest.MonkeyPatch, drivers: Sequence[int], items: Mapping[int, Sequence[int]], expected: str) -> None:
    config = {"where": "l.g == r.g", "match": "first", "propagate_ck": "driver", "cxl": "emit id = l.id\nemit other = r.id"}
    memory = Memory(sail, bound("combine", config, "id:int, g:int", "id:int, g:int", qualifiers=("l", "r")), Limits(small_rows=100))
    memory.answer([rows(range(400), 200), rows(range(200), 400)])
    build = pa.concat_tables([rows([], 400), *(rows([one], 400, ops) for one, ops in items.items())])
    assert way(monkeypatch, memory, [rows([3], 200, drivers) if drivers else rows([], 200), build]) == expected


def test_a_build_row_that_every_driver_meets_is_seen_on_the_way(sail: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"where": "l.g == r.g", "match": "first", "propagate_ck": "driver", "cxl": "emit id = l.id\nemit other = r.id"}
    memory = Memory(sail, bound("combine", config, "id:int, g:int", "id:int, g:int", qualifiers=("l", "r")), Limits(small_rows=100))
    memory.answer([rows(range(400), 4), rows(range(100), 1000)])
    assert way(monkeypatch, memory, [rows([], 4), rows([2], 1000, CORRECTED)]) == "on the way"


def test_new_build_rows_that_lead_to_new_drivers_are_followed(sail: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"where": "l.g == r.g", "match": "first", "propagate_ck": "driver", "cxl": "emit id = l.id\nemit other = r.id"}
    memory = Memory(sail, bound("combine", config, "id:int, g:int", "id:int, g:int", qualifiers=("l", "r")), Limits(small_rows=100))
    memory.answer([rows(range(400), 200), rows(range(100), 1000)])
    new_drivers = rows(range(1200, 1300), 1000)  # a quarter as many as there were, of groups that came with them
    assert way(monkeypatch, memory, [new_drivers, rows(range(200, 300), 1000)]) == "followed"


def test_a_program_that_reads_the_clock_always_follows(sail: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory(sail, bound("transform", {"cxl": "emit at = now\ndistinct by g"}, "id:int, g:int"))
    memory.answer([rows(range(400), 200)])
    assert way(monkeypatch, memory, [rows(range(0, 400, 2), 200, CORRECTED)]) == "followed"


@pytest.mark.parametrize(("held", "count", "most", "expected"), [(10, 30, 5, True), (10, 30, 20, True), (10, 30, 40, False)])
def test_rows_in_the_engine_are_counted_where_nothing_else_tells(sail: Engine, held: int, count: int, most: float, expected: bool) -> None:
    memory = Memory(sail, NODES["distinct"])
    found = memory.rows(sail.from_arrow(pa.table({"n": list(range(count))})))
    assert following.exceed(found, most, held) == expected
