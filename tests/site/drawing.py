"""Drawings of the pages, as SVG: boxes, arrows and lines of text in colours for light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

LIGHT = {"ink": "#1b1f2a", "paper": "#ffffff", "soft": "#f2f4f8", "line": "#7c8698", "add": "#17702f", "gone": "#b3201a", "mend": "#8a5000", "quiet": "#565f70"}
DARK = {"ink": "#e8ebf1", "paper": "#14171f", "soft": "#1f2531", "line": "#7f8a9e", "add": "#57c878", "gone": "#ff8a80", "mend": "#e5a94a", "quiet": "#a7b0c0"}
LETTER = 7.9
"""Width of a letter of the text, which has one width, at 13 pixels."""
LINE = 20
PADDING = 12


def colours(values: dict[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in values.items())


STYLE = (
    f".drawing{{{colours(LIGHT)}}}@media (prefers-color-scheme:dark){{.drawing{{{colours(DARK)}}}}}"
    ".drawing text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:var(--ink)}.drawing .name{font-weight:700}"
    ".drawing .quiet{fill:var(--quiet)}.drawing .add{fill:var(--add)}.drawing .gone{fill:var(--gone)}.drawing .mend{fill:var(--mend)}"
    ".drawing .paper{fill:var(--paper)}.drawing .box{fill:var(--soft);stroke:var(--line)}.drawing .edge{fill:none;stroke:var(--line);stroke-width:1.5}.drawing .head{fill:var(--line)}"
)
SITE_STYLE = "".join(
    f'[data-md-color-scheme="{scheme}"] .drawing{{{colours(values | {"paper": "transparent"})}}}\n' for scheme, values in (("default", LIGHT), ("slate", DARK))
)
"""The colours on the site, where the reader chooses between light and dark."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text in a box.

    Args:
        text: the text
        tone: its colour: add, gone, mend, quiet, name, or none
    """

    text: str
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Box:
    """A box with lines of text.

    Args:
        x: left edge
        y: upper edge
        lines: its text
        width: its width; without one, what the text needs
    """

    x: float
    y: float
    lines: Sequence[Line]
    width: float = 0

    @property
    def wide(self) -> float:
        """The width."""
        return self.width or max(len(line.text) for line in self.lines) * LETTER + 2 * PADDING

    @property
    def high(self) -> float:
        """The height."""
        return len(self.lines) * LINE + PADDING

    @property
    def right(self) -> float:
        """The right edge."""
        return self.x + self.wide

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.y + self.high

    @property
    def middle(self) -> float:
        """The height of the middle."""
        return self.y + self.high / 2


@dataclass(slots=True)
class Drawing:
    """A drawing: boxes, arrows, and text between them."""

    title: str
    boxes: list[Box] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)

    def box(self, x: float, y: float, lines: Sequence[Line], width: float = 0) -> Box:
        """Draw a box and return it."""
        made = Box(x, y, lines, width)
        self.boxes.append(made)
        self.parts.append(f'<rect class="box" x="{x:g}" y="{y:g}" width="{made.wide:g}" height="{made.high:g}" rx="6"/>')
        for number, line in enumerate(lines):
            self.text(x + PADDING, y + PADDING / 2 + LINE * (number + 0.72), line)
        return made

    def text(self, x: float, y: float, line: Line) -> None:
        """Write a line of text that begins at a point."""
        tone = f' class="{line.tone}"' if line.tone else ""
        self.parts.append(f'<text x="{x:g}" y="{y:g}"{tone} xml:space="preserve">{escape(line.text)}</text>')

    def arrow(self, start: Box, end: Box) -> None:
        """Draw an arrow from the right edge of a box to the left edge of another, which lies to the right of it."""
        x1, y1, x2, y2 = start.right, start.middle, end.x, end.middle
        bend = (x2 - x1) / 2
        self.parts.append(f'<path class="edge" d="M{x1:g},{y1:g} C{x1 + bend:g},{y1:g} {x2 - bend:g},{y2:g} {x2 - 7:g},{y2:g}"/>')
        self.parts.append(f'<path class="head" d="M{x2:g},{y2:g} l-9,-4.5 v9 z"/>')

    def down(self, start: Box, end: Box) -> None:
        """Draw an arrow from the lower edge of a box to the upper edge of another below it."""
        x = (max(start.x, end.x) + min(start.right, end.right)) / 2
        self.parts.append(f'<path class="edge" d="M{x:g},{start.bottom:g} V{end.y - 7:g}"/><path class="head" d="M{x:g},{end.y:g} l-4.5,-9 h9 z"/>')

    def svg(self) -> str:
        """Return the drawing."""
        wide, high = max(box.right for box in self.boxes) + PADDING, max(box.bottom for box in self.boxes) + PADDING
        head = f'<svg class="drawing" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {high:g}" width="{wide:g}" height="{high:g}">'
        paper = f'<rect class="paper" width="{wide:g}" height="{high:g}" rx="8"/>'
        return "\n".join([head, f"<title>{escape(self.title)}</title>", f"<style>{STYLE}</style>", paper, *self.parts, "</svg>"]) + "\n"
