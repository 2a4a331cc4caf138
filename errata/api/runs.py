"""Runs with their metrics, dry runs, ephemeral runs, retries of suppressed records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import finalize

from errata.api.frames import given_rows
from errata.api.results import CommittedRows
from errata.core.events import RunResult
from errata.core.options import RunOptions
from errata.execution.run import run
from errata.plan.own_files import ProtectedFiles
from errata.plan.pipeline import LoadedPipeline
from errata.state.triage_events import TriageEvent
from errata.telemetry.metrics import measured
from operators.core.settings import GivenRows


def run_pipeline(pipeline: LoadedPipeline, options: RunOptions) -> RunResult:
    """Run a pipeline.

    Raises:
        Failure: The state is that of the last committed epoch.
        PipelineErrors: The pipeline writes over a file that it reads.
    """
    protected = pipeline.protected_files()
    if options.dry_run:
        from errata.api.preview import dry_run  # only dry runs need it

        return dry_run(pipeline, options)
    if not options.ephemeral:
        return _measured_run(pipeline, options, protected)
    temporary = pipeline.with_temporary_state()
    try:
        return _measured_run(temporary, options, replace(protected, state=temporary.state))
    finally:
        temporary.state.forget()


def run_with_rows(pipeline: LoadedPipeline, options: RunOptions) -> RunResult:
    """A run whose result gives the rows of nodes. Raises Failure, PipelineErrors."""
    if options.dry_run:
        return run_pipeline(pipeline, options)
    if not options.ephemeral:
        return replace(run_pipeline(pipeline, options), reader=CommittedRows(pipeline))
    protected = pipeline.protected_files()
    temporary = pipeline.with_temporary_state()
    reader = CommittedRows(temporary)
    finalize(reader, temporary.state.forget)
    return replace(_measured_run(temporary, options, replace(protected, state=temporary.state)), reader=reader)


def run_on_rows(
    pipeline: LoadedPipeline, planned: Callable[[Mapping[str, GivenRows]], LoadedPipeline], inputs: Mapping[str, Any], options: RunOptions
) -> RunResult:
    """A run over rows that a program hands to sources.

    Args:
        pipeline: The pipeline.
        planned: Plans it over the rows.
        inputs: The rows by source.
        options: The options of the run.

    Raises:
        Failure: The state is that of the last committed epoch. Usage where the rows are no table, or not for a source.
    """
    with TemporaryDirectory(prefix="errata-rows-") as folder:
        head = None if options.ephemeral else pipeline.head()
        return run_with_rows(planned(given_rows(pipeline.plan, inputs, head, Path(folder))), options)


def retry_suppressed(pipeline: LoadedPipeline, options: RunOptions, decided: Sequence[TriageEvent] = ()) -> RunResult:
    """A run that admits the suppressed records again. `decided`: who wants it and why, where somebody says so. Raises Failure."""
    protected = pipeline.protected_files()
    return measured(pipeline, options, lambda heard: run(pipeline, heard, protected, retry=True, decided=decided))


def _measured_run(pipeline: LoadedPipeline, options: RunOptions, protected: ProtectedFiles) -> RunResult:
    return measured(pipeline, options, lambda heard: run(pipeline, heard, protected))
