"""The place of the array of records in a JSON document, and the places where it can be cut, found without parsing.

The document is scanned in blocks: brackets, commas and colons outside texts are its structure. The pieces between commas and the document without them
(`Located.skeleton`) are parsed later, and together they are the whole document. So a wrong document is found even if the scan is misled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import orjson

from changelog.lazy_imports import np
from storage.files.errors import Buffer
from storage.formats import limits

if TYPE_CHECKING:
    import numpy.typing as npt

Bytes: TypeAlias = "npt.NDArray[np.uint8]"
Places: TypeAlias = "npt.NDArray[np.int64]"
_BLOCK = 4 << 20
_BACKSLASH, _QUOTE, _COMMA, _COLON = b'\\",:'
_OPEN_ARRAY, _CLOSE_ARRAY, _OPEN_OBJECT, _CLOSE_OBJECT = b"[]{}"


@cache
def _tables() -> tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_]]:
    """By byte value: the change of depth, and whether the character is structure."""
    step = np.zeros(256, np.int8)
    step[[_OPEN_ARRAY, _OPEN_OBJECT]] = 1
    step[[_CLOSE_ARRAY, _CLOSE_OBJECT]] = -1
    structure = step != 0
    structure[[_COMMA, _COLON]] = True
    return step, structure


class Piece(NamedTuple):
    """Whole elements of the array in bytes `start` to `end`. The first one has number `first`, from 1."""

    start: int
    end: int
    first: int


@dataclass(frozen=True, slots=True)
class Located:
    """The array: its first byte after the opening bracket, the byte of its closing bracket, its pieces (none for an empty array)."""

    start: int
    end: int
    pieces: tuple[Piece, ...]

    def skeleton(self, data: Buffer) -> bytes:
        """The document with an empty array in its place."""
        return data[: self.start] + data[self.end :]


class Tokens(NamedTuple):
    """Structural characters outside texts: place in the file, character, depth after it."""

    places: Places
    characters: Bytes
    depths: Places

    @property
    def are_too_deep(self) -> bool:
        """Whether some depth is beyond `limits.DEPTH`."""
        return bool(len(self.depths)) and int(self.depths.max()) > limits.DEPTH


def located(data: Buffer, steps: Sequence[str], target: int, name: str) -> Located | None:
    """The array at the keys `steps`, cut into pieces of about `target` bytes; None where the document has no whole array there.

    Raises InputError for an element that is too long or nested too deep.
    """
    search = _Search(data, steps, target, name)
    for tokens in _tokens(data):
        if tokens.are_too_deep:
            raise limits.too_deep(name)
        search.pass_over(tokens)
    return search.found


def is_too_deep(text: bytes) -> bool:
    """Whether a JSON document is nested deeper than the limit."""
    return text.count(b"{") + text.count(b"[") > limits.DEPTH and any(tokens.are_too_deep for tokens in _tokens(text))


def _tokens(data: Buffer) -> Iterator[Tokens]:
    """The structure of a document block by block."""
    step, structure = _tables()
    inside, escaped, depth = 0, False, 0
    for at in range(0, len(data), _BLOCK):
        block = np.frombuffer(data[at : at + _BLOCK], np.uint8)
        quotes, escaped = _quotes(block, after_backslash=escaped)
        places = np.flatnonzero(structure[block])
        places = places[(np.searchsorted(quotes, places) + inside) % 2 == 0]
        characters = block[places]
        depths = depth + np.cumsum(step[characters], dtype=np.int64)
        yield Tokens(places + at, characters, depths)
        inside = (inside + len(quotes)) % 2
        depth = int(depths[-1]) if len(depths) else depth


def _quotes(block: Bytes, *, after_backslash: bool) -> tuple[Places, bool]:
    """The quotes that no backslash escapes, and whether the block ends with a backslash that escapes the next character."""
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
    """The state of the search for the array. `level` keys of `steps` have been entered."""

    data: Buffer
    steps: Sequence[str]
    target: int
    name: str
    level: int = 0
    awaited: bool = False
    """Whether the next character opens the value of the wanted key."""
    found: Located | None = None
    start: int = -1
    piece: int = 0
    first: int = 1
    count: int = 0
    pieces: list[Piece] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.awaited = not self.steps

    def pass_over(self, tokens: Tokens) -> None:
        """Go through the structure of the next block."""
        near = np.flatnonzero(tokens.depths <= len(self.steps) + 1)
        shallow = Tokens(tokens.places[near], tokens.characters[near], tokens.depths[near])
        at = 0
        while at < len(near):
            at = self._elements(shallow, at) if self.start >= 0 else self._walk(shallow, at)

    def _walk(self, tokens: Tokens, at: int) -> int:
        """Look for the beginning of the array from token `at` on. Returns the next token to look at."""
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
        """Go through the elements of the array from token `at` on. Returns the next token to look at."""
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
    """The key before the colon at a place; None where there is no text before it."""
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
