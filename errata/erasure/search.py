"""The search for erased values: over every byte of files, in Parquet pages, in compressed and in zipped content."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, Final

from changelog.lazy_imports import pa, pl
from errata.erasure.values import Values, as_frame

PARQUET: Final = b"PAR1"
"""The first and last bytes of a Parquet file."""
_DEEPEST: Final = 4
"""Archives within archives that are opened."""
MOST_UNPACKED: Final = 1 << 30
"""Bytes of an unpacked content that is searched."""
_WINDOW: Final = 1 << 24
"""Bytes that are searched at a time."""
_SYSTEM: Final = frozenset({"_epoch", "_op", "_status", "_row"})


@dataclass(frozen=True)
class Search:
    """Looks for values in the content of files.

    Attributes:
        values: What is looked for.
        too_large: Contents that were not unpacked, by their hash in this process.
    """

    values: Values
    too_large: set[int] = field(default_factory=set)

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

    def found_in(self, content: bytes) -> bool:
        """Whether a file's content holds a value, also in what it is the packed form of."""
        return any(self._anywhere(part) or self.in_columns(_columns(part)) for part in self.parts_of(content))

    def parts_of(self, content: bytes, deep: int = _DEEPEST) -> Iterator[bytes]:
        """A content, and what it is the packed form of. What is larger unpacked than `MOST_UNPACKED` is left out, and noted."""
        yield content
        for inner in self._unpacked(content) if deep else ():
            yield from self.parts_of(inner, deep - 1)

    def columns_of(self, content: bytes) -> Iterator[pl.Series]:
        """The columns of a content that is Parquet, or holds some."""
        return chain.from_iterable(map(_columns, self.parts_of(content)))

    def _unpacked(self, content: bytes) -> Iterator[bytes]:
        """The contents of a packed content; nothing for any other, and for one that is damaged."""
        try:
            for stream in _streams(content):
                inner = stream.read(MOST_UNPACKED + 1)
                if len(inner) > MOST_UNPACKED:
                    self.too_large.add(hash(content))
                else:
                    yield inner
        except (OSError, EOFError, ValueError, RuntimeError, NotImplementedError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, pa.ArrowException):
            return

    def is_searched(self, content: bytes) -> bool:
        """Whether everything of a content was looked at when it was searched."""
        return hash(content) not in self.too_large

    def in_columns(self, columns: Iterable[pl.Series]) -> bool:
        """Whether a cell of columns is a value: also a short text, a number or a date, which a column of this name had."""
        return any(bool(self.values.holding(column, whole=True).any()) for column in columns)

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


def _columns(content: bytes) -> Iterator[pl.Series]:
    """The columns of a content that is Parquet; none of any other."""
    if content[:4] == PARQUET and content[-4:] == PARQUET:
        yield from (_plain(column) for rows in _parquet(content) for column in as_frame(rows) if column.name not in _SYSTEM)


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


def _streams(content: bytes) -> Iterator[Any]:
    """The unpacked forms of a packed content, as streams."""
    packed = io.BytesIO(content)
    readers: dict[bytes, Callable[[Any], Any]] = {
        b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open, _ZSTD: lambda file: pa.CompressedInputStream(file, "zstd"),
    }  # fmt: skip
    for magic, read in readers.items():
        if content.startswith(magic):
            yield read(packed)
    if content[:2] == b"PK":
        with zipfile.ZipFile(packed) as archive:
            yield from (archive.open(name) for name in archive.namelist())
