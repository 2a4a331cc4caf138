"""Places in CXL text: spans, lines and columns, and their place in the file with the text."""

from bisect import bisect_right
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """The characters from `start` to `end` (exclusive) of a program's text."""

    start: int
    end: int

    @property
    def length(self) -> int:
        """The number of characters."""
        return self.end - self.start

    def to(self, other: "Span") -> "Span":
        """Return the span from the start of this one to the end of the other."""
        return Span(min(self.start, other.start), max(self.end, other.end))


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a file; line and column count from 1, columns in characters. `file` is empty for text without a file."""

    file: str
    line: int
    column: int


class Origin(Protocol):
    """The file with a program's text. It maps offsets in the text to places in the file, through block scalars and escapes."""

    def locate(self, offset: int) -> Position:
        """Return the place of the character at `offset`."""
        ...

    def line_text(self, line: int) -> str:
        """Return a line of the file, for the excerpt of a diagnostic."""
        ...


class TextOrigin:
    """The origin of a text that is a whole file, or no file. LF, CR LF and CR end a line."""

    __slots__ = ("_lines", "_starts", "file")

    def __init__(self, text: str, file: str = "") -> None:
        self.file = file
        unified = text.replace("\r\n", "\n ").replace("\r", "\n").replace("\n ", "\r\n") if "\r" in text else text
        self._lines = [line.rstrip("\r") for line in unified.split("\n")]
        self._starts = [0]
        for line in unified.split("\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)

    def locate(self, offset: int) -> Position:
        """Return the place of the character at `offset`. An offset beyond the end is after the last character."""
        index = min(bisect_right(self._starts, offset) - 1, len(self._lines) - 1)
        return Position(self.file, index + 1, offset - self._starts[index] + 1)

    def line_text(self, line: int) -> str:
        """Return a line without its end."""
        return self._lines[line - 1] if 0 < line <= len(self._lines) else ""
