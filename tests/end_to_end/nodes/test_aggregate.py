"""Aggregates: what is provably sorted, and the dead letters of values of type any."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import errata
from tests.support.csv_histories import Row, Version, follow, heading, histories, sink, source
from tests.support.examples import examples
from tests.support.pipelines import Folder, limited

PIPELINE = """\
pipeline: {{ name: sums }}
error_handling: {{ strategy: continue, dlq: {{ path: dlq.csv }} }}
nodes:
  - type: source
    name: o
    config: {{ name: o, type: csv, path: o.csv, sort_order: {order}, schema: [{{ name: k, type: string }}, {{ name: z, type: int }}, {{ name: v, type: any }}] }}
  - {{ type: aggregate, name: sums, input: o, config: {{ group_by: {by}, strategy: {strategy}, cxl: emit t = sum(v) }} }}
  - {{ type: output, name: out, input: sums, config: {{ name: out, type: csv, path: out.csv }} }}
"""


@pytest.mark.parametrize(
    ("order", "by", "sorted_"),
    [("[k, z]", "[k]", True), ("[k, z]", "[z, k]", True), ("[k, {field: z, order: desc}]", "[k, z]", True), ("[k, z]", "[z]", False), ("[k]", "[k, z]", False), ("[k]", "[]", True)],
)
def test_streaming_needs_a_declared_order_that_holds_groups_together(order: str, by: str, sorted_: bool, tmp_path: Path) -> None:
    """"If your source declares a sort_order: that covers the group-by fields": rows of a group stand together whatever the order of the fields."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE.format(order=order, by=by, strategy="streaming"))
    if sorted_:
        folder.load()
        return
    with pytest.raises(errata.PipelineErrors) as caught:
        folder.load()
    assert [one.code for one in caught.value.diagnostics] == ["E241"]


def test_a_dead_letter_shows_plain_text_of_any_value(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE.format(order="[]", by="[k]", strategy="auto"))
    folder.write("o.csv", "k,z,v\na,1,some text\n")
    assert folder.run().exit_code == 2
    (letter,) = folder.rows("dlq.csv")
    assert (letter["_cxl_dlq_error_category"], letter["k"], letter["z"], letter["v"]) == ("aggregate_type_error", "a", "1", "some text")


NUMBERS = """\
pipeline: { name: numbers }
nodes:
  - type: source
    name: o
    config: { name: o, type: csv, path: o.csv, schema: [{ name: id, type: int }, { name: v, type: numeric }] }
  - { type: aggregate, name: sums, input: o, config: { group_by: [v], cxl: emit n = count(*) } }
  - { type: transform, name: ranked, input: o, config: { cxl: emit r = $window.rank(), analytic_window: { group_by: [], sort_by: [v] } } }
  - { type: transform, name: once, input: o, config: { cxl: distinct by v } }
  - { type: output, name: sums_out, input: sums, config: { name: sums_out, type: csv, path: sums.csv } }
  - { type: output, name: ranked_out, input: ranked, config: { name: ranked_out, type: csv, path: ranked.csv, sort_order: [{ field: v, order: desc }] } }
  - { type: output, name: once_out, input: once, config: { name: once_out, type: csv, path: once.csv, sort_order: [v] } }
"""


def test_numbers_of_both_kinds_compare_by_their_value(tmp_path: Path) -> None:
    """Int and Float compare by value; `numeric` holds both."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", NUMBERS)
    folder.write("o.csv", "id,v\n1,10\n2,9\n3,-3\n4,2.5\n5,1e1\n6,\n")
    folder.run()
    assert folder.text("sums.csv") == "v,n\n-3,1\n2.5,1\n9,1\n10,2\n,1\n"
    assert folder.text("ranked.csv") == "id,v,r\n1,10,4\n5,10,4\n2,9,3\n4,2.5,2\n3,-3,1\n6,,6\n"
    assert folder.text("once.csv") == "id,v\n3,-3\n4,2.5\n2,9\n1,10\n6,\n"
    folder.write("o.csv", "id,v\n2,9\n3,-3\n4,2.5\n5,1e1\n6,\n7,10\n8,9.0\n")
    folder.run()
    assert folder.text("sums.csv") == "v,n\n-3,1\n2.5,1\n9,2\n10,2\n,1\n"
    assert [row["id"] for row in folder.rows("once.csv")] == ["3", "4", "2", "5", "6"]
    assert not folder.violations()


def test_an_argument_that_is_nan_is_told_as_one(tmp_path: Path) -> None:
    """`nan_in_output_field` is a NaN that CXL computed. The message does not name the internal column that holds it."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE.format(order="[]", by="[k]", strategy="auto").replace("name: v, type: any", "name: v, type: float").replace("sum(v)", "sum(v * 0.0)"))
    folder.write("o.csv", "k,z,v\na,1,inf\na,2,1.5\n")
    folder.run()
    assert folder.text("out.csv") == "k,t\na,0\n"
    (letter,) = folder.rows("dlq.csv")
    assert (letter["_cxl_dlq_error_category"], letter["_cxl_dlq_error_detail"], letter["z"]) == ("nan_in_output_field", "the argument of a call is NaN", "1")


EXTREMES = """\
pipeline: {{ name: extremes }}
error_handling: {{ strategy: continue, dlq: {{ path: dlq.csv }} }}
nodes:
  - type: source
    name: o
    config: {{ name: o, type: csv, path: o.csv, watermark: {{ column: ts }}, schema: [{{ name: g, type: string }}, {{ name: ts, type: date_time }}, {{ name: f, type: float }}] }}
  - {{ type: aggregate, name: found, input: o, config: {{ group_by: [g], {window}cxl: "emit low = min(f)\\nemit high = max(f).to_string()\\nemit n = collect(f).length()" }} }}
  - {{ type: output, name: out, input: found, config: {{ name: out, type: csv, path: out.csv }} }}
"""


@pytest.mark.parametrize("window", ["", "time_window: { tumbling: { size: 1h } }, "])
def test_nan_is_greater_than_every_number_wherever_it_stands(window: str, tmp_path: Path) -> None:
    rows = ["a,nan", "a,0.5", "a,-inf", "b,2", "b,NaN", "b,", "c,-1", "c,inf"]
    for at, order in enumerate((rows, rows[::-1], rows[1:] + rows[:1])):
        tmp_path.joinpath(str(at)).mkdir()
        folder = Folder(tmp_path / str(at))
        folder.write("pipeline.yaml", EXTREMES.format(window=window))
        folder.write("o.csv", "g,ts,f\n" + "".join(f"{row.replace(',', ',2024-01-01T10:00:00,')}\n" for row in order))
        folder.run()
        assert folder.text("out.csv") == "g,low,high,n\na,-inf,NaN,3\nb,2,NaN,3\nc,-1,inf,2\n"
        assert folder.violations() == []


CALLS = '{ group_by: BY, cxl: "emit n = count(*)\\nemit s = sum(i)\\nemit t = sum(v)\\nemit a = avg(v)\\nemit m = weighted_avg(v, w)" }'


def adding() -> str:
    """Sums of all kinds by groups, and of all rows."""
    nodes = [f"  - {{ type: aggregate, name: {name}, input: o, config: {CALLS.replace('BY', by)} }}\n{sink(name)}" for name, by in (("groups", "[k]"), ("all", "[]"))]
    return heading("adding") + source("o", {"id": "int", "k": "string", "i": "int", "v": "float", "w": "float"}) + "".join(nodes)


def added(rows: Sequence[Row]) -> Row:
    """The results of the calls over rows, added up without rounding before the end."""
    ints, floats = ([row[name] for row in rows if row[name] is not None] for name in ("i", "v"))
    pairs = [(row["v"] * row["w"], row["w"]) for row in rows if row["v"] is not None and row["w"] is not None]
    weights = sum(Fraction(weight) for _, weight in pairs)
    total = math.fsum(floats) if floats else None
    mean = float(sum(map(Fraction, floats)) / len(floats)) if floats else None
    return {"n": len(rows), "s": sum(ints) if ints else None, "t": total, "a": mean, "m": float(sum(Fraction(product) for product, _ in pairs) / weights) if weights else None}


def sums(version: Version) -> dict[str, list[Row]]:
    """The groups in the order of their keys, and all rows as one."""
    rows = version["o"]
    keys = sorted({row["k"] for row in rows})
    return {"groups": [{"k": key, **added([row for row in rows if row["k"] == key])} for key in keys], "all": [added(rows)]}


floats = st.sampled_from([None, 0.1, 0.2, -2.5, 3.0, 1e5, -1e5, 1e-3])  # what comes of these are numbers that JSON has no two ways to write
records: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries({
    "id": st.integers(1, 99), "k": st.sampled_from(["a", "b", "c"]), "i": st.sampled_from([None, 0, 1, -1, 2**40, -(2**40)]), "v": floats, "w": floats,
})  # fmt: skip


@pytest.mark.parametrize("small", [10_000, -1], ids=["few rows, on the driver", "many rows, in the engine"])
@examples(16, 2)
@given(history=histories({"o": records}))
def test_sums_after_each_change_are_those_of_the_rows(small: int, history: list[Version]) -> None:
    with limited(small_rows=small):
        follow(history, adding(), {"o": ["id", "k", "i", "v", "w"]}, sums)


BESTS = "emit low = min(v)\\nemit high = max(s)\\nemit one = first(s)\\nemit end = last(v)\\nemit some = any(v)\\nemit n = count(v)\\nemit t = sum(i)\\nemit day = max(d)"


def keeping() -> str:
    """Best values beside sums."""
    columns = {"id": "int", "k": "string", "i": "int", "v": "float", "s": "string", "d": "date"}
    return heading("keeping") + source("o", columns) + f'  - {{ type: aggregate, name: groups, input: o, config: {{ group_by: [k], cxl: "{BESTS}" }} }}\n{sink("groups")}'


def bests(version: Version) -> dict[str, list[Row]]:
    """The groups in the order of their keys."""
    rows = version["o"]
    return {"groups": [{"k": key, **best_of([row for row in rows if row["k"] == key])} for key in sorted({row["k"] for row in rows})]}


def best_of(rows: Sequence[Row]) -> Row:
    """The results of the calls over rows."""
    given = {name: [row[name] for row in rows if row[name] is not None] for name in ("i", "v", "s", "d")}
    return {
        "low": min(given["v"], default=None), "high": max(given["s"], default=None), "one": rows[0]["s"], "end": rows[-1]["v"], "some": given["v"][0] if given["v"] else None,
        "n": len(given["v"]), "t": sum(given["i"]) if given["i"] else None, "day": max(given["d"], default=None),
    }  # fmt: skip


valued: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries({
    "id": st.integers(1, 99), "k": st.sampled_from(["a", "b"]), "i": st.sampled_from([None, 1, -1]), "v": st.sampled_from([None, -2.5, 0.5, 1.5, 2.5]),
    "s": st.sampled_from(["", "p", "q", "qq"]), "d": st.sampled_from([None, "2024-02-29", "2025-01-01"]),
})  # fmt: skip


@pytest.mark.parametrize("limits", [{"best_values": 2}, {"best_values": 2, "small_rows": -1}, {"sorted_rows": 0, "small_rows": -1}], ids=["on the driver", "in the engine", "found one by one"])
@examples(16, 2)
@given(history=histories({"o": valued}))
def test_best_values_after_each_change_are_those_of_the_rows(limits: dict[str, int], history: list[Version]) -> None:
    with limited(**limits):
        follow(history, keeping(), {"o": ["id", "k", "i", "v", "s", "d"]}, bests)


INF = math.inf
BEYOND = """\
pipeline: { name: beyond }
nodes:
  - type: source
    name: o
    config:
      { name: o, type: csv, path: o.csv, merge: { strategy: snapshot, primary_key: [id] }, schema: [{ name: id, type: int }, { name: g, type: string }, { name: v, type: float }] }
  - type: aggregate
    name: sums
    input: o
    config: { group_by: [g], cxl: "emit s = sum(v)\nemit a = avg(v)\nemit one = weighted_avg(v, 1)\nemit far = weighted_avg(1, v)\nemit both = weighted_avg(v, v)" }
  - { type: output, name: out, input: sums, config: { name: out, type: csv, path: out.csv } }
"""


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_sums_beyond_the_range_of_floats_are_infinite(tmp_path: Path) -> None:
    """Floats follow IEEE 754: 1e308 * 10.0 is infinite, not an error. Means are made of exact sums, and a retracted value leaves no trace."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", BEYOND)
    for records, a, c in (
        ("1,a,1e308\n2,a,1e308\n3,b,1\n4,c,-1e308\n5,c,-1e308", [INF, 1e308, 1e308, 1, INF], [-INF, -1e308, -1e308, 1, -INF]),
        ("1,a,1e308\n3,b,1\n4,c,-1e308\n5,c,1e308\n6,c,2e307", [1e308, 1e308, 1e308, 1, INF], [2e307, 2e307 / 3, 2e307 / 3, 1, INF]),
        ("1,a,2\n3,b,1\n4,c,-4", [2, 2, 2, 1, 2], [-4, -4, -4, 1, -4]),
    ):
        folder.write("o.csv", f"id,g,v\n{records}\n")
        assert folder.run().exit_code == 0
        assert [[float(cell) for cell in list(row.values())[1:]] for row in folder.rows("out.csv")] == [a, [1.0] * 5, c]
    assert folder.violations() == []


WIDE = """\
pipeline: { name: wide }
nodes:
  - { type: source, name: o, config: { name: o, type: csv, path: o.csv, schema: [{ name: id, type: int }, { name: n, type: int }] } }
  - { type: aggregate, name: whole, input: o, config: { group_by: [], cxl: "emit a = avg(n)" } }
  - { type: transform, name: far, input: o, config: { cxl: "emit a = $window.avg(n)", analytic_window: { group_by: [], sort_by: [id] } } }
  - { type: output, name: whole_out, input: whole, config: { name: whole_out, type: csv, path: whole.csv } }
  - { type: output, name: far_out, input: far, config: { name: far_out, type: csv, path: far.csv } }
"""


@pytest.mark.parametrize(("ints", "averages"), [
    ([2**63 - 1, 1, -3], [2.0**63, 2.0**62, (2**63 - 3) / 3]),
    ([-(2**63), -(2**63), -1, 2**62], [-(2.0**63), -(2.0**63), -(2.0**64) / 3, (-(2**64) - 1 + 2**62) / 4]),
    ([2**53 + 1, 0, 4], [2.0**53, 2.0**52, (2**53 + 5) / 3]),
])  # fmt: skip
def test_means_of_ints_are_floats_whose_sum_may_have_more_than_64_bits(ints: list[int], averages: list[float], tmp_path: Path) -> None:
    """`avg` gives a Float."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", WIDE)
    folder.write("o.csv", "".join(["id,n\n", *(f"{at},{n}\n" for at, n in enumerate(ints))]))
    assert folder.run().exit_code == 0
    assert [float(row["a"]) for row in folder.rows("far.csv")] == averages
    assert [float(row["a"]) for row in folder.rows("whole.csv")] == averages[-1:]
