"""Engines: choice, settings, start and end, and two of them in one process."""

from __future__ import annotations

import gc
import os
import stat
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PySparkException

from changelog.columns import column
from changelog.keys.encoding import encode_key
from errata.cli.console import Console
from errata.cli.exit_report import ended
from errata.core.failures import Exit
from storage.engines import EngineChoice, decided, engine, stop_engines
from storage.engines.arrow import frame_from_file
from storage.engines.choice import fits
from storage.engines.connect import open_connect
from storage.engines.machine import machine_memory
from storage.engines.registry import _serves
from storage.engines.sail import server_settings
from storage.engines.spark.appcds import Archive, archive
from storage.engines.spark.config import is_local_master, spark_settings
from storage.engines.spark.jars import DELTA_JARS, cache_folder, delta_jars, found_jars
from storage.engines.spark.java import Java, any_java, find_java
from storage.engines.spark.local import PATIENT_COMPILER, jvm_options
from storage.engines.spark.remote import RemoteSpark, is_loopback
from storage.errors import EngineUnavailable
from tests.support.processes import shown

if TYPE_CHECKING:
    from storage.engines import Engine

ROWS = pa.table({"n": [1, 2, 3], "side": ["x", None, "x"], "key": [b"a", b"b", b""]})
SEVENTEEN = 'openjdk version "17.0.15" 2025-04-15'
EIGHT = 'java version "1.8.0_402"'


def fake_java(folder: Path, banner: str) -> Path:
    """Make a JAVA_HOME whose java prints this banner."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{banner}' >&2\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return folder


@pytest.mark.parametrize(("banner", "major", "suits"), [(SEVENTEEN, 17, True), (EIGHT, 8, False), ('openjdk version "21"', 21, True)])
def test_auto_takes_a_jvm_for_large_work_where_java_suits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, banner: str, major: int, suits: bool) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, banner)))
    java = any_java()
    assert java is not None
    assert (java.major, java.suits) == (major, suits)
    assert decided(EngineChoice(), machine_memory()).choice.kind == ("spark" if suits else "sail")
    assert decided(EngineChoice(), 1000).choice.kind == "sail"


def test_auto_without_java_is_sail_unless_a_cluster_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() is None
    assert decided(EngineChoice(), machine_memory()).choice.kind == "sail"
    assert decided(EngineChoice(remote="sc://host")).choice.kind == "spark"
    assert decided(EngineChoice(master="spark://host:7077")).choice.kind == "spark"
    assert decided(EngineChoice("sail"), machine_memory()).choice.kind == "sail"


def test_work_fits_where_sixteen_times_its_bytes_are_memory() -> None:
    assert fits(machine_memory() // 16)
    assert not fits(machine_memory() // 16 + 1)
    assert fits(1 << 20, memory=1 << 24)
    assert not fits((1 << 20) + 1, memory=1 << 24)


@pytest.mark.parametrize(
    ("group", "limits", "least"),
    [
        ("0::/a.slice/b.service", {"a.slice/b.service/memory.max": "4096", "a.slice/memory.max": "max"}, 4096),
        ("0::/a.slice/b.service", {"a.slice/b.service/memory.max": "4096", "a.slice/memory.max": "2048"}, 2048),
        ("0::/", {"memory.max": "1024", "other.slice/memory.max": "512"}, 1024),
        ("0::/../b", {"memory.max": "1024"}, 1024),
        ("3:cpu:/c\n2:memory:/docker/x\n0::/", {"memory/docker/x/memory.limit_in_bytes": "2048", "memory/memory.limit_in_bytes": "9223372036854771712"}, 2048),
        ("2:memory:/docker/x", {"memory/memory.limit_in_bytes": "1024"}, 1024),
        ("0::/a", {"a/memory.max": "max"}, None),
        (None, {}, None),
    ],
)
def test_memory_is_the_least_that_a_control_group_may_use(tmp_path: Path, group: str | None, limits: dict[str, str], least: int | None) -> None:
    files = {f"sys/fs/cgroup/{name}": limit for name, limit in limits.items()} | ({"proc/self/cgroup": group} if group else {})
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    assert machine_memory(tmp_path) == (least or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


@pytest.mark.parametrize(("banner", "found"), [(None, "none was found"), (EIGHT, "is version 8")])
def test_spark_without_java_says_both_ways_out(tmp_path: Path, banner: str | None, found: str) -> None:
    home = fake_java(tmp_path, banner) if banner else tmp_path
    script = "from storage.engines import engine, EngineChoice\nengine(EngineChoice('spark')).session"
    answer = run_python(script, JAVA_HOME=str(home))
    assert answer.returncode == 1
    for part in (found, "install Java 17 or 21", "--engine sail"):
        assert part in answer.stderr


def run_python(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    root = str(Path(__file__).parents[3])
    settings = {**os.environ, "PYTHONPATH": root, **environment}
    settings.pop("SPARK_CONNECT_MODE_ENABLED", None)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=settings)


def test_sail_starts_in_the_background_and_leaves_quietly() -> None:
    script = """
import pyarrow as pa
from storage.engines import engine, EngineChoice
one = engine(EngineChoice("sail"))
one.start()
print(one.to_arrow(one.from_arrow(pa.table({"a": [1]}))).to_pylist())
"""
    answer = run_python(script)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "[{'a': 1}]\n", "")


def test_an_engine_that_was_not_asked_for_a_session_does_not_load_pyspark() -> None:
    answer = run_python(
        "import sys\nfrom storage.engines import engine, EngineChoice\nengine(EngineChoice('sail'))\nprint('pyspark' in sys.modules)"
    )
    assert answer.stdout == "False\n"


def test_a_session_runs_in_utc_and_is_case_sensitive(engine: Engine) -> None:
    from pyspark.sql import functions as F

    frame = engine.from_arrow(pa.table({"Amount": [0], "amount": [86_399]}))
    shown = frame.select(F.timestamp_seconds("amount").cast("string").alias("at"), F.col("Amount"))
    assert engine.to_arrow(shown).to_pylist() == [{"at": "1970-01-01 23:59:59", "Amount": 0}]


def test_rows_come_back_in_plain_types(engine: Engine) -> None:
    rows = pa.table({"text": pa.array(["a", "b", "a"]).dictionary_encode(), "large": pa.array(["x", None, ""], pa.large_string())})
    back = engine.to_arrow(engine.from_arrow(rows).orderBy("text", "large"))
    assert back.schema.types == [pa.string(), pa.string()]
    assert back.to_pydict() == {"text": ["a", "a", "b"], "large": ["", "x", None]}
    assert engine.to_arrow(engine.from_arrow(rows), limit=2).num_rows == 2
    assert engine.to_arrow(engine.from_arrow(rows.slice(0, 0))).num_rows == 0
    assert engine.to_arrow(engine.from_arrow(pa.table({"r.id": pa.array([], pa.int64()), "R.id": pa.array([], pa.int64())}))).column_names == ["r.id", "R.id"]


def test_rows_that_are_long_together_come_back(sail: Engine) -> None:
    """Some thousands of rows are one message; here it exceeds the 128 MB that a client accepts by default."""
    from pyspark.sql import functions as F

    texts = sail.to_arrow(sail.session.range(3_000).select(F.repeat(F.lit("x"), 50_000).alias("text"))).column("text")
    assert pc.binary_length(texts).value_counts().to_pylist() == [{"values": 50_000, "counts": 3_000}]


def test_rows_that_are_too_long_for_a_message_go_to_the_engine(sail: Engine) -> None:
    """140 MB in columns whose names no file accepts. Their file lasts as long as a frame needs it."""
    folder = Path(tempfile.gettempdir())
    before = set(folder.glob("errata-files-*/errata-rows-*"))
    times, numbers = [datetime(2026, 1, 1, tzinfo=UTC), None, None], [float("nan"), 1.0, 1.0]
    text = pa.array(["x" * (1 << 20)] * 138 + [None, ""])
    rows = pa.table({"Id": [*range(140)], "id": text, "a.b `c`": [b"\x00"] * 140, "": pa.array([*times, *[None] * 137], pa.timestamp("us", "UTC")), "f": [*numbers, *[1.0] * 137]})
    frame = sail.from_arrow(rows)
    chosen = frame.where(column("Id") < 3).select(*map(column, rows.column_names))
    del frame
    found = sail.to_arrow(chosen).sort_by("Id")
    assert found.drop_columns("f").equals(rows.slice(0, 3).drop_columns("f"))
    assert str(found["f"].to_pylist()) == str(numbers)
    [made] = set(folder.glob("errata-files-*/errata-rows-*")) - before
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    del chosen
    gc.collect()
    assert not made.exists()


@pytest.mark.parametrize("named", [True, False])
def test_the_file_of_large_rows_may_lie_in_a_folder_of_any_name(sail: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool) -> None:
    folder = tmp_path / "a b [c] ü"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    frame = frame_from_file(lambda: sail.session, ROWS, folder if named else None)
    assert frame is not None
    assert len(list(folder.rglob("errata-rows-*"))) == 1
    assert sail.to_arrow(frame).equals(ROWS)


def test_a_file_of_large_rows_leaves_out_columns_of_nothing_but_nulls(sail: Engine, tmp_path: Path) -> None:
    rows = pa.table({"a": pa.nulls(3), "b": [1, None, 3], "c": pa.nulls(3)})
    frame = frame_from_file(lambda: sail.session, rows, tmp_path)
    assert frame is not None
    assert frame.schema == sail.from_arrow(rows).schema
    assert sail.to_arrow(frame).sort_by("b").equals(rows.sort_by("b"))
    assert frame_from_file(lambda: pytest.fail("there is no file to read"), rows.select(["a"]), tmp_path) is None


def test_a_file_of_large_rows_that_cannot_be_written_whole_is_removed(tmp_path: Path) -> None:
    no_file_holds = pa.table({"i": pa.array([None], pa.month_day_nano_interval())})
    with pytest.raises(pa.ArrowNotImplementedError):
        frame_from_file(lambda: pytest.fail("there is no file to read"), no_file_holds, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_each_query_has_a_name_by_which_an_interrupt_ends_it(engine: Engine) -> None:
    seen: list[str] = []

    class Listening:
        def on_execute_plan(self, request: Any) -> Any:
            seen.append(request.operation_id)
            return request

    hooks = cast("Any", engine.session).client._session_hooks
    hooks.append(Listening())
    try:
        for _ in range(2):
            engine.to_arrow(engine.from_arrow(ROWS))
    finally:
        hooks.pop()
    assert len(set(map(UUID, seen))) == 2


def test_an_engine_that_is_gone_is_not_waited_for() -> None:
    """A query is sent once. A second one might write rows twice, and a server that ended does not come back."""
    from pysail.spark import SparkConnectServer

    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    host, port = server.listening_address or ("", 0)
    session = open_connect(f"sc://{host}:{port}", near=True)
    assert session.range(3).count() == 3
    server.stop()
    before = time.monotonic()
    with pytest.raises(PySparkException) as problem:
        session.range(3).count()
    session.stop()
    assert time.monotonic() - before < 5
    gone = EngineUnavailable.gone(str(problem.value))
    assert gone is not None
    assert ended(problem.value, Console()) == Exit.STORAGE


def test_a_table_without_rows_stays_in_plans(sail: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    nothing = sail.from_arrow(ROWS.slice(0, 0))
    assert nothing.schema == sail.from_arrow(ROWS).schema
    sail.from_arrow(ROWS).join(nothing, "key", "full").explain()
    assert "EmptyExec" not in (plan := capsys.readouterr().out), plan
    assert "HashJoinExec" in plan


def test_workers_know_the_project(engine: Engine) -> None:
    def keyed(batches):  # type: ignore[no-untyped-def]
        from changelog.keys.encoding import encode_key

        for batch in batches:
            yield pa.RecordBatch.from_pydict({"key": pa.array([encode_key([key.hex()], ["string"]) for key in batch.column("key").to_pylist()], pa.binary())})

    answer = engine.to_arrow(engine.from_arrow(ROWS).mapInArrow(keyed, "key binary"))
    assert sorted(answer.column("key").to_pylist()) == sorted(encode_key([key.hex()], ["string"]) for key in (b"a", b"b", b""))


def test_settings_for_few_rows_last_as_long_as_their_work(engine: Engine) -> None:
    names = ("spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled", "spark.sql.codegen.wholeStage")
    before = [engine.session.conf.get(name) for name in names]  # what is in force, set or not
    with engine.sized(10), engine.sized(10**9), engine.sized(None), engine.sized(10):
        engine.also_reads(10**9)
        assert engine.session.range(3).count() == 3
    with pytest.raises(ZeroDivisionError), engine.sized(10):
        raise ZeroDivisionError
    assert [engine.session.conf.get(name) for name in names] == before


def test_the_environment_of_sail() -> None:
    settings = server_settings(EngineChoice("sail", memory=1 << 30, threads=2, spill=Path("/spill")))
    assert settings["RUST_LOG"] == "off"
    assert settings["SAIL_EXECUTION__DEFAULT_PARALLELISM"] == "2"
    assert settings["SAIL_RUNTIME__MEMORY_POOL__FAIR__MAX_SIZE"] == str(1 << 30)
    assert settings["SAIL_RUNTIME__TEMPORARY_FILES__PATHS"] == '["/spill"]'


@pytest.mark.parametrize(
    ("master", "local"), [("local", True), ("local[*]", True), ("local-cluster[2,1,1024]", False), ("spark://h:7077", False)]
)
def test_the_settings_of_spark(tmp_path: Path, master: str, local: bool) -> None:
    settings = spark_settings(EngineChoice("spark", master=master, memory=3 << 30), [Path("/j/a.jar"), Path("/j/b.jar")], ("-Xtest",), tmp_path)
    assert is_local_master(master) == local
    assert settings["spark.driver.memory"] == "3072m"
    assert "-Xtest" in settings["spark.driver.extraJavaOptions"]
    where, other = ("spark.driver.extraClassPath", "spark.jars") if local else ("spark.jars", "spark.driver.extraClassPath")
    assert set(settings[where].replace(":", ",").split(",")) == {"/j/a.jar", "/j/b.jar"}
    assert other not in settings


@pytest.mark.parametrize(("master", "quick"), [(None, True), ("local[2]", True), ("spark://h:7077", False)])
def test_little_work_on_this_machine_has_a_quick_jvm(master: str | None, quick: bool) -> None:
    small = decided(EngineChoice("spark", master=master), 1000).choice
    large = decided(EngineChoice("spark", master=master), machine_memory()).choice
    assert ("-XX:TieredStopAtLevel=1" in jvm_options(small)) == quick
    assert ("-XX:+UseSerialGC" in jvm_options(small)) == quick
    assert jvm_options(large) == PATIENT_COMPILER


def test_an_engine_for_little_work_serves_no_more() -> None:
    little, much, sail = EngineChoice("spark", small=True), EngineChoice("spark"), EngineChoice("sail", small=True)
    assert _serves(much, little)
    assert _serves(little, little)
    assert not _serves(little, much)
    assert _serves(sail, replace(sail, small=False, memory=1 << 30))
    assert not _serves(sail, replace(sail, threads=1))


@pytest.mark.parametrize(("host", "near"), [("localhost", True), ("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("10.0.0.1", False), ("example.org", False), ("", False)])
def test_a_server_of_this_machine_is_near(host: str, near: bool) -> None:
    assert is_loopback(host) == near


def test_jars_are_taken_from_the_cache_or_a_named_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ERRATA_DELTA_JARS", raising=False)
    monkeypatch.setenv("ERRATA_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    assert found_jars() == []
    (tmp_path / "jars").mkdir()
    for jar in DELTA_JARS:
        assert found_jars() == []
        (tmp_path / "jars" / jar.file).touch()
    nowhere = Java(Path("/nowhere/java"), 17, SEVENTEEN)
    assert delta_jars(nowhere) == found_jars() == [tmp_path / "jars" / jar.file for jar in DELTA_JARS]
    monkeypatch.setenv("ERRATA_DELTA_JARS", str(tmp_path / "elsewhere"))
    with pytest.raises(EngineUnavailable, match="ERRATA_DELTA_JARS"):
        delta_jars(nowhere)


@pytest.mark.parametrize("makes", ["nothing", "another file"])
def test_jars_that_do_not_come_or_are_not_the_right_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, makes: str) -> None:
    monkeypatch.delenv("ERRATA_DELTA_JARS", raising=False)
    monkeypatch.setenv("ERRATA_CACHE", str(tmp_path / "cache"))
    program = tmp_path / "java"
    place = 'for last; do :; done; folder=$(dirname "$last"); echo bad > "$folder/' + DELTA_JARS[0].file + '"'
    program.write_text(f"#!/bin/sh\n{place if makes == 'another file' else 'echo UnknownHostException: repository'}\n")
    program.chmod(0o700)
    with pytest.raises(EngineUnavailable, match="SHA-256" if makes == "another file" else "UnknownHost") as refused:
        delta_jars(Java(program, 17, SEVENTEEN))
    assert any("--engine sail" in way for way in refused.value.ways_out)
    assert found_jars() == []


def test_a_class_archive_is_written_by_one_session_and_used_when_it_is_whole(tmp_path: Path) -> None:
    kept = Archive(tmp_path / "jvm" / "spark.jsa")
    first = kept.options()
    assert not kept.ready
    written = Path(first[0].removeprefix("-XX:ArchiveClassesAtExit="))
    assert kept.options() == ()
    written.write_bytes(b"\0\0\0\0 half of it")
    assert kept.options() == ()
    written.write_bytes(b"\xa8\xab\xf0\x0f all of it")
    assert f"-XX:SharedArchiveFile={kept.path}" in kept.options()
    assert kept.ready
    assert not written.exists()


def test_a_class_archive_is_for_one_java_and_one_class_path() -> None:
    java = Java(Path("/java"), 17, SEVENTEEN)
    assert archive(java, "a").path != archive(java, "b").path
    assert archive(java, "a").path != archive(Java(Path("/java"), 21, "21"), "a").path


def test_a_failed_start_is_raised_and_can_be_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from storage.engines.spark.local import Spark

    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    one = Spark(EngineChoice("spark"))
    one.start()
    for _ in range(2):
        with pytest.raises(EngineUnavailable, match="none was found"):
            _ = one.session
    one.stop()


@pytest.mark.parametrize("url", ["sc://127.0.0.1:9", "sc://127.0.0.1:port", "sc://"])
def test_a_server_that_does_not_answer_is_reported_at_once(url: str) -> None:
    with pytest.raises(EngineUnavailable, match=f"no Spark Connect server answers at {url}"):
        _ = RemoteSpark(url).session


def test_a_server_elsewhere_is_spoken_to(monkeypatch: pytest.MonkeyPatch) -> None:
    from pysail.spark import SparkConnectServer

    monkeypatch.setenv("RUST_LOG", "off")
    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    remote = engine(EngineChoice(remote="sc://{}:{}".format(*server.listening_address)))
    assert (remote.name, remote.jobs) == ("spark", None)
    assert [row["rank"] for row in answer_of(remote)] == [1, 1, 2]
    remote.stop()
    server.stop()


def answer_of(one: Engine) -> list[dict[str, object]]:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    frame = one.from_arrow(ROWS)
    ranked = F.row_number().over(Window.partitionBy("side").orderBy("n"))
    frame = frame.withColumn("rank", ranked).withColumn("hash", F.crc32("key"))
    return one.to_arrow(frame).sort_by("n").to_pylist()


@pytest.mark.spark
def test_both_engines_take_turns_in_one_process() -> None:
    expected = [{**row, "rank": rank, "hash": crc32(row["key"])} for row, rank in zip(ROWS.to_pylist(), (1, 1, 2), strict=True)]
    for kind in ("sail", "spark", "sail", "spark"):
        assert answer_of(engine(EngineChoice(kind))) == expected
    assert engine(EngineChoice("spark")).jobs


@pytest.mark.spark
@pytest.mark.deep
def test_executors_in_processes_of_their_own() -> None:
    try:
        spread = engine(EngineChoice("spark", master="local-cluster[2,1,1024]"))
        assert [row["rank"] for row in answer_of(spread)] == [1, 1, 2]
        assert spread.cores == 2
    finally:
        stop_engines()


SHARES = """
import pyarrow as pa
from pathlib import Path
from pyspark.sql import SparkSession, functions as F
from storage.engines import engine, EngineChoice
from storage.errors import EngineUnavailable
from storage.engines.spark.jars import delta_jars
from storage.engines.spark.java import find_java
from storage.engines.spark.config import spark_settings

choice = EngineChoice("spark", threads=2)
builder = SparkSession.builder
for name, value in spark_settings(choice, delta_jars(find_java()) if {delta} else [], (), Path("{folder}")).items():
    if {delta} or "delta" not in value:
        builder = builder.config(name, value)
own = builder.getOrCreate()
shared = engine(choice)
try:
    frame = shared.from_arrow(pa.table({{"n": [1, 2]}}))
except EngineUnavailable as problem:
    print(problem)
else:
    print(shared.to_arrow(frame.select(F.sum("n").alias("n"))).to_pylist(), type(frame).__module__, shared.cores)
    shared.stop()
print(own.range(3).count())
"""


@pytest.mark.spark
@pytest.mark.parametrize(
    ("delta", "said"), [(True, "[{'n': 3}] pyspark.sql.classic.dataframe 2"), (False, "the session of this process was made without Delta Lake")]
)
def test_a_session_of_the_process_is_shared_and_outlives_the_engine(tmp_path: Path, delta: bool, said: str) -> None:
    answer = run_python(SHARES.format(delta=delta, folder=tmp_path))
    assert said in answer.stdout, answer.stderr
    assert answer.stdout.endswith("3\n"), answer.stderr


@pytest.mark.spark
def test_nobody_else_may_use_the_driver_of_a_run() -> None:
    from pyspark.errors import PySparkException

    from storage.engines.connect import open_connect

    own = engine(EngineChoice("spark"))
    builder = own.session.client._builder  # type: ignore[attr-defined]  # pyspark does not say
    port = builder.endpoint.rpartition(":")[2]
    assert builder.token
    lines = shown("cmdline")
    assert any(b"spark" in line for line in lines)
    assert builder.token.encode() not in b"".join(lines)
    for token in ("", ";token=guessed"):
        with pytest.raises((PySparkException, OSError)):
            open_connect(f"sc://localhost:{port}/{token}")
    driver = own.context._jvm.org.apache.spark.SparkEnv.get()  # type: ignore[attr-defined]  # for its own ports
    assert driver.securityManager().isAuthenticationEnabled()
    assert own.session.range(2).count() == 2
