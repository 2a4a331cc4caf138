"""Where the array of records lies in a JSON document, and where it can be cut, without parsing the document.

A document is looked at in blocks: outside of texts the brackets, commas and colons are its structure. What is found is sound without trusting it: the
pieces between two commas and the document without them (`Located.skeleton`) are parsed one by one, and together they are the document.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import orjson

from storage.formats import limits
from storage.formats.base import Buffer

Bytes: TypeAlias = npt.NDArray[np.uint8]
Places: TypeAlias = npt.NDArray[np.int64]
_BLOCK = 4 << 20
_BACKSLASH, _QUOTE, _COMMA, _COLON = b'\\",:'
_OPEN_ARRAY, _CLOSE_ARRAY, _OPEN_OBJECT, _CLOSE_OBJECT = b"[]{}"
_STEP = np.zeros(256, np.int8)
_STEP[[_OPEN_ARRAY, _OPEN_OBJECT]] = 1
_STEP[[_CLOSE_ARRAY, _CLOSE_OBJECT]] = -1
_STRUCTURE = _STEP != 0
_STRUCTURE[[_COMMA, _COLON]] = True


class Piece(NamedTuple):
    """Whole elements of the array: bytes `start` to `end`, the first of them element number `first`, from 1."""

    start: int
    end: int
    first: int


@dataclass(frozen=True, slots=True)
class Located:
    """The array: its first byte behind the bracket, the byte of its closing bracket, its pieces (none: it is empty)."""

    start: int
    end: int
    pieces: tuple[Piece, ...]

    def skeleton(self, data: Buffer) -> bytes:
        """The document with an empty array."""
        return data[: self.start] + data[self.end :]


class Tokens(NamedTuple):
    """Structural characters outside of texts: place in the file, character, depth behind it."""

    places: Places
    characters: Bytes
    depths: Places

    @property
    def are_too_deep(self) -> bool:
        """Whether some depth is beyond `limits.DEPTH`."""
        return bool(len(self.depths)) and int(self.depths.max()) > limits.DEPTH


def located(data: Buffer, steps: Sequence[str], target: int, name: str) -> Located | None:
    """The array at the keys `steps`, cut into pieces of about `target` bytes; None where the document has none there or is cut off.

    Raises InputError for an element beyond the cap, or nested too deep.
    """
    search = _Search(data, steps, target, name)
    for tokens in _tokens(data):
        if tokens.are_too_deep:
            raise limits.too_deep(name)
        search.pass_over(tokens)
    return search.found


def is_too_deep(text: bytes) -> bool:
    """Whether a document that is JSON is nested deeper than it may be."""
    return text.count(b"{") + text.count(b"[") > limits.DEPTH and any(tokens.are_too_deep for tokens in _tokens(text))


def _tokens(data: Buffer) -> Iterator[Tokens]:
    """The structure of a document block by block."""
    inside, escaped, depth = 0, False, 0
    for at in range(0, len(data), _BLOCK):
        block = np.frombuffer(data[at : at + _BLOCK], np.uint8)
        quotes, escaped = _quotes(block, after_backslash=escaped)
        places = np.flatnonzero(_STRUCTURE[block])
        places = places[(np.searchsorted(quotes, places) + inside) % 2 == 0]
        characters = block[places]
        depths = depth + np.cumsum(_STEP[characters], dtype=np.int64)
        yield Tokens(places + at, characters, depths)
        inside = (inside + len(quotes)) % 2
        depth = int(depths[-1]) if len(depths) else depth


def _quotes(block: Bytes, *, after_backslash: bool) -> tuple[Places, bool]:
    """The quotes that no backslash escapes, and whether the block ends with a backslash that escapes what follows."""
    quotes = np.flatnonzero(block == _QUOTE)
    slashes = np.flatnonzero(block == _BACKSLASH)
    if after_backslash:
        quotes, slashes = quotes[quotes != 0], slashes[slashes != 0]
    if not len(slashes):
        return quotes, False
    begins = np.flatnonzero(np.diff(slashes, prepend=-2) != 1)
    lengths = np.diff(begins, append=len(slashes))
    escaping = slashes[begins + lengths - 1][lengths % 2 == 1]
    return np.setdiff1d(quotes, escaping + 1, assume_unique=True), bool(len(escaping) and escaping[-1] == len(block) - 1)


@dataclass(slots=True)
class _Search:
    """The search for an array while the structure passes: `level` keys of `steps` have been entered."""

    data: Buffer
    steps: Sequence[str]
    target: int
    name: str
    level: int = 0
    awaited: bool = False
    """Whether the next character opens the value of the key that is wanted."""
    found: Located | None = None
    start: int = -1
    piece: int = 0
    first: int = 1
    count: int = 0
    pieces: list[Piece] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.awaited = not self.steps

    def pass_over(self, tokens: Tokens) -> None:
        """The next block's structure."""
        near = np.flatnonzero(tokens.depths <= len(self.steps) + 1)
        shallow = Tokens(tokens.places[near], tokens.characters[near], tokens.depths[near])
        at = 0
        while at < len(near):
            at = self._elements(shallow, at) if self.start >= 0 else self._walk(shallow, at)

    def _walk(self, tokens: Tokens, at: int) -> int:
        """Look for the array's beginning from token `at`; where to go on."""
        for index in range(at, len(tokens.places)):
            place, character, depth = int(tokens.places[index]), int(tokens.characters[index]), int(tokens.depths[index])
            if self.awaited:
                self.awaited = False
                if character == _OPEN_ARRAY and self.level == max(len(self.steps) - 1, 0) and depth == len(self.steps) + 1:
                    self._begin(place + 1)
                    return index + 1
                if character == _OPEN_OBJECT and self.level < len(self.steps) - 1:
                    self.level += 1
            elif character == _COLON and depth == self.level + 1:
                self.awaited = bool(self.steps) and _key_before(self.data, place) == self.steps[self.level]
            elif character == _CLOSE_OBJECT and depth == self.level and self.level:
                self.level -= 1
        return len(tokens.places)

    def _begin(self, start: int) -> None:
        self.start = self.piece = start
        self.first, self.count = 1, 0
        self.pieces = []

    def _elements(self, tokens: Tokens, at: int) -> int:
        """Go through the array's elements from token `at`; where to go on behind its end."""
        inner = len(self.steps) + 1
        ends = np.flatnonzero(tokens.depths[at:] < inner)
        stop = at + int(ends[0]) if len(ends) else len(tokens.places)
        commas = tokens.places[at:stop][(tokens.characters[at:stop] == _COMMA) & (tokens.depths[at:stop] == inner)]
        self._cut(commas)
        if stop == len(tokens.places):
            return stop
        end = int(tokens.places[stop])
        if self.pieces or self.data[self.piece : end].strip():
            self._add(end)
        if tokens.characters[stop] == _CLOSE_ARRAY:
            self.found = Located(self.start, end, tuple(self.pieces))
        self.start = -1
        return stop + 1

    def _cut(self, commas: Places) -> None:
        passed = 0
        while (index := int(np.searchsorted(commas, self.piece + self.target))) < len(commas):
            self.count += index + 1 - passed
            passed = index + 1
            self._add(int(commas[index]))
            self.piece, self.first = int(commas[index]) + 1, self.count + 1
        self.count += len(commas) - passed

    def _add(self, end: int) -> None:
        if end - self.piece > self.target + limits.RECORD_BYTES:
            raise limits.record_too_long(self.name, offset=self.piece)
        self.pieces.append(Piece(self.piece, end, self.first))


def _key_before(data: Buffer, colon: int) -> str | None:
    """The key whose colon stands at a place; None where no text stands before it."""
    end = data.rfind(b'"', 0, colon)
    start = end
    while start > 0:
        start = data.rfind(b'"', 0, start)
        before = data[max(0, start - 64) : start]
        if start < 0 or (len(before) - len(before.rstrip(b"\\"))) % 2 == 0:
            break
    try:
        key = orjson.loads(data[start : end + 1]) if 0 <= start < end else None
    except orjson.JSONDecodeError:
        return None
    return key if isinstance(key, str) else None
