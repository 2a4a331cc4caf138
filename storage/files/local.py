"""Files as buffers: mapped, or decompressed within limits.

A file whose name ends in `.gz`, `.bz2`, `.xz`, `.zst` or `.zip` (one member) is decompressed.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from mmap import ACCESS_READ, MADV_DONTNEED, mmap
from tempfile import TemporaryFile
from typing import IO, TypeVar, cast

from changelog.lazy_imports import pa
from storage.errors import StorageError
from storage.files.errors import Buffer, InputError
from storage.files.stores import store_of
from storage.stores.places import Place

EXPANSION, EXPANSION_FREE = 200, 64 << 20
"""A compressed or dictionary-encoded file may unpack to EXPANSION times its size. Below EXPANSION_FREE bytes it may always."""
_BLOCK = 1 << 20
RESIDENT = 64 << 20
"""Bytes of a mapped file that stay in memory, about, while it is read from begin to end."""
_PLACES = 32
"""Places of a mapped file whose pages stay in memory. The system may map 2 MB around each."""
_Item = TypeVar("_Item")


def is_compressed(path: Place) -> bool:
    """Whether a file is compressed, by its name."""
    return path.suffix.lower() in _OPENERS


def buffer_of(path: Place, name: str) -> Buffer:
    """The content of a file, mapped where it is not compressed. Raises InputError."""
    with _read(name):
        return _decompressed(path, name) if is_compressed(path) else store_of(path).content(path)


def bytes_of(path: Place, name: str, start: int, end: int) -> Buffer:
    """Bytes `start` to `end` of a file. Raises InputError."""
    with _read(name):
        part = None if is_compressed(path) else store_of(path).part(path, start, end)
    if part is not None:
        return part
    whole = buffer_of(path, name)
    return whole if start == 0 and end == len(whole) else whole[start:end]


@contextmanager
def _read(name: str) -> Iterator[None]:
    """Turn the failures of a place into InputError."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(name, "file not found") from None
    except OSError as wrong:
        raise InputError(name, f"cannot be read: {wrong.strerror or wrong}") from None
    except StorageError as wrong:
        raise InputError(name, wrong.reason) from None


def release_pages(data: Buffer) -> None:
    """Take the pages of a mapped file out of this process's memory. They come back when they are read."""
    if isinstance(data, mmap):
        data.madvise(MADV_DONTNEED)


def by_parts(data: Buffer, results: Iterable[_Item], size: int) -> Iterator[_Item]:
    """Yield what was found in the parts of a mapped file, of about `size` bytes each and in order. Pages are released behind some parts."""
    for number, item in enumerate(results, 1):
        yield item
        if number % max(RESIDENT // size, 1) == 0:
            release_pages(data)


def by_places(data: Buffer, items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    """Yield items in groups. Each item stands for another place of a mapped file. Pages are released behind each group."""
    for first in range(0, len(items), _PLACES):
        yield items[first : first + _PLACES]
        release_pages(data)


def check_expansion(file: str, packed: int, unpacked: int) -> None:
    """Raise InputError (E236) where `packed` bytes of a file unpack to more than they may."""
    if unpacked > EXPANSION_FREE and unpacked > packed * EXPANSION:
        message = f"E236: the file unpacks to more than {EXPANSION} times its size: write it with less compression, or in several files"
        raise InputError(file, message)


def _decompressed(path: Place, name: str) -> Buffer:
    """The content, in an unnamed temporary file that is mapped."""
    packed, size = store_of(path).size(path), 0
    with TemporaryFile() as unpacked, store_of(path).open(path) as file:
        try:
            for block in _OPENERS[path.suffix.lower()](file):
                size += len(block)
                check_expansion(name, packed, size)
                unpacked.write(block)
            unpacked.flush()
        except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile, OSError, NotImplementedError, RuntimeError) as wrong:
            raise InputError(name, f"cannot be decompressed: {wrong}") from None
        return mmap(unpacked.fileno(), 0, access=ACCESS_READ) if size else b""


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    while block := stream.read(_BLOCK):
        yield block


def _gzip(file: IO[bytes]) -> Iterator[bytes]:
    with gzip.open(file) as stream:
        yield from _blocks(cast("IO[bytes]", stream))


def _bz2(file: IO[bytes]) -> Iterator[bytes]:
    with bz2.open(file) as stream:
        yield from _blocks(cast("IO[bytes]", stream))


def _xz(file: IO[bytes]) -> Iterator[bytes]:
    with lzma.open(file) as stream:
        yield from _blocks(cast("IO[bytes]", stream))


def _zstd(file: IO[bytes]) -> Iterator[bytes]:
    with pa.input_stream(file, compression="zstd") as stream:
        yield from _blocks(stream)


def _zip(file: IO[bytes]) -> Iterator[bytes]:
    with zipfile.ZipFile(file) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        if len(members) != 1:
            raise zipfile.BadZipFile(f"{len(members)} files inside where one is expected")
        with archive.open(members[0]) as stream:
            yield from _blocks(stream)


_OPENERS: dict[str, Callable[[IO[bytes]], Iterator[bytes]]] = {".gz": _gzip, ".bz2": _bz2, ".xz": _xz, ".zst": _zstd, ".zip": _zip}
