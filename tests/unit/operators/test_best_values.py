"""Best values of groups, followed through random histories and compared with a plain Python model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from changelog.rows import Limits
from operators.aggregate import first_lists
from operators.testing import Memory, bound
from tests.support.examples import examples

if TYPE_CHECKING:
    from storage.engines import Engine

CALLS = {"low": "min", "high": "max", "one": "first", "end": "last", "some": "any"}
TYPES = {"float": pa.float64(), "int": pa.int64(), "string": pa.string(), "date": pa.date32(), "bool": pa.bool_(), "decimal(9,2)": pa.decimal128(9, 2)}
VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "float": st.sampled_from([1.5, 2.0, -3.25, 0.0, -0.0, math.nan, math.inf, -math.inf]),
    "int": st.integers(-3, 3),
    "string": st.sampled_from(["", "a", "b", "ab", "ä", "\x00", "z" * 30]),
    "date": st.sampled_from([date(2026, 1, day) for day in range(1, 6)] + [date(1, 1, 1)]),
    "bool": st.booleans(),
    "decimal(9,2)": st.sampled_from([Decimal("-1.50"), Decimal("0.00"), Decimal("2.25"), Decimal("1234567.89")]),
}
SUMMED = ("float", "int")
"""The types whose values are added up too: sums and best values of one argument share a column and a count."""
Row = tuple[str | None, Any]
"""A group and a value."""


def rank(value: Any) -> tuple[bool, Any]:
    """The rank that orders values of one type: NaN is the greatest."""
    return (True, 0) if is_nan(value) else (False, value)


def model(rows: Mapping[bytes, Row], kind: str) -> dict[str | None, dict[str, Any]]:
    """The values of each group. A group with a NaN among them is a reject."""
    found: dict[str | None, list[Any]] = {}
    for _, (group, value) in sorted(rows.items()):
        found.setdefault(group, []).append(value)
    made = {group: _results(values) | (_total(values) if kind in SUMMED else {}) for group, values in found.items()}
    return {group: results for group, results in made.items() if not any(map(is_nan, results.values()))}


def is_nan(value: Any) -> bool:
    """Whether a value is the float that equals nothing."""
    return isinstance(value, float) and math.isnan(value)


def _results(values: list[Any]) -> dict[str, Any]:
    known = [value for value in values if value is not None]
    one: Callable[[Any], Any] = lambda value: value + 0.0 if isinstance(value, float) else value  # noqa: E731  # zeros that are compared have no sign
    extremes = {"low": one(min(known, key=rank)), "high": one(max(known, key=rank))} if known else {"low": None, "high": None}
    return {**extremes, "one": values[0], "end": values[-1], "some": known[0] if known else None, "n": len(known), "rows": len(values)}


def _total(values: list[Any]) -> dict[str, Any]:
    known = [value for value in values if value is not None]
    return {"total": sum(known) + 0 if known else None}


@st.composite
def histories(draw: st.DrawFn, kind: str) -> list[dict[bytes, Row | None]]:
    """Steps, each with the rows that it sets by key; None takes a row back."""
    values, groups = st.none() | VALUES[kind], st.sampled_from(["x", "y", None])
    keys = st.integers(0, 11).map(lambda number: b"k%02d" % number)
    return draw(st.lists(st.dictionaries(keys, st.none() | st.tuples(groups, values), max_size=8), min_size=1, max_size=7))


def deltas(live: dict[bytes, Row], step: Mapping[bytes, Row | None], kind: str) -> pa.Table:
    """The op rows of a step; `live` follows it."""
    lines: list[tuple[int, bytes, Row]] = []
    for key, new in step.items():
        old = live.pop(key, None)
        if new is not None:
            live[key] = new
        if old is not None:
            lines.append((1 if new is None else 2, key, old))
        if new is not None:
            lines.append((0 if old is None else 3, key, new))
    names = {"_op": pa.int8(), "_key": pa.binary(), "_cause": pa.string(), "g": pa.string(), "v": TYPES[kind]}
    rows = [(op, key, "ingest", *row) for op, key, row in lines]
    return pa.table({name: pa.array([row[at] for row in rows], type_) for at, (name, type_) in enumerate(names.items())})


def in_words(value: Any) -> Any:
    """A value that is equal exactly where it prints the same."""
    return repr(value) if isinstance(value, float) else value


def followed(engine: Engine, kind: str, history: list[dict[bytes, Row | None]], limits: Limits, *, few: bool) -> None:
    """Assert that the folded answers of an aggregate are the model's after each step."""
    calls = CALLS | ({"total": "sum"} if kind in SUMMED else {})
    program = "\n".join([*(f"emit {name} = {call}(v)" for name, call in calls.items()), "emit n = count(v)", "emit rows = count(*)"])
    operator = bound("aggregate", {"group_by": ["g"], "cxl": program}, f"g:string, v:{kind}")
    memory, live, shown = Memory(engine, operator, limits, few), dict[bytes, Row](), dict[str | None, dict[str, Any]]()
    for step in history:
        if not any(key in live or row for key, row in step.items()):
            continue  # no delta, no answer
        answer = memory.answer([deltas(live, step, kind)])
        accepted = [row for row in answer.to_pylist() if row["_error"] is None]
        for row in sorted(accepted, key=lambda row: row["_op"] not in (1, 2)):
            if row["_op"] in (1, 2):
                del shown[row["g"]]
            else:
                shown[row["g"]] = {name: in_words(row[name]) for name in (*calls, "n", "rows")}
        assert shown == {group: {name: in_words(value) for name, value in values.items()} for group, values in model(live, kind).items()}


@pytest.mark.parametrize("few", [True, False], ids=["driver", "engine"])
@pytest.mark.parametrize("kind", list(TYPES))
def test_best_values_are_those_of_a_model(sail: Engine, kind: str, few: bool) -> None:
    @examples(48, 4, deadline=None)
    @given(history=histories(kind), size=st.sampled_from([1, 2, 3, 16]), sorted_rows=st.sampled_from([0, 1_000]), small=st.sampled_from([0, 10_000]), held=st.sampled_from([2, 1_000]))
    def check(history: list[dict[bytes, Row | None]], size: int, sorted_rows: int, small: int, held: int) -> None:
        followed(sail, kind, history, Limits(small_rows=small, held_rows=held, best_values=size, best_bytes=40, sorted_rows=sorted_rows), few=few)

    check()


@st.composite
def many_first(draw: st.DrawFn, kind: str) -> list[dict[bytes, Row | None]]:
    """A history whose first step has many rows, so that only its best values are sorted."""
    values, keys = st.none() | VALUES[kind], st.integers(0, 60).map(lambda number: b"k%02d" % number)
    first = draw(st.dictionaries(keys, st.tuples(st.sampled_from(["x", "x", "y"]), values), min_size=30, max_size=50))
    return [dict(first), *draw(histories(kind))]


@pytest.mark.parametrize("kind", ["float", "int", "date", "decimal(9,2)"])
def test_a_first_run_may_sort_the_best_values_alone(sail: Engine, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    for name, value in {"SAMPLED": 10, "_FEWEST": 1, "_SPARE": 1, "ROWS_AN_ENTRY": 1}.items():
        monkeypatch.setattr(first_lists, name, value)
    bounds: list[object] = []
    find = first_lists._bound
    monkeypatch.setattr(first_lists, "_bound", lambda *given: bounds.append(find(*given)) or bounds[-1])

    @examples(24, 3, deadline=None)
    @given(history=many_first(kind), size=st.sampled_from([2, 3]))
    def check(history: list[dict[bytes, Row | None]], size: int) -> None:
        followed(sail, kind, history, Limits(small_rows=0, best_values=size), few=False)

    check()
    assert any(bound is not None for bound in bounds) == (kind != "decimal(9,2)")
