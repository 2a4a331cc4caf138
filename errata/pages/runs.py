"""Run history with durations, and the plan of the next run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from errata.core.diagnostics import PipelineErrors
from errata.core.failures import Failure
from errata.core.options import EngineOptions
from errata.inspect.history import History
from errata.inspect.next_run import Outlook
from errata.pages.charts import Chart, bars
from errata.pages.overview import op_texts
from errata.pages.paging import Part, cut_out
from errata.pages.values import paragraphs, short
from errata.plan.pipeline import LoadedPipeline
from errata.state.tally import Tally
from storage.state.entry import Entry

RUNS = 50


@dataclass(frozen=True, slots=True)
class RunLine:
    """A committed run."""

    epoch: int
    started: str
    seconds: float
    kind: str
    reason: str
    exit_code: int
    execution_id: str
    change: tuple[tuple[str, str], ...]
    rejected: int


@dataclass(frozen=True, slots=True)
class Runs:
    """Committed runs, the newest first."""

    rows: tuple[RunLine, ...]
    durations: Chart | None
    part: Part


@dataclass(frozen=True, slots=True)
class NextRun:
    """The plan of the next run.

    Attributes:
        engine: The engine and why it is this one; empty where none is needed.
        rows: One row a node.
        idle: Whether there is nothing to do.
        stopped: Why the run would stop although no row changes; empty where it would not.
        problem: Why there is no plan; empty where there is one.
    """

    engine: str
    rows: tuple[Mapping[str, Any], ...]
    idle: bool
    stopped: str = ""
    problem: str = ""


def runs(history: History, wanted: int = 1) -> Runs:
    """Return one page of runs."""
    which, shown = cut_out(list(reversed(history.runs())), RUNS, wanted)
    lines = tuple(map(_line, shown))
    seconds = {one.epoch: {"seconds": one.seconds} for one in reversed(lines)}
    return Runs(lines, bars("Seconds of each run", seconds, {entry.epoch: entry.started for entry in shown}, 160), which)


def _line(entry: Entry) -> RunLine:
    ops = {op: sum(int(one.get(op, 0) or 0) for one in entry.nodes.values()) for op in ("+A", "-R", "+C")}
    counters = entry.counters
    seconds = round((entry.finished - entry.started).total_seconds(), 2)
    return RunLine(
        entry.epoch, f"{entry.started:%Y-%m-%d %H:%M:%S}", seconds, str(counters.get("kind", "run")), short(str(counters.get("reason", ""))),
        entry.exit_code, entry.execution_id, op_texts(ops), Tally.noted(counters).open,
    )  # fmt: skip


def next_run(loaded: LoadedPipeline) -> NextRun:
    """Return what the next run would do; no engine is started for it."""
    try:
        loaded.protected_files()
        outlook = Outlook.of(loaded)
        rows = tuple({**row, "reason": short(row["reason"], 300)} for row in outlook.rows())
        chosen = outlook.engine(EngineOptions())
        stopped = paragraphs(outlook.stopped(), 5_000)
    except Failure as problem:
        return NextRun("", (), idle=False, problem=paragraphs(problem.message, 5_000))
    except PipelineErrors as errors:
        return NextRun("", (), idle=False, problem=paragraphs("; ".join(one.message for one in errors.diagnostics), 5_000))
    return NextRun("" if chosen is None else f"{chosen[0]} ({chosen[1]})", rows, idle=chosen is None, stopped=stopped)
