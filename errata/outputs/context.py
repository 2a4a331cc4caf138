"""The run for the outputs that it writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from errata.outputs.staged_files import StagedFiles
from errata.plan.own_files import ProtectedFiles
from errata.plan.plan import Plan
from storage.state.entry import Entry
from storage.state.ledger import Ledger
from storage.state.location import State


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """The epoch that a run commits if anything changes, and its ids."""

    epoch: int
    execution_id: str
    batch_id: str
    started: datetime


@dataclass(frozen=True, slots=True)
class OutputContext:
    """The run that writes outputs.

    Attributes:
        head: The ledger's entry that the run continues; None for a first run and for a full refresh.
        prior: The ledger's last entry, also that which a full refresh replaces.
        this_run: The run itself.
        protected: The places where nothing may be written.
        force: Whether files that another program wrote may be replaced.
        warn: Takes warnings.
        staged: The files that the run has made so far.
        restoring: Whether the files of the last run are only restored.
        reason: The reason of a manual correction that the run is; None for any other run.
        erases: Whether the run is an erasure, behind which nothing can follow op rows of before.
    """

    plan: Plan
    state: State
    head: Entry | None
    prior: Entry | None
    this_run: RunIdentity
    protected: ProtectedFiles
    force: bool
    warn: Callable[[str], None]
    staged: StagedFiles = field(default_factory=StagedFiles)
    restoring: bool = False
    reason: str | None = None
    erases: bool = False

    @property
    def followed_from(self) -> int:
        """The first epoch from which a table can be brought on by op rows: earlier ones were folded, or some were erased."""
        counters = self.head.counters if self.head is not None else {}
        return self.this_run.epoch if self.erases else max(int(counters.get("base", 0)), int(counters.get("erased", 0)))

    def history(self) -> Sequence[Entry]:
        """Every committed run, oldest first."""
        return Ledger(self.state.ledger).entries()

    def epochs(self) -> Sequence[tuple[int, datetime, str | None]]:
        """Every epoch with the begin of its run and the reason of a manual correction, this run's last."""
        known = {entry.epoch: (entry.started, entry.counters.get("reason")) for entry in (self.history() if self.head is not None else ()) if not entry.maintains}
        if not self.restoring:
            known[self.this_run.epoch] = (self.this_run.started, self.reason)
        return [(epoch, *facts) for epoch, facts in sorted(known.items())]

    @property
    def writer(self) -> RunIdentity | Entry:
        """The run whose rows are written: this one, or the last one where its files are only restored."""
        return self.head if self.restoring and self.head is not None else self.this_run
