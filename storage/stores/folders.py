"""Files below a place, in a local folder or in an object store: what lies there, its bytes, and its removal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from storage import durable
from storage.errors import StorageError, storing
from storage.stores.client import Bucket, bucket_of
from storage.stores.connections import StoreConnection, of_environment
from storage.stores.places import ObjectPath, Place
from storage.uris import is_local

__all__ = ["Folder", "folder_at", "folder_of"]


class Folder(Protocol):
    """A folder or a prefix of keys. Names are relative to it, with slashes. Every method raises StorageError."""

    def names(self, below: str = "") -> Iterator[str]:
        """The files below the folder whose names begin so, in order."""

    def read(self, name: str) -> bytes:
        """The content of a file."""

    def replace(self, name: str, content: bytes) -> None:
        """Put another content in the place of a file's. Readers see either one."""

    def create(self, name: str, content: bytes) -> None:
        """Write a file for its owner alone."""

    def remove(self, name: str) -> None:
        """Remove a file; nothing where there is none."""


def folder_at(place: str, connection: StoreConnection | None = None) -> Folder:
    """Return the folder at a path or URI, which the connection covers, or the settings of the environment."""
    if is_local(place):
        return _LocalFolder(Path(place.removeprefix("file://")))
    return _Prefix(*bucket_of(place.rstrip("/"), connection or of_environment(place)))


def folder_of(place: Place) -> Folder:
    """Return the folder at a place of a pipeline, as its connection reaches it."""
    return _Prefix(place.bucket, place.key.rstrip("/")) if isinstance(place, ObjectPath) else _LocalFolder(place)


@dataclass(frozen=True, slots=True)
class _LocalFolder:
    path: Path

    def names(self, below: str = "") -> Iterator[str]:
        found = (file.relative_to(self.path).as_posix() for file in self.path.rglob("*") if file.is_file() or file.is_symlink())
        return iter(sorted(name for name in found if name.startswith(below)))

    def read(self, name: str) -> bytes:
        with storing(str(self.path / name)):
            return (self.path / name).read_bytes()

    def replace(self, name: str, content: bytes) -> None:
        target = self.path / name
        staged = durable.staging_path(target)
        with storing(str(target)):
            mode = target.stat().st_mode
            staged.write_bytes(content)
            staged.chmod(mode)
            durable.replace(staged, target)

    def create(self, name: str, content: bytes) -> None:
        target = self.path / name
        staged = durable.staging_path(target)
        with storing(str(target)):
            staged.touch(mode=0o600)
            staged.write_bytes(content)
            durable.replace(staged, target)

    def remove(self, name: str) -> None:
        file = self.path / name
        with storing(str(file)):
            file.unlink(missing_ok=True)
            for folder in file.relative_to(self.path).parents:
                empty = self.path / folder
                if folder == Path() or any(empty.iterdir()):
                    break
                empty.rmdir()


@dataclass(frozen=True, slots=True)
class _Prefix:
    bucket: Bucket
    key: str

    def names(self, below: str = "") -> Iterator[str]:
        begin = f"{self.key}/"
        return (one.key.removeprefix(begin) for one in self.bucket.list(f"{begin}{below}"))

    def read(self, name: str) -> bytes:
        found = self.bucket.small(f"{self.key}/{name}")
        if found is None:
            raise StorageError(f"{self.bucket.root}/{self.key}/{name}", "it is gone")
        return found[0]

    def replace(self, name: str, content: bytes) -> None:
        self.bucket.put(f"{self.key}/{name}", content)

    def create(self, name: str, content: bytes) -> None:
        self.replace(name, content)

    def remove(self, name: str) -> None:
        self.bucket.delete(f"{self.key}/{name}")
