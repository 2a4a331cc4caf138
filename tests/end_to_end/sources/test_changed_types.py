"""A column of a source gets another type: earlier values are shown, stored and restored in the type that the column has now."""

from __future__ import annotations

from pathlib import Path

import pytest

from errata.core.options import EngineOptions, RunOptions
from tests.support.pipelines import Folder

PIPELINE = """\
pipeline: {name: p}
nodes:
  - {type: source, name: s, config: {name: s, type: csv, glob: in/*.csv, merge: MERGE, schema: [{name: id, type: string}, {name: v, type: KIND}]}}
  - {type: transform, name: t, input: s, config: {cxl: "emit w = v"}}
  - {type: output, name: out, input: t, config: {name: out, type: csv, path: out.csv}}
"""


def laid_out(folder: Folder, merge: str, kind: str) -> None:
    folder.write("pipeline.yaml", PIPELINE.replace("MERGE", merge).replace("KIND", kind))


@pytest.mark.parametrize("kinds", [("int", "string"), ("string", "int"), ("int", "float"), ("string", "float"), ("string", "any"), ("any", "string"), ("any", "int")])
@pytest.mark.parametrize("merge", ["append", "{strategy: ledger, primary_key: [id]}", "{strategy: upsert, primary_key: [id]}"])
def test_records_whose_file_is_gone_keep_their_values(tmp_path: Path, merge: str, kinds: tuple[str, str]) -> None:
    folder = Folder(tmp_path)
    laid_out(folder, merge, kinds[0])
    folder.write("in/1.csv", "id,v\na,10\nb,20\n")
    folder.run()
    laid_out(folder, merge, kinds[1])
    folder.remove("in/1.csv")
    folder.write("in/2.csv", "id,v\nc,7\n")
    folder.run()
    assert folder.text("out.csv") == "id,v,w\na,10,10\nb,20,20\nc,7,7\n"
    assert folder.violations() == []


@pytest.mark.parametrize("kinds", [("int", "string"), ("string", "int"), ("float", "int"), ("string", "any"), ("any", "string"), ("any", "int")])
def test_history_and_revert_have_the_values(tmp_path: Path, kinds: tuple[str, str]) -> None:
    folder = Folder(tmp_path)
    for kind, value in zip(kinds, (10, 11), strict=True):
        laid_out(folder, "{strategy: snapshot, primary_key: [id]}", kind)
        folder.write("in/1.csv", f"id,v\na,{value}\nb,20\n")
        folder.run()
    now = int if kinds[1] == "int" else str  # a cell of a column of any type is a text
    for node, column in (("s", "v"), ("t", "w"), ("out", "w")):
        assert [(row["op"], row["data"][column]) for row in folder.log(node)] == [("+A", now(10)), ("+A", now(20)), ("-C", now(10)), ("+C", now(11))]
        assert [row[column] for row in folder.load().show(node, 1)] == [now(10), now(20)]
    folder.load().revert(1, RunOptions(engine=EngineOptions("sail"), max_retract_share=1.0))
    assert folder.text("out.csv") == "id,v,w\na,10,10\nb,20,20\n"
    assert folder.violations() == []


@pytest.mark.parametrize("kinds", [("string", "any"), ("any", "string"), ("date", "string")])
def test_a_text_stays_a_text(tmp_path: Path, kinds: tuple[str, str]) -> None:
    """Under `ledger` the row that came first stands: it is in the form of its column's type then."""
    folder, value = Folder(tmp_path), "2024-02-29" if kinds[0] == "date" else "a [b"
    for number, kind in enumerate(kinds):
        laid_out(folder, "{strategy: ledger, primary_key: [id]}", kind)
        folder.write(f"in/{number}.csv", f"id,v\n{number},{value}\n")
        folder.run()
        folder.remove("in/0.csv")
    assert folder.text("out.csv") == f"id,v,w\n0,{value},{value}\n1,{value},{value}\n"
    assert [row["data"]["v"] for row in folder.log("s")] == [value, value]


@pytest.mark.parametrize("kinds", [("string", "any"), ("any", "string")])
def test_correlation_keys_that_stood_are_written_as_they_were(tmp_path: Path, kinds: tuple[str, str]) -> None:
    folder = Folder(tmp_path)
    for number, kind in enumerate(kinds):
        laid_out(folder, "{strategy: ledger, primary_key: [id]}, correlation_key: v", kind)
        folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("path: out.csv", "path: out.csv, include_correlation_keys: true"))
        folder.write(f"in/{number}.csv", f"id,v\n{number},x\n")
        folder.run()
        folder.remove("in/0.csv")
    assert folder.text("out.csv") == "id,v,w,$ck.v\n0,x,x,x\n1,x,x,x\n"
    assert folder.violations() == []


@pytest.mark.parametrize("between", ["int", "any"])
def test_old_epochs_are_folded_as_they_are(tmp_path: Path, between: str) -> None:
    folder = Folder(tmp_path)
    for number, (kind, value) in enumerate([("string", "x"), (between, "7"), ("string", "y")]):
        laid_out(folder, "append", kind)
        folder.remove(f"in/{number - 1}.csv")
        folder.write(f"in/{number}.csv", f"id,v\n{number},{value}\n")
        folder.run()
    folder.load().compact(4, EngineOptions("sail"))
    folder.write("in/3.csv", "id,v\n3,z\n")
    folder.run()
    assert [row["v"] for row in folder.load().show("s")] == ["x", "7", "y", "z"]
    assert folder.text("out.csv") == "id,v,w\n0,x,x\n1,7,7\n2,y,y\n3,z,z\n"
    assert folder.violations() == []
