"""Rejected records that are erased: the texts of cells that could not be read leave too, wherever they were quoted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from errata.core.failures import Usage
from errata.core.options import EngineOptions, Erasure, RunOptions
from tests.support.erasing import holding, shop
from tests.support.pipelines import Folder, command

SAIL = RunOptions(engine=EngineOptions("sail"))
ANNA = Erasure("request 17", "the office", {"customer": "annabella"})
PIPELINE = shop(
    "{ name: amount, type: int }, { name: day, type: date }", "{ type: output, name: report, input: orders, config: { name: report, type: csv, path: out/report.csv } }"
).replace("strategy: continue", "strategy: continue, dlq: { path: out/rejected.csv, include_source_row: true }")
LINES = ["1,annabella,forty-two,2026-03-01", "2,benjamin,unknown,2026-03-02", "3,annabella,unknown,early march", "4,caroline,7,2026-03-02"]


def test_a_text_that_could_not_be_read_is_left_nowhere(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE)
    for lines in (LINES, [line.replace("forty-two", "forty-three") for line in LINES]):
        folder.write("in/orders.csv", "\n".join(["id,customer,amount,day", *lines]) + "\n")
        folder.run()
    words = ["annabella", "forty-two", "forty-three", "early march"]
    assert {found.split(": ")[1] for found in holding(folder.path, words)} == {*words}
    log = tmp_path / ".errata/shop/run.log"
    log.write_text("column 'amount': cannot read 'forty-two' as int\ncolumn 'amount': cannot read 'unknown' as int\n")
    folder.write("in/orders.csv", "\n".join(["id,customer,amount,day", LINES[1], LINES[3]]) + "\n")
    with pytest.raises(Usage, match="quotes an erased value"):
        folder.load().erase(Erasure("the one with forty-three", "the office", {"customer": "annabella"}), SAIL)
    done = folder.load().erase(ANNA, SAIL)
    assert done.proof is not None
    assert done.proof["found"] == 0
    assert holding(folder.path, words) == []
    assert log.read_text() == "column 'amount': cannot read '(erased)' as int\ncolumn 'amount': cannot read 'unknown' as int\n"
    assert "unknown" in folder.text("out/rejected.csv")
    assert command("verify", str(folder.path / "pipeline.yaml"))[0] == 0


@pytest.mark.parametrize("keep_out", [False, pytest.param(True, marks=pytest.mark.deep)])
def test_a_reject_leaves_without_the_next_one_at_its_place(tmp_path: Path, keep_out: bool) -> None:
    """The key of a reject is its place in the file, and no name of its record."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE)
    for line in (LINES[0], "5,benjamin,seventy-one,2026-03-02"):
        folder.write("in/orders.csv", f"id,customer,amount,day\n{line}\n{LINES[3]}\n")
        folder.run()
    folder.load().erase(replace(ANNA, keep_out=keep_out), SAIL)
    folder.run(full_refresh=keep_out)
    assert holding(folder.path, ["annabella", "forty-two"]) == []
    assert [(row["id"], row["customer"], row["amount"]) for row in folder.rows("out/rejected.csv")] == [("5", "benjamin", "seventy-one")]
    assert command("verify", str(folder.path / "pipeline.yaml"), "--recompute")[0] == 0


@pytest.mark.parametrize("word", ["orders", "fields", "unknown", *(pytest.param(word, marks=pytest.mark.deep) for word in ("detail", "category", "ingest", "unknown_operation", "report"))])
def test_a_text_that_is_also_a_word_of_the_state_leaves_the_errors_of_others_alone(tmp_path: Path, word: str) -> None:
    """Node names, categories and members of the state's files are in every state: they are not looked for everywhere."""
    folder = Folder(tmp_path)
    ops = "merge: { strategy: changelog, primary_key: [id], op: code, ops: { append: [N], correct: [C], retract: [X] } }"
    pipeline = PIPELINE.replace("merge: { strategy: snapshot, primary_key: [id] }", ops).replace("path: in/orders.csv", "glob: in/*.csv").replace("name: day, type: date", "name: code, type: string")
    folder.write("pipeline.yaml", pipeline)
    folder.write("in/a.csv", "id,customer,amount,code\n2,benjamin,5,?\n3,carol,7,N\n4,dora,abc,N\n")
    folder.write("in/b.csv", f"id,customer,amount,code\n1,annabella,{word},N\n")
    folder.run()
    others = [row for row in folder.rows("out/rejected.csv") if row["customer"] != "annabella"]
    folder.remove("in/b.csv")
    code, _, said = command("erase", str(folder.path / "pipeline.yaml"), "--engine", "sail", "--key", "customer=annabella", "--reason", "request 17")
    assert code in (0, 2), said
    assert ("has the same words" in said) == (word != "unknown")
    folder.write("in/c.csv", "id,customer,amount,code\n9,carol,1,N\n")
    folder.run()
    ours = lambda rows: [{name: value for name, value in row.items() if "timestamp" not in name} for row in rows]  # noqa: E731
    assert ours(folder.rows("out/rejected.csv")) == ours(others)
    assert holding(folder.path, ["annabella"]) == []
    assert command("verify", str(folder.path / "pipeline.yaml"))[0] == 0
