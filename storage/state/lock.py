"""The claim on a pipeline's state: one run at a time (exit code 6).

In a local folder the claim is a lock on a file. The system releases it when the process ends, however it ends. In an object store the claim is a
lease: a small object. Every change of it is a conditional put that only one process can make. The owner renews the lease, and another run takes over
a lease that is not renewed.
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
from typing import TYPE_CHECKING, Protocol, Self
from uuid import uuid4

import orjson
from typing_extensions import override

from storage import durable
from storage.durable import undoing
from storage.errors import OutsideError, Overtaken, StorageError, storing
from storage.state.location import State
from storage.stores.client import Bucket, Changed, Facts
from storage.uris import is_local

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Claim", "Held", "Lease", "Owner", "claim"]

RENEW_SECONDS = 15.0
LEASE_SECONDS = 60.0
POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Owner:
    """Holder of a claim: a process of a host, since a moment (seconds since 1970), for a run."""

    host: str
    pid: int
    since: float
    execution_id: str

    @classmethod
    def this_process(cls, execution_id: str) -> Owner:
        """Return this process as the owner for a run."""
        return cls(socket.gethostname(), os.getpid(), time.time(), execution_id)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} (run {self.execution_id})"


class Held(OutsideError):
    """Another run holds the pipeline. `owner` is None where it is unknown."""

    def __init__(self, owner: Owner | None) -> None:
        self.owner = owner
        super().__init__(f"another run holds this pipeline: {owner or 'its owner is unknown'}")


class _Lock(Protocol):
    """The kind of lock that a place offers."""

    def take(self, owner: Owner, *, wait: bool) -> Owner | None:
        """Take the lock for `owner`, and return the dead owner that it was taken from. Raises `Held` unless `wait`."""

    def renew(self) -> bool:
        """Renew the lock. False where it was lost."""

    def holds(self) -> bool:
        """Return whether the owner still has the lock. Cheap enough to call before each durable step."""

    def leave(self) -> None:
        """Release the lock."""


class Claim:
    """A held claim; a context manager that releases it.

    `taken_from` is the dead owner whose claim it was, if any. The former owner of a `leased` claim may still be alive, because it only failed to renew.
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
        """Whether this run still has the claim. Another run takes a lease over that was not renewed for too long."""
        return not self._over.is_set() and self._lock.holds()

    @property
    def lost(self) -> bool:
        """Whether another run is known to have the claim. False where the place does not answer."""
        try:
            return not self.held
        except StorageError:
            return False

    def require(self) -> None:
        """Raise `Overtaken` where another run has the claim."""
        if not self.held:
            raise Overtaken(self.place)

    def confirm(self) -> None:
        """Raise `Overtaken` where another run has the claim, by a new look at the place."""
        if self._over.is_set() or not self._lock.renew():
            raise Overtaken(self.place)

    def release(self) -> None:
        """Release the claim, even when interrupted meanwhile. One durable step."""
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
            with suppress(StorageError, OSError):  # the next attempt may work; until the lease ends the claim holds
                if not self._lock.renew():
                    return


def claim(state: State, execution_id: str, *, wait: bool = False, waiting: Callable[[Owner | None], None] | None = None) -> Claim:
    """Claim a pipeline's state for a run. One durable step.

    Args:
        state: The state. Its folder exists (`State.prepare`).
        execution_id: Name of the run.
        wait: Wait for another run to end. Else raise `Held` where a living run has the claim.
        waiting: Called once with the other run's owner before the wait.
    """
    local = is_local(state.root)
    lock: _Lock = _FileLock(Path(state.claim)) if local else Lease(*state.claim_object())
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
    """Take a lock as one durable step. An interrupt releases it."""
    with undoing(lock.leave), durable.guarding(_free):
        return durable.step("claim", lambda: lock.take(owner, wait=wait))


def _free() -> None:
    """Guard of the claim's own steps: they depend on no other claim."""


class _FileLock:
    """A lock on a local file. The file remains; its text names the owner, and is empty after an orderly end."""

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
        """Return whether the locked file is still the one at the path."""
        try:
            return os.path.samestat(os.fstat(handle), self._path.stat())
        except FileNotFoundError:
            return False

    def renew(self) -> bool:
        return self.holds()

    def holds(self) -> bool:
        """Return whether the file was not removed. After a removal another run would lock a new file."""
        return self._handle is not None and self._is_current(self._handle)

    def leave(self) -> None:
        if self._handle is not None:
            os.ftruncate(self._handle, 0)
            os.close(self._handle)
            self._handle = None


class Lease(_Lock):
    """A claim in an object store: an object that names the owner, made and changed by conditional puts. Who renews it no more for LEASE_SECONDS, by the store's own clock, has lost it.

    Args:
        bucket: The bucket.
        key: The key of the object. Objects beside it are written to ask for the time and for conditions.
        elapsed: A clock of this machine that goes on while the machine sleeps.
    """

    def __init__(self, bucket: Bucket, key: str, *, elapsed: Callable[[], float] | None = None) -> None:
        self._bucket, self._key = bucket, key
        self._elapsed = elapsed or _since_boot
        self._owner: Owner | None = None
        self._written, self._heard, self._lost = "", 0.0, False
        self._writing = threading.Lock()

    @override
    def take(self, owner: Owner, *, wait: bool) -> Owner | None:
        while True:
            found = self._bucket.small(self._key)
            if found is None:
                self._bucket.require_conditions(f"{self._key}-conditions-{uuid4().hex}")
            holder = None if found is None else _owner(found[0])
            if holder is None or (found is not None and self._is_over(found[1])):
                if self._write(owner, "" if found is None else found[1].identity):
                    self._owner, self._lost = owner, False
                    return holder
            elif not wait:
                raise Held(holder)
            else:
                time.sleep(POLL_SECONDS)

    @override
    def renew(self) -> bool:
        with self._writing:
            self._lost = self._lost or not self._write(self._owner, self._written)
            return not self._lost

    @override
    def holds(self) -> bool:
        """Return whether the lease lasts. After half of it, renew it first."""
        if self._lost:
            return False
        return self._elapsed() - self._heard < LEASE_SECONDS / 2 or self.renew()

    @override
    def leave(self) -> None:
        with self._writing:
            if self._owner is not None and not self._lost:
                self._write(None, self._written)
            self._owner, self._lost = None, True

    def _is_over(self, facts: Facts) -> bool:
        return self._bucket.now(f"{self._key}-clock") - facts.modified >= LEASE_SECONDS

    def _write(self, owner: Owner | None, over: str) -> bool:
        """Write the owner in place of the version with an identity, empty for none. False where somebody else wrote another one."""
        text = orjson.dumps(None if owner is None else asdict(owner) | {"written": uuid4().hex})
        began = self._elapsed()
        try:
            self._written = self._bucket.put(self._key, text, absent=not over, over=over)
        except Changed:
            found = self._bucket.small(self._key)
            if found is None or found[0] != text:  # else it is ours, and an answer was lost
                return False
            self._written = found[1].identity
        self._heard = began
        return True


def _since_boot() -> float:
    """Seconds on a clock that nobody sets and that goes on while the machine sleeps, where the system has one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _owner(text: bytes) -> Owner | None:
    """Return the owner in the text of a claim. None where it names none, as after a crash of the machine."""
    try:
        found = orjson.loads(text) if text else None
        return Owner(**{name: value for name, value in found.items() if name != "written"}) if found else None
    except (orjson.JSONDecodeError, TypeError, AttributeError):
        return None
