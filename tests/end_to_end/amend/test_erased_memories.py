"""A source's memory of other records when a record is erased: their events stay, and later deliveries find the same as if the record had never come."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from errata.core.options import EngineOptions, Erasure, RunOptions
from tests.support.databases import Database
from tests.support.erasing import holding, shop
from tests.support.pipelines import Folder

SAIL = RunOptions(engine=EngineOptions("sail"))
OUT = "{ type: output, name: report, input: orders, config: { name: report, type: csv, path: out/report.csv } }"
CHANGES = """\
pipeline: { name: shop }
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: sql
      connection: shop
      table: changes
      merge: { strategy: changelog, primary_key: [id], op: code, ORDER, ops: { append: [N], correct: [C], retract: [X] } }
      schema: [{ name: code, type: string }, { name: id, type: int }, { name: v, type: int }, { name: name, type: string }]
  - { type: output, name: report, input: orders, config: { name: report, type: csv, path: out/report.csv } }
"""
HEADER = "id,customer,code,old,note\n"


def orders(path: Path, merge: str = "") -> Folder:
    """A folder with a pipeline over records of changes."""
    folder = Folder(path)
    ops = f"merge: {{ strategy: changelog, primary_key: [id], op: code, {merge}ops: {{ append: [N], correct: [C], retract: [X], patch: [P] }} }}"
    text = shop("{ name: code, type: string }, { name: old, type: int }, { name: note, type: string }", OUT)
    folder.write("pipeline.yaml", text.replace("merge: { strategy: snapshot, primary_key: [id] }", ops).replace("path: in/orders.csv", "glob: in/*.csv"))
    return folder


def deliver(folder: Folder, name: str, *lines: str) -> None:
    """Deliver a file, and run."""
    folder.write(f"in/{name}.csv", HEADER + "".join(f"{line}\n" for line in lines))
    folder.run()


def erase(folder: Folder, **named: str) -> None:
    """Erase records, and look that nothing is found and nothing is wrong."""
    done = folder.load().erase(Erasure("request 17", "the office", named), SAIL)
    assert done.proof is not None
    assert done.proof["files"] == []
    assert folder.violations() == []


def shown(folder: Folder) -> tuple[list[dict[str, str]], list[object]]:
    """The written rows, and the messages of dead letters."""
    return folder.rows("out/report.csv"), [row["detail"] for row in folder.load().dlq_list()]


def remembered(folder: Folder) -> list[dict[str, object]]:
    """The rows of the source's memory."""
    [place] = folder.path.rglob("state/orders")
    return [dict(row) for row in DeltaTable(str(place)).to_pyarrow_table().to_pylist()]


@pytest.mark.parametrize(("merge", "note"), [("", "sent by annabella"), ("on_unknown: reject, ", "N")], ids=["appended", "rejected"])
def test_events_of_others_stay_whatever_they_quote(merge: str, note: str, tmp_path: Path) -> None:
    folder, without = orders(tmp_path / "one", merge), orders(tmp_path / "other", merge)
    his = [f"2,benjamin,N,,{note}", "2,benjamin,C,,second"]
    deliver(folder, "b", *his, "1,annabella,N,,first")
    deliver(without, "b", *his)
    folder.write("in/b.csv", HEADER)
    folder.remove("in/b.csv")
    erase(folder, customer="annabella", id="1")
    for number, line in enumerate(("3,carol,N,,x", "2,benjamin,X,,", "2,benjamin,P,,third")):
        for each in (folder, without):
            deliver(each, f"a{number}", line)
        assert shown(folder) == shown(without)
    assert folder.violations() == []


@pytest.mark.parametrize(("merge", "line", "customer"), [("", "2,{},C,1,her note", "Al"), ("on_unknown: reject, ", "2,{},X,1,her note", "annabella")], ids=["corrects", "retracts"])
def test_what_an_erased_record_took_back_stays_taken_back(merge: str, line: str, customer: str, tmp_path: Path) -> None:
    folder = orders(tmp_path, f"{merge}of: {{ id: old }}, ")
    deliver(folder, "b", "1,benjamin,N,,mine", "3,carol,N,,x")
    deliver(folder, "c", line.format(customer), f"2,{customer},N,,her note")
    deliver(folder, "d", "4,dora,C,2,y")
    folder.remove("in/c.csv")
    erase(folder, id="2")
    assert holding(folder.path, ["her note"]) == []
    assert not [row for row in remembered(folder) if customer in row.values() or row["id"] == 2]
    before = folder.rows("out/report.csv")
    deliver(folder, "a", "1,benjamin,C,,before all")
    assert folder.rows("out/report.csv") == before
    assert "1" not in {row["id"] for row in before}
    assert folder.violations() == []


def test_a_record_that_came_and_went_within_a_run_is_meant_too(tmp_path: Path) -> None:
    folder = orders(tmp_path)
    deliver(folder, "b", "1,annabella,N,,hers", "1,annabella,X,,", "3,carol,N,,x")
    folder.remove("in/b.csv")
    erase(folder, customer="annabella")
    assert [row["customer"] for row in remembered(folder)] == ["carol"]
    assert holding(folder.path, ["annabella", "hers"]) == []


@pytest.mark.parametrize("order", ["version_field: v", "cursor: v, overlap: 9", "on_unknown: reject, version_field: v"])
def test_no_digest_of_an_erased_record_is_left(order: str, tmp_path: Path) -> None:
    """Nobody can test a guess: the digests of the same records, as another folder has them, are not there."""
    folder, guess = Folder(tmp_path / "one"), Folder(tmp_path / "guess")
    hers = ["('N', 1, 1, 'annabella')", "('C', 1, 2, 'annabeth')"]
    for each, rows in ((folder, [*hers, "('N', 2, 1, 'benjamin')"]), (guess, hers)):
        each.write("errata.toml", '[connections.shop]\nurl = "sqlite:shop.db"\n')
        each.write("pipeline.yaml", CHANGES.replace("ORDER", order))
        database = Database.new("sqlite", each.path)
        database.do("CREATE TABLE changes (code TEXT, id INTEGER, v INTEGER, name TEXT)", *(f"INSERT INTO changes VALUES {row}" for row in rows))
        each.run()
    Database.new("sqlite", folder.path).do("DELETE FROM changes WHERE id = 1")
    erase(folder, id="1")
    guesses = {row["_file"] for row in remembered(guess)}
    assert len(guesses) == len(hers)
    assert [row for row in remembered(folder) if row["_file"] in guesses] == []
    assert [row["__times"] for row in remembered(folder) if row["__times"]] == [1]
    folder.run()
    assert folder.violations() == []


def test_a_reject_at_the_place_of_an_erased_one_is_remembered(tmp_path: Path) -> None:
    folder = orders(tmp_path)
    deliver(folder, "b", "1,annabella,Q,,first content of the place")
    deliver(folder, "b", "2,benjamin,Q,,second")
    folder.remove("in/b.csv")
    erase(folder, customer="annabella")
    assert [row["customer"] for row in remembered(folder)] == ["benjamin"]
    assert holding(folder.path, ["annabella"]) == []
