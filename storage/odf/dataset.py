"""A dataset in a folder that is written: files and blocks are named by their hashes, `refs/head` names the last block and is replaced last."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from storage import durable
from storage.files.errors import OutputError
from storage.odf.chain import HEAD, LONGEST_HEAD, Chain, Read, damaged, follow, too_long, with_schema
from storage.odf.layout import encoded_block
from storage.odf.multiformats import Multihash, sha3_of
from storage.odf.slices import WrittenSlice, check_slice, write_slice

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FOLDERS", "DatasetFolder"]

FOLDERS: Final = ("blocks", "checkpoints", "data", "info", "refs")


class DatasetFolder:
    """Reads and extends the dataset of a folder.

    Args:
        root: The folder. It may be absent.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, key: str, most: int) -> bytes:
        """An object. Raises OSError, and InputError (E660) for one with more than `most` bytes."""
        file = self.root / key
        if file.stat().st_size > most:
            raise too_long(str(self.root), key, most)
        return file.read_bytes()

    def chain(self, known: Chain | None = None) -> Chain | None:
        """The dataset's chain; None where there is none yet. `known`: the chain up to an earlier head; only newer blocks are read. Raises OutputError (E662) for a folder with something else, InputError (E660), OSError."""
        if self.root.exists() and not self.root.is_dir():
            raise OutputError(f"E662: {self.root} is a file, and no folder of a dataset")
        strange = sorted(one.name for one in self.root.iterdir() if one.name not in FOLDERS) if self.root.is_dir() else []
        if (self.root / HEAD).exists():
            return with_schema(follow(self.read, str(self.root), known), self.read, str(self.root))
        if strange:
            raise OutputError(f"E662: {self.root} has no dataset, but other files: {', '.join(strange[:3])}{' …' if len(strange) > 3 else ''}")
        return None

    def prepare(self) -> None:
        """Make the folders, and remove what an export that was killed had begun."""
        for name in FOLDERS:
            folder = self.root / name
            folder.mkdir(parents=True, exist_ok=True)
            for staged in (one for files in durable.staged_in(folder).values() for one in files):
                staged.unlink()

    def add_slice(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema, event_time: str, documents: Collection[str]) -> WrittenSlice:
        """Write the file of some op rows, none where there are no rows. It is part of the dataset once a block names it."""
        staged = durable.staging_path(self.root / "data" / "slice")
        with durable.undoing(lambda: staged.unlink(missing_ok=True)):
            written = write_slice(batches, schema, event_time, staged, documents)
            if written.rows:
                durable.publish(staged, self.root / "data" / str(written.physical))
            else:
                staged.unlink()
        return written

    def add_block(self, number: int, previous: str | None, moment: datetime, event: tuple[str, Any]) -> str:
        """Write a block and return its hash. It is part of the dataset once the head leads to it."""
        link = {} if previous is None else {"prev_block_hash": Multihash.parse(previous).content}
        content = encoded_block({"system_time": moment, **link, "sequence_number": number, "event": event})
        name = str(sha3_of(content))
        self._write(f"blocks/{name}", content)
        return name

    def point_to(self, block: str) -> None:
        """Make a block the head."""
        self._write(HEAD, block.encode())

    def call(self, alias: str) -> None:
        """Write the name under which the dataset is known."""
        if not (self.root / "info/alias").exists() or (self.root / "info/alias").read_bytes() != alias.encode():
            self._write("info/alias", alias.encode())

    def mirror(self, read: Read, place: str) -> None:
        """Bring a dataset that lies elsewhere to this folder: what the folder lacks of its blocks and data, then the head.

        Args:
            read: Gives an object of the dataset.
            place: The dataset, as messages call it.

        Raises:
            InputError: The dataset is damaged (E660), or cannot be read.
        """
        self.prepare()
        head = read(HEAD, LONGEST_HEAD)
        if (self.root / HEAD).exists() and (self.root / HEAD).read_bytes() == head:
            return

        def block(key: str, most: int) -> bytes:
            if key == HEAD or (self.root / key).exists():
                return head if key == HEAD else self.read(key, most)
            content = read(key, most)
            if str(sha3_of(content)) != key.rpartition("/")[2]:
                raise damaged(place, f"{key} has another content than its name says")
            self._write(key, content)
            return content

        for one in follow(block, place).slices:
            if not (self.root / one.key).exists():
                content = read(one.key, one.size)
                check_slice(content, one, place)
                self._write(one.key, content)
        self._write(HEAD, head)

    def _write(self, key: str, content: bytes) -> None:
        target = self.root / key
        staged = durable.staging_path(target)
        staged.write_bytes(content)
        durable.publish(staged, target)
