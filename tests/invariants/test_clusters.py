"""A Spark cluster whose processes are lost at any time: what a run writes is what Sail writes, and where a run ends the next one is right.

The master, two workers, their executors, the driver and a Spark Connect server are processes of their own. Files lie in a folder that all of them
share, or in a bucket.
"""

from __future__ import annotations

import collections
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from unittest import mock

import pytest

from errata.core.options import EngineOptions
from storage import durable
from storage.engines import stop_engines
from storage.engines.choice import has_session
from tests.invariants.test_engines_in_turn import story_of
from tests.invariants.test_parallelism import ROWS, records, written
from tests.invariants.walking import walk
from tests.support.clusters import DEADLINE, SMALL, Cluster, awaited, cluster, kill
from tests.support.lakes import ROWS as ORDERS
from tests.support.lakes import Lake
from tests.support.object_stores import KEY, SECRET, Faults, TestBucket
from tests.support.pipelines import Folder, command

pytestmark = pytest.mark.spark

COOKBOOK = Path(__file__).parents[2] / "examples" / "cookbook"
RECIPES = sorted(path.parent.name for path in COOKBOOK.glob("*/pipeline.yaml"))
WAIT = "8"
"""Seconds of --engine-wait."""
SECOND = "append:changelog/places"
"""A step in the middle of a run, for which executors work."""
PIPELINE = """\
pipeline: { name: losing }
nodes:
  - type: source
    name: rows
    config: { name: rows, type: csv, glob: rows/*.csv, schema: [{ name: id, type: int }, { name: k, type: string }, { name: v, type: float }, { name: w, type: int }] }
  - { type: transform, name: shares, input: rows, config: { cxl: "emit share = v * w\\nfilter v != 3.5" } }
  - { type: aggregate, name: sums, input: shares, config: { group_by: [k], cxl: "emit total = sum(v)\\nemit n = count(*)" } }
  - { type: transform, name: places, input: shares, config: { analytic_window: { partition_by: [k], sort_by: [id] }, cxl: "emit place = $window.rank()" } }
  - { type: output, name: sums_out, input: sums, config: { name: sums_out, type: csv, path: out/sums.csv } }
  - { type: output, name: places_out, input: places, config: { name: places_out, type: csv, path: out/places.csv } }
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster for all tests of this module. Its tasks have the secrets of buckets."""
    with mock.patch.dict(os.environ, LAKE_KEY=KEY, LAKE_SECRET=SECRET), cluster(tmp_path_factory.mktemp("cluster")) as one:
        yield one


@pytest.fixture
def here(made: Cluster) -> Iterator[Cluster]:
    """The cluster with two workers, whatever the last test ended."""
    made.mend()
    yield made
    made.end_connect()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The outputs of Sail."""
    folder = project(tmp_path_factory.mktemp("alone"))
    folder.run()
    return outputs(folder)


@contextmanager
def at_each_stage(act: Callable[[], object]) -> Iterator[list[int]]:
    """Call `act` each time when tasks of another stage begin, for the body of a `with`. Yields the stages."""
    seen: list[int] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.02):
            with suppress(Exception):  # the driver is not there yet, or ended
                new = [stage for stage in _stages_at_work() if stage not in seen]
                if new:
                    seen.extend(new)
                    act()

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield seen
    finally:
        over.set()
        watching.join(DEADLINE)


def _stages_at_work() -> list[int]:
    from pyspark import SparkContext

    if not has_session():
        return []
    tracker = SparkContext.getOrCreate().statusTracker()
    stages = ((number, tracker.getStageInfo(number)) for number in tracker.getActiveStageIds())
    return [number for number, stage in stages if stage is not None and stage.numActiveTasks]


def at_step(name: str, act: Callable[[], object]) -> AbstractContextManager[None]:
    """Call `act` ahead of a durable step, for the body of a `with`: what the step has the engine do comes after it."""
    return durable.probing(lambda moment: act() if (moment.name, moment.side) == (name, "before") else None)


def project(place: Path) -> Folder:
    """A pipeline over rows enough for several stages."""
    folder = Folder(place)
    folder.write("pipeline.yaml", PIPELINE)
    rows = records(0)
    for name, part in (("a", rows[: ROWS // 3]), ("b", rows[ROWS // 3 :])):
        folder.write_csv(f"rows/{name}.csv", ["id", "k", "v", "w"], part)
    return folder


def outputs(folder: Folder) -> dict[str, str]:
    """The text of each output."""
    return {path.name: path.read_text() for path in (folder.path / "out").iterdir()}


def check(folder: Folder, alone: dict[str, str]) -> None:
    """A run on Sail that follows leaves the one epoch that there is to be, with what Sail writes."""
    assert folder.run().exit_code == 0
    assert outputs(folder) == alone
    assert folder.load().head_epoch() == 1
    assert folder.violations() == []


# What is written ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_writes_what_it_writes_on_sail(here: Cluster, tmp_path: Path, recipe: str) -> None:
    folder = Folder(tmp_path / recipe, here.options)
    shutil.copytree(COOKBOOK / recipe, folder.path, ignore=shutil.ignore_patterns(".errata", "output"))
    assert folder.run().exit_code == 0
    assert {path.name: path.read_text() for path in (folder.path / "output").iterdir()} == {path.name: path.read_text() for path in (folder.path / "expected").iterdir()}
    assert not folder.run().committed


@pytest.mark.parametrize("number", range(20))
def test_each_step_of_a_random_pipeline_ends_as_a_full_run_on_sail(here: Cluster, number: int) -> None:
    story = story_of(5000 + number, most=4, changes=2)
    walk(story, turns=[here.options] * len(story.steps))


@pytest.mark.parametrize("remote", [False, True])
def test_runs_over_many_rows_write_what_they_write_on_sail(here: Cluster, tmp_path: Path, *, remote: bool) -> None:
    expected = written(tmp_path / "sail", EngineOptions("sail"))
    stop_engines()
    found = written(tmp_path / "cluster", EngineOptions("spark", remote=here.connect()) if remote else here.options)
    assert len(here.executors()) == 2
    stop_engines()
    for name, content in found.items():
        assert content == expected[name], name


# What is lost -------------------------------------------------------------------------------------------------------------
def test_an_executor_is_lost_at_each_stage(here: Cluster, tmp_path: Path, alone: dict[str, str]) -> None:
    lost: list[int] = []

    def lose() -> None:
        found = here.executors()
        if len(found) > 1:  # the one before it is there again
            lost.append(found[0])
            kill(found[0])

    folder = project(tmp_path)
    with at_each_stage(lose), durable.probing(lambda moment: lose()):
        assert folder.run(engine=here.options).exit_code == 0
    assert len(lost) > 2
    check(folder, alone)


@pytest.mark.parametrize("step", ["append:changelog/rows", "append:state/sums", SECOND])
def test_a_worker_is_lost_in_the_middle_of_a_run(here: Cluster, tmp_path: Path, alone: dict[str, str], step: str) -> None:
    folder = project(tmp_path)
    with at_step(step, lambda: here.lose(here.workers[0])):
        assert folder.run(engine=here.options).exit_code == 0
    assert len(here.workers) == 1
    check(folder, alone)


def test_all_workers_are_lost(here: Cluster, tmp_path: Path, alone: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.engines.waiting.REPORT_SECONDS", 2.0)
    folder = project(tmp_path)

    def lose() -> None:
        for worker in list(here.workers):
            here.lose(worker)

    with at_step(SECOND, lose):
        code, _, stderr = command("run", str(folder.path / "pipeline.yaml"), "--engine", "spark", "--master", here.url, "--engine-wait", WAIT)
    assert code == 4
    assert re.search(rf"waiting for executors of {here.url}, \d+ s", stderr)
    assert f"no executor of {here.url} took work for {WAIT} s" in stderr
    check(folder, alone)


def test_the_driver_is_lost_in_the_middle_of_a_run(here: Cluster, tmp_path: Path, alone: dict[str, str]) -> None:
    from pyspark import SparkContext

    folder = project(tmp_path)
    with at_step(SECOND, lambda: kill(SparkContext._gateway.proc.pid)):
        code, _, stderr = command("run", str(folder.path / "pipeline.yaml"), "--engine", "spark", "--master", here.url)
    stop_engines()
    assert SparkContext._active_spark_context is None  # else it were taken for the program's own
    assert code == 4
    assert "the engine ended in the middle of its work" in stderr
    check(folder, alone)


CHILD = """
import os, signal, sys
from storage import durable
from errata.cli import main
with durable.probing(lambda moment: os.kill(os.getpid(), signal.SIGKILL) if (moment.name, moment.side) == ("append:ledger", sys.argv[1]) else None):
    main(sys.argv[2:])
"""


@pytest.mark.parametrize("side", ["before", "after"])
def test_the_process_of_the_driver_is_killed_at_the_commit(here: Cluster, tmp_path: Path, alone: dict[str, str], side: str) -> None:
    stop_engines()
    folder = project(tmp_path)
    words = [sys.executable, "-c", CHILD, side, "run", str(folder.path / "pipeline.yaml"), "--engine", "spark", "--master", here.url]
    assert subprocess.run(words, timeout=5 * DEADLINE, check=False, capture_output=True).returncode == -9
    assert folder.load().head_epoch() == (1 if side == "after" else None)
    awaited(lambda: not here.state()["activeapps"], "the end of the driver's application")
    check(folder, alone)


@pytest.mark.parametrize("near", [True, False])
def test_a_connect_server_is_lost_in_the_middle_of_a_run(here: Cluster, tmp_path: Path, alone: dict[str, str], monkeypatch: pytest.MonkeyPatch, *, near: bool) -> None:
    """One that is not of this machine is awaited."""
    monkeypatch.setattr("storage.engines.waiting.REPORT_SECONDS", 2.0)
    monkeypatch.setattr("storage.engines.spark.remote.is_loopback", lambda host: near)
    folder, url = project(tmp_path), here.connect()
    with at_step(SECOND, here.end_connect):
        code, _, stderr = command("run", str(folder.path / "pipeline.yaml"), "--engine", "spark", "--remote", url, "--engine-wait", WAIT)
    assert code == 4
    if near:
        assert "the engine ended in the middle of its work, or cannot be reached any more" in stderr
    else:
        assert re.search(rf"waiting for the Spark Connect server at {url}, \d+ s", stderr)
        assert f"the Spark Connect server at {url} gave no answer for {WAIT} s" in stderr
    stop_engines()
    check(folder, alone)


# Buckets ------------------------------------------------------------------------------------------------------------------
def corrected(lake: Lake) -> None:
    """A first run and one with a correction, each with its report."""
    lake.bucket.put("in/a.csv", "id,amount\n1,10\n2,20\n")
    lake.run()
    assert lake.report() == ORDERS
    lake.bucket.put("in/a.csv", "id,amount\n1,10\n2,25\n")
    lake.run()
    assert lake.report() == [ORDERS[0], {"id": "2", "amount": "25"}]
    assert lake.folder.violations() == []


@pytest.mark.servers
def test_files_in_a_bucket_and_the_state_in_a_shared_folder(here: Cluster, tmp_path: Path) -> None:
    lake = Lake(Folder(tmp_path, here.options), TestBucket.new(), Faults())
    lake.pipeline()
    corrected(lake)


JARS = os.environ.get("ERRATA_TEST_S3_JARS", "")
"""A folder with hadoop-aws and what it needs, 690 MB, which no test fetches."""


MANY = 150_000
"""More rows than the driver ever holds, so that the engine reads them from their table."""


def many_orders(lake: Lake) -> None:
    """Many rows, added up."""
    lake.pipeline(state="state")
    text = lake.folder.text("pipeline.yaml").replace("input: orders", "input: sums")
    sums = "  - { type: aggregate, name: sums, input: orders, config: { group_by: [amount], cxl: 'emit n = count(*)' } }\n"
    lake.folder.write("pipeline.yaml", text + sums)
    lake.bucket.put("in/a.csv", "id,amount\n" + "".join(f"{id},{id % 7}\n" for id in range(MANY)))


@pytest.mark.servers
@pytest.mark.skipif(not JARS, reason="ERRATA_TEST_S3_JARS names no folder with the jars for S3")
@pytest.mark.parametrize("remote", [False, True])
def test_files_and_the_state_in_a_bucket(here: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, remote: bool) -> None:
    stop_engines()
    lake = Lake(Folder(tmp_path), TestBucket.new(), Faults())
    many_orders(lake)
    words = ["--driver-class-path", f"{JARS}/*", "--conf", f"spark.executor.extraClassPath={JARS}/*"]
    if remote:
        stores = {"fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem", "fs.s3a.endpoint": lake.bucket.endpoint, "fs.s3a.path.style.access": "true"}
        keys = {"fs.s3a.access.key": KEY, "fs.s3a.secret.key": SECRET}
        settings = [part for name, value in (stores | keys).items() for part in ("--conf", f"spark.hadoop.{name}={value}")]
        lake.folder.engine = EngineOptions("spark", remote=here.connect(*words, *settings))
    else:
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", shlex.join([*words, *SMALL, "pyspark-shell"]))
        lake.folder.engine = here.options
    lake.run()
    lake.bucket.put("in/a.csv", "id,amount\n" + "".join(f"{id},{id % 7 + id % 2}\n" for id in range(MANY)))
    lake.run()
    stop_engines()
    expected = collections.Counter(str(id % 7 + id % 2) for id in range(MANY))
    assert {row["amount"]: int(row["n"]) for row in lake.report()} == expected
    lake.folder.engine = "sail"
    assert not lake.run().committed
    assert lake.folder.violations() == []


@pytest.mark.servers
def test_a_connect_server_without_jars_for_a_bucket_ends_a_run_and_the_next_one_is_right(here: Cluster, tmp_path: Path) -> None:
    lake = Lake(Folder(tmp_path), TestBucket.new(), Faults())
    many_orders(lake)
    code, _, stderr = command("run", str(tmp_path / "pipeline.yaml"), "--engine", "spark", "--remote", here.connect())
    stop_engines()
    assert code == 4
    assert "Apache Spark has no jars for S3" in stderr
    assert "docs/how-to/deploy.md" in stderr
    assert lake.run().epoch == 1
    assert sum(int(row["n"]) for row in lake.report()) == MANY
