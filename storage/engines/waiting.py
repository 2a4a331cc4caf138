"""Waits for a cluster's executors or a Spark Connect server. Each wait ends after a time limit, and reports progress meanwhile."""

import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

from storage.errors import EngineUnavailable

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql.connect.client.retries import RetryPolicy

__all__ = ["PATIENCE_SECONDS", "ExecutorWatch", "patient_policy"]

PATIENCE_SECONDS = 120
"""Seconds that a cluster may give no executor, or a server no answer."""
REPORT_SECONDS = 20.0
LOOK_SECONDS = 1.0
KNOCK_SECONDS = 2.0

Tell = Callable[[str], None]


class Waiting:
    """A wait for one thing, which may begin and end repeatedly."""

    def __init__(self, thing: str, patience: float, tell: Tell) -> None:
        self.thing = thing
        self._patience = patience
        self._tell = tell
        self._since: float | None = None
        self._reported = 0.0

    def over(self) -> None:
        """End the wait: the thing is there."""
        self._since = None

    def goes_on(self) -> bool:
        """Report the length of the wait from time to time. False once it is too long."""
        now = monotonic()
        if self._since is None:
            self._since, self._reported = now, 0.0
        waited = now - self._since
        if waited >= self._reported + REPORT_SECONDS:
            self._reported = waited
            self._tell(f"waiting for {self.thing}, {waited:.0f} s")
        return waited < self._patience


class ExecutorWatch:
    """Cancels the jobs of a context on which no executor works. It watches until it is stopped."""

    def __init__(self, context: "SparkContext", master: str, patience: float, tell: Tell) -> None:
        self._context = context
        self._waiting = Waiting(f"executors of {master}", patience, tell)
        self._reason = str(EngineUnavailable.no_executors(master, patience))
        self._over = threading.Event()
        threading.Thread(target=self._watch, name="executors", daemon=True).start()

    def stop(self) -> None:
        """Stop watching."""
        self._over.set()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            with suppress(Exception):  # the JVM ends; queries report it
                self._look()

    def _look(self) -> None:
        jobs = self._context.statusTracker().getActiveJobsIds()
        scheduler = self._context._jsc.sc()  # noqa: SLF001  # nothing public lists the executors
        if not jobs or int(scheduler.getExecutorMemoryStatus().size()) > 1:  # the driver is one of them
            self._waiting.over()
        elif not self._waiting.goes_on():
            for job in jobs:
                scheduler.cancelJob(job, self._reason)


def patient_policy(url: str, patience: float, tell: Tell) -> "RetryPolicy":
    """Return the policy by which a Spark Connect client retries for some time, then raises `EngineUnavailable`."""
    from pyspark.sql.connect.client.retries import DefaultPolicy, RetryPolicyState

    class Trying(RetryPolicyState):
        def __init__(self, policy: "RetryPolicy") -> None:
            super().__init__(policy)
            self._waiting = Waiting(f"the Spark Connect server at {url}", patience, tell)

        def next_attempt(self, exception: BaseException | None = None) -> int:
            if not self._waiting.goes_on():
                raise EngineUnavailable.no_answer(url, patience) from exception
            return int(1000 * min(KNOCK_SECONDS, patience))

    class Patient(DefaultPolicy):
        def to_state(self) -> RetryPolicyState:
            return Trying(self)

    return Patient()
