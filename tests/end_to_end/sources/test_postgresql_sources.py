"""PostgreSQL sources: every type, one moment, lost connections, secrets, and nothing that writes."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from pyspark import SparkContext

from errata.core.failures import StorageFailed
from storage import durable
from storage.durable import Moment
from storage.engines.base import Engine
from storage.secrets import Secret
from storage.sql.connections import Connection
from storage.sql.tables import Column, session_of
from tests.support.databases import PASSWORD, Database, connected, postgres
from tests.support.erasing import holding
from tests.support.pipelines import Folder, command, standing_in
from tests.support.processes import shown
from tests.support.proxy import proxied

pytestmark = pytest.mark.servers

SHAPES = (PASSWORD, quote(PASSWORD, safe=""), quote(PASSWORD))
"""The password, and as addresses have it."""
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
      merge: {strategy: snapshot, primary_key: [id]}
      schema: [{name: id, type: int}, {name: v, type: int}]
  - {type: output, name: all, input: orders, config: {name: all, type: csv, path: out/all.csv}}
error_handling: {strategy: continue, dlq: {path: out/rejected.csv}}
"""


def made(path: Path, *statements: str) -> tuple[Folder, Database]:
    folder, database = Folder(path), Database.new("postgresql", path)
    folder.write("pipeline.yaml", PIPELINE)
    database.do(*statements)
    return folder, database


def live(folder: Folder) -> Counter[tuple[Any, ...]]:
    return Counter((int(row["id"]), int(row["v"]) if row["v"] else None) for row in folder.rows("out/all.csv"))


TYPES = [
    # column, type, declared, values by row: SQL literal and what Errata has of it; Exception: the record is rejected
    ("i2", "smallint", "int", [("-32768", -32768), ("NULL", None)]),
    ("i8", "bigint", "int", [("9223372036854775807", 9223372036854775807), ("NULL", None)]),
    ("f4", "real", "float", [("1.5", 1.5), ("NULL", None)]),
    ("f8", "float8", "float", [("0.1", 0.1), ("NULL", None)]),
    ("b", "bool", "bool", [("true", True), ("NULL", None)]),
    ("t", "text", "string", [("'ö'", "ö"), ("''", "")]),
    ("n", "numeric", "decimal, scale: 2", [("12345678901234567890123456789012345678.50 / 100", None), ("1.50", "1.50")]),
    ("w", "numeric", "int", [("7.00", 7), ("-3", -3)]),
    ("d", "date", "date", [("'2026-03-01'", "2026-03-01"), ("NULL", None)]),
    ("z", "timestamptz", "date_time", [("'2026-03-01 14:30:00+02'", "2026-03-01T12:30:00"), ("'0001-01-01 00:00:00+00'", "0001-01-01T00:00:00")]),
    ("ts", "timestamp", "date_time", [("'2026-03-01 14:30:00.123456'", "2026-03-01T14:30:00.123456"), ("'9999-12-31 23:59:59'", "9999-12-31T23:59:59")]),
    ("j", "json", "map", [("'{\"b\": 1, \"a\": [2, null]}'", {"b": 1, "a": [2, None]}), ("NULL", None)]),
    ("jb", "jsonb", "any", [("'[1, \"x\"]'", [1, "x"]), ("'3'", 3)]),
    ("a", "int[]", "array", [("'{1,NULL,3}'", [1, None, 3]), ("'{}'", [])]),
    ("aa", "int[]", "array", [("'{{1,2},{3,4}}'", [[1, 2], [3, 4]]), ("NULL", None)]),
    ("na", "numeric[]", "array", [("'{1.50,3}'", [1.5, 3]), ("'{NaN}'", ["NaN"])]),
    ("u", "uuid", "string", [("'0d1f5a3e-7b7c-4c53-9a4e-1f6a1a2b3c4d'", "0d1f5a3e-7b7c-4c53-9a4e-1f6a1a2b3c4d"), ("NULL", None)]),
    ("e", "mood", "string", [("'ok'", "ok"), ("NULL", None)]),
    ("dm", "small", "int", [("5", 5), ("NULL", None)]),
    ("ip", "inet", "string", [("'10.0.0.1/8'", "10.0.0.1/8"), ("NULL", None)]),
    ("iv", "interval", "string", [("'1 day 2 hours'", "1 day 02:00:00"), ("NULL", None)]),
    ("r", "int4range", "string", [("'[1,5)'", "[1,5)"), ("NULL", None)]),
    ("y", "bytea", "string", [("'\\x00ff'", "00ff"), ("'abc'", "abc")]),
    ("m", "money", "string", [("'12.34'", "$12.34"), ("NULL", None)]),
    ("c", "char(5)", "string", [("'ab'", "ab   "), ("NULL", None)]),
]
REJECTED = [("d", "'infinity'"), ("d", "'0044-03-15 BC'"), ("z", "'-infinity'"), ("ts", "'10000-01-01'"), ("n", "'NaN'"), ("n", "1.005"), ("w", "1.5"), ("w", "'Infinity'"), ("na", "'{12345678901234567.89}'")]


@pytest.mark.parametrize("version", ["18", pytest.param("16", marks=pytest.mark.deep)])
def test_every_type(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = postgres(version)
    monkeypatch.setattr("tests.support.databases.postgres", lambda: server)
    columns = ", ".join(f"{name} {type_}" for name, type_, _, _ in TYPES)
    good = list(zip(*(values for *_, values in TYPES), strict=True))
    good[0] = tuple(("1.00", "1.00") if value[0].startswith("123456789012345678901") else value for value in good[0])
    rows = [f"({at}, {', '.join(value[0] for value in row)})" for at, row in enumerate(good, 1)]
    folder, database = made(tmp_path, "CREATE TYPE mood AS ENUM ('ok', 'bad')", "CREATE DOMAIN small AS int CHECK (VALUE < 100)", f"CREATE TABLE orders (id int PRIMARY KEY, {columns})")
    database.do(f"INSERT INTO orders VALUES {', '.join(rows)}", *(f"INSERT INTO orders (id, {name}) VALUES ({at}, {value})" for at, (name, value) in enumerate(REJECTED, 11)))
    schema = ", ".join(f"{{name: {name}, type: {declared}}}" for name, _, declared, _ in TYPES)
    text = PIPELINE.replace("{name: v, type: int}", schema).replace("type: csv, path: out/all.csv", "type: json, path: out/all.json, options: {format: ndjson}, preserve_nulls: true")
    folder.write("pipeline.yaml", text)
    result = folder.run()
    found = [json.loads(line) | {"n": json.loads(line, parse_float=str)["n"]} for line in folder.text("out/all.json").splitlines()]  # a decimal is a number with all its digits
    names = [name for name, *_ in TYPES]
    for row, values in zip(found, good, strict=True):
        wanted = {name: value[1] for name, value in zip(names, values, strict=True)}
        shown = {name: f"{float(row[name]):.2f}" if name == "n" and row[name] is not None else row[name] for name in names}
        assert shown == wanted
    assert result.rejected == len(REJECTED)
    rejects = folder.text("out/rejected.csv")
    assert all(sign in rejects for sign in ("infinity", "0044-03-15 BC", "10000-01-01", "NaN", "1.005", "1.5", "[12345678901234567.89]"))
    assert folder.run().committed is False


@pytest.mark.deep
@pytest.mark.parametrize("merge", ["{strategy: snapshot, primary_key: [id]}", "snapshot"], ids=["keyed", "keyless"])
def test_incremental_equals_the_table(merge: str, tmp_path: Path) -> None:
    folder, database = made(tmp_path, "CREATE TABLE orders (id bigint, v int)")
    folder.write("pipeline.yaml", PIPELINE.replace("{strategy: snapshot, primary_key: [id]}", merge))
    rng = random.Random(5)
    for _ in range(4):
        key = rng.randint(1, 5)
        insert = f"INSERT INTO orders SELECT {key}, {rng.randint(0, 3)} WHERE NOT EXISTS (SELECT 1 FROM orders WHERE id = {key})"
        database.do(insert, f"INSERT INTO orders SELECT {key + 5}, 0 WHERE NOT EXISTS (SELECT 1 FROM orders WHERE id = {key + 5})")
        database.do(rng.choice([f"UPDATE orders SET v = {rng.randint(0, 3)} WHERE id < {key}", f"DELETE FROM orders WHERE id = {key}", "TRUNCATE orders", f"UPDATE orders SET id = id + 10 WHERE id = {key}"]))
        folder.run()
        assert live(folder) == Counter(database.ask("SELECT id, v FROM orders"))
    assert folder.violations() == []


def test_a_cursor_of_times_with_an_overlap_finds_late_commits(tmp_path: Path) -> None:
    folder, database = made(tmp_path, "CREATE TABLE orders (id bigint, v int, at timestamptz)", "INSERT INTO orders VALUES (1, 1, '2026-03-01 10:00+00'), (2, 2, '2026-03-01 12:00+00')")
    text = PIPELINE.replace("{strategy: snapshot, primary_key: [id]}", "{strategy: append, primary_key: [id], cursor: at, overlap: 1h}")
    folder.write("pipeline.yaml", text.replace("{name: v, type: int}", "{name: v, type: int}, {name: at, type: date_time}"))
    folder.run()
    database.do("INSERT INTO orders VALUES (3, 3, '2026-03-01 11:30+00'), (4, 4, '2026-03-01 09:00+00'), (5, 5, '2026-03-01 12:00+00'), (6, 6, NULL)")
    folder.run()
    assert set(live(folder)) == {(1, 1), (2, 2), (3, 3), (5, 5), (6, 6)}
    assert folder.run().committed is False


@pytest.mark.deep
@pytest.mark.parametrize("overlap", [True, False], ids=["overlap", "none"])
def test_a_transaction_that_commits_late_is_found_by_an_overlap_alone(overlap: bool, tmp_path: Path) -> None:
    folder, database = made(tmp_path, "CREATE TABLE orders (id bigint, v int, at timestamptz DEFAULT now())")
    merge = "{strategy: append, primary_key: [id], cursor: at" + (", overlap: 1h}" if overlap else "}")
    text = PIPELINE.replace("{strategy: snapshot, primary_key: [id]}", merge)
    folder.write("pipeline.yaml", text.replace("{name: v, type: int}", "{name: v, type: int}, {name: at, type: date_time}"))
    with connected(postgres(), database.name) as cursor:
        cursor.execute("BEGIN")
        cursor.execute("INSERT INTO orders (id, v) VALUES (1, 1)")
        database.do("INSERT INTO orders (id, v) VALUES (2, 2)")
        folder.run()
        cursor.execute("COMMIT")
    folder.run()
    assert set(live(folder)) == ({(1, 1), (2, 2)} if overlap else {(2, 2)})


@pytest.mark.parametrize("ends", ["pg_terminate_backend", "pg_cancel_backend"])
def test_what_an_administrator_ends_is_read_once_again(ends: str, tmp_path: Path) -> None:
    folder, database = made(tmp_path, "CREATE TABLE orders (id bigint, v int)", "INSERT INTO orders VALUES (1, 1)")
    ours = f"FROM pg_stat_activity WHERE datname = '{database.name}' AND application_name = 'errata' AND state = 'active'"
    folder.write("errata.toml", database.toml + 'connect_timeout = "5s"\n')
    with connected(postgres(), database.name) as cursor:
        cursor.execute("BEGIN")
        cursor.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
        words = [sys.executable, "-m", "errata", "run", str(tmp_path / "pipeline.yaml"), "--engine", "sail"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=Path(__file__).parents[3]) as process:
            wait_for(lambda: database.ask(f"SELECT count(*) {ours} AND wait_event_type = 'Lock'") == [(1,)], 60)
            database.ask(f"SELECT {ends}(pid) {ours}")
            cursor.execute("ROLLBACK")
            said = process.communicate(timeout=120)[0]
    assert process.returncode == 0, said
    assert live(folder) == Counter([(1, 1)])


def test_a_lock_of_somebody_else_ends_with_the_timeout_of_statements(tmp_path: Path) -> None:
    folder, database = made(tmp_path, "CREATE TABLE orders (id bigint, v int)", "INSERT INTO orders VALUES (1, 1)")
    folder.write("errata.toml", database.toml + 'statement_timeout = "1s"\n')
    with connected(postgres(), database.name) as cursor:
        cursor.execute("BEGIN")
        cursor.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StorageFailed, match=r"E608.*timeout"):
            folder.run()
        cursor.execute("ROLLBACK")
    folder.run()
    assert live(folder) == Counter([(1, 1)])


def test_all_tables_are_read_in_one_moment(tmp_path: Path) -> None:
    folder, database = made(tmp_path, "CREATE TABLE orders AS SELECT g AS id, 100 AS v FROM generate_series(1, 50) g", "CREATE TABLE others AS SELECT g AS id, 100 AS v FROM generate_series(1, 50) g")
    second = PIPELINE.partition("  - type: source")[2].partition("  - {type: output")[0].replace("orders", "others")
    folder.write("pipeline.yaml", PIPELINE.replace("  - {type: output", f"  - type: source{second}  - {{type: output, name: more, input: others, config: {{name: more, type: csv, path: out/more.csv}}}}\n  - {{type: output", 1))
    stop = threading.Event()

    def move() -> None:
        with connected(postgres(), database.name) as cursor:
            while not stop.is_set():
                cursor.execute("WITH a AS (UPDATE orders SET v = v - 1 WHERE id = 1) UPDATE others SET v = v + 1 WHERE id = 1")

    writer = threading.Thread(target=move)
    writer.start()
    try:
        for _ in range(4):
            folder.run()
            assert sum(int(row["v"]) for name in ("all", "more") for row in folder.rows(f"out/{name}.csv")) == 10_000
    finally:
        stop.set()
        writer.join()


def test_a_token_answers_for_the_table(tmp_path: Path) -> None:
    folder, database = made(tmp_path, "CREATE TABLE orders (id bigint, v int)", "INSERT INTO orders VALUES (1, 1)", "CREATE TABLE version AS SELECT 1 AS n")
    folder.write("pipeline.yaml", PIPELINE.replace("table: orders", "table: orders\n      change_token: SELECT n FROM version"))
    folder.run()
    database.do("UPDATE orders SET v = 2")
    assert folder.run().committed is False
    assert [row["action"] for row in folder.load().plan_next()] == ["skip", "skip"]
    database.do("UPDATE version SET n = 2")
    folder.run()
    assert live(folder) == Counter([(1, 2)])


def test_an_unchanged_token_is_one_query_and_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, database = made(tmp_path, "CREATE TABLE orders (id bigint, v int)", "INSERT INTO orders VALUES (1, 1)")
    folder.write("pipeline.yaml", PIPELINE.replace("table: orders", "table: orders\n      change_token: SELECT count(*) FROM orders"))
    folder.run()
    database.do(f"ALTER DATABASE {database.name} SET log_statement = 'all'")
    begins = postgres().log.stat().st_size

    def no_engine(_: Engine) -> None:
        raise AssertionError("an engine was asked for")

    monkeypatch.setattr(Engine, "session", property(no_engine))
    assert folder.run().committed is False
    said = postgres().log.read_text()[begins:]
    assert (said.count("orders"), said.count("SELECT count(*) FROM orders")) == (1, 1), said


WRITES = ["SELECT id, v FROM taken()", "WITH gone AS (DELETE FROM orders RETURNING id, v) SELECT * FROM gone"]


@pytest.mark.parametrize("query", [WRITES[0], pytest.param(WRITES[1], marks=pytest.mark.deep)])
def test_nothing_writes_also_as_superuser(query: str, tmp_path: Path) -> None:
    function = "CREATE FUNCTION taken() RETURNS SETOF orders LANGUAGE sql AS 'DELETE FROM orders RETURNING *'"
    folder, database = made(tmp_path, "CREATE TABLE orders (id bigint, v int)", "INSERT INTO orders VALUES (1, 1)", function)
    folder.write("pipeline.yaml", PIPELINE.replace("table: orders", f"query: {query}"))
    with pytest.raises(StorageFailed, match="E608"):
        folder.run()
    assert database.ask("SELECT * FROM orders") == [(1, 1)]


@pytest.mark.parametrize(("times", "ends"), [(1, False), pytest.param(9, True, marks=pytest.mark.deep)])
def test_a_connection_that_is_cut_is_read_once_again(times: int, ends: bool, tmp_path: Path) -> None:
    folder, database = made(tmp_path, "CREATE TABLE orders AS SELECT g AS id, g AS v FROM generate_series(1, 40000) g")
    server = postgres()
    with proxied(server.host, server.port) as proxy:
        folder.write("errata.toml", database.toml.replace(str(server.port), str(proxy.place)))
        proxy.cut_after, proxy.times = 300_000, times
        if ends:
            with pytest.raises(StorageFailed, match="E608"):
                folder.run()
            assert not list((tmp_path / ".errata").rglob("*.arrow"))
            proxy.times = 0
        folder.run()
    assert len(folder.rows("out/all.csv")) == 40000


@pytest.mark.deep
@pytest.mark.parametrize("passes", [True, False], ids=["committed", "rolled back"])
def test_the_answer_to_a_commit_is_lost(passes: bool, tmp_path: Path) -> None:
    folder, database = made(tmp_path, "CREATE TABLE orders (id bigint, v int)", "INSERT INTO orders VALUES (1, 1)")
    server = postgres()
    folder.write("pipeline.yaml", PIPELINE.replace("  - {type: output", "  - {type: output, name: report, input: orders, config: {name: report, type: sql, connection: shop, table: report, mode: op_rows}}\n  - {type: output", 1))
    with proxied(server.host, server.port) as proxy:
        folder.write("errata.toml", database.toml.replace(str(server.port), str(proxy.place)))
        proxy.swallow, proxy.times, proxy.passes = b"COMMIT\0", 1, passes
        folder.run()
        folder.run()
    assert database.ask('SELECT "offset", op, id, v FROM report') == [(0, 0, 1, 1)]
    assert database.ask("SELECT epoch FROM _errata_outputs") == [(1,)]


def test_secrets_are_nowhere(tmp_path: Path) -> None:
    _, database = made(tmp_path, "CREATE TABLE orders (id bigint, v int)", "INSERT INTO orders VALUES (1, 1)")
    texts = []
    with standing_in(tmp_path):
        texts += command("run", "pipeline.yaml", "-vv")[1:]
        texts += command("explain", "pipeline.yaml")[1:] + command("status", "pipeline.yaml")[1:]
        database.do("DROP TABLE orders")
        code, *streams = command("run", "pipeline.yaml", "-vv")
        texts += streams
        assert (code, "orders" in streams[1], "shop" in streams[1]) == (4, True, True)
        (tmp_path / "password").write_text("wrong%word\n")
        code, *streams = command("run", "pipeline.yaml")
        texts += streams
        assert (code, "E608" in streams[1]) == (4, True)
    for secret in (PASSWORD, "p%25a", "wrong%word", "wrong%25word"):
        assert not any(secret in text for text in texts)
        found = [file for file in (tmp_path / ".errata").rglob("*") if file.is_file() and secret.encode() in file.read_bytes()]
        assert found == []


@pytest.mark.parametrize(
    ("fault", "held"), [("password", "file"), ("password", "address"), ("host", "environment"), ("encryption", "address"), ("syntax", "file"), ("type", "environment")]
)
def test_no_fault_shows_a_secret(fault: str, held: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, database = made(tmp_path, "CREATE TABLE orders (id text, v int)", "INSERT INTO orders VALUES ('x', 1)")
    secret, server = ("no:p@ss%word" if fault == "password" else PASSWORD), postgres()
    host = "db.invalid" if fault == "host" else server.host
    place = f"{host}:{server.port}/{database.name}" + ("?sslmode=require" if fault == "encryption" else "")
    monkeypatch.setenv("SHOP_PASSWORD", secret)
    folder.write("secret", secret + "\n")
    address = f"postgresql://postgres:{quote(secret, safe='')}@{place}" if held == "address" else f"postgresql://postgres@{place}"
    password = {"file": 'password = "file:secret"\n', "environment": 'password = "env:SHOP_PASSWORD"\n', "address": ""}[held]
    folder.write("errata.toml", f'[connections.shop]\nurl = "{address}"\nconnect_timeout = "1s"\n{password}')
    if fault == "syntax":
        folder.write("pipeline.yaml", PIPELINE.replace("table: orders", "query: SELECT id, v FROM orders WHERE WHERE"))
    with standing_in(tmp_path):
        code, *texts = command("run", "pipeline.yaml", "-vv", "--events", "jsonl")
        texts += command("explain", "pipeline.yaml")[1:]
    assert code == (2 if fault == "type" else 4), texts
    assert fault == "type" or "E608" in texts[1], texts
    shapes = {secret, quote(secret, safe=""), quote(secret)}
    assert not [text for text in texts for shape in shapes if shape in text]
    files = [file for file in (tmp_path / ".errata").rglob("*") if file.is_file()]
    assert not [file for file in files for shape in shapes if shape.encode() in file.read_bytes()]


def test_an_error_of_the_driver_that_nobody_expects_shows_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path, "CREATE TABLE orders (id bigint, v int)")

    def fails(address: str, **_: object) -> None:
        raise ValueError(f"cannot read {address}")

    monkeypatch.setattr("adbc_driver_postgresql.dbapi.connect", fails)
    with standing_in(tmp_path):
        code, *texts = command("run", "pipeline.yaml", "-vv", "--events", "jsonl")
    assert (code, "E608" in texts[1], "cannot read postgresql://" in texts[1]) == (4, True, True)
    assert not [text for text in texts for shape in SHAPES if shape in text]


def test_nothing_that_a_run_leaves_has_a_secret(tmp_path: Path) -> None:
    folder, database = made(tmp_path, "CREATE TABLE orders (id bigint PRIMARY KEY, v int)", "INSERT INTO orders VALUES (1, 1)")
    folder.write("errata.toml", f'[connections.shop]\nurl = "{postgres().address(database.name)}"\n')
    told = "metrics: { spool_dir: metrics, openlineage: { path: lineage.jsonl, namespace: shop } }"
    written = "  - {type: output, name: report, input: orders, config: {name: report, type: sql, connection: shop, table: report}}\n"
    folder.write("pipeline.yaml", PIPELINE.replace("{name: shop}", f"{{name: shop, {told}}}"))
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("error_handling:", f"{written}error_handling:"))
    with standing_in(tmp_path):
        texts = [text for words in (("run", "-vv"), ("plan",), ("verify",), ("log", "orders"), ("report", "-o", "report.html")) for text in command(words[0], "pipeline.yaml", *words[1:])[1:]]
    texts.append(repr(folder.load().plan.settings))
    assert not [text for text in texts for shape in SHAPES if shape in text]
    assert {"lineage.jsonl", "report.html", ".errata"} <= {path.name for path in tmp_path.iterdir()}
    assert holding(tmp_path, SHAPES, skip=("password", "errata.toml")) == []


@pytest.mark.deep
@pytest.mark.spark
def test_no_process_of_an_engine_has_a_secret(tmp_path: Path) -> None:
    folder, database = made(tmp_path, "CREATE TABLE orders (id bigint PRIMARY KEY, v int)", "INSERT INTO orders VALUES (1, 1)")
    folder.engine = "spark"
    seen: list[bytes] = []

    def look(_: Moment) -> None:
        seen.extend(shown("cmdline", "environ"))
        context = SparkContext._active_spark_context  # there is no public way that starts none
        seen.append(b"" if context is None else context.getConf().toDebugString().encode())

    with durable.probing(look):
        for toml in (database.toml, f'[connections.shop]\nurl = "{postgres().address(database.name)}"\n'):
            folder.write("errata.toml", toml)
            folder.run(full_refresh=True)
    assert all(any(sign in text for text in seen) for sign in (b"org.apache.spark", b"spark.sql.warehouse.dir"))
    assert not [text for text in seen for shape in SHAPES if shape.encode() in text]


@pytest.mark.deep
def test_an_interrupt_cancels_the_statement_at_the_server(tmp_path: Path) -> None:
    folder, database = made(tmp_path, "CREATE TABLE orders (id bigint, v int)", "INSERT INTO orders VALUES (1, 1)")
    folder.write("pipeline.yaml", PIPELINE.replace("table: orders", "query: SELECT id, v FROM orders, (SELECT pg_sleep(60)) AS waiting"))
    active = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{database.name}' AND application_name = 'errata' AND wait_event = 'PgSleep'"
    listening = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); from errata.cli import main; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", listening, "run", str(tmp_path / "pipeline.yaml")]  # a shell that starts the tests behind itself lets them ignore the signal
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=Path(__file__).parents[3]) as process:
        wait_for(lambda: database.ask(active) == [(1,)], 60)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
    wait_for(lambda: database.ask(active) == [(0,)], 10)


def test_a_signal_within_a_call_of_the_driver_is_not_lost(tmp_path: Path) -> None:
    database = Database.new("postgresql", tmp_path)
    came = threading.Event()

    def batches() -> Iterator[pa.RecordBatch]:  # the driver reads them inside its call
        yield pa.record_batch({"id": [1]})
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, lambda *_: came.set())
    try:
        with session_of(Connection("shop", Secret(postgres().address(database.name))), writes=True) as session:
            session.begin()
            session.load("given", [Column("id", "int")], batches())
    finally:
        signal.signal(signal.SIGINT, before)
    assert came.is_set()


@pytest.mark.deep
def test_a_statement_that_takes_too_long_ends_the_run(tmp_path: Path) -> None:
    folder, database = made(tmp_path, "CREATE TABLE orders (id bigint, v int)", "INSERT INTO orders VALUES (1, 1)")
    folder.write("errata.toml", database.toml + 'statement_timeout = "1s"\n')
    folder.write("pipeline.yaml", PIPELINE.replace("table: orders", "query: SELECT id, v FROM orders, (SELECT pg_sleep(60)) AS waiting"))
    with pytest.raises(StorageFailed, match=r"E608.*timeout"):
        folder.run()


def wait_for(holds: Callable[[], bool], seconds: float) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


def _peak_of_a_run(folder: Folder) -> tuple[int, str]:
    """The most memory that a run had in MB, and what it said."""
    said = folder.path / "said.txt"
    with said.open("w") as file:
        process = subprocess.Popen([sys.executable, "-m", "errata", "run", "pipeline.yaml", "--engine", "sail"], cwd=folder.path, stdout=file, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, said.read_text()
    return used.ru_maxrss >> 10, said.read_text()


@pytest.mark.deep
def test_memory_does_not_grow_with_the_answer(tmp_path: Path) -> None:
    folder, database = made(tmp_path, "CREATE TABLE orders (id bigint PRIMARY KEY, v int, note text)")
    folder.write("pipeline.yaml", PIPELINE.replace("{name: v, type: int}", "{name: v, type: int}, {name: note, type: string}"))
    fill = "INSERT INTO orders SELECT n, n % 97, md5(n::text) FROM generate_series({}, {}) n"
    database.do(fill.format(1, 1_000))
    small, _ = _peak_of_a_run(folder)
    database.do(fill.format(1_001, 200_000))
    large, said = _peak_of_a_run(folder)
    assert large - small < 350, f"{small} MB with 1,000 rows, {large} MB with 200,000"
    assert "+A 199,000" in said
    _, said = _peak_of_a_run(folder)
    assert "Nothing changed" in said
    assert "Engine" not in said
