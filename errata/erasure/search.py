"""The search for erased values: over every byte of files, in Parquet pages, in compressed and in zipped content."""

from __future__ import annotations

import gzip
import io
import lzma
import zipfile
import zlib
from bz2 import BZ2Decompressor
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from changelog.lazy_imports import pa, pl
from errata.erasure.values import Values, as_frame
from storage.stores.folders import Folder

PARQUET: Final = b"PAR1"
"""What a Parquet file begins and ends with."""
_DEEPEST: Final = 4
"""Archives within archives that are opened."""
_WINDOW: Final = 1 << 24
"""Bytes that are searched at a time."""
_SYSTEM: Final = frozenset({"_epoch", "_op", "_status", "_row"})


@dataclass(frozen=True)
class Search:
    """Looks for values in the content of files."""

    values: Values

    @cached_property
    def _patterns(self) -> list[str]:
        """The bytes of the texts in all encodings, each byte as one character."""
        encoded = {text.encode(encoding) for text in self.values.patterns for encoding in ("utf-8", "utf-16-le", "latin-1") if _encodes(text, encoding)}
        return [one.decode("latin-1") for one in sorted(encoded)]

    @cached_property
    def _words(self) -> list[str]:
        """The bytes of the texts that are looked for as whole words, each byte as one character."""
        return sorted(text.encode().decode("latin-1") for text in self.values.word_patterns if _encodes(text, "utf-8"))

    @cached_property
    def _bounded_words(self) -> list[str]:
        return [*_bounded(pl.Series(self._words, dtype=pl.String))]

    def _hits(self, contents: Sequence[bytes]) -> pl.Series:
        """Which contents hold a text."""
        found = pl.repeat(False, len(contents), eager=True, dtype=pl.Boolean)
        if not (self._patterns or self._words):
            return found
        texts = pl.Series([one.decode("latin-1") for one in contents], dtype=pl.String)
        if self._patterns:
            found = texts.str.contains_any(self._patterns)
        if self._words and (may := ~found & texts.str.contains_any(self._words)).any():
            found = found | (may & _bounded(texts).str.contains_any(self._bounded_words))
        return found

    def _anywhere(self, content: bytes) -> bool:
        overlap = max(map(len, (*self._patterns, *self._words)), default=1) + 1
        return any(bool(self._hits([_window(content, at, _WINDOW + overlap)]).any()) for at in range(0, max(len(content), 1), _WINDOW))

    def found_in(self, content: bytes, deep: int = _DEEPEST) -> bool:
        """Whether a file's content holds a value, also in what it is the compressed form of."""
        if self._anywhere(content):
            return True
        if content[:4] == PARQUET and content[-4:] == PARQUET:
            return any(self._in_rows(rows) for rows in _parquet(content))
        return deep > 0 and any(self.found_in(inner, deep - 1) for inner in _unpacked(content))

    def _in_rows(self, rows: pa.Table) -> bool:
        frame = as_frame(rows)
        return any(
            bool(self.values.holding(_plain(column), whole=True).any()) for column in frame if column.name not in _SYSTEM
        )

    def in_columns(self, columns: Iterable[pl.Series]) -> bool:
        """Whether a cell of columns is a value: also a short text, a number or a date, which a column of this name had."""
        return any(bool(self.values.holding(column, whole=True).any()) for column in columns)

    def files(self, folder: Folder) -> Iterator[str]:
        """The files below a folder that hold a value."""
        return (name for name in folder.names() if self.found_in(folder.read(name)))

    def lines(self, content: bytes) -> list[int]:
        """The lines of a text, from 1, that hold a value; none for what is no text."""
        if b"\0" in content[:4096]:
            return []
        return [number for number, hit in enumerate(self._hits(content.splitlines()), 1) if hit]

    def blanked(self, content: bytes) -> bytes | None:
        """The content of a text without values, also of a compressed one; None for what is neither."""
        try:
            return self.values.blanked(content.decode()).encode()
        except UnicodeDecodeError:
            pass
        if content[:2] == b"\x1f\x8b":
            with suppress(OSError, EOFError, zlib.error, UnicodeDecodeError):
                text = gzip.decompress(content).decode()
                return content if (new := self.values.blanked(text)) == text else gzip.compress(new.encode())
        if content[:4] == _ZSTD:
            with suppress(OSError, pa.ArrowException, UnicodeDecodeError):
                with pa.CompressedInputStream(io.BytesIO(content), "zstd") as stream:
                    text = stream.read().decode()
                return content if (new := self.values.blanked(text)) == text else bytes(pa.compress(new.encode(), "zstd", asbytes=True))
        return None


def _window(content: bytes, at: int, length: int) -> bytes:
    """A part of a content. No word begins or ends where it is cut: a letter that is none in UTF-8 is put there."""
    return (_LETTER if at else b"") + content[at : at + length] + (_LETTER if at + length < len(content) else b"")


_LETTER: Final = b"\xff"


def _bounded(texts: pl.Series) -> pl.Series:
    """Bytes, each as one character, with marks around each word; bytes beyond ASCII are letters."""
    return texts.str.replace_all(r"\\[bfnrt]", r"\ ").str.replace_all(r"([0-9A-Za-z_\x{80}-\x{ff}]+)", "\ue000${1}\ue000")


_ZSTD: Final = b"\x28\xb5\x2f\xfd"


def _encodes(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _plain(column: pl.Series) -> pl.Series:
    """A column of a file; nested values as texts."""
    if column.dtype.is_nested():
        return pl.Series(column.name, [str(value) for value in column.to_list()], pl.String)
    return column.cast(pl.String) if column.dtype in (pl.Categorical, pl.Enum) else column


def _parquet(content: bytes) -> Iterator[pa.Table]:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(io.BytesIO(content))
    yield from (file.read_row_group(number) for number in range(file.num_row_groups))


def _unpacked(content: bytes) -> Iterator[bytes]:
    """What a compressed content holds; nothing for any other."""
    readers: dict[bytes, Any] = {
        b"\x1f\x8b": gzip.decompress, b"BZh": lambda data: BZ2Decompressor().decompress(data), b"\xfd7zXZ\x00": lzma.decompress,
        _ZSTD: lambda data: pa.CompressedInputStream(io.BytesIO(data), "zstd").read(),
    }  # fmt: skip
    for magic, read in readers.items():
        if content.startswith(magic):
            with suppress(OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, pa.ArrowException):
                yield read(content)
    if content[:2] == b"PK":
        with suppress(OSError, ValueError, zipfile.BadZipFile, zlib.error), zipfile.ZipFile(io.BytesIO(content)) as archive:
            yield from (archive.read(name) for name in archive.namelist())
