"""A stand-in for the application behind the command line: it answers with fixed rows and notes what it was asked."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from errata.cli import main
from errata.core.diagnostics import Diagnostic
from errata.core.options import EngineOptions, Event, RunOptions, RunResult

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
class Outlook:
    """What the next run would do."""

    shown: list[dict[str, Any]]

    def rows(self) -> list[dict[str, Any]]:
        return self.shown

    def engine(self, options: EngineOptions) -> tuple[str, str]:
        return options.engine, "as it was asked for"


@dataclass
class Application:
    """Records the calls; `fails` is raised by the next one, `result` is what a run gives."""

    calls: list[tuple[str, Any]] = field(default_factory=list)
    fails: BaseException | None = None
    result: RunResult = field(
        default_factory=lambda: RunResult(0, epoch=4, counts={"totals": {"+A": 2, "-R": 1}}, seconds=0.5, committed=True)
    )
    epoch: int | None = 3
    diagnostics: tuple[Diagnostic, ...] = ()
    node_names: tuple[str, ...] = ("orders", "totals", "report")
    composition_outputs: Mapping[str, str] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=lambda: [{"id": 1, "name": "a\x1b[31mb", "total": 1.5}, {"id": 22, "name": None, "total": 10.0}])

    def load(self, path: Path, **settings: Any) -> "Application":
        self.calls.append(("load", (str(path), settings)))
        if self.fails is not None and not isinstance(self.fails, _Later):
            raise self.fails
        return self

    def head_epoch(self) -> int | None:
        return self.epoch

    def run(self, options: RunOptions) -> RunResult:
        self.calls.append(("run", options))
        if isinstance(self.fails, _Later):
            raise self.fails.error
        options.listener(Event("node", "totals", "aggregate", "delta", 10, 2, {"+A": 2}, 1, 0.25))
        options.listener(Event("node", "report", "output", "skip"))
        return self.result

    def verify(self, recompute: bool, engine: Any) -> list[dict[str, Any]]:
        self.calls.append(("verify", recompute))
        return [{"check": "fold", "node": "totals", "epoch": 3, "verdict": "ok" if recompute else "violation", "detail": "key 01"}]

    def columns(self, node: str, form: str | None = None) -> list[str]:
        return []

    def status(self) -> dict[str, Any]:
        return STATUS

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def answer(*words: Any) -> Any:
            self.calls.append((name, words))
            if name.startswith("explain"):
                return f"{name} {words}\n"
            if name == "runs":
                return RUNS
            if name in ("plan_next", "outlook"):
                rows = [{"node": node, "type": type_, "action": action, "reason": why} for node, type_, action, why in NEXT]
                return rows if name == "plan_next" else Outlook(rows)
            if name == "dlq_groups":
                return [{"group": group, "source": "orders", "records": 2} for group in ("A", "B")]
            if name in ("dlq_retry", "revert"):
                return self.result
            if name == "correct":
                return [{"node": "totals", "op": "-C", "before": {"a": 1}, "after": None}], self.result
            return (
                "<html></html>"
                if name == "report"
                else self.rows
            )

        return answer


class _Later(Exception):
    """An error that comes with the run, not with loading."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


@pytest.fixture
def application(monkeypatch: pytest.MonkeyPatch) -> Application:
    stand_in = Application()
    module = ModuleType("errata.api.pipeline")
    module.load = stand_in.load  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "errata.api.pipeline", module)
    monkeypatch.setattr("errata.api.pipeline", module, raising=False)
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
