"""The operator in Airflow itself: called by itself, and as a task of a DAG."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from conftest import COMMAND, WORDS, Project
from errata_airflow import ErrataRunOperator

DAG = """\
from datetime import datetime
from airflow.sdk import DAG
from errata_airflow import ErrataRunOperator

with DAG("sums", start_date=datetime(2026, 1, 1), schedule=None):
    ErrataRunOperator(task_id="orders", pipeline={pipeline!r}, words={words!r}, command={command!r})
"""


class KeptEvent:
    """The parts of an asset event that Airflow keeps."""

    extra: dict | None = None


def run(project: Project, **settings: object) -> tuple[dict, KeptEvent]:
    asset, event = Asset(f"file://{project.folder}/sums.csv"), KeptEvent()
    given = {"words": WORDS, "command": COMMAND, **settings}
    operator = ErrataRunOperator(task_id="orders", pipeline=str(project.pipeline), outlets=[asset], **given)
    return operator.execute({"outlet_events": {asset: event}}), event


@pytest.mark.parametrize(("given", "code", "rejected"), [("clean", 0, 0), ("rejected", 2, 1)])
def test_the_last_event_is_the_result(project: Project, given: str, code: int, rejected: int) -> None:
    project.give(given)
    finished, event = run(project)
    assert (finished["event"], finished["exit_code"], finished["rejected"]) == ("run_finished", code, rejected)
    assert event.extra == {"node": "out", "target": "sums.csv", "rows": 2 - rejected, "epoch": 1}
    if rejected:
        with pytest.raises(AirflowFailException, match="1 records are in the dead letter queue"):
            run(project, fail_on_rejected=True)


def test_only_what_can_succeed_later_is_tried_again(project: Project) -> None:
    with pytest.raises(AirflowException, match="exit code 4") as caught:
        run(project)
    assert not isinstance(caught.value, AirflowFailException)
    project.give("clean")
    assert run(project)[0]["epoch"] == 1
    project.break_pipeline()
    with pytest.raises(AirflowFailException, match="exit code 1"):
        run(project)


def test_a_run_that_is_killed_can_be_tried_again(project: Project) -> None:
    project.give("clean")
    with pytest.raises(AirflowException, match="the run was killed") as caught:
        run(project, command=project.killed_once)
    assert not isinstance(caught.value, AirflowFailException)
    finished, event = run(project, command=project.killed_once)
    assert (finished["exit_code"], finished["epoch"]) == (0, 1)
    assert event.extra == {"node": "out", "target": "sums.csv", "rows": 2, "epoch": 1}


def test_a_task_that_is_stopped_interrupts_the_run(project: Project) -> None:
    project.give("clean")
    run(project)

    class Stopped(ErrataRunOperator):
        """A task that is stopped as soon as its run has begun."""

        def _events(self) -> Iterator[dict]:
            for event in super()._events():
                if event["event"] == "run_started":
                    self.on_kill()
                yield event

    operator = Stopped(task_id="orders", pipeline=str(project.pipeline), words=(*WORDS, "--wait"), command=COMMAND)
    with project.held(), pytest.raises(AirflowException, match="exit code 130"):
        operator.execute({})
    assert run(project)[0]["epoch"] == 1


def test_a_dag_runs_the_task(project: Project) -> None:
    project.give("clean")
    home = project.folder / "airflow"
    (home / "dags").mkdir(parents=True)
    (home / "dags" / "sums.py").write_text(DAG.format(pipeline=str(project.pipeline), words=list(WORDS), command=list(COMMAND)))
    environment = {**os.environ, "AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False", "PYTHONPATH": str(Path(__file__).parents[1])}
    for words in (["db", "migrate"], ["dags", "reserialize"], ["dags", "test", "sums"]):
        done = subprocess.run([sys.executable, "-m", "airflow", *words], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert '"event": "run_finished"' in done.stdout + done.stderr
    assert (project.folder / "sums.csv").exists()
