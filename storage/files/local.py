"""Local files as buffers: mapped, or decompressed within limits.

A file whose name ends in `.gz`, `.bz2`, `.xz`, `.zst` or `.zip` (one member) is decompressed.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from mmap import ACCESS_READ, MADV_DONTNEED, mmap
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from changelog.lazy_imports import pa
from storage.files.errors import Buffer, InputError

EXPANSION, EXPANSION_FREE = 200, 64 << 20
"""A compressed or dictionary-encoded file may unpack to EXPANSION times its size. Below EXPANSION_FREE bytes it may always."""
_BLOCK = 1 << 20


def is_compressed(path: Path) -> bool:
    """Whether a file is compressed, by its name."""
    return path.suffix.lower() in _OPENERS


def buffer_of(path: Path, name: str) -> Buffer:
    """The content of a file, mapped where it is not compressed. Raises InputError."""
    try:
        if is_compressed(path):
            return _decompressed(path, name)
        with path.open("rb") as file:
            return mmap(file.fileno(), 0, access=ACCESS_READ) if path.stat().st_size else b""
    except FileNotFoundError:
        raise InputError(name, "file not found") from None
    except OSError as wrong:
        raise InputError(name, f"cannot be read: {wrong.strerror or wrong}") from None


def bytes_of(path: Path, name: str, start: int, end: int) -> Buffer:
    """Bytes `start` to `end` of a file. Raises InputError."""
    whole = buffer_of(path, name)
    return whole if start == 0 and end == len(whole) else whole[start:end]


def release_pages(data: Buffer) -> None:
    """Take the pages of a mapped file out of this process's memory. They come back when they are read."""
    if isinstance(data, mmap):
        data.madvise(MADV_DONTNEED)


def check_expansion(file: str, packed: int, unpacked: int) -> None:
    """Raise InputError (E236) where `packed` bytes of a file unpack to more than they may."""
    if unpacked > EXPANSION_FREE and unpacked > packed * EXPANSION:
        message = f"E236: the file unpacks to more than {EXPANSION} times its size: write it with less compression, or in several files"
        raise InputError(file, message)


def _decompressed(path: Path, name: str) -> Buffer:
    """The content, in an unnamed temporary file that is mapped."""
    packed, size = path.stat().st_size, 0
    with TemporaryFile() as unpacked:
        try:
            for block in _OPENERS[path.suffix.lower()](path):
                size += len(block)
                check_expansion(name, packed, size)
                unpacked.write(block)
            unpacked.flush()
        except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile, OSError, NotImplementedError, RuntimeError) as wrong:
            raise InputError(name, f"cannot be decompressed: {wrong}") from None
        return mmap(unpacked.fileno(), 0, access=ACCESS_READ) if size else b""


def _blocks(stream: BufferedIOBase | IO[bytes]) -> Iterator[bytes]:
    while block := stream.read(_BLOCK):
        yield block


def _gzip(path: Path) -> Iterator[bytes]:
    with gzip.open(path) as stream:
        yield from _blocks(stream)


def _bz2(path: Path) -> Iterator[bytes]:
    with bz2.open(path) as stream:
        yield from _blocks(stream)


def _xz(path: Path) -> Iterator[bytes]:
    with lzma.open(path) as stream:
        yield from _blocks(stream)


def _zstd(path: Path) -> Iterator[bytes]:
    with pa.input_stream(str(path), compression="zstd") as stream:
        yield from _blocks(stream)


def _zip(path: Path) -> Iterator[bytes]:
    with zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        if len(members) != 1:
            raise zipfile.BadZipFile(f"{len(members)} files inside where one is expected")
        with archive.open(members[0]) as stream:
            yield from _blocks(stream)


_OPENERS: dict[str, Callable[[Path], Iterator[bytes]]] = {".gz": _gzip, ".bz2": _bz2, ".xz": _xz, ".zst": _zstd, ".zip": _zip}
