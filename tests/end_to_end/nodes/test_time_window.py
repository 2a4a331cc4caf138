"""Time windows: whatever changes, windows, sums and late records match plain Python over the last input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import errata
from operators.aggregate.time_window import watermark
from storage.engines import base
from tests.support.csv_histories import Row, Version, follow, heading, histories, queue, sink, source
from tests.support.examples import examples
from tests.support.pipelines import Folder, command, jsonl, standing_in

if TYPE_CHECKING:
    import pyarrow as pa

    from storage.engines import Engine

COLUMNS = {"id": "int", "u": "string", "ts": "date_time", "n": "int"}
HEADERS = {"web": list(COLUMNS), "app": list(COLUMNS)}
MARK = "watermark: { column: ts }, "
HELD = {"web": 0, "app": 7}
"""Minutes that the watermark of each source is held back."""


def moment(minute: int) -> str:
    """A time of day in the form of outputs; hours may be negative for windows that begin before midnight."""
    day, rest = divmod(minute, 1440)
    return f"2026-03-{2 + day:02}T{rest // 60:02}:{rest % 60:02}:00"


def minute(text: str) -> int:
    return (int(text[8:10]) - 2) * 1440 + int(text[11:13]) * 60 + int(text[14:16])


record = st.fixed_dictionaries({
    "id": st.integers(1, 99), "u": st.sampled_from(["a", "b"]), "ts": st.one_of(st.none(), st.integers(0, 70).map(moment)), "n": st.integers(-1, 5),
})  # fmt: skip


@dataclass(frozen=True)
class Node:
    """An aggregate over windows of minutes, and what it reads. `lateness` None: forever."""

    name: str
    kind: str
    size: int
    slide: int = 0
    lateness: int | None = 0
    input: str = "web"

    def text(self) -> str:
        """The node and its sink."""
        shape = {"tumbling": f"size: {self.size}m", "hopping": f"size: {self.size}m, slide: {self.slide}m", "session": f"gap: {self.size}m"}[self.kind]
        late = "forever" if self.lateness is None else f"{self.lateness}m"
        cxl = "filter n >= 0\n        emit total = sum(n)\n        emit c = count(*)\n        emit begin = $window.start\n        emit end = $window.end"
        return f"""\
  - type: aggregate
    name: {self.name}
    input: {self.input}
    config:
      group_by: [u]
      time_window: {{ {self.kind}: {{ {shape} }} }}
      allowed_lateness: {late}
      cxl: |
        {cxl}
{sink(self.name)}"""


NODES = (
    Node("tumbling", "tumbling", 10),
    Node("hopping", "hopping", 20, 15, 5, input="app"),
    Node("gaps", "hopping", 5, 20, 10),
    Node("session", "session", 8, lateness=3),
    Node("forever", "session", 8, lateness=None),
    Node("both", "tumbling", 15, input="all"),
    Node("held", "session", 8, lateness=1, input="app"),
)


def pipeline() -> str:
    sources = source("web", COLUMNS, MARK) + source("app", COLUMNS, MARK.replace(" }", ", out_of_order: 7m }")) + "  - { type: merge, name: all, inputs: [web, app] }\n"
    return heading("time") + sources + "".join(node.text() for node in NODES)


# The model --------------------------------------------------------------------------------------------------------------
Event = tuple[str, Row, int | None]
"""Source, record, the watermark before it."""


def events(version: Version, names: Sequence[str]) -> Iterator[Event]:
    """The records of the sources one after the other, each with the least of the highest times before it, less what is held back."""
    highest: dict[str, int | None] = dict.fromkeys(names)
    for name in names:
        for row in version[name]:
            yield name, row, None if None in highest.values() else min(time for time in highest.values() if time is not None)
            if row["ts"] is not None:
                highest[name] = max(minute(row["ts"]) - HELD[name], highest[name] if highest[name] is not None else -99)


def windows(node: Node, time: int) -> list[tuple[int, int]]:
    slide = node.slide or node.size
    return [(start, start + node.size) for start in range(-10 * slide, time + 1, slide) if start <= time < start + node.size]


def sessions(node: Node, found: Iterable[Event]) -> list[list[Event]]:
    groups: list[list[Event]] = []
    for event in sorted(found, key=lambda one: (one[1]["u"], minute(one[1]["ts"]))):
        last = groups[-1][-1][1] if groups else None
        if last is not None and last["u"] == event[1]["u"] and minute(event[1]["ts"]) - minute(last["ts"]) <= node.size:
            groups[-1].append(event)
        else:
            groups.append([event])
    return groups


def closed(node: Node, end: int, mark: int | None) -> bool:
    return node.lateness is not None and mark is not None and mark >= end + node.lateness


def session_end(node: Node, session: Sequence[Event]) -> int:
    return minute(session[-1][1]["ts"]) + node.size


def by_sessions(node: Node, found: Sequence[Event]) -> tuple[list[Row], list[Row]]:
    late = [one[1] for session in sessions(node, found) for one in session if closed(node, session_end(node, session), one[2])]
    kept = [one for one in found if not any(one[1] is row for row in late)]
    rows = [summary([one[1] for one in session], minute(session[0][1]["ts"]), session_end(node, session)) for session in sessions(node, kept)]
    return sorted(rows, key=lambda row: (row["begin"], row["u"])), late


def by_windows(node: Node, found: Sequence[Event]) -> tuple[list[Row], list[Row]]:
    taken: dict[tuple[int, str, int], list[Row]] = {}
    late = []
    for _, row, mark in found:
        given = windows(node, minute(row["ts"]))
        open_ = [(start, end) for start, end in given if not closed(node, end, mark)]
        if given and not open_:
            late.append(row)
        for start, end in open_:
            taken.setdefault((start, row["u"], end), []).append(row)
    return [summary(rows, start, end) for (start, _, end), rows in sorted(taken.items(), key=lambda item: item[0])], late


def summary(rows: Sequence[Row], start: int, end: int) -> Row:
    return {"u": rows[0]["u"], "total": sum(row["n"] for row in rows), "c": len(rows), "begin": moment(start), "end": moment(end)}


def expected(node: Node, version: Version) -> tuple[list[Row], list[Row]]:
    """Rows of the output, and rejected records."""
    counted = [one for one in events(version, ["web", "app"] if node.input == "all" else [node.input]) if one[1]["n"] >= 0]
    dated = [one for one in counted if one[1]["ts"] is not None]
    undated = [row for _, row, _ in counted if row["ts"] is None]
    rows, late = by_sessions(node, dated) if node.kind == "session" else by_windows(node, dated)
    return rows, [*late, *undated]


def model(version: Version) -> dict[str, list[Row]]:
    found = {node.name: expected(node, version) for node in NODES}
    rejected = [{"stage": f"time_window:{name}", "category": "late_record", "id": row["id"]} for name, (_, late) in found.items() for row in late]
    return {name: rows for name, (rows, _) in found.items()} | {"rejected": rejected}


@examples(24, 2, suppress_health_check=list(HealthCheck))
@given(histories({"web": record, "app": record}))
def test_every_step_is_what_python_says(history: list[Version]) -> None:
    follow(history, pipeline(), HEADERS, model)


def version(web: Sequence[tuple[int, str, int | None, int]], app: Sequence[tuple[int, str, int | None, int]] = ()) -> Version:
    made: Callable[[Any], Row] = lambda one: {"id": one[0], "u": one[1], "ts": None if one[2] is None else moment(one[2]), "n": one[3]}  # noqa: E731 - said once
    return {"web": [made(one) for one in web], "app": [made(one) for one in app]}


FIXED = [
    version([(1, "a", 5, 1), (2, "b", 12, 2), (3, "a", 7, 4), (4, "a", 30, 1), (5, "b", 14, 2)], [(6, "a", 3, 1), (7, "a", 40, 2), (8, "b", 2, 3)]),
    version([(1, "a", 5, 1), (2, "b", 9, 2), (3, "a", 7, 4), (4, "a", 30, 1), (5, "b", 14, 2)], [(6, "a", 3, 1), (7, "a", 40, 2), (8, "b", 2, 3)]),
    version([(2, "b", 9, 2), (3, "a", 7, 4), (9, "b", None, 5), (5, "b", 14, -1)], [(6, "a", 3, 1), (8, "b", 2, 3)]),
]


@pytest.mark.parametrize("engine", ["sail", "spark"])
def test_one_history_on_both_engines(engine: str) -> None:
    follow(FIXED, pipeline(), HEADERS, model, engine)


@pytest.mark.deep
@pytest.mark.parametrize("stretch", [12, pytest.param(14, marks=pytest.mark.deep)])
def test_each_row_may_be_a_stretch_of_its_own(stretch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state of event time is the highest of each stretch of rows: the length of stretches, shorter here, changes no result."""
    monkeypatch.setattr(watermark, "_LABELLED", stretch)
    follow([FIXED[0], FIXED[1], FIXED[0], FIXED[2], FIXED[0]], pipeline(), HEADERS, model)


SPARSE = [
    version([]),
    version([], [(1, "a", None, 0)]),
    version([(1, "a", 3, 0)], [(1, "a", None, 0)]),
    version([(1, "a", 3, 0), (2, "a", 60, 0), (3, "a", 3, 2)], [(1, "a", 70, 0)]),
]


@pytest.mark.deep
def test_windows_over_next_to_nothing() -> None:
    follow(SPARSE, pipeline(), HEADERS, model)


def test_a_record_far_away_decides_who_is_late(tmp_path: Path) -> None:
    """Only the record that moved the watermark changes; the late one, of another group and window, is counted from then on."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", heading("late") + source("web", COLUMNS, MARK) + Node("tumbling", "tumbling", 10).text())
    for first in (60, 1):
        folder.write_csv("web.csv", HEADERS["web"], version([(1, "a", first, 1), (2, "b", 2, 1)])["web"])
        folder.run()
    found = [(row["op"], row["data"]["u"], row["data"]["begin"][11:16]) for row in folder.log("tumbling") if row["epoch"] == 2]
    assert sorted(found) == [("+A", "a", "00:00"), ("+A", "b", "00:00"), ("-R", "a", "01:00")]
    assert not (tmp_path / "out/dlq.csv").exists()


LONG = "2932897d"
"""A day more than from 1970 to the last date."""


@pytest.mark.parametrize(("before", "after"), [
    ("tumbling: { size: 10m }", f"tumbling: {{ size: {LONG} }}"),
    ("tumbling: { size: 10m }", f"hopping: {{ size: {LONG}, slide: 1d }}"),
    ("tumbling: { size: 10m }", f"hopping: {{ size: 1d, slide: {LONG} }}"),
    ("tumbling: { size: 10m }", f"session: {{ gap: {LONG} }}"),
    ("allowed_lateness: 0m", f"allowed_lateness: {LONG}"),
    ("column: ts }", f"column: ts, delay: {LONG} }}"),
    ("column: ts }", f"column: ts, out_of_order: {LONG} }}"),
    ("column: ts }", f"column: ts, idle_timeout: {LONG} }}"),
])  # fmt: skip
def test_a_duration_has_to_fit_the_times_that_there_are(tmp_path: Path, before: str, after: str) -> None:
    text = heading("long") + source("web", COLUMNS, MARK) + Node("tumbling", "tumbling", 10).text()
    assert before in text
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", text.replace(before, after))
    with pytest.raises(errata.PipelineErrors) as caught:
        folder.load()
    (wrong,) = caught.value.diagnostics
    assert f"'{LONG}' is longer than from 1970 to the end of 9999; write 2932896d or less" in wrong.message
    assert text.replace(before, after).splitlines()[wrong.line - 1][wrong.column - 1 :].startswith(LONG)


def test_a_window_of_all_the_times_that_there_are(tmp_path: Path) -> None:
    text = heading("long") + source("web", COLUMNS, MARK) + Node("tumbling", "tumbling", 10).text()
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", text.replace("size: 10m", "size: 2932896d"))
    folder.write_csv("web.csv", HEADERS["web"], version([(1, "a", 60, 1), (2, "a", 2, 1)])["web"])
    assert folder.run().exit_code == 0
    assert [(row["data"]["begin"], row["data"]["c"]) for row in folder.log("tumbling")] == [("1970-01-01T00:00:00", 2)]


def test_windows_at_the_first_and_behind_the_last_day(tmp_path: Path) -> None:
    """9999-12-31 often stands for a date that nobody knows; the window that it closes begins before the times that 64 bits of nanoseconds hold."""
    folder = Folder(tmp_path)
    node = """\
  - type: aggregate
    name: by_day
    input: days
    config:
      group_by: [k]
      time_window: { tumbling: { size: 1d } }
      cxl: |
        emit n = count(*)
        emit until = $window.end
"""
    days = source("days", {"k": "string", "day": "date"}, "watermark: { column: day }, ")
    folder.write("pipeline.yaml", heading("ends") + days + node + sink("by_day"))
    folder.write("days.csv", "k,day\na,9999-12-31\na,0001-01-01\n")
    assert folder.run().exit_code == 2
    until = "+10000-01-01T00:00:00"
    assert jsonl(folder.text("out/by_day.ndjson")) == [{"k": "a", "n": 1, "until": until}]
    assert [row["data"]["until"] for row in folder.log("by_day")] == [until]
    assert [row["until"] for row in folder.load().show("by_day")] == [until]
    first = (date(1, 1, 1) - date(1970, 1, 1)).days * 86_400 * 10**9
    assert f"the window [{first}, {first + 86_400 * 10**9})" in folder.text("out/dlq.csv")


@pytest.mark.parametrize(("changed", "code"), [
    (("tumbling: { size: 10m }", "tumbling: { size: 0s }"), "CFG-004"),
    (("tumbling: { size: 10m }", "tumbling: { size: ten }"), "CFG-004"),
    (("{ tumbling: { size: 10m } }", "{ tumbling: { size: 10m }, session: { gap: 1m } }"), "CFG-004"),
    (("allowed_lateness: 0m", "allowed_lateness: later"), "CFG-004"),
    (("      time_window: { tumbling: { size: 10m } }\n", ""), "E243"),
    ((MARK, ""), "E156"),
    (("tumbling: { size: 10m }", "session: { gap: 10m }"), None),
    (("tumbling: { size: 10m }", "session: { gap: 10m }", "sum(n)", "min($window.start)"), "E243"),
])  # fmt: skip
def test_what_is_wrong_is_told_before_anything_is_read(tmp_path: Path, changed: tuple[str, ...], code: str | None) -> None:
    text = heading("wrong") + source("web", COLUMNS, MARK) + Node("tumbling", "tumbling", 10).text()
    for before, after in zip(changed[::2], changed[1::2], strict=True):
        assert before in text
        text = text.replace(before, after)
    Folder(tmp_path).write("pipeline.yaml", text)
    with standing_in(tmp_path):
        exit_code, _, stderr = command("check", "pipeline.yaml")
    assert exit_code == (0 if code is None else 1), stderr
    assert code is None or code in stderr


CLICKS = "id,u,ts,n\n1,a,2026-03-02T10:50:00,1\n2,a,2026-03-02T11:20:00,2\n3,a,2026-03-02T10:59:59,4\n4,a,2026-03-02T12:31:00,8\n5,a,2026-03-02T11:59:00,16\n"


@pytest.mark.parametrize(("mark", "sums", "late"), [
    ("", [("10", 1), ("11", 2), ("12", 8)], [3, 5]),
    (", out_of_order: 30m", [("10", 5), ("11", 2), ("12", 8)], [5]),
    (", out_of_order: 32m", [("10", 5), ("11", 18), ("12", 8)], []),
    (", delay: 30m", [("10", 7), ("12", 8)], [5]),
])  # fmt: skip
def test_what_is_out_of_order_holds_the_watermark_and_leaves_the_windows(tmp_path: Path, mark: str, sums: list[tuple[str, int]], late: list[int]) -> None:
    """By Flink's rule for bounded out-of-orderness; `delay` moves the events themselves, as the user guide has it."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", heading("held") + source("web", COLUMNS, MARK.replace(" }", f"{mark} }}")) + Node("tumbling", "tumbling", 60).text())
    folder.write("web.csv", CLICKS)
    folder.run()
    assert [(row["begin"][11:13], row["total"]) for row in jsonl(folder.text("out/tumbling.ndjson"))] == sums
    assert [int(number) for _, _, number in queue(folder)] == late


def test_a_longer_out_of_order_takes_late_records_in(tmp_path: Path) -> None:
    """The edit touches no source row; the plan names it, and only the windows concerned change."""
    folder = Folder(tmp_path)
    folder.write("web.csv", CLICKS)
    for held in (30, 32):
        folder.write("pipeline.yaml", heading("held") + source("web", COLUMNS, MARK.replace(" }", f", out_of_order: {held}m }}")) + Node("tumbling", "tumbling", 60).text())
        if held == 32:
            with standing_in(tmp_path):
                _, stdout, _ = command("plan", "pipeline.yaml", "--format", "jsonl")
            assert {row["node"]: row["reason"] for row in jsonl(stdout)}["tumbling"] == "'out_of_order' of source 'web' changed"
        folder.run()
    assert [row["op"] for row in folder.log("web") if row["epoch"] == 2] == []
    assert [(row["op"], row["data"]["total"]) for row in folder.log("tumbling") if row["epoch"] == 2] == [("-C", 2), ("+C", 18)]


LOOKED_UP = """  - type: combine
    name: known
    input: { click: web, who: users }
    config: { where: "click.u == who.u", match: first, on_miss: skip, propagate_ck: driver, cxl: "emit u = click.u emit n = click.n" }
"""


def test_a_table_without_time_holds_no_window_open(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    users = source("users", {"u": "string"}, "watermark: none, ")
    folder.write("pipeline.yaml", heading("joined") + source("web", COLUMNS, MARK) + users + LOOKED_UP + Node("tumbling", "tumbling", 60, input="known").text())
    folder.write("web.csv", CLICKS)
    folder.write("users.csv", "u\na\n")
    folder.run()
    assert [(row["begin"][11:13], row["total"]) for row in jsonl(folder.text("out/tumbling.ndjson"))] == [("10", 1), ("11", 2), ("12", 8)]
    text = folder.text("pipeline.yaml")
    folder.write("pipeline.yaml", text.replace("watermark: none, ", ""))
    with standing_in(tmp_path):
        exit_code, _, stderr = command("check", "pipeline.yaml")
    assert exit_code == 1
    assert "add 'watermark: { column: ... }' to source 'users', or 'watermark: none' where its records have no time of their own" in stderr

EACH = """\
pipeline: {{ name: parts }}
changelog: {{ persist: {persist} }}
error_handling: {{ strategy: continue, dlq: {{ path: rejected.csv }} }}
nodes:
  - type: source
    name: rows
    config: {{ name: rows, type: csv, path: rows.csv, watermark: {{ column: ts }}, schema: [{{ name: k, type: string }}, {{ name: ts, type: date_time }}] }}
  - {{ type: transform, name: parts, input: rows, config: {{ cxl: 'emit each one in k.split("-") {{ emit part = one }}' }} }}
  - type: aggregate
    name: timed
    input: parts
    config: {{ group_by: [part], time_window: {{ tumbling: {{ size: 10m }} }}, cxl: "emit n = count(*)" }}
  - {{ type: output, name: result, input: timed, config: {{ name: result, type: csv, path: timed.csv }} }}
"""


def test_a_window_behind_emit_each_asks_no_more_without_a_table_between(tmp_path: Path, sail: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows that `emit each` makes of few records are held, so that the window's looks at them do not each hold how they are made."""
    sizes: list[int] = []

    def measured(frame: Any) -> pa.Table:
        sizes.append(frame._plan.to_proto(frame._session.client).ByteSize())
        return fetched(frame)

    fetched = base.collected
    monkeypatch.setattr(base, "collected", measured)
    longest = {}
    for persist in ("all", "boundaries"):
        folder = Folder(tmp_path / persist)
        folder.write("pipeline.yaml", EACH.format(persist=persist))
        for minutes, sums in (([1, 2], ["a,1", "b,2", "c,1"]), ([1, 2, 31, 33, 4, 32], ["a,1", "b,2", "c,1", "a,1", "b,3", "c,2"])):
            folder.write("rows.csv", "k,ts\n" + "".join(f"{('a-b', 'b-c')[at % 2]},{moment(one)}\n" for at, one in enumerate(minutes)))
            sizes.clear()
            folder.run()
            assert folder.text("timed.csv").split() == ["part,n", *sums]
        assert len(folder.rows("rejected.csv")) == 2
        longest[persist] = max(sizes)
    assert longest["boundaries"] < 2 * longest["all"]
