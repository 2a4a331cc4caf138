"""An erasure that found values left is said again: it goes on, and the state gets clean. Old versions of tables hold nothing either."""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from errata.core.failures import Stopped, Usage
from errata.core.options import EngineOptions, Erasure, RunOptions
from storage import durable
from storage.state.ledger import Ledger
from storage.state.location import State
from tests.support.erasing import holding, shop
from tests.support.killing import Died, kill_points
from tests.support.pipelines import Folder, command

SAIL = RunOptions(engine=EngineOptions("sail"))
ANNA = Erasure("request 17", "the office", {"customer": "annabella"})
PIPELINE = shop(
    "{ name: mail, type: string }, { name: amount, type: int }",
    "{ type: aggregate, name: totals, input: orders, config: { group_by: [customer], cxl: emit total = sum(amount) } }",
    "{ type: output, name: report, input: orders, config: { name: report, type: delta, path: out/report } }",
    "{ type: output, name: list, input: orders, config: { name: list, type: csv, path: out/list.csv } }",
)
MERGES = [
    ("strategy: append", False),
    ("strategy: snapshot, primary_key: [id]", False), ("strategy: snapshot", True), ("strategy: snapshot", False), ("strategy: append", True), ("strategy: upsert, primary_key: [id]", True),
    ("strategy: upsert, primary_key: [id]", False), ("strategy: ledger, primary_key: [id]", True), ("strategy: snapshot, primary_key: [id], scope: [mail]", True),
]  # fmt: skip
ANNAS = "1,annabella,anna@example.org,12\n"
ORDERS = f"id,customer,mail,amount\n{ANNAS}2,benjamin,ben@example.org,5\n"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE)
    folder.write("in/orders.csv", ORDERS)
    folder.run()
    folder.write("in/orders.csv", ORDERS.replace(ANNAS, ""))
    return folder


def entries(folder: Folder) -> list[Any]:
    return Ledger(State(str(folder.path / ".errata/shop")).ledger).entries()


def verified(folder: Folder) -> bool:
    return command("verify", str(folder.path / "pipeline.yaml"))[0] == 0


@pytest.mark.parametrize("wanted", [ANNA, pytest.param(Erasure("request 17", "the office", where='customer == "annabella"'), marks=pytest.mark.deep)], ids=["key", "where"])
def test_an_erasure_that_found_values_left_goes_on_when_it_is_said_again(folder: Folder, monkeypatch: pytest.MonkeyPatch, wanted: Erasure) -> None:
    left = folder.path / ".errata/shop/identities"
    left.mkdir()
    (left / "kept.json").write_text('{"mail": "anna@example.org"}')
    done = folder.load().erase(wanted, SAIL)
    assert done.proof is not None
    assert done.proof["files"] == ["identities/kept.json"]
    assert not verified(folder)
    assert holding(folder.path, ["annabella", "anna@example.org"]) == ["identities/kept.json: anna@example.org".replace("identities", ".errata/shop/identities")]

    again = folder.load().erase(wanted, SAIL)
    assert again.proof is not None
    assert again.proof["found"] == 1  # nobody removed it
    assert not verified(folder)
    with pytest.raises(Usage, match="no record"):
        folder.load().erase(replace(wanted, key={"customer": "caroline"}, where=None), SAIL)

    (left / "kept.json").write_text("{}")
    folder.load().erase(wanted, SAIL)
    assert verified(folder)
    assert [row["customer"] for row in folder.load().show("orders")] == ["benjamin"]
    assert len({record["was"] for entry in entries(folder) if (record := entry.counters.get("erasure"))}) >= 1
    with pytest.raises(Usage, match="no record"):
        folder.load().erase(wanted, SAIL)
    folder.run()
    folder.run(full_refresh=True)
    assert verified(folder)


def test_what_the_first_erasure_could_not_reach_leaves_with_the_second(folder: Folder) -> None:
    """The values are known by their hashes alone: the mail is in no word of the command, and in a state that came back."""
    left = folder.path / ".errata/shop/identities/kept.json"
    left.parent.mkdir()
    left.write_text("anna@example.org")
    assert folder.load().erase(ANNA, SAIL).proof["found"] == 1  # type: ignore[index]
    left.rename(folder.path / ".errata/shop/kept.log")
    done = folder.load().erase(ANNA, SAIL)
    assert done.proof is not None
    assert done.proof["found"] == 0
    assert (folder.path / ".errata/shop/kept.log").read_text() == "(erased)"
    assert verified(folder)


def test_the_same_erasure_searches_where_a_killed_one_did_not(folder: Folder) -> None:
    def dies(moment: durable.Moment) -> None:
        if moment.name.startswith("purge:"):
            raise Died

    with pytest.raises(Died), durable.probing(dies):
        folder.load().erase(ANNA, SAIL)
    folder.run()
    assert verified(folder)
    assert entries(folder)[-1].counters["proof"]["searched_values"] is None
    done = folder.load().erase(ANNA, SAIL)
    assert done.proof is not None
    assert (done.proof["searched_values"], done.proof["found"]) == (1, 0)
    with pytest.raises(Usage, match="no record"):
        folder.load().erase(ANNA, SAIL)


@pytest.mark.parametrize("refreshes", [1, pytest.param(2, marks=pytest.mark.deep)])
def test_records_that_only_older_versions_of_tables_have_are_erased(folder: Folder, refreshes: int) -> None:
    for _ in range(refreshes):
        folder.run(full_refresh=True)
    assert holding(folder.path, ["annabella"])
    dry = folder.load().erase(ANNA, replace(SAIL, dry_run=True))
    assert dry.rows == [{"table": "older versions of changelog/orders", "records": 1, "rows": 1, "cells": 0}]
    done = folder.load().erase(ANNA, SAIL)
    assert done.proof is not None
    assert done.proof["found"] == 0
    assert holding(folder.path, ["annabella", "anna@example.org"]) == []
    assert verified(folder)
    folder.run(full_refresh=True)
    assert holding(folder.path, ["annabella", "anna@example.org"]) == []
    with pytest.raises(Usage, match="no record"):
        folder.load().erase(ANNA, SAIL)


@pytest.mark.parametrize(("merge", "runs"), [("strategy: snapshot, primary_key: [id]", True), *(pytest.param(*one, marks=pytest.mark.deep) for one in MERGES)])
def test_the_name_of_an_input_file_does_not_stay(tmp_path: Path, merge: str, runs: bool) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE.replace("path: in/orders.csv", "glob: in/*.csv").replace("strategy: snapshot, primary_key: [id]", merge))
    folder.write("in/annabella.csv", ORDERS)
    folder.write("in/b.csv", "id,customer,mail,amount\n3,caroline,caro@example.org,7\n")
    folder.run()
    with pytest.raises(Stopped, match="name of an input file") as stopped:
        folder.load().erase(ANNA, SAIL)
    assert stopped.value.details == ("in/annabella.csv",)
    folder.write("in/a.csv", ORDERS.replace(ANNAS, ""))
    (tmp_path / "in/annabella.csv").unlink()
    if runs:
        folder.run()
    done = folder.load().erase(ANNA, SAIL)
    assert done.proof is not None
    assert done.proof["files"] == []
    assert holding(folder.path, ["annabella"]) == []
    assert verified(folder)
    folder.run()
    assert sorted({row["customer"] for row in folder.load().show("orders")}) == ["benjamin", "caroline"]
    assert command("verify", str(folder.path / "pipeline.yaml"), "--recompute")[0] == 0


def test_files_of_lineage_and_metrics_are_searched(folder: Folder) -> None:
    folder.write("pipeline.yaml", PIPELINE.replace("name: shop }", "name: shop, metrics: { openlineage: { path: lineage.jsonl, namespace: shop } } }"))
    (folder.path / "lineage.jsonl").write_text('{"message": "annabella"}\n')
    done = folder.load().erase(ANNA, SAIL)
    assert done.proof is not None
    assert done.proof["files"] == ["lineage.jsonl"]
    (folder.path / "lineage.jsonl").unlink()
    assert not verified(folder)
    folder.load().erase(ANNA, SAIL)
    assert verified(folder)


@pytest.mark.parametrize("others", ["benjamin", "annabella"])
def test_two_erasures_at_once_follow_each_other(folder: Folder, others: str) -> None:
    """Which one begins is not said: the other one waits, and finds what the first has left of its records."""
    folder.write("in/orders.csv", ORDERS + "3,caroline,caro@example.org,7\n")
    folder.run()
    folder.write("in/orders.csv", "id,customer,mail,amount\n3,caroline,caro@example.org,7\n")
    words = [sys.executable, "-m", "errata", "erase", str(folder.path / "pipeline.yaml"), "--wait", "--by", "us", "--reason", "asked", "--engine", "sail"]
    erasures = [subprocess.Popen([*words, "--key", f"customer={name}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for name in ("annabella", others)]
    said = [one.communicate() for one in erasures]
    assert sorted(one.returncode for one in erasures) == ([0, 0] if others == "benjamin" else [0, 64]), said
    assert holding(folder.path, ["annabella", "anna@example.org", *(["benjamin", "ben@example.org"] if others == "benjamin" else [])]) == []
    assert verified(folder)
    folder.run()
    assert [row["customer"] for row in folder.load().show("orders")] == ["caroline"]
    folder.run(full_refresh=True)
    assert verified(folder)


@pytest.mark.deep
@pytest.mark.parametrize("history", ["left", "older"])
def test_an_erasure_that_goes_on_may_die_at_every_step(folder: Folder, history: str, tmp_path: Path) -> None:
    if history == "left":
        log = folder.path / ".errata/shop/identities/kept.json"
        log.parent.mkdir()
        log.write_text("anna@example.org")
        folder.load().erase(ANNA, SAIL)
        log.rename(folder.path / ".errata/shop/kept.log")
    else:
        folder.run(full_refresh=True)
    base = Folder(tmp_path.parent / f"{tmp_path.name}-base")
    shutil.copytree(folder.path, base.path, dirs_exist_ok=True)
    for point in kill_points(base, lambda one: one.load().erase(ANNA, SAIL), tmp_path.parent / f"{tmp_path.name}-killed"):
        one = point.folder
        if point.committed:
            one.run()
        with suppress(Usage):  # it may have ended
            one.load().erase(ANNA, SAIL)
        assert holding(one.path, ["annabella", "anna@example.org"]) == [], point.moment
        assert verified(one), point.moment
        assert [row["customer"] for row in one.load().show("orders")] == ["benjamin"]


TYPED = shop(
    '{ name: day, type: date }, { name: active, type: bool }, { name: price, type: "decimal(10,2)" }, { name: at, type: date_time }',
    "{ type: output, name: more, input: orders, config: { name: more, type: json, path: out/more.json } }",
    "{ type: output, name: list, input: orders, config: { name: list, type: csv, path: out/list.csv } }",
).replace("name: shop }", 'name: shop, date_formats: ["%d.%m.%Y"] }')


def test_a_key_is_read_as_its_columns_are_whoever_says_it(tmp_path: Path) -> None:
    """Of the values of the key neither the erasure that goes on nor a later search looks for yes and no, and both find the others."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", TYPED)
    folder.write("in/orders.csv", "id,customer,day,active,price,at\n1,annabella,17.03.2026,true,12.50,2026-03-17T08:15:00+02:00\n2,benjamin,18.03.2026,true,5,2026-03-17T08:15:00Z\n")
    folder.run()
    pipeline = str(folder.path / "pipeline.yaml")
    for words in (["day=17.03.2026"], ["day=2026-03-17"], ["price=12.5"], ["price=012.50", "--key", "active=yes"], ["at=2026-03-17 06:15:00"]):
        code, out, said = command("erase", pipeline, "--check", "--key", *words, "--format", "jsonl")
        assert (code, *(f'{{"file":"out/{file}"}}' in out for file in ("list.csv", "more.json"))) == (5, True, True), words
        assert ("true and false are everywhere: active" in said) == ("active=yes" in words)
    folder.write("in/orders.csv", "id,customer,day,active,price,at\n2,benjamin,18.03.2026,true,5,2026-03-17T08:15:00Z\n")
    left = folder.path / ".errata/shop/identities/kept.json"
    left.parent.mkdir()
    left.write_text('{"name": "annabella"}')
    wanted = replace(ANNA, key={"day": "17.03.2026", "active": "1", "price": "12.500", "at": "2026-03-17T06:15:00.000"})
    assert folder.load().erase(wanted, SAIL).proof["found"] == 1  # type: ignore[index]
    left.unlink()
    log = folder.path / ".errata/shop/run.log"
    log.write_text('{"ok": true, "name": "annabella"}\n')
    done = folder.load().erase(wanted, SAIL)
    assert (done.proof or {})["found"] == 0
    assert log.read_text() == '{"ok": true, "name": "(erased)"}\n'
    assert verified(folder)
