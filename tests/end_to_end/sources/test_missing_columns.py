"""Deliveries that lack a declared column change nothing; optional columns and names that only files have (E238, docs/reference/file-contents.md, "Missing columns")."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pipelines import Folder, command

PIPELINE = """\
pipeline: {{ name: prices }}
error_handling: {{ strategy: continue, dlq: {{ path: dlq.csv }} }}
nodes:
  - type: source
    name: rows
    config:
      name: rows
      type: csv
      path: rows.csv
      merge: {{ strategy: {strategy} }}
      schema: [{{ name: id, type: int }}, {price}]
  - {{ type: aggregate, name: sums, input: rows, config: {{ group_by: [], cxl: "emit n = count(*)\\nemit total = sum(price)" }} }}
  - {{ type: output, name: out, input: sums, config: {{ name: out, type: csv, path: out.csv }} }}
"""
REQUIRED = "{ name: price, type: float }"


def made(tmp_path: Path, price: str = REQUIRED, strategy: str = "snapshot") -> Folder:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE.format(price=price, strategy=strategy))
    return folder


def run(folder: Folder) -> tuple[int, str]:
    code, _, stderr = command("run", str(folder.path / "pipeline.yaml"), "--engine", "sail", "--quiet")
    return code, stderr


@pytest.mark.parametrize("strategy", ["snapshot", "append", "snapshot, primary_key: [id]"])
@pytest.mark.parametrize("header", ["id,Price", "id,cost", "id;price", "ID,PRICE"])
def test_a_renamed_header_ends_the_run_and_changes_nothing(tmp_path: Path, header: str, strategy: str) -> None:
    folder = made(tmp_path, strategy=strategy)
    folder.write("rows.csv", "id,price\n1,10\n2,5\n")
    assert run(folder)[0] == 0
    before = folder.state_files(), folder.text("out.csv")
    folder.write("rows.csv", f"{header}\n1,10\n2,5\n3,1\n")
    code, stderr = run(folder)
    assert (code, "rows.csv" in stderr, "E238" in stderr) == (4, True, True)
    assert (folder.state_files(), folder.text("out.csv")) == before
    folder.write("rows.csv", "id,price\n1,10\n2,5\n3,1\n")
    assert run(folder)[0] == 0
    assert folder.text("out.csv") == "n,total\n3,16\n"
    assert folder.violations() == []


def test_a_column_keeps_its_rows_when_files_come_to_call_it_otherwise(tmp_path: Path) -> None:
    folder = made(tmp_path)
    folder.write("rows.csv", "id,price\n1,10\n2,5\n")
    assert run(folder)[0] == 0
    folder.write("pipeline.yaml", PIPELINE.format(price='{ name: price, type: float, source_name: "Unit price" }', strategy="snapshot"))
    folder.write("rows.csv", "id,Unit price\n1,10\n2,x\n")
    assert run(folder)[0] == 2
    assert folder.text("out.csv") == "n,total\n1,10\n"
    (entry,) = folder.rows("dlq.csv")
    assert (entry["id"], entry["price"]) == ("2", "x")
    (rejected,) = (row for row in folder.log("rows") if row["op"] == "-R")
    assert rejected["data"] == {"id": 2, "price": 5.0}
    assert folder.violations() == []


def test_an_optional_column_comes_and_goes(tmp_path: Path) -> None:
    folder = made(tmp_path, "{ name: price, type: float, optional: true }")
    for text, expected in (("id\n1\n", "n,total\n1,\n"), ("id,price\n1,4\n", "n,total\n1,4\n"), ("id\n1\n", "n,total\n1,\n")):
        folder.write("rows.csv", text)
        assert run(folder)[0] == 0
        assert folder.text("out.csv") == expected
    folder.write("pipeline.yaml", PIPELINE.format(price=REQUIRED, strategy="snapshot"))
    assert run(folder)[0] == 0  # no file has changed
    folder.write("rows.csv", "id\n1\n2\n")
    assert run(folder)[0] == 4
