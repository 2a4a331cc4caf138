"""The assets in Dagster itself, in this process."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from conftest import COMMAND, WORDS, Project
from dagster import AssetCheckSeverity, AssetKey, DagsterInstance, ExecuteInProcessResult, materialize
from errata_dagster import errata_assets, events


def run(project: Project, instance: DagsterInstance, command: Sequence[str] = COMMAND) -> ExecuteInProcessResult:
    return materialize([errata_assets("pipeline.yaml", *WORDS, command=command)], instance=instance, raise_on_error=False)


@pytest.mark.parametrize(("given", "rejected"), [("clean", 0), ("rejected", 1)])
def test_an_output_that_was_written_is_a_materialization(project: Project, given: str, rejected: int) -> None:
    project.give(given)
    with DagsterInstance.ephemeral() as instance:
        result = run(project, instance)
        (made,) = result.get_asset_materialization_events()
        metadata = made.materialization.metadata
        assert (made.asset_key, metadata["epoch"].value, metadata["rows"].value) == (AssetKey(["sums.csv"]), 1, 2 - rejected)
        assert metadata["ops"].value["+A"] == 2 - rejected
        checks = {one.check_name: (one.passed, one.severity) for one in result.get_asset_check_evaluations()}
        assert checks == {"verify": (True, AssetCheckSeverity.ERROR), "no_rejects": (not rejected, AssetCheckSeverity.WARN)}
        again = run(project, instance)
        assert again.success
        assert again.get_asset_materialization_events() == []


def test_assets_depend_on_the_files_that_they_read(project: Project) -> None:
    made = errata_assets("pipeline.yaml", command=COMMAND)
    assert made.keys == {AssetKey(["sums.csv"])}
    (spec,) = made.specs
    assert ([dep.asset_key for dep in spec.deps], spec.group_name) == ([AssetKey(["orders.csv"])], "sums")


def test_a_run_that_needs_a_change_is_not_tried_again(project: Project) -> None:
    project.give("clean")
    assets = errata_assets("pipeline.yaml", *WORDS, command=COMMAND)
    project.break_pipeline()
    with DagsterInstance.ephemeral() as instance:
        result = materialize([assets], instance=instance, raise_on_error=False)
    assert not result.success
    assert [event for event in result.all_events if event.event_type_value == "STEP_UP_FOR_RETRY"] == []


def test_a_run_whose_input_comes_late_is_tried_again(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("errata_dagster.PAUSE", 0)
    monkeypatch.setattr("errata_dagster.RETRIES", 1)
    with DagsterInstance.ephemeral() as instance:
        result = run(project, instance)
        assert not result.success
        assert len([event for event in result.all_events if event.event_type_value == "STEP_UP_FOR_RETRY"]) == 1
        project.give("clean")
        assert run(project, instance).success


def test_a_run_that_is_killed_is_tried_again(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("errata_dagster.PAUSE", 0)
    project.give("clean")
    with DagsterInstance.ephemeral() as instance:
        result = run(project, instance, project.killed_once)
        assert result.success
        assert len([event for event in result.all_events if event.event_type_value == "STEP_UP_FOR_RETRY"]) == 1
        (made,) = result.get_asset_materialization_events()
        assert (made.materialization.metadata["epoch"].value, made.materialization.metadata["rows"].value) == (1, 2)


def test_a_step_that_is_stopped_interrupts_the_run(project: Project, capfd: pytest.CaptureFixture[str]) -> None:
    project.give("clean")
    with DagsterInstance.ephemeral() as instance:
        assert run(project, instance).success
        with project.held():
            started = events(COMMAND, [str(project.pipeline), *WORDS, "--wait"])
            assert next(started)["event"] == "run_started"
            started.close()
        assert "error: interrupted" in capfd.readouterr().err
        assert run(project, instance).success
