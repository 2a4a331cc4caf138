"""Amendments with their metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from errata.amend.amendment import Change, amend
from errata.core.events import RunResult
from errata.core.options import RunOptions
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
