"""Where files lie: on this machine's disks, or in object stores. Both are read and written through `Store`, which `store_of` gives.

An object is read once: by ranges, several at a time, each of the same version. Its bytes stay until the end of the process, or until others need the room: small
ones in memory, large ones in an unnamed temporary file.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from io import RawIOBase
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, Protocol, cast
from uuid import uuid4

from blake3 import blake3
from typing_extensions import override

from storage import durable
from storage.errors import StorageError
from storage.files.errors import Buffer
from storage.process_folders import temporary_folder
from storage.stores.client import PART_BYTES, Changed, Occupied
from storage.stores.places import ObjectPath, Place

__all__ = ["Stamp", "Store", "forget_contents", "read_ahead", "store_of"]

READERS: Final = 4
"""Ranges of an object that are read at a time."""
SMALL_READERS: Final = 16
"""Small objects that are read at a time."""
ROOM: Final = 2 << 30
"""Bytes of objects that a process keeps. The one that was read last always stays."""
FIRST_BYTES: Final = 64 << 20
"""Most bytes of a new object that are written as one, on the condition that there is none."""


class Stamp(NamedTuple):
    """Size, time in nanoseconds since 1970, and the tag of an object, which is empty for files of this machine."""

    size: int
    mtime_ns: int
    tag: str


class Store(Protocol):
    """One kind of place for files. Methods raise OSError or StoreFailed."""

    def size(self, place: Place) -> int:
        """Bytes of a file."""

    def stamp(self, place: Place) -> Stamp | None:
        """Size and time, or of an object size and ETag; None for a file that is gone."""

    def volume(self, place: Place) -> int | None:
        """The number of the volume that a file of this machine is on; None for an object."""

    def identity(self, place: Place) -> tuple[object, ...]:
        """The marks of a file that change when it does; none for a file that is gone."""

    def content(self, place: Place) -> Buffer:
        """All bytes of a file, without a copy where they are mapped."""

    def part(self, place: Place, start: int, end: int) -> Buffer | None:
        """Bytes `start` to `end`, where reading them alone takes less than reading the file; else None."""

    def open(self, place: Place) -> IO[bytes]:
        """A file, open for reading."""

    def digest(self, place: Place) -> str:
        """The BLAKE3 hash of a file's bytes, in hexadecimal."""

    def staging(self, target: Place) -> Path:
        """A new file of this machine whose content `publish` can bring to a target."""

    def publish(self, staged: Path, target: Place, *, first: bool) -> None:
        """Bring a finished file to its target. Readers see all of it or what was there before. One durable step. `first`: nothing was there."""

    def remove(self, place: Place) -> None:
        """Remove a file, if it is there. One durable step."""

    def kept(self, staged: Path) -> dict[str, Any]:
        """The ledger's record of a finished file, by which `holds` knows it again."""

    def date(self, staged: Path, entry: Mapping[str, Any]) -> None:
        """Make a finished file with the same content be known again by what the ledger keeps."""

    def holds(self, place: Place, entry: Mapping[str, Any]) -> bool:
        """Whether a file is there as the ledger's entry says."""

    def sweep(self, folder: Place) -> dict[str, list[Path]]:
        """The files that killed runs had begun in a folder, by the name of their target."""


class Disk(Store):
    """Files of this machine."""

    @override
    def size(self, place: Place) -> int:
        return _path(place).stat().st_size

    @override
    def stamp(self, place: Place) -> Stamp | None:
        try:
            facts = _path(place).stat()
        except OSError:
            return None
        return Stamp(facts.st_size, facts.st_mtime_ns, "")

    @override
    def volume(self, place: Place) -> int | None:
        return _path(place).stat().st_dev

    @override
    def identity(self, place: Place) -> tuple[object, ...]:
        try:
            facts = _path(place).stat()
        except FileNotFoundError:
            return ()
        return facts.st_ino, facts.st_size, facts.st_mtime_ns

    @override
    def content(self, place: Place) -> Buffer:
        path = _path(place)
        with path.open("rb") as file:
            return mmap(file.fileno(), 0, access=ACCESS_READ) if path.stat().st_size else b""

    @override
    def part(self, place: Place, start: int, end: int) -> Buffer | None:
        return None

    @override
    def open(self, place: Place) -> IO[bytes]:
        return _path(place).open("rb")

    @override
    def digest(self, place: Place) -> str:
        return blake3(max_threads=blake3.AUTO).update_mmap(_path(place)).hexdigest()

    @override
    def staging(self, target: Place) -> Path:
        path = _path(target)
        path.parent.mkdir(parents=True, exist_ok=True)
        return durable.staging_path(path)

    @override
    def publish(self, staged: Path, target: Place, *, first: bool) -> None:
        durable.publish(staged, _path(target))

    @override
    def remove(self, place: Place) -> None:
        durable.step(f"remove:{place.name}", lambda: _path(place).unlink(missing_ok=True))

    @override
    def kept(self, staged: Path) -> dict[str, Any]:
        facts = staged.stat()
        return {"size": facts.st_size, "mtime_ns": facts.st_mtime_ns}

    @override
    def date(self, staged: Path, entry: Mapping[str, Any]) -> None:
        os.utime(staged, ns=(entry["mtime_ns"], entry["mtime_ns"]))

    @override
    def holds(self, place: Place, entry: Mapping[str, Any]) -> bool:
        try:
            facts = _path(place).stat()
        except OSError:
            return False
        return (facts.st_size, facts.st_mtime_ns) == (entry["size"], entry.get("mtime_ns"))

    @override
    def sweep(self, folder: Place) -> dict[str, list[Path]]:
        return durable.staged_in(_path(folder))


class Objects(Store):
    """Objects in stores. The ledger keeps the hash of what was written, and the object has the same hash in its metadata."""

    @override
    def size(self, place: Place) -> int:
        return len(self.content(place))

    @override
    def stamp(self, place: Place) -> Stamp | None:
        facts = _object(place).facts()
        return None if facts is None else Stamp(facts.size, 0, facts.identity)

    @override
    def volume(self, place: Place) -> int | None:
        return None

    @override
    def identity(self, place: Place) -> tuple[object, ...]:
        one = _object(place)
        return (one.uri, one.tag)

    @override
    def content(self, place: Place) -> Buffer:
        return _contents.of(_object(place))

    @override
    def part(self, place: Place, start: int, end: int) -> Buffer | None:
        one = _object(place)
        if _contents.has(one) or not one.tag:
            return None
        return one.bucket.read(one.key, start, end, _etag(one))

    @override
    def open(self, place: Place) -> IO[bytes]:
        return cast("IO[bytes]", _Reading(self.content(place)))

    @override
    def digest(self, place: Place) -> str:
        return blake3(max_threads=blake3.AUTO).update(self.content(place)).hexdigest()

    @override
    def staging(self, target: Place) -> Path:
        return _folder() / f"{uuid4().hex[:12]}.tmp"

    @override
    def publish(self, staged: Path, target: Place, *, first: bool) -> None:
        one, content = _object(target), self.kept(staged)["content"]
        absent = first and staged.stat().st_size <= FIRST_BYTES
        try:
            one.bucket.upload(one.key, staged, content, absent=absent)
        except Changed:
            there = one.bucket.content(one.key)
            if there is None or there[1] != content:  # else an answer was lost
                raise Occupied(one.uri, "" if there is None else there[0].identity) from None
        staged.unlink(missing_ok=True)

    @override
    def remove(self, place: Place) -> None:
        one = _object(place)
        durable.step(f"remove:{one.name}", lambda: one.bucket.delete(one.key))

    @override
    def kept(self, staged: Path) -> dict[str, Any]:
        return {"size": staged.stat().st_size, "content": blake3(max_threads=blake3.AUTO).update_mmap(staged).hexdigest(length=16)}

    @override
    def date(self, staged: Path, entry: Mapping[str, Any]) -> None:
        """Nothing: an object is known by its content."""

    @override
    def holds(self, place: Place, entry: Mapping[str, Any]) -> bool:
        one = _object(place)
        found = one.bucket.content(one.key)
        return found is not None and (found[0].size, found[1]) == (entry["size"], entry.get("content"))

    @override
    def sweep(self, folder: Place) -> dict[str, list[Path]]:
        return {}


_DISK, _OBJECTS = Disk(), Objects()


def store_of(place: Place) -> Store:
    """The store of a place."""
    return _OBJECTS if isinstance(place, ObjectPath) else _DISK


def read_ahead(places: Iterable[Place]) -> None:
    """Read objects that are about to be read, several at a time. What fails is reported when it is read."""
    objects = [place for place in places if isinstance(place, ObjectPath) and place.size <= PART_BYTES]
    if len(objects) > 1 and sum(one.size for one in objects) <= ROOM:
        with ThreadPoolExecutor(SMALL_READERS) as pool:
            list(pool.map(_try_to_read, objects))


def _try_to_read(place: ObjectPath) -> None:
    with suppress(StorageError, OSError):
        _contents.of(place)


def forget_contents() -> None:
    """Let go of the objects that were read."""
    _contents.forget()


@dataclass(slots=True)
class _Contents:
    """The objects that this process has read, by URI and version."""

    held: OrderedDict[tuple[str, str], Buffer] = field(default_factory=OrderedDict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def has(self, place: ObjectPath) -> bool:
        """Whether an object is here."""
        return (place.uri, place.tag) in self.held

    def of(self, place: ObjectPath) -> Buffer:
        """The content of an object, in its version or, where it names none, in the present one."""
        one = place if place.tag else _present(place)
        key = (one.uri, one.tag)
        with self.lock:
            if key in self.held:
                self.held.move_to_end(key)
                return self.held[key]
        content = _fetched(one)
        with self.lock:
            self.held[key] = content
            while len(self.held) > 1 and sum(map(len, self.held.values())) > ROOM:
                self.held.popitem(last=False)
        return content

    def forget(self) -> None:
        """Let go of all."""
        with self.lock:
            self.held.clear()


_contents = _Contents()


def _present(place: ObjectPath) -> ObjectPath:
    facts = place.facts()
    if facts is None:
        raise FileNotFoundError(place.uri)
    return place.at(facts.identity, facts.size)


def _fetched(place: ObjectPath) -> Buffer:
    """The bytes of one version of an object, by ranges. Raises Changed where it has another one now."""
    bucket, key, tag = place.bucket, place.key, _etag(place)
    if place.size <= PART_BYTES:
        return bucket.read(key, 0, place.size, tag)
    with tempfile.TemporaryFile() as file:
        handle = file.fileno()
        with _room_for(place):
            os.truncate(handle, place.size)

        def read(start: int) -> None:
            part = bucket.read(key, start, min(start + PART_BYTES, place.size), tag)
            while part:
                with _room_for(place):
                    written = os.pwrite(handle, part, start)
                part, start = part[written:], start + written

        with ThreadPoolExecutor(READERS) as pool:
            list(pool.map(read, range(0, place.size, PART_BYTES)))
        return mmap(handle, 0, access=ACCESS_READ)


@contextmanager
def _room_for(place: ObjectPath) -> Iterator[None]:
    """Name the object and the folder where its temporary file cannot be written."""
    try:
        yield
    except OSError as wrong:
        reason = f"E321: {tempfile.gettempdir()} cannot take its {place.size:,} bytes: {wrong.strerror or wrong}; TMPDIR names another folder"
        raise StorageError(place.uri, reason) from wrong


class _Reading(RawIOBase):
    """A buffer as a file."""

    def __init__(self, data: Buffer) -> None:
        self._data, self._at = data, 0

    @override
    def readable(self) -> bool:
        return True

    @override
    def seekable(self) -> bool:
        return True

    @override
    def tell(self) -> int:
        return self._at

    @override
    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = max(0, offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: len(self._data)}[whence])
        return self._at

    @override
    def readinto(self, target: Any) -> int:
        found = self._data[self._at : self._at + len(target)]
        target[: len(found)] = found
        self._at += len(found)
        return len(found)


def _etag(place: ObjectPath) -> str:
    """The ETag in an object's identity, without its version."""
    return place.tag.partition(" ")[0]


def _path(place: Place) -> Path:
    assert isinstance(place, Path)  # `store_of` gave this store
    return place


def _object(place: Place) -> ObjectPath:
    assert isinstance(place, ObjectPath)  # `store_of` gave this store
    return place


@cache
def _folder() -> Path:
    """The folder for outputs that wait for the commit; it goes when the process ends."""
    return temporary_folder("objects")
