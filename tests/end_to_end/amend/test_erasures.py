"""`errata erase`: nothing of a record is left anywhere, the rest is as if it had never been there, and it may die at any durable step."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from errata.core.failures import Stopped
from errata.core.options import EngineOptions, Erasure, RunOptions
from errata.erasure.record import KEY_FILE, KEY_VARIABLE
from storage import durable
from storage.state.entry import Entry
from storage.state.integrity import anchor_ledger
from storage.state.ledger import Ledger
from storage.state.location import State
from tests.support.erasing import KEYED, PLACED, holding, lay, project
from tests.support.killing import Died, dies_at, kill_points
from tests.support.pipelines import Folder, command

SAIL = RunOptions(engine=EngineOptions("sail"))
ANNA = Erasure("request 17", "the office", {"customer": "annabella"})
WORDS = ["annabella", "ANNABELLA", "anna@example.org", "Trumsdorf", "Hinterdorf", "77123.45", "kept-secret", "b-anna"]
FIRST = [
    (1, "annabella", "b-anna", "north", 77123.45, "1"), (2, "benjamin", "b2", "north", 71.5, "2"), (3, "annabella", "b3", "south", 12.25, "3"),
    (4, "caroline", "b4", "south", 140.0, "4"), (5, "dorothea", "b3", "south", 9.75, "5"), (8, "annabella", "b8", "east", 3.5, "8"),
]  # fmt: skip
THEN = [
    (1, "annabella", "b-anna", "north", 150.5, "1"), (2, "benjamin", "b2", "north", 171.5, "2"), (3, "annabella", "b3", "south", 12.25, "kept-secret"),
    (5, "dorothea", "b3", "south", 9.75, "5"), (6, "emil", "b6", "west", 55.0, "6"), (7, "annabella", "b7", "west", 18.125, "7"),
]  # fmt: skip
PEOPLE = [("annabella", "anna@example.org", "Trumsdorf"), ("benjamin", "ben@example.org", "Kleinstadt"), ("dorothea", "doro@example.org", "Kleinstadt")]
MOVED = [("annabella", "anna@example.org", "Hinterdorf"), ("benjamin", "ben@example.org", "Kleinstadt"), ("emil", "emil@example.org", "Kleinstadt")]


@pytest.fixture(scope="module", params=[KEYED, pytest.param(PLACED, marks=pytest.mark.deep)], ids=["keyed", "placed"])
def history(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Folder:
    folder = project(tmp_path_factory.mktemp("history"), request.param)
    lay(folder, FIRST, PEOPLE)
    folder.run()
    lay(folder, THEN, MOVED)
    folder.run()
    assert len({word.split(": ")[1] for word in holding(folder.path, WORDS)}) == len(WORDS)
    return folder


def without(rows: Sequence[tuple[Any, ...]], at: int) -> list[tuple[Any, ...]]:
    return [row for row in rows if row[at] != "annabella"]


@pytest.fixture
def folder(history: Folder, tmp_path: Path) -> Folder:
    shutil.copytree(history.path, tmp_path / "copy")
    copy = Folder(tmp_path / "copy")
    lay(copy, without(THEN, 1), without(MOVED, 0))
    return copy


def test_no_byte_of_a_record_is_left(folder: Folder) -> None:
    done = folder.load().erase(ANNA, SAIL)
    assert holding(folder.path, WORDS) == []
    assert done.proof is not None
    assert done.proof["found"] == 0
    assert command("verify", str(folder.path / "pipeline.yaml"))[0] == 0
    assert [row["region"] for row in folder.load().show("regions")] == ["north", "south", "west"]
    assert "benjamin" in folder.text("out/large-2.jsonl")
    assert not (folder.path / "out/rejected.csv").exists()


SMALL = """\
pipeline: { name: small }
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: csv
      path: in/orders.csv
      merge: { strategy: snapshot, primary_key: [id] }
      schema: [{ name: id, type: int }, { name: customer, type: string }, { name: region, type: string }, { name: amount, type: int }]
  - type: aggregate
    name: regions
    input: orders
    config:
      group_by: [region]
      cxl: |
        emit total = sum(amount)
        emit names = collect(customer)
  - { type: output, name: report, input: regions, config: { name: report, type: delta, path: out/report } }
  - { type: output, name: list, input: orders, config: { name: list, type: csv, path: out/list.csv } }
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    folder = Folder(tmp_path_factory.mktemp("small"))
    folder.write("pipeline.yaml", SMALL)
    folder.write("in/orders.csv", "id,customer,region,amount\n1,annabella,north,12\n2,benjamin,north,5\n3,annabella,south,7\n")
    folder.run()
    folder.write("in/orders.csv", "id,customer,region,amount\n1,annabella,north,13\n2,benjamin,north,5\n")
    folder.run()
    folder.write("in/orders.csv", "id,customer,region,amount\n2,benjamin,north,5\n")
    return folder


def copied(folder: Folder, place: Path) -> Folder:
    shutil.copytree(folder.path, place)
    return Folder(place, folder.engine, folder.options)


def erased(folder: Folder) -> None:
    folder.load().erase(ANNA, SAIL)


def check_whole(folder: Folder) -> None:
    """Nothing of the record is left, the total is without it, and the state is in order."""
    assert holding(folder.path, ["annabella"]) == []
    assert list(folder.load().show("regions")) == [{"region": "north", "total": 5, "names": ["benjamin"]}]
    assert command("verify", str(folder.path / "pipeline.yaml"))[0] == 0


@pytest.mark.deep
def test_an_erasure_that_is_killed_at_any_step_is_ended_by_the_next_run_or_erasure(small: Folder, tmp_path: Path) -> None:
    points = kill_points(copied(small, tmp_path / "one"), erased, tmp_path / "killed")
    for point in points:
        if not point.committed:
            erased(point.folder)
        else:
            point.folder.run()
        check_whole(point.folder)


def test_an_erasure_that_is_killed_while_it_removes_files_is_ended_by_the_next_run(small: Folder, tmp_path: Path) -> None:
    folder = copied(small, tmp_path / "one")
    steps: list[str] = []
    with durable.probing(lambda moment: steps.append(moment.name) if moment.side == "before" else None):
        erased(copied(small, tmp_path / "other"))
    first = next(number for number, name in enumerate(steps, 1) if name.startswith("purge:"))
    with pytest.raises(Died), durable.probing(dies_at(first + 3, "before")):
        erased(folder)
    assert holding(folder.path, ["annabella"])
    code, stdout, _ = command("verify", str(folder.path / "pipeline.yaml"), "--format", "jsonl")
    assert code == 5
    assert "an erasure has not ended" in stdout
    folder.run()
    check_whole(folder)


@pytest.mark.deep
def test_an_erasure_that_is_killed_before_its_commit_changes_nothing(small: Folder, tmp_path: Path) -> None:
    folder = copied(small, tmp_path / "one")
    steps: list[str] = []
    with durable.probing(lambda moment: steps.append(moment.name) if moment.side == "before" else None):
        erased(copied(small, tmp_path / "other"))
    with pytest.raises(Died), durable.probing(dies_at(steps.index("append:ledger") + 1, "before")):
        erased(folder)
    assert list(folder.load().show("regions", 1)) == list(small.load().show("regions", 1))
    assert command("verify", str(folder.path / "pipeline.yaml"))[0] == 0
    erased(folder)
    check_whole(folder)


@pytest.fixture(scope="module")
def without_anna(small: Folder, tmp_path_factory: pytest.TempPathFactory) -> Folder:
    folder = copied(small, tmp_path_factory.mktemp("erased") / "one")
    erased(folder)
    return folder


def test_no_return_to_an_earlier_epoch_brings_a_record_back(without_anna: Folder, tmp_path: Path) -> None:
    folder = copied(without_anna, tmp_path / "one")
    folder.load().revert(1, SAIL)
    check_whole(folder)
    assert [row["customer"] for row in folder.load().show("orders", 1)] == ["benjamin"]
    [row, *_] = folder.load().show("regions", 1)
    assert row == {"region": "north", "total": 17, "names": None}
    folder.load().compact(4)
    assert command("verify", str(folder.path / "pipeline.yaml"), "--recompute")[0] == 0
    folder.run(full_refresh=True)
    check_whole(folder)
    [first] = Ledger(str(folder.path / ".errata/small/ledger")).entries()
    assert [record["epoch"] for record in first.counters["erasures"]] == [3, 3]


@pytest.mark.parametrize("damage", ["row", "record", "entry"])
def test_tampering_after_an_erasure_is_found(without_anna: Folder, tmp_path: Path, damage: str) -> None:
    folder = copied(without_anna, tmp_path / "one")
    root = folder.path / ".errata/small"
    if damage == "row":
        file = next((root / "changelog/orders").glob("part-*"))
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    else:
        forged(root, damage)
    code, stdout, _ = command("verify", str(folder.path / "pipeline.yaml"), "--format", "jsonl")
    assert code == 5
    assert {"row": "content that was written", "record": "the record of the erasure", "entry": "the entries before the erasure"}[damage] in stdout


def forged(root: Path, damage: str) -> None:
    """Another ledger in the place of the state's, whose chain and anchor fit each other as somebody could make them who knows how, but not the key."""
    state = State(str(root))
    ledger = Ledger(state.ledger)
    entries = ledger.entries()
    if damage == "record":
        entries = [replace(one, counters={**one.counters, "erasure": {**one.counters["erasure"], "by": "nobody"}}) if "erasure" in one.counters else one for one in entries]
    else:
        entries = [replace(entries[0], batch_id="forged"), *entries[1:]]
    head = ledger.rewrite(entries, entries_head(ledger))
    anchor_ledger(state, ledger, head, {}, since=ledger.version() - 1)


def entries_head(ledger: Ledger) -> Entry:
    head = ledger.head()
    assert head is not None
    return head


@pytest.mark.parametrize("merge", [KEYED, pytest.param(PLACED, marks=pytest.mark.deep)], ids=["keyed", "placed"])
def test_records_that_a_file_still_holds_stay_out(small: Folder, tmp_path: Path, merge: str) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", small.text("pipeline.yaml").replace(KEYED, merge))
    text = "id,customer,region,amount\n1,annabella,north,13\n2,benjamin,north,5\n3,annabella,south,7\n"
    folder.write("in/orders.csv", text)
    folder.run()
    with pytest.raises(Stopped) as stopped:
        folder.load().erase(ANNA, SAIL)
    assert stopped.value.details == ("in/orders.csv:2", "in/orders.csv:4")
    folder.load().erase(replace(ANNA, keep_out=True), SAIL)
    check_whole(folder)
    folder.write("in/orders.csv", text.replace("benjamin,north,5", "benjamin,north,6") + "4,annabella,west,1\n5,caroline,west,2\n")
    folder.run()
    assert list(folder.load().show("orders")) == [{"id": 2, "customer": "benjamin", "region": "north", "amount": 6}, {"id": 5, "customer": "caroline", "region": "west", "amount": 2}]
    folder.write("in/orders.csv", text.replace("benjamin,north,5", "annabella,north,6") + "4,annabella,west,1\n5,caroline,west,3\n6,dorothea,west,4\n")
    folder.run()
    assert [row["id"] for row in folder.load().show("orders")] == [5, 6]
    assert command("verify", str(folder.path / "pipeline.yaml"), "--recompute")[0] == 0
    folder.run(full_refresh=True)
    assert [row["id"] for row in folder.load().show("orders")] == [5, 6]
    assert holding(folder.path, ["annabella"]) == []


@pytest.mark.parametrize("keep_out", [False, True])
def test_records_of_those_who_had_an_erased_record_before_stay(small: Folder, tmp_path: Path, keep_out: bool) -> None:
    """Order 1 was Benjamin's before it was Annabella's: his other orders do not name her."""
    folder = copied(small, tmp_path / "one")
    header = "id,customer,region,amount\n"
    folder.write("in/orders.csv", header + "1,benjamin,north,13\n2,benjamin,north,5\n")
    folder.run()
    folder.write("in/orders.csv", header + "1,annabella,north,13\n2,benjamin,north,5\n")
    folder.run()
    folder.write("in/orders.csv", header + ("1,annabella,north,13\n" if keep_out else "") + "2,benjamin,north,5\n")
    folder.load().erase(replace(ANNA, keep_out=keep_out), SAIL)
    check_whole(folder)
    folder.write("in/orders.csv", folder.text("in/orders.csv") + "3,benjamin,north,7\n")
    folder.run()
    assert [(row["id"], row["customer"]) for row in folder.load().show("orders")] == [(2, "benjamin"), (3, "benjamin")]
    assert holding(folder.path, ["annabella"]) == []


def test_an_erased_record_that_is_somebody_elses_now_stays_out(small: Folder, tmp_path: Path) -> None:
    """Order 1 was Annabella's and is Benjamin's: the record is erased, whoever has it, and his other orders are not."""
    folder = copied(small, tmp_path / "one")
    folder.write("in/orders.csv", "id,customer,region,amount\n1,benjamin,north,13\n2,benjamin,north,5\n")
    folder.run()
    folder.load().erase(replace(ANNA, keep_out=True), SAIL)
    check_whole(folder)
    folder.write("in/orders.csv", folder.text("in/orders.csv") + "3,benjamin,north,7\n")
    folder.run()
    assert [row["id"] for row in folder.load().show("orders")] == [2, 3]
    assert list(folder.load().show("regions")) == [{"region": "north", "total": 12, "names": ["benjamin", "benjamin"]}]


@pytest.mark.parametrize(
    ("written", "history", "columns"),
    [
        ("mapping: { client: customer }", "key: [customer], recorded: epoch", ("client", "city")),
        ("mapping: { client: customer }", "key: [customer], recorded: run", ("client", "city")),
        ("mapping: { client: customer, place: city }", "key: [customer], recorded: epoch", ("client", "place")),
        ("mapping: { client: customer }", "key: [customer], valid_from: since, recorded: epoch", ("client", "city")),
        ("exclude: [customer]", "key: [city], recorded: epoch", ("city",)),
    ],
    ids=["renamed", "by run", "all renamed", "both times", "excluded"],
)  # fmt: skip
def test_a_history_keeps_the_versions_of_others(tmp_path: Path, written: str, history: str, columns: tuple[str, ...]) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", f"""\
pipeline: {{ name: homes }}
nodes:
  - type: source
    name: people
    config:
      name: people
      type: csv
      path: in/people.csv
      merge: {{ strategy: snapshot, primary_key: [customer] }}
      schema: [{{ name: customer, type: string }}, {{ name: city, type: string }}, {{ name: since, type: date }}]
  - {{ type: output, name: homes, input: people, config: {{ name: homes, type: csv, path: out/homes.csv, {written}, history: {{ {history} }} }} }}
""")
    for cities in ("Trumsdorf,2024-01-01", "Kleinstadt,2025-01-01"):
        folder.write("in/people.csv", f"customer,city,since\nannabella,{cities}\nbenjamin,{cities}\n")
        folder.run()
    rows = [tuple(row.values()) for row in folder.load().show("homes")]
    at = next((row.index("annabella") for row in rows if "annabella" in row), None)
    others = [row for row in rows if row[at] != "annabella"] if at is not None else rows[::2]
    folder.write("in/people.csv", "customer,city,since\nbenjamin,Kleinstadt,2025-01-01\n")
    erased(folder)
    assert len(others) * 2 == len(rows)
    assert sorted(map(str, (tuple(row.values()) for row in folder.load().show("homes")))) == sorted(map(str, others))
    assert set(columns) <= set(next(iter(folder.load().show("homes"))))
    assert holding(folder.path, ["annabella"]) == []
    assert command("verify", str(folder.path / "pipeline.yaml"))[0] == 0


@pytest.mark.parametrize(("first", "then"), [("one", None), ("one", "two"), (None, "two")], ids=["missing", "other", "instead of the file"])
def test_without_the_key_of_erasures_nothing_is_done(small: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str | None, then: str | None) -> None:
    def set_key(value: str | None) -> None:
        monkeypatch.delenv(KEY_VARIABLE, raising=False) if value is None else monkeypatch.setenv(KEY_VARIABLE, value)

    folder = copied(small, tmp_path / "one")
    pipeline = str(folder.path / "pipeline.yaml")
    set_key(first)
    folder.load().erase(replace(ANNA, keep_out=True), SAIL)
    folder.write("in/orders.csv", "id,customer,region,amount\n1,annabella,north,13\n2,benjamin,north,5\n")
    before = {file: file.read_bytes() for file in (folder.path / ".errata/small").rglob("*") if file.is_file()}
    set_key(then)
    for words in (["run", pipeline], ["run", pipeline, "--full-refresh"], ["erase", pipeline, "--key", "customer=benjamin", "--by", "me", "--reason", "asked"]):
        code, _, said = command(*words)
        assert (code, KEY_VARIABLE in said) == (4, True), said
    code, stdout, _ = command("verify", pipeline)
    assert (code, KEY_VARIABLE in stdout) == (5, True)
    assert {file: content for file, content in before.items() if file.name != "claim" and file.read_bytes() != content} == {}
    assert ((folder.path / ".errata/small") / KEY_FILE in before) == (first is None) == ((folder.path / ".errata/small") / KEY_FILE).exists()
    set_key(first)
    folder.run()
    assert [row["id"] for row in folder.load().show("orders")] == [2]


def test_files_beside_the_tables_are_cleared(small: Folder, tmp_path: Path) -> None:
    folder = copied(small, tmp_path / "one")
    state = folder.path / ".errata/small"
    (state / "run.log").write_text("annabella was here\n")
    (state / "events.jsonl.gz").write_bytes(gzip.compress(b'{"name": "annabella"}\n'))
    (state / "events.jsonl.zst").write_bytes(pa.compress(b'{"name": "annabella"}\n', "zstd", asbytes=True))
    pq.write_table(pa.table({"name": ["annabella"]}), state / "rows.parquet", compression="zstd")
    erased(folder)
    check_whole(folder)
    assert (state / "run.log").read_text() == "(erased) was here\n"
    assert gzip.decompress((state / "events.jsonl.gz").read_bytes()) == b'{"name": "(erased)"}\n'


def test_a_later_search_finds_what_came_back(without_anna: Folder, tmp_path: Path) -> None:
    folder = copied(without_anna, tmp_path / "one")
    pipeline = str(folder.path / "pipeline.yaml")
    assert command("erase", pipeline, "--check", "--key", "customer=annabella")[0] == 0
    (folder.path / ".errata/small/later.log").write_text("annabella\n")
    code, stdout, _ = command("erase", pipeline, "--check", "--key", "customer=annabella", "--format", "jsonl")
    assert (code, stdout) == (5, '{"file":"later.log"}\n')


def test_what_an_erasure_says_does_not_name_the_record(small: Folder, tmp_path: Path) -> None:
    folder = copied(small, tmp_path / "one")
    pipeline = str(folder.path / "pipeline.yaml")
    code, _, stderr = command("erase", pipeline, "--key", "customer=annabella", "--reason", "annabella asked", "--engine", "sail", "-q")
    assert code == 64
    assert "quotes an erased value" in stderr
    code, stdout, _ = command("erase", pipeline, "--where", 'customer == "annabella"', "--reason", "asked", "--dry-run", "--engine", "sail", "-q", "--format", "jsonl")
    assert code == 0
    assert '"changelog/orders"' in stdout
    assert holding(folder.path, ["annabella"])
    folder.load().erase(Erasure("asked", "the office", where='customer == "annabella"'), SAIL)
    check_whole(folder)
    assert command("erase", pipeline, "--key", "customer=annabella", "--reason", "again", "--engine", "sail", "-q")[0] == 64


@pytest.mark.parametrize("merge", [KEYED, pytest.param(PLACED, marks=pytest.mark.deep)], ids=["keyed", "placed"])
def test_totals_may_be_kept_by_nameless_rows(small: Folder, tmp_path: Path, merge: str) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", small.text("pipeline.yaml").replace(KEYED, merge))
    text = "id,customer,region,amount\n1,annabella,north,13\n2,benjamin,north,5\n3,annabella,south,7\n"
    folder.write("in/orders.csv", text)
    folder.run()
    folder.write("in/orders.csv", "id,customer,region,amount\n2,benjamin,north,5\n")
    folder.load().erase(replace(ANNA, keep_totals=("region", "amount"), keep_out=True), SAIL)
    kept = [{"region": "north", "total": 18, "names": ["benjamin"]}, {"region": "south", "total": 7, "names": None}]
    assert totals(folder) == kept
    assert holding(folder.path, ["annabella"]) == []
    folder.write("in/orders.csv", text.replace("benjamin,north,5", "benjamin,north,6"))
    folder.run()
    kept[0]["total"] = 19
    assert totals(folder) == kept
    folder.load().revert(1, SAIL)
    kept[0]["total"] = 18
    assert totals(folder) == kept
    assert command("verify", str(folder.path / "pipeline.yaml"), "--recompute")[0] == 0
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("sum(amount)", "sum(amount * 2)"))
    folder.run()
    assert [row["total"] for row in totals(folder)] == [36, 14]
    folder.run(full_refresh=True)
    assert [row["total"] for row in totals(folder)] == [12]


def totals(folder: Folder) -> list[dict[str, Any]]:
    rows = [dict(row) for row in folder.load().show("regions")]
    for row in rows:
        row["names"] = [name for name in row["names"] or () if name is not None] or None
    return rows


NEIGHBOURS = """\
pipeline: { name: small }
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: csv
      path: in/orders.csv
      merge: { strategy: snapshot, primary_key: [id] }
      schema: [{ name: id, type: int }, { name: customer, type: string }, { name: region, type: string }, { name: amount, type: int }]
  - type: aggregate
    name: regions
    input: orders
    config:
      group_by: [region]
      cxl: emit names = collect(customer)
  - { type: output, name: report, input: regions, config: { name: report, type: json, path: "out/report-{epoch}.json" } }
  - { type: output, name: amounts, input: orders, config: { name: amounts, type: csv, path: "out/amounts-{epoch}.csv", exclude: [customer, region] } }
"""


@pytest.fixture(scope="module")
def neighbours(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A history in which the name of a record is a part of another one's, and files of earlier epochs have nothing but its number."""
    folder = Folder(tmp_path_factory.mktemp("neighbours"))
    folder.write("pipeline.yaml", NEIGHBOURS)
    folder.write("in/orders.csv", "id,customer,region,amount\n1,Anna,north,91237\n2,Annabelle,north,5\n3,Bert,north,7\n")
    folder.run()
    folder.write("in/orders.csv", "id,customer,region,amount\n1,Anna,north,91237\n2,Annabelle,north,6\n3,Bert,north,7\n4,Bert,south,1\n")
    folder.run()
    folder.write("in/orders.csv", "id,customer,region,amount\n2,Annabelle,north,6\n3,Bert,north,7\n4,Bert,south,1\n")
    folder.load().erase(replace(ANNA, key={"customer": "Anna"}), SAIL)
    return folder


def test_a_name_that_is_a_part_of_another_one_leaves(neighbours: Folder) -> None:
    for epoch in (1, 2):
        assert next(iter(neighbours.load().show("regions", epoch)))["names"] is None
    assert next(iter(neighbours.load().show("regions")))["names"] == ["Annabelle", "Bert"]
    assert holding(neighbours.path, ['"Anna"', "\0Anna\0"]) == []
    assert command("verify", str(neighbours.path / "pipeline.yaml"))[0] == 0


def test_files_of_earlier_epochs_that_hold_but_numbers_of_a_record_leave(neighbours: Folder) -> None:
    assert holding(neighbours.path, ["91237"]) == []
    assert sorted(file.name for file in (neighbours.path / "out").iterdir()) == ["amounts-3.csv", "report-3.json"]


def test_a_later_search_reads_the_cells_of_outputs_and_names_the_places_where_it_cannot(neighbours: Folder, tmp_path: Path) -> None:
    folder = copied(neighbours, tmp_path / "one")
    pipeline = str(folder.path / "pipeline.yaml")
    code, _, stderr = command("erase", pipeline, "--check", "--key", "amount=91237")
    assert code == 0
    assert "Not searched" not in stderr
    (folder.path / "out/amounts-3.csv").write_text("id,amount\n1,91237\n", encoding="utf-8")
    code, stdout, _ = command("erase", pipeline, "--check", "--key", "amount=91237", "--format", "jsonl")
    assert (code, stdout) == (5, '{"file":"out/amounts-3.csv"}\n')
    folder.write("pipeline.yaml", NEIGHBOURS.replace('type: json, path: "out/report-{epoch}.json"', "type: xml, path: out/report.xml"))
    folder.run()
    _, _, stderr = command("erase", pipeline, "--check", "--key", "amount=91237", "--value", "annabella")
    assert "Not searched for every value: out/report.xml" in stderr


def test_short_digits_of_a_record_leave_and_the_ledger_stays_whole(small: Folder, tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", small.text("pipeline.yaml"))
    folder.write("in/orders.csv", "id,customer,region,amount\n1,2026,north,12\n2,benjamin,north,5\n")
    folder.run()
    folder.write("in/orders.csv", "id,customer,region,amount\n2,benjamin,north,5\n")
    entries = Ledger(State(str(folder.path / ".errata/small")).ledger).entries()
    done = folder.load().erase(replace(ANNA, key={"customer": "2026"}), SAIL)
    assert done.proof is not None
    assert done.proof["found"] == 0
    assert [row["names"] for row in folder.load().show("regions", 1)] == [None]
    after = Ledger(State(str(folder.path / ".errata/small")).ledger).entries()
    assert "(erased)" not in str(after)
    assert after[0].started == entries[0].started
    assert command("verify", str(folder.path / "pipeline.yaml"))[0] == 0


SPELLED = """\
pipeline: { name: spelled }
nodes:
  - type: source
    name: people
    config:
      name: people
      type: csv
      glob: in/*.csv
      MERGE
      schema: [{ name: id, type: int }, { name: name, type: string }, { name: amount, type: float }]
  - { type: output, name: out, input: people, config: { name: out, type: csv, path: out.csv } }
"""


@pytest.mark.parametrize("merge", ["merge: { strategy: snapshot, primary_key: [id] }", ""], ids=["keyed", "placed"])
def test_no_record_is_erased_that_a_file_holds_in_another_spelling(tmp_path: Path, merge: str) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", SPELLED.replace("MERGE", merge))
    folder.write("in/a.csv", 'id,name,amount\n1,"Anna ""Bella"" Smith",10\n2,Bob,20.50\n3,"line\nbreak",30\n4,dora,4\n')
    folder.run()
    anna, bob, broken = "in/a.csv:2", "in/a.csv: record 2", "in/a.csv: record 3"
    for wanted, place in [({"id": "1"}, anna), ({"name": 'Anna "Bella" Smith'}, anna), ({"name": "Bob"}, bob), ({"amount": "20.5"}, bob), ({"name": "line\nbreak"}, broken)]:
        with pytest.raises(Stopped) as stopped:
            folder.load().erase(Erasure("request 17", "the office", wanted), SAIL)
        assert stopped.value.details == (place,), wanted
    with pytest.raises(Stopped) as stopped:
        folder.load().erase(Erasure("request 17", "the office", where="id == 2"), SAIL)
    assert stopped.value.details == ("in/a.csv: record 2",)
    folder.write("in/a.csv", "id,name,amount\n4,dora,4\n")
    folder.write("in/b.csv", "id,name,amount\n5,emil,5\n2,Bob,21\n")  # no run has read it yet
    with pytest.raises(Stopped) as stopped:
        folder.load().erase(Erasure("request 17", "the office", {"name": "Bob"}), SAIL)
    assert stopped.value.details == ("in/b.csv: record 2",)
    folder.write("in/b.csv", "id,name,amount\n5,emil,5\n")
    folder.load().erase(Erasure("request 17", "the office", {"name": "Bob"}), SAIL)
    folder.run()
    assert [row["id"] for row in folder.load().show("people")] == [4, 5]


def test_a_record_with_another_name_is_held_by_its_primary_key(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", SPELLED.replace("MERGE", "merge: { strategy: snapshot, primary_key: [id] }"))
    folder.write("in/a.csv", "id,name,amount\n1,Bob,1\n2,dora,2\n")
    folder.run()
    folder.write("in/a.csv", "id,name,amount\n2,dora,2\n1,Rob,1\n")
    folder.run()
    with pytest.raises(Stopped) as stopped:
        folder.load().erase(Erasure("request 17", "the office", {"name": "Bob"}), SAIL)
    assert stopped.value.details == ("in/a.csv: record 2",)


def test_a_table_that_holds_a_record_is_named(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", SPELLED.replace("type: csv\n      glob: in/*.csv", "type: delta\n      path: in/people").replace("MERGE", ""))
    write_deltalake(folder.path / "in/people", pa.table({"id": [1, 2], "name": ["Bob", "Al"], "amount": [1.0, 2.0]}))
    folder.run()
    with pytest.raises(Stopped) as stopped:
        folder.load().erase(Erasure("request 17", "the office", {"name": "Bob"}), SAIL)
    assert stopped.value.details == ("in/people",)
