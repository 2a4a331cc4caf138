"""Changes that a page asked for: one at a time, each in a thread, through the interface that the commands use."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Literal

from errata.core.diagnostics import PipelineErrors
from errata.core.env_references import redacted
from errata.core.failures import Failure
from errata.inspect.history import RowChange
from errata.pages.values import Lines, lines
from storage.errors import EngineUnavailable, StorageError

if TYPE_CHECKING:
    from errata.core.events import RunResult

Row = Mapping[str, Any]
Work = Callable[[], tuple[Iterable[Row], "RunResult"]]
"""Returns the net changes (node, op, before, after) and the result of the run."""
MOST_EFFECTS = 200
MOST_JOBS = 100


@dataclass(slots=True)
class Job:
    """A change and how it goes. `effect` has the changed rows by node."""

    number: str
    title: str
    trial: bool
    state: Literal["waiting", "working", "done", "failed"] = "waiting"
    message: str = ""
    epoch: int | None = None
    effect: list[tuple[str, Lines]] = field(default_factory=list)
    more: int = 0

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.state in ("done", "failed")


class Jobs:
    """The jobs of a server. Each holds `work` while it runs."""

    def __init__(self, work: threading.Lock) -> None:
        self._work = work
        self._closing = threading.Event()
        self._lock = threading.Lock()  # held for what follows
        self._known: dict[str, Job] = {}
        self._threads: list[threading.Thread] = []

    def begin(self, title: str, change: Work, *, trial: bool = False) -> Job:
        """Start a job and return it."""
        job = Job(token_hex(8), title, trial)
        thread = threading.Thread(target=contextvars.copy_context().run, args=(self._run, job, change), daemon=True)
        with self._lock:
            self._known[job.number] = job
            for old in [one.number for one in self._known.values() if one.over][: max(0, len(self._known) - MOST_JOBS)]:
                del self._known[old]
            thread.start()
            self._threads = [one for one in self._threads if one.is_alive()] + [thread]
        return job

    def find(self, number: str) -> Job | None:
        """Return the job of a number."""
        with self._lock:
            return self._known.get(number)

    @property
    def running(self) -> bool:
        """Whether a job has not ended."""
        with self._lock:
            return any(not job.over for job in self._known.values())

    def finish(self) -> None:
        """Wait for all jobs."""
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join()

    def close(self) -> None:
        """Wait for the job that is being computed. Jobs that still wait are not begun."""
        self._closing.set()
        self.finish()

    def _run(self, job: Job, change: Work) -> None:
        with self._work:
            if self._closing.is_set():
                job.message, job.state = "the server ended before this change began", "failed"
                return
            job.state, job.message = "working", "a defect of Errata; the terminal has more"
            ended: Literal["done", "failed"] = "failed"
            try:
                effect, result = change()
                job.effect, job.more = _by_node(effect)
                job.epoch = result.epoch if result.committed else None
                job.message = redacted(result.message)
                ended = "done" if result.exit_code in (0, 2) else "failed"
            except (Failure, PipelineErrors, StorageError, EngineUnavailable, OSError) as problem:
                job.message = redacted(_message(problem))
            finally:
                job.state = ended


def _message(problem: BaseException) -> str:
    help = getattr(problem, "help", "")
    return f"{getattr(problem, 'message', problem)}{f' ({help})' if help else ''}"


def _by_node(effect: Iterable[Row]) -> tuple[list[tuple[str, Lines]], int]:
    """The first changed rows by node, and how many more there are."""
    rows = iter(effect)
    nodes: dict[str, list[RowChange]] = {}
    for row in islice(rows, MOST_EFFECTS):
        nodes.setdefault(row["node"], []).append(RowChange(0, "", "", row["before"], row["after"]))
    return [(node, lines(changes)) for node, changes in nodes.items()], sum(1 for _ in rows)
