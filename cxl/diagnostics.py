"""What is wrong with a program: code, message, place, help; and how it is shown (STYLE, "A diagnostic")."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from cxl.source import Origin, Position, Span, TextOrigin

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Label:
    """A second place that a diagnostic points to, with what is there."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. `origin` is set once the text is known to belong to a file."""

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
        """The phase that found it, as `cxl check` of the documents names it: parse, resolve or typecheck."""
        return {"CXL-P": "parse", "CXL-R": "resolve", "E200": "resolve", "E173": "resolve"}.get(self.code[:5].rstrip("-"), "typecheck")

    def render(self, note: str = "") -> str:
        """The finding for people: header, place, excerpt with carets, help."""
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
        lines = [f"{gutter} |", f"{place.line} | {text}", f"{gutter} | {self._marks(place, text)}"]
        return [line.rstrip() for line in lines + [f"{gutter} | {extra}" for extra in self._label_lines(place)]]

    def _marks(self, place: Position, text: str) -> str:
        width = max(len(text), place.column)
        marks = [" "] * (width + 1)
        for label in self.labels:
            start, length = self._on_line(label.span, place)
            marks[start : start + length] = "-" * length
        start, length = self._on_line(self.span, place)
        marks[start : start + length] = "^" * length
        return "".join(marks)[: max(width, start + 1)]

    def _on_line(self, span: Span, place: Position) -> tuple[int, int]:
        """Column from 0 and length of a span on the line of `place`; length 0 where it stands on another line."""
        if self.origin is None:
            return 0, 0
        start = self.origin.locate(span.start)
        if start.line != place.line:
            return 0, 0
        room = max(len(self.origin.line_text(place.line)) - start.column + 1, 1)
        return start.column - 1, max(min(span.length, room), 1)

    def _label_lines(self, place: Position) -> list[str]:
        lines = []
        for label in self.labels:
            start, length = self._on_line(label.span, place)
            if length:
                lines.append(" " * start + label.text)
        return lines


class CxlErrors(Exception):
    """A program that does not compile: every independent error, in the order of the text."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(diagnostic.render() for diagnostic in self.diagnostics))


class Findings:
    """The diagnostics of one program while it is compiled."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: list[Diagnostic] = []

    def error(self, code: str, message: str, span: Span, *, help: str = "", labels: tuple[Label, ...] = ()) -> None:
        """Note an error."""
        self._found.append(Diagnostic(code, message, span, "error", help, labels))

    def warning(self, code: str, message: str, span: Span, *, help: str = "") -> None:
        """Note a warning."""
        self._found.append(Diagnostic(code, message, span, "warning", help))

    def add(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Note findings made elsewhere."""
        self._found.extend(diagnostics)

    @property
    def failed(self) -> bool:
        """Whether there is an error."""
        return any(found.severity == "error" for found in self._found)

    def located(self, text: str, origin: Origin | None) -> tuple[Diagnostic, ...]:
        """All of them in the order of the text, each with the origin of the text (unless it has one)."""
        home = origin or TextOrigin(text)
        ordered = sorted(self._found, key=lambda found: (found.span.start, found.code))
        unique = dict.fromkeys(found if found.origin else replace(found, origin=home) for found in ordered)
        return tuple(unique)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`did you mean 'amount'?` for the nearest known name, or the empty text."""
    candidates = list(dict.fromkeys(known))
    folded = next((one for one in candidates if one.lower() == name.lower() and one != name), None)
    near = [folded] if folded else difflib.get_close_matches(name, candidates, n=1, cutoff=0.6)
    return f"did you mean '{near[0]}'?" if near else ""
