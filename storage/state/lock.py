"""One run at a time: the claim on a pipeline's state (DESIGN section 5, step 5; exit code 6 of CONTRACT.md).

In a local folder the claim is a lock on a file, which the system lets go when its process ends, however it ends. On an
object store it is the description of a small Delta table: every change of it is a commit that only one can make, its owner
renews it, and one that is not renewed any more is taken over.
"""

from __future__ import annotations

import fcntl
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import orjson

from storage import durable
from storage.durable import undoing
from storage.errors import Overtaken, StorageError, storing
from storage.state.location import State
from storage.uris import is_local

if TYPE_CHECKING:
    from types import TracebackType

    from deltalake import DeltaTable

__all__ = ["Claim", "Held", "Owner", "claim"]

RENEW_SECONDS = 20.0
LEASE_SECONDS = 90.0
POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Owner:
    """Who holds a claim: a process of a host, since a moment (seconds since 1970), for a run."""

    host: str
    pid: int
    since: float
    execution_id: str

    @classmethod
    def this_process(cls, execution_id: str) -> Owner:
        """The owner that this process is for a run."""
        return cls(socket.gethostname(), os.getpid(), time.time(), execution_id)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} (run {self.execution_id})"


class Held(Exception):
    """Another run holds the pipeline. `owner` is None where it did not say who it is."""

    def __init__(self, owner: Owner | None) -> None:
        self.owner = owner
        super().__init__(f"another run holds this pipeline: {owner or 'its owner is unknown'}")


class _Lock(Protocol):
    """What a place offers to claim it by."""

    def take(self, owner: Owner, *, wait: bool) -> Owner | None:
        """Take it for `owner` and give the dead one that it was taken from. Raises `Held`, unless it may wait."""

    def renew(self) -> bool:
        """Say that the owner lives. False where the claim was lost."""

    def holds(self) -> bool:
        """Whether the claim is still the owner's. Cheap enough to be asked before each durable step."""

    def leave(self) -> None:
        """Let go of what was taken."""


class Claim:
    """A claim that is held; a context manager that lets it go.

    `taken_from` is the dead owner whose claim it was, if any. Of a `leased` claim that owner may still be alive: it was only not heard of.
    """

    def __init__(self, lock: _Lock, place: str, taken_from: Owner | None, renew_every: float | None) -> None:
        self._lock = lock
        self.place = place
        self.taken_from = taken_from
        self.leased = renew_every is not None
        self._over = threading.Event()
        if renew_every is not None:
            threading.Thread(target=self._renew, args=(renew_every,), name="claim", daemon=True).start()

    @property
    def held(self) -> bool:
        """Whether the claim is still this run's: no other run took it over because this one was not heard of for too long."""
        return not self._over.is_set() and self._lock.holds()

    @property
    def lost(self) -> bool:
        """Whether another run is known to have it; False where the place does not answer."""
        try:
            return not self.held
        except StorageError:
            return False

    def require(self) -> None:
        """Raise `Overtaken` where the claim is another run's."""
        if not self.held:
            raise Overtaken(self.place)

    def confirm(self) -> None:
        """The same, asked of the place itself, whatever was heard last."""
        if self._over.is_set() or not self._lock.renew():
            raise Overtaken(self.place)

    def release(self) -> None:
        """Let the claim go, also where it is interrupted right then. One durable step."""
        if not self._over.is_set():
            self._over.set()
            with undoing(self._lock.leave), durable.guarding(_free):
                durable.step("release", self._lock.leave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self.release()

    def _renew(self, every: float) -> None:
        while not self._over.wait(every):
            with suppress(StorageError, OSError):  # the next time may do; until the lease ends the claim holds
                if not self._lock.renew():
                    return


def claim(state: State, execution_id: str, *, wait: bool = False, waiting: Callable[[Owner | None], None] | None = None) -> Claim:
    """Claim a pipeline's state for a run. One durable step. The state's folder is there (`State.prepare`).

    Raises `Held` where a living run has it, unless `wait`: then `waiting` is told of the owner once and the claim is awaited.
    """
    local = is_local(state.root)
    lock: _Lock = _FileLock(Path(state.claim)) if local else _TableLock(state.claim)
    owner = Owner.this_process(execution_id)
    try:
        taken_from = _taken(lock, owner, wait=False)
    except Held as held:
        if not wait:
            raise
        if waiting is not None:
            waiting(held.owner)
        taken_from = _taken(lock, owner, wait=True)
    return Claim(lock, state.claim, taken_from, None if local else RENEW_SECONDS)


def _taken(lock: _Lock, owner: Owner, *, wait: bool) -> Owner | None:
    """Take a lock as one durable step; who is interrupted right then lets go of it."""
    with undoing(lock.leave), durable.guarding(_free):
        return durable.step("claim", lambda: lock.take(owner, wait=wait))


def _free() -> None:
    """To take a claim and to let it go depends on no other claim."""


class _FileLock:
    """A lock on a local file. The file stays; its text names the owner, and is empty after an orderly end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    def take(self, owner: Owner, *, wait: bool) -> Owner | None:
        with storing(str(self._path)):
            handle = self._locked(wait=wait)
        self._handle = handle
        before = _owner(os.pread(handle, 4096, 0))
        os.ftruncate(handle, 0)
        os.pwrite(handle, orjson.dumps(asdict(owner)), 0)
        return before

    def _locked(self, *, wait: bool) -> int:
        while True:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            with ExitStack() as opened:
                opened.callback(os.close, handle)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise Held(_owner(os.pread(handle, 4096, 0))) from None
                if self._is_current(handle):
                    opened.pop_all()
                    return handle

    def _is_current(self, handle: int) -> bool:
        """Whether the locked file is still the one at the path."""
        try:
            return os.path.samestat(os.fstat(handle), self._path.stat())
        except FileNotFoundError:
            return False

    def renew(self) -> bool:
        return self.holds()

    def holds(self) -> bool:
        """Whether nobody removed the file: then another run would lock a new one."""
        return self._handle is not None and self._is_current(self._handle)

    def leave(self) -> None:
        if self._handle is not None:
            os.ftruncate(self._handle, 0)
            os.close(self._handle)
            self._handle = None


class _TableLock:
    """A claim on an object store: the description of a Delta table holds the owner and when it was last heard of."""

    def __init__(self, uri: str, *, clock: Callable[[], float] = time.time) -> None:
        self._uri = uri
        self._clock = clock
        self._owner: Owner | None = None
        self._heard = 0.0
        self._lost = False
        self._renewing = threading.Lock()

    def take(self, owner: Owner, *, wait: bool) -> Owner | None:
        while True:
            with storing(self._uri):
                table = self._table()
                holder, heard = _read(table)
                now = self._clock()
                if (holder is None or not self._lives(holder, heard)) and self._set(table, owner):
                    self._owner, self._heard, self._lost = owner, now, False
                    return holder
                if not wait:
                    raise Held(_read(self._table())[0])
            time.sleep(POLL_SECONDS)

    def renew(self) -> bool:
        with self._renewing, storing(self._uri):
            now, table = self._clock(), self._table()
            if self._lost or _read(table)[0] != self._owner or not self._set(table, self._owner):
                self._lost = True
                return False
            self._heard = now
            return True

    def holds(self) -> bool:
        """True as long as the lease lasts that was renewed last; behind its end the claim is renewed first, if that can still be done."""
        if self._lost:
            return False
        return self._clock() - self._heard < LEASE_SECONDS or self.renew()

    def leave(self) -> None:
        with storing(self._uri):
            if self._owner is not None and _read(table := self._table())[0] == self._owner:
                self._set(table, None)

    def _lives(self, holder: Owner, heard: float) -> bool:
        return self._clock() - heard < LEASE_SECONDS and not _is_dead_here(holder)

    def _set(self, table: DeltaTable, owner: Owner | None) -> bool:
        """Write the owner as the next version of the table; False where somebody else wrote that version."""
        from deltalake import CommitProperties
        from deltalake.exceptions import CommitFailedError

        text = orjson.dumps({"owner": None if owner is None else asdict(owner), "heard": self._clock()}).decode()
        try:
            table.alter.set_table_description(text, commit_properties=CommitProperties(max_commit_retries=0))
        except CommitFailedError:
            return False
        return True

    def _table(self) -> DeltaTable:
        from deltalake import CommitProperties, DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError

        from storage.delta.columns import declared, new_fields

        try:
            return DeltaTable(self._uri)
        except TableNotFoundError:
            try:
                # Tried again, a table made at the same time would be made anew behind the claim that is in it.
                once = CommitProperties(max_commit_retries=0)
                return DeltaTable.create(self._uri, new_fields(declared({"nothing": "string"})), mode="error", commit_properties=once)
            except DeltaError:  # somebody else made it in the meantime
                return DeltaTable(self._uri)


def _read(table: DeltaTable) -> tuple[Owner | None, float]:
    said: dict[str, Any] = orjson.loads(table.metadata().description or "{}")
    return (Owner(**said["owner"]), float(said["heard"])) if said.get("owner") else (None, 0.0)


def _is_dead_here(owner: Owner) -> bool:
    """Whether the owner was a process of this host that is no more."""
    if owner.host != socket.gethostname():
        return False
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _owner(text: bytes) -> Owner | None:
    """The owner that a claim's file names; None where it names none, as after a crash of the machine."""
    try:
        return Owner(**orjson.loads(text)) if text else None
    except (orjson.JSONDecodeError, TypeError):
        return None
