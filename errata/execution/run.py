"""A run: plan its steps, execute them inside an `Epoch`.

What computes rows is imported only where there is work: a run that finds nothing new takes a fraction of a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import cast

from errata.core.events import RunResult
from errata.core.options import RunOptions
from errata.execution.epoch import Epoch
from errata.execution.expectations import stop_unchanged
from errata.execution.guards import judge_unchanged
from errata.execution.inputs import FileInputs
from errata.execution.local_copies import copies_of
from errata.execution.planned_run import PlannedRun
from errata.plan.own_files import ProtectedFiles
from errata.plan.pipeline import LoadedPipeline
from errata.state.triage_events import TriageEvent
from storage.state.entry import Entry


def run(
    pipeline: LoadedPipeline, options: RunOptions, protected: ProtectedFiles | None = None, *, retry: bool = False, decided: Sequence[TriageEvent] = ()
) -> RunResult:
    """Run a pipeline on its state.

    Args:
        pipeline: The pipeline.
        options: What the command asks for. Dry and ephemeral runs are made by `errata.api.runs`.
        protected: The places where nothing may be written, where they are known.
        retry: Whether suppressed records are tried again although nothing else changed.
        decided: What somebody decided about dead letters; the epoch keeps it.

    Raises:
        Failure: The run failed; the state is that of the last committed epoch.
    """
    with Epoch.begin(pipeline, options, protected) as epoch, closing(FileInputs(epoch)) as inputs:
        planned = PlannedRun.of(epoch, inputs, retry=retry, decided=decided)
        planned.announce()
        if not planned.steps.any_work:
            judge_unchanged(epoch.plan, options, cast("Entry", epoch.head))
            stop_unchanged(epoch.plan, epoch.head)
            if planned.files_intact:
                return planned.unchanged()
        from errata.execution.step_executor import StepExecutor

        if not planned.steps.any_work:
            return StepExecutor(planned).restore_outputs()
        with copies_of(epoch.plan, planned.sources) as copies:
            inputs.copies = copies
            result = StepExecutor(planned).execute()
            copies.clean = result.exit_code == 0
            return result
