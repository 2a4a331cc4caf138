"""Tables of a PostgreSQL: mirrors and op rows, whatever dies, is refused or is changed by somebody else."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from decimal import Context, Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from errata.core.failures import StorageFailed
from errata.project.workspace import read_workspace
from storage import durable
from storage.engines.base import Engine
from storage.sql.errors import DatabaseError
from storage.sql.names import TableName
from storage.sql.tables import Column, Shape, session_of
from tests.support import database_tables as tables
from tests.support.databases import PASSWORD, Database, connected, postgres
from tests.support.killing import Died
from tests.support.pipelines import Folder

pytestmark = pytest.mark.servers
KIND = "postgresql"


@pytest.mark.parametrize("mode", ["key"])
def test_a_mirror_is_the_live_rows(mode: str, tmp_path: Path) -> None:
    tables.check_random_script(KIND, mode, 2, tmp_path)


@pytest.mark.deep
@pytest.mark.parametrize("mode", tables.MODES)
@pytest.mark.parametrize("seed", range(3, 7))
def test_a_mirror_is_the_live_rows_of_more_scripts(mode: str, seed: int, tmp_path: Path) -> None:
    tables.check_random_script(KIND, mode, seed, tmp_path)


@pytest.mark.deep
@pytest.mark.parametrize("mode", tables.MODES)
def test_a_run_may_die_at_every_step(mode: str, tmp_path: Path) -> None:
    tables.check_kills(KIND, mode, tmp_path)


def test_op_rows_stand_once(tmp_path: Path) -> None:
    tables.check_op_rows(KIND, tmp_path)


@pytest.mark.deep
@pytest.mark.parametrize("form", ["flink", "debezium"])
def test_forms_of_op_rows(form: str, tmp_path: Path) -> None:
    tables.check_forms(KIND, form, tmp_path)


def test_a_constraint_of_somebody_else(tmp_path: Path) -> None:
    tables.check_constraint(KIND, tmp_path)


@pytest.mark.deep
def test_two_rows_exchange_a_unique_value(tmp_path: Path) -> None:
    tables.check_swapped(KIND, tmp_path)


@pytest.mark.deep
def test_somebody_else_changed_the_table(tmp_path: Path) -> None:
    tables.check_changed_by_another(KIND, tmp_path)


@pytest.mark.deep
def test_somebody_else_changed_the_columns(tmp_path: Path) -> None:
    tables.check_columns_of_another(KIND, tmp_path)


def test_names_that_a_transaction_uses_itself(tmp_path: Path) -> None:
    tables.check_names_of_its_own(KIND, tmp_path)


@pytest.mark.deep
def test_a_control_row_without_an_epoch(tmp_path: Path) -> None:
    tables.check_control_row_without_epoch(KIND, tmp_path)


@pytest.mark.deep
def test_what_is_refused_before_the_commit(tmp_path: Path) -> None:
    tables.check_refused_before_the_commit(KIND, tmp_path)


@pytest.mark.deep
def test_a_table_that_may_be_replaced_refuses_the_rows(tmp_path: Path) -> None:
    tables.check_replacing_that_is_refused(KIND, tmp_path)


def test_force_counts_for_one_table_once(tmp_path: Path) -> None:
    tables.check_replacing_counts_once(KIND, tmp_path)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("made", "kind"),
    [
        ("CREATE SEQUENCE report", "a sequence"), ("CREATE TYPE report AS (a int)", "a composite type"), ("CREATE TYPE report AS ENUM ('a')", "a type"),
        ("CREATE MATERIALIZED VIEW report AS SELECT 1 AS id", "a materialized view"), ("CREATE VIEW report AS SELECT 1 AS id", "a view"), ("CREATE INDEX report ON other (x)", "an index"),
    ],
)  # fmt: skip
def test_what_is_no_table_is_never_written_to(made: str, kind: str, tmp_path: Path) -> None:
    folder, database = tables.made(KIND, tmp_path, "if_exists: overwrite")
    database.do("CREATE TABLE other (x int)", made)
    tables.lay(folder, tables.FIRST)
    with pytest.raises(StorageFailed, match=rf"E610.*shop:report is {kind}, which is never written to"):
        folder.run(force=True)
    assert folder.load().head_epoch() is None


@pytest.mark.deep
@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("pg_temp.report", "E614.*postgresql keeps the schema 'pg_temp' for itself"), ("information_schema.report", "E614.*keeps the schema"),
        ("pg_namespace", "E610.*shop:pg_namespace is a system table"), ("pg_tables", "E610.*shop:pg_tables is a system view"),
    ],
)  # fmt: skip
def test_names_of_the_server_itself_are_refused_before_the_commit(table: str, message: str, tmp_path: Path) -> None:
    folder, _ = tables.made(KIND, tmp_path, "if_exists: overwrite")
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("table: report", f"table: {table}"))
    tables.lay(folder, tables.FIRST)
    with pytest.raises(StorageFailed, match=message):
        folder.run(force=True)
    assert folder.load().head_epoch() is None


@pytest.mark.parametrize("config", ["primary_key: [region]", "if_exists: error"])
def test_a_key_that_is_too_long_for_an_index(config: str, tmp_path: Path) -> None:
    """Whether a server can pack a long key only it can tell. The table follows once the key, or the pipeline, is another one."""
    folder, database = tables.made(KIND, tmp_path, config, "{strategy: snapshot, primary_key: [region]}")
    random_text = random.Random(1).randbytes(4000).hex()
    tables.lay(folder, tables.FIRST[:2])
    folder.run()
    tables.lay(folder, [*tables.FIRST[:2], (3, random_text, 30)])
    with pytest.raises(StorageFailed, match=r"E613.*index row.*still holds epoch 1: run again") as failure:
        folder.run()
    assert "shorten the value" in failure.value.help
    text = folder.text("pipeline.yaml")
    folder.write("pipeline.yaml", text.replace(config, "primary_key: [id]"))
    folder.run()
    assert tables.stored(database) == Counter([*tables.FIRST[:2], (3, random_text, 30)])
    folder.write("pipeline.yaml", text)
    with pytest.raises(StorageFailed, match=r"E613.*index row"):
        folder.run()
    tables.lay(folder, [*tables.FIRST[:2], (3, "short", 30)])
    folder.run()
    assert tables.stored(database) == Counter([*tables.FIRST[:2], (3, "short", 30)])


def test_a_database_with_another_encoding(tmp_path: Path) -> None:
    """Texts go to it and come from it as what they are; a character that it lacks is refused."""
    folder, database = tables.made(KIND, tmp_path)
    with connected(postgres(), "postgres") as cursor:
        cursor.execute(f"CREATE DATABASE {database.name}_latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
    latin = Database(KIND, tmp_path, f"{database.name}_latin")
    folder.write("errata.toml", latin.toml)
    tables.lay(folder, [(1, "é", 1)])
    folder.run()
    assert latin.ask("SELECT length(region), ascii(region) FROM report") == [(1, 0xE9)]
    back = Folder(tmp_path / "back")
    source = "{name: s, type: sql, connection: shop, table: report, merge: {strategy: snapshot, primary_key: [id]}, schema: [{name: id, type: int}, {name: region, type: string}], on_unmapped: drop}"
    back.write("pipeline.yaml", f"pipeline: {{name: back}}\nnodes:\n  - {{type: source, name: s, config: {source}}}\n  - {{type: output, name: o, input: s, config: {{name: o, type: csv, path: o.csv}}}}\n")
    back.write("errata.toml", latin.toml.replace("file:password", "file:../password"))
    back.run()
    assert back.rows("o.csv") == [{"id": "1", "region": "é"}]
    tables.lay(folder, [(1, "ж", 1)])
    with pytest.raises(StorageFailed, match=r"E613.*has no equivalent in encoding .LATIN1.*still holds epoch 1") as failure:
        folder.run()
    assert "replace the character" in failure.value.help
    tables.lay(folder, [(1, "ü", 1)])
    folder.run()
    assert latin.ask("SELECT ascii(region) FROM report") == [(0xFC,)]


def test_equal_rows_of_several_partitions(tmp_path: Path) -> None:
    """Rows of two partitions may have one place: the partition tells them apart."""
    folder, database = tables.made(KIND, tmp_path, "key_column: none, if_exists: overwrite")
    database.do(
        "CREATE TABLE report (id bigint, region text, amount bigint) PARTITION BY LIST (region)", "CREATE TABLE north PARTITION OF report FOR VALUES IN ('north')",
        "CREATE TABLE rest PARTITION OF report DEFAULT",
    )  # fmt: skip
    for rows in (tables.FIRST, tables.SECOND, [(1, "south", 10), (4, "north", 7), (5, "north", 1)], [(1, "south", 10), (5, "north", 1)]):
        tables.lay(folder, rows)
        assert "W610" not in tables.told(folder, "--max-retract-share", "1")
        assert tables.stored(database) == Counter(rows)
    assert database.ask("SELECT count(*) FROM north") == [(1,)]


@pytest.mark.deep
def test_edits_of_columns(tmp_path: Path) -> None:
    tables.check_edited(KIND, tmp_path)


@pytest.mark.deep
def test_verify_reads_mirrors(tmp_path: Path) -> None:
    tables.check_verify(KIND, tmp_path)


def test_verify_compares_decimals_in_arrays_and_maps(tmp_path: Path) -> None:
    tables.check_verify_of_nested_decimals(KIND, tmp_path)


def test_a_view_that_needs_a_column_keeps_it(tmp_path: Path) -> None:
    folder, database = tables.made(KIND, tmp_path)
    tables.lay(folder, tables.FIRST)
    folder.run()
    database.do("CREATE VIEW mine AS SELECT amount FROM report", "CREATE INDEX regions ON report (region)")
    text = folder.text("pipeline.yaml")
    folder.write("pipeline.yaml", text.replace("primary_key: [id]}}\n  - {type: output, name: all", "primary_key: [id], exclude: [amount]}}\n  - {type: output, name: all"))
    with pytest.raises(StorageFailed, match=r"E616.*report.*holds epoch 1"):
        folder.run()
    assert tables.stored(database) == Counter(tables.FIRST)
    database.do("DROP VIEW mine")
    folder.run()
    assert Counter(database.ask("SELECT * FROM report")) == Counter([(1, "north"), (2, "south"), (3, "north")])
    assert database.ask("SELECT count(*) FROM pg_indexes WHERE indexname = 'regions'") == [(1,)]


@pytest.mark.deep
def test_children_of_a_corrected_row_stay(tmp_path: Path) -> None:
    folder, database = tables.made(KIND, tmp_path)
    tables.lay(folder, tables.FIRST)
    folder.run()
    database.do("CREATE TABLE child (parent bigint REFERENCES report (id) ON DELETE CASCADE)", "INSERT INTO child VALUES (1), (2), (3)")
    tables.lay(folder, tables.SECOND)
    folder.run()
    assert sorted(database.ask("SELECT parent FROM child")) == [(1,), (2,)]


def test_a_deferred_constraint_refuses_at_the_commit(tmp_path: Path) -> None:
    folder, database = tables.made(KIND, tmp_path)
    tables.lay(folder, tables.FIRST)
    folder.run()
    database.do("CREATE TABLE child (parent bigint REFERENCES report (id) DEFERRABLE INITIALLY DEFERRED)", "INSERT INTO child VALUES (3)")
    tables.lay(folder, tables.SECOND)
    with pytest.raises(StorageFailed, match=r"E613.*still holds epoch 1"):
        folder.run()
    assert tables.stored(database) == Counter(tables.FIRST)
    database.do("DELETE FROM child")
    folder.run()
    assert tables.stored(database) == Counter(tables.SECOND)


def test_a_lock_of_somebody_else_is_waited_for_and_no_longer(tmp_path: Path) -> None:
    folder, database = tables.made(KIND, tmp_path)
    tables.lay(folder, tables.FIRST)
    folder.run()
    folder.write("errata.toml", database.toml + 'connect_timeout = "2s"\n')
    tables.lay(folder, tables.SECOND)
    with connected(postgres(), database.name) as cursor:
        cursor.execute("BEGIN")
        cursor.execute("UPDATE _errata_outputs SET epoch = epoch")
        with pytest.raises(StorageFailed, match=r"E613.*lock timeout.*still holds epoch 1"):
            folder.run()
        cursor.execute("ROLLBACK")
    folder.run()
    assert tables.stored(database) == Counter(tables.SECOND)


@pytest.mark.deep
def test_values_and_names_that_it_cannot_hold(tmp_path: Path) -> None:
    folder, _ = tables.made(KIND, tmp_path)
    folder.write("orders.csv", 'id,region,amount\n1,"a\x00b",1\n')
    with pytest.raises(StorageFailed, match=r"E614.*region.*id=1"):
        folder.run()
    tables.lay(folder, tables.FIRST)
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("primary_key: [id]}}", f"primary_key: [id], mapping: {{{'x' * 64}: region}}}}}}"))
    with pytest.raises(StorageFailed, match=r"E614.*63 bytes"):
        folder.run()
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("x" * 64, "xmin"))
    with pytest.raises(StorageFailed, match=r"E614.*system column 'xmin'"):
        folder.run()
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("{xmin: region}", "{id: region, region: id}").replace("{name: region, type: string}", "{name: region, type: any}"))
    with pytest.raises(StorageFailed, match=r"E614.*'id' of the primary key is json"):
        folder.run()
    assert folder.load().head_epoch() is None


def test_a_schema_is_made_and_types_are_as_documented(tmp_path: Path) -> None:
    folder, database = tables.made(KIND, tmp_path)
    schema = "[{name: id, type: int}, {name: price, type: decimal, scale: 2}, {name: rate, type: float}, {name: ok, type: bool}, {name: day, type: date}, {name: at, type: date_time}, {name: note, type: string}, {name: tags, type: array}, {name: m, type: map}]"
    text = folder.text("pipeline.yaml").replace("type: csv\n      path: orders.csv", "type: json\n      path: orders.json\n      options: {format: array}").replace("table: report", "table: sales.report").replace("path: out/all.csv", "path: out/all.csv, exclude: [m]")
    folder.write("pipeline.yaml", text.replace("[{name: id, type: int}, {name: region, type: string}, {name: amount, type: int}]", schema))
    one = '{"id":1,"price":12.5,"rate":0.1,"ok":true,"day":"2026-03-01","at":"2026-03-01T14:30:00","note":"a","tags":[1,"x"],"m":{"b":1,"a":2}}'
    folder.write("orders.json", f'[{one}, {{"id":2}}]')
    folder.run()
    types = database.ask("SELECT pg_typeof(price)::text, pg_typeof(rate)::text, pg_typeof(at)::text, pg_typeof(m)::text, price::text, m::text, tags::text FROM sales.report WHERE id = 1")
    assert types == [("numeric", "double precision", "timestamp with time zone", "json", "12.50", '{"b":1,"a":2}', '[1,"x"]')]
    assert database.ask("SELECT price, rate, ok, day, at, note, tags, m FROM sales.report WHERE id = 2") == [(None,) * 8]
    folder.write("orders.json", f"[{one.replace('12.5', '13')}]")
    folder.run()
    assert database.ask("SELECT id, price::text FROM sales.report") == [(1, "13.00")]
    assert folder.violations() == []


def test_a_first_mirror_has_its_key_and_the_digits_of_decimals(tmp_path: Path) -> None:
    folder, database = tables.made(KIND, tmp_path)
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("{name: amount, type: int}", "{name: amount, type: decimal, scale: 4}"))
    rng = random.Random(11)
    digits = [rng.choice(["0", "-0.5", "1.2000", f"{rng.randrange(-(10**34), 10**34)}.{rng.randrange(10**4):04}", f"{10 ** rng.randrange(30)}"]) for _ in range(300)]
    folder.write_csv("orders.csv", ["id", "region", "amount"], [{"id": at, "region": "x", "amount": one} for at, one in enumerate(digits)])
    folder.run()
    wanted = [(at, format(Decimal(one).quantize(Decimal("0.0001"), context=Context(prec=40)), "f")) for at, one in enumerate(digits)]
    assert database.ask("SELECT id, amount::text FROM report ORDER BY id") == wanted
    assert database.ask("SELECT conname::text, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'report'::regclass AND contype = 'p'") == [("report_pkey", "PRIMARY KEY (id)")]
    folder.write_csv("orders.csv", ["id", "region", "amount"], [{"id": at, "region": "x", "amount": one} for at, one in enumerate(reversed(digits))])
    folder.run()
    assert [text for _, text in database.ask("SELECT id, amount::text FROM report ORDER BY id DESC")] == [text for _, text in wanted]
    assert folder.violations() == []


def test_few_changes_are_brought_on_without_an_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, database = tables.made(KIND, tmp_path)
    tables.lay(folder, tables.FIRST)
    folder.run()
    corrected: tables.Rows = [(1, "north", 11), *tables.FIRST[1:2]]
    tables.lay(folder, corrected)

    def dies(moment: durable.Moment) -> None:
        if moment.name == "sql:begin":
            raise Died

    with pytest.raises(Died), durable.probing(dies):
        folder.run()
    assert (tables.epoch(database), folder.load().head_epoch()) == (1, 2)

    def no_engine(_: Engine) -> None:
        raise AssertionError("an engine was asked for")

    monkeypatch.setattr(Engine, "session", property(no_engine))
    assert folder.run().committed is False
    assert (tables.stored(database), tables.epoch(database)) == (Counter(corrected), 2)


def test_what_stops_the_rows_on_their_way_comes_out_unchanged(tmp_path: Path) -> None:
    class StoppedError(Exception):
        """Not the driver's."""

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"id": pa.array([1], pa.int64())})
        raise StoppedError

    database = Database.new(KIND, tmp_path)
    connection = read_workspace(tmp_path / "errata.toml").connections(os.environ)["shop"]
    shape = Shape((Column("id", "int"),), ("id",))
    with session_of(connection, writes=True) as session:
        session.begin()
        with pytest.raises(StoppedError):
            session.make(TableName(None, "t"), shape, batches())
    assert database.ask("SELECT to_regclass('t')") == [(None,)]


def test_what_the_server_refuses_of_many_batches_is_its_own_error(tmp_path: Path) -> None:
    """The driver ends the maker of batches on the way; this is not told in place of the refusal."""
    batches = (pa.record_batch({"id": pa.array([at] * 1000, pa.int64())}) for at in range(50))
    database = Database.new(KIND, tmp_path)
    connection = read_workspace(tmp_path / "errata.toml").connections(os.environ)["shop"]
    database.do("CREATE TABLE t (id bigint CHECK (id < 3))")
    with session_of(connection, writes=True) as session, pytest.raises(DatabaseError, match="t_id_check"):
        session.fill(TableName(None, "t"), [Column("id", "int")], batches)
    with session_of(connection, writes=True) as session, pytest.raises(DatabaseError, match='absent" does not exist'):
        session.fill(TableName(None, "absent"), [Column("id", "int")], iter([pa.record_batch({"id": pa.array([1], pa.int64())})] * 3))
    assert database.ask("SELECT count(*) FROM t") == [(0,)]


# -- readers, permissions, two at once, speed


def test_readers_see_whole_epochs(tmp_path: Path) -> None:
    folder, database = tables.made(KIND, tmp_path)
    tables.lay(folder, tables.FIRST)
    folder.run()
    wanted, seen, done = {1: 60}, Counter[tuple[int, int]](), threading.Event()

    def read() -> None:
        with connected(postgres(), database.name) as cursor:
            while not done.is_set():
                cursor.execute("SELECT (SELECT epoch FROM _errata_outputs), (SELECT sum(amount)::bigint FROM report)")
                seen[tuple(cursor.fetchall()[0])] += 1

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for step in range(2, 11):
            rows = [(key, "north", 10 * key + step) for key in range(1, step + 3)]
            tables.lay(folder, rows)
            if step == 6:  # all rows are written anew
                folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("table: report,", "table: report, exclude: [region],"))
            result = folder.run()
            assert result.epoch == step
            wanted[step] = sum(amount for _, _, amount in rows)
    finally:
        done.set()
        reader.join(30)
    assert set(seen) <= set(wanted.items())
    assert len(seen) > 5
    assert database.ask("SELECT sum(amount)::bigint FROM report") == [(wanted[10],)]


@pytest.mark.parametrize(
    ("taken", "given"),
    [
        ("REVOKE INSERT ON report FROM clerk", "GRANT INSERT ON report TO clerk"),
        ("ALTER ROLE clerk SET default_transaction_read_only = on", "ALTER ROLE clerk RESET default_transaction_read_only"),
    ],
    ids=["insert", "read only"],
)
def test_a_table_that_may_not_be_written_keeps_its_epoch(taken: str, given: str, tmp_path: Path) -> None:
    folder, database = _of_a_clerk(tmp_path)
    tables.lay(folder, tables.FIRST)
    folder.run()
    database.do("ALTER TABLE report OWNER TO postgres", "GRANT ALL ON report TO clerk", taken)
    tables.lay(folder, tables.SECOND)
    for _ in range(2):
        with pytest.raises(StorageFailed, match=r"E613.*still holds epoch 1"):
            folder.run()
        assert tables.stored(database) == Counter(tables.FIRST)
        assert folder.load().head_epoch() == 2
    database.do(given)
    folder.run()
    assert tables.stored(database) == Counter(tables.SECOND)


def test_a_server_without_room_keeps_the_epoch_of_a_table(tmp_path: Path) -> None:
    """Equal rows of a table without a key are counted in order, for which the role has too little memory and no files."""
    folder, database = _of_a_clerk(tmp_path, *tables.MODES["values"])
    rows: tables.Rows = [(key, "north", key % 97) for key in range(30_000)]
    tables.lay(folder, rows)
    folder.run()
    database.do("ALTER ROLE clerk SET work_mem = '64kB'", "ALTER ROLE clerk SET temp_file_limit = 0")
    changed = [(key, "south" if key % 3_000 == 0 else region, amount) for key, region, amount in rows]
    tables.lay(folder, changed)
    for _ in range(2):
        with pytest.raises(StorageFailed, match=r"E613.*temporary file size exceeds.*still holds epoch 1"):
            folder.run()
        assert tables.stored(database) == Counter(rows)
        assert folder.load().head_epoch() == 2
    database.do("ALTER ROLE clerk RESET ALL")
    folder.run()
    assert tables.stored(database) == Counter(changed)


def test_a_table_that_may_not_be_made_is_told(tmp_path: Path) -> None:
    folder, database = _of_a_clerk(tmp_path)
    database.do("REVOKE CREATE ON SCHEMA public FROM clerk", "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    tables.lay(folder, tables.FIRST)
    with pytest.raises(StorageFailed, match=r"E613.*permission denied"):
        folder.run()
    database.do("GRANT CREATE ON SCHEMA public TO clerk")
    folder.run()
    assert tables.stored(database) == Counter(tables.FIRST)


def _of_a_clerk(path: Path, *made: str) -> tuple[Folder, Database]:
    """A pipeline that writes by a role without rights but its own, which is made anew."""
    folder, database = tables.made(KIND, path, *made)
    with connected(postgres(), "postgres") as cursor:
        cursor.execute("SELECT count(*) FROM pg_roles WHERE rolname = 'clerk'")
        if not cursor.fetchall()[0][0]:
            cursor.execute(f"CREATE ROLE clerk LOGIN PASSWORD '{PASSWORD}'")
    database.do("ALTER ROLE clerk RESET ALL", "GRANT CREATE ON SCHEMA public TO clerk")
    folder.write("errata.toml", database.toml.replace("postgres@", "clerk@"))
    return folder, database


def test_two_states_do_not_share_a_table(tmp_path: Path) -> None:
    folder, database = tables.made(KIND, tmp_path / "one")
    tables.lay(folder, tables.FIRST)
    folder.run()
    shutil.copytree(folder.path, tmp_path / "other", ignore=shutil.ignore_patterns(".errata", "out"))
    other = Folder(tmp_path / "other")
    tables.lay(other, tables.SECOND)
    with pytest.raises(StorageFailed, match="E610"):
        other.run()
    assert tables.stored(database) == Counter(tables.FIRST)


@pytest.mark.parametrize("step", ["sql:rows", *(pytest.param(step, marks=pytest.mark.deep) for step in ("append:ledger", "sql:begin", "sql:commit"))])
def test_a_second_run_waits_or_ends(step: str, tmp_path: Path) -> None:
    folder, database = tables.made(KIND, tmp_path)
    tables.lay(folder, tables.FIRST)
    folder.run()
    tables.lay(folder, tables.SECOND)
    codes: list[int] = []

    def meanwhile(moment: durable.Moment) -> None:
        if (moment.name, moment.side) == (step, "before"):
            words = [sys.executable, "-m", "errata", "run", "pipeline.yaml", "--engine", "sail", "--quiet"]
            codes.append(subprocess.run(words, cwd=folder.path, check=False, capture_output=True, timeout=60).returncode)

    with durable.probing(meanwhile):
        folder.run()
    assert codes == [6]
    assert tables.stored(database) == Counter(tables.SECOND)
    assert folder.load().head_epoch() == 2


def test_few_changes_read_no_whole_table(tmp_path: Path) -> None:
    folder, database = tables.made(KIND, tmp_path)
    rows: tables.Rows = [(key, "north", key % 97) for key in range(60_000)]
    tables.lay(folder, rows)
    folder.run()
    database.do("ANALYZE report")
    rows[::3_000] = [(key, "south", 1) for key, _, _ in rows[::3_000]]
    scans = "SELECT seq_scan, idx_scan FROM pg_stat_user_tables WHERE relname = 'report'"
    database.do("SELECT pg_stat_reset()")
    tables.lay(folder, rows[1:])
    folder.run()
    deadline = time.monotonic() + 20
    while (found := database.ask(scans)) and not found[0][1] and time.monotonic() < deadline:
        time.sleep(0.2)  # the server counts a moment later
    assert found[0][0] == 0
    assert found[0][1] > 0
    assert database.ask("SELECT count(*), count(*) FILTER (WHERE region = 'south') FROM report") == [(59_999, 19)]
