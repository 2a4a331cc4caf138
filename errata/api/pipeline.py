"""A loaded pipeline: `errata.load` returns one, commands and notebooks call it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from errata.api.on_demand import (
    amendments,
    booked,
    compact,
    correct,
    corrections,
    dataset_export,
    dlq,
    erasure_check,
    expectations,
    explain,
    forecast,
    letter_sheets,
    next_run,
    repairs,
    report,
    restate,
    results,
    revert,
    runs,
    saved_correction,
    snapshot,
    triage,
    verify,
    why,
)
from errata.core.diagnostics import Diagnostic, did_you_mean
from errata.core.env_references import process_environment
from errata.core.failures import Usage
from errata.core.options import (
    Correction,
    EngineKind,
    EngineOptions,
    Erasure,
    LetterChoice,
    LetterDecision,
    LogFilter,
    RepairNotes,
    Restatement,
    RunOptions,
)
from errata.plan.loader import Choices, open_pipeline, pipeline_name, state_place
from errata.plan.pipeline import LoadedPipeline
from errata.plan.plan import Plan
from errata.plan.reached_tables import reach
from errata.project.texts import SAVED, Texts
from errata.project.workspace import find_workspace
from errata.yaml import read_yaml
from operators.core.settings import GivenRows
from storage.state.location import State

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from errata.amend.erase import Erased
    from errata.amend.erasure_check import Checked
    from errata.core.events import RunResult
    from errata.core.node_rows import NodeRows
    from errata.inspect.forecast import Forecast
    from errata.inspect.next_run import Outlook
    from errata.inspect.snapshot import Snapshot
    from storage.state.entry import Entry

Row = Mapping[str, Any]
BUILT = "<pipeline>"
"""The name of a pipeline that is built in Python, in the place of a file's."""


def load(
    path: str | Path | Mapping[str, Any],
    *,
    channel: str | Path | None = None,
    variables: Mapping[str, Any] | None = None,
    base_dir: str | Path | None = None,
    environment: str | None = None,
    rules_path: str | Path | None = None,
    allow_absolute_paths: bool = False,
    state: str | None = None,
) -> Pipeline:
    """Load and plan a pipeline file, or a pipeline that is built in Python.

    Args:
        path: The file, or a map with the keys of a pipeline file. Problems of a map have places in its JSON text.
        channel: A channel, by path or name.
        variables: Overrides of declared variables (`{"pipeline.cutoff": 10}`), as values of their types or texts of these; None is null.
        base_dir: Where relative paths of the pipeline start; by default the folder of the file, of a map the working directory.
        environment: The active environment, as `--env`.
        rules_path: The folder of CXL modules.
        allow_absolute_paths: Whether paths may be absolute.
        state: The place of the state.

    Raises:
        PipelineErrors: With every independent problem; nothing is read but the project's own files.
    """
    file, texts = _opened(path, base_dir)
    choices = Choices(channel, variables, base_dir, environment, rules_path, allow_absolute_paths, state, texts)

    def planned(rows: Mapping[str, GivenRows]) -> LoadedPipeline:
        opened = open_pipeline(file, replace(choices, given=rows))
        return opened.loaded(opened.draft())

    return Pipeline(planned({}), planned)


def _opened(path: str | Path | Mapping[str, Any], base_dir: str | Path | None) -> tuple[Path, Texts]:
    """A pipeline file with how it is read; of a map its JSON text, with a path that is no file. Raises TypeError for values that a pipeline lacks."""
    if not isinstance(path, Mapping):
        return Path(path), SAVED
    file = (Path(base_dir) if base_dir else Path.cwd()) / BUILT
    return file, Texts({os.path.abspath(file): json.dumps(path, indent=2, ensure_ascii=False, default=_as_text) + "\n"})  # noqa: PTH100 - as the texts are looked up


def _as_text(value: Any) -> str:
    """Dates, times and paths of a pipeline that is built in Python. Raises TypeError for other values."""
    if isinstance(value, date | PurePath):
        return value.isoformat() if isinstance(value, date) else str(value)
    raise TypeError(f"a pipeline has texts, numbers, lists and maps, no {type(value).__name__}")


def run(
    path: str | Path | Mapping[str, Any], inputs: Mapping[str, Any] | None = None, *, engine: EngineKind | None = None, full_refresh: bool = False, ephemeral: bool = False, **settings: Any
) -> RunResult:
    """Load a pipeline and run it: `errata.load(path, **settings).run(inputs=inputs, engine=engine, ...)`. Raises PipelineErrors, Failure."""
    return load(path, **settings).run(inputs=inputs, engine=engine, full_refresh=full_refresh, ephemeral=ephemeral)


def stored(path: str | Path, state: str | None = None) -> Snapshot | None:
    """Return the last committed state of a pipeline whose file cannot be planned. None where no run of it was committed."""
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
    place = _reached_state(found[1], file, state)
    reading = Snapshot(found[1], place, None)
    return reading if reading.head is not None else None


def state_for(path: str | Path, state: str | None = None) -> State:
    """Where the state of a pipeline file is, whether the file can be planned or not. Raises PipelineErrors for a file that cannot be read."""
    file = Path(path)
    name = pipeline_name(read_yaml(file, env=process_environment(None)).value)
    return _reached_state(name, file, state)


def _reached_state(name: str, file: Path, state: str | None) -> State:
    """Where the state of a pipeline is. This process reaches it as its connection says. Raises PipelineErrors (E602)."""
    workspace = find_workspace(file)
    place = state_place(name, workspace, state)
    reach([] if place.connection is None else [place.connection], workspace)
    return place


class Pipeline:
    """A pipeline that was planned without errors: what `errata.load` gives, and what commands call."""

    def __init__(self, loaded: LoadedPipeline, planned: Callable[[Mapping[str, GivenRows]], LoadedPipeline] | None = None) -> None:
        self._loaded = loaded
        self._planned = planned

    @classmethod
    def from_dict(cls, definition: Mapping[str, Any], **settings: Any) -> Pipeline:
        """A pipeline that is built in Python: a map with the keys of a pipeline file. `settings`: as in `errata.load`. Raises PipelineErrors."""
        return load(definition, **settings)

    @property
    def loaded(self) -> LoadedPipeline:
        """The plan and its state, which this process reaches by the pipeline's own connections, whatever was loaded since."""
        return self._loaded.reached()

    @property
    def plan(self) -> Plan:
        """The nodes in order."""
        return self._loaded.plan

    @property
    def state(self) -> State:
        """Where the tables and the ledger lie."""
        return self._loaded.state

    @property
    def diagnostics(self) -> Sequence[Diagnostic]:
        """Warnings of the plan."""
        return self._loaded.diagnostics

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

    def run(
        self, options: RunOptions | None = None, *, inputs: Mapping[str, Any] | None = None, engine: EngineKind | None = None, full_refresh: bool | None = None,
        ephemeral: bool | None = None,
    ) -> RunResult:  # fmt: skip
        """One run.

        Args:
            options: The options of `errata run`.
            inputs: Rows for sources, by name, in place of what these read: DataFrames of pandas, Polars, Arrow or Spark, or lists of maps.
            engine: `sail`, `spark` or `auto`; goes before `options`.
            full_refresh: Whether everything is computed anew; goes before `options`.
            ephemeral: Whether the state goes once the result is let go of; goes before `options`.

        Raises:
            Failure: The state is that of the last committed epoch.
        """
        wanted = options or RunOptions()
        wanted = replace(
            wanted, engine=wanted.engine if engine is None else replace(wanted.engine, engine=engine),
            full_refresh=wanted.full_refresh if full_refresh is None else full_refresh, ephemeral=wanted.ephemeral if ephemeral is None else ephemeral,
        )  # fmt: skip
        if not inputs:
            return runs.run_with_rows(self.loaded, wanted)
        if self._planned is None:
            raise Usage("this pipeline was derived from another one, so its sources cannot be given rows")
        return runs.run_on_rows(self.loaded, self._planned, inputs, wanted)

    def rows(self, node: str, at: int | None = None) -> NodeRows:
        """The live rows of a node in their order, now or at an epoch, for pandas, Polars, Arrow, Spark or a notebook. Raises Usage when they are read before the first run."""
        return results.CommittedRows(self.loaded).live(self._known(node), at)

    def changes(self, node: str, epoch: int | None = None) -> NodeRows:
        """The op rows of a node in their order, of all epochs or of one, likewise."""
        return results.CommittedRows(self.loaded).changes(self._known(node), epoch)

    def _known(self, node: str) -> str:
        """A node, or the one behind a port of a composition. Raises Usage."""
        known = self.composition_outputs.get(node, node) if node not in self.plan.nodes else node
        if known not in self.plan.nodes:
            raise Usage(f"the pipeline has no node '{node}'", help=did_you_mean(node, self.node_names))
        return known

    def correct(self, correction: Correction, options: RunOptions | None = None) -> tuple[Iterable[Row], RunResult]:
        """Commit a manual correction as an epoch of its own. Returns its effect (rows of node, op, before, after) and the run. Raises Failure."""
        return amendments.amend_pipeline(self.loaded, correct.correction_of(self.plan, correction), options or RunOptions())

    def save_correction(self, correction: Correction, notes: Mapping[str, str | None] | None = None, *, dry: bool = False) -> saved_correction.Saved:
        """Write a correction into the files of the corrections node behind its source; nothing is committed. `notes`: author and ticket. Raises Usage."""
        return saved_correction.save(self.loaded, correction, notes or {}, dry=dry)

    def revert(self, epoch: int, options: RunOptions | None = None) -> RunResult:
        """Commit a new epoch with the sources' live rows of an earlier epoch. Raises Failure."""
        return amendments.amend_pipeline(self.loaded, revert.revert_to(self.loaded, epoch), options or RunOptions())[1]

    def erase(self, erasure: Erasure, options: RunOptions | None = None) -> Erased:
        """Erase records with all that was derived from them, in an epoch of its own. Raises Failure.

        Returns:
            What left, by table (`rows`), what the search behind it found (`proof`), the run (`result`), and the nodes that were exported as datasets (`published`).
        """
        return amendments.erase_records(self.loaded, erasure, options or RunOptions())

    def erase_check(self, key: Mapping[str, str], texts: Sequence[str] = ()) -> Checked:
        """Search the state and the outputs for values. Raises Usage before the first run.

        Args:
            key: Values by column, as an erasure names them.
            texts: Texts that are found wherever they are.
        """
        return erasure_check.check(self.loaded, key, texts)

    def dlq_retry(self, group: str, options: RunOptions, reason: str = "", author: str = "") -> RunResult:
        """A run that admits the suppressed records again.

        Args:
            group: The group that is asked for.
            options: The options of the run. With `reopen` rows of closed periods may change.
            reason: Why; kept with the author and the time, also where the run changes nothing.
            author: Who wants it; empty: the user of the operating system.

        Raises:
            Failure: Usage where no group of that name is suppressed.
        """
        dlq.require_suppressed(self.loaded, group)
        return runs.retry_suppressed(self.loaded, options, triage.retried(group, reason, author))

    def dlq_decide(self, choice: LetterChoice, decision: LetterDecision, options: RunOptions | None = None) -> RunResult:
        """Assign or waive entries of the DLQ, or take a waiver back, in an epoch of its own. Raises Usage where nothing would change, and Failure."""
        change = triage.decide(self.snapshot(), choice, decision)
        return amendments.amend_pipeline(self.loaded, change, options or RunOptions())[1]

    def dlq_import(self, sheet: Path, notes: RepairNotes, *, dry: bool = False) -> Iterable[Row]:
        """Write corrections for the cells that people changed in an exported table; nothing is committed. A row for each changed cell. Raises Usage."""
        return repairs.Repairs.of(self.loaded, self.snapshot(), notes).take(sheet, dry=dry)

    def compact(self, before: int | None = None, engine: EngineOptions = EngineOptions()) -> Iterable[Row]:  # noqa: B008 - frozen
        """Put small files together; fold the epochs before `before` into a base: table, files and rows before and after. Raises Failure."""
        return compact.compact(self.loaded, before, engine)

    # -- commands that look

    def snapshot(self) -> Snapshot:
        """The last committed epoch, read only."""
        loaded = self.loaded
        return snapshot.Snapshot(loaded.name, loaded.state, loaded.plan)

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
        """Return the net difference between two epochs by key: op, before, after."""
        return self.snapshot().diff(node, start, end)

    def why(self, node: str, conditions: Mapping[str, str]) -> Iterable[Row]:
        """Return the source records behind the live rows that meet the conditions, and the corrections of each."""
        return why.why(self.snapshot(), node, conditions)

    def restate(self, node: str, wanted: Restatement) -> Iterable[Row]:
        """Compare what was published first for each period with now. Yields one row a period, key and column that differs, with the causes. Raises Usage."""
        return restate.restate(self.snapshot(), node, wanted)

    def booked(self, output: str | None = None, at: int | None = None) -> Iterable[Row]:
        """The booked rows of outputs: output, as, period, into, row, figures, epoch, causes, reason. Raises Usage for an output that books nothing."""
        return booked.booked(self.snapshot(), output, at)

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

    def dlq_triage(self, choice: LetterChoice | None = None) -> Iterable[Row]:
        """Entries of the DLQ, oldest first, with what triage knows of them. Raises Usage for a name that no entry has."""
        return dlq.triage_entries(self.snapshot(), choice or LetterChoice())

    def dlq_triage_groups(self, choice: LetterChoice | None = None) -> Iterable[Row]:
        """Suppressed groups, oldest first, with what triage knows of them. Raises Usage for a name that no entry has."""
        return dlq.triage_groups(self.snapshot(), choice or LetterChoice())

    def dlq_export(self, path: Path, choice: LetterChoice | None = None) -> int:
        """Write entries of the DLQ as a CSV file or a workbook, and return their number. Raises Usage, LibraryMissing."""
        return letter_sheets.export(self.snapshot(), choice or LetterChoice(), path)

    def dlq_history(self) -> Iterable[Row]:
        """Return the decisions of people about dead letters, newest first."""
        return dlq.history(self.snapshot())

    def verify(self, recompute: bool = False, engine: EngineOptions = EngineOptions()) -> Iterable[Row]:  # noqa: B008 - frozen
        """check, node, epoch, verdict (`ok` or `violation`), detail."""
        return verify.verify(self.loaded, recompute, engine)

    def export_odf(self, node: str, folder: str | Path, *, name: str | None = None, event_time: str | None = None) -> Iterable[Row]:
        """Write a node as a dataset of Open Data Fabric, or add to it the epochs that it lacks.

        Args:
            node: The node.
            folder: The directory of the dataset.
            name: The name under which it is known, as `name` or `account/name`.
            event_time: The column with the event time; None for that of the watermark, or the begin of the runs.

        Returns:
            One row a new block of data: epoch, rows, first_offset, last_offset, block, kind.

        Raises:
            Failure: Nothing was changed.
        """
        return dataset_export.export_dataset(self.snapshot(), self._known(node), Path(folder), alias=name, event_time=event_time).added

    def report(self) -> str:
        """One self-contained HTML page. Raises LibraryMissing without the extra `ui`."""
        return report.report(self.loaded, self.snapshot())

    def plan_next(self) -> Iterator[Row]:
        """Return the next run, one row a node: node, type, action, rows, reason. `rows` is the number that it goes through, None where only the run can say."""
        return self.outlook().rows()

    def outlook(self) -> Outlook:
        """Return the next run and its engine."""
        return next_run.Outlook.of(self.loaded)

    def forecast(self, options: RunOptions | None = None, nodes: Sequence[str] = (), rows: int = 20, state: State | None = None) -> Forecast:
        """Compute what the next run would change in nodes, in rows and figures. Nothing is committed.

        Args:
            options: The engine and the guards of the run.
            nodes: The nodes to look at.
            rows: How many changed rows of each are shown.
            state: The state of another pipeline file, whose outputs would change; None: the pipeline's own.

        Raises:
            Failure: The run would fail.
        """
        loaded = (self._loaded if state is None else replace(self._loaded, state=state)).reached()
        return forecast.forecast(loaded, options or RunOptions(), nodes, rows)

    def explain_field(self, node: str, parameter: str) -> str:
        """Where the value of a composition's parameter comes from: default, call, channel default, channel fixed. Raises Usage."""
        return explain.explain_field(self.plan, node, parameter)

    def explain(self, format: str = "text") -> str:
        """The plan as `text`, `json` or `dot`."""
        return explain.explain(self.plan, format)
