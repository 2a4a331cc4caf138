"""Analytic windows: whatever changes, every row has what plain Python finds in its partition."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.support.csv_histories import Row, Version, follow, heading, histories, queue, source, transform
from tests.support.examples import examples
from tests.support.pipelines import Folder, command, jsonl, standing_in

ROWS = {"id": "int", "g": "string", "k": "int", "v": "float", "w": "int"}
PRICES = {"g": "string", "p": "float"}
HEADERS = {"rows": list(ROWS), "prices": list(PRICES)}

groups = st.sampled_from(["a", "b", ""])
record = st.fixed_dictionaries({
    "id": st.integers(1, 9), "g": groups, "k": st.sampled_from([None, 1, 2, 3]), "v": st.sampled_from([None, 0.1, 0.2, 1e16, -1e16, 3.5]), "w": st.sampled_from([None, 0, 2, 5]),
})  # fmt: skip
price = st.fixed_dictionaries({"g": groups, "p": st.sampled_from([None, 1.5, 2.0])})

SORTED = """
emit id = id
emit total = $window.sum(v)
emit mean = $window.avg(w)
emit low = $window.min(w)
emit high = $window.max(v)
emit n = $window.count()
emit opening = $window.first_value(v)
emit closing = $window.last_value(w)
emit place = $window.row_number()
emit rank = $window.rank()
emit dense = $window.dense_rank()
emit first_id = $window.first().id
emit last_id = $window.last().id
emit before = $window.lag(1).v
emit two_behind = $window.lead(2).id
emit some = $window.any(w > 1)
emit every = $window.every(w > 1)
emit is_there = $window.exists(w == 5)
emit nowhere = $window.not_exists(w == 0)
emit seen = $window.collect(w)
emit unlike = $window.distinct(w)
"""
PLAIN = "emit id = id\nemit total = $window.sum(w)\nemit rank = $window.rank()\nfilter w > 0"
FAILS = "emit id = id\nemit total = $window.sum(10 / w)"
NESTED = """
emit id = id
emit total = $window.sum(w)
let most = $window.max(total)
emit w = (w ?? 1) * 2
emit opening = $window.first_value(w)
emit before = $window.lag(1).w
emit most_so_far = most
emit total_before = $window.lag(1).total
emit most_ahead = $window.lead(1).most
emit share = $window.sum(10 / total)
"""
"""Windows over windows: `total` is null where no number is known yet, and 0 rejects its record, which the windows over `total` do not see."""
FIRSTS = "emit g = g\nemit n = $window.count()\ndistinct by n"
BESIDE = "emit id = id\nemit cost = $window.sum(p)\nemit best = $window.max(p)\nemit first_price = $window.first().p\nemit n = $window.count()\nemit none = $window.not_exists(p > 1.8)"


def pipeline() -> str:
    nodes = [
        transform("sorted", "rows", SORTED, "{ group_by: [g], sort_by: [{ field: k, order: desc }] }"),
        transform("plain", "rows", PLAIN, "{ partition_by: [g] }"),
        transform("fails", "rows", FAILS, "{ group_by: [g], sort_by: [k] }"),
        transform("nested", "rows", NESTED, "{ group_by: [g], sort_by: [k] }"),
        transform("firsts", "rows", FIRSTS, "{ group_by: [g] }"),
        transform("beside", "rows", BESIDE, "{ source: prices, on: g, group_by: [g] }"),
    ]
    return heading("windows") + source("rows", ROWS) + source("prices", PRICES) + "".join(nodes)


# The model --------------------------------------------------------------------------------------------------------------
def partitions(rows: Sequence[Row], *, order: str | None = None) -> Iterator[list[Row]]:
    for group in dict.fromkeys(row["g"] for row in rows):
        found = [row for row in rows if row["g"] == group]
        if order is not None:
            sign = -1 if order == "desc" else 1
            found.sort(key=lambda row: (row["k"] is None, sign * (row["k"] or 0)))
        yield found


def known(values: Sequence[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def total(values: Sequence[Any]) -> Any:
    found = known(values)
    return (math.fsum(found) if isinstance(found[0], float) else sum(found)) if found else None


def some(flags: Sequence[bool | None]) -> bool | None:
    return True if True in flags else None if None in flags else False


def every(flags: Sequence[bool | None]) -> bool | None:
    return False if False in flags else None if None in flags else True


def opposite(flag: bool | None) -> bool | None:
    return None if flag is None else not flag


def flags(values: Sequence[Any], wanted: Any) -> list[bool | None]:
    return [None if value is None else wanted(value) for value in values]


def sorted_row(part: Sequence[Row], at: int) -> Row:
    frame = part[: at + 1]
    keys, v, w = ([row[name] for row in frame] for name in ("k", "v", "w"))
    return {
        "id": frame[-1]["id"], "total": total(v), "mean": sum(known(w)) / len(known(w)) if known(w) else None,
        "low": min(known(w), default=None), "high": max(known(v), default=None), "n": at + 1, "opening": v[0], "closing": w[-1], "place": at + 1,
        "rank": keys.index(keys[-1]) + 1, "dense": len(set(keys)), "first_id": frame[0]["id"], "last_id": frame[-1]["id"],
        "before": v[-2] if at else None, "two_behind": part[at + 2]["id"] if at + 2 < len(part) else None,
        "some": some(flags(w, lambda value: value > 1)), "every": every(flags(w, lambda value: value > 1)),
        "is_there": some(flags(w, lambda value: value == 5)), "nowhere": opposite(some(flags(w, lambda value: value == 0))),
        "seen": known(w), "unlike": list(dict.fromkeys(known(w))),
    }  # fmt: skip


def nested(rows: Sequence[Row]) -> tuple[dict[int, Row], list[Row]]:
    """The result of `nested` for each record, and the records that it rejects."""
    found, bad = {}, []
    for part in partitions(rows, order="asc"):
        doubled = [(1 if row["w"] is None else row["w"]) * 2 for row in part]
        totals = [total([one["w"] for one in part[: at + 1]]) for at in range(len(part))]
        bad += [row for row, whole in zip(part, totals, strict=True) if whole == 0]
        seen = [at for at, whole in enumerate(totals) if whole != 0]
        most = [max(known([totals[one] for one in seen[: at + 1]]), default=None) for at in range(len(seen))]
        shares = [None if totals[at] is None else 10 // totals[at] for at in seen]
        for place, at in enumerate(seen):
            found[id(part[at])] = {
                "id": part[at]["id"], "w": doubled[at], "total": totals[at], "opening": doubled[0], "before": doubled[at - 1] if at else None,
                "most_so_far": most[place], "total_before": totals[seen[place - 1]] if place else None,
                "most_ahead": most[place + 1] if place + 1 < len(seen) else None, "share": total(shares[: place + 1]),
            }  # fmt: skip
    return found, bad


def beside(row: Row, prices: Sequence[Row]) -> Row:
    found = [one["p"] for one in prices if one["g"] == row["g"]]
    above = some(flags(found, lambda value: value > 1.8))
    first = found[0] if found else None
    return {"id": row["id"], "cost": total(found), "best": max(known(found), default=None), "first_price": first, "n": len(found), "none": opposite(above)}


def in_source_order(rows: Sequence[Row], found: dict[int, Row]) -> list[Row]:
    return [found[id(row)] for row in rows if id(row) in found]


def model(version: Version) -> dict[str, list[Row]]:
    rows = [dict(row) for row in version["rows"]]
    ordered = {id(part[at]): sorted_row(part, at) for part in partitions(rows, order="desc") for at in range(len(part))}
    plain = {
        id(row): {"id": row["id"], "total": total([one["w"] for one in part[: at + 1]]), "rank": 1}
        for part in partitions(rows) for at, row in enumerate(part) if row["w"] is not None and row["w"] > 0
    }  # fmt: skip
    zeros = [row for row in rows if row["w"] == 0]
    good = [row for row in rows if row["w"] != 0]
    shares = {
        id(row): {"id": row["id"], "total": total([None if one["w"] is None else 10 // one["w"] for one in part[: at + 1]])}
        for part in partitions(good, order="asc") for at, row in enumerate(part)
    }  # fmt: skip
    over_windows, refused = nested(rows)
    counts = {id(row): at + 1 for part in partitions(rows) for at, row in enumerate(part)}
    firsts = {counts[id(row)]: {"g": row["g"], "n": counts[id(row)]} for row in reversed(rows)}
    return {
        "sorted": in_source_order(rows, ordered),
        "plain": in_source_order(rows, plain),
        "fails": in_source_order(rows, shares),
        "nested": in_source_order(rows, over_windows),
        "firsts": [firsts[number] for number in dict.fromkeys(counts[id(row)] for row in rows)],
        "beside": [beside(row, version["prices"]) for row in rows],
        "rejected": [
            {"stage": stage, "category": "type_coercion_failure", "id": row["id"]} for stage, failed in (("fails", zeros), ("nested", refused)) for row in failed
        ],
    }


@examples(24, 2, suppress_health_check=list(HealthCheck))
@given(histories({"rows": record, "prices": price}, most=7))
def test_every_step_is_what_python_says(history: list[Version]) -> None:
    follow(history, pipeline(), HEADERS, model)


def version(rows: Sequence[tuple[Any, ...]], prices: Sequence[tuple[Any, ...]]) -> Version:
    named = {"rows": (ROWS, rows), "prices": (PRICES, prices)}
    return {name: [dict(zip(columns, row, strict=True)) for row in given] for name, (columns, given) in named.items()}


FIXED = [
    version([(1, "a", 2, 0.1, 2), (2, "b", 1, 1e16, 0), (3, "a", 2, 0.2, None), (4, "a", None, 1e16, 5)], [("a", 1.5), ("b", None), ("a", 2.0)]),
    version([(1, "a", 2, 0.1, 2), (5, "a", 3, -1e16, 5), (3, "a", 1, 0.2, 0), (4, "b", None, 1e16, 5)], [("b", 2.0), ("a", 1.5)]),
    version([(5, "a", 3, -1e16, 5), (1, "a", 2, 3.5, 2), (4, "", None, None, 2)], []),
]


@pytest.mark.parametrize("engine", ["sail", "spark"])
def test_one_history_on_both_engines(engine: str) -> None:
    follow(FIXED, pipeline(), HEADERS, model, engine)


def laid_out(folder: Path, cxl: str, window: str, rows: Sequence[str]) -> Folder:
    made = Folder(folder)
    made.write("pipeline.yaml", heading("one") + source("rows", ROWS) + source("prices", PRICES) + transform("one", "rows", cxl, window))
    made.write("rows.csv", "\n".join([",".join(ROWS), *rows, ""]))
    made.write("prices.csv", "g,p\n")
    return made


def test_sums_that_limbs_do_not_hold_are_exact_too(tmp_path: Path) -> None:
    folder = laid_out(tmp_path, "emit s = $window.sum(v)", "{}", ["1,a,,1e300,", "2,a,,5e-324,", "3,a,,-1e300,"])
    folder.run()
    assert [float(row["s"]) for row in jsonl(folder.text("out/one.ndjson"))] == [1e300, 1e300, 5e-324]


def test_a_running_sum_beyond_64_bits_rejects_its_rows_alone(tmp_path: Path) -> None:
    folder = laid_out(tmp_path, "emit s = $window.sum(w)", "{}", ["1,a,,,9223372036854775807", "2,a,,,1", "3,a,,,-1"])
    folder.run()
    assert [row["s"] for row in jsonl(folder.text("out/one.ndjson"))] == [9223372036854775807, 9223372036854775807]
    assert queue(folder) == [("one", "aggregate_finalize", "2")]


@pytest.mark.parametrize(("more", "stays"), [
    ("", [1, 3]), ("filter id != 2", [1, 3]), ("distinct by g", [1, 3]), ('emit each x in "1,2".split(",") { emit part = x }', [1, 1, 3, 3]),
])  # fmt: skip
def test_a_record_without_a_sum_is_one_reject_whatever_comes_after_the_window(tmp_path: Path, more: str, stays: list[int]) -> None:
    rows = ["1,a,,,9223372036854775807", "2,b,,,1", "3,b,,,-1"]
    folder = laid_out(tmp_path, f"emit id = id\nemit s = $window.sum(w)\n{more}", "{}", rows)
    folder.run()
    assert [(row["id"], row["s"]) for row in jsonl(folder.text("out/one.ndjson"))] == [(number, 9223372036854775807) for number in stays]
    assert queue(folder) == [("one", "aggregate_finalize", "2")]
    folder.write("rows.csv", "\n".join([",".join(ROWS), "1,a,,,5", *rows[1:], ""]))
    folder.run()
    assert len(jsonl(folder.text("out/one.ndjson"))) == {"": 3, "filter id != 2": 2, "distinct by g": 2}.get(more, 6)
    assert folder.violations() == []


@pytest.mark.parametrize("function", ["sum", "avg"])
def test_a_value_that_is_no_number_rejects_its_record_alone(tmp_path: Path, function: str) -> None:
    """A record with `aggregate_type_error` counts in none of the aggregate's bindings; the others go on."""
    cxl = f"emit id = id\nemit s = $window.{function}(if w == 0 then g else if w == 1 then null else w)"
    rows = ["1,a,,,4", "2,b,,,0", "3,b,,,1", "4,b,,,6"]
    folder = laid_out(tmp_path, cxl, "{}", rows)
    folder.run()
    assert [(row["id"], row["s"]) for row in jsonl(folder.text("out/one.ndjson"))] == [(1, 4), (3, 4), (4, 10 if function == "sum" else 5)]
    assert queue(folder) == [("one", "aggregate_type_error", "2")]
    folder.write("rows.csv", "\n".join([",".join(ROWS), rows[0], "2,b,,,2", rows[2], "4,b,,,0", ""]))
    folder.run()
    assert [(row["id"], row["s"]) for row in jsonl(folder.text("out/one.ndjson"))] == [(one, {1: 4}.get(one, 6 if function == "sum" else 3)) for one in (1, 2, 3)]
    assert queue(folder) == [("one", "aggregate_type_error", "4")]
    assert folder.violations() == []


def test_rows_of_another_source_that_are_no_numbers_are_left_out(tmp_path: Path) -> None:
    folder = laid_out(tmp_path, "emit id = id\nemit s = $window.sum(if p > 1.8 then g else p)", "{ source: prices, on: g, group_by: [g] }", ["1,a,,,", "2,b,,,"])
    folder.write("prices.csv", "g,p\na,1.5\na,2.0\na,1.0\n")
    folder.run()
    assert [(row["id"], row["s"]) for row in jsonl(folder.text("out/one.ndjson"))] == [(1, 2.5), (2, None)]
    assert [letter[1] for letter in queue(folder)] == ["aggregate_type_error"]


def test_a_nan_of_sums_rejects_its_record_alone(tmp_path: Path) -> None:
    cxl = "emit id = id\nlet s = $window.sum(v) * 10.0\nemit d = s - s"
    folder = laid_out(tmp_path, cxl, "{ group_by: [g] }", ["1,a,,1,", "2,b,,1e308,", "3,a,,2,"])
    folder.run()
    assert [row["id"] for row in jsonl(folder.text("out/one.ndjson"))] == [1, 3]
    assert queue(folder) == [("one", "nan_in_output_field", "2")]


@pytest.mark.parametrize(("cxl", "window", "code"), [
    ("emit n = $window.count()", "{ group_by: [country] }", "E252"),
    ("emit n = $window.count()", "{ sort_by: [country] }", "E253"),
    ("emit n = $window.count()", "{ sort_by: [{ field: k, null_order: drop }] }", "E253"),
    ("emit n = $window.lag(k).v", "{ sort_by: [k] }", "E255"),
    ("emit n = $window.row_number()", "{ source: prices, group_by: [g] }", "E255"),
    ("emit n = $window.count()", "{ source: prices, on: id, group_by: [g] }", "E256"),
    ("emit n = $window.sum(v)", "{ source: prices, group_by: [g] }", "CXL-R001"),
    ("emit n = $window.count()", "{ source: nowhere, group_by: [g] }", "E004"),
])  # fmt: skip
def test_what_is_wrong_is_told_before_anything_is_read(tmp_path: Path, cxl: str, window: str, code: str) -> None:
    laid_out(tmp_path, cxl, window, [])
    with standing_in(tmp_path):
        exit_code, _, stderr = command("check", "pipeline.yaml")
    assert exit_code == 1
    assert code in stderr


def test_the_field_of_on_alone_joins(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    window = transform("beside", "rows", "emit best = $window.max(p)", "{ source: prices, on: g }")
    folder.write("pipeline.yaml", heading("on") + source("rows", {"g": "string"}) + source("prices", PRICES) + window)
    folder.write("rows.csv", "g\na\nb\nc\n")
    folder.write("prices.csv", "g,p\na,1.5\nb,2\na,3\n")
    folder.run()
    assert [row["best"] for row in jsonl(folder.text("out/beside.ndjson"))] == [3, 2, None]
