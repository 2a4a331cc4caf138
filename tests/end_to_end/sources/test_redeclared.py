"""Columns that become declared, or undeclared, when files have gone whose rows stand: these rows come to be what they would be, were their files still there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from errata.core.options import EngineOptions, RunOptions
from tests.support.pipelines import Folder

PIPELINE = """\
pipeline: { name: redeclared, vars: {} }
error_handling: { strategy: continue, dlq: { path: dlq.csv } }
nodes:
  - type: source
    name: rows
    config:
      name: rows
      type: TYPE
      glob: "in/*.TYPE"
      merge: MERGE
      schema: [{ name: id, type: int }COLUMNS]
  - { type: output, name: out, input: rows, config: { name: out, type: csv, path: out.csv } }
"""
LEDGER, UPSERT = "{ strategy: ledger, primary_key: [id] }", "{ strategy: upsert, primary_key: [id] }"
RECORDS = {"a": [{"id": 1, "x": "7", "y": "p"}, {"id": 2, "x": "seven", "y": None}], "b": [{"id": 3, "x": "9", "y": "q"}], "c": [{"id": 4, "y": "r"}]}


def text_of(type_: str, records: list[dict[str, object]]) -> str:
    if type_ == "json":
        return "".join(json.dumps(record) + "\n" for record in records)
    names = list(records[0])
    return "\n".join([",".join(names), *(",".join(str(record[name] or "") for name in names) for record in records)]) + "\n"


def outcome(folder: Folder, type_: str, merge: str, columns: list[str], *, gone: bool) -> tuple[str, list[tuple[str, str]]]:
    """The output and the rejects once the source had declared several columns, one after the other, the first of two files gone or not."""
    for name, records in RECORDS.items():
        folder.write(f"in/{name}.{type_}", text_of(type_, records))
    for number, declared in enumerate(columns):
        text = PIPELINE.replace("TYPE", type_).replace("MERGE", merge).replace("COLUMNS", declared)
        folder.write("pipeline.yaml", text)
        folder.run()
        assert folder.violations() == []
        if gone and not number:
            folder.remove(f"in/a.{type_}")
            folder.run()
    rejects = folder.rows("dlq.csv") if (folder.path / "dlq.csv").exists() else []
    return folder.text("out.csv"), sorted((row["_cxl_dlq_error_category"], row["_cxl_dlq_error_detail"]) for row in rejects)


@pytest.mark.parametrize(("type_", "merge"), [("csv", "append"), ("json", LEDGER), ("csv", UPSERT)])
@pytest.mark.parametrize(
    "columns",
    [
        ["", ", { name: x, type: int, optional: true }, { name: y, type: string }"],
        [", { name: x, type: string, optional: true }", ", { name: y, type: any }"],
        ["", ", { name: x, type: any, optional: true }", ", { name: y, type: string }", ""],
    ],
    ids=["typed", "exchanged", "there-and-back"],
)
def test_rows_are_as_if_their_files_were_there(tmp_path: Path, type_: str, merge: str, columns: list[str]) -> None:
    expected = outcome(Folder(tmp_path / "there"), type_, merge, columns, gone=False)
    assert outcome(Folder(tmp_path / "gone"), type_, merge, columns, gone=True) == expected


@pytest.mark.parametrize("merge", ["append", LEDGER])
def test_correlation_keys_and_event_times_follow(tmp_path: Path, merge: str) -> None:
    """A record of a file that is gone is in the group, and in the window, that its fields say, once the source declares these."""
    folder = Folder(tmp_path)
    head, output = PIPELINE.replace("TYPE", "csv").replace("MERGE", merge).split("  - { type: output")
    folder.write("pipeline.yaml", f"{head}  - {{ type: output{output}".replace("COLUMNS", ""))
    folder.write("in/a.csv", "id,g,t\n1,k,2024-01-01T00:00:00\n2,m,2024-01-01T00:30:00\n3,m,2024-01-01T05:00:00\n")
    folder.run()
    folder.remove("in/a.csv")
    folder.write("in/b.csv", "id,g,t\n9,z,2024-01-01T07:00:00\n")
    folder.run()
    hours = "    config: { group_by: [], time_window: { tumbling: { size: 1h } }, cxl: 'emit n = count(*)' }\n"
    declared = ", { name: g, type: string }, { name: t, type: date_time }"
    keyed = head.replace("COLUMNS", declared).replace("merge:", "correlation_key: g\n      watermark: { column: t }\n      merge:")
    folder.write("pipeline.yaml", f"{keyed}  - type: aggregate\n    name: hours\n    input: rows\n{hours}  - {{ type: output{output}".replace("input: rows, config: { name: out", "input: hours, config: { name: out"))
    folder.run()
    assert [row["n"] for row in folder.rows("out.csv")] == ["2", "1", "1"]
    folder.write("in/c.csv", "id,g,t\nno,k,2024-01-01T08:00:00\n")
    folder.run()
    assert [row["n"] for row in folder.rows("out.csv")] == ["1", "1", "1"]
    assert folder.violations() == []


@pytest.mark.parametrize(
    ("before", "after", "rows"),
    [
        (", { name: m.q, type: int }", ", { name: m.q, type: int }, { name: x, type: int }", [{"id": 1, "m.q": 3, "x": 7}]),
        ("", ", { name: m.q, type: int }", [{"id": 1, "m.q": 3, "x": "7"}]),
        (", { name: m.q, type: int }", "", [{"id": 1, "m.q": 3, "x": "7"}]),
    ],
)
def test_columns_that_are_paths_are_declared_like_others(tmp_path: Path, before: str, after: str, rows: list[dict[str, object]]) -> None:
    folder = Folder(tmp_path)
    text = PIPELINE.replace("TYPE", "json").replace("MERGE", "append").replace("type: csv, path: out.csv", "type: json, path: out.json")
    folder.write("in/a.json", '{"id": 1, "m": {"q": 3}, "x": "7"}\n')
    folder.write("in/b.json", "")
    for columns in (before, after):
        folder.write("pipeline.yaml", text.replace("COLUMNS", columns))
        folder.run()
        folder.remove("in/a.json")
    found = json.loads(folder.text("out.json"))
    assert [dict(sorted(row.items())) for row in found] == rows
    assert folder.violations() == []


@pytest.mark.parametrize(("type_", "merge"), [("csv", "snapshot"), ("json", "{ strategy: snapshot, primary_key: [id] }")])
@pytest.mark.parametrize("columns", [["", ", { name: x, type: int }"], [", { name: x, type: int }", ""]], ids=["declared", "undeclared"])
def test_a_revert_brings_values_back_where_their_columns_are_now(tmp_path: Path, type_: str, merge: str, columns: list[str]) -> None:
    folder = Folder(tmp_path)
    records: list[dict[str, object]] = [{"id": 1, "x": 7, "y": "p"}, {"id": 2, "x": 8, "y": None}]
    for count, declared in ((2, columns[0]), (3, columns[0]), (3, columns[1])):
        folder.write(f"in/a.{type_}", text_of(type_, [*records, {"id": 3, "x": 9, "y": "q"}][:count]))
        folder.write("pipeline.yaml", PIPELINE.replace("TYPE", type_).replace("MERGE", merge).replace("COLUMNS", declared))
        folder.run()
    folder.load().revert(1, RunOptions(engine=EngineOptions("sail")))
    assert [(row["id"], row["x"], row["y"]) for row in folder.rows("out.csv")] == [("1", "7", "p"), ("2", "8", "")]
    assert folder.violations() == []


@pytest.mark.parametrize(("declared", "text"), [
    (["", ", { name: x, type: string, optional: true }"], "id,x,y\n1,7,p\n4,,\n"),
    ([", { name: x, type: string, optional: true }", ""], "id,x,y\n1,7,p\n4,,\n"),
    ([", { name: y, type: string, optional: true }", ", { name: y, type: any, optional: true }"], "id,y,x\n1,p,7\n4,,\n"),
], ids=["declared", "undeclared", "otherwise"])  # fmt: skip
def test_rows_of_an_overwritten_file_keep_all_their_values(tmp_path: Path, declared: list[str], text: str) -> None:
    folder = Folder(tmp_path)
    pipeline = PIPELINE.replace("TYPE", "csv").replace("MERGE", UPSERT)
    folder.write("pipeline.yaml", pipeline.replace("COLUMNS", declared[0]))
    for content in ("id,x,y\n1,7,p\n", "id\n4\n"):
        folder.write("in/a.csv", content)
        folder.run()
    folder.write("pipeline.yaml", pipeline.replace("COLUMNS", declared[1]))
    folder.run()
    assert folder.text("out.csv") == text
    assert folder.violations() == []
