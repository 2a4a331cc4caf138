"""Local copies of input files on slow or unreliable shares.

A source file has three files in the staging folder, named by the hash of its real path: `<id>.staged`, the copy; `<id>.manifest.json`, without which the
copy is not trusted; `<id>.lock`, which a run holds exclusively while it copies and shared while it reads. The next run removes what a killed run left.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple
from uuid import uuid4

import orjson
from blake3 import blake3

from storage import durable
from storage.errors import StorageError
from storage.files.discovery import content_hash, path_matcher
from storage.files.stores import Stamp, store_of
from storage.stores.places import Place

GRACE_SECONDS = 10.0
"""A younger file may belong to a run that has not locked it yet."""
_CHUNK = 1 << 20
_OWNER_ONLY = 0o600
_EVERY = path_matcher(["*"])


class StagingError(Exception):
    """A file cannot be staged. `code` is E335, E336, E337, or empty for an error of the system."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}" if code else message)
        self.code = code


class Names(NamedTuple):
    """The files of a source file in the staging folder."""

    copy: Path
    manifest: Path
    lock: Path

    @classmethod
    def of(cls, folder: Path, identity: str) -> Names:
        """The files by the source file's hash."""
        return cls(folder / f"{identity}.staged", folder / f"{identity}.manifest.json", folder / f"{identity}.lock")


@dataclass(frozen=True, slots=True)
class StagingSettings:
    """The `storage.staging` block of the workspace: where copies go and which files are copied."""

    folder: Path
    cap: int | None = None
    verify: bool = True
    on_existing: Literal["overwrite", "reuse", "error"] = "overwrite"
    cleanup: Literal["on_success", "always", "never"] = "on_success"
    matches: Callable[[str], bool] = _EVERY

    def selects(self, source: Place) -> bool:
        """Whether a source file is copied: its path or its name matches a pattern."""
        return self.matches(source.as_posix())

    def names(self, source: Place) -> Names:
        """The files of a source file in the staging folder."""
        return Names.of(self.folder, blake3(os.fsencode(str(source.resolve()))).hexdigest(length=16))

    def is_fresh(self, source: Place) -> bool:
        """Whether there is a trusted copy with the current size and time, or ETag, of the source file."""
        names, stamp = self.names(source), store_of(source).stamp(source)
        try:
            manifest = orjson.loads(names.manifest.read_bytes())
        except (OSError, orjson.JSONDecodeError):
            return False
        return stamp is not None and names.copy.is_file() and Stamp(manifest.get("size"), manifest.get("mtime_ns"), manifest.get("tag", "")) == stamp


@dataclass(slots=True)
class Staging:
    """The copies of one run, which are locked against removal until it ends."""

    settings: StagingSettings
    copies: dict[Place, Path] = field(default_factory=dict)
    copied: int = 0
    _locks: dict[Place, int] = field(default_factory=dict)
    _made: set[Place] = field(default_factory=set)

    def local(self, source: Place) -> Path:
        """The copy of a file, which the first call makes or reuses. Raises StagingError."""
        real = source.resolve()
        if real not in self.copies:
            try:
                self.copies[real] = self._staged(real)
            except OSError as error:
                raise StagingError("", f"cannot stage {source} in {self.settings.folder}: {error.strerror or error}") from error
            except StorageError as error:
                raise StagingError("", f"cannot stage {error}") from error
        return self.copies[real]

    def release(self, *, clean: bool) -> None:
        """Unlock the copies at the end of the run, and remove them as `cleanup` says. `clean`: whether the run had no rejects."""
        remove = self.settings.cleanup == "always" or (self.settings.cleanup == "on_success" and clean)
        for handle in self._locks.values():
            os.close(handle)
        for source in self._locks if remove else ():
            names = self.settings.names(source)
            with _try_lock(names.lock) as held:
                if held:
                    _remove(names.manifest, names.copy)
        self._locks.clear()
        self.copies.clear()

    def _staged(self, source: Place) -> Path:
        """The copy of a file. Its lock is held shared from the check of the copy on."""
        names = self.settings.names(source)
        while True:
            handle = _lock(names.lock, fcntl.LOCK_SH)
            if self._good(source, names):
                self._locks[source] = handle
                return names.copy
            os.close(handle)
            with _locked(names.lock):
                if not self._reusable(source):
                    self._refuse_existing(names, source)
                    self._copy(source, names)

    def _good(self, source: Place, names: Names) -> bool:
        """Whether this run may read the copy: its own, or one that it reuses."""
        own = source in self._made and names.copy.is_file() and names.manifest.is_file()
        return own or self._reusable(source)

    def _reusable(self, source: Place) -> bool:
        return self.settings.on_existing == "reuse" and self.settings.is_fresh(source)

    def _refuse_existing(self, names: Names, source: Place) -> None:
        if self.settings.on_existing == "error" and names.copy.exists():
            raise StagingError("E337", f"a staged copy of {source} already exists ({names.copy}) and storage.staging.on_existing is error")

    def _copy(self, source: Place, names: Names) -> None:
        stamp = store_of(source).stamp(source)
        if stamp is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(source))
        if self.settings.cap is not None and self.copied + stamp.size > self.settings.cap:
            text = f"staging {source} ({stamp.size} bytes) would bring the bytes staged by this run to {self.copied + stamp.size}"
            raise StagingError("E336", f"{text}, more than storage.staging.disk_cap_bytes ({self.settings.cap})")
        _remove(names.manifest, names.copy)
        unfinished = names.copy.with_suffix(f".{uuid4().hex[:12]}.partial")
        try:
            digest = _copied(source, unfinished)
            self.copied += unfinished.stat().st_size
            durable.publish(unfinished, names.copy)
        finally:
            unfinished.unlink(missing_ok=True)
        if self.settings.verify:
            _verify(source, names.copy, digest)
        _commit(names, source, stamp, digest)
        self._made.add(source)


def _copied(source: Place, target: Path) -> str:
    """Copy a file in one pass. Returns the BLAKE3 digest of the copied bytes."""
    hasher = blake3()
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
    with store_of(source).open(source) as left, os.fdopen(handle, "wb") as right:
        while chunk := left.read(_CHUNK):
            hasher.update(chunk)
            right.write(chunk)
        right.flush()
        os.fsync(right.fileno())
    return hasher.hexdigest()


def _verify(source: Place, copy: Path, digest: str) -> None:
    if content_hash(source) == content_hash(copy) == digest:
        return
    _remove(copy)
    raise StagingError("E335", f"the staged copy of {source} is corrupt: its BLAKE3 digest is not that of the source")


def _commit(names: Names, source: Place, stamp: Stamp, digest: str) -> None:
    content = {"path": str(source.resolve()), **stamp._asdict(), "blake3": digest, "staged_at": datetime.now(UTC)}
    beside = durable.staging_path(names.manifest)
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(orjson.dumps(content, option=orjson.OPT_INDENT_2))
        durable.publish(beside, names.manifest)
    finally:
        beside.unlink(missing_ok=True)


def purge(folder: Path) -> None:
    """Remove what killed runs left: partial copies, copies without a manifest, manifests without a copy, locks without a copy.

    Files that a running run has locked stay, and so do files that cannot be removed.
    """
    with suppress(OSError):
        entries = sorted(folder.iterdir())
        for identity in dict.fromkeys(entry.name.partition(".")[0] for entry in entries if entry.name.endswith(_OURS)):
            with suppress(OSError):
                _purge_one(folder, identity)


_OURS = (".partial", ".staged", ".manifest.json", ".lock")


def _purge_one(folder: Path, identity: str) -> None:
    names = Names.of(folder, identity)
    with _try_lock(names.lock) as held:
        if not held:
            return
        for unfinished in folder.glob(f"{identity}.*.partial"):
            if _aged(unfinished):
                _remove(unfinished)
        if names.copy.exists() != names.manifest.exists():
            _remove(names.manifest, names.copy)
        if not names.copy.exists() and _aged(names.lock):
            _remove(names.lock)


def _aged(path: Path) -> bool:
    return time.time() - path.stat().st_mtime > GRACE_SECONDS


def _remove(*paths: Path) -> None:
    for path in paths:
        durable.step(f"unlink:{path.suffix}", partial(path.unlink, missing_ok=True))


def _lock(path: Path, mode: int) -> int:
    """An open handle that holds the lock file. Raises BlockingIOError where the mode does not wait for another holder."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, _OWNER_ONLY)
        with ExitStack() as opened:
            opened.callback(os.close, handle)
            fcntl.flock(handle, mode)
            if path.exists() and os.fstat(handle).st_ino == path.stat().st_ino:
                opened.pop_all()
                return handle


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock exclusively."""
    handle = _lock(path, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(handle)


@contextmanager
def _try_lock(path: Path) -> Iterator[bool]:
    """Hold the lock exclusively if nobody else holds it; yields whether it is held."""
    try:
        handle = _lock(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
        return
    try:
        yield True
    finally:
        os.close(handle)
