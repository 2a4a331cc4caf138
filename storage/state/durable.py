"""The durable seam: every effect that outlives a run passes `step` (DESIGN sections 5 and 9, invariant I7).

Steps are numbered in the order in which they begin, from 1 in each run. A test installs a probe with `probing` and is told
of every step before it begins and after it has landed, so it can stop a run, or kill the process, at each of them.
"""

import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar
from uuid import uuid4

__all__ = ["Moment", "Probe", "guarding", "numbered_run", "probing", "publish", "replace", "staged_in", "staging_path", "step", "sync"]

SYNCED_AT_A_TIME = 8


@dataclass(frozen=True, slots=True)
class Moment:
    """One side of one durable step: its number in the run, its name (`append:changelog/orders`) and the side."""

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

    def tell(self, moment: Moment) -> None:
        if self.probe is not None:
            self.probe(moment)


_seam = _Seam()
_guard: ContextVar[Callable[[], None]] = ContextVar("guard", default=lambda: None)


def step(name: str, action: Callable[[], T]) -> T:
    """Run one durable effect and give its result. Nothing of `action` has landed before it is called, all of it after.

    Raises what the guard raises (`guarding`), before anything is begun.
    """
    _guard.get()()
    number = _seam.next_number()
    _seam.tell(Moment(number, name, "before"))
    result = action()
    _seam.tell(Moment(number, name, "after"))
    return result


@contextmanager
def numbered_run() -> Iterator[None]:
    """The steps inside are numbered from 1. Runs of one process do not overlap."""
    _seam.taken = 0
    yield


@contextmanager
def guarding(guard: Callable[[], None]) -> Iterator[None]:
    """Ask `guard` ahead of every durable step that this thread begins inside; what it raises keeps the step from being begun."""
    token = _guard.set(guard)
    try:
        yield
    finally:
        _guard.reset(token)


@contextmanager
def probing(probe: Probe) -> Iterator[None]:
    """Tell `probe` of every durable step inside; what it raises stops the run at that moment."""
    before, _seam.probe = _seam.probe, probe
    try:
        yield
    finally:
        _seam.probe = before


def staging_path(target: Path) -> Path:
    """A new name beside `target`, on the same file system, for what will be renamed over it."""
    return target.with_name(f".{target.name}.{uuid4().hex[:12]}.tmp")


def staged_in(folder: Path) -> dict[str, list[Path]]:
    """The files of a folder that were begun at a `staging_path` and are not renamed, by the names that they were to have."""
    found: dict[str, list[Path]] = {}
    for file in folder.iterdir() if folder.is_dir() else ():
        begun = STAGED.fullmatch(file.name)
        if begun:
            found.setdefault(begun[1], []).append(file)
    return found


def publish(staged: Path, target: Path) -> None:
    """Rename a finished file over its target as one durable step; its bytes are on disk before its name is."""
    step(f"rename:{target.name}", lambda: replace(staged, target))


def sync(files: Iterable[Path]) -> None:
    """Return once files and the folders that name them are on disk; several at a time, which a file system writes together."""
    paths = list(files)
    folders = {folder for file in paths for folder in (file.parent, file.parent.parent)}
    with ThreadPoolExecutor(SYNCED_AT_A_TIME) as pool:
        list(pool.map(lambda file: _sync(file, os.O_RDONLY), paths))
        list(pool.map(lambda folder: _sync(folder, os.O_RDONLY | os.O_DIRECTORY), folders))


def replace(staged: Path, target: Path) -> None:
    """Rename a file over its target; both its bytes and its new name are on disk before this returns."""
    _sync(staged, os.O_RDONLY)
    staged.replace(target)
    _sync(target.parent, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
