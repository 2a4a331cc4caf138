"""Errors and warnings of a program, and their text."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from cxl.diagnostics.source import Origin, Position, Span, TextOrigin

Severity = Literal["error", "warning"]
MOST_SHOWN = 100
"""How many findings are printed; the others are counted."""
_EXCERPT = 160
"""The longest part of a line that an excerpt shows."""


@dataclass(frozen=True, slots=True)
class Label:
    """A second place of a diagnostic, and what is there."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error or warning. `origin` is set once the text is known to belong to a file."""

    code: str
    message: str
    span: Span
    severity: Severity = "error"
    help: str = ""
    labels: tuple[Label, ...] = ()
    origin: Origin | None = None

    @property
    def position(self) -> Position:
        """File, line and column of the place."""
        return self.origin.locate(self.span.start) if self.origin else Position("", 1, self.span.start + 1)

    @property
    def phase(self) -> str:
        """The phase that found it: parse, resolve or typecheck."""
        return {"CXL-P": "parse", "CXL-R": "resolve", "E200": "resolve", "E173": "resolve"}.get(self.code[:5].rstrip("-"), "typecheck")

    def render(self, note: str = "") -> str:
        """Return the finding as text: header, place, excerpt with carets, help."""
        place = self.position
        gutter = " " * len(str(place.line))
        where = f"{place.file or '<inline>'}:{place.line}:{place.column}"
        lines = [f"{self.severity}[{self.code}]: {self.message}", f"{gutter}--> {where}{f'   ({note})' if note else ''}"]
        lines += self._excerpt(place, gutter)
        if self.help:
            lines.append(f"{gutter} = help: {self.help}")
        return "\n".join(lines)

    def _excerpt(self, place: Position, gutter: str) -> list[str]:
        if self.origin is None:
            return []
        text = self.origin.line_text(place.line)
        left = max(0, min(place.column - _EXCERPT // 2, len(text) - _EXCERPT)) if len(text) > _EXCERPT else 0
        below = self._below(place, left)
        return [
            line.rstrip()
            for line in (f"{gutter} |", f"{place.line} | {text[left : left + _EXCERPT]}", *(f"{gutter} | {one}" for one in below))
        ]

    def _below(self, place: Position, left: int) -> list[str]:
        """The line of marks, followed by the text of the last label; the texts of the other labels below their marks."""
        marks = self._marks(place, left).rstrip()
        placed = sorted((self._on_line(label.span, place), label.text) for label in self.labels)
        texts = [(start - left, length, text) for (start, length), text in placed if length and 0 <= start - left < _EXCERPT]
        if texts and sum(texts[-1][:2]) == len(marks):
            marks += f" {texts.pop()[2]}"
        return [marks, *(" " * start + text for start, _, text in texts)]

    def _marks(self, place: Position, left: int) -> str:
        """Carets under the place and dashes under the labels, on the line as shown from column `left`."""
        marks = [" "] * (_EXCERPT + 1)
        for span, sign in [(label.span, "-") for label in self.labels] + [(self.span, "^")]:
            start, length = self._on_line(span, place)
            for column in range(max(start - left, 0), min(start - left + length, _EXCERPT + 1)):
                marks[column] = sign
        return "".join(marks)

    def _on_line(self, span: Span, place: Position) -> tuple[int, int]:
        """Column (from 0) and length of a span on the line of `place`; length 0 on any other line."""
        start = self.origin.locate(span.start) if self.origin else place
        if self.origin is None or start.line != place.line:
            return 0, 0
        room = max(len(self.origin.line_text(place.line)) - start.column + 1, 1)
        return start.column - 1, max(min(span.length, room), 1)


class CxlErrors(Exception):
    """A program that does not compile: every independent error, in the order of the text."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        return render_all(self.diagnostics)


def render_all(diagnostics: Iterable[Diagnostic]) -> str:
    """Return findings as text, one below another. Beyond `MOST_SHOWN` only their number is given."""
    found = list(diagnostics)
    shown = [one.render() for one in found[:MOST_SHOWN]]
    return "\n".join(shown + ([f"... and {len(found) - MOST_SHOWN} more"] if len(found) > MOST_SHOWN else []))


class Findings:
    """The diagnostics of one program while it is compiled."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: list[Diagnostic] = []

    def error(self, code: str, message: str, span: Span, *, help: str = "", labels: tuple[Label, ...] = ()) -> None:
        """Record an error."""
        self._found.append(Diagnostic(code, message, span, "error", help, labels))

    def warning(self, code: str, message: str, span: Span, *, help: str = "") -> None:
        """Record a warning."""
        self._found.append(Diagnostic(code, message, span, "warning", help))

    def add(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Record findings made elsewhere."""
        self._found.extend(diagnostics)

    @property
    def all(self) -> tuple[Diagnostic, ...]:
        """All findings, in the order of recording."""
        return tuple(self._found)

    @property
    def failed(self) -> bool:
        """Whether there is an error."""
        return any(found.severity == "error" for found in self._found)

    def located(self, text: str, origin: Origin | None) -> tuple[Diagnostic, ...]:
        """Return all findings in the order of the text. Those without an origin get this one."""
        home = origin or TextOrigin(text)
        ordered = sorted(self._found, key=lambda found: (found.span.start, found.code))
        unique = dict.fromkeys(found if found.origin else replace(found, origin=home) for found in ordered)
        return tuple(unique)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `did you mean 'amount'?` for the nearest known name, or the empty text."""
    candidates = list(dict.fromkeys(known))
    folded = next((one for one in candidates if one.lower() == name.lower() and one != name), None)
    near = [folded] if folded else difflib.get_close_matches(name, candidates, n=1, cutoff=0.7)
    return f"did you mean '{near[0]}'?" if near else ""
