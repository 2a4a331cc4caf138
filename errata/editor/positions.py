"""Places as editors count them: lines from 0, characters of a line in UTF-16 units. And parts of texts by offset."""

from dataclasses import dataclass
from typing import NamedTuple

from errata.yaml import SourceText


class Point(NamedTuple):
    """A place between two characters."""

    line: int
    character: int


class Range(NamedTuple):
    """A part of a text."""

    start: Point
    end: Point


@dataclass(frozen=True, slots=True)
class Region:
    """The characters of a text from `start` to `end` (exclusive)."""

    source: SourceText
    start: int
    end: int

    @property
    def file(self) -> str:
        """The file of the text."""
        return self.source.file

    @property
    def text(self) -> str:
        """The characters themselves."""
        return self.source.text[self.start : self.end]

    @property
    def range(self) -> Range:
        """The part as editors count it."""
        return Range(point_at(self.source, self.start), point_at(self.source, self.end))

    @property
    def key(self) -> tuple[str, int, int]:
        """The identity of a region: equal regions have the same."""
        return self.source.file, self.start, self.end


@dataclass(frozen=True, slots=True)
class Edit:
    """A region and the text that takes its place."""

    region: Region
    text: str


def units(text: str) -> int:
    """Return how many UTF-16 units a text takes."""
    return len(text) + sum(ord(one) > 0xFFFF for one in text)


def point_at(source: SourceText, offset: int) -> Point:
    """Return the place of an offset."""
    place = source.locate(min(max(offset, 0), len(source.text)))
    line = source.line_text(place.line)
    return Point(place.line - 1, units(line[: place.column - 1]))


def offset_at(source: SourceText, line: int, character: int) -> int:
    """Return the offset of a place. One beyond the end of a line or of the text is the end."""
    if line >= source.line_count:
        return len(source.text)
    start, end = source.line_bounds(max(line, 0) + 1)
    rest = character
    for offset in range(start, end):
        if rest <= 0:
            return offset
        rest -= 2 if ord(source.text[offset]) > 0xFFFF else 1
    return end


def applied(text: str, edits: list[Edit]) -> str:
    """Return a text with edits of it made. They do not overlap."""
    for edit in sorted(edits, key=lambda one: one.region.start, reverse=True):
        text = text[: edit.region.start] + edit.text + text[edit.region.end :]
    return text
