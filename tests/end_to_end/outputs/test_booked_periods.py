"""Late changes of closed periods that are booked into the open one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from errata.core.diagnostics import PipelineErrors
from errata.core.failures import Exit, Stopped, Usage
from errata.core.options import Correction, Restatement, RunOptions
from errata.inspect.history import History
from errata.pages.corrections import corrections
from tests.support.databases import Database
from tests.support.examples import examples
from tests.support.killing import kill_points
from tests.support.pipelines import Folder, command, standing_in

MONTHS = ("2026-08", "2026-09", "2026-10", "2026-11")
SOURCE = """
pipeline: { name: books }
nodes:
  - type: source
    name: bookings
    config:
      name: bookings
      type: csv
      path: in.csv
      merge: { strategy: snapshot, primary_key: [id] }
      schema: [{ name: id, type: int }, { name: month, type: string }, { name: region, type: string }, { name: v, type: decimal, scale: 2 }, { name: n, type: int }]
"""
ROWS = """
  - type: output
    name: rows
    input: bookings
    config: { name: rows, type: csv, path: rows.csv, closed: { when: 'month < "OPEN"', late: book, into: { month: "OPEN" }, figures: [v, n] } }
"""
REPORT = """
  - { type: aggregate, name: months, input: bookings, config: { group_by: [month, region], cxl: "emit total = sum(v)" } }
  - type: output
    name: report
    input: months
    config: { name: report, type: csv, path: report.csv, closed: { when: 'month < "OPEN"', late: book, into: { month: "OPEN" }, figures: [total] } }
"""
Row = Mapping[str, str]
Truth = dict[int, tuple[str, str, int]]
"""Month, region and amount by id."""


def opened(folder: Folder, month: str, nodes: str = ROWS) -> None:
    """All months before this one are closed."""
    folder.write("pipeline.yaml", SOURCE + nodes.replace("OPEN", month))


def deliver(folder: Folder, truth: Truth) -> None:
    folder.write_csv("in.csv", ("id", "month", "region", "v", "n"), [{"id": id_, "month": month, "region": region, "v": v, "n": 1} for id_, (month, region, v) in truth.items()])


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    opened(made, "2026-10")
    deliver(made, {1: ("2026-09", "west", 10), 2: ("2026-10", "west", 20), 3: ("2026-08", "north", 5)})
    made.run()
    return made


def booked(folder: Folder, name: str = "rows.csv") -> list[str]:
    """The booked rows of a file, as text."""
    return [line for line in folder.text(name).splitlines()[1:] if not line.endswith(",,,")]


def test_figures_that_differ_are_booked_as_a_difference(folder: Folder) -> None:
    deliver(folder, {1: ("2026-09", "west", 12), 2: ("2026-10", "west", 21), 3: ("2026-08", "north", 5)})
    folder.run()
    assert folder.text("rows.csv").splitlines() == [
        "id,month,region,v,n,booked.as,booked.month,booked.epoch",
        "1,2026-09,west,10.00,1,,,",
        "2,2026-10,west,21.00,1,,,",
        "3,2026-08,north,5.00,1,,,",
        "1,2026-10,west,2.00,0,difference,2026-09,2",
    ]
    assert folder.violations() == []


def test_rows_that_differ_otherwise_are_taken_back_and_entered(folder: Folder) -> None:
    deliver(folder, {1: ("2026-09", "east", 10), 2: ("2026-10", "west", 20), 4: ("2026-09", "north", 7), 3: ("2026-11", "north", 6)})
    folder.run()
    assert booked(folder) == [
        "1,2026-10,west,-10.00,-1,reversal,2026-09,2",
        "1,2026-10,east,10.00,1,entry,2026-09,2",
        "3,2026-10,north,-5.00,-1,reversal,2026-08,2",
        "4,2026-10,north,7.00,1,entry,2026-09,2",
    ]
    assert folder.rows("rows.csv")[:4] == [
        {"id": "1", "month": "2026-09", "region": "west", "v": "10.00", "n": "1", "booked.as": "", "booked.month": "", "booked.epoch": ""},
        {"id": "2", "month": "2026-10", "region": "west", "v": "20.00", "n": "1", "booked.as": "", "booked.month": "", "booked.epoch": ""},
        {"id": "3", "month": "2026-08", "region": "north", "v": "5.00", "n": "1", "booked.as": "", "booked.month": "", "booked.epoch": ""},
        {"id": "3", "month": "2026-11", "region": "north", "v": "6.00", "n": "1", "booked.as": "", "booked.month": "", "booked.epoch": ""},
    ]
    assert folder.violations() == []


def test_a_difference_follows_its_correction_and_vanishes_with_it(folder: Folder) -> None:
    first = folder.text("rows.csv")
    deliver(folder, {1: ("2026-09", "west", 12), 2: ("2026-10", "west", 20), 3: ("2026-08", "north", 4)})
    folder.run()
    deliver(folder, {1: ("2026-09", "west", 13), 2: ("2026-10", "west", 20), 3: ("2026-08", "north", 4)})
    assert folder.run().counts["rows"] == {"-C": 1, "+C": 1}
    assert booked(folder) == ["1,2026-10,west,3.00,0,difference,2026-09,3", "3,2026-10,north,-1.00,0,difference,2026-08,2"]
    deliver(folder, {1: ("2026-09", "west", 10), 2: ("2026-10", "west", 20), 3: ("2026-08", "north", 5)})
    folder.run()
    assert folder.text("rows.csv") == first


def test_what_was_booked_is_closed_with_its_month(folder: Folder) -> None:
    deliver(folder, {1: ("2026-09", "west", 12), 2: ("2026-10", "west", 20), 3: ("2026-08", "north", 5)})
    folder.run()
    before = folder.text("rows.csv")
    opened(folder, "2026-11")
    folder.run()
    assert folder.text("rows.csv") == before
    deliver(folder, {1: ("2026-09", "west", 10), 2: ("2026-10", "west", 25), 3: ("2026-08", "north", 5)})
    folder.run()
    assert booked(folder) == ["1,2026-10,west,2.00,0,difference,2026-09,2", "1,2026-11,west,-2.00,0,difference,2026-09,4", "2,2026-11,west,5.00,0,difference,2026-10,4"]
    assert folder.violations() == []


def test_reopened_periods_say_what_is_so_and_nothing_is_booked(folder: Folder) -> None:
    deliver(folder, {1: ("2026-09", "east", 12), 3: ("2026-10", "north", 5)})
    folder.run()
    assert len(booked(folder)) == 3
    assert folder.run().committed is False
    assert folder.run(reopen=True).committed
    assert folder.text("rows.csv").splitlines()[1:] == ["1,2026-09,east,12.00,1,,,", "3,2026-10,north,5.00,1,,,"]
    assert folder.run(reopen=True).committed is False or booked(folder) == []
    deliver(folder, {1: ("2026-09", "east", 13), 3: ("2026-10", "north", 5)})
    folder.run()
    assert booked(folder) == ["1,2026-10,east,1.00,0,difference,2026-09,4"] or booked(folder) == ["1,2026-10,east,1.00,0,difference,2026-09,5"]
    assert folder.violations() == []


def test_an_edit_that_opens_a_month_again_takes_its_bookings_back(folder: Folder) -> None:
    deliver(folder, {1: ("2026-09", "west", 12), 2: ("2026-10", "west", 20), 3: ("2026-08", "north", 6)})
    folder.run()
    opened(folder, "2026-09")
    folder.run()
    assert folder.rows("rows.csv")[0]["v"] == "12.00"
    assert booked(folder) == ["3,2026-09,north,1.00,0,difference,2026-08,3"]


def test_bookings_begin_where_a_closed_month_stopped_runs(tmp_path: Path) -> None:
    made = Folder(tmp_path)
    stopping = ROWS[: ROWS.index("closed:")] + "closed: 'month < \"OPEN\"' }\n"
    opened(made, "2026-10", stopping)
    deliver(made, {1: ("2026-09", "west", 10)})
    made.run()
    opened(made, "2026-10")
    deliver(made, {1: ("2026-09", "west", 12)})
    made.run()
    assert made.text("rows.csv").splitlines()[1:] == ["1,2026-09,west,10.00,1,,,", "1,2026-10,west,2.00,0,difference,2026-09,2"]
    deliver(made, {1: ("2026-09", "west", 10)})
    made.run()
    assert booked(made) == []
    assert made.violations() == []


def test_manual_corrections_are_booked(folder: Folder) -> None:
    folder.load().correct(Correction("bookings", {"id": "1"}, {"v": "11"}, "counted again"))
    assert booked(folder) == ["1,2026-10,west,1.00,0,difference,2026-09,2"]
    folder.load().revert(1)
    assert booked(folder) == []
    folder.load().correct(Correction("bookings", {"id": "1"}, {"v": "11"}, "counted again"), RunOptions(reopen=True))
    assert (folder.rows("rows.csv")[0]["v"], booked(folder)) == ("11.00", [])


def test_a_full_refresh_and_other_columns_ask_for_reopen(folder: Folder) -> None:
    with pytest.raises(Stopped, match="full refresh"):
        folder.run(full_refresh=True)
    opened(folder, "2026-10", ROWS.replace("path: rows.csv,", "path: rows.csv, exclude: [region],"))
    with pytest.raises(Stopped, match="other columns"):
        folder.run()
    folder.run(reopen=True)
    assert "region" not in folder.text("rows.csv")


def test_the_ledger_counts_what_was_booked(folder: Folder) -> None:
    deliver(folder, {1: ("2026-09", "east", 10), 2: ("2026-10", "west", 20), 3: ("2026-08", "north", 6)})
    folder.run()
    head = folder.load().head()
    assert head is not None
    assert head.counters["booked"] == {"rows": 3}


def test_a_difference_that_no_column_holds_is_rejected(tmp_path: Path) -> None:
    made = Folder(tmp_path)
    opened(made, "2026-10", ROWS + "\nerror_handling: { strategy: continue }\n")
    made.write("in.csv", f"id,month,region,v,n\n1,2026-09,west,1,{2**63 - 1}\n2,2026-09,west,-{10**36 - 1},1\n")
    made.run()
    made.write("in.csv", f"id,month,region,v,n\n1,2026-09,west,1,-5\n2,2026-09,west,{10**36 - 1},1\n")
    assert made.run().exit_code == 2
    assert booked(made) == []
    assert [(row["category"], row["stage"]) for row in made.load().dlq_list()] == [("figure_overflow", "output:rows")] * 2
    assert made.violations() == []


# -- where the rows go


TABLES = ROWS.replace("v, n]", "v]") + """
  - type: output
    name: table
    input: bookings
    config: { name: table, type: delta, path: table, exclude: [n], closed: { when: 'month < "OPEN"', late: book, into: { month: "OPEN" }, figures: [v] } }
  - type: output
    name: mirror
    input: bookings
    config: { name: mirror, type: sql, connection: shop, table: mirror, exclude: [n], closed: { when: 'month < "OPEN"', late: book, into: { month: "OPEN" }, figures: [v] } }
  - type: output
    name: lines
    input: bookings
    config:
      name: lines
      type: json
      path: lines.jsonl
      options: { format: ndjson }
      preserve_nulls: true
      exclude: [n]
      with_provenance: true
      sort_order: [month, { field: id, order: desc }]
      closed: { when: 'month < "OPEN"', late: book, into: { month: "OPEN" }, figures: [v] }
"""
NAMES = ("id", "month", "region", "v", "booked.as", "booked.month", "booked.epoch")


def tabled(path: Path) -> tuple[Folder, Database]:
    made, database = Folder(path), Database.new("sqlite", path)
    opened(made, "2026-10", TABLES.replace("path: rows.csv,", "path: rows.csv, exclude: [n],", 1))
    deliver(made, {1: ("2026-09", "west", 10), 2: ("2026-10", "west", 20), 3: ("2026-08", "north", 5)})
    made.run()
    deliver(made, {1: ("2026-09", "west", 12), 2: ("2026-10", "east", 20), 3: ("2026-10", "north", 5), 4: ("2026-08", "north", 1)})
    return made, database


def everywhere(made: Folder, database: Database) -> list[list[tuple[Any, ...]]]:
    """The rows of each output, sorted, as texts."""
    files = [tuple(row[name] or None for name in NAMES) for row in made.rows("rows.csv")]
    delta = [tuple(row[name] for name in NAMES) for row in DeltaTable(str(made.path / "table")).to_pyarrow_table().to_pylist()]
    columns = ", ".join(json.dumps(name) for name in NAMES)
    mirror = list(database.ask(f"SELECT {columns} FROM mirror"))
    lines = [tuple(row[name] for name in NAMES) for row in map(json.loads, made.text("lines.jsonl").splitlines())]
    return [sorted([tuple("" if value is None else str(Decimal(str(value)).normalize()) if at == 3 else str(value) for at, value in enumerate(row)) for row in rows]) for rows in (files, delta, mirror, lines)]


def test_tables_mirrors_and_lines_have_the_same_rows(tmp_path: Path) -> None:
    made, database = tabled(tmp_path)
    made.run()
    files, *others = everywhere(made, database)
    assert len(files) == 7
    assert all(rows == files for rows in others)
    lines = [json.loads(line) for line in made.text("lines.jsonl").splitlines()]
    assert [(row["month"], row["id"], row["booked.as"]) for row in lines] == [
        ("2026-08", 3, None), ("2026-09", 1, None), ("2026-10", 4, "entry"), ("2026-10", 3, None), ("2026-10", 3, "reversal"), ("2026-10", 2, None), ("2026-10", 1, "difference"),
    ]  # fmt: skip
    assert [row["provenance.epoch"] for row in lines] == [1, 1, 2, 2, 2, 2, 2]
    assert made.violations() == []


@pytest.mark.deep
def test_a_run_that_books_may_die_at_every_step(tmp_path: Path) -> None:
    made, database = tabled(tmp_path / "made")
    points = kill_points(made, Folder.run, tmp_path / "killed")
    expected = everywhere(made, database)[0]
    for point in points:
        point.folder.run()
        assert sorted(tuple("" if not row[name] else str(Decimal(row[name]).normalize()) if name == "v" else row[name] for name in NAMES) for row in point.folder.rows("rows.csv")) == expected, point.moment
        assert point.folder.violations() == []


@pytest.mark.parametrize("engine", ["sail", pytest.param("spark", marks=pytest.mark.deep)])
def test_both_engines_book_the_same(engine: str, tmp_path: Path) -> None:
    made = Folder(tmp_path, engine)
    opened(made, "2026-10", ROWS + REPORT)
    deliver(made, {1: ("2026-09", "west", 10), 2: ("2026-10", "west", 20), 3: ("2026-08", "north", 5)})
    made.run()
    deliver(made, {1: ("2026-09", "west", 12), 2: ("2026-09", "west", 20), 3: ("2026-11", "north", 5)})
    made.run()
    assert made.text("report.csv").splitlines()[1:] == [
        "2026-08,north,5.00,,,", "2026-09,west,10.00,,,", "2026-11,north,5.00,,,", "2026-10,north,-5.00,reversal,2026-08,2", "2026-10,west,22.00,difference,2026-09,2",
    ]  # fmt: skip
    assert booked(made) == ["1,2026-10,west,2.00,0,difference,2026-09,2", "2,2026-10,west,20.00,1,entry,2026-09,2", "3,2026-10,north,-5.00,-1,reversal,2026-08,2"]


def test_an_erasure_publishes_closed_periods_again(folder: Folder) -> None:
    deliver(folder, {1: ("2026-09", "west", 12), 2: ("2026-10", "west", 20), 3: ("2026-08", "north", 5)})
    folder.run()
    deliver(folder, {1: ("2026-09", "west", 12), 2: ("2026-10", "west", 20)})
    with standing_in(folder.path):
        words = ("erase", "pipeline.yaml", "--engine", "sail", "--key", "id=3", "--reason", "asked for", "--quiet")
        assert command(*words)[0] == Exit.STOPPED
        assert command(*words, "--reopen")[0] == 0
    assert folder.text("rows.csv").splitlines()[1:] == ["1,2026-09,west,12.00,1,,,", "2,2026-10,west,20.00,1,,,"]


@pytest.mark.parametrize("form", ["booked", "closed"])
def test_an_erasure_that_keeps_totals_changes_no_closed_period(tmp_path: Path, form: str) -> None:
    made = Folder(tmp_path)
    report = REPORT if form == "booked" else REPORT.replace(', late: book, into: { month: "OPEN" }, figures: [total]', "")
    opened(made, "2026-10", report)
    deliver(made, {1: ("2026-09", "west", 10), 2: ("2026-10", "west", 20), 3: ("2026-08", "north", 5)})
    made.run()
    before = made.text("report.csv")
    deliver(made, {1: ("2026-09", "west", 10), 2: ("2026-10", "west", 20)})
    with standing_in(tmp_path):
        words = ("erase", "pipeline.yaml", "--engine", "sail", "--key", "id=3", "--reason", "asked for", "--quiet")
        assert command(*words)[0] == Exit.STOPPED
        assert command(*words, "--keep-totals", "month,region,v")[0] == 0
    assert made.text("report.csv") == before
    assert list(made.load().restate("months", Restatement(("month",)))) == []
    made.run()
    assert made.text("report.csv") == before
    assert made.violations() == []


def test_an_erasure_of_open_periods_changes_no_closed_one(folder: Folder) -> None:
    opened(folder, "2026-10", ROWS + REPORT)
    folder.run()
    deliver(folder, {1: ("2026-09", "west", 10), 3: ("2026-08", "north", 5)})
    with standing_in(folder.path):
        assert command("erase", "pipeline.yaml", "--engine", "sail", "--key", "id=2", "--reason", "asked for", "--quiet")[0] == 0
    assert folder.text("rows.csv").splitlines()[1:] == ["1,2026-09,west,10.00,1,,,", "3,2026-08,north,5.00,1,,,"]
    assert folder.violations() == []


def test_a_record_that_was_taken_back_stays_published_until_its_period_is_reopened(folder: Folder) -> None:
    deliver(folder, {1: ("2026-09", "west", 10), 2: ("2026-10", "west", 20)})
    folder.run()
    with standing_in(folder.path):
        words = ("erase", "pipeline.yaml", "--engine", "sail", "--key", "id=3", "--reason", "asked for", "--quiet")
        assert command(*words)[0] == Exit.STOPPED
        assert command(*words, "--reopen")[0] == 0
    assert folder.text("rows.csv").splitlines()[1:] == ["1,2026-09,west,10.00,1,,,", "2,2026-10,west,20.00,1,,,"]


def test_the_cause_of_a_total_that_an_erasure_changed_is_the_erasure(tmp_path: Path) -> None:
    made = Folder(tmp_path)
    opened(made, "2026-01", REPORT)
    deliver(made, {1: ("2026-09", "west", 10), 2: ("2026-09", "west", 20)})
    made.run()
    deliver(made, {1: ("2026-09", "west", 10)})
    with standing_in(tmp_path):
        assert command("erase", "pipeline.yaml", "--engine", "sail", "--key", "id=2", "--reason", "asked for", "--quiet")[0] == 0
    [line] = made.load().restate("months", Restatement(("month",)))
    assert (line["first"], line["now"], line["causes"]) == (Decimal(30), Decimal(10), ["erase"])


# -- the list


def test_the_list_says_what_each_row_corrects_and_why(folder: Folder) -> None:
    deliver(folder, {1: ("2026-09", "west", 12), 2: ("2026-10", "west", 20), 3: ("2026-08", "north", 5), 4: ("2026-09", "east", 1)})
    folder.run()
    folder.load().correct(Correction("bookings", {"id": "3"}, {"region": "south"}, "moved"))
    into = {"month": "2026-10"}
    before = [
        {"output": "rows", "as": "difference", "period": {"month": "2026-09"}, "into": into, "row": {"id": 1, "region": "west"}, "figures": {"v": Decimal("2.00"), "n": 0}, "epoch": 2, "causes": ["correction"], "reason": None},
        {"output": "rows", "as": "entry", "period": {"month": "2026-09"}, "into": into, "row": {"id": 4, "region": "east"}, "figures": {"v": Decimal("1.00"), "n": 1}, "epoch": 2, "causes": ["ingest"], "reason": None},
    ]
    assert list(folder.load().booked("rows", 2)) == before
    found = list(folder.load().booked())
    assert [row for row in found if row["epoch"] == 2] == before
    moved = [{"as": row["as"], "row": row["row"], "figures": row["figures"], "reason": row["reason"]} for row in found if row["epoch"] == 3]
    assert moved == [
        {"as": "reversal", "row": {"id": 3, "region": "north"}, "figures": {"v": Decimal("-5.00"), "n": -1}, "reason": "moved"},
        {"as": "entry", "row": {"id": 3, "region": "south"}, "figures": {"v": Decimal("5.00"), "n": 1}, "reason": "moved"},
    ]
    assert list(folder.load().booked(at=1)) == []
    with pytest.raises(Usage, match="'report' is no output that books"):
        list(folder.load().booked("report"))


def test_pages_show_what_is_booked(folder: Folder) -> None:
    deliver(folder, {1: ("2026-09", "west", 12), 2: ("2026-10", "west", 20), 3: ("2026-08", "north", 5)})
    folder.run()
    page = corrections(History(folder.load().snapshot()), "rows")
    [line] = page.booked
    cells = [(name, value.text) for part in (line.period, line.row, line.figures) for name, value in part]
    assert (line.kind, line.epoch, line.causes) == ("difference", 2, ("correction",))
    assert cells == [("month", "2026-09"), ("id", "1"), ("region", "west"), ("v", "2.00"), ("n", "0")]
    assert page.more == 0
    assert "Late changes of closed periods" in folder.load().report()


# -- what adds up


def sums(rows: Sequence[Row], names: Sequence[str], figure: str) -> dict[tuple[str, ...], Decimal]:
    """The sums of a figure by key, original month and region; no sum of nothing."""
    found: dict[tuple[str, ...], Decimal] = {}
    for row in rows:
        at = tuple((row.get("booked.month") or row["month"]) if name == "month" else row[name] for name in names)
        found[at] = found.get(at, Decimal(0)) + Decimal(row[figure])
    return {at: total for at, total in found.items() if total}


def closed_rows(rows: Sequence[Row], month: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.items()) for row in rows if row["month"] < month)


truths = st.dictionaries(st.integers(1, 4), st.tuples(st.sampled_from(MONTHS), st.sampled_from(("north", "west")), st.integers(-3, 3)), max_size=4)
histories = st.lists(st.tuples(truths, st.integers(0, 1)), min_size=2, max_size=5)


@given(history=histories)
@examples(24, 2)
def test_published_and_booked_rows_add_up(tmp_path_factory: pytest.TempPathFactory, history: list[tuple[Truth, int]]) -> None:
    folder, at = Folder(tmp_path_factory.mktemp("books")), 1
    before: dict[str, list[dict[str, str]]] = {}
    for truth, steps in history:
        at = min(at + steps, len(MONTHS) - 1)
        opened(folder, MONTHS[at], ROWS + REPORT)
        deliver(folder, truth)
        folder.run()
        found = {name: folder.rows(name) for name in ("rows.csv", "report.csv")}
        for name, rows in found.items():
            if before:
                assert closed_rows(rows, MONTHS[at]) == closed_rows(before[name], MONTHS[at])
            assert all(row["month"] == MONTHS[at] or row["month"] < MONTHS[at] for row in rows if row["booked.as"])
        said = [{"id": str(id_), "month": month, "region": region, "v": str(v), "n": "1"} for id_, (month, region, v) in truth.items()]
        for figure in ("v", "n"):
            assert sums(found["rows.csv"], ("id", "month", "region"), figure) == sums(said, ("id", "month", "region"), figure)
        assert sums(found["report.csv"], ("month", "region"), "total") == sums(said, ("month", "region"), "v")
        before = found
    assert folder.run().committed is False
    assert [row for row in folder.load().verify(recompute=True) if row["verdict"] != "ok"] == []


# -- what cannot be

GOOD = "when: 'month < \"2026-10\"', late: book, into: { month: '2026-10' }, figures: [v]"


@pytest.mark.parametrize(
    ("closed", "message"),
    [
        (GOOD.replace("'2026-10'", "'2026-09'"), "names a closed period: month 2026-09"),
        (GOOD.replace("figures: [v]", "figures: []"), "'figures' names none"),
        (GOOD.replace("[v]", "[w]"), "figure 'w' is not written"),
        (GOOD.replace("[v]", "[region]"), "of type string"),
        (GOOD.replace("into: { month: '2026-10' }, ", ""), "needs 'into'"),
        (GOOD.replace("{ month:", "{ moth:"), "'moth', which names the period, is not written"),
        (GOOD.replace("{ month:", "{ region:"), "no column that 'when' looks at"),
        (GOOD.replace("late: book", "late: stop"), "belong to late: book"),
        ("when: 'id < 3', late: book, into: { id: x }, figures: [v]", "'x' is no int"),
        ("when: 'v < 3', late: book, into: { month: '2026-10' }, figures: [v]", "'v' names the period and is a figure"),
    ],
)
def test_what_cannot_be_booked(closed: str, message: str, tmp_path: Path) -> None:
    made = Folder(tmp_path)
    opened(made, "2026-10", ROWS[: ROWS.index("closed:")] + f"closed: {{ {closed} }} }}\n")
    with pytest.raises(PipelineErrors, match="E477") as wrong:
        made.load()
    assert message in str(wrong.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("mapping: { booked.as: region },", "column of booked rows"),
        ("exclude: [id], sort_order: [id],", "sorted by 'id'"),
        ("path: '{source_file}.csv',", "bookings do not"),
        ("history: { key: [id] },", "a history has no closed periods"),
    ],
)
def test_where_nothing_can_be_booked(more: str, message: str, tmp_path: Path) -> None:
    made = Folder(tmp_path)
    nodes = ROWS.replace("path: rows.csv,", "") if more.startswith("path") else ROWS
    opened(made, "2026-10", nodes.replace("type: csv,", f"type: csv, {more}"))
    with pytest.raises(PipelineErrors) as wrong:
        made.load()
    assert message in str(wrong.value)
