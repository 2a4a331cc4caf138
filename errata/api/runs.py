"""Runs with their metrics, dry runs, ephemeral runs, retries of suppressed records."""

from __future__ import annotations

from dataclasses import replace

from errata.core.events import RunResult
from errata.core.options import RunOptions
from errata.execution.run import run
from errata.plan.own_files import ProtectedFiles
from errata.plan.pipeline import LoadedPipeline
from errata.telemetry.metrics import measured


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


def retry_suppressed(pipeline: LoadedPipeline, options: RunOptions) -> RunResult:
    """A run that admits the suppressed records again. Raises Failure."""
    return _measured_run(pipeline, options, pipeline.protected_files(), retry=True)


def _measured_run(pipeline: LoadedPipeline, options: RunOptions, protected: ProtectedFiles, *, retry: bool = False) -> RunResult:
    return measured(pipeline, options, lambda heard: run(pipeline, heard, protected, retry=retry))
