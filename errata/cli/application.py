"""What the command line asks of a loaded project. `errata.api.pipeline.load` gives one; rows are plain maps of column to value."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from errata.core.diagnostics import Diagnostic
from errata.core.options import Correction, EngineOptions, LogFilter, RunOptions, RunResult

Row = Mapping[str, Any]


class Outlook(Protocol):
    """What the next run would do."""

    def rows(self) -> Iterable[Row]:
        """node, type, action, reason."""

    def engine(self, options: EngineOptions) -> tuple[str, str] | None:
        """The engine and why it is this one; None where the run needs none."""


class Pipeline(Protocol):
    """A pipeline that was loaded and planned without errors."""

    @property
    def diagnostics(self) -> Sequence[Diagnostic]:
        """The warnings of loading it."""

    @property
    def node_names(self) -> Sequence[str]:
        """All nodes in the plan's order."""

    @property
    def composition_outputs(self) -> Mapping[str, str]:
        """The nodes behind the ports of compositions (`name.port`), and behind the first port by the name alone."""

    def head_epoch(self) -> int | None:
        """The last committed epoch, None before the first; starts no engine."""

    def check(self) -> object:
        """Raise PipelineErrors where the pipeline writes over a file that a source reads."""

    def run(self, options: RunOptions) -> RunResult:
        """One run. Raises Failure, PipelineErrors, OSError."""

    def explain(self, format: str) -> str:
        """The plan as `text`, `json` or `dot`."""

    def explain_field(self, node: str, parameter: str) -> str:
        """Where the value of a composition's parameter comes from."""

    def plan_next(self) -> Iterable[Row]:
        """node, type, action, reason of the next run."""

    def outlook(self) -> Outlook:
        """The same rows, and the engine of the next run."""

    def status(self) -> Mapping[str, Any]:
        """The object of CONTRACT.md, "`errata status --format json`"."""

    def runs(self) -> Iterable[Row]:
        """One row a committed run: epoch, started, finished, execution_id, counts, exit_code."""

    def log(self, node: str, filters: LogFilter) -> Iterable[Row]:
        """Changelog rows as CONTRACT.md says, in changelog order."""

    def show(self, node: str, at: int | None) -> Iterable[Row]:
        """Live rows, data columns only."""

    def columns(self, node: str, form: str | None = None) -> Sequence[str]:
        """The columns of `show` or, in csv, of `log` in a form."""

    def diff(self, node: str, start: int, end: int) -> Iterable[Row]:
        """op, before, after by key."""

    def why(self, node: str, conditions: Mapping[str, str]) -> Iterable[Row]:
        """The source records and corrections behind the live rows that meet the conditions."""

    def dlq_list(self) -> Iterable[Row]:
        """Rejected and suppressed records."""

    def dlq_groups(self) -> Iterable[Row]:
        """Suppressed correlation groups with their triggers."""

    def dlq_retry(self, group: str, options: RunOptions) -> RunResult:
        """A run that admits the group again."""

    def verify(self, recompute: bool, engine: EngineOptions) -> Iterable[Row]:
        """check, node, epoch, verdict (`ok` or `violation`), detail."""

    def correct(self, correction: Correction, options: RunOptions) -> tuple[Iterable[Row], RunResult]:
        """A correction by hand: its effect as diff rows with their node, and the run."""

    def revert(self, epoch: int, options: RunOptions) -> RunResult:
        """A new epoch that restores an earlier state."""

    def compact(self, before: int | None, engine: EngineOptions) -> Iterable[Row]:
        """table, files and rows before and after."""

    def report(self) -> str:
        """One self-contained HTML page."""


class Loader(Protocol):
    """The signature of `errata.api.pipeline.load`."""

    def __call__(
        self,
        path: str | Path,
        *,
        channel: str | Path | None = None,
        variables: Mapping[str, str] | None = None,
        base_dir: str | Path | None = None,
        environment: str | None = None,
        rules_path: str | Path | None = None,
        allow_absolute_paths: bool = False,
        state: str | None = None,
    ) -> Pipeline:
        """Load and plan. Raises PipelineErrors."""
