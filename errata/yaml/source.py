"""The text of a file, and places in it. Lines and columns count from 1, columns in characters."""

import re
from bisect import bisect_right
from dataclasses import dataclass

from cxl.diagnostics.source import Position

_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A part of one line. `length` is at least 1 where the line has a character there."""

    file: str
    line: int
    column: int
    length: int


class SourceText:
    """A file's text by lines. LF, CR LF and CR end a line."""

    __slots__ = ("_ends", "_starts", "file", "text")

    def __init__(self, text: str, file: str = "") -> None:
        self.file = file
        self.text = text
        matches = list(_LINE_END.finditer(text))
        self._starts = [0, *(match.end() for match in matches)]
        self._ends = [*(match.start() for match in matches), len(text)]

    @property
    def line_count(self) -> int:
        """The number of lines. A text that ends with a line end has an empty last one."""
        return len(self._starts)

    def line_text(self, line: int) -> str:
        """Return a line without its end; empty for a line that the file does not have."""
        return self.text[self._starts[line - 1] : self._ends[line - 1]] if 0 < line <= len(self._starts) else ""

    def line_bounds(self, line: int) -> tuple[int, int]:
        """Return the offsets of a line's first character and of its end."""
        return self._starts[line - 1], self._ends[line - 1]

    def locate(self, offset: int) -> Position:
        """Return the place of the character at `offset`. Beyond a line's end, the place after its last character."""
        index = self._index(offset)
        return Position(self.file, index + 1, min(offset, self._ends[index]) - self._starts[index] + 1)

    def span(self, start: int, end: int) -> Span:
        """Return the span from `start` to `end`, cut at the end of its first line."""
        index = self._index(start)
        start = min(start, self._ends[index])
        room = self._ends[index] - start
        return Span(self.file, index + 1, start - self._starts[index] + 1, max(min(end - start, room), min(room, 1)))

    def _index(self, offset: int) -> int:
        return bisect_right(self._starts, min(max(offset, 0), len(self.text))) - 1
