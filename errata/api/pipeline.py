"""A loaded pipeline: `errata.load` returns one, commands and notebooks call it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cxl.types.types import parse_type
from errata.api.on_demand import (
    amendments,
    compact,
    correct,
    corrections,
    dlq,
    expectations,
    explain,
    forecast,
    next_run,
    report,
    restate,
    revert,
    runs,
    saved_correction,
    snapshot,
    verify,
    why,
)
from errata.core.diagnostics import Diagnostic, raise_errors
from errata.core.env_references import note_secret, process_environment
from errata.core.options import Correction, EngineOptions, LogFilter, Restatement, RunOptions
from errata.plan.own_files import ProtectedFiles, check_targets
from errata.plan.pipeline import LoadedPipeline
from errata.plan.plan import Plan
from errata.plan.planner import make_plan
from errata.plan.source_inputs import fetched_below
from errata.project.channels.files import find_channel, load_channel
from errata.project.channels.overlay import Overlay, apply
from errata.project.findings import Findings
from errata.project.variables import precision_of, read_value
from errata.project.workspace import Workspace, find_workspace
from errata.yaml import Document, read_yaml
from operators.core.settings import PipelineSettings
from storage.state.location import State, state_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from errata.core.events import RunResult
    from errata.inspect.forecast import Forecast
    from errata.inspect.next_run import Outlook
    from errata.inspect.snapshot import Snapshot
    from storage.state.entry import Entry

Row = Mapping[str, Any]


def load(
    path: str | Path,
    *,
    channel: str | Path | None = None,
    variables: Mapping[str, Any] | None = None,
    base_dir: str | Path | None = None,
    environment: str | None = None,
    rules_path: str | Path | None = None,
    allow_absolute_paths: bool = False,
    state: str | None = None,
) -> Pipeline:
    """Load and plan a pipeline file.

    `variables` override declared ones (`{"pipeline.cutoff": 10}`) with values of their types or texts of them, None is null; `base_dir` is where relative paths of the pipeline start.
    Raises PipelineErrors with every independent problem; nothing is read but the project's own files.
    """
    from cxl.typed.modules import Modules

    file = Path(path)
    variables_of_process = process_environment(environment)
    document = read_yaml(file, env=variables_of_process)
    findings = Findings(list(document.diagnostics))
    workspace = find_workspace(file)
    findings.diagnostics.extend(workspace.warnings)
    overlay = None if channel is None else _channel_overlay(channel, document, file, workspace.folder, environment)
    findings.diagnostics.extend(overlay.diagnostics if overlay else ())
    folder = Path(base_dir).resolve() if base_dir else file.resolve().parent
    rules = _rules_folder(rules_path, document.value, (folder, file.resolve().parent, workspace.folder))
    name = _pipeline_name(document.value)
    place = _state(name, workspace, state)
    given = dict(variables or {})
    settings = PipelineSettings(
        name, folder, fetched=fetched_below(place), connections=workspace.connections(variables_of_process), stores=workspace.stores(variables_of_process), allow_absolute_paths=allow_absolute_paths,
        channel=overlay.channel if overlay else None, modules=Modules.under(rules),
        source_defaults=_source_defaults(overlay, given) if overlay else {},
    )  # fmt: skip
    databases, stores = settings.connections.values(), settings.stores.connections
    for secret in chain(*(one.secrets() for one in databases), *(one.secrets() for one in stores)):
        note_secret(secret)
    plan = make_plan(document, settings, given, findings, environment=variables_of_process, layers=overlay.layers if overlay else {})
    plan = replace(plan, workspace=workspace, files=(file, *([Path(overlay.file)] if overlay else [])))
    findings.diagnostics.extend(check_targets(ProtectedFiles(plan, place, inputs=False), document))
    raise_errors(findings.diagnostics)
    return Pipeline(LoadedPipeline(plan, place, tuple(findings.diagnostics), document))


def stored(path: str | Path, state: str | None = None) -> Snapshot | None:
    """What the state of a pipeline tells although its file cannot be planned; None where no run of it was committed."""
    import re

    from errata.inspect.snapshot import Snapshot

    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(r"^pipeline:\s*(?:\n(?:[ \t]+.*\n)*?[ \t]+|\{(?:[^}]*,)?\s*)name:[ \t]*[\"']?([A-Za-z0-9_.-]+)", text, re.MULTILINE)
    if not found:
        return None
    place = _state(found[1], find_workspace(file), state)
    reading = Snapshot(found[1], place, None)
    return reading if reading.head is not None else None


def state_for(path: str | Path, state: str | None = None) -> State:
    """Where the state of a pipeline file is, whether the file can be planned or not. Raises PipelineErrors for a file that cannot be read."""
    file = Path(path)
    name = _pipeline_name(read_yaml(file, env=process_environment(None)).value)
    return _state(name, find_workspace(file), state)


def _state(name: str, workspace: Workspace, given: str | None) -> State:
    """Where the state of a pipeline is: what was given goes before the environment, that before the workspace's file."""
    return state_of(name, workspace.folder, named=given or os.environ.get("ERRATA_STATE") or None, configured=workspace.settings.state.path)


def _pipeline_name(value: Any) -> str:
    block = value.get("pipeline") if isinstance(value, dict) else None
    return str(block.get("name", "")) if isinstance(block, dict) else ""


def _rules_folder(given: str | Path | None, value: Any, folders: Sequence[Path]) -> Path:
    """`--rules-path`, else `pipeline.rules_path` below the first folder, else the first folder's `rules/` that exists."""
    if given is not None:
        return Path(given)
    block = value.get("pipeline") if isinstance(value, dict) else None
    configured = block.get("rules_path") if isinstance(block, dict) else None
    if isinstance(configured, str):
        return folders[0] / configured
    return next((place for folder in folders if (place := folder / "rules").is_dir()), folders[0] / "rules")


def _channel_overlay(channel: Any, document: Document, file: Path, workspace: Path, environment: str | None) -> Overlay:
    """A channel laid over the pipeline's document."""
    variables = process_environment(environment)
    loaded = load_channel(find_channel(channel, file, workspace, env=variables), env=variables)
    return apply(loaded, document, file, workspace, environment)


def _source_defaults(overlay: Overlay, given: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    """The defaults of `$source` variables that a channel gives to single sources, as values; it has checked them. The command line goes before it."""
    channels = {key: one for key, one in overlay.source_variables.items() if f"source.{key[1]}" not in given}
    return {key: read_value(default, parse_type(type_).base, precision_of(type_)) for key, (type_, default) in channels.items()}


class Pipeline:
    """A pipeline that was planned without errors: what `errata.load` gives, and what commands call."""

    def __init__(self, loaded: LoadedPipeline) -> None:
        self.loaded = loaded

    @property
    def plan(self) -> Plan:
        """The nodes in order."""
        return self.loaded.plan

    @property
    def state(self) -> State:
        """Where the tables and the ledger lie."""
        return self.loaded.state

    @property
    def diagnostics(self) -> Sequence[Diagnostic]:
        """Warnings of the plan."""
        return self.loaded.diagnostics

    @property
    def node_names(self) -> Sequence[str]:
        """All nodes in the plan's order."""
        return tuple(self.plan.nodes)

    @property
    def composition_outputs(self) -> Mapping[str, str]:
        """The nodes behind the ports of compositions (`name.port`), and behind the first port by the name alone."""
        return self.plan.outputs

    def head(self) -> Entry | None:
        """The ledger's last entry, None before the first run."""
        return self.loaded.head()

    def head_epoch(self) -> int | None:
        """The last committed epoch, None before the first."""
        head = self.head()
        return None if head is None else head.epoch

    def check(self) -> None:
        """Raise PipelineErrors where the pipeline writes over a file that a source reads; `load` does not look for those."""
        self.loaded.protected_files()

    # -- commands that commit an epoch

    def run(self, options: RunOptions | None = None) -> RunResult:
        """One run. Raises Failure; then the state is that of the last committed epoch."""
        return runs.run_pipeline(self.loaded, options or RunOptions())

    def correct(self, correction: Correction, options: RunOptions | None = None) -> tuple[Iterable[Row], RunResult]:
        """A manual correction as an epoch of its own: its effect (node, op, before, after) and the run. Raises Failure."""
        return amendments.amend_pipeline(self.loaded, correct.correction_of(self.plan, correction), options or RunOptions())

    def save_correction(self, correction: Correction, notes: Mapping[str, str | None] | None = None, *, dry: bool = False) -> saved_correction.Saved:
        """Write a correction into the files of the corrections node behind its source; nothing is committed. `notes`: author and ticket. Raises Usage."""
        return saved_correction.save(self.loaded, correction, notes or {}, dry=dry)

    def revert(self, epoch: int, options: RunOptions | None = None) -> RunResult:
        """Commit a new epoch with the sources' live rows of an earlier epoch. Raises Failure."""
        return amendments.amend_pipeline(self.loaded, revert.revert_to(self.loaded, epoch), options or RunOptions())[1]

    def dlq_retry(self, group: str, options: RunOptions) -> RunResult:
        """A run that admits the suppressed records again. Raises Usage where no group of that name is suppressed, and Failure."""
        dlq.require_suppressed(self.loaded, group)
        return runs.retry_suppressed(self.loaded, options)

    def compact(self, before: int | None = None, engine: EngineOptions = EngineOptions()) -> Iterable[Row]:  # noqa: B008 - frozen
        """Put small files together; fold the epochs before `before` into a base: table, files and rows before and after. Raises Failure."""
        return compact.compact(self.loaded, before, engine)

    # -- commands that look

    def snapshot(self) -> Snapshot:
        """The last committed epoch, read only."""
        return snapshot.Snapshot(self.loaded.name, self.state, self.plan)

    def live(self, node: str, at: int | None = None) -> DataFrame:
        """The live rows of a node, now or at an epoch: its data columns, in no particular order."""
        return self.snapshot().live(node, at)

    def changelog(self, node: str, epochs: tuple[int, int] | None = None) -> DataFrame:
        """The op rows of a node, of all committed epochs or from the first to the last named."""
        return self.snapshot().changelog(node, epochs)

    def status(self) -> Mapping[str, Any]:
        """The object of `errata status --format json`."""
        return self.snapshot().status()

    def runs(self) -> Iterable[Row]:
        """One row a committed run."""
        return self.snapshot().runs()

    def log(self, node: str, filters: LogFilter | None = None) -> Iterable[Row]:
        """Changelog rows of a node in changelog order."""
        return self.snapshot().log(node, filters or LogFilter())

    def show(self, node: str, at: int | None = None) -> Iterable[Row]:
        """Live rows in their order, data columns only."""
        return self.snapshot().show(node, at)

    def columns(self, node: str, form: str | None = None) -> Sequence[str]:
        """The columns of `show` or, in csv, of `log` in a form, also where no row has them."""
        return self.snapshot().columns(node, form)

    def diff(self, node: str, start: int, end: int) -> Iterable[Row]:
        """Net difference between two epochs by key: op, before, after."""
        return self.snapshot().diff(node, start, end)

    def why(self, node: str, conditions: Mapping[str, str]) -> Iterable[Row]:
        """The source records behind the live rows that meet the conditions, and the corrections of each."""
        return why.why(self.snapshot(), node, conditions)

    def restate(self, node: str, wanted: Restatement) -> Iterable[Row]:
        """What was published first for each period and what is said now, with the causes: one row a period, key and column that differs. Raises Usage."""
        return restate.restate(self.snapshot(), node, wanted)

    def corrections(self) -> Iterable[Row]:
        """Corrections as code, each with its state after the last run: node, state, place, key, column, from, to, reason, author, ticket, records."""
        return corrections.corrections(self.snapshot())

    def expectations(self) -> Iterable[Row]:
        """One row an expectation: expectation, severity, failing (rows), since (which epoch), expected, description."""
        return expectations.expectations(self.plan, self.snapshot().entries)

    def expectation_history(self, name: str | None = None) -> Iterable[Row]:
        """One row for each epoch that changed the number of failing rows of an expectation: epoch, finished, expectation, severity, failing.

        Args:
            name: The expectation (`orders.range_amount`); None: all.
        """
        return expectations.history(self.plan, self.snapshot().entries, name)

    def dlq_list(self) -> Iterable[Row]:
        """Rejected and suppressed records with their reasons and their source fields."""
        return dlq.entries(self.snapshot())

    def dlq_groups(self) -> Iterable[Row]:
        """Suppressed correlation groups with their triggers."""
        return dlq.groups(self.snapshot())

    def verify(self, recompute: bool = False, engine: EngineOptions = EngineOptions()) -> Iterable[Row]:  # noqa: B008 - frozen
        """check, node, epoch, verdict (`ok` or `violation`), detail."""
        return verify.verify(self.loaded, recompute, engine)

    def report(self) -> str:
        """One self-contained HTML page."""
        return report.report(self.plan, self.snapshot())

    def plan_next(self) -> Iterator[Row]:
        """What the next run would do: node, type, action, rows (that it goes through, None where only the run can say), reason."""
        return self.outlook().rows()

    def outlook(self) -> Outlook:
        """What the next run would do, and on which engine."""
        return next_run.Outlook.of(self.loaded)

    def forecast(self, options: RunOptions | None = None, nodes: Sequence[str] = (), rows: int = 20, state: State | None = None) -> Forecast:
        """What the next run would change in some nodes (none: all outputs), in rows and figures; it commits nothing.

        Args:
            options: The engine and the guards of the run.
            nodes: The nodes to look at.
            rows: How many changed rows of each are shown.
            state: The state of another pipeline file, whose outputs would change; None: the pipeline's own.

        Raises:
            Failure: The run would fail.
        """
        loaded = self.loaded if state is None else replace(self.loaded, state=state)
        return forecast.forecast(loaded, options or RunOptions(), nodes, rows)

    def explain_field(self, node: str, parameter: str) -> str:
        """Where the value of a composition's parameter comes from: default, call, channel default, channel fixed. Raises Usage."""
        return explain.explain_field(self.plan, node, parameter)

    def explain(self, format: str = "text") -> str:
        """The plan as `text`, `json` or `dot`."""
        return explain.explain(self.plan, format)
