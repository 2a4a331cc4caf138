"""The task in Prefect itself, in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pytest
from conftest import COMMAND, WORDS, Project
from errata_prefect import RunFailed, errata_run, events
from prefect import flow
from prefect.testing.utilities import prefect_test_harness


@pytest.fixture(scope="module", autouse=True)
def server() -> Iterator[None]:
    with prefect_test_harness(server_startup_timeout=180):
        yield


def run(project: Project, retries: int = 0, command: Sequence[str] = COMMAND) -> dict:
    @flow
    def made() -> dict:
        return errata_run.with_options(retries=retries, retry_delay_seconds=0)(str(project.pipeline), *WORDS, command=command)

    return made()


@pytest.mark.parametrize(("given", "code", "rejected"), [("clean", 0, 0), ("rejected", 2, 1)])
def test_the_last_event_is_the_result(project: Project, given: str, code: int, rejected: int) -> None:
    project.give(given)
    finished = run(project)
    assert (finished["event"], finished["exit_code"], finished["rejected"], finished["committed"]) == ("run_finished", code, rejected, True)
    assert json.dumps(finished)


def test_a_run_that_needs_a_change_is_not_tried_again(project: Project) -> None:
    project.give("clean")
    project.break_pipeline()
    with pytest.raises(RunFailed) as caught:
        run(project, retries=2)
    assert caught.value.finished["exit_code"] == 1
    assert not (project.folder / "sums.csv").exists()


def test_a_run_whose_input_comes_late_is_tried_again(project: Project, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(RunFailed) as caught:
        run(project, retries=1)
    assert caught.value.finished["retry"] == "later"
    assert caplog.text.count('"event": "run_finished"') == 2
    project.give("clean")
    assert run(project)["epoch"] == 1


def test_a_run_that_is_killed_is_tried_again(project: Project, caplog: pytest.LogCaptureFixture) -> None:
    project.give("clean")
    finished = run(project, retries=1, command=project.killed_once)
    assert (finished["exit_code"], finished["epoch"]) == (0, 1)
    assert (caplog.text.count('"event": "run_started"'), caplog.text.count('"event": "run_finished"')) == (2, 1)
    assert (project.folder / "sums.csv").exists()


def test_a_task_that_is_stopped_interrupts_the_run(project: Project, capfd: pytest.CaptureFixture[str]) -> None:
    project.give("clean")
    run(project)
    with project.held():
        started = events(COMMAND, [str(project.pipeline), *WORDS, "--wait"])
        assert next(started)["event"] == "run_started"
        started.close()
    assert "error: interrupted" in capfd.readouterr().err
    assert run(project)["epoch"] == 1
