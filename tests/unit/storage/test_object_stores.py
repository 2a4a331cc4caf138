"""S3: Errata checks settings and Spark jars before a run, and joins the user's jars with its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage.engines import EngineChoice
from storage.engines.spark.jars import spark_home
from storage.engines.spark.user_jars import require_jars, user_jars
from storage.errors import EngineUnavailable, StorageError, first_line, storing
from storage.state.location import State
from storage.uris import settings_missing
from tests.support.pipelines import Folder, command

PLACE = "s3://bucket/state"
HTTP = "http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))


def test_settings_that_are_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert settings_missing("/somewhere") == ""
    assert settings_missing(PLACE).startswith("nothing says how to reach S3: set AWS_REGION, and")
    monkeypatch.setenv("AWS_ENDPOINT_URL", HTTP)
    assert settings_missing(PLACE) == f"the endpoint {HTTP} is without encryption, which has to be allowed: set AWS_ALLOW_HTTP=true, or name an https endpoint"
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    assert settings_missing(PLACE) == ""
    monkeypatch.delenv("AWS_ALLOW_HTTP")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://store")
    assert settings_missing(PLACE) == ""
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    (tmp_path / "home/.aws").mkdir(parents=True)
    (tmp_path / "home/.aws/config").write_text("[default]\n")
    assert settings_missing(PLACE) == ""


def test_missing_settings_are_named_only_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    State(PLACE).prepare()
    with pytest.raises(StorageError, match=r"^s3://bucket/state: no answer \(nothing says how to reach S3: set AWS_REGION"), storing(PLACE):
        raise OSError("no answer")
    monkeypatch.setenv("AWS_ENDPOINT_URL", HTTP)
    with pytest.raises(StorageError, match="set AWS_ALLOW_HTTP=true"):
        State(PLACE).prepare()


@pytest.mark.parametrize("words", [("run", "--engine", "sail"), ("status",), ("show", "out")])
def test_a_command_says_what_is_missing_and_ends_with_4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", HTTP)
    monkeypatch.setenv("AWS_REGION", "eu")
    folder, (name, *rest) = Folder(tmp_path), words
    folder.write("rows.csv", "id\n1\n")
    folder.write(
        "pipeline.yaml",
        "pipeline: { name: far }\nnodes:\n"
        "  - { type: source, name: rows, config: { name: rows, type: csv, path: rows.csv, schema: [{ name: id, type: int }] } }\n"
        "  - { type: output, name: out, input: rows, config: { name: out, type: csv, path: out.csv } }\n",
    )
    code, _, stderr = command(name, str(tmp_path / "pipeline.yaml"), *rest, "--state", "s3://bucket/state")
    assert (code, "set AWS_ALLOW_HTTP=true" in stderr) == (4, True), stderr


def test_spark_without_the_jar_for_s3_is_not_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    spark = EngineChoice("spark")
    for choice, place in ((EngineChoice("sail"), PLACE), (EngineChoice("spark", remote="sc://here"), PLACE), (spark, "/somewhere")):
        require_jars(choice, [place])
    with pytest.raises(EngineUnavailable, match="s3://bucket/state: Apache Spark needs hadoop-aws, bundle, analyticsaccelerator-s3 for S3, and nothing names them") as missing:
        require_jars(spark, [PLACE])
    assert missing.value.ways_out[1] == "run with `--engine sail`, which needs none"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--packages org.apache.hadoop:hadoop-aws:3.5.0 pyspark-shell")
    require_jars(spark, [PLACE])
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS")
    (tmp_path / "conf").mkdir()
    (tmp_path / "jars").mkdir()
    (tmp_path / "conf/spark-defaults.conf").write_text(f"# jars\nspark.driver.extraClassPath {tmp_path}/jars/*\n")
    with pytest.raises(EngineUnavailable):
        require_jars(spark, [PLACE])
    (tmp_path / "jars/hadoop-aws-3.5.0.jar").touch()
    (tmp_path / "jars/analyticsaccelerator-s3-1.3.1.jar").touch()
    with pytest.raises(EngineUnavailable, match="Apache Spark needs bundle for S3, and nothing names it"):
        require_jars(spark, [PLACE])
    (tmp_path / "jars/bundle-2.35.4.jar").touch()
    require_jars(spark, [PLACE])


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ("java.lang.RuntimeException: java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found", True),
        ("java.lang.NoClassDefFoundError: software/amazon/awssdk/core/exception/SdkException", True),
        ('org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "s3"', True),
        ("java.nio.file.AccessDeniedException: s3://bucket/state: getFileStatus on S3AFileSystem: Forbidden", False),
        ("java.lang.ClassNotFoundException: com.example.Function", False),
    ],
)
def test_an_engine_without_jars_for_s3_is_known_by_what_it_says(said: str, means: bool) -> None:
    found = EngineUnavailable.without_s3(f"[INTERNAL] something\n{said}\n  at x.y(Z.java:1)")
    assert (found is not None) == means
    assert found is None or "docs/how-to/deploy.md" in found.ways_out[0]


def test_addresses_lose_their_queries() -> None:
    text = "Error performing GET https://store/b/x?X-Amz-Signature=abc&y=1 in 3 s, then http://store/c?z"
    assert first_line(OSError(text)) == "Error performing GET https://store/b/x in 3 s, then http://store/c"


OURS = {"spark.jars": "/e/delta.jar", "spark.driver.extraClassPath": "/e/delta.jar", "spark.master": "local"}


@pytest.mark.parametrize(
    ("arguments", "jars", "path", "left"),
    [
        ("", "/e/delta.jar", "/e/delta.jar", "pyspark-shell"),
        ("--jars /u/a.jar,/u/b.jar pyspark-shell", "/e/delta.jar,/u/a.jar,/u/b.jar", "/e/delta.jar", "pyspark-shell"),
        ("--jars=/u/a.jar --driver-class-path /u/c.jar --name x pyspark-shell", "/e/delta.jar,/u/a.jar", "/e/delta.jar:/u/c.jar", "--name x pyspark-shell"),
        ("--conf spark.jars=/u/a.jar -c spark.x=1 pyspark-shell", "/e/delta.jar,/u/a.jar", "/e/delta.jar", "--conf spark.x=1 pyspark-shell"),
        ("--packages a:b:1 pyspark-shell", "/e/delta.jar", "/e/delta.jar", "--packages a:b:1 pyspark-shell"),
    ],
)
def test_the_users_jars_are_joined_with_ours(monkeypatch: pytest.MonkeyPatch, arguments: str, jars: str, path: str, left: str) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    given = user_jars(spark_home())
    assert given.joined(OURS) == {"spark.jars": jars, "spark.driver.extraClassPath": path, "spark.master": "local"}
    assert given.submit_arguments == left


def test_doctor_says_what_s3_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ERRATA_STATE", PLACE)
    _, out, _ = command("doctor", "--format", "csv")
    assert "s3 settings,warning,nothing says how to reach S3" in out
    monkeypatch.delenv("ERRATA_STATE")
    _, out, _ = command("doctor", "--format", "csv")
    assert "s3 settings" not in out
