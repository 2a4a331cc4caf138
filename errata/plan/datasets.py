"""Datasets of Open Data Fabric that sources read: the chain of their blocks, and the files that the blocks name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from errata.core.failures import StorageFailed
from operators.core.row_type import is_reserved
from operators.source.file_changes import FileRecord
from operators.source.node import SourceNode
from storage import durable
from storage.errors import StorageError
from storage.files.discovery import FileStat
from storage.files.errors import InputError
from storage.files.stores import store_of
from storage.odf.chain import HEAD, Chain, Slice, damaged, follow, too_long
from storage.odf.dataset import DatasetFolder
from storage.odf.kept_chain import kept, kept_text
from storage.odf.slices import check_slice, first_taking_back
from storage.stores.places import ObjectPath, Place, Places

if TYPE_CHECKING:
    from storage.rest import client
else:
    from changelog.lazy_imports import Lazy

    client = Lazy("storage.rest.client")

__all__ = ["Dataset"]

@dataclass(slots=True)
class Dataset:
    """The dataset of a source.

    Attributes:
        known: What was read of its chain. A block never changes, so only newer ones are read.
    """

    source: SourceNode
    places: Places
    known: Chain | None = None

    @property
    def path(self) -> str:
        """Its directory, as the pipeline names it; of one on a server the directory of the copy."""
        if self.source.config.publisher is None:
            return (self.source.config.path or "").rstrip("/")
        copy = self.copy
        return "" if copy is None else copy.relative_to(self.places.folder).as_posix() if copy.is_relative_to(self.places.folder) else str(copy)

    @property
    def copy(self) -> Path | None:
        """The copy of a dataset on a server, which each run brings up to date; None for a directory, and where no place is configured."""
        if self.source.config.publisher is None or self.source.fetched is None:
            return None
        return self.source.fetched / self.source.name / "dataset"

    @property
    def name(self) -> str:
        """The dataset, as messages call it."""
        publisher = self.source.config.publisher
        return self.path if publisher is None else publisher.url

    def fetch(self) -> None:
        """Bring the copy of a dataset on a server up to date. Raises StorageFailed."""
        publisher, copy = self.source.config.publisher, self.copy
        if publisher is None or copy is None:
            return
        try:
            with client.Pull(publisher, publisher.url, lambda body: ()).objects() as get:

                def read(key: str, most: int) -> bytes:
                    content = get(key, most)
                    if content is None:
                        raise too_long(publisher.url, key, most)
                    return content

                DatasetFolder(copy).mirror(read, publisher.url)
        except InputError as error:
            raise StorageFailed(f"source '{self.source.name}': {error}") from error
        except OSError as error:
            raise StorageFailed(f"source '{self.source.name}': {error.filename}: {error.strerror}") from error

    def _place(self, key: str) -> Place:
        return self.places / f"{self.path}/{key}"

    def _read(self, key: str, most: int) -> bytes:
        place = self._place(key)
        if isinstance(place, ObjectPath):
            found = place.bucket.small(place.key, most)  # what a process keeps of an object may be an older head
            if found is None:
                raise FileNotFoundError(place.uri)
            content, size = found[0], found[1].size
        else:
            size = store_of(place).size(place)
            content = bytes(store_of(place).content(place)) if size <= most else b""
        if size > most:
            raise too_long(self.name, key, most)
        return content

    def chain(self) -> Chain | None:
        """The chain of its blocks; None where there is no dataset yet, and the source says that this may be. Raises StorageFailed, InputError (E660), StorageError, OSError."""
        config = self.source.config
        if store_of(head := self._place(HEAD)).stamp(head) is None:
            if config.files.on_no_match == "error" and config.publisher is None:
                raise StorageFailed(f"source '{self.source.name}': there is no dataset in {self.path}", file=self.path)
            return None
        chain = self.known = follow(self._read, self.name, self.known or self._kept())
        names = {one.name: one.source_name or one.name for one in config.schema_}
        if config.marks and names[config.merge.op or ""] != (op := chain.vocabulary.op):
            help_text = f"merge: {{ primary_key: [...], op: {op} }}" if not is_reserved(op) else f"declare {{ name: operation, type: int, source_name: {op} }}, and merge: {{ primary_key: [...], op: operation }}"
            raise StorageFailed(f"source '{self.source.name}': E664: the dataset has its operations in the column '{op}'", help=help_text)
        return chain

    def files(self) -> Sequence[FileStat]:
        """Its data in the order of the rows. Raises StorageFailed, also for a dataset that is damaged (E660)."""
        try:
            chain = self.chain()
            return () if chain is None else [self._file(one) for one in chain.slices]
        except (InputError, StorageError) as error:
            raise StorageFailed(f"source '{self.source.name}': {error}", file=self.path) from error
        except OSError as error:
            raise StorageFailed(f"source '{self.source.name}': {error.filename}: {error.strerror}", file=self.path) from error

    def _file(self, one: Slice) -> FileStat:
        place = self._place(one.key)
        stamp = store_of(place).stamp(place)
        if stamp is None or stamp.size != one.size:
            raise damaged(self.name, f"{one.key} {'is not there' if stamp is None else f'has {stamp.size} bytes, and its block says {one.size}'}")
        if isinstance(place, ObjectPath):
            place = place.at(stamp.tag, stamp.size)
        return FileStat(place, f"{self.path}/{one.key}", stamp.size, stamp.mtime_ns, 0, stamp.tag)

    def digest(self, place: Place) -> str:
        """The hash of a file, which is its name. Raises StorageFailed where it has another content (E660), or takes rows back although they are only appended (E665)."""
        content, chain = store_of(place).content(place), self.known
        assert chain is not None  # a file of it was found
        try:
            check_slice(content, next(one for one in reversed(chain.slices) if one.name == place.name), self.name)
            at = first_taking_back(content, chain.vocabulary, self.name) if self.source.config.merge.strategy == "append" else None
        except InputError as error:
            raise StorageFailed(f"source '{self.source.name}': {error}", file=self.path) from error
        if at is not None:
            message = f"source '{self.source.name}': E665: the row with offset {at} of {self.name} takes another row back, and 'merge: append' has no key by which rows are known"
            raise StorageFailed(message, help="merge: { primary_key: [...] }")
        return place.name

    def refuse_other_history(self, known: Sequence[FileRecord], found: Sequence[FileStat]) -> None:
        """Raise StorageFailed (E661) where the dataset does not begin with the data that was read of it."""
        before = [record.path.rpartition("/")[2] for record in sorted(known, key=lambda record: record.label) if record.present]
        now = [file.path.name for file in found]
        if before == now[: len(before)]:
            return
        at = next((number for number, (old, new) in enumerate(zip(before, now, strict=False)) if old != new), len(now))
        message = f"source '{self.source.name}': E661: the dataset in {self.name} has another history than the one that was read: they part at its data file {at + 1}"
        raise StorageFailed(message, help="--full-refresh reads it from its begin", file=self.path)

    # -- what a run keeps

    def keep(self) -> None:
        """Keep what was read of the chain in the state folder, so that the next run reads newer blocks only."""
        chain, file = self.known, self._kept_file
        if chain is None or file is None or ((before := self._kept()) is not None and before.head == chain.head):
            return
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        staged = durable.staging_path(file)
        staged.write_text(kept_text(chain))
        durable.publish(staged, file)

    @property
    def _kept_file(self) -> Path | None:
        return None if self.source.fetched is None else self.source.fetched / self.source.name / "chain.json"

    def _kept(self) -> Chain | None:
        """The chain as an earlier run left it; None where nothing of use was kept."""
        file = self._kept_file
        try:
            return None if file is None or not file.is_file() else kept(file.read_text())
        except (OSError, ValueError):
            return None
