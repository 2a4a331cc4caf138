"""Corrections at a source: rejected records are repaired by code, in every strategy and size; edits of the files follow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from errata.core.diagnostics import PipelineErrors
from errata.core.options import RepairNotes
from tests.support.pipelines import Folder, limited

PIPELINE = """\
pipeline: { name: shop }
error_handling: { strategy: continue }
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: TYPE
      glob: in/*
      corrections: { path: corrections/*, KEY }
      MERGE
      schema: [{ name: id, type: int }, { name: group, type: string }, { name: price, type: float }, { name: day, type: date }]
  - { type: aggregate, name: totals, input: orders, config: { group_by: [group], cxl: "emit total = sum(price)" } }
  - { type: output, name: report, input: totals, config: { name: report, type: csv, path: out/totals.csv } }
  - { type: output, name: all, input: orders, config: { name: all, type: csv, path: out/all.csv } }
"""
CSV = "id,group,price,day\n1,a,1,2026-01-01\n2,a,x,2026-01-02\nx3,b,3,soon\n4,b,4,2026-01-04\n"
REPAIRS = """\
- { key: { id: 2 }, set: { price: { from: x, to: 2 } }, reason: typo }
- { key: { id: x3 }, set: { id: { from: x3, to: 3 }, day: { from: soon, to: 2026-01-03 } }, reason: typo }
- { key: { id: 4 }, set: { price: { from: 4, to: 40 }, group: { from: b, to: c } }, reason: moved }
"""
REPAIRED = "id,group,price,day\n1,a,1,2026-01-01\n2,a,2,2026-01-02\n3,b,3,2026-01-03\n4,c,40,2026-01-04\n"


def shop(path: Path, *, merge: str = "", type_: str = "csv", key: str = "key: [id]") -> Folder:
    folder = Folder(path)
    folder.write("pipeline.yaml", PIPELINE.replace("MERGE", merge).replace("TYPE", type_).replace("KEY", key))
    (path / "corrections").mkdir()
    return folder


def full(folder: Folder, path: Path) -> str:
    """The outputs of a first run on the present files."""
    fresh = Folder(path)
    for file in folder.path.rglob("*"):
        name = file.relative_to(folder.path)
        if file.is_file() and name.parts[0] in ("in", "corrections", "pipeline.yaml"):
            fresh.write(str(name), file.read_text(encoding="utf-8"))
    fresh.run()
    return fresh.text("out/all.csv") + fresh.text("out/totals.csv")


@pytest.mark.parametrize("merge", ["correlation_key: group", "merge: { strategy: snapshot, primary_key: [id] }", "merge: { strategy: upsert, primary_key: [id] }", "merge: append"])
def test_rejected_records_are_repaired_by_code(tmp_path: Path, merge: str) -> None:
    folder = shop(tmp_path / "shop", merge=merge)
    folder.write("in/a.csv", CSV)
    assert folder.run().exit_code == 2
    folder.write("corrections/a.yaml", REPAIRS)
    assert {row["state"] for row in folder.load().corrections()} == {"pending"}
    assert folder.run().exit_code == 0
    assert sorted(folder.text("out/all.csv").splitlines()) == sorted(REPAIRED.splitlines())
    assert {row["state"] for row in folder.load().corrections()} == {"applied"}
    assert folder.text("out/all.csv") + folder.text("out/totals.csv") == full(folder, tmp_path / "full")
    if merge == "merge: append":
        return  # a line that was read does not change
    folder.write("in/a.csv", CSV.replace("2,a,x", "2,a,2").replace("4,b,4", "4,b,5"))  # one is spent, one is in conflict
    assert folder.run().exit_code == 0
    assert [row["state"] for row in folder.load().corrections()] == ["spent", "applied", "applied", "conflict", "applied"]
    if "upsert" in merge:
        return  # what an overwritten file once delivered stays
    folder.write("corrections/a.yaml", REPAIRS.replace("id: x3 }, set", "id: x9 }, set"))
    assert folder.run().exit_code == 2
    assert [row["state"] for row in folder.load().corrections()] == ["spent", "dangling", "dangling", "conflict", "applied"]
    assert folder.text("out/all.csv") + folder.text("out/totals.csv") == full(folder, tmp_path / "again")
    assert folder.violations() == []


@pytest.mark.parametrize("merge", ["", "merge: { strategy: snapshot, primary_key: [id] }", "merge: append"])
def test_why_names_the_corrections_of_a_source(tmp_path: Path, merge: str) -> None:
    folder = shop(tmp_path, merge=merge)
    folder.write("in/a.csv", CSV)
    folder.run()
    folder.write("corrections/a.yaml", REPAIRS.replace("reason: moved", "reason: moved, author: ana, ticket: T-7"))
    folder.run()
    rows = list(folder.load().why("totals", {"group": "c"}))
    records, applied = [row for row in rows if row["op"]], [row for row in rows if not row["op"]]
    assert [(row["op"], row["cause"]) for row in records] == [("+A", "ingest"), ("+C", "correction")]
    assert [(row["source"], row["file"], row["row"], row["cause"], row["reason"], row["data"]["column"], row["data"]["from"], row["data"]["to"]) for row in applied] == [
        ("orders", "corrections/a.yaml", 3, "correction", "moved (ana, T-7)", "price", 4, 40),
        ("orders", "corrections/a.yaml", 3, "correction", "moved (ana, T-7)", "group", "b", "c"),
    ]
    assert [row["cause"] for row in folder.load().why("all", {"id": "2"})] == ["correction", "correction"]
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("{ name: day, type: date }", "{ name: day, type: string }"))
    folder.write("corrections/a.yaml", "\n".join(REPAIRS.splitlines()[:2]) + "\n")
    folder.run()
    causes = [(row["op"], row["cause"]) for row in folder.load().why("all", {"id": "4"})]
    assert causes == [("+A", "ingest"), ("+C", "correction"), ("+C", "correction")]
    assert [row["cause"] for row in folder.load().why("all", {"id": "1"})][-1] != "correction"
    assert folder.violations() == []


def test_large_files_are_corrected_in_the_tasks_of_the_engine(tmp_path: Path) -> None:
    folder = shop(tmp_path)
    lines = [f"{at},g{at % 7},{'x' if at % 1000 == 0 else at},2026-01-01" for at in range(1, 100_001)]
    folder.write("in/a.csv", "\n".join(["id,group,price,day", *lines]) + "\n")
    assert folder.run().rejected == 100
    folder.write("corrections/a.csv", "id,column,from,to,reason\n" + "".join(f"{at},price,x,{at},typo\n" for at in range(1000, 100_001, 1000)))
    with limited(driver_rows=1000, small_rows=1000):
        assert folder.run().exit_code == 0
    folder.write("in/a.csv", "\n".join(["id,group,price,day", *lines[:-1], "100000,g5,x,2026-02-02", "100001,g1,5,2026-02-02"]) + "\n")
    assert folder.run().exit_code == 0
    assert sum(float(row["total"]) for row in folder.rows("out/totals.csv")) == 100_000 * 100_001 / 2 + 5
    assert folder.violations() == []


def test_json_cells_are_named_by_what_they_say(tmp_path: Path) -> None:
    folder = shop(tmp_path, type_="json", key="")
    rows = [{"id": 1, "group": None, "price": {"a": 1}, "day": "2026-01-01"}, {"id": 2, "group": "b", "price": 2, "day": "2026-01-02"}]
    folder.write("in/a.json", json.dumps(rows))
    assert folder.run().exit_code == 2
    folder.write("corrections/a.yaml", """\
- key: { id: 1, group: null, price: '{"a":1}', day: 2026-01-01 }
  set: { price: { from: '{"a":1}', to: 1 }, group: { from: null, to: a } }
  reason: asked
""")
    assert folder.run().exit_code == 0
    assert folder.text("out/all.csv") == "id,group,price,day\n1,a,1,2026-01-01\n2,b,2,2026-01-02\n"


def test_a_repair_that_does_not_convert_is_refused_and_so_is_a_retraction(tmp_path: Path) -> None:
    folder = shop(tmp_path)
    folder.write("in/a.csv", CSV)
    for text, code in [("set: { price: { from: x, to: y } }", "E482"), ("set: { prize: { from: x, to: 1 } }", "E482"), ("retract: true", "E480")]:
        folder.write("corrections/a.yaml", f"- {{ key: {{ id: 2 }}, {text}, reason: typo }}\n")
        with pytest.raises(PipelineErrors, match=code):
            folder.load()
    folder.write("corrections/a.yaml", "[]\n")
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("key: [id]", "key: [idd]"))
    with pytest.raises(PipelineErrors, match="E481"):
        folder.load()


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_repaired_cells_of_a_table_become_corrections(tmp_path: Path, kind: str) -> None:
    folder, sheet = shop(tmp_path), tmp_path / f"letters.{kind}"
    folder.write("in/a.csv", CSV + "5,=1+1,'y,-2\n6\n")
    folder.run()
    assert folder.load().dlq_export(sheet) == 4
    if kind == "csv":
        text = sheet.read_text(encoding="utf-8")
        assert ",5,'=1+1,''y,-2" in text
        for before, after in [("2,a,x,", "2,a,2,"), ("x3,b,3,soon", "3,b,3,2026-01-03")]:
            assert before in text
            text = text.replace(before, after)
        sheet.write_text(text, encoding="utf-8")
    else:
        _edit(sheet, {"x": 2, "x3": 3, "soon": "2026-01-03"})
    rows = list(folder.load().dlq_import(sheet, RepairNotes(reason="asked the shop", author="ana")))
    assert [(row["column"], row["from"], row["to"], row["verdict"]) for row in rows] == [
        ("price", "x", "2", "written"), ("id", "x3", "3", "written"), ("day", "soon", "2026-01-03", "written"),
    ]  # fmt: skip
    assert folder.run().rejected == 2
    assert {row["state"] for row in folder.load().corrections()} == {"applied"}
    again = list(folder.load().dlq_import(sheet, RepairNotes(reason="asked the shop")))
    assert [row["why"][:24] for row in again] == ["no entry has this id any", "no entry has this id any"]


def _edit(path: Path, cells: dict[str, object]) -> None:
    """Change cells of a workbook as a spreadsheet does."""
    import openpyxl

    book = openpyxl.load_workbook(path)
    for row in book.active.iter_rows():
        for cell in row:
            if cell.value in cells and cell.column > 14:
                cell.value = cells[cell.value]
    book.save(path)


def test_what_cannot_be_applied_is_said(tmp_path: Path) -> None:
    folder, sheet = shop(tmp_path), tmp_path / "letters.csv"
    folder.write("in/a.csv", CSV + "2,b,x,2026-01-02\n6\n")
    folder.run()
    folder.load().dlq_export(sheet)
    text = sheet.read_text(encoding="utf-8").replace("2,a,x,", "2,a,2,").replace("x3,b,3,soon", "3,b,many,soon").replace("header has 4,6,,", "header has 4,6,,6")
    sheet.write_text(text, encoding="utf-8")
    why = {(row["place"], row["column"]): row["why"] for row in folder.load().dlq_import(sheet, RepairNotes(reason="r"), dry=True)}
    assert why == {
        ("in/a.csv:2", "price"): "2 entries have its key (id): name more columns in the key of the corrections",
        ("in/a.csv:3", "id"): "corrections/manual.yaml",
        ("in/a.csv:3", "price"): "column 'price' is float: 'many' cannot be read as one",
        ("in/a.csv:6", "id"): "the record could not be read: correct its file",
    }
    assert {row["why"] for row in folder.load().dlq_import(sheet, RepairNotes(), dry=True)} >= {"no reason is given: write one into the column '_reason', or --reason"}
    assert not (tmp_path / "corrections" / "manual.yaml").exists()
    rows = list(folder.load().dlq_import(sheet, RepairNotes(reason="r", into="elsewhere/a.yaml"), dry=True))
    assert {row["verdict"] for row in rows} == {"refused"}
