"""Places of files: paths on this machine, and objects in a store, by texts of a pipeline or of the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from storage.errors import StorageError
from storage.stores.client import Bucket, Facts, bucket_of
from storage.stores.connections import StoreConnection, Stores, of_environment
from storage.uris import is_object

__all__ = ["HERE", "NO_STORES", "ObjectPath", "Place", "Places"]

NO_STORES = Stores()


@dataclass(frozen=True, slots=True)
class ObjectPath:
    """An object by its URI, with the names that `pathlib` has for what both have. Pickled, it has no secret.

    Attributes:
        tag: Identity (`Facts.identity`) of the version that is read; empty for the present one.
        size: Bytes of that version.
    """

    uri: str
    connection: StoreConnection = field(compare=False, repr=False)
    tag: str = field(default="", compare=False)
    size: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return self.uri

    @property
    def bucket(self) -> Bucket:
        """Its bucket."""
        return bucket_of(self.uri, self.connection)[0]

    @property
    def key(self) -> str:
        """Its key in the bucket."""
        return bucket_of(self.uri, self.connection)[1]

    @property
    def name(self) -> str:
        """The last step of its key."""
        return self.uri.rpartition("/")[2]

    @property
    def stem(self) -> str:
        """The name without its ending."""
        return PurePosixPath(self.name).stem

    @property
    def suffix(self) -> str:
        """The ending of the name, with its point."""
        return PurePosixPath(self.name).suffix

    @property
    def parent(self) -> ObjectPath:
        """The prefix that its name follows."""
        return ObjectPath(self.uri.rpartition("/")[0], self.connection)

    @property
    def parents(self) -> tuple[ObjectPath, ...]:
        """None: a prefix is no folder, so nothing can be in its way."""
        return ()

    def with_name(self, name: str) -> ObjectPath:
        """The object beside it with another name."""
        return ObjectPath(f"{self.parent}/{name}", self.connection)

    def at(self, tag: str, size: int) -> ObjectPath:
        """The same object in one version."""
        return replace(self, tag=tag, size=size)

    def facts(self) -> Facts | None:
        """The facts of its store about it; None where it is not there. Raises StoreFailed."""
        return self.bucket.facts(self.key)

    def exists(self) -> bool:
        """Whether it is there. Raises StoreFailed."""
        return self.facts() is not None

    def is_file(self) -> bool:
        """Whether it is there. Raises StoreFailed."""
        return self.exists()

    def is_dir(self) -> bool:
        """False: a store has no folders."""
        return False

    def is_relative_to(self, other: object) -> bool:
        """Whether it lies at or below another one."""
        return self.uri == str(other) or self.uri.startswith(f"{other}/")

    def resolve(self) -> ObjectPath:
        """Itself: a store has no links."""
        return self

    def as_posix(self) -> str:
        """Its URI."""
        return self.uri

    def find(self, prefix: str) -> Iterator[tuple[ObjectPath, Facts]]:
        """The objects of its bucket whose keys begin with a prefix, by name. Raises StoreFailed."""
        bucket = self.bucket
        for one in bucket.list(prefix):
            yield ObjectPath(f"{bucket.root}/{one.key}", self.connection, one.identity, one.size), one


Place: TypeAlias = Path | ObjectPath


@dataclass(frozen=True, slots=True)
class Places:
    """Where texts of a pipeline, and of its ledger, lead: below a folder, or into a store that a connection covers."""

    folder: Path
    stores: Stores = NO_STORES

    def __truediv__(self, text: str | Place) -> Place:
        """The place of a path or URI. What a pipeline names was checked (E640): a URI that no connection covers is that of a table, or of a connection that is gone.

        Raises:
            StorageError: A step of a URI is `..`.
        """
        name = str(text)
        if not is_object(name):
            return self.folder / name
        if ".." in name.split("/"):
            raise StorageError(name, "a '..' step leads out of its prefix")
        return ObjectPath(name, self.stores.covering(name) or of_environment(name))

    def text(self, place: Place) -> str:
        """A place as a text that `read` understands, also in another process."""
        return f"{place.uri}\n{place.tag}\n{place.size}" if isinstance(place, ObjectPath) else str(place)

    def read(self, text: str) -> Place:
        """The place of such a text."""
        if not is_object(text):
            return Path(text)
        uri, tag, size = text.rsplit("\n", 2)
        found = self / uri
        return found.at(tag, int(size)) if isinstance(found, ObjectPath) else found


HERE = Places(Path())
"""The working directory, and no store."""
