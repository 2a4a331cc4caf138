"""Object container files: the header, and the blocks of records behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from storage.files.errors import Buffer, InputError
from storage.formats.avro.codecs import CODECS

MAGIC = b"Obj\x01"
SYNC = 16
_LONGEST = 10


def damaged(name: str, reason: str, offset: int) -> InputError:
    """The error (E630) of a file that is not read as Avro, with the byte where it is."""
    return InputError(name, f"E630: cannot be read as Avro: {reason}", offset=offset)


class Block(NamedTuple):
    """A block: where it begins, how many records it has, where its packed bytes are."""

    offset: int
    records: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Container:
    """A file: its schema, its codec, and where its blocks begin."""

    data: Buffer
    name: str
    schema: Any
    codec: str
    sync: bytes
    begin: int

    @classmethod
    def of(cls, data: Buffer, name: str) -> Container:
        """Read the header. Raises InputError (E630)."""
        if data[:4] != MAGIC:
            raise damaged(name, "it does not begin as Avro files do", 0)
        places = _Places(data, name, 4)
        meta = dict(places.entries())
        sync = places.take(SYNC)
        try:
            schema = orjson.loads(meta.get("avro.schema", b""))
        except orjson.JSONDecodeError:
            raise damaged(name, "its schema is no JSON", 4) from None
        codec = meta.get("avro.codec", b"null").decode("utf-8", "replace")
        if codec not in CODECS:
            raise damaged(name, f"codec '{codec}' is not known", 4)
        return cls(data, name, schema, codec, sync, places.at)

    def blocks(self) -> Iterator[Block]:
        """The blocks in order. Raises InputError (E630) at the one that is damaged."""
        places = _Places(self.data, self.name, self.begin)
        while places.at < len(self.data):
            offset = places.at
            records, size = places.long(), places.long()
            start = places.at
            if records < 0 or size < 0:
                raise damaged(self.name, "a block has a negative size", offset)
            places.skip(size)
            if places.take(SYNC) != self.sync:
                raise damaged(self.name, "a block does not end with the marker of the file", places.at - SYNC)
            yield Block(offset, records, start, start + size)


@dataclass(slots=True)
class _Places:
    """A place in a file that moves as values are read."""

    data: Buffer
    name: str
    at: int

    def long(self) -> int:
        """A number of variable length."""
        value = 0
        for place in range(_LONGEST):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
        raise damaged(self.name, "a number is too long", self.at)

    def take(self, size: int) -> bytes:
        """Some bytes."""
        start = self.at
        self.skip(size)
        return bytes(self.data[start : self.at])

    def skip(self, size: int) -> None:
        """Go behind some bytes."""
        if size < 0 or self.at + size > len(self.data):
            raise damaged(self.name, "the file ends early", self.at)
        self.at += size

    def entries(self) -> Iterator[tuple[str, bytes]]:
        """A map of bytes."""
        while count := self.long():
            if count < 0:
                self.long()
            for _ in range(abs(count)):
                key = self.take(self.long()).decode("utf-8", "replace")
                yield key, self.take(self.long())


def encoded(number: int) -> bytes:
    """A number as Avro writes it."""
    left, made = (number << 1) ^ (number >> 63), bytearray()
    while left > 0x7F:
        made.append(left & 0x7F | 0x80)
        left >>= 7
    made.append(left)
    return bytes(made)


def header(meta: Mapping[str, bytes], sync: bytes) -> bytes:
    """The header of a file."""
    entries = b"".join(encoded(len(part)) + part for key, value in meta.items() for part in (key.encode(), value))
    return MAGIC + encoded(len(meta)) + entries + encoded(0) + sync
