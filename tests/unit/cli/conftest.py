"""A stand-in for the pipelines behind the command line. It has the real classes' methods, answers with fixed rows and records the calls."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import pytest

import errata.api.pipeline
from errata.api.pipeline import Pipeline
from errata.cli import main
from errata.core.diagnostics import Diagnostic
from errata.core.events import Event, RunResult
from errata.core.options import EngineOptions, RunOptions
from errata.inspect.next_run import Outlook

STATUS = {
    "pipeline": "orders",
    "epoch": 3,
    "per_source_rollback_cursors": {"orders": 41},
    "sources": [{"name": "orders", "cursor": 41, "rows_live": 40, "rows_suppressed": 1, "files": ["a.csv", "b.csv"]}],
    "nodes": [{"name": "orders", "type": "source", "rows_live": 40, "last_epoch": 3}],
    "rejected": 1,
}

NEXT = (("orders", "source", "delta", "files: 1 new"), ("rates", "source", "skip", "input unchanged"), ("totals", "aggregate", "delta", "input changed: orders"))

BEGAN = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
RUNS = [
    {
        "epoch": epoch, "started": BEGAN, "finished": BEGAN + timedelta(seconds=epoch), "execution_id": "01a2006d-c4a1-7e17-ac01-dd878245047b",
        "counts": {f"node_{number}": {"+A": epoch, "-R": 1} for number in range(9)}, "exit_code": 0, **({"kind": "correct", "reason": "a typo"} if epoch == 2 else {}),
    }
    for epoch in (1, 2)
]  # fmt: skip


@dataclass
class Application:
    """The application behind the command line. Its pipelines have the methods of the real class and record their calls.

    `fails` is raised by the next call to load, or by the next run where it is a `_Later`. `result` is the result of a run.
    """

    calls: list[tuple[str, Any]] = field(default_factory=list)
    fails: BaseException | None = None
    result: RunResult = field(
        default_factory=lambda: RunResult(0, epoch=4, counts={"totals": {"+A": 2, "-R": 1}}, seconds=0.5, committed=True)
    )
    epoch: int | None = 3
    diagnostics: tuple[Diagnostic, ...] = ()
    rows: list[dict[str, Any]] = field(default_factory=lambda: [{"id": 1, "name": "a\x1b[31mb", "total": 1.5}, {"id": 22, "name": None, "total": 10.0}])

    def load(self, path: Path, **settings: Any) -> Pipeline:
        self.calls.append(("load", (str(path), settings)))
        if self.fails is not None and not isinstance(self.fails, _Later):
            raise self.fails
        return self.pipeline()

    def pipeline(self) -> Pipeline:
        pipeline = create_autospec(Pipeline, instance=True)
        pipeline.diagnostics = self.diagnostics
        pipeline.node_names, pipeline.composition_outputs = ("orders", "totals", "report"), {}
        pipeline.head_epoch.side_effect = lambda: self.epoch
        pipeline.run.side_effect = self.run
        for name, answer in self._answers().items():
            getattr(pipeline, name).side_effect = partial(self._answered, name, answer)
        pipeline.verify.side_effect = self.verify
        pipeline.columns.return_value = []
        return pipeline

    def _answers(self) -> dict[str, Any]:
        changes = [{"node": "totals", "op": "-C", "before": {"a": 1}, "after": None}]
        outlook = create_autospec(Outlook, instance=True)
        outlook.rows.return_value = [{"node": node, "type": type_, "action": action, "reason": why} for node, type_, action, why in NEXT]
        outlook.engine.side_effect = lambda options: (options.engine, "as it was asked for")
        return {
            "check": None, "status": STATUS, "runs": RUNS, "outlook": outlook, "plan_next": outlook.rows(), "dlq_retry": self.result, "dlq_decide": self.result, "revert": self.result,
            "dlq_groups": [{"group": group, "source": "orders", "records": 2} for group in ("A", "B")], "correct": (changes, self.result),
            "report": "<html></html>", "explain": None, "explain_field": None,
            "restate": [{"month": "jan", "key": {"id": 1}, "field": "total", "causes": ["ingest", "correction"]}],
            "diff": [{"op": "+A", "before": None, "after": row} for row in self.rows],
            **dict.fromkeys(("log", "show", "why", "dlq_list", "dlq_triage", "dlq_triage_groups", "dlq_history", "compact"), self.rows),
        }  # fmt: skip

    def _answered(self, name: str, answer: Any, *words: Any) -> Any:
        self.calls.append((name, words))
        return f"{name} {words}\n" if name.startswith("explain") else answer

    def run(self, options: RunOptions) -> RunResult:
        self.calls.append(("run", options))
        if isinstance(self.fails, _Later):
            raise self.fails.error
        options.listener(Event("node", "totals", "aggregate", "delta", 10, 2, {"+A": 2}, 1, 0.25))
        options.listener(Event("node", "report", "output", "skip"))
        return self.result

    def verify(self, recompute: bool, engine: EngineOptions) -> list[dict[str, Any]]:
        self.calls.append(("verify", recompute))
        return [{"check": "fold", "node": "totals", "epoch": 3, "verdict": "ok" if recompute else "violation", "detail": "key 01"}]


class _Later(Exception):
    """An error that comes with the run, not with loading."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


@pytest.fixture
def application(monkeypatch: pytest.MonkeyPatch) -> Application:
    stand_in = Application()
    loader = create_autospec(errata.api.pipeline.load, side_effect=stand_in.load)
    monkeypatch.setattr(errata.api.pipeline, "load", loader)
    return stand_in


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import os

    for name in list(os.environ):
        if name.startswith(("ERRATA_", "CLINKER_")) or name == "NO_COLOR":
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def failing(application: Application) -> Callable[[BaseException], Application]:
    """Lets the next run fail."""

    def fail(error: BaseException) -> Application:
        application.fails = _Later(error)
        return application

    return fail


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[[str], tuple[int, str, str]]:
    """Runs one command: exit code, standard output, standard error."""

    def run(words: str) -> tuple[int, str, str]:
        code = main(words.split())
        output, errors = capsys.readouterr()
        return code, output, errors

    return run
