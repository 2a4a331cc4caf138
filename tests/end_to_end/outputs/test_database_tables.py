"""Tables of SQLite and DuckDB files: a mirror is the live rows after every run, op rows stand once, whatever dies or somebody else does."""

from __future__ import annotations

from pathlib import Path

import pytest

from errata.core.failures import StorageFailed
from tests.support import database_tables as tables

KINDS = ["sqlite", "duckdb"]


@pytest.mark.parametrize("mode", tables.MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_mirror_is_the_live_rows(kind: str, mode: str, tmp_path: Path) -> None:
    tables.check_random_script(kind, mode, 1, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_may_die_at_every_step(kind: str, tmp_path: Path) -> None:
    tables.check_kills(kind, "key" if kind == "sqlite" else "values", tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_op_rows_stand_once(kind: str, tmp_path: Path) -> None:
    tables.check_op_rows(kind, tmp_path)


@pytest.mark.parametrize("form", ["two", "retract", "upsert", "flink", "single", "debezium"])
def test_forms_of_op_rows(form: str, tmp_path: Path) -> None:
    tables.check_forms("sqlite", form, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_constraint_of_somebody_else(kind: str, tmp_path: Path) -> None:
    tables.check_constraint(kind, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_two_rows_exchange_a_unique_value(kind: str, tmp_path: Path) -> None:
    tables.check_swapped(kind, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_somebody_else_changed_the_table(kind: str, tmp_path: Path) -> None:
    tables.check_changed_by_another(kind, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_somebody_else_changed_the_columns(kind: str, tmp_path: Path) -> None:
    tables.check_columns_of_another(kind, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_names_that_a_transaction_uses_itself(kind: str, tmp_path: Path) -> None:
    tables.check_names_of_its_own(kind, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_control_row_without_an_epoch(kind: str, tmp_path: Path) -> None:
    tables.check_control_row_without_epoch(kind, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_refused_before_the_commit(kind: str, tmp_path: Path) -> None:
    tables.check_refused_before_the_commit(kind, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_may_be_replaced_refuses_the_rows(kind: str, tmp_path: Path) -> None:
    tables.check_replacing_that_is_refused(kind, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_force_counts_for_one_table_once(kind: str, tmp_path: Path) -> None:
    tables.check_replacing_counts_once(kind, tmp_path)


def test_force_counts_no_longer_once_an_own_table_was_written(tmp_path: Path) -> None:
    tables.check_permission_beside_own_table(tmp_path)


def test_force_of_a_run_that_was_killed_does_not_count_for_the_next(tmp_path: Path) -> None:
    tables.check_killed_before_replacing("sqlite", tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_edits_of_columns(kind: str, tmp_path: Path) -> None:
    tables.check_edited(kind, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_verify_reads_mirrors(kind: str, tmp_path: Path) -> None:
    tables.check_verify(kind, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_verify_compares_decimals_in_arrays_and_maps(kind: str, tmp_path: Path) -> None:
    tables.check_verify_of_nested_decimals(kind, tmp_path)


def test_op_rows_that_sqlite_cannot_hold(tmp_path: Path) -> None:
    folder, database = tables.made("sqlite", tmp_path, "mode: op_rows")
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("{name: amount, type: int}", "{name: amount, type: float}"))
    folder.write("orders.csv", "id,region,amount\n1,a,1.5\n")
    folder.run()
    folder.write("orders.csv", "id,region,amount\n1,a,1.5\n2,b,nan\n")
    with pytest.raises(StorageFailed, match=r"E614.*amount.*id=2"):
        folder.run()
    assert tables.epoch(database) == 1


def test_a_value_that_sqlite_cannot_hold(tmp_path: Path) -> None:
    folder, database = tables.made("sqlite", tmp_path)
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("{name: amount, type: int}", "{name: amount, type: float}"))
    folder.write("orders.csv", "id,region,amount\n1,a,1.5\n2,b,nan\n")
    with pytest.raises(StorageFailed, match=r"E614.*amount.*id=2"):
        folder.run()
    assert folder.load().head_epoch() is None
    folder.write("orders.csv", "id,region,amount\n1,a,1.5\n2,b,inf\n")
    folder.run()
    folder.write("orders.csv", "id,region,amount\n1,a,nan\n2,b,inf\n")
    with pytest.raises(StorageFailed, match=r"E614.*amount.*id=1"):
        folder.run()
    assert tables.epoch(database) == 1


def test_names_that_are_one_to_the_database(tmp_path: Path) -> None:
    folder, _ = tables.made("sqlite", tmp_path)
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("primary_key: [id]}}", "primary_key: [id], mapping: {Id: region}}}"))
    tables.lay(folder, tables.FIRST)
    with pytest.raises(StorageFailed, match=r"E614.*'id' and 'Id'"):
        folder.run()


@pytest.mark.parametrize(
    ("kind", "config", "message"),
    [
        ("sqlite", "table: temp.report", "has no schema 'temp'"),
        ("sqlite", "table: public.report", "has no schema 'public'"),
        ("sqlite", "table: SQLite_report", "sqlite keeps the name 'SQLite_report' for itself"),
        ("duckdb", "table: information_schema.report", "duckdb keeps the schema 'information_schema' for itself"),
        ("duckdb", 'table: report, mapping: {"a\\0b": region}', "no database has a column named"),
        ("duckdb", 'table: report, mapping: {"": region}', "no database has a column named ''"),
        ("duckdb", "table: _ERRATA_OUTPUTS", "notes what each output holds"),
        ("sqlite", "table: report, mode: op_rows, mapping: {offset: region, _offset: amount}", "columns '_offset' and '_offset' are one name"),
    ],
)
def test_names_that_the_database_cannot_hold_are_refused_before_the_commit(kind: str, config: str, message: str, tmp_path: Path) -> None:
    folder, database = tables.made(kind, tmp_path, "if_exists: overwrite")
    database.do("CREATE TABLE other (x INTEGER)")
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("table: report", config))
    tables.lay(folder, tables.FIRST)
    with pytest.raises(StorageFailed, match=f"E614.*{message}"):
        folder.run()
    assert folder.load().head_epoch() is None


def test_a_name_that_an_index_has_is_refused_before_the_commit(tmp_path: Path) -> None:
    folder, database = tables.made("sqlite", tmp_path, "if_exists: overwrite")
    database.do("CREATE TABLE other (x INTEGER)", "CREATE INDEX Report ON other (x)")
    tables.lay(folder, tables.FIRST)
    with pytest.raises(StorageFailed, match=r"E610.*shop:report is an index, which is never written to"):
        folder.run()
    assert folder.load().head_epoch() is None


def test_a_schema_may_have_the_name_of_the_file(tmp_path: Path) -> None:
    """DuckDB names the catalog of a file after it."""
    folder, database = tables.made("duckdb", tmp_path)
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("table: report", "table: shop.report"))
    for rows in (tables.FIRST, tables.SECOND):
        tables.lay(folder, rows)
        folder.run()
        assert tables.Counter(database.ask("SELECT id, region, amount FROM shop.shop.report")) == tables.Counter(rows)
        assert folder.violations() == []


def test_a_table_may_have_as_many_columns_as_the_database_takes(tmp_path: Path) -> None:
    """A table of changes would have more of them, so that all rows are written."""
    folder, database = tables.made("sqlite", tmp_path, "key_column: none")
    names = [f"c{at}" for at in range(2001)]
    folder.write("orders.csv", ",".join(["id", "region", "amount", *names]) + "\n" + ",".join(["1", "a", "2", *names]) + "\n")
    with pytest.raises(StorageFailed, match=r"E614.*a table of sqlite has 2000 columns at most, not 2004"):
        folder.run()
    for amount in (2, 3):
        folder.write("orders.csv", ",".join(["id", "region", "amount", *names[:1997]]) + f"\n1,a,{amount},{','.join(names[:1997])}\n")
        folder.run()
        assert database.ask("SELECT amount, c1996 FROM report") == [(amount, "c1996")]


def test_a_name_of_an_undeclared_field_is_refused_before_the_commit(tmp_path: Path) -> None:
    folder, _ = tables.made("sqlite", tmp_path)
    folder.write("orders.csv", "id,region,amount,Amount\n1,north,10,11\n")
    with pytest.raises(StorageFailed, match=r"E614.*'amount' and 'Amount'"):
        folder.run()
    assert folder.load().head_epoch() is None


def test_a_column_may_take_each_name_of_a_place(tmp_path: Path) -> None:
    """Nothing has the place of a row then, so that all rows are written."""
    folder, database = tables.made("sqlite", tmp_path, "key_column: none, mapping: {rowid: id, OID: region, _rowid_: amount}")
    for rows in (tables.FIRST, tables.SECOND):
        tables.lay(folder, rows)
        folder.run(max_retract_share=1.0)
        assert sorted(database.ask('SELECT "rowid", "OID", "_rowid_" FROM report')) == sorted(rows)


def test_a_table_without_rowid_is_taken_over(tmp_path: Path) -> None:
    folder, database = tables.made("sqlite", tmp_path, "key_column: none, if_exists: overwrite")
    database.do("CREATE TABLE report (id INTEGER PRIMARY KEY, region TEXT, amount INTEGER) WITHOUT ROWID")
    for rows in (tables.FIRST, tables.SECOND):
        tables.lay(folder, rows)
        folder.run(max_retract_share=1.0)
        assert sorted(database.ask("SELECT * FROM report")) == sorted(rows)


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_that_cannot_be_made_is_told_with_the_epoch(kind: str, tmp_path: Path) -> None:
    folder, _ = tables.made(kind, tmp_path)
    folder.write("errata.toml", f'[connections.shop]\nurl = "{kind}:data/new/shop.db"\n')
    folder.write("data", "a file")
    tables.lay(folder, tables.FIRST)
    with pytest.raises(StorageFailed, match=r"E613.*its folder cannot be made: Not a directory: epoch 1 is committed; report holds no epoch: run again"):
        folder.run()
    folder.remove("data")
    assert folder.run().committed is False
    assert (tmp_path / "data/new/shop.db").is_file()


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_in_place_of_the_file(kind: str, tmp_path: Path) -> None:
    folder, _ = tables.made(kind, tmp_path)
    (tmp_path / "shop.db").mkdir()
    tables.lay(folder, tables.FIRST)
    with pytest.raises(StorageFailed, match=r"E608.*it is a folder, and no file"):
        folder.run()


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_that_a_database_keeps_by_value(kind: str, tmp_path: Path) -> None:
    """SQLite drops the sign of zero, which is no difference; whole numbers of a numeric column are floats in deltas too, as in the table."""
    folder, database = tables.made(kind, tmp_path, "key_column: none")
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("type: csv\n      path: orders.csv", "type: json\n      path: orders.json").replace("{name: amount, type: int}", "{name: amount, type: numeric}, {name: rate, type: float}"))
    for first in (9007199254740993, 9223372036854775807, 1):
        folder.write("orders.json", f'[{{"id":1,"region":"a","amount":{first},"rate":-0.0}},{{"id":2,"region":"b","amount":-0.0,"rate":1.5}},{{"id":3,"region":"c","amount":1,"rate":0.1}}]')
        assert "W610" not in tables.told(folder)
        assert folder.violations() == []
        assert database.ask("SELECT amount, rate FROM report ORDER BY id") == [(float(first), 0.0), (0.0, 1.5), (1.0, 0.1)]


def test_a_dry_run_opens_no_output(tmp_path: Path) -> None:
    folder, _ = tables.made("sqlite", tmp_path)
    tables.lay(folder, tables.FIRST)
    assert folder.run(dry_run=True).exit_code == 0
    assert "north" in (folder.run(dry_run=True, preview=2).preview or "")
    assert not (tmp_path / "shop.db").exists()


def test_a_dry_run_that_tells_of_a_threshold_opens_no_output(tmp_path: Path) -> None:
    folder, _ = tables.made("sqlite", tmp_path)
    folder.write("orders.csv", "id,region,amount\n1,north,ten\n2,south,20\n")
    assert folder.run().exit_code == 2
    (tmp_path / "shop.db").unlink()
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("strategy: continue", "strategy: continue, type_error_threshold: 0.4"))
    assert folder.run(dry_run=True).message == "1 of 2 records failed, more than the share 0.4 of type_error_threshold"
    assert not (tmp_path / "shop.db").exists()


def test_a_state_from_a_backup_writes_the_table_anew(tmp_path: Path) -> None:
    import shutil

    folder, database = tables.made("sqlite", tmp_path)
    tables.lay(folder, tables.FIRST)
    folder.run()
    shutil.copytree(tmp_path / ".errata", tmp_path / "backup")
    tables.lay(folder, tables.SECOND)
    folder.run()
    shutil.rmtree(tmp_path / ".errata")
    shutil.copytree(tmp_path / "backup", tmp_path / ".errata")
    tables.lay(folder, tables.THIRD)
    folder.run()
    assert (tables.stored(database), tables.epoch(database)) == (tables.Counter(tables.THIRD), 2)


def test_schema_gives_the_digits_of_decimals(tmp_path: Path) -> None:
    folder, database = tables.made("duckdb", tmp_path)
    text = folder.text("pipeline.yaml").replace("{name: amount, type: int}", "{name: amount, type: decimal, scale: 2}")
    folder.write("pipeline.yaml", text.replace("primary_key: [id]}}\n", "primary_key: [id], schema: [{name: amount, type: decimal, precision: 10, scale: 3}]}}\n", 1))
    folder.write("orders.csv", "id,region,amount\n1,a,1.5\n2,b,-20.25\n")
    folder.run()
    assert database.ask("SELECT DISTINCT typeof(amount) FROM report") == [("DECIMAL(10,3)",)]
    assert database.ask("SELECT id, amount::VARCHAR FROM report ORDER BY id") == [(1, "1.500"), (2, "-20.250")]
    folder.write("orders.csv", "id,region,amount\n1,a,1.25\n2,b,-20.25\n")
    folder.run()
    assert database.ask("SELECT id, amount::VARCHAR FROM report ORDER BY id") == [(1, "1.250"), (2, "-20.250")]
    assert folder.violations() == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_history_is_a_table(kind: str, tmp_path: Path) -> None:
    folder, database = tables.made(kind, tmp_path)
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("primary_key: [id]}}\n", "history: {key: [id], recorded: epoch}}}\n", 1))
    for rows in (tables.FIRST, tables.SECOND, tables.THIRD):
        tables.lay(folder, rows)
        folder.run()
        current = database.ask("SELECT id, region, amount FROM report WHERE is_current")
        assert tables.Counter(current) == tables.Counter(rows)
    assert len(database.ask("SELECT * FROM report")) > len(tables.THIRD)
    assert folder.violations() == []
