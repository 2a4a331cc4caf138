"""Places in CXL text: spans, lines and columns, and how they map to the file that holds the text."""

from bisect import bisect_right
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Characters `start` to `end` (exclusive) of a program's text."""

    start: int
    end: int

    @property
    def length(self) -> int:
        """Number of characters."""
        return self.end - self.start

    def to(self, other: "Span") -> "Span":
        """From the start of this span to the end of the other."""
        return Span(min(self.start, other.start), max(self.end, other.end))


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a file; line and column count from 1, columns in characters. `file` is empty for text without a file."""

    file: str
    line: int
    column: int


class Origin(Protocol):
    """Where a program's text stands: maps an offset of the text to a file, line and column (block scalars, escapes)."""

    def locate(self, offset: int) -> Position:
        """The place of the character at `offset`."""
        ...

    def line_text(self, line: int) -> str:
        """The text of a line of that file, for the excerpt of a diagnostic."""
        ...


class TextOrigin:
    """The origin of a text that is a whole file, or no file at all. LF, CR LF and CR end a line."""

    __slots__ = ("_lines", "_starts", "file")

    def __init__(self, text: str, file: str = "") -> None:
        self.file = file
        unified = text.replace("\r\n", "\n ").replace("\r", "\n").replace("\n ", "\r\n") if "\r" in text else text
        self._lines = [line.rstrip("\r") for line in unified.split("\n")]
        self._starts = [0]
        for line in unified.split("\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)

    def locate(self, offset: int) -> Position:
        """The place of the character at `offset`; an offset beyond the end is behind the last character."""
        index = min(bisect_right(self._starts, offset) - 1, len(self._lines) - 1)
        return Position(self.file, index + 1, offset - self._starts[index] + 1)

    def line_text(self, line: int) -> str:
        """The text of line `line`, without its end."""
        return self._lines[line - 1] if 0 < line <= len(self._lines) else ""
