"""Errata in Prefect: a task that runs a pipeline as a process, passes its events on and maps its end.

`errata_run("pipeline.yaml")` returns the last event, `run_finished`. A run that can succeed later is tried again; any other failure is not.
The page is `docs/how-to/orchestrators.md`.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from prefect import get_run_logger, task
from prefect.artifacts import create_table_artifact

if TYPE_CHECKING:
    from prefect.client.schemas import TaskRun
    from prefect.states import State
    from prefect.tasks import Task

Event = dict[str, Any]
GRACE = 30
"""Seconds that an interrupted run has to end by itself."""


class RunFailed(Exception):
    """A run that failed. `finished` is its last event."""

    def __init__(self, finished: Event) -> None:
        super().__init__(f"exit code {finished['exit_code']}: {finished['message'] or finished['outcome']}")
        self.finished = finished


def events(command: Sequence[str], words: Sequence[str]) -> Iterator[Event]:
    """Yield the events of a run. Where the caller stops, the run is interrupted, and killed if it does not end."""
    with subprocess.Popen([*command, "run", *words, "--events", "jsonl"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield from map(json.loads, process.stdout)
            process.wait()
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(GRACE)
                except subprocess.TimeoutExpired:
                    process.kill()


def comes_later(task: Task[..., Any], task_run: TaskRun, state: State[Any]) -> bool:
    """Whether another run can succeed without any change."""
    failed = state.result(raise_on_failure=False)
    return isinstance(failed, RunFailed) and failed.finished["retry"] == "later"


@task(name="errata run", retries=3, retry_delay_seconds=60, retry_condition_fn=comes_later)
def errata_run(pipeline: str, *words: str, command: Sequence[str] = ("errata",)) -> Event:
    """Run a pipeline and return its last event.

    Args:
        pipeline: The pipeline's file.
        words: Further words of `errata run`.
        command: The command line of Errata.
    """
    log = get_run_logger()
    finished: Event = {"exit_code": None, "outcome": "interrupted", "retry": "later", "message": "the run was killed"}
    name, ops = pipeline, {}
    for event in events(command, [pipeline, *words]):
        log.info("%s", json.dumps(event))
        if event["event"] == "run_started":
            name = event["pipeline"] or pipeline
        elif event["event"] == "committed":
            ops = event["ops"]
        elif event["event"] == "run_finished":
            finished = event
    if finished["retry"] != "none":
        raise RunFailed(finished)
    if finished["outcome"] == "rejected":
        log.warning("%s records are in the dead letter queue", finished["rejected"])
    if ops:
        table = [{"node": node, **counts} for node, counts in ops.items()]
        create_table_artifact(key=f"errata-{re.sub('[^a-z0-9]+', '-', name.lower())}", table=table, description=f"Epoch {finished['epoch']}")
    return finished
