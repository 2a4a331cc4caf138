"""Codecs of the blocks of Avro files."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from changelog.lazy_imports import pa

CODECS = ("null", "deflate", "bzip2", "xz", "zstandard", "snappy")
_BLOCK = 1 << 20
_CHECKSUM = 4


class UnreadableBlock(ValueError):
    """A block that its codec cannot unpack."""


def packed(codec: str, data: bytes) -> bytes:
    """A block by its codec."""
    if codec == "deflate":
        deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        return deflate.compress(data) + deflate.flush()
    if codec == "snappy":
        return bytes(pa.Codec("snappy").compress(data, asbytes=True)) + zlib.crc32(data).to_bytes(_CHECKSUM, "big")
    make: dict[str, Callable[[bytes], bytes]] = {"bzip2": bz2.compress, "xz": lzma.compress, "zstandard": lambda text: bytes(pa.Codec("zstd").compress(text, asbytes=True))}
    return make.get(codec, bytes)(data)


def unpacked(codec: str, data: bytes, grown: Callable[[int], None]) -> bytes:
    """The unpacked content of a block. `grown` takes its size so far, and may stop it. Raises UnreadableBlock."""
    try:
        parts, size = [], 0
        for part in _parts(codec, data, grown):
            size += len(part)
            grown(size)
            parts.append(part)
    except (zlib.error, lzma.LZMAError, EOFError, OSError, pa.ArrowException) as wrong:
        raise UnreadableBlock(str(wrong)) from None
    return b"".join(parts)


def _parts(codec: str, data: bytes, grown: Callable[[int], None]) -> Iterator[bytes]:
    if codec == "null":
        yield data
    elif codec == "deflate":
        yield from _inflated(zlib.decompressobj(-zlib.MAX_WBITS), data)
    elif codec in ("bzip2", "xz"):
        yield from _decompressed(bz2.BZ2Decompressor() if codec == "bzip2" else lzma.LZMADecompressor(), data)
    elif codec == "zstandard":
        with pa.input_stream(pa.BufferReader(data), compression="zstd") as stream:
            while block := stream.read(_BLOCK):
                yield block
    else:
        yield _snapped(data, grown)


def _inflated(inflate: Any, data: bytes) -> Iterator[bytes]:
    while not inflate.eof:
        block = inflate.decompress(data, _BLOCK)
        data = inflate.unconsumed_tail
        if not block and not data and not inflate.eof:
            raise EOFError("the block ends early")
        yield block


def _decompressed(decompressor: Any, data: bytes) -> Iterator[bytes]:
    while not decompressor.eof:
        if decompressor.needs_input and not data:
            raise EOFError("the block ends early")
        yield decompressor.decompress(data, _BLOCK)
        data = b""


def _snapped(data: bytes, grown: Callable[[int], None]) -> bytes:
    """A block of snappy: its size in front, a checksum behind it."""
    size = 0
    for place, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    grown(size)
    text = bytes(pa.Codec("snappy").decompress(data[:-_CHECKSUM], size, asbytes=True))
    if zlib.crc32(text).to_bytes(_CHECKSUM, "big") != data[-_CHECKSUM:]:
        raise EOFError("its checksum is another one")
    return text
