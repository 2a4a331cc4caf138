"""Outputs with a history, end to end: every format, amendments, rollback, edits of logic, compaction, a full run over what is there."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable
from hypothesis import given

from tests.support.examples import examples
from tests.support.histories import Fact, Recording, by_time, in_order
from tests.support.pipelines import Folder, command, limited
from tests.unit.operators.test_histories import steps

HEAD = """\
pipeline: {name: told}
error_handling: {strategy: continue, dlq: {path: out/dlq.csv, include_reason: true}}
nodes:
  - type: source
    name: facts
    config:
      name: facts
      type: csv
      path: facts.csv
      merge: {strategy: snapshot, primary_key: [no]}
      schema: [{name: no, type: int}, {name: thing, type: string}, {name: since, type: int}, {name: city, type: string}, {name: ended, type: bool}]
"""
HEADER = ("no", "thing", "since", "city", "ended")
TIME, EPOCH, BOTH = "valid_from: since", "recorded: epoch", "valid_from: since, recorded: epoch"


def sink(name: str, settings: str, form: str = "type: csv, path: out/{name}.csv", more: str = "") -> str:
    place = form.format(name=name)
    return f"  - {{type: output, name: {name}, input: facts, config: {{name: {name}, {place}, exclude: [no, ended]{more}, history: {{key: [thing], deleted: ended, {settings}}}}}}}\n"


def project(place: Path | str, *sinks: str) -> Folder:
    folder = Folder(Path(place))
    folder.write("pipeline.yaml", HEAD + "".join(sinks))
    return folder


def deliver(folder: Folder, *rows: tuple[Any, ...]) -> None:
    folder.write_csv("facts.csv", HEADER, [dict(zip(HEADER, row, strict=True)) for row in rows])


def published(folder: Folder, name: str) -> list[tuple[str, ...]]:
    return [tuple(row.values()) for row in folder.rows(f"out/{name}.csv")]


FIRST = [(1, "ann", 10, "Rome", "false"), (2, "ann", 30, "Oslo", "false"), (3, "bob", 20, "Bern", "false")]


@given(steps=steps)
@examples(16, 2)
def test_runs_tell_what_the_model_tells(tmp_path_factory: pytest.TempPathFactory, steps: list[dict[int, Fact]]) -> None:
    place = tmp_path_factory.mktemp("told")
    folder = project(place, sink("time", TIME), sink("epoch", EPOCH), sink("both", BOTH, more=", if_exists: overwrite"))
    epochs, models = 0, {"epoch": Recording(timed=False), "both": Recording(timed=True)}
    steps = [{key: Fact(fact.thing or "", fact.since, (fact.said[0] or "",), bool(fact.ended)) for key, fact in step.items()} for step in steps]  # a text cell is never null
    for number, facts in enumerate(steps):
        deliver(folder, *((key, fact.thing, fact.since, fact.said[0], fact.ended) for key, fact in facts.items()))
        epochs += folder.run().epoch == epochs + 1
        if not number or facts != steps[number - 1]:
            for model in models.values():
                model.tell(epochs, facts)
        wanted = [(thing, since, *said, begin, end, end is None) for thing, since, said, begin, end in in_order(by_time(facts))]
        assert published(folder, "time") == [tuple(cell(value) for value in row) for row in wanted]
        for name, model in models.items():
            rows = [(*row.version[:2], *row.version[2], *((row.version[3], row.version[4]) if model.timed else ()), row.begin, row.end) for row in model.in_order()]
            ends = [row.end is None and row.version[4] is None for row in model.in_order()]
            assert published(folder, name) == [tuple(cell(value) for value in (*row, end)) for row, end in zip(rows, ends, strict=True)], name
    assert folder.violations() == []
    again = project(tmp_path_factory.mktemp("again"), sink("time", TIME))
    again.write("facts.csv", folder.text("facts.csv"))
    again.run()
    assert again.text("out/time.csv") == folder.text("out/time.csv")


def cell(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def test_every_format_has_the_same_rows(tmp_path: Path) -> None:
    forms = {
        "csv": "type: csv, path: out/csv", "json": "type: json, path: out/json, preserve_nulls: true, options: {{format: ndjson}}", "xml": "type: xml, path: out/xml",
        "parquet": "type: parquet, path: out/parquet", "arrow": "type: arrow, path: out/arrow", "delta": "type: delta, path: out/delta",
    }  # fmt: skip
    folder = project(tmp_path, *(sink(name, BOTH, form) for name, form in forms.items()))
    for rows in (FIRST, [*FIRST, (4, "ann", 20, "Nice", "false")], [*FIRST[:2], (5, "bob", 40, "", "true")]):
        deliver(folder, *rows)
        folder.run()
        out = tmp_path / "out"
        wanted = [json.loads(line) for line in (out / "json").read_text().splitlines()]
        frames = [pl.read_parquet(out / "parquet"), pl.read_ipc(out / "arrow"), pl.DataFrame(DeltaTable(out / "delta").to_pyarrow_table())]
        for frame in frames:
            found = frame.to_dicts()
            assert sorted(map(repr, found)) == sorted(map(repr, wanted))
        assert frames[0].to_dicts() == wanted
        assert (out / "csv").read_text().count("\n") == len(wanted) + 1
        assert (out / "xml").read_text().count("<recorded_from>") == len(wanted)
    assert folder.violations() == []


def test_amendments_are_changes_like_others(tmp_path: Path) -> None:
    folder = project(tmp_path, sink("time", TIME), sink("epoch", EPOCH))
    deliver(folder, *FIRST)
    folder.run()
    pipeline = str(tmp_path / "pipeline.yaml")
    assert command("correct", pipeline, "facts", "--key", "no=3", "--set", "city=Basel", "--reason", "typo")[0] == 0
    assert published(folder, "epoch")[2:] == [("bob", "20", "Bern", "1", "2", "false"), ("bob", "20", "Basel", "2", "", "true")]
    assert published(folder, "time")[2:] == [("bob", "20", "Basel", "20", "", "true")]
    assert command("revert", pipeline, "--to", "1")[0] == 0
    recorded = [("bob", "20", "Bern", "1", "2", "false"), ("bob", "20", "Basel", "2", "3", "false"), ("bob", "20", "Bern", "3", "", "true")]
    assert published(folder, "epoch")[2:] == recorded
    assert command("compact", pipeline, "--before", "4")[0] == 0
    deliver(folder, *FIRST[:2])
    folder.run()
    assert published(folder, "epoch")[2:] == [*recorded[:2], ("bob", "20", "Bern", "3", "4", "false")]
    assert folder.violations() == []
    assert command("run", pipeline, "--full-refresh")[0] == 0
    assert published(folder, "epoch") == [("ann", "10", "Rome", "1", "", "true"), ("ann", "30", "Oslo", "1", "", "true")]


def test_a_row_without_a_time_waits_in_the_queue(tmp_path: Path) -> None:
    folder = project(tmp_path, sink("time", TIME, more=", changelog: {path: 'out/changes-{epoch}.jsonl'}"))
    deliver(folder, *FIRST, (4, "bob", None, "Rome", "false"))
    assert folder.run().exit_code == 2
    assert [(row["_cxl_dlq_stage"], row["_cxl_dlq_error_category"], row["no"]) for row in folder.rows("out/dlq.csv")] == [("output:time", "null_event_time", "4")]
    assert [row["data"]["valid_from"] for row in map(json.loads, folder.text("out/changes-1.jsonl").splitlines())] == [10, 30, 20]
    assert [row["_epoch"] if "_epoch" in row else row["epoch"] for row in folder.log("time")] == [1, 1, 1]
    deliver(folder, *FIRST, (4, "bob", 90, "Rome", "false"))
    assert folder.run().exit_code == 0
    assert [(row["offset"], row["op"]) for row in map(json.loads, folder.text("out/changes-2.jsonl").splitlines())] == [(3, "-C"), (4, "+C"), (5, "+A")]
    assert [row["offset"] for row in folder.log("time")] == [0, 1, 2, 3, 4, 5]
    assert folder.violations() == []


def test_a_group_is_rolled_back_for_a_row_without_a_time(tmp_path: Path) -> None:
    folder = project(tmp_path, sink("time", TIME), sink("epoch", EPOCH))
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("path: facts.csv", "path: facts.csv\n      correlation_key: thing"))
    deliver(folder, *FIRST)
    folder.run()
    deliver(folder, *FIRST, (4, "ann", None, "Nice", "false"))
    folder.run()
    assert published(folder, "time") == [("bob", "20", "Bern", "20", "", "true")]
    assert published(folder, "epoch") == [("ann", "10", "Rome", "1", "2", "false"), ("ann", "30", "Oslo", "1", "2", "false"), ("bob", "20", "Bern", "1", "", "true")]
    deliver(folder, *FIRST)
    folder.run()
    assert [row[0] for row in published(folder, "time")] == ["ann", "ann", "bob"]
    assert folder.violations() == []


def test_logic_makes_versions_and_its_own_kind_begins_again(tmp_path: Path) -> None:
    folder = project(tmp_path, sink("epoch", EPOCH))
    deliver(folder, *FIRST)
    folder.run()
    transform = "  - {type: transform, name: upper, input: facts, config: {cxl: 'emit city = city.upper()'}}\n"
    folder.write("pipeline.yaml", HEAD + transform + sink("epoch", EPOCH).replace("input: facts", "input: upper"))
    folder.run()
    assert [row[2:] for row in published(folder, "epoch") if row[1] == "10"] == [("Rome", "1", "2", "false"), ("ROME", "2", "", "true")]
    folder.write("pipeline.yaml", HEAD + sink("epoch", BOTH))
    folder.run()
    assert [row[3:] for row in published(folder, "epoch")] == [("10", "30", "3", "", "false"), ("30", "", "3", "", "true"), ("20", "", "3", "", "true")]
    assert folder.violations() == []
    checks = {(row["node"], row["detail"]) for row in folder.load().verify(recompute=True) if row["check"] == "recompute"}
    assert ("epoch", "not compared: epoch tells what earlier runs published") in checks


def test_runs_are_told_by_their_begin(tmp_path: Path) -> None:
    folder = project(tmp_path, sink("run", "recorded: run"))
    deliver(folder, *FIRST)
    folder.run()
    deliver(folder, *FIRST[1:])
    folder.run()
    started = [run["started"].replace(tzinfo=None) for run in folder.load().runs()]
    begin, end = (pl.Series([text]).str.to_datetime()[0] for text in published(folder, "run")[0][3:5])
    assert (begin, end) == tuple(started)


def test_many_rows_are_told_as_few(tmp_path: Path) -> None:
    place = [project(tmp_path / name, sink("time", TIME), sink("epoch", EPOCH), sink("both", BOTH)) for name in ("few", "many")]
    for rows in (FIRST, [*FIRST, (4, "ann", 20, "Nice", "false")], [(1, "ann", 10, "Rome", "false"), (4, "ann", 20, "Rome", "false"), (3, "bob", 25, "Bern", "false")]):
        for folder, limits in zip(place, ({}, {"small_rows": 0, "driver_rows": 0}), strict=True):
            deliver(folder, *rows)
            with limited(**limits):
                folder.run()
    for name in ("time", "epoch", "both"):
        assert published(place[0], name) == published(place[1], name)
    assert place[1].violations() == []


def test_columns_of_a_history_are_behind_undeclared_ones(tmp_path: Path) -> None:
    folder = project(tmp_path, sink("time", TIME), sink("both", BOTH))
    folder.write_csv("facts.csv", (*HEADER, "more"), [dict(zip((*HEADER, "more"), (*row, "x"), strict=True)) for row in FIRST])
    folder.run()
    assert list(folder.rows("out/time.csv")[0]) == ["thing", "since", "city", "more", "valid_from", "valid_to", "is_current"]
    assert list(folder.rows("out/both.csv")[0])[3:] == ["more", "valid_from", "valid_to", "recorded_from", "recorded_to", "is_current"]


@pytest.mark.parametrize("keyed", ["", ", primary_key: [thing, valid_from]"], ids=["by row key", "by primary key"])
def test_a_table_of_a_database_holds_the_history(tmp_path: Path, keyed: str) -> None:
    folder = project(tmp_path, sink("time", TIME, f"type: sql, connection: shop, table: told{keyed}"), sink("csv", TIME))
    folder.write("errata.toml", '[connections.shop]\nurl = "sqlite:shop.db"\n')
    for rows in ([*FIRST, (9, "cy", None, "Kiel", "false")], [*FIRST, (4, "ann", 20, "Nice", "false")], [FIRST[1], (3, "bob", 25, "Bern", "false")]):
        deliver(folder, *rows)
        folder.run()
        with closing(sqlite3.connect(tmp_path / "shop.db")) as shop:
            found = shop.execute("SELECT thing, since, city, valid_from, valid_to, is_current FROM told ORDER BY thing, valid_from").fetchall()
        assert [tuple(map(cell, (*row[:5], bool(row[5])))) for row in found] == published(folder, "csv")
    assert folder.violations() == []
