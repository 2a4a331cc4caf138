"""From a project and options to a run: dry runs, ephemeral and refreshed state, repair of what a crash left, the claim."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from errata.core.events import Event, RunResult
from errata.core.failures import Busy, StorageFailed
from errata.core.options import RunOptions

if TYPE_CHECKING:
    from errata.api.pipeline import Pipeline
    from errata.execution.run import Run
    from errata.plan.own_files import ProtectedFiles
    from storage.state.location import State
    from storage.state.lock import Claim

Made = TypeVar("Made", bound="Run")


def run(project: Pipeline, options: RunOptions) -> RunResult:
    """Run a project. Raises Failure; PipelineErrors where it would write over a file that it reads."""
    own = project.check()
    if options.dry_run:
        return dry_run(project, options)
    if options.ephemeral:
        temporary = project.ephemeral()
        try:
            return run_once(temporary, options, replace(own, state=temporary.state))
        finally:
            temporary.state.forget()
    return run_once(project, options, own)


def run_once(project: Pipeline, options: RunOptions, own: ProtectedFiles | None = None) -> RunResult:
    """One run, with its metrics where they are asked for. `own`: where nothing may be written. Raises Failure."""
    from errata.telemetry.metrics import measured

    return measured(project, options, lambda told: _run_once(project, told, own))


def _run_once(project: Pipeline, options: RunOptions, own: ProtectedFiles | None) -> RunResult:
    """One run under the pipeline's claim, after what a crash left is repaired. Raises Failure.

    A refresh leaves the state as it is until it commits: then it takes the place of all that stood.
    """
    from errata.execution.run import Run

    former = project.head() if options.full_refresh else None
    with exclusive(project, options, Run, own=own) as one:
        if former is not None:
            one.former, one.head = one.head, None
        return one.execute()


@contextmanager
def exclusive(project: Pipeline, options: RunOptions, make: Callable[..., Made], **settings: Any) -> Iterator[Made]:
    """A run that holds the pipeline's claim, on a state that is as the ledger says. Raises Failure."""
    from datetime import UTC, datetime

    from errata.core.uuid7 import uuid7
    from storage import durable
    from storage.errors import EngineUnavailable, LedgerMoved, Overtaken, StorageError
    from storage.state.ledger import Ledger

    started = datetime.now(UTC)
    name = uuid7(started)
    try:
        with durable.numbered_run(), _claimed(project.state, options, name) as claim, durable.guarding(claim.require), _Alone(claim):
            stopped = claim.leased and claim.taken_from is not None
            if stopped:
                Ledger(project.state.ledger).fence(name)
            one = make(project.plan, project.state, options, project.before(), started=started, execution_id=name, claim=claim, **settings)
            _require(one)
            if stopped:
                one.tables.fence()
            if stopped or needs_repair(one):
                repair(one)
            yield one
    except (Overtaken, LedgerMoved) as error:
        raise Busy("another run took this pipeline over", again=True) from error
    except EngineUnavailable as error:
        raise StorageFailed(error.reason, help="; or ".join(error.ways_out), details=error.log.splitlines(), again=error.again) from error
    except StorageError as error:
        raise StorageFailed(str(error)) from error


@dataclass(frozen=True, slots=True)
class _Alone:
    """Turns whatever goes wrong in a run that lost its claim into `Overtaken`: it may be the other run's doing."""

    claim: Claim

    def __enter__(self) -> None:
        """Nothing is to be done ahead of the run."""

    def __exit__(self, _kind: object, problem: BaseException | None, _trace: object) -> None:
        from storage.errors import Overtaken

        if isinstance(problem, Exception) and self.claim.lost:
            raise Overtaken(self.claim.place) from problem


def _require(one: Run) -> None:
    """Raise StorageError where the state is not what the last epoch committed; a refresh removes what is not."""
    from storage.state.integrity import require_ledger

    require_ledger(one.state, one.head)
    if one.head is None:
        return
    if one.options.full_refresh:
        one.tables.discard_damaged(one.head)
    else:
        one.tables.require(one.head)


def needs_repair(one: Run) -> bool:
    """Whether a run before this one did not commit and left rows behind."""
    known = one.head.tables if one.head else {}
    return one.state.exists() and any(version != known.get(path, 0) for path, version in one.tables.versions().items())


def repair(one: Run) -> None:
    """Take back what a run that was killed has left: rows, and files that were begun."""
    from errata.outputs.targets import Targets

    one.restore()
    for path in Targets.of(one.plan, one).files(one.standing):
        one.exports.sweep(path)


def dry_run(project: Pipeline, options: RunOptions) -> RunResult:
    """Validate only, or preview the first records of each source: nothing is written but the preview."""
    if options.preview is None:
        from errata.execution.ingest import look_at_sources

        try:
            look_at_sources(project.plan, {})
        except StorageFailed as error:
            return RunResult(exit_code=1, message=error.message)
        return RunResult(exit_code=0)
    from errata.api.preview import preview

    return preview(project, options)


@contextmanager
def _claimed(state: State, options: RunOptions, execution_id: str) -> Iterator[Claim]:
    """Hold the pipeline's claim; one run at a time. Raises Busy. A claim that cannot be let go ends with its lease: that is only a warning."""
    from storage.errors import StorageError
    from storage.state.lock import Held, claim

    state.prepare()
    try:
        held = claim(state, execution_id, wait=options.wait)
    except Held as other:
        raise Busy.held_by(str(other.owner)) from other
    try:
        yield held
    finally:
        try:
            held.release()
        except StorageError as error:
            options.listener(Event("warning", action=f"the claim was not let go, the next run may have to wait: {error}"))
