"""Local files as buffers: mapped as they are, or decompressed within caps (QUALITY, "Security": ratio at most 200:1 after 64 MB).

A name that ends in `.gz`, `.bz2`, `.xz`, `.zst` or `.zip` (one member) is decompressed; such a file is one range, since nothing in it can be found by its place.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from mmap import ACCESS_READ, mmap
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from changelog.lazy_imports import pa
from storage.formats import limits
from storage.formats.base import Buffer, InputError, Range

_BLOCK = 1 << 20


def is_compressed(path: Path) -> bool:
    """Whether the file's name says that it is compressed."""
    return path.suffix.lower() in _OPENERS


def buffer_of(path: Path, name: str) -> Buffer:
    """The whole content of a file, mapped where it is plain. Raises InputError."""
    try:
        if is_compressed(path):
            return _decompressed(path, name)
        with path.open("rb") as file:
            return mmap(file.fileno(), 0, access=ACCESS_READ) if path.stat().st_size else b""
    except FileNotFoundError:
        raise InputError(name, "file not found") from None
    except OSError as wrong:
        raise InputError(name, f"cannot be read: {wrong.strerror or wrong}") from None


def bytes_of(path: Path, name: str, part: Range) -> Buffer:
    """The bytes of one range of a file. Raises InputError."""
    whole = buffer_of(path, name)
    return whole if part.start == 0 and part.end == len(whole) else whole[part.start : part.end]


def _decompressed(path: Path, name: str) -> Buffer:
    """The content in a temporary file that nothing else sees, mapped."""
    packed, size = path.stat().st_size, 0
    with TemporaryFile() as unpacked:
        try:
            for block in _OPENERS[path.suffix.lower()](path):
                size += len(block)
                limits.check_expansion(name, packed, size)
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
