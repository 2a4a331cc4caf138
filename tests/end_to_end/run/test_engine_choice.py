"""Which engine a run takes and what it says of it: options before errata.toml, that before the work."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from tests.support.pipelines import Folder, command

if TYPE_CHECKING:
    from pathlib import Path

PIPELINE = """\
pipeline: { name: sums }
nodes:
  - { type: source, name: rows, config: { name: rows, type: csv, path: rows.csv, schema: [{ name: id, type: int }, { name: v, type: int }], merge: { strategy: snapshot, primary_key: [id] } } }
  - { type: transform, name: same, input: rows, config: { cxl: "emit v = v" } }
  - { type: aggregate, name: sums, input: same, config: { group_by: [v], cxl: "emit n = count(*)" } }
  - { type: output, name: out, input: sums, config: { name: out, type: csv, path: out.csv } }
"""
SIX = "id,v\n1,5\n2,5\n3,6\n4,6\n5,7\n6,7\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """A pipeline of six rows, whose engine nothing names, on a machine with Java."""
    monkeypatch.delenv("ERRATA_ENGINE")
    program = tmp_path / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    folder = Folder(tmp_path / "project")
    folder.write("pipeline.yaml", PIPELINE)
    folder.write("rows.csv", SIX)
    return folder


def planned(folder: Folder, *words: str) -> str:
    """The first line of `errata plan`, which names the engine."""
    code, _, stderr = command("plan", str(folder.path / "pipeline.yaml"), *words)
    assert code == 0
    return stderr.splitlines()[0]


def ran(folder: Folder, *words: str) -> str:
    """The first line of a run, which names the engine."""
    code, _, stderr = command("run", str(folder.path / "pipeline.yaml"), *words)
    assert code == 0, stderr
    return stderr.splitlines()[0]


def test_plan_and_run_say_the_engine_and_the_work(folder: Folder) -> None:
    first = f"Engine: sail (work of {len(SIX)} B fits in memory)"
    assert planned(folder) == first
    assert ran(folder) == first
    assert planned(folder) == "Engine: none (nothing to do)"
    folder.write("rows.csv", SIX.replace("6,7", "6,8"))
    # six rows of the source and three groups; the transform and the output look nothing up
    second = f"Engine: sail (work of {len(SIX) + 20 * (6 + 3)} B fits in memory)"
    assert planned(folder) == second
    assert ran(folder) == second


def test_work_that_exceeds_memory_is_for_spark(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.engines.choice.machine_memory", lambda: 16 * len(SIX) - 1)
    assert planned(folder) == f"Engine: spark (work of {len(SIX)} B exceeds memory)"
    monkeypatch.setenv("JAVA_HOME", str(folder.path))
    assert planned(folder) == f"Engine: sail (work of {len(SIX)} B exceeds memory, but there is no Java for Spark)"


@pytest.mark.parametrize(
    ("settings", "words", "said"),
    [
        ("", ["--engine", "spark"], "spark (named by --engine or ERRATA_ENGINE)"),
        ("", ["--master", "spark://host:7077"], "spark (a cluster is named)"),
        ("", ["--remote", "sc://host:1"], "spark (a cluster is named)"),
        ('name = "spark"', [], "spark (named by errata.toml)"),
        ('name = "sail"', [], "sail (named by errata.toml)"),
        ('name = "sail"', ["--engine", "spark"], "spark (named by --engine or ERRATA_ENGINE)"),
        ('name = "sail"', ["--remote", "sc://host:1"], "spark (a cluster is named)"),
        ('remote = "sc://host:1"', [], "spark (a cluster is named)"),
        ('master = "spark://host:7077"', [], "spark (a cluster is named)"),
        ('master = "spark://host:7077"', ["--engine", "sail"], "sail (named by --engine or ERRATA_ENGINE)"),
        ('name = "sail"\nmaster = "spark://host:7077"', [], "sail (named by errata.toml)"),
    ],
)
def test_who_names_an_engine_is_heard(folder: Folder, settings: str, words: list[str], said: str) -> None:
    folder.write("errata.toml", f"[engine]\n{settings}\n")
    assert planned(folder, *words) == f"Engine: {said}"


def test_a_variable_pins_the_engine(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ERRATA_ENGINE", "spark")
    assert planned(folder) == "Engine: spark (named by --engine or ERRATA_ENGINE)"


def test_a_server_of_errata_toml_is_where_a_run_and_a_preview_go(folder: Folder) -> None:
    folder.write("errata.toml", '[engine]\nremote = "sc://127.0.0.1:9"\n')
    for words in ([], ["-n", "2"]):
        code, _, stderr = command("run", str(folder.path / "pipeline.yaml"), *words)
        assert code == 4
        assert "no Spark Connect server answers at sc://127.0.0.1:9" in stderr


def test_a_preview_is_small_work(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.engines.choice.machine_memory", lambda: 1)
    assert ran(folder, "-n", "2") == "Engine: sail (work of 0 B fits in memory)"


@pytest.mark.parametrize(("settings", "line"), [('name = "duckdb"', 2), ('master = "spark://host:7077"\nremote = "sc://host:1"', 3)])
def test_settings_of_the_engine_are_checked(folder: Folder, settings: str, line: int) -> None:
    folder.write("errata.toml", f"[engine]\n{settings}\n")
    code, _, stderr = command("check", str(folder.path / "pipeline.yaml"))
    assert code == 1
    assert f"errata.toml:{line}:" in stderr


def test_spark_without_java_ends_a_run_with_a_message_of_whole_lines(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(folder.path))
    code, _, stderr = command("run", str(folder.path / "pipeline.yaml"), "--engine", "spark", "-q")
    assert code == 4
    assert stderr.splitlines()[:2] == [
        "error: Apache Spark needs Java 17 or later, and none was found",
        "  = help: install Java 17 or 21 and put it on PATH, or name it in JAVA_HOME; or run with `--engine sail`, which needs no Java",
    ]
