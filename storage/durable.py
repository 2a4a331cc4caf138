"""Durable steps: every effect that outlives a run goes through `step`, and what begins an effect can be undone.

Steps are numbered from 1 in each run, in the order in which they begin. A test installs a probe with `probing`. The probe hears of each step before
it begins and after it has landed, so it can stop the run or kill the process at every one of them.
"""

import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar
from uuid import uuid4

__all__ = ["Moment", "Probe", "guarding", "numbered_run", "probing", "publish", "replace", "staged_in", "staging_path", "step", "sync", "undoing"]

SYNC_THREADS = 8


@dataclass(frozen=True, slots=True)
class Moment:
    """One side of a durable step: the step's number in the run, its name (`append:changelog/orders`), and the side."""

    number: int
    name: str
    side: Literal["before", "after"]


STAGED = re.compile(r"\.(.+)\.[0-9a-f]{12}\.tmp", re.DOTALL)
T = TypeVar("T")
Probe = Callable[[Moment], None]


@dataclass(slots=True)
class _Seam:
    probe: Probe | None = None
    taken: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def next_number(self) -> int:
        with self.lock:
            self.taken += 1
            return self.taken

    def report(self, moment: Moment) -> None:
        if self.probe is not None:
            self.probe(moment)


_seam = _Seam()
_guard: ContextVar[Callable[[], None]] = ContextVar("guard", default=lambda: None)


def step(name: str, action: Callable[[], T]) -> T:
    """Run one durable effect and return its result.

    Nothing of the effect has landed before `action` is called, and all of it has landed when `action` returns.

    Raises:
        Exception: whatever the guard raises (see `guarding`); then the step has not begun.
    """
    _guard.get()()
    number = _seam.next_number()
    _seam.report(Moment(number, name, "before"))
    result = action()
    _seam.report(Moment(number, name, "after"))
    return result


@contextmanager
def numbered_run() -> Iterator[None]:
    """Number the steps inside from 1. Runs of one process must not overlap."""
    _seam.taken = 0
    yield


@contextmanager
def guarding(guard: Callable[[], None]) -> Iterator[None]:
    """Call `guard` before each durable step of this thread. An exception of the guard keeps the step from beginning."""
    token = _guard.set(guard)
    try:
        yield
    finally:
        _guard.reset(token)


@contextmanager
def probing(probe: Probe) -> Iterator[None]:
    """Report every durable step inside to `probe`. An exception of the probe stops the run at that moment."""
    before, _seam.probe = _seam.probe, probe
    try:
        yield
    finally:
        _seam.probe = before


@contextmanager
def undoing(undo: Callable[[], object]) -> Iterator[None]:
    """Call `undo` when the body ends early, by an error or an interrupt. The exception goes on to the caller."""
    with ExitStack() as stack:
        stack.callback(undo)
        yield
        stack.pop_all()


def staging_path(target: Path) -> Path:
    """Return a new hidden name next to `target`, on the same file system, for a file that will be renamed to `target`."""
    return target.with_name(f".{target.name}.{uuid4().hex[:12]}.tmp")


def staged_in(folder: Path) -> dict[str, list[Path]]:
    """Return the staged files of a folder that were never renamed, by the name of their target."""
    found: dict[str, list[Path]] = {}
    for file in folder.iterdir() if folder.is_dir() else ():
        begun = STAGED.fullmatch(file.name)
        if begun:
            found.setdefault(begun[1], []).append(file)
    return found


def publish(staged: Path, target: Path) -> None:
    """Rename a finished file to its target, as one durable step. Its bytes are on disk before its name is."""
    step(f"rename:{target.name}", lambda: replace(staged, target))


def sync(files: Iterable[Path]) -> None:
    """Flush files and the folders that name them to disk. Several at a time, because a file system writes them together."""
    paths = list(files)
    folders = {folder for file in paths for folder in (file.parent, file.parent.parent)}
    with ThreadPoolExecutor(SYNC_THREADS) as pool:
        list(pool.map(lambda file: _sync(file, os.O_RDONLY), paths))
        list(pool.map(lambda folder: _sync(folder, os.O_RDONLY | os.O_DIRECTORY), folders))


def replace(staged: Path, target: Path) -> None:
    """Rename a file to its target. Both its bytes and its new name are on disk when this returns."""
    _sync(staged, os.O_RDONLY)
    staged.replace(target)
    _sync(target.parent, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
