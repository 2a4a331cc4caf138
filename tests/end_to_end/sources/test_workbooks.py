"""Workbooks in and out: a history of corrections ends as one full run, error cells heal, formulas without values are warned of."""

from __future__ import annotations

from datetime import date
from io import BytesIO
from pathlib import Path

import openpyxl
import pytest

from operators.source import reading
from tests.support.pipelines import Folder, command
from tests.support.workbooks import workbook

PIPELINE = """\
pipeline: { name: orders }
error_handling: { strategy: continue, dlq: { path: dlq.csv } }
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: xlsx
      glob: "in/*.xlsx"
      merge: { strategy: snapshot, primary_key: [id] }
      schema: [{ name: id, type: int }, { name: day, type: date }, { name: amount, type: decimal, scale: 2 }]
  - { type: transform, name: numbered, input: orders, config: { cxl: "emit place = $source.row\\nemit file = $source.file" } }
  - { type: output, name: report, input: numbered, config: { name: report, type: xlsx, path: out/report.xlsx } }
  - { type: output, name: rows, input: numbered, config: { name: rows, type: csv, path: out/rows.csv } }
"""
DAY = date(2026, 3, 1)


def wrong(made, page, row, at):
    page.write_formula(row, at, "=1/0", None, "#DIV/0!")


HISTORY = [
    {"a": [[1, DAY, 12.5, "x"], [2, DAY, wrong, None], []], "b": [[3, "2026-03-02", "7", None]]},
    {"a": [[1, DAY, 12.5, "x"], [2, DAY, 3, None]], "b": [[3, "2026-03-02", "7", None]]},
    {"a": [[2, DAY, 3.25, None], [4, None, None, "new"]]},
    {"a": [[4, None, 1.005, "new"], [2, DAY, 3.25, None]], "b": []},
]


def shown(value):
    return "" if value is None else value if isinstance(value, str) else value.isoformat() if isinstance(value, date) else f"{value:.2f}"


def model(books):
    """The rows of the outputs: keys ascending within no order of files, so by file and row."""
    rows = []
    for name in sorted(books):
        place = 0
        for row in books[name]:
            place += bool(row)
            if row and row[2] is not wrong and row[2] != 1.005:
                amount = shown(float(row[2])) if row[2] is not None else ""
                rows.append([str(row[0]), shown(row[1]), amount, str(place), f"in/{name}.xlsx"])
    return sorted(rows)


def delivered(folder: Folder, books) -> None:
    (folder.path / "in").mkdir(exist_ok=True)
    for name in ("a", "b"):
        if name in books:
            (folder.path / f"in/{name}.xlsx").write_bytes(workbook([["id", "day", "amount", "note"], *books[name]]))
        else:
            folder.remove(f"in/{name}.xlsx")


def sheet(folder: Folder) -> list[list[str]]:
    page = openpyxl.load_workbook(folder.path / "out/report.xlsx")["report"]
    return [[shown(cell) if not isinstance(cell, int) else str(cell) for cell in row] for row in page.iter_rows(values_only=True)]


@pytest.mark.parametrize("driver", [0, reading.SMALL_BYTES])
def test_a_history_of_workbooks_ends_as_one_full_run(tmp_path: Path, driver: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "SMALL_BYTES", driver)
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE)
    for books in HISTORY:
        delivered(folder, books)
        folder.run()
        found = [[row["id"], row["day"], row["amount"], row["place"], row["file"]] for row in folder.rows("out/rows.csv")]
        assert sorted(found) == model(books)
        assert len(sheet(folder)) == 1 + len(found)
        assert (folder.path / "dlq.csv").exists() == any(row and row[2] in (wrong, 1.005) for rows in books.values() for row in rows)
    assert folder.violations() == []
    kept = (folder.path / "out/report.xlsx").read_bytes()
    state = folder.state_files()
    for name in ("a", "b"):
        again = openpyxl.load_workbook(folder.path / f"in/{name}.xlsx")
        again.save(folder.path / f"in/{name}.xlsx")
    assert folder.run().exit_code == 2
    assert len(folder.state_files()) >= len(state)
    assert (folder.path / "out/report.xlsx").read_bytes() == kept
    folder.run(full_refresh=True)
    assert (folder.path / "out/report.xlsx").read_bytes() == kept


def test_formulas_without_values_are_warned_of_once_read(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE)
    made, target = openpyxl.Workbook(), BytesIO()
    for row in (["id", "day", "amount"], [1, None, "=1+1"], [2, None, "=2+2"]):
        made.active.append(row)
    made.save(target)
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.xlsx").write_bytes(target.getvalue())
    outputs = [command("run", str(tmp_path / "pipeline.yaml"), "--engine", "sail")[2] for _ in range(2)]
    assert ["in/a.xlsx: W620: 2 formulas have no value" in one for one in outputs] == [True, False]
    assert [row["amount"] for row in folder.rows("out/rows.csv")] == ["", ""]


def test_a_text_that_is_too_long_writes_nothing(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE.replace('type: xlsx\n      glob: "in/*.xlsx"', "type: csv\n      path: rows.csv").replace("{ name: day, type: date }", "{ name: day, type: string }"))
    folder.write("rows.csv", "id,day,amount\n1,x,1\n")
    assert command("run", str(tmp_path / "pipeline.yaml"), "--engine", "sail")[0] == 0
    kept = (tmp_path / "out/report.xlsx").read_bytes()
    folder.write("rows.csv", f"id,day,amount\n1,{'x' * 32768},1\n")
    code, _, stderr = command("run", str(tmp_path / "pipeline.yaml"), "--engine", "sail")
    assert (code, "E623" in stderr, (tmp_path / "out/report.xlsx").read_bytes() == kept) == (4, True, True)


@pytest.mark.parametrize("type_", ["source", "output"])
def test_without_the_library_check_names_the_extra(tmp_path: Path, type_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = "fastexcel" if type_ == "source" else "xlsxwriter"
    monkeypatch.setattr("storage.formats.find_spec", lambda name: None if name == module else object())
    Folder(tmp_path).write("pipeline.yaml", PIPELINE)
    code, _, stderr = command("check", str(tmp_path / "pipeline.yaml"))
    assert (code, "E606" in stderr, "pip install 'errata[excel]'" in stderr) == (1, True, True)
