"""Corrections as code about a record that is erased: none may stay in a file, and nothing of one that was there stays in the state."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from errata.core.failures import Stopped
from errata.core.options import EngineOptions, Erasure, RunOptions
from tests.support.erasing import holding, shop
from tests.support.pipelines import Folder, command

SAIL = RunOptions(engine=EngineOptions("sail"))
ANNA = Erasure("request 17", "the office", {"customer": "annabella"})
PIPELINE = shop(
    '{ name: day, type: date }, { name: amount, type: "decimal(10,2)" }',
    '{ type: corrections, name: agreed, input: orders, config: { path: "agreed/*", key: [KEY] } }',
    "{ type: output, name: report, input: agreed, config: { name: report, type: delta, path: out/report } }",
).replace("      schema:", "      corrections: { path: source/*.yaml }\n      schema:")
ORDERS = "id,customer,day,amount\n1,annabella,2026-03-01,12.50\n2,benjamin,2026-03-02,5\n3,caroline,2026-03-03,7\n"
OTHER = "- key: 2\n  set: { amount: { from: 5, to: 6 } }\n  reason: agreed\n"


def project(path: Path, agreed: str, source: str = "", key: str = "id", name: str = "a.yaml") -> Folder:
    folder = Folder(path)
    folder.write("pipeline.yaml", PIPELINE.replace("KEY", key))
    folder.write("in/orders.csv", ORDERS)
    folder.write(f"agreed/{name}", agreed)
    folder.write("source/b.yaml", source)
    folder.run()
    return folder


def refused(folder: Folder) -> tuple[str, ...]:
    before = {file: file.read_bytes() for file in folder.path.rglob("*") if file.is_file() and file.name != "claim"}
    with pytest.raises(Stopped, match="as code") as stopped:
        folder.load().erase(replace(ANNA, keep_out=True), SAIL)
    assert stopped.value.help == "take them out of their files, run, then erase again"
    assert {file: content for file, content in before.items() if "ledger" in str(file) and file.read_bytes() != content} == {}
    assert [row["customer"] for row in folder.load().show("orders")] == ["annabella", "benjamin", "caroline"]
    return stopped.value.details


@pytest.mark.parametrize(
    ("agreed", "key", "place"),
    [
        (OTHER + "- key: 1\n  set: { amount: { from: 12.5, to: 13 } }\n  reason: agreed\n", "id", "agreed/a.yaml:4:8: names the record"),
        pytest.param(OTHER + "- key: { id: 1 }\n  retract: true\n  reason: agreed\n", "id", "agreed/a.yaml:4:14: names the record", marks=pytest.mark.deep),
        (OTHER + "- key: 1\n  retract: true\n  reason: agreed\n  status: draft\n", "id", "agreed/a.yaml:4:8: names the record"),
        (OTHER + "- key: 3\n  set: { amount: { from: 7, to: 8 } }\n  reason: mixed up with annabella\n", "id", "agreed/a.yaml:6:11: quotes a value of the record"),
        pytest.param(OTHER + "- key: 3\n  set: { amount: { from: 12.50, to: 8 } }\n  reason: agreed\n", "id", "agreed/a.yaml:5:26: quotes a value of the record", marks=pytest.mark.deep),
        ("- key: annabella\n  set: { amount: { from: 12.5, to: 8 } }\n  reason: agreed\n", "customer", "agreed/a.yaml:1:8: names the record"),
        pytest.param("- key: 2026-03-01\n  set: { amount: { from: 12.5, to: 8 } }\n  reason: agreed\n", "day", "agreed/a.yaml:1:8: names the record", marks=pytest.mark.deep),
        pytest.param('- key: "12.500"\n  retract: true\n  reason: agreed\n', "amount", "agreed/a.yaml:1:8: names the record", marks=pytest.mark.deep),
    ],
    ids=["number", "map", "draft", "reason", "from", "text", "date", "decimal"],
)  # fmt: skip
def test_corrections_about_a_record_are_refused_with_their_place(tmp_path: Path, agreed: str, key: str, place: str) -> None:
    assert refused(project(tmp_path, agreed, key=key)) == (place,)


def test_rows_of_tables_are_refused_too(tmp_path: Path) -> None:
    folder = project(tmp_path, "id,column,from,to,reason,author\n2,amount,5,6,agreed,ben\n1,amount,12.5,13,agreed,ben\n3,amount,7,9,agreed,annabella\n", name="a.csv")
    assert refused(folder) == ("agreed/a.csv:3:1: names the record", "agreed/a.csv:4:21: quotes a value of the record")


def test_corrections_of_a_source_are_refused_too(tmp_path: Path) -> None:
    folder = project(tmp_path, OTHER, "- key: { id: 1 }\n  set: { amount: { from: 12.5, to: 13 } }\n  reason: agreed\n")
    assert refused(folder) == ("source/b.yaml:1:14: names the record",)


def test_a_record_that_corrections_named_leaves_once_they_are_gone(tmp_path: Path) -> None:
    folder = project(tmp_path, OTHER + "- key: 1\n  set: { customer: { from: annabella, to: ANNABELLA } }\n  reason: agreed\n", "- key: { id: 1 }\n  set: { amount: { from: 12.5, to: 77123.25 } }\n  reason: asked\n")
    assert len(refused(folder)) == 2
    folder.write("agreed/a.yaml", OTHER)
    folder.write("source/b.yaml", "")
    folder.run()
    folder.write("in/orders.csv", ORDERS.replace("1,annabella,2026-03-01,12.50\n", ""))
    done = folder.load().erase(ANNA, SAIL)
    assert done.proof is not None
    assert done.proof["found"] == 0
    assert holding(folder.path, ["annabella", "ANNABELLA", "77123.25"]) == []
    assert [(row["id"], str(row["amount"])) for row in folder.load().show("report")] == [(2, "6.00"), (3, "7.00")]
    assert [row["place"] for row in folder.load().corrections()] == ["agreed/a.yaml:1"]
    assert command("verify", str(folder.path / "pipeline.yaml"), "--recompute")[0] == 0
