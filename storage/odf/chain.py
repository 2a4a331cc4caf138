"""The chain of a dataset's blocks, from the head back to the seed, and the data that they name.

Each block is checked when it is read: its hash is its name, it is of the schema, it has the number before that of the next one, and the data that it adds begins
where the data before ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from storage.errors import StorageError
from storage.files.errors import InputError
from storage.odf.buffers import DamagedBuffer, Table
from storage.odf.columns import Vocabulary
from storage.odf.layout import read_block
from storage.odf.multiformats import SHA3_256, Multihash, dataset_id, sha3_of

__all__ = ["HEAD", "LONGEST_HEAD", "Block", "Chain", "Slice", "damaged", "follow", "head_of", "too_long", "with_schema"]

HEAD: Final = "refs/head"
LONGEST_HEAD: Final = 200
_LONGEST_BLOCK: Final = 16 << 20

Read = Callable[[str, int], bytes]
"""Gives the object of a key such as `refs/head`. The number is the most bytes that it may have: of a longer one nothing is read. Raises InputError (E660), OSError and StorageError."""


def damaged(place: str, reason: str) -> InputError:
    """The error (E660) of a dataset that is not as ODF's specification has it."""
    return InputError(place, f"E660: the dataset is damaged: {reason}")


def too_long(place: str, key: str, most: int) -> InputError:
    """The error (E660) of an object that is longer than it can be."""
    return damaged(place, f"{key} has more than {most:,} bytes")


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows that a block adds: a file, its hashes, the offsets of its first and its last row."""

    name: str
    size: int
    start: int
    end: int

    @property
    def key(self) -> str:
        """Its object."""
        return f"data/{self.name}"


@dataclass(frozen=True, slots=True)
class Block:
    """A block of metadata. `event`: the name of its table, and the table."""

    hash: str
    number: int
    system_time: datetime
    previous: str | None
    event: tuple[str, Table]


@dataclass(slots=True)
class Chain:
    """The state of a dataset by its blocks up to a head.

    Attributes:
        head: The hash of the last block.
        number: Its number, from 0 at the seed.
        identity: The bytes of the dataset's identity.
        system_time: When the last block was written.
        begun: When the first one was; None where only later ones were read.
        vocabulary: The names of the dataset's own columns.
        schema: The last schema of the data, as blocks have it.
        schema_block: The block that set it.
        slices: The data, in order.
        watermark: The last one.
        source_state: What the last block with data said of its source.
    """

    head: str
    number: int
    identity: bytes
    system_time: datetime
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    schema: Table | None = None
    slices: list[Slice] = field(default_factory=list)
    watermark: datetime | None = None
    source_state: Table | None = None
    begun: datetime | None = None
    schema_block: str | None = None

    @property
    def did(self) -> str:
        """The dataset's identity as text."""
        return dataset_id(self.identity)

    @property
    def last_offset(self) -> int | None:
        """The offset of the last row; None before the first."""
        return self.slices[-1].end if self.slices else None


def head_of(read: Read, place: str) -> str:
    """The hash of the last block. Raises InputError (E660), OSError and StorageError."""
    try:
        text = read(HEAD, LONGEST_HEAD).decode("ascii").strip()
        return str(Multihash.parse(text))
    except (UnicodeDecodeError, ValueError) as wrong:
        raise damaged(place, f"{HEAD} is no hash: {wrong}") from None


@dataclass(slots=True)
class _Walk:
    """The way back. `blocks`: newest first."""

    read: Read
    place: str
    blocks: list[Block] = field(default_factory=list)

    def block(self, name: str) -> Block:
        """A block by the hash that names it. Raises InputError (E660)."""
        try:
            data = self.read(f"blocks/{name}", _LONGEST_BLOCK)
        except (FileNotFoundError, StorageError) as missing:
            raise damaged(self.place, f"block {name} is not there") from missing
        if str(sha3_of(data)) != name:
            raise damaged(self.place, f"block {name} has another content than its name says")
        try:
            content = read_block(data)
            previous = None if "prev_block_hash" not in content else str(Multihash.of(content["prev_block_hash"]))
            return Block(name, content["sequence_number"], content["system_time"], previous, content["event"])
        except (DamagedBuffer, ValueError) as wrong:
            raise damaged(self.place, f"block {name}: {wrong}") from wrong
        except KeyError as missing:
            raise damaged(self.place, f"block {name} has no {missing.args[0]}") from None

    def back_to(self, head: str, known: str | None) -> None:
        """Read blocks from the head to the seed, or to a known one, which is not read."""
        name: str | None = head
        while name is not None and name != known:
            block = self.block(name)
            if self.blocks and block.number != self.blocks[-1].number - 1:
                raise damaged(self.place, f"block {name} has number {block.number} and stands before block {self.blocks[-1].number}")
            if len({block.previous is None, block.event[0] == "Seed", block.number == 0}) > 1:
                raise damaged(self.place, f"block {name}: the first block, and no other, is a seed and has number 0")
            self.blocks.append(block)
            name = block.previous


def follow(read: Read, place: str, known: Chain | None = None) -> Chain:
    """The chain of a dataset, in full or from what is known of it on. A head that does not lead to the known one is read to its seed.

    Args:
        read: Gives the object of a key.
        place: The dataset, as messages call it.
        known: What an earlier head said.

    Raises:
        InputError: The dataset is damaged (E660).
        OSError, StorageError: It cannot be read.
    """
    walk = _Walk(read, place)
    walk.back_to(head_of(read, place), known.head if known else None)
    blocks = walk.blocks[::-1]
    if known is not None and (not blocks or blocks[0].previous == known.head):
        if blocks and blocks[0].number != known.number + 1:
            raise damaged(place, f"block {blocks[0].hash} has number {blocks[0].number} and stands behind block {known.number}")
        return _extended(known, blocks, place)
    seed = blocks[0]
    identity = seed.event[1].get("dataset_id")
    if identity is None:
        raise damaged(place, "its seed has no identity")
    return _extended(Chain(seed.hash, 0, identity, seed.system_time, begun=seed.system_time), blocks[1:], place)


def with_schema(chain: Chain, read: Read, place: str) -> Chain:
    """The chain with its schema, which is read where only its block is known. Raises InputError (E660), OSError and StorageError."""
    if chain.schema is None and chain.schema_block is not None:
        chain.schema = _Walk(read, place).block(chain.schema_block).event[1].get("schema")
    return chain


def _extended(before: Chain, blocks: Sequence[Block], place: str) -> Chain:
    chain = replace(before, slices=[*before.slices])
    for block in blocks:
        name, event = block.event
        chain.head, chain.number, chain.system_time = block.hash, block.number, block.system_time
        if name == "SetVocab":
            chain.vocabulary = Vocabulary.of(event)
        elif name == "SetDataSchema":
            chain.schema, chain.schema_block = event.get("schema"), block.hash
        elif name in ("AddData", "ExecuteTransform"):
            _add_data(chain, block, event, place)
    return chain


def _add_data(chain: Chain, block: Block, event: Table, place: str) -> None:
    if event.get("prev_offset") != chain.last_offset:
        raise damaged(place, f"block {block.hash} follows offset {event.get('prev_offset')}, and the data before ends at {chain.last_offset}")
    chain.watermark = event.get("new_watermark", chain.watermark)
    chain.source_state = event.get("new_source_state", chain.source_state)
    if event.get("new_data") is not None:
        chain.slices.append(_slice(chain, block, event["new_data"], place))


def _slice(chain: Chain, block: Block, data: Table, place: str) -> Slice:
    try:
        physical = Multihash.of(data["physical_hash"])
        added = Slice(str(physical), data["size"], data["offset_interval"]["start"], data["offset_interval"]["end"])
    except (KeyError, ValueError) as wrong:
        raise damaged(place, f"block {block.hash} names no data: {wrong}") from wrong
    following = 0 if chain.last_offset is None else chain.last_offset + 1
    if added.start != following or added.end < added.start or physical.code != SHA3_256:
        raise damaged(place, f"block {block.hash} adds offsets {added.start} to {added.end}, and {following} follows")
    return added
