"""The unit of work: it holds the claim, repairs what a crash left, stages tables and files, and commits or undoes them.

A run, a correction, a revert, a retry, a compaction and a recomputation each are one `Epoch`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import monotonic
from typing import Any

from errata.core.events import Event
from errata.core.failures import Busy, StorageFailed
from errata.core.options import RunOptions
from errata.core.uuid7 import uuid7
from errata.erasure.record import ERASURES, FOLLOWS, PENDING, PROOF, RECORD, made_key, records_of, require_key, signed
from errata.erasure.removal import Removal
from errata.erasure.values import Values
from errata.outputs.context import OutputContext, RunIdentity
from errata.outputs.database_targets import CHAINS
from errata.outputs.staged_files import StagedFiles
from errata.outputs.targets import Targets
from errata.plan.own_files import ProtectedFiles
from errata.plan.pipeline import LoadedPipeline
from errata.plan.plan import Plan
from errata.state.node_tables import Tables
from errata.state.tally import NOTED
from errata.state.triage_events import TRIAGE
from storage import durable
from storage.delta.old_versions import remove_old_versions
from storage.durable import undoing
from storage.errors import EngineUnavailable, LedgerMoved, Overtaken, StorageError
from storage.process_folders import purge
from storage.state.entry import CARRIED, Entry, chained
from storage.state.integrity import anchor_ledger, require_ledger, seal_tables, seal_whole
from storage.state.ledger import Ledger
from storage.state.location import State
from storage.state.lock import Claim, Held, claim
from storage.state.occupied import note_occupied
from storage.stores.client import StoreFailed
from storage.stores.folders import folder_at


@dataclass(slots=True)
class Epoch:
    """An epoch under way. Readers see nothing of it before `commit`.

    Attributes:
        head: The ledger's entry that it continues; None for the first run and for a full refresh.
        replaced: The entry that a full refresh replaces; its rows and files stay until the commit.
        execution_id: The id of this run; tables carry it as their writer.
        staged: Files that are made beside their targets.
        protected: The places where nothing may be written.
        erases: Whether it is an erasure: it is committed whatever changed, and all outputs are written anew.
        rewritten: The entries before, as an erasure writes them anew; None for all other epochs.
        erased: The values of an erasure that ends with this epoch, which a search looks for.
        scrubbed: By node the epochs whose op rows an erasure changed.
        committed: The entry that was committed.
        ledger_began: The version of the ledger's table at the begin.
    """

    pipeline: LoadedPipeline
    options: RunOptions
    claim: Claim
    ledger: Ledger
    head: Entry | None
    execution_id: str
    started: datetime
    protected: ProtectedFiles
    replaced: Entry | None = None
    began: float = field(default_factory=monotonic)
    staged: StagedFiles = field(default_factory=StagedFiles)
    erases: bool = False
    rewritten: Sequence[Entry] | None = None
    erased: Values | None = None
    scrubbed: Mapping[str, Collection[int]] = field(default_factory=dict)
    committed: Entry | None = None
    tables: Tables = field(init=False)
    ledger_began: int = field(init=False)

    def __post_init__(self) -> None:
        """Open the tables, which this epoch alone writes."""
        self.ledger_began = 0 if self.head is None else self.ledger.version()
        self.tables = Tables(self.state.root, self.plan, writer=self.execution_id)

    @classmethod
    @contextmanager
    def begin(cls, pipeline: LoadedPipeline, options: RunOptions, protected: ProtectedFiles | None = None) -> Iterator[Epoch]:
        """An epoch that holds the pipeline's claim, on a state that is as the ledger says.

        Args:
            pipeline: The pipeline.
            options: The options of the run. `full_refresh` computes everything without the rows of before.
            protected: The places where nothing may be written; looked up where it is None.

        Raises:
            Failure: The state is held by another run, is damaged, or the work failed. Then nothing was committed.
        """
        started = datetime.now(UTC)
        name = options.execution_id or uuid7(started)
        try:
            with durable.numbered_run(), _claimed(pipeline.state, options, name) as held, durable.guarding(held.require), _Alone(held):
                taken_over = held.leased and held.taken_from is not None
                ledger = pipeline.open_ledger()
                if taken_over:
                    ledger.fence(name)
                known = protected or ProtectedFiles(pipeline.plan, pipeline.state)
                purge()
                epoch = cls(pipeline, options, held, ledger, pipeline.prior(ledger), name, started, known)
                epoch._require_intact()
                if taken_over:
                    epoch.tables.fence()
                if taken_over or epoch.needs_repair:
                    epoch._repair()
                if options.full_refresh:
                    epoch.head, epoch.replaced = None, epoch.head
                yield epoch
                epoch.end_erasure()
                epoch.remove_old_versions()
        except (Overtaken, LedgerMoved) as error:
            raise Busy("another run took this pipeline over", again=True) from error
        except EngineUnavailable as error:
            raise StorageFailed(error.reason, help="; or ".join(error.ways_out), details=error.log.splitlines(), again=error.again) from error
        except StorageError as error:
            raise StorageFailed(str(error), again=isinstance(error, StoreFailed) and error.again) from error

    @property
    def plan(self) -> Plan:
        """The pipeline's nodes."""
        return self.pipeline.plan

    @property
    def state(self) -> State:
        """Where tables and ledger lie."""
        return self.pipeline.state

    @property
    def number(self) -> int:
        """The number that the epoch has once it is committed."""
        return 1 if self.head is None else self.head.epoch + 1

    @property
    def batch_id(self) -> str:
        """`--batch-id`, or the id of this run."""
        return self.options.batch_id or self.execution_id

    @property
    def prior(self) -> Entry | None:
        """The ledger's last entry, also that which a full refresh replaces."""
        return self.head or self.replaced

    @property
    def outputs(self) -> OutputContext:
        """The facts of this epoch that outputs need."""
        identity = RunIdentity(self.number, self.execution_id, self.batch_id, self.started)
        return OutputContext(self.plan, self.state, self.head, self.prior, identity, self.protected, self.options.force, self.warn, self.staged, erases=self.erases)

    def history(self) -> list[Entry]:
        """Every committed run, oldest first."""
        return self.ledger.entries()

    def warn(self, text: str, redacted: str | None = None) -> None:
        """Report something that does not stop the epoch. `redacted`: the text without values of the data, where it may have some outside of quotes."""
        self.options.listener(Event("warning", action=text, redacted=redacted))

    def note(self, text: str) -> None:
        """Report something that is worth knowing, and no fault."""
        self.options.listener(Event("log", action=text))

    # -- effects

    @contextmanager
    def undone_on_failure(self) -> Iterator[None]:
        """Within the body of a `with` any failure takes back what the epoch wrote. First the tables that a refresh replaces are cleared, but for decisions of people."""
        with undoing(self.undo):
            for path in self.replaced.tables if self.replaced else ():
                if path != TRIAGE:
                    self.tables.by_path(path).clear()
            yield

    def undo(self) -> None:
        """Take back the staged files, and the rows where the claim is still held. Rows that were committed stay."""
        self.staged.discard()
        try:
            if self.claim.held and self.committed is None:
                self.restore()
        except StorageError as error:  # the failure that ended the run is reported; the next run repairs
            self.warn(f"the next run has to take back what this one wrote: {error}")

    def restore(self) -> None:
        """Take back what was written since the last commit. Of a damaged table nothing stays, as its committed version is lost."""
        versions = self.prior.tables if self.prior else {}
        for path in {*versions, *self.tables.existing()} - self.tables.discarded:
            self.tables.by_path(path).restore(versions.get(path))
        if self.tables.discarded and self.ledger.head() == self.prior:
            for path in self.tables.discarded:
                self.tables.by_path(path).discard()

    def commit(self, entry: Entry) -> Entry:
        """Append a ledger entry with the seals of the tables that it names.

        Raises:
            Overtaken: The claim was lost, or a table has a version that this epoch did not write.
        """
        if self.rewritten is not None:
            for path in entry.tables:
                self.tables.by_path(path).checkpoint()
            record = signed({**entry.counters[RECORD], FOLLOWS: chained(self.rewritten)[-1].hash}, made_key(self.state))
            entry = replace(entry, counters={**entry.counters, RECORD: record, PENDING: {"epoch": entry.epoch, "tables": entry.tables}})
        known = self.head.tables if self.head else {}
        changed = {path: self.tables.at(path, version) for path, version in entry.tables.items() if known.get(path) != version}
        marks = {path: table.mark() for path, table in changed.items()}
        unchanged = {path: mark for path, mark in (self.head.marks if self.head else {}).items() if path in entry.tables}
        files = seal_tables(self.state, known, entry.tables) if self.rewritten is None else seal_whole(self.state, entry.tables)
        sealed = replace(entry, files=files, marks=unchanged | marks)
        self.claim.confirm()
        self.tables.require_untouched()
        if self.rewritten is None or self.head is None:
            committed = self.ledger.append(sealed, self.prior, afresh=self.replaced is not None)
        else:
            committed = self.ledger.rewrite([*self.rewritten, sealed], self.head)
        self.committed = committed
        anchor_ledger(self.state, self.ledger, committed, {path: table.data_files() for path, table in changed.items()})
        if self.ledger.compact_if_fragmented():
            anchor_ledger(self.state, self.ledger, committed, {})
        return committed

    def remove_old_versions(self) -> None:
        """Remove old versions of the tables that the committed epoch wrote; its outputs are published by then. What cannot be removed stays, with a warning.

        Only of a local state: a store lists a log from the last checkpoint on, and old versions cost nothing there but space.
        """
        if self.committed is None or not self.state.local:
            return
        known = self.prior.tables if self.prior else {}
        grown = {path: (known.get(path, 0), version) for path, version in self.committed.tables.items()} | {"ledger": (self.ledger_began, self.ledger.version())}
        for path, (before, version) in grown.items():
            place = self.state.table(path)
            try:
                remove_old_versions(folder_at(place), place, before, version, path)
            except StorageError as error:
                self.warn(f"old versions of {path} stay: {error}")

    def end_erasure(self) -> None:
        """Complete an erasure that was committed, by this epoch or by a run that was killed: remove what only older versions hold, and note what a search finds."""
        head = self.committed or self.prior
        if head is None or not head.counters.get(PENDING):
            return
        proof = Removal(self.plan, self.state, head).done(self.erased)
        counters = {name: value for name, value in head.counters.items() if name in (*NOTED, "gone", *CARRIED) and name != PENDING}
        self.head, self.replaced, self.rewritten = head, None, None
        self.commit(replace(
            head, execution_id=self.execution_id, started=self.started, finished=datetime.now(UTC), counters={**counters, "kind": "erased", PROOF: proof},
            files={}, marks={}, previous="", hash="",
        ))  # fmt: skip

    def publish(self) -> None:
        """Bring the staged files to their targets, and note in the state where somebody else's object was in the way. Raises StorageFailed."""
        try:
            self.staged.publish()
        finally:
            if self.staged.occupied:
                note_occupied(self.state, self.staged.occupied)

    def counters(self) -> dict[str, Any]:
        """Counters that each entry takes over: the base of a compaction and what was folded into it, erasures, or the entry that a refresh replaces."""
        replaced = {"replaces": self.replaced.hash, CHAINS: self._replaced_chains(), **records_of(self.history())} if self.replaced else {}
        carried = CARRIED if self.head else ERASURES
        return {name: value for name, value in (self.prior.counters if self.prior else {}).items() if name in carried} | replaced

    def _replaced_chains(self) -> list[str]:
        """The chains that this refresh and earlier ones replace: by them tables of databases know their pipeline."""
        first = self.history()[0]
        return [first.hash, *first.counters.get(CHAINS, ())]

    # -- the state before

    def _require_intact(self) -> None:
        """Raise StorageError where the state is not what the last epoch committed; a full refresh removes such tables instead."""
        require_ledger(self.state, self.head)
        if self.head is None:
            return
        if any(self.head.counters.get(name) for name in ERASURES):
            require_key(self.state, self.history())
        if self.options.full_refresh:
            self.tables.discard_damaged(self.head)
        else:
            self.tables.require(self.head)

    @property
    def needs_repair(self) -> bool:
        """Whether an earlier run did not commit and left rows behind."""
        known = self.head.tables if self.head else {}
        return self.state.exists() and any(version != known.get(path, 0) for path, version in self.tables.versions().items())

    def _repair(self) -> None:
        """Take back the rows and unfinished files that a killed run left."""
        self.restore()
        for path in Targets.of(self.outputs).files(self.prior):
            self.staged.sweep(path)


@dataclass(frozen=True, slots=True)
class _Alone:
    """Turns any failure of a run that lost its claim into `Overtaken`: the other run may have caused it."""

    claim: Claim

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, _kind: object, problem: BaseException | None, _trace: object) -> None:
        if isinstance(problem, Exception) and self.claim.lost:
            raise Overtaken(self.claim.place) from problem


@contextmanager
def _claimed(state: State, options: RunOptions, execution_id: str) -> Iterator[Claim]:
    """Hold the pipeline's claim. A claim that cannot be released ends with its lease, so that is a warning only. Raises Busy."""
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
