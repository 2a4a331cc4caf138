"""SQL sources: any history of a table ends as one full run over its last state, and as a plain Python model says."""

from __future__ import annotations

import json
import random
import sqlite3
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from errata.core.diagnostics import PipelineErrors
from errata.core.failures import StorageFailed
from storage.files.discovery import content_hash
from storage.sql.sqlite import SqliteReading
from tests.support.pipelines import Folder, command, standing_in

PIPELINE = """\
pipeline: {name: shop}
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: sql
      connection: shop
      table: orders
      merge: MERGE
      schema: [{name: id, type: int}, {name: v, type: int}, {name: at, type: int}]
  - {type: output, name: all, input: orders, config: {name: all, type: csv, path: out/all.csv}}
error_handling: {strategy: continue, dlq: {path: out/rejected.csv}}
"""
SNAPSHOT = "{strategy: snapshot, primary_key: [id]}"
KEYLESS = "snapshot"
APPEND = "{strategy: append, cursor: at}"
LEDGER = "{strategy: ledger, primary_key: [id], cursor: at, overlap: 2}"
UPSERT = "{strategy: upsert, primary_key: [id], cursor: at, deleted: 'v == -1'}"
ALL = "{strategy: append, primary_key: [id]}"


def folder_of(path: Path, merge: str, column: str = "{name: at, type: int}") -> Folder:
    """A pipeline over an empty table; `column` declares the last of its three columns."""
    folder = Folder(path)
    folder.write("pipeline.yaml", PIPELINE.replace("MERGE", merge).replace("{name: at, type: int}", column))
    folder.write("errata.toml", '[connections.shop]\nurl = "sqlite:shop.db"\n')
    execute(folder, "CREATE TABLE orders (id INTEGER, v, at INTEGER)")
    return folder


def execute(folder: Folder, *statements: str) -> None:
    with closing(sqlite3.connect(folder.path / "shop.db")) as database, database:
        for statement in statements:
            database.execute(statement)


def table(folder: Folder) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder.path / "shop.db")) as database:
        return database.execute("SELECT id, v, at FROM orders ORDER BY at, id, v, rowid").fetchall()


def live(folder: Folder) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(int(row[name]) if row[name] else None for name in ("id", "v", "at")) for row in folder.rows("out/all.csv"))


def step(rng: random.Random, clock: int, *, keyed: bool) -> str:
    key, value = rng.randint(1, 6), rng.randint(0, 3)
    insert = f"INSERT INTO orders SELECT {key}, {value}, {clock}" + (f" WHERE NOT EXISTS (SELECT 1 FROM orders WHERE id = {key})" if keyed else "")
    return rng.choice([insert, insert, f"UPDATE orders SET v = {value} WHERE id = {key}", f"DELETE FROM orders WHERE id = {key}", "DELETE FROM orders"] if rng.random() < 0.9 else [f"UPDATE orders SET id = id + 6 WHERE id = {key}"])


@pytest.mark.parametrize("merge", [SNAPSHOT, KEYLESS], ids=["keyed", "keyless"])
@pytest.mark.parametrize("seed", range(2))
def test_a_snapshot_is_the_table_after_every_run(merge: str, seed: int, tmp_path: Path) -> None:
    folder, rng = folder_of(tmp_path, merge), random.Random(seed)
    for clock in range(4):
        execute(folder, *(step(rng, clock, keyed=merge == SNAPSHOT) for _ in range(rng.randint(1, 4))))
        folder.run()
        assert live(folder) == Counter(table(folder))
    assert folder.violations() == []


@pytest.mark.parametrize("seed", range(2))
def test_append_keeps_what_was_read_and_takes_what_is_at_or_behind_the_cursor(seed: int, tmp_path: Path) -> None:
    folder, rng, known, last = folder_of(tmp_path, APPEND), random.Random(seed), Counter[Any](), None
    for clock in range(4):
        execute(folder, *(step(rng, rng.choice([clock, clock, clock - 1]), keyed=False) for _ in range(4)))
        folder.run()
        asked = Counter(row for row in table(folder) if last is None or row[2] >= last)
        known |= asked
        last = max((row[2] for row in known), default=None)
        assert live(folder) == known
    assert folder.violations() == []


def test_ledger_keeps_the_first_record_of_a_key_and_warns_of_other_values(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, LEDGER)
    execute(folder, "INSERT INTO orders VALUES (1, 10, 1), (2, 20, 5), (2, 21, 6)")
    folder.run()
    execute(folder, "UPDATE orders SET v = 99 WHERE id = 2", "INSERT INTO orders VALUES (3, 30, 4), (4, 40, 1)")
    with standing_in(tmp_path):
        code, _, err = command("run", "pipeline.yaml")
    assert code == 0
    assert "other values" in err
    assert live(folder) == Counter([(1, 10, 1), (2, 20, 5), (3, 30, 4)])


def test_upsert_takes_the_last_record_of_a_key_and_its_mark_of_deletion(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, UPSERT)
    execute(folder, "INSERT INTO orders VALUES (1, 10, 1), (2, 20, 2)")
    folder.run()
    execute(folder, "INSERT INTO orders VALUES (1, 11, 3), (1, 12, 4), (2, -1, 5), (3, 30, 5)")
    folder.run()
    assert live(folder) == Counter([(1, 12, 4), (3, 30, 5)])
    assert folder.violations() == []


@pytest.mark.parametrize("merge", [SNAPSHOT, APPEND, ALL, UPSERT], ids=["snapshot", "append", "all", "upsert"])
def test_a_rejected_row_heals(merge: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, merge)
    execute(folder, "INSERT INTO orders VALUES (1, 10, 1), (2, 'many', 2)")
    assert folder.run().exit_code == 2
    assert "many" in folder.text("out/rejected.csv")
    execute(folder, "INSERT INTO orders VALUES (3, 'more', 3)")
    assert folder.run().rejected == 2
    execute(folder, "UPDATE orders SET v = 30 WHERE id = 3")
    assert folder.run().rejected == (1 if merge in (APPEND, UPSERT) or merge in (SNAPSHOT, ALL) else 0)
    assert live(folder) == Counter([(1, 10, 1), (3, 30, 3)])
    assert folder.violations() == []


@pytest.mark.parametrize("merge", ["{strategy: append, cursor: at}", "{strategy: append, primary_key: [id], cursor: at}", "{strategy: ledger, primary_key: [id], cursor: at}", "{strategy: upsert, primary_key: [id], cursor: at}"])
def test_a_reject_whose_cursor_cannot_be_read_stays_when_it_is_not_asked_for(merge: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, merge, "{name: at, type: date}")
    execute(folder, "INSERT INTO orders VALUES (1, 10, '2026-01-05'), (2, 20, '2026-02-99'), (3, 'many', NULL)")
    assert folder.run().rejected == 2
    for number, day in enumerate(("2026-03-01", "2026-03-02", "2026-03-03"), 4):  # the text of the bad cell lies before these, so that it is not asked for again
        execute(folder, f"INSERT INTO orders VALUES ({number}, 40, '{day}')")
        assert folder.run().rejected == 2, day
        assert "2026-02-99" in folder.text("out/rejected.csv")
    execute(folder, "DELETE FROM orders WHERE id = 3")  # rows without a cursor are asked for always
    assert folder.run().rejected == 1
    assert "2026-02-99" in folder.text("out/rejected.csv")
    if "primary_key" in merge:
        execute(folder, "UPDATE orders SET at = '2026-03-09' WHERE id = 2")
        assert folder.run().rejected == 0
    assert folder.violations() == []


def test_an_edited_query_corrects_what_stands(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, APPEND)
    execute(folder, "INSERT INTO orders VALUES (1, 10, 1), (2, 20, 2)")
    folder.run()
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("table: orders", "query: SELECT id, v + 1 AS v, at FROM orders"))
    folder.run()
    assert live(folder) == Counter([(1, 11, 1), (2, 21, 2)])
    assert folder.violations() == []


def test_a_correction_stands_while_the_answer_is_the_same(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, SNAPSHOT)
    execute(folder, "INSERT INTO orders VALUES (1, 10, 1), (2, 20, 2)")
    folder.run()
    with standing_in(tmp_path):
        assert command("correct", "pipeline.yaml", "orders", "--key", "id=1", "--set", "v=11", "--reason", "typo")[0] == 0
        assert command("run", "pipeline.yaml")[0] == 0
    assert live(folder) == Counter([(1, 11, 1), (2, 20, 2)])
    execute(folder, "CREATE TABLE other (x)")
    folder.run()
    assert live(folder) == Counter([(1, 11, 1), (2, 20, 2)])


def test_a_null_key_ends_the_run_and_is_named(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, SNAPSHOT)
    execute(folder, "INSERT INTO orders VALUES (NULL, 10, 1)")
    with pytest.raises(StorageFailed, match="column id is null"):
        folder.run()
    execute(folder, "UPDATE orders SET id = 1", "INSERT INTO orders VALUES (1, 20, 1)")
    with pytest.raises(StorageFailed, match="id=1"):
        folder.run()


def test_times_of_two_forms_are_no_cursor(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "{strategy: append, cursor: at, overlap: 1h}", "{name: at, type: date_time}")
    execute(folder, "INSERT INTO orders VALUES (1, 10, '2026-03-01 10:00:00'), (2, 20, '2026-03-01T11:00:00')")
    with pytest.raises(StorageFailed, match="E605"):
        folder.run()


@pytest.mark.parametrize(
    ("known", "later", "outcome"),
    [
        ("2026-03-01T10:00:00", "2026-03-01 11:00:00", "E605"),
        ("2026-03-01T10:00:00", "2026-03-01 10:00:00.5", "E605"),
        ("2026-03-01T10:00:00", "2026-03-01 11:00:00.1234567", "E605"),
        ("2026-03-01T10:00:00", "2026-03-01T09:00:00-05:00", "E605"),
        ("2026-03-01T10:00:00+00:00", "2026-03-01T09:00:00-05:00", "E605"),
        ("2026-03-01T10:00:00+0000", "2026-03-01T09:00:00-0500", "E605"),
        ("2026-03-01T10:00:00+0000", "01.04.2026 09:00", "E605"),
        ("2026-03-01T10:00:00Z", "2026-02-28T23:30:00-11:00", "E605"),
        ("2026-03-01T10:00:00", "2026-03-01T09:00:00", "older"),
        ("2026-03-01T10:00:00", "2026-03-01 09:00:00", "older"),
        ("2026-03-01T10:00:00", "2026-03-01T12:00:00+05:00", "older"),
        ("2026-03-01 10:00:00", "2026-03-01 09:00:00.123456", "older"),
        ("2026-03-01T10:00:00", "2026-02-20 11:00:00", "older"),
        ("2026-03-01T10:00:00", "2026-03-01 soon", "rejected"),
        ("2026-03-01T10:00:00", "2026-02-30 10:00:00", "rejected"),
    ],
)
def test_later_times_that_lie_before_the_cursor_since_they_have_another_form_end_the_run(known: str, later: str, outcome: str, tmp_path: Path) -> None:
    """connectors.md 2.3: times of another form would be passed over without a word. Older ones are not asked for."""
    folder = folder_of(tmp_path, "{strategy: append, cursor: at}", "{name: at, type: date_time}")
    if known.endswith("+0000"):
        folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("{name: shop}", "{name: shop, date_formats: ['%Y-%m-%dT%H:%M:%S%z', '%d.%m.%Y %H:%M']}"))
    execute(folder, f"INSERT INTO orders VALUES (1, 10, '{known}')")
    assert folder.run().rejected == 0
    execute(folder, f"INSERT INTO orders VALUES (2, 20, '{later}')")
    if outcome == "E605":
        with pytest.raises(StorageFailed, match=f"E605.*such as {known if len(known) == 19 else '2026-03-01 14:30:00'}"):
            folder.run()
    else:
        result = folder.run()
        assert (result.committed, result.rejected) == ((True, 1) if outcome == "rejected" else (False, 0))
        assert folder.run().committed is False
    assert [row["id"] for row in folder.rows("out/all.csv")] == ["1"]


def test_a_table_whose_times_all_have_another_form_is_read_after_a_full_refresh(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "{strategy: append, cursor: at}", "{name: at, type: date_time}")
    execute(folder, "INSERT INTO orders VALUES (1, 10, '2026-03-01T10:00:00')")
    folder.run()
    execute(folder, "UPDATE orders SET at = replace(at, 'T', ' ')")
    with pytest.raises(StorageFailed, match="E605") as raised:
        folder.run()
    assert "--full-refresh" in str(raised.value.help)
    folder.run(full_refresh=True)
    execute(folder, "INSERT INTO orders VALUES (2, 20, '2026-03-01 11:00:00')")
    folder.run()
    assert [row["id"] for row in folder.rows("out/all.csv")] == ["1", "2"]


@pytest.mark.parametrize("merge", ["{strategy: upsert, primary_key: [id], cursor: at}", "{strategy: ledger, primary_key: [id], cursor: at}"])
def test_a_reject_that_two_records_repair_leaves_once(merge: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, merge, "{name: at, type: date_time}")
    execute(folder, "INSERT INTO orders VALUES (1, 10, '2026-03-01 10:00:00'), (5, 50, '0 garbage'), (6, 60, '0 garbage')")
    assert folder.run().rejected == 2
    execute(folder, "DELETE FROM orders WHERE id = 5", "INSERT INTO orders VALUES (5, 51, '2026-03-01 11:00:00'), (5, 52, '2026-03-01 12:00:00')")
    assert folder.run().rejected == 1
    assert [row["id"] for row in folder.rows("out/rejected.csv")] == ["6"]
    assert folder.violations() == []


def test_a_number_behind_a_cursor_of_texts_ends_the_run(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "{strategy: append, cursor: code}", "{name: code, type: string}")
    execute(folder, "ALTER TABLE orders ADD COLUMN code", "INSERT INTO orders VALUES (1, 10, 1, 'a')")
    folder.run()
    execute(folder, "INSERT INTO orders VALUES (2, 20, 2, 7)")
    with pytest.raises(StorageFailed, match="E605"):
        folder.run()


def test_a_number_among_times_is_rejected_once_and_heals(tmp_path: Path) -> None:
    """SQLite has all numbers before all texts: a bound that is a text does not leave them out."""
    folder = folder_of(tmp_path, "{strategy: append, primary_key: [id], cursor: at}", "{name: at, type: date_time}")
    execute(folder, "INSERT INTO orders VALUES (1, 10, '2026-03-01T10:00:00')")
    folder.run()
    execute(folder, "INSERT INTO orders VALUES (2, 20, 1772359200)")
    assert folder.run().rejected == 1
    assert folder.run().committed is False
    assert [row["id"] for row in folder.rows("out/rejected.csv")] == ["2"]
    execute(folder, "UPDATE orders SET at = '2026-03-01T11:00:00' WHERE id = 2")
    assert folder.run().rejected == 0
    assert [row["id"] for row in folder.rows("out/all.csv")] == ["1", "2"]
    assert folder.violations() == []


def test_an_answer_with_scopes_is_the_truth_for_the_scopes_that_it_names(tmp_path: Path) -> None:
    folder, rng = folder_of(tmp_path, "{strategy: snapshot, primary_key: [id], scope: at}"), random.Random(1)
    counted: dict[int, tuple[int, dict[int, int]]] = {}
    for epoch in range(6):
        records = {key: (rng.randint(0, 3), rng.choice([1, 2, 3, None])) for key in rng.sample(range(1, 7), rng.randint(0, 4))}
        execute(folder, "DELETE FROM orders", *(f"INSERT INTO orders VALUES ({key}, {value}, {'NULL' if scope is None else scope})" for key, (value, scope) in records.items()))
        if epoch == 4:
            folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("table: orders", "query: SELECT id, v, at FROM orders"))
        rejected = folder.run().rejected
        assert rejected == sum(scope is None for _, scope in records.values())
        for scope in {scope for _, scope in records.values()} - {None}:
            counted[scope] = epoch, {key: value for key, (value, other) in records.items() if other == scope}
        said = sorted((epoch, scope, key, value) for scope, (epoch, rows) in counted.items() for key, value in rows.items())
        winners = {key: (key, value, scope) for _, scope, key, value in said}
        assert live(folder) == Counter(winners.values())
    assert folder.run().committed is False
    assert folder.violations() == []


def test_an_answer_has_no_path_that_tells_its_scope(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, '{strategy: snapshot, primary_key: [id], scope: {path: "{at}"}}')
    with pytest.raises(PipelineErrors, match="E468"):
        folder.load()


@pytest.mark.parametrize("type_", ["int", "decimal, scale: 1"])
def test_numbers_that_are_texts_are_no_cursor(type_: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "{strategy: append, cursor: seen}", "{name: seen, type: " + type_ + "}")
    execute(folder, "ALTER TABLE orders ADD COLUMN seen TEXT", "INSERT INTO orders VALUES (1, 10, 1, '9'), (2, 20, 2, '10')")
    with pytest.raises(StorageFailed, match=r"E605.*CAST"):
        folder.run()


def test_a_file_that_is_written_while_it_is_hashed_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(tmp_path, SNAPSHOT)
    execute(folder, "PRAGMA journal_mode = wal")
    with closing(sqlite3.connect(tmp_path / "shop.db")) as writer:
        writer.execute("INSERT INTO orders VALUES (1, 10, 1)")
        writer.commit()

        def hashed(path: Path) -> str:
            if path.name.endswith("-wal") and live_rows() == 1:
                writer.execute("UPDATE orders SET v = 11")
                writer.execute("INSERT INTO orders VALUES (2, 20, 2)")
                writer.commit()
            return content_hash(path)

        def live_rows() -> int:
            return int(writer.execute("SELECT count(*) FROM orders").fetchone()[0])

        monkeypatch.setattr("errata.execution.sql_sources.content_hash", hashed)
        writer.execute("PRAGMA wal_checkpoint(RESTART)")
        writer.execute("UPDATE orders SET v = 9")
        writer.commit()
        writer.execute("UPDATE orders SET v = 10")
        writer.commit()
        writer.execute("PRAGMA wal_checkpoint(RESTART)")
        folder.run()
        folder.run()
        assert live(folder) == Counter([(1, 11, 1), (2, 20, 2)])


def test_a_query_cannot_write(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, KEYLESS)
    execute(folder, "INSERT INTO orders VALUES (1, 10, 1)")
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("table: orders", "query: WITH x AS (SELECT 1) DELETE FROM orders RETURNING id, v, at"))
    with pytest.raises(StorageFailed, match="E608"):
        folder.run()
    assert len(table(folder)) == 1


def test_a_connection_without_a_value_is_told_by_check(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, KEYLESS)
    folder.write("errata.toml", '[connections.shop]\nurl = "env:ERRATA_TEST_NOT_SET"\n')
    with pytest.raises(PipelineErrors, match="E602"):
        folder.load()


@pytest.mark.parametrize(("asked", "holder"), [("table: orders", "table"), ("query: SELECT id, v, at FROM orders", "query")])
def test_what_lacks_a_column_is_called_by_its_name(asked: str, holder: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, KEYLESS)
    text = folder.text("pipeline.yaml").replace("table: orders", asked)
    folder.write("pipeline.yaml", text.replace("{name: at, type: int}", "{name: ats, type: int}"))
    with pytest.raises(StorageFailed, match=f"E238: the {holder} lacks the declared column 'ats' .*; rename it in the {holder}") as stopped:
        folder.run()
    assert "file" not in stopped.value.message


@pytest.mark.parametrize(
    ("merge", "named", "asked", "message"),
    [
        (SNAPSHOT, "record id=7: ", "table: orders", "node 'orders': shop:orders: column 'v': cannot read '...' as int (type_coercion_failure)"),
        (KEYLESS, "a record without a primary key: ", "table: orders", "node 'orders': shop:orders: column 'v': cannot read '...' as int (type_coercion_failure)"),
        (SNAPSHOT, "no such column: vv", "query: SELECT id, vv AS v, at FROM orders", "E608: source 'orders': connection 'shop' (PLACE): no such column: vv"),
    ],
)
def test_a_failing_record_is_named_and_events_leave_out_its_values(merge: str, named: str, asked: str, message: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, merge)
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("strategy: continue", "strategy: fail_fast").replace("table: orders", asked))
    execute(folder, "INSERT INTO orders VALUES (7, 'it''s \"secret', 1)")
    with standing_in(folder.path):
        code, out, err = command("run", "pipeline.yaml", "--events", "jsonl")
    last = json.loads(out.splitlines()[-1])
    assert (code, named in err, last["message"].replace(str(tmp_path / "shop.db"), "PLACE")) == (last["exit_code"], True, message)
    assert "secret" not in out


@pytest.mark.parametrize("kind", ["mysql", "mssql", "oracle"])
def test_kinds_that_take_no_output_say_so_without_their_library(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.sql.connections.find_spec", lambda _: None)
    folder = Folder(tmp_path)
    folder.write("errata.toml", f'[connections.far]\nurl = "{kind}://app@db.example/shop"\n')
    folder.write_csv("orders.csv", ["id"], [{"id": 1}])
    source = "{type: source, name: a, config: {name: a, type: csv, path: orders.csv, schema: [{name: id, type: int}]}}"
    folder.write("pipeline.yaml", f"pipeline: {{name: p}}\nnodes:\n  - {source}\n  - {{type: output, name: o, input: a, config: {{name: o, type: sql, connection: far, table: o}}}}\n")
    with pytest.raises(PipelineErrors) as refused:
        folder.load()
    assert [one.code for one in refused.value.diagnostics] == ["E607"]


@pytest.mark.parametrize("merge", [SNAPSHOT, KEYLESS, UPSERT], ids=["keyed", "keyless", "upsert"])
def test_tasks_of_the_engine_read_large_answers(merge: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("operators.source.diff.by_answer.SMALL_BYTES", 0)
    monkeypatch.setattr("storage.sql.sqlite.BATCH_ROWS", 7)
    folder = folder_of(tmp_path, merge)
    execute(folder, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) INSERT INTO orders SELECT i, i % 5, i FROM n")
    folder.run()
    assert live(folder) == Counter(table(folder))
    execute(folder, "UPDATE orders SET v = 9, at = 200 WHERE id % 10 = 0")
    folder.run()
    assert live(folder) == Counter(table(folder))
    assert not list((tmp_path / ".errata").rglob("*.arrow"))


@pytest.mark.parametrize("merge", ["{strategy: append, primary_key: [id], cursor: at}", LEDGER, UPSERT, "{strategy: changelog, primary_key: [id], cursor: at, op: op, ops: {append: [1], correct: [2]}}"], ids=["append", "ledger", "upsert", "changelog"])
def test_a_cursor_that_the_database_calls_something_else(merge: str, tmp_path: Path) -> None:
    """The operation of a change record may be a number."""
    folder = folder_of(tmp_path, merge, "{name: at, type: int, source_name: seen}, {name: op, type: int}")
    execute(folder, "ALTER TABLE orders RENAME COLUMN at TO seen", "ALTER TABLE orders ADD COLUMN op INTEGER DEFAULT 1", "INSERT INTO orders VALUES (1, 1, 5, 1), (2, 2, NULL, 1), (3, 3, 'late', 1)")
    assert folder.run().rejected == 1
    execute(folder, "INSERT INTO orders VALUES (4, 4, 6, 1)", "UPDATE orders SET v = 9, op = 2 WHERE id = 1", "UPDATE orders SET seen = 7 WHERE id = 3")
    folder.run()
    corrects = merge.startswith(("{strategy: upsert", "{strategy: changelog"))
    seen = {row["id"]: (row["v"], row["at"]) for row in folder.rows("out/all.csv")}
    assert seen == {"1": ("9" if corrects else "1", "5"), "2": ("2", ""), "3": ("3", "7"), "4": ("4", "6")}
    assert folder.violations() == []


@pytest.mark.parametrize("overlap", [0.5, 0.55])
def test_a_cursor_of_decimals_with_an_overlap(overlap: float, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, f"{{strategy: append, primary_key: [id], cursor: at, overlap: {overlap}}}", "{name: at, type: decimal, scale: 1}")
    execute(folder, "INSERT INTO orders VALUES (1, 1, 1.5), (2, 2, 2.5)")
    folder.run()
    execute(folder, "INSERT INTO orders VALUES (3, 3, 2.0), (4, 4, 1.9), (5, 5, 2.5)")
    folder.run()
    assert {row["id"] for row in folder.rows("out/all.csv")} == {"1", "2", "3", "5"}


def test_a_full_refresh_asks_for_everything(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, APPEND)
    execute(folder, "INSERT INTO orders VALUES (1, 10, 5)")
    folder.run()
    execute(folder, "INSERT INTO orders VALUES (2, 20, 1)")
    assert folder.run().committed is False
    folder.run(full_refresh=True)
    assert live(folder) == Counter([(1, 10, 5), (2, 20, 1)])


def test_dry_runs_and_plans_read_no_rows(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, SNAPSHOT)
    execute(folder, "INSERT INTO orders VALUES (1, 10, 1), (2, 20, 2)")
    assert folder.run(dry_run=True).exit_code == 0
    assert "10" in (folder.run(dry_run=True, preview=1).preview or "")
    folder.run()
    assert [row["action"] for row in folder.load().plan_next()] == ["skip", "skip"]
    execute(folder, "INSERT INTO orders VALUES (3, 30, 3)")
    assert [row["action"] for row in folder.load().plan_next()] == ["delta", "delta"]


def test_names_and_values_cannot_leave_their_place(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, APPEND)
    name = 'x"; DROP TABLE orders; --'
    quoted = name.replace('"', '""')
    execute(folder, f'CREATE TABLE "{quoted}" (id INTEGER, v INTEGER, at TEXT)', f"INSERT INTO \"{quoted}\" VALUES (1, 1, 'a'' OR 1=1; --')", "INSERT INTO orders VALUES (9, 9, 9)")
    text = folder.text("pipeline.yaml").replace("{name: at, type: int}", "{name: at, type: string}")
    folder.write("pipeline.yaml", text.replace("table: orders", f"table: '\"{quoted}\"'"))
    folder.run()
    folder.run()
    assert folder.rows("out/all.csv") == [{"id": "1", "v": "1", "at": "a' OR 1=1; --"}]
    assert len(table(folder)) == 1


@pytest.mark.parametrize(
    ("type_", "values"), [("int", "0, 1"), ("decimal, scale: 1", "1.5, 2.5"), ("string", "'a', 'b'"), ("date_time", "'2026-03-01 08:00:00', '2026-03-01 09:00:00'")]
)
def test_explain_shows_the_conditions_that_a_run_asks(type_: str, values: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the selected columns is the same."""
    folder = folder_of(tmp_path, APPEND, f"{{name: at, type: {type_}}}")
    execute(folder, *(f"INSERT INTO orders VALUES (1, 1, {value})" for value in values.split(", ")))
    folder.run()
    asked: list[str] = []
    execute(folder, "INSERT INTO orders SELECT 2, 2, max(at) FROM orders")
    run = SqliteReading.run

    def noted(reading: SqliteReading, statement: str, *given: Any) -> Any:
        asked.append(statement)
        return run(reading, statement, *given)

    monkeypatch.setattr(SqliteReading, "run", noted)
    folder.run()
    with standing_in(folder.path):
        _, explained, _ = command("explain", "pipeline.yaml")
    [statement] = asked
    assert "asked by SELECT * FROM" + statement.partition(" FROM")[2] in explained


def test_decimals_of_duckdb_keep_their_digits(tmp_path: Path) -> None:
    """A decimal in a struct becomes a number where one has its digits; else the record is rejected, with all of them."""
    import duckdb

    folder = folder_of(tmp_path, SNAPSHOT, '{name: s, type: map}, {name: d, type: "decimal(5,2)"}')
    folder.write("errata.toml", '[connections.shop]\nurl = "duckdb:shop.duckdb"\n')
    with closing(duckdb.connect(str(tmp_path / "shop.duckdb"))) as database:
        database.execute("CREATE TABLE orders (id INTEGER, v INTEGER, s STRUCT(a DECIMAL(20,2)), d DECIMAL(30,2))")
        database.execute("INSERT INTO orders VALUES (1, 1, {'a': 1.50}, 1.5), (2, 2, {'a': 12345678901234567.89}, 1), (3, 3, {'a': 1}, 12345678901234567.89)")
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("type: csv, path: out/all.csv", "type: json, path: out/all.json, options: {format: ndjson}"))
    assert folder.run().rejected == 2
    assert json.loads(folder.text("out/all.json")) == {"id": 1, "v": 1, "s": {"a": 1.5}, "d": 1.5}
    rejects = folder.rows("out/rejected.csv")
    assert sorted((row["id"], row["s"], row["d"]) for row in rejects) == [("2", '{"a":12345678901234567.89}', "1.00"), ("3", '{"a":1}', "12345678901234567.89")]


def test_a_column_has_no_members(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, SNAPSHOT, "{name: at.day, type: int}")
    with pytest.raises(StorageFailed, match=r"shop:orders.*at\.day"):
        folder.run()


class Answering:
    """A double of connectorx: a table without rows."""

    def __init__(self, *types: pa.DataType) -> None:
        self.types = types

    def read_sql(self, url: str, statement: str, **_: object) -> pa.Table:
        return pa.table({name: pa.array([], type_) for name, type_ in zip(("id", "v", "at"), self.types, strict=True)})


def far(path: Path, merge: str, column: str, answering: Answering, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """A pipeline over a table of MySQL."""
    monkeypatch.setattr("storage.sql.connections.find_spec", lambda _: answering)
    monkeypatch.setitem(sys.modules, "connectorx", answering)
    folder = folder_of(path, merge, column)
    folder.write("errata.toml", '[connections.shop]\nurl = "mysql://app@db.example/shop"\n')
    return folder


def test_a_cursor_that_another_database_orders_as_text_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = far(tmp_path, APPEND, "{name: at, type: int}", Answering(pa.int64(), pa.int64(), pa.large_string()), monkeypatch)
    with pytest.raises(StorageFailed, match=r"E605: the cursor 'at' of shop:orders is declared as int, and the database orders it as large_string"):
        folder.run()


def test_a_text_of_another_database_is_no_cursor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = far(tmp_path, APPEND, "{name: at, type: string}", Answering(), monkeypatch)
    with pytest.raises(PipelineErrors) as refused:
        folder.load()
    [one] = refused.value.diagnostics
    assert (one.code, one.message, one.help) == ("E605", "a text cannot be a cursor: MySQL compares texts by a collation", "use a column of type int, decimal, date or date_time")
