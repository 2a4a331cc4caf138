"""Tests of tables that outputs write, by kind of database."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from errata.core.failures import StorageFailed
from storage import durable
from tests.support.databases import Database
from tests.support.killing import Died, dies_at
from tests.support.pipelines import Folder, command, standing_in

PIPELINE = """\
pipeline: {name: shop}
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: csv
      path: orders.csv
      merge: MERGE
      schema: [{name: id, type: int}, {name: region, type: string}, {name: amount, type: int}]
  - {type: output, name: report, input: orders, config: {name: report, type: sql, connection: shop, table: report, EXTRA}}
  - {type: output, name: all, input: orders, config: {name: all, type: csv, path: out/all.csv}}
error_handling: {strategy: continue, dlq: {path: out/rejected.csv}}
"""
KEYED = "{strategy: snapshot, primary_key: [id]}"
MODES = {"key": ("primary_key: [id]", KEYED), "row-key": ("if_exists: error", "snapshot"), "values": ("key_column: none", "snapshot")}
Rows = list[tuple[int, str, int | None]]
FIRST: Rows = [(1, "north", 10), (2, "south", 20), (3, "north", 30)]
SECOND: Rows = [(1, "north", 10), (2, "south", 25), (4, "west", 7)]
THIRD: Rows = [(2, "north", 10), (1, "south", 25), (4, "west", None), (5, "it's", 8)]


def made(kind: str, path: Path, extra: str = "primary_key: [id]", merge: str = KEYED) -> tuple[Folder, Database]:
    folder = Folder(path)
    database = Database.new(kind, path)
    folder.write("pipeline.yaml", PIPELINE.replace("MERGE", merge).replace("EXTRA", extra))
    return folder, database


def lay(folder: Folder, rows: Rows) -> None:
    folder.write_csv("orders.csv", ["id", "region", "amount"], [dict(zip(("id", "region", "amount"), row, strict=True)) for row in rows])


def stored(database: Database) -> Counter[tuple[Any, ...]]:
    return Counter(database.ask("SELECT id, region, amount FROM report"))


def epoch(database: Database) -> int:
    return int(database.ask("SELECT epoch FROM _errata_outputs")[0][0])


def check_random_script(kind: str, mode: str, seed: int, path: Path) -> None:
    """After every run the table is the live rows, and its control row the epoch."""
    extra, merge = MODES[mode]
    folder, database = made(kind, path, extra, merge)
    rng, rows = random.Random(seed), list[tuple[int, str, int | None]]()
    for _ in range(5):
        for _ in range(rng.randint(1, 4)):
            key, value = rng.randint(1, 9), rng.choice([None, *range(4)])
            rows = [row for row in rows if row[0] != key] if merge == KEYED or rng.random() < 0.4 else rows
            rows = [*rows, (key, rng.choice("ab'"), value)] if rng.random() < 0.8 else rows
        rng.shuffle(rows)
        lay(folder, rows)
        result = folder.run()
        assert stored(database) == Counter(rows)
        assert epoch(database) == result.epoch
    assert folder.violations() == []


def check_kills(kind: str, mode: str, path: Path) -> None:
    """A run that dies at a step of the database, or between the ledger's commit and it: the next run ends as if nothing had happened."""
    seen: list[tuple[int, str]] = []
    folder, database = _second_run_ready(kind, mode, path / "whole")
    with durable.probing(lambda moment: seen.append((moment.number, moment.name)) if moment.side == "before" else None):
        folder.run()
    wanted = stored(database)
    assert wanted == Counter(SECOND)
    points = [(number, name) for number, name in seen if name.startswith("sql:") or name == "append:ledger"]
    assert [name for _, name in points] == ["append:ledger", "sql:begin", "sql:rows", "sql:commit"]
    for number, name in points:
        for side in ("before", "after"):
            folder, database = _second_run_ready(kind, mode, path / f"{name.replace(':', '-')}-{side}")
            with pytest.raises(Died), durable.probing(dies_at(number, side)):
                folder.run()
            left = stored(database)
            assert left in (Counter(FIRST), wanted), (name, side)
            assert (left == wanted) == ((name, side) == ("sql:commit", "after"))
            folder.run()
            assert stored(database) == wanted, (name, side)
            assert epoch(database) == folder.load().head_epoch() == 2
            before = database.ask("SELECT written_at FROM _errata_outputs")
            folder.run()
            assert database.ask("SELECT written_at FROM _errata_outputs") == before


def _second_run_ready(kind: str, mode: str, path: Path) -> tuple[Folder, Database]:
    folder, database = made(kind, path, *MODES[mode])
    lay(folder, FIRST)
    folder.run()
    lay(folder, SECOND)
    return folder, database


def check_op_rows(kind: str, path: Path) -> None:
    """Every epoch's op rows stand once, with dense offsets, whatever died."""
    folder, database = made(kind, path, "mode: op_rows")
    for rows in (FIRST, SECOND, THIRD):
        lay(folder, rows)
        with pytest.raises(Died), durable.probing(_die_at_commit):
            folder.run()
        assert folder.run().committed is False
    codes = {"+A": 0, "-R": 1, "-C": 2, "+C": 3}
    wanted = [(at, codes[row["op"]], row["data"]["id"], row["data"]["region"], row["data"]["amount"]) for at, row in enumerate(folder.log("report"))]
    assert database.ask('SELECT "offset", op, id, region, amount FROM report ORDER BY "offset"') == wanted


def _die_at_commit(moment: durable.Moment) -> None:
    if (moment.name, moment.side) == ("sql:commit", "before"):
        raise Died


def check_forms(kind: str, form: str, path: Path) -> None:
    """Each form of op rows is written."""
    folder, database = made(kind, path, f"mode: op_rows, form: {form}")
    for rows in (FIRST, SECOND):
        lay(folder, rows)
        folder.run()
    ops = {"two": [0, 0, 0, 2, 3, 1, 0], "retract": [0, 0, 0, 1, 1, 0, 0], "upsert": [0, 0, 0, 0, 1, 0], "flink": ["+I", "+I", "+I", "-U", "+U", "-D", "+I"]}
    paired = {"single": ["+A", "+A", "+A", "+C", "-R", "+A"], "debezium": ["c", "c", "c", "u", "d", "c"]}
    assert [op for (op,) in database.ask('SELECT op FROM report ORDER BY "offset"')] == (ops | paired)[form]
    if form in paired:
        assert '"amount":25' in str(database.ask('SELECT event FROM report ORDER BY "offset"')[3][0]).replace(" ", "")


def check_constraint(kind: str, path: Path) -> None:
    """A constraint of somebody else's refuses an epoch: nothing of it is written, and the next run makes up for it."""
    folder, database = made(kind, path)
    lay(folder, FIRST)
    folder.run()
    database.do("CREATE UNIQUE INDEX one_amount ON report (amount)")
    lay(folder, [*FIRST, (4, "west", 10)])
    with pytest.raises(StorageFailed, match=r"E613.*epoch 2 is committed; report still holds epoch 1: run again"):
        folder.run()
    assert (stored(database), epoch(database)) == (Counter(FIRST), 1)
    with pytest.raises(StorageFailed, match="E613"):
        folder.run()
    database.do("DROP INDEX one_amount")
    assert folder.run().committed is False
    assert (stored(database), epoch(database)) == (Counter([*FIRST, (4, "west", 10)]), 2)


def check_swapped(kind: str, path: Path) -> None:
    """Two rows exchange a value that has to be unique."""
    folder, database = made(kind, path)
    lay(folder, FIRST)
    folder.run()
    database.do("CREATE UNIQUE INDEX one_amount ON report (amount)")
    swapped: Rows = [(1, "north", 20), (2, "south", 10), (3, "north", 30)]
    lay(folder, swapped)
    folder.run()
    assert stored(database) == Counter(swapped)


def check_changed_by_another(kind: str, path: Path) -> None:
    """A row that somebody took away, or put in the way of a new one, gives W610 and is mended."""
    for statement in ("DELETE FROM report WHERE id = 2", "INSERT INTO report VALUES (4, 'alien', 1)"):
        _, err = told_after(kind, path / statement.split()[0], statement)
        assert "W610" in err


def check_columns_of_another(kind: str, path: Path) -> None:
    """A column that somebody added or dropped gives W610, as the table is written anew; a column of an edit does not."""
    for statement in ("ALTER TABLE report ADD COLUMN note VARCHAR", "ALTER TABLE report DROP COLUMN amount"):
        folder, err = told_after(kind, path / statement.split()[3], statement, "key_column: none")
        assert "W610: output 'report': somebody else changed the columns of the table report" in err
        folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("key_column: none", "key_column: none, mapping: {twice: amount}"))
        assert "W610" not in told(folder)


def told(folder: Folder, *words: str) -> str:
    """Run as a command, which has to succeed; what it says."""
    with standing_in(folder.path):
        code, _, err = command("run", "pipeline.yaml", *words)
    assert code == 0, err
    return err


def told_after(kind: str, path: Path, statement: str, *config: str) -> tuple[Folder, str]:
    """Let somebody else execute a statement between two runs; the folder, and what the second run says, after which the table holds the rows."""
    folder, database = made(kind, path, *config)
    lay(folder, FIRST)
    folder.run()
    database.do(statement)
    lay(folder, SECOND)
    err = told(folder, "--max-retract-share", "1")
    assert stored(database) == Counter(SECOND)
    return folder, err


def check_names_of_its_own(kind: str, path: Path) -> None:
    """Tables and columns may have the names of what a transaction uses itself. Of rows with equal values each gets its own."""
    names = ["errata_delta", "errata_rows", "errata_places", "errata_batch", "d", "t"]
    columns = ["rowid", "oid", "nth", "place", "k1", "image"]
    for at, (table, column) in enumerate(zip(names, columns, strict=True)):
        folder, database = made(kind, path / str(at), f"key_column: none, mapping: {{{column}: region}}")
        folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("table: report", f"table: {table}"))
        for rows in ([(1, "7", 10), (2, "7", 20), (3, "8", 30)], [(1, "7", 11), (2, "7", 21), (3, "8", 30)], [(2, "8", 21), (3, "8", 31)]):
            lay(folder, rows)
            assert "W610" not in told(folder, "--max-retract-share", "1")
            assert Counter(database.ask(f'SELECT id, "{column}", amount FROM {table}')) == Counter(rows)


def check_control_row_without_epoch(kind: str, path: Path) -> None:
    """A control row that somebody emptied is none of ours: the table is foreign, until it is taken over."""
    folder, database = made(kind, path)
    lay(folder, FIRST)
    folder.run()
    database.do("UPDATE _errata_outputs SET epoch = NULL")
    lay(folder, SECOND)
    with pytest.raises(StorageFailed, match="E610"):
        folder.run()
    assert stored(database) == Counter(FIRST)
    assert folder.load().head_epoch() == 1
    folder.run(force=True)
    assert (stored(database), epoch(database)) == (Counter(SECOND), 2)


def check_refused_before_the_commit(kind: str, path: Path) -> None:
    """A foreign table, a view, a key that is not unique: nothing is committed or changed."""
    folder, database = made(kind, path)
    lay(folder, [(1, "a", 1), (7, "b", 2)])
    database.do("CREATE TABLE report (id INTEGER, secret VARCHAR(9))", "INSERT INTO report VALUES (1, 'keep me')")
    with pytest.raises(StorageFailed, match="E610"):
        folder.run()
    assert database.ask("SELECT * FROM report") == [(1, "keep me")]
    database.do("DROP TABLE report", "CREATE VIEW report AS SELECT 1 AS id")
    with pytest.raises(StorageFailed, match=r"E610.*view"):
        folder.run(force=True)
    database.do("DROP VIEW report")
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("primary_key: [id]}}", "primary_key: [region]}}"))
    lay(folder, [(1, "a", 1), (7, "b", 2), (8, "b", 3)])
    with pytest.raises(StorageFailed, match=r"E611.*region=b stands for 2 rows"):
        folder.run()
    assert folder.load().head_epoch() is None
    first: Rows = [(1, "a", 1), (7, "b", 2), (8, "c", 3)]
    lay(folder, first)
    folder.run()
    for second in ([(1, "a", 1), (7, "b", 2), (8, "b", 3)], [*first, (9, "b", 4)]):  # a row that takes the key of another, and a new one with it
        lay(folder, second)
        with pytest.raises(StorageFailed, match=r"E611.*region=b stands for 2 rows"):
            folder.run()
    assert (stored(database), folder.load().head_epoch()) == (Counter(first), 1)
    third: Rows = [(1, "b", 1), (7, "a", 2), (8, "c", 5)]  # two rows exchange their keys
    lay(folder, third)
    folder.run()
    assert stored(database) == Counter(third)


def check_replacing_that_is_refused(kind: str, path: Path) -> None:
    """A table of somebody else that a run may replace, and that refuses the rows, needs no `--force` again until it is replaced. Another one does."""
    folder, database = made(kind, path)
    lay(folder, FIRST)
    number = "INTEGER" if kind == "sqlite" else "BIGINT"
    theirs = [
        f"CREATE TABLE report (id {number}, region {'TEXT' if kind != 'duckdb' else 'VARCHAR'}, amount {number})", "INSERT INTO report VALUES (7, 'theirs', 1)",
        "CREATE UNIQUE INDEX one_region ON report (region)",
    ]  # fmt: skip
    database.do(*theirs)
    with pytest.raises(StorageFailed, match=r"E613.*epoch 1 is committed; report holds no epoch: run again$"):
        folder.run(force=True)
    with pytest.raises(StorageFailed, match=r"E613.*: run again$"):
        folder.run()
    assert database.ask("SELECT region FROM report") == [("theirs",)]
    database.do("DROP INDEX one_region")
    assert folder.run().committed is False
    assert stored(database) == Counter(FIRST)
    lay(folder, [*FIRST, (4, "west", 7)])
    folder.run()
    database.do("DROP TABLE report", "DROP TABLE _errata_outputs", *theirs)
    for force, code in ((False, "E610"), (True, "E613"), (False, "E613")):
        with pytest.raises(StorageFailed, match=code):
            folder.run(force=force)
    database.do("ALTER TABLE report ADD COLUMN note VARCHAR")
    with pytest.raises(StorageFailed, match="E610"):
        folder.run()
    assert database.ask("SELECT region FROM report") == [("theirs",)]


def check_replacing_counts_once(kind: str, path: Path) -> None:
    """After a run with `--force` that replaced a table, no table of somebody else is replaced without it: neither in another database, nor out of a backup of this one."""
    folder, database = made(kind, path)
    other = Database.new(kind, path / "other")
    theirs = ("CREATE TABLE report (precious INTEGER)", "INSERT INTO report VALUES (7)")
    database.do(*theirs)
    other.do(*theirs)
    lay(folder, FIRST)
    folder.run(force=True)
    assert stored(database) == Counter(FIRST)
    settings = folder.text("errata.toml")
    folder.write("errata.toml", settings.replace(database.name, other.name if other.name != database.name else f"other/{other.name}"))
    with pytest.raises(StorageFailed, match="E610"):
        folder.run()
    folder.write("errata.toml", settings)
    assert folder.run().committed is False
    database.do("DROP TABLE report", "DROP TABLE _errata_outputs", *theirs)  # as a backup has them
    for rows in (FIRST, SECOND):
        lay(folder, rows)
        with pytest.raises(StorageFailed, match="E610"):
            folder.run()
    assert [one.ask("SELECT precious FROM report") for one in (database, other)] == [[(7,)], [(7,)]]


def check_permission_beside_own_table(path: Path) -> None:
    """A permission that was given back is spent by the write of an own table out of a backup. A write of a table that holds the last epoch reads no permissions."""
    folder, database = made("sqlite", path)
    theirs = ["CREATE TABLE report (id INTEGER, region TEXT, amount INTEGER)", "INSERT INTO report VALUES (7, 'theirs', 1)", "CREATE UNIQUE INDEX one_region ON report (region)"]
    lay(folder, FIRST)
    folder.run()
    backup = (path / database.name).read_bytes()
    database.do("DROP TABLE report", "DROP TABLE _errata_outputs", *theirs)
    lay(folder, [*FIRST, (4, "west", 7)])
    with pytest.raises(StorageFailed, match="E613"):
        folder.run(force=True)
    (path / database.name).write_bytes(backup)
    lay(folder, [*FIRST, (5, "west", 7)])
    folder.run()
    assert stored(database) == Counter([*FIRST, (5, "west", 7)])
    permissions = Path(folder.load().state.root, "replaceable")
    noted = permissions.read_bytes()
    permissions.write_bytes(b"unreadable")
    lay(folder, SECOND)
    folder.run()
    assert stored(database) == Counter(SECOND)
    permissions.write_bytes(noted)
    database.do("DROP TABLE report", "DROP TABLE _errata_outputs", *theirs)
    with pytest.raises(StorageFailed, match="E610"):
        folder.run()


def check_killed_before_replacing(kind: str, path: Path) -> None:
    """A run with `--force` that dies before its transaction ends leaves no permission behind."""
    folder, database = made(kind, path)
    database.do("CREATE TABLE report (precious INTEGER)")
    lay(folder, FIRST)
    with pytest.raises(Died), durable.probing(_die_at_commit):
        folder.run(force=True)
    with pytest.raises(StorageFailed, match="E610"):
        folder.run()
    folder.run(force=True)
    assert stored(database) == Counter(FIRST)


def check_edited(kind: str, path: Path) -> None:
    """Columns come and go by edits, and so does the primary key; a full refresh and a restored state write anew."""
    folder, database = made(kind, path)
    lay(folder, FIRST)
    folder.run()
    text = folder.text("pipeline.yaml")
    transform = '  - {type: transform, name: shaped, input: orders, config: {cxl: "emit id = id\\nemit region = region\\nemit double = amount * 2\\n"}}\n'
    edited = text.replace("  - {type: output, name: report, input: orders", transform + "  - {type: output, name: report, input: shaped").replace("primary_key: [id]}}", "primary_key: [id], exclude: [amount]}}")
    folder.write("pipeline.yaml", edited)
    folder.run()
    assert Counter(database.ask("SELECT id, region, double FROM report")) == Counter([(1, "north", 20), (2, "south", 40), (3, "north", 60)])
    assert "amount" not in _columns(database)
    folder.write("pipeline.yaml", edited.replace("primary_key: [id], exclude", "primary_key: [id, region], exclude"))
    folder.run()
    assert len(database.ask("SELECT * FROM report")) == 3
    folder.write("pipeline.yaml", text)
    folder.run(full_refresh=True)
    assert (stored(database), epoch(database)) == (Counter(FIRST), 1)
    lay(folder, SECOND)
    folder.run()
    assert (stored(database), epoch(database)) == (Counter(SECOND), 2)
    database.do("DROP TABLE report")
    assert folder.run().committed is False
    assert stored(database) == Counter(SECOND)


def _columns(database: Database) -> list[str]:
    if database.kind == "sqlite":
        return [row[1] for row in database.ask("PRAGMA table_info(report)")]
    return [row[0] for row in database.ask("SELECT column_name FROM information_schema.columns WHERE table_name = 'report'")]


def check_verify(kind: str, path: Path) -> None:
    """`errata verify` reads the table and finds a row that is another."""
    folder, database = made(kind, path)
    lay(folder, FIRST)
    folder.run()
    assert folder.violations() == []
    database.do("UPDATE report SET amount = 99 WHERE id = 2")
    assert [row["node"] for row in folder.violations()] == ["report"]
    database.do("UPDATE report SET amount = 20 WHERE id = 2", "DELETE FROM report WHERE id = 1")
    [found] = folder.violations()
    assert (found["node"], "drop the table and run again" in found["detail"]) == ("report", True)
    database.do("DROP TABLE report")
    folder.run()
    assert folder.violations() == []


NESTED = """\
pipeline: {name: shop}
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: csv
      path: orders.csv
      merge: {strategy: snapshot, primary_key: [id]}
      schema: [{name: id, type: int}, {name: price, type: "decimal(24,2)"}]
  - {type: transform, name: nested, input: orders, config: {cxl: "emit m = {d: price, f: 1.50, t: '10.10E0'}\\nemit l = [price, null, 'é']\\nemit a = [x for x in [price]][0]\\nemit t = ['it is'][0]"}}
  - {type: output, name: report, input: nested, config: {name: report, type: sql, connection: shop, table: report, primary_key: [id]}}
"""


def check_verify_of_nested_decimals(kind: str, path: Path) -> None:
    """Arrays, maps and values of any type with decimals in them are compared by the texts that the table has."""
    folder, database = Folder(path), Database.new(kind, path)
    folder.write("pipeline.yaml", NESTED)
    folder.write_csv("orders.csv", ["id", "price"], [{"id": 1, "price": "10.10"}, {"id": 2, "price": "-1.00"}])
    folder.run()
    assert folder.violations() == []
    database.do("DELETE FROM report WHERE id = 1")
    assert [row["node"] for row in folder.violations()] == ["report"]
