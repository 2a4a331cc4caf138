"""Errata in Airflow: an operator that runs a pipeline as a process, passes its events on and maps its end.

`ErrataRunOperator(task_id="orders", pipeline="pipeline.yaml")` returns the last event, `run_finished`, as its XCom. A run that can succeed later is tried
again as the task's `retries` say; any other failure is final. Each outlet whose URI ends with the target of an output gets an asset event.
The page is `docs/how-to/orchestrators.md`.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

Event = dict[str, Any]
GRACE = 30
"""Seconds that an interrupted run has to end by itself."""


class ErrataRunOperator(BaseOperator):
    """Runs a pipeline.

    Args:
        pipeline: The pipeline's file.
        words: Further words of `errata run`.
        fail_on_rejected: Whether rejected records fail the task.
        command: The command line of Errata.
    """

    template_fields: Sequence[str] = ("pipeline", "words")

    def __init__(
        self, *, pipeline: str, words: Sequence[str] = (), fail_on_rejected: bool = False, command: Sequence[str] = ("errata",), **settings: Any
    ) -> None:
        super().__init__(**settings)
        self.pipeline = pipeline
        self.words = words
        self.fail_on_rejected = fail_on_rejected
        self.command = command
        self.process: subprocess.Popen[str] | None = None

    def execute(self, context: Context) -> Event:
        """Run the pipeline and return its last event."""
        finished: Event = {"exit_code": None, "outcome": "interrupted", "retry": "later", "message": "the run was killed", "rejected": 0}
        for event in self._events():
            self.log.info("%s", json.dumps(event))
            if event["event"] == "output_written":
                self._tell(context, event)
            elif event["event"] == "run_finished":
                finished = event
        said = f"exit code {finished['exit_code']}: {finished['message']}"
        if finished["retry"] == "later":
            raise AirflowException(said)
        if finished["retry"] != "none":
            raise AirflowFailException(said)
        if finished["rejected"]:
            said = f"{finished['rejected']} records are in the dead letter queue"
            if self.fail_on_rejected:
                raise AirflowFailException(said)
            self.log.warning(said)
        return finished

    def _events(self) -> Iterator[Event]:
        words = [*self.command, "run", self.pipeline, *self.words, "--events", "jsonl"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as self.process:
            assert self.process.stdout is not None
            try:
                yield from map(json.loads, self.process.stdout)
                self.process.wait()
            finally:
                self.on_kill()

    def _tell(self, context: Context, event: Event) -> None:
        """Give the asset of a file or table that was written an event."""
        facts = {name: event[name] for name in ("node", "target", "rows", "epoch")}
        for asset in self.outlets:
            if getattr(asset, "uri", "").rstrip("/").endswith(event["target"].rstrip("/")):
                context["outlet_events"][asset].extra = facts

    def on_kill(self) -> None:
        """Interrupt the run, and kill it where it does not end."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
