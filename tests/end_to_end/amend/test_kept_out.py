"""Erased records that inputs bring again: lines that cannot be read are judged by their words, and services and databases are asked before anything is erased."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from errata.core.failures import Stopped
from errata.core.options import EngineOptions, Erasure, RunOptions
from tests.support.erasing import holding, shop
from tests.support.json_service import Answer, serving
from tests.support.pipelines import Folder, command

SAIL = RunOptions(engine=EngineOptions("sail"))
ANNA = Erasure("request 17", "the office", {"customer": "annabella"}, keep_out=True)
PIPELINE = shop(
    '{ name: day, type: date }, { name: amount, type: "decimal(10,2)" }', "{ type: output, name: report, input: orders, config: { name: report, type: csv, path: out/report.csv } }"
).replace("type: csv\n      path: in/orders.csv", "type: TYPE\n      path: in/orders.txt")
LINES = ["id,customer,day,amount", "1,annabella,2026-03-01,12.50", "2,benjamin,2026-03-02,5", '3,"Miller, Eve",2026-03-03,7']
OBJECTS = ['{"id":1,"customer":"annabella","day":"2026-03-01","amount":12.5}', '{"id":2,"customer":"benjamin","day":"2026-03-02","amount":5}', '{"id":3,"customer":"Miller, Eve","day":"2026-03-03","amount":7}']


@pytest.mark.parametrize(
    ("type_", "wanted", "erased", "others"),
    [
        ("csv", {"customer": "annabella"}, ["9,annabella,2026-03-01,1,more", '8,"annabella",x,1,more', "7, annabella ,2026-03-01,1,more"], ["6,annabellas,2026-03-01,1,more", "5,bannabella,,1,more"]),
        ("csv", {"id": "1", "customer": "annabella"}, ["1,annabella,2026-03-01,1,more"], ["9,annabella,2026-03-01,5,more", "1,anna,2026-03-01,5,more"]),
        ("json", {"customer": "annabella"}, ['{"id":9,"customer":"annabella","day":'], ['{"id":9,"customer":"annabellas","day":']),
        pytest.param("csv", {"customer": "Miller, Eve"}, ['9,"Miller, Eve",2026-03-03,7,more'], ["9,Miller,2026-03-03,7,more"], marks=pytest.mark.deep),
        pytest.param("csv", {"id": "1"}, ["1,anna,2026-03-01,2,more", "x,1,anna,2026-03-01,2", "1;anna;2026-03-01;2"], ["11,anna,2026-03-01,2,more", "7,anna,2026-03-01,1,more"]),
        ("json", {"id": "1"}, ['{"id":1,"customer":"anna","day":', '1,"customer":"anna"}'], ['{"id":7,"customer":"anna","amount":1,"day":']),
        pytest.param("csv", {"day": "2026-03-01"}, ["9,anna,2026-03-01,1,more"], ["9,anna,2026-03-02,1,more"], marks=pytest.mark.deep),
        pytest.param("csv", {"amount": "12.5"}, ["9,anna,2026-03-09,12.50,more"], ["9,anna,2026-03-02,12.51,more"], marks=pytest.mark.deep),
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_read_is_kept_out_by_its_words(tmp_path: Path, type_: str, wanted: dict[str, str], erased: list[str], others: list[str]) -> None:
    folder = Folder(tmp_path)
    lines = LINES if type_ == "csv" else OBJECTS
    folder.write("pipeline.yaml", PIPELINE.replace("type: TYPE", "type: csv" if type_ == "csv" else "type: json\n      options: { format: ndjson }"))
    folder.write("in/orders.txt", "\n".join(lines) + "\n")
    folder.run()
    folder.load().erase(replace(ANNA, key=wanted), SAIL)
    folder.write("in/orders.txt", "\n".join([*lines, *erased]) + "\n")
    folder.run()
    assert list(folder.load().dlq_list()) == []
    folder.write("in/orders.txt", "\n".join([*lines, *erased, *others]) + "\n")
    code, _, said = command("run", str(folder.path / "pipeline.yaml"), "--engine", "sail")
    assert code == 2
    assert len(list(folder.load().dlq_list())) == len(others)
    assert "cannot be read" in said
    assert len(list(folder.load().show("orders"))) == 2
    assert command("verify", str(folder.path / "pipeline.yaml"), "--recompute")[0] == 0


SQL = """\
pipeline: { name: shop }
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: sql
      connection: crm
      table: orders
      merge: { strategy: snapshot, primary_key: [id] }
      schema: [{ name: id, type: int }, { name: customer, type: string }]
  - { type: output, name: report, input: orders, config: { name: report, type: csv, path: out/report.csv } }
"""


@pytest.mark.parametrize("where", [False, pytest.param(True, marks=pytest.mark.deep)])
def test_a_database_that_has_a_record_is_named(tmp_path: Path, where: bool) -> None:
    folder = Folder(tmp_path)
    folder.write("errata.toml", '[connections.crm]\nurl = "sqlite:crm.db"\n')
    folder.write("pipeline.yaml", SQL)
    database = sqlite3.connect(tmp_path / "crm.db")
    database.execute("CREATE TABLE orders (id INTEGER, customer TEXT)")
    database.executemany("INSERT INTO orders VALUES (?, ?)", [(1, "annabella"), (2, "benjamin")])
    database.commit()
    folder.run()
    wanted = Erasure("request 17", "the office", **({"where": 'customer == "annabella"'} if where else {"key": {"customer": "annabella"}}))
    with pytest.raises(Stopped) as stopped:
        folder.load().erase(wanted, SAIL)
    assert stopped.value.details == ("crm:orders",)
    database.execute("UPDATE orders SET customer = 'anna b.' WHERE id = 1")
    database.commit()
    with pytest.raises(Stopped):
        folder.load().erase(wanted, SAIL)
    database.execute("DELETE FROM orders WHERE id = 1")
    database.commit()
    database.execute("VACUUM")
    database.close()
    done = folder.load().erase(wanted, SAIL)
    assert done.proof is not None
    assert done.proof["found"] == 0
    assert holding(folder.path, ["annabella"]) == []
    folder.run()
    assert [row["id"] for row in folder.load().show("orders")] == [2]


def test_a_condition_finds_records_that_no_run_has_read(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE.replace("TYPE", "csv").replace("merge: { strategy: snapshot, primary_key: [id] }", ""))
    folder.write("in/orders.txt", "\n".join(LINES) + "\n")
    folder.run()
    folder.write("in/orders.txt", "\n".join([LINES[0], LINES[2], "7,ANNABELLA,2026-04-01,3"]) + "\n")
    with pytest.raises(Stopped) as stopped:
        folder.load().erase(Erasure("request 17", "the office", where='customer.lower() == "annabella"'), SAIL)
    assert stopped.value.details == ("in/orders.txt: record 2",)


def test_a_service_is_asked_for_what_it_has_now(tmp_path: Path) -> None:
    folder, rows = Folder(tmp_path), [{"id": 1, "customer": "annabella"}, {"id": 2, "customer": "benjamin"}]
    with serving(lambda _: Answer(json.dumps(rows).encode())) as service:
        where = f"type: json\n      transport: {{ kind: rest, url: '{service.url}/', max_pages: 3, allow_http: true, allow_private: true }}"
        folder.write("pipeline.yaml", SQL.replace("type: sql\n      connection: crm\n      table: orders", where))
        folder.run()
        wanted = replace(ANNA, keep_out=False)
        with pytest.raises(Stopped) as stopped:
            folder.load().erase(wanted, SAIL)
        assert stopped.value.details == ("<source:orders>:1",)
        del rows[0]
        done = folder.load().erase(wanted, SAIL)
        folder.run()
    assert done.proof is not None
    assert done.proof["found"] == 0
    assert holding(folder.path, ["annabella"]) == []
    assert [row["id"] for row in folder.load().show("orders")] == [2]
