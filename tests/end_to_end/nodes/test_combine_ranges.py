"""Range joins by buckets: whatever the widths, types and ends, the pairs match two loops in plain Python."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from operators.combine import range_join
from operators.combine.range_join import Extent, Grid
from tests.support.csv_histories import heading, source
from tests.support.examples import examples
from tests.support.pipelines import Folder, command, jsonl, standing_in

Row = dict[str, Any]

LINES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.one_of(st.integers(-6, 6), st.sampled_from([-(2**63), 2**63 - 1, 2**53, 2**53 + 1])),
    "float": st.sampled_from([-1e308, -5.5, -0.0, 0.0, 1e-300, 0.1, 0.2, 0.30000000000000004, 3.0, 4.5, 1e16, 1e308, float("inf"), float("-inf"), float("nan")]),
    "date": st.one_of(st.integers(0, 12).map(lambda day: date(2026, 3, 1) + timedelta(day)), st.sampled_from([date(1, 1, 1), date(9999, 12, 31)])),
    "date_time": st.one_of(st.integers(0, 12).map(lambda n: datetime(2026, 3, 1, 0, 0, n % 5, n)), st.just(datetime(9999, 12, 31))),
}
"""Values by type, far and near ones."""

Test = Callable[[Row, Row], bool]


def at_most(one: Any, other: Any) -> bool:
    return one is not None and other is not None and one <= other


def below(one: Any, other: Any) -> bool:
    return one is not None and other is not None and one < other


JOINS: dict[str, tuple[str, Test]] = {
    "closed": ("b.low <= a.at and a.at <= b.high", lambda a, b: at_most(b["low"], a["at"]) and at_most(a["at"], b["high"])),
    "open": ("a.at > b.low and b.high > a.at", lambda a, b: below(b["low"], a["at"]) and below(a["at"], b["high"])),
    "holds": ("a.at <= b.low and b.low < a.until", lambda a, b: at_most(a["at"], b["low"]) and below(b["low"], a["until"])),
    "overlap": ("a.at < b.high and b.low <= a.until", lambda a, b: below(a["at"], b["high"]) and at_most(b["low"], a["until"])),
    "residual": (
        "b.low <= a.at and a.at < b.high and a.id != b.no",
        lambda a, b: at_most(b["low"], a["at"]) and below(a["at"], b["high"]) and a["id"] != b["no"],
    ),
}
NODES = [("closed", "all"), ("open", "first"), ("holds", "all"), ("overlap", "all"), ("overlap", "first"), ("overlap", "collect"), ("residual", "collect")]
"""Join and match mode of each combine."""


def combine(name: str, where: str, match: str) -> str:
    body = "" if match == "collect" else ', cxl: "emit id = a.id emit no = b.no"'
    return (
        f"  - type: combine\n    name: {name}\n    input: {{ a: events, b: spans }}\n"
        f'    config: {{ match: {match}, propagate_ck: driver, where: "{where}"{body} }}\n'
        f"  - {{ type: output, name: {name}_out, input: {name}, config: {{ name: {name}_out, type: json, path: out/{name}.ndjson, "
        "preserve_nulls: true, options: { format: ndjson } } }\n"
    )


def pipeline(one: str, other: str, nodes: Sequence[tuple[str, str]] = tuple(NODES)) -> str:
    events, spans = {"id": "int", "at": one, "until": one}, {"no": "int", "low": other, "high": other}
    joins = (combine(f"{name}_{match}", JOINS[name][0], match) for name, match in nodes)
    return heading("ranges") + source("events", events) + source("spans", spans) + "".join(joins)


def expected(test: Test, match: str, events: Sequence[Row], spans: Sequence[Row]) -> list[list[Any]]:
    """The number of each event and of its span, or of all its spans under `collect`."""
    rows = []
    for event in events:
        met = [span["no"] for span in spans if test(event, span)]
        if match == "collect":
            rows.append([event["id"], met])
        else:
            rows += [[event["id"], no] for no in (met[:1] if match == "first" else met) or [None]]
    return rows


def written(folder: Folder, name: str, match: str) -> list[list[Any]]:
    found = jsonl(folder.text(f"out/{name}.ndjson"))
    return [[row["id"], [span["no"] for span in row["b"]] if match == "collect" else row["no"]] for row in found]


@st.composite
def sides(draw: st.DrawFn, one: str, other: str, most: int = 8) -> tuple[list[Row], list[Row]]:
    ends = [st.one_of(st.none(), LINES[kind]) for kind in (one, other)]
    events = [{"id": at, "at": draw(ends[0]), "until": draw(ends[0])} for at in range(draw(st.integers(0, most)))]
    spans = [{"no": at, "low": draw(ends[1]), "high": draw(ends[1])} for at in range(draw(st.integers(0, most)))]
    return events, spans


ALIKE = [pytest.param(kind, kind, marks=pytest.mark.deep) for kind in ("int", "float", "date")]


@pytest.mark.parametrize(("one", "other"), [("int", "float"), ("date_time", "date_time"), *ALIKE])
def test_pairs_are_those_of_two_loops(one: str, other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_join, "FEW_PAIRS", -1)

    @examples(24, 2, suppress_health_check=list(HealthCheck))
    @given(sides(one, other), sides(one, other, most=3))
    def compared(first: tuple[list[Row], list[Row]], then: tuple[list[Row], list[Row]]) -> None:
        with tempfile.TemporaryDirectory() as place:
            folder = Folder(Path(place))
            folder.write("pipeline.yaml", pipeline(one, other))
            for events, spans in (first, (first[0] + [row | {"id": row["id"] + 100} for row in then[0]], then[1])):
                folder.write_csv("events.csv", ("id", "at", "until"), [text(row) for row in events])
                folder.write_csv("spans.csv", ("no", "low", "high"), [text(row) for row in spans])
                folder.run()
                for name, match in NODES:
                    assert written(folder, f"{name}_{match}", match) == expected(JOINS[name][1], match, events, spans), (name, match)
            assert folder.violations() == []

    compared()


@pytest.mark.parametrize("engine", ["sail", "spark"])
def test_one_set_of_rows_on_both_engines(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_join, "FEW_PAIRS", -1)
    events = [{"id": at, "at": value, "until": value + 1.5} for at, value in enumerate((0.0, 0.5, 2.0, 2.5, 9.0))] + [{"id": 9, "at": None, "until": 1.0}]
    spans = [{"no": at, "low": low, "high": high} for at, (low, high) in enumerate(((0.5, 2.0), (2.0, 2.5), (-1.0, 1e308), (4.0, 3.0), (0.0, None)))]
    nodes = NODES if engine == "sail" else NODES[2:4]
    folder = Folder(tmp_path, engine)
    folder.write("pipeline.yaml", pipeline("float", "float", nodes))
    for rows in (spans, [spans[1], {**spans[0], "high": 0.7}, *spans[2:]]):
        folder.write_csv("events.csv", ("id", "at", "until"), events)
        folder.write_csv("spans.csv", ("no", "low", "high"), rows)
        folder.run()
        for name, match in nodes:
            assert written(folder, f"{name}_{match}", match) == expected(JOINS[name][1], match, events, rows), (name, match)


def text(row: Row) -> Row:
    """Moments as a CSV file has them."""
    return {name: value.isoformat() if isinstance(value, date) else value for name, value in row.items()}


@given(st.integers(2, 10**6), st.integers(2, 10**6), st.floats(0, 1e300), st.floats(0, 1e300), st.floats(0, 1e300))
def test_no_grid_has_more_buckets_than_can_be_numbered_or_spreads_intervals_far(rows: int, others: int, start: float, span: float, length: float) -> None:
    extent = Extent((rows, others), start, start + span, (0.0, min(length, span) * others))
    grid = extent.grid()
    if rows * others <= range_join.FEW_PAIRS:
        assert grid is None
        return
    assert isinstance(grid, Grid)
    assert grid.width > 0
    assert (extent.end - extent.start) / grid.width <= 2**40 * 1.01
    assert extent.lengths[1] / grid.width <= max(range_join.SPREAD * others, (rows + others) / 8) * 1.01


@pytest.mark.parametrize(("where", "message"), [
    ("b.low <= a.at and a.at < b.high", "range join by buckets (point against interval, "),
    ("a.at <= b.low and b.low < a.until", "range join by buckets (interval against point, "),
    ("a.at <= b.high and b.low < a.until", "range join by buckets (interval against interval, "),
    ("a.at >= b.low", "nested loop over ranges (no two fields "),
    ("a.id == b.no and a.at >= b.low", "hash or sort-merge join, 1 equalities, 1 ranges"),
])  # fmt: skip
def test_explain_tells_how_and_why(tmp_path: Path, where: str, message: str) -> None:
    events, spans = {"id": "int", "at": "date", "until": "date"}, {"no": "int", "low": "date", "high": "date"}
    Folder(tmp_path).write("pipeline.yaml", heading("message") + source("events", events) + source("spans", spans) + combine("joined", where, "first"))
    with standing_in(tmp_path):
        code, shown, _ = command("explain", "pipeline.yaml")
    assert code == 0
    assert f"build input: b: {message}" in shown
