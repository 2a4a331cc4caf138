"""Erased records whose changes a source remembers: all events of their keys leave its state, also ones that never made a row."""

from __future__ import annotations

from pathlib import Path

import pytest

from errata.core.options import EngineOptions, Erasure, RunOptions
from tests.support.databases import Database
from tests.support.erasing import holding
from tests.support.pipelines import Folder, command

SAIL = RunOptions(engine=EngineOptions("sail"))
PIPELINE = """\
pipeline: { name: events }
nodes:
  - type: source
    name: people
    config:
      name: people
      WHERE
      merge: { strategy: changelog, primary_key: [id], op: code, ops: { append: [N], correct: [C], retract: [X] }ORDER }
      schema: [{ name: seq, type: int }, { name: code, type: string }, { name: id, type: int }, { name: person, type: string }]
  - { type: output, name: all, input: people, config: { name: all, type: csv, path: all.csv } }
"""
FIRST = [(1, "N", 1, "annabella"), (2, "N", 2, "benjamin"), (3, "C", 1, "annabeth"), (4, "C", 2, "benedict")]
LATER = [(5, "C", 2, "benno")]


@pytest.mark.parametrize("order", ["", ", version_field: seq", ", cursor: seq, overlap: 9"], ids=["file", "versions", "cursor"])
def test_no_event_of_an_erased_record_is_left(order: str, tmp_path: Path) -> None:
    folder, asks = Folder(tmp_path), bool(order)
    folder.write("pipeline.yaml", PIPELINE.replace("ORDER", order).replace("WHERE", "type: sql\n      connection: shop\n      table: people" if asks else "type: csv\n      glob: in/*.csv"))
    database = Database.new("sqlite", tmp_path)
    database.do("CREATE TABLE people (seq INTEGER, code TEXT, id INTEGER, person TEXT)")

    def deliver(number: int, rows: list[tuple[int, str, int, str]]) -> None:
        database.do(*(f"INSERT INTO people VALUES {row}" for row in rows))
        folder.write_csv(f"in/{number}.csv", ["seq", "code", "id", "person"], [dict(zip(("seq", "code", "id", "person"), row, strict=True)) for row in rows])

    deliver(1, FIRST)
    folder.run()
    folder.remove("in/1.csv")
    database.do("DELETE FROM people WHERE id = 1")
    done = folder.load().erase(Erasure("request 17", "the office", {"id": "1"}), SAIL)
    assert done.proof is not None
    assert done.proof["found"] == 0
    assert holding(folder.path, ["annabella", "annabeth"], ["in", "shop.db"]) == []
    deliver(2, LATER)
    folder.run()
    assert folder.rows("all.csv") == [{"seq": "5", "code": "C", "id": "2", "person": "benno"}]
    assert command("verify", str(folder.path / "pipeline.yaml"), "--quiet")[0] == 0
