"""Closed periods: rows that were published change when somebody reopens them, and in no other run."""

from __future__ import annotations

from pathlib import Path

import pytest

from errata.core.diagnostics import PipelineErrors
from errata.core.failures import Exit, Stopped
from errata.core.options import Correction, RunOptions
from tests.support.pipelines import Folder, command, standing_in

PIPELINE = """
pipeline: { name: books }
nodes:
  - type: source
    name: bookings
    config: { name: bookings, type: csv, glob: "in/*.csv", merge: { strategy: upsert, primary_key: [id] }, schema: [{ name: id, type: int }, { name: month, type: string }, { name: v, type: int }] }
  - { type: aggregate, name: months, input: bookings, config: { group_by: [month], cxl: "emit total = sum(v)" } }
  - { type: output, name: report, input: months, config: { name: report, type: csv, path: report.csv, closed: 'month < "2026-10"' } }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.write("pipeline.yaml", PIPELINE)
    made.write("in/a.csv", "id,month,v\n1,2026-09,10\n2,2026-10,20\n")
    made.run()
    return made


def test_open_periods_change(folder: Folder) -> None:
    folder.write("in/b.csv", "id,month,v\n2,2026-10,25\n3,2026-11,1\n")
    folder.run()
    assert folder.text("report.csv") == "month,total\n2026-09,10\n2026-10,25\n2026-11,1\n"


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        ("1,2026-09,11", ['-C {"month":"2026-09","total":10}', '+C {"month":"2026-09","total":11}']),
        ("3,2026-08,7", ['+A {"month":"2026-08","total":7}']),
        ("1,2026-10,10", ['-R {"month":"2026-09","total":10}']),
    ],
    ids=["corrected", "late", "moved away"],
)
def test_a_change_of_a_closed_period_ends_the_run(rows: str, lines: list[str], folder: Folder) -> None:
    before = folder.text("report.csv")
    folder.write("in/b.csv", f"id,month,v\n{rows}\n")
    with pytest.raises(Stopped, match="'report': 1 row of closed periods would change") as stopped:
        folder.run()
    assert [*stopped.value.details] == lines
    assert (folder.text("report.csv"), folder.load().head_epoch()) == (before, 1)
    assert folder.run(reopen=True).epoch == 2
    assert folder.text("report.csv") != before
    assert folder.violations() == []


def test_a_row_may_not_leave_its_closed_period(tmp_path: Path) -> None:
    made = Folder(tmp_path)
    made.write("pipeline.yaml", PIPELINE.replace("input: months", "input: bookings"))
    made.write("in/a.csv", "id,month,v\n1,2026-09,10\n")
    made.run()
    made.write("in/b.csv", "id,month,v\n1,2026-10,10\n")
    with pytest.raises(Stopped, match="1 row of closed periods") as stopped:
        made.run()
    assert [*stopped.value.details] == ['-C {"id":1,"month":"2026-09","v":10}', '+C {"id":1,"month":"2026-10","v":10}']


def test_the_ledger_knows_what_was_reopened(folder: Folder) -> None:
    folder.write("in/b.csv", "id,month,v\n1,2026-09,11\n2,2026-10,25\n")
    folder.run(reopen=True)
    head = folder.load().head()
    assert head is not None
    assert head.counters["reopened"] == {"report": 1}


def test_an_edit_closes_a_period(folder: Folder) -> None:
    folder.write("pipeline.yaml", PIPELINE.replace("2026-10", "2026-11"))
    assert folder.run().committed is False
    folder.write("in/b.csv", "id,month,v\n2,2026-10,25\n")
    with pytest.raises(Stopped, match="closed periods"):
        folder.run()


@pytest.mark.parametrize("change", ["exclude: [month]", "mapping: { sum: total }"])
def test_other_columns_are_a_change_of_closed_periods(change: str, folder: Folder) -> None:
    folder.write("pipeline.yaml", PIPELINE.replace("path: report.csv,", f"path: report.csv, {change},").replace("closed: 'month < \"2026-10\"'", "closed: 'month < \"2026-10\"'" if "sum" in change else "closed: 'total < 15'"))
    before = folder.text("report.csv")
    with pytest.raises(Stopped, match="closed periods"):
        folder.run()
    assert folder.text("report.csv") == before
    assert folder.run(reopen=True).epoch == 2


def test_corrections_and_returns_ask_too(folder: Folder) -> None:
    fix = Correction("bookings", {"id": "1"}, {"v": "12"}, "counted again")
    with pytest.raises(Stopped, match="closed periods"):
        folder.load().correct(fix)
    folder.load().correct(fix, RunOptions(reopen=True))
    with pytest.raises(Stopped, match="closed periods"):
        folder.load().revert(1)
    folder.load().revert(1, RunOptions(reopen=True))
    assert folder.rows("report.csv")[0]["total"] == "10"


def test_a_full_refresh_publishes_again(folder: Folder) -> None:
    with pytest.raises(Stopped, match="full refresh"):
        folder.run(full_refresh=True)
    assert folder.run(full_refresh=True, reopen=True).epoch == 1


def test_the_command_says_what_would_change(folder: Folder) -> None:
    folder.write("in/b.csv", "id,month,v\n1,2026-09,11\n")
    with standing_in(folder.path):
        code, _, said = command("run", "pipeline.yaml", "--engine", "sail", "--quiet")
        assert code == Exit.STOPPED
        assert said.splitlines() == [
            "error: output 'report': 1 row of closed periods would change (closed: month < \"2026-10\")",
            '  -C {"month":"2026-09","total":10}',
            '  +C {"month":"2026-09","total":11}',
            "  = help: --reopen of errata run, correct, revert and dlq retry lets them through",
            "Epoch 1 stands; repair the cause, then run again.",
        ]
        assert command("run", "pipeline.yaml", "--engine", "sail", "--quiet", "--reopen")[0] == 0


@pytest.mark.parametrize(("closed", "code"), [("mont < 1", "CXL"), ("month", "CXL"), ("now > now", "E476")])
def test_what_cannot_be_told(closed: str, code: str, tmp_path: Path) -> None:
    made = Folder(tmp_path)
    made.write("pipeline.yaml", PIPELINE.replace("""'month < "2026-10"'""", f"'{closed}'"))
    with pytest.raises(PipelineErrors, match=code):
        made.load()
