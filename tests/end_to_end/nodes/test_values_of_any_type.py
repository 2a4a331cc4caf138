"""Values of type any as groups, in order, and compared by `min` and `max`: Int and Float compare by value."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cxl.functions.aggregate import is_less
from tests.support.pipelines import Folder, jsonl

Lines = list[tuple[int, Any]]

PIPELINE = """\
pipeline: { name: lines }
nodes:
  - type: source
    name: orders
    config: { name: orders, type: json, path: orders.ndjson, options: { format: ndjson }, schema: [{ name: id, type: int }, { name: item, type: map }] }
  - { type: transform, name: lines, input: orders, config: { cxl: "emit qty = item[\\"qty\\"]" } }
  - { type: aggregate, name: groups, input: lines, config: { group_by: [qty], cxl: "emit n = count(*)" } }
  - { type: transform, name: once, input: lines, config: { cxl: "distinct by qty" } }
  - { type: transform, name: placed, input: lines, config: { analytic_window: { sort_by: [qty] }, cxl: "emit place = $window.row_number()" } }
  - { type: aggregate, name: ends, input: lines, config: { cxl: "emit least = min(qty)\\nemit most = max(qty)" } }
  - { type: aggregate, name: halves, input: lines, config: { group_by: [qty], cxl: "emit half = max(qty / 2)" } }
  - { type: output, name: o1, input: groups, config: { name: o1, type: csv, path: groups.csv } }
  - { type: output, name: o2, input: once, config: { name: o2, type: csv, path: once.csv, exclude: [item], sort_order: [{ field: qty, order: desc }] } }
  - { type: output, name: o3, input: placed, config: { name: o3, type: csv, path: placed.csv, exclude: [item] } }
  - { type: output, name: o5, input: halves, config: { name: o5, type: csv, path: halves.csv } }
  - { type: output, name: o4, input: ends, config: { name: o4, type: json, path: ends.ndjson, options: { format: ndjson }, preserve_nulls: true } }
"""

STEPS: tuple[Lines, ...] = (
    [(1, 12), (2, 3), (3, "a b"), (4, 3.0), (5, 100), (6, None), (7, "a"), (8, -1.5), (9, True), (10, 9)],
    [(1, 12), (2, 3.5), (3, "a b"), (4, 3.0), (5, 20), (6, 0), (7, "a"), (8, -1.5), (9, "9"), (10, 9)],
    [(1, "12"), (4, 9.0), (5, -0.0), (6, 0), (7, "a c"), (8, False), (10, 9), (11, [2])],
    [(4, "z"), (5, 10), (6, 2)],
)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def identity(value: Any) -> tuple[Any, ...]:
    """A value that equal values share, and by which they are ordered: numbers, then everything else that has a text, then null."""
    if value is None:
        return (2,)
    return (0, float(value)) if is_number(value) else (1, json.dumps(value, separators=(",", ":")).removesuffix('"'))


def shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value + 0.0:g}" if is_number(value) else value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def extreme(values: list[Any], sign: int) -> Any:
    """The first value that no later one beats; of what does not compare the earlier one stays."""
    best = None
    for value in (value for value in values if value is not None):
        if best is None or (is_number(best) and is_number(value) and sign * value < sign * best) or (isinstance(best, str) and isinstance(value, str) and (value < best if sign > 0 else value > best)):
            best = value
    return best


@pytest.mark.parametrize("engine", ["sail", pytest.param("spark", marks=pytest.mark.spark)])
def test_numbers_of_both_kinds_are_one_and_in_order(engine: str, tmp_path: Path) -> None:
    folder = Folder(tmp_path, engine)
    folder.write("pipeline.yaml", PIPELINE)
    for lines in STEPS:
        folder.write("orders.ndjson", "".join(json.dumps({"id": id_, "item": {"qty": value}}) + "\n" for id_, value in lines))
        assert folder.run().exit_code == 0
        ordered = sorted(lines, key=lambda line: identity(line[1]))
        counts = Counter(identity(value) for _, value in lines)
        names = {identity(value): shown(value) for _, value in lines}
        assert folder.rows("groups.csv") == [{"qty": names[one], "n": str(counts[one])} for one in sorted(counts)]
        assert {row["id"]: row["place"] for row in folder.rows("placed.csv")} == {str(id_): str(at) for at, (id_, _) in enumerate(ordered, 1)}
        firsts = {identity(value): id_ for id_, value in reversed(lines)}
        last_first = [one for one in sorted(firsts, reverse=True) if one != (2,)] + [(2,)] * ((2,) in firsts)
        assert [row["id"] for row in folder.rows("once.csv")] == [str(firsts[one]) for one in last_first]
        values = [value for _, value in lines]
        halves: dict[float, float] = {}
        for value in filter(is_number, values):  # an Int is divided as one, also where a Float is in its group
            half = value / 2 if isinstance(value, float) else int(value / 2)
            halves[value] = max(half, halves.get(value, half))
        found = [(row["qty"], "0" if row["half"] == "-0" else row["half"]) for row in folder.rows("halves.csv") if row["half"]]
        assert sorted(found) == sorted((shown(value), shown(half)) for value, half in halves.items())
        assert jsonl(folder.text("ends.ndjson")) == [{"least": extreme(values, 1), "most": extreme(values, -1)}]
    assert not folder.violations()


def test_what_does_not_compare_is_neither_less_nor_more() -> None:
    assert [is_less(*pair) for pair in ((1, 2.5), (2.5, 1), ("a", "b"), (1, "a"), ("a", 1), (True, 2), ([1], [2]), ({}, 1))] == [True, False, True, *[False] * 5]
    nan = float("nan")
    assert [is_less(*pair) for pair in ((1, nan), (nan, 1), (nan, nan), ("a", nan))] == [True, False, False, False]


NESTED = [
    [[3], [3.0], [[3.0], "3.0"], [[3], "3.0"], [-0.0, 1], [0.0, 1], [0, 1.0]],
    [[{"a": 3.0, "b": 'x",-0.0,'}], [{"a": 3, "b": 'x",-0.0,'}], [{"a": 3, "b": 'x",0,'}], [30.05], [30.5], ["3"], 3, 3.0],
]


@pytest.mark.parametrize("engine", ["sail", pytest.param("spark", marks=pytest.mark.spark)])
@pytest.mark.parametrize("values", NESTED, ids=["arrays", "maps"])
def test_numbers_within_arrays_and_maps_are_compared_by_value(values: list[Any], engine: str, tmp_path: Path) -> None:
    folder = Folder(tmp_path, engine)
    folder.write("pipeline.yaml", PIPELINE.replace("qty / 2", "1"))
    folder.write("orders.ndjson", "".join(json.dumps({"id": at, "item": {"qty": value}}) + "\n" for at, value in enumerate(values)))
    assert folder.run().exit_code == 0
    first = [values.index(value) for value in values]  # lists and dictionaries of Python are compared like this
    assert sorted(int(row["n"]) for row in folder.rows("groups.csv")) == sorted(Counter(first).values())
    assert sorted(int(row["id"]) for row in folder.rows("once.csv")) == sorted({*first})


@pytest.mark.parametrize("engine", ["sail", pytest.param("spark", marks=pytest.mark.spark)])
@pytest.mark.parametrize("kind", ["array", "map"])
def test_numbers_within_columns_of_arrays_and_maps_are_compared_by_value(kind: str, engine: str, tmp_path: Path) -> None:
    values = [[3], [3.0], [3.5], [-0.0], [0]]
    folder = Folder(tmp_path, engine)
    folder.write("pipeline.yaml", PIPELINE.replace("{ name: item, type: map }", f"{{ name: qty, type: {kind} }}").replace("emit qty = item", "filter true #").replace("qty / 2", "1").replace("[item]", "[]").replace("type: csv", "type: json"))
    folder.write("orders.ndjson", "".join(json.dumps({"id": at, "qty": value if kind == "array" else {"k": value}}) + "\n" for at, value in enumerate(values)))
    assert folder.run().exit_code == 0
    groups, once = (json.loads(folder.text(name)) for name in ("groups.csv", "once.csv"))
    assert sorted(row["n"] for row in groups) == [1, 2, 2]
    assert sorted(row["id"] for row in once) == [0, 2, 3]


DECIMALS = """\
pipeline: { name: exact }
nodes:
  - type: source
    name: lines
    config: { name: lines, type: csv, path: lines.csv, schema: [{ name: id, type: int }, { name: n, type: int }, { name: s, type: string }] }
  - { type: transform, name: held, input: lines, config: { cxl: "let p = if s.length() < 4 then [s.try_decimal(1)][0] else [s.try_decimal(2)][0]\\nemit v = n ?? p\\nemit xs = [v]\\nemit m = {v: v}" } }
  - { type: aggregate, name: groups, input: held, config: { group_by: [BY], cxl: "emit n = count(*)" } }
  - { type: transform, name: typed, input: groups, config: { cxl: "emit t = FIRST.type_of()" } }
  - { type: transform, name: once, input: held, config: { cxl: "distinct by BY" } }
  - { type: transform, name: placed, input: held, config: { analytic_window: { group_by: [BY] }, cxl: "emit place = $window.row_number()" } }
  - { type: output, name: o1, input: typed, config: { name: o1, type: json, path: groups.ndjson, options: { format: ndjson } } }
  - { type: output, name: o2, input: once, config: { name: o2, type: csv, path: once.csv, exclude: [v, xs, m, n, s] } }
  - { type: output, name: o3, input: placed, config: { name: o3, type: csv, path: placed.csv, exclude: [v, xs, m, n, s] } }
"""


def line_of(folder: Folder, first: str) -> list[str]:
    """The groups: their Decimal by its digits, their size, its type."""
    found = [json.loads(line, parse_float=str) for line in folder.text("groups.ndjson").splitlines()]
    values = ({"v": lambda row: row["v"], "xs[0]": lambda row: row["xs"][0], "m.v": lambda row: row["m"]["v"]}[first](row) for row in found)
    return [f"{value} {row['n']} {row['t']}" for value, row in zip(values, found, strict=True)]


@pytest.mark.parametrize("engine", ["sail", pytest.param("spark", marks=pytest.mark.spark)])
@pytest.mark.parametrize(("by", "first"), [("v", "v"), ("xs", "xs[0]"), ("m", "m.v")])
def test_decimals_of_all_scales_are_one_group_and_stay_decimals(by: str, first: str, engine: str, tmp_path: Path) -> None:
    folder = Folder(tmp_path, engine)
    folder.write("pipeline.yaml", DECIMALS.replace("BY", by).replace("FIRST", first))
    folder.write("lines.csv", "id,n,s\n1,,2.5\n2,,2.50\n3,,1.0\n4,,1.00\n5,1,\n6,,-0.0\n")
    assert folder.run().exit_code == 0
    assert sorted(line_of(folder, first)) == ["0.00 1 Decimal", "1.00 3 Decimal", "2.50 2 Decimal"]
    assert [row["id"] for row in folder.rows("once.csv")] == ["1", "3", "6"]
    assert {row["id"]: row["place"] for row in folder.rows("placed.csv")} == {"1": "1", "2": "2", "3": "1", "4": "2", "5": "3", "6": "1"}
    folder.write("lines.csv", "id,n,s\n1,,2.50\n2,,2.5\n3,,1.00\n4,,2.5\n5,1,\n6,,-0.0\n")
    assert folder.run().exit_code == 0
    assert sorted(line_of(folder, first)) == ["0.00 1 Decimal", "1.00 2 Decimal", "2.50 3 Decimal"]
    folder.write("lines.csv", "id,n,s\n2,,2.5\n4,,2.5\n5,1,\n")
    assert folder.run().exit_code == 0
    assert sorted(line_of(folder, first)) == ["1 1 Int", "2.5 2 Decimal"]
    assert not folder.violations()


COLLECTED = """\
pipeline: { name: collected }
nodes:
  - { type: source, name: a, config: { name: a, type: csv, path: a.csv, schema: [{ name: id, type: int }, { name: k, type: string }] } }
  - { type: source, name: b, config: { name: b, type: csv, path: b.csv, schema: [{ name: k, type: string }, { name: q, type: decimal, scale: 2 }, { name: n, type: int }, { name: at, type: date_time }] , watermark: { column: at } } }
  - { type: combine, name: j, input: { a: a, b: b }, config: { where: a.k == b.k, match: collect, on_miss: skip, propagate_ck: driver, cxl: "" } }
  - { type: transform, name: read, input: j, config: { cxl: "emit r = b[0].q.round(1)\\nemit f = b[0].q.floor().type_of()" } }
  - { type: transform, name: parts, input: j, config: { cxl: "emit each o in b { emit id = id\\nemit q = o.q\\nemit n = o.n }" } }
  - { type: aggregate, name: means, input: parts, config: { group_by: [id], cxl: "emit s = sum(q)\\nemit m = avg(q)\\nemit w = weighted_avg(q, n)" } }
  - { type: aggregate, name: sizes, input: parts, config: { group_by: [q], cxl: "emit c = count(*)" } }
  - { type: transform, name: held, input: b, config: { cxl: "emit v = if n > 1 then [q][0] else [q.try_decimal(3)][0]" } }
  - { type: aggregate, name: hourly, input: held, config: { group_by: [v], time_window: { tumbling: { size: 1h } }, cxl: "emit c = count(*)" } }
  - { type: output, name: o1, input: read, config: { name: o1, type: json, path: read.json, exclude: [b, k] } }
  - { type: output, name: o2, input: means, config: { name: o2, type: csv, path: means.csv } }
  - { type: output, name: o3, input: sizes, config: { name: o3, type: csv, path: sizes.csv } }
  - { type: output, name: o4, input: hourly, config: { name: o4, type: csv, path: hourly.csv } }
"""


def test_decimals_of_collected_rows_stay_decimals(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "sail")
    folder.write("pipeline.yaml", COLLECTED)
    folder.write("a.csv", "id,k\n1,a\n2,b\n")
    folder.write("b.csv", "k,q,n,at\na,1.50,1,2026-01-01T00:10:00\na,2.25,2,2026-01-01T00:20:00\nb,-0.05,3,2026-01-01T00:30:00\nb,1.50,4,2026-01-01T00:40:00\nb,1.50,1,2026-01-01T01:00:00\n")
    assert folder.run().exit_code == 0
    assert json.loads(folder.text("read.json"), parse_float=str) == [{"id": 1, "r": "1.5", "f": "Decimal"}, {"id": 2, "r": "0.0", "f": "Decimal"}]
    assert folder.rows("means.csv") == [{"id": "1", "s": "3.75", "m": "1.875000000000", "w": "2.000000000000"}, {"id": "2", "s": "2.95", "m": "0.983333333333", "w": "0.918750000000"}]
    assert [(row["q"], row["c"]) for row in folder.rows("sizes.csv")] == [("-0.05", "1"), ("1.50", "3"), ("2.25", "1")]
    assert sorted((row["v"], row["c"]) for row in folder.rows("hourly.csv")) == [("-0.05", "1"), ("1.500", "1"), ("1.500", "2"), ("2.25", "1")]
