"""Amendments with their metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from errata.amend.amendment import Change, amend
from errata.amend.erase import Erased, erase
from errata.core.events import RunResult
from errata.core.options import Erasure, RunOptions
from errata.plan.pipeline import LoadedPipeline
from errata.telemetry.metrics import measured

Row = Mapping[str, Any]


def amend_pipeline(pipeline: LoadedPipeline, change: Change, options: RunOptions) -> tuple[list[Row], RunResult]:
    """Commit a change as an epoch of its own; a dry one leaves no metrics.

    Returns:
        The net changes (node, op, before, after), and the result of the run.

    Raises:
        Failure: Nothing was committed.
    """
    protected = pipeline.protected_files()
    if options.dry_run:
        return amend(pipeline, change, options, protected)
    effect: list[Row] = []

    def amended(heard: RunOptions) -> RunResult:
        rows, result = amend(pipeline, change, heard, protected)
        effect.extend(rows)
        return result

    return effect, measured(pipeline, options, amended)


def erase_records(pipeline: LoadedPipeline, wanted: Erasure, options: RunOptions) -> Erased:
    """Erase records as an epoch of its own; a dry one leaves no metrics.

    Raises:
        Failure: Nothing was committed, or the next run ends the erasure.
    """
    protected = pipeline.protected_files()
    done: list[Erased] = []

    def run(heard: RunOptions) -> RunResult:
        done.append(erase(pipeline, wanted, heard, protected))
        return done[0].result

    run(options) if options.dry_run else measured(pipeline, options, run)
    return done[0]
