"""Errors and warnings of a pipeline.

`PipelineErrors` carries every independent one at once. Each code has a page and an example in `errata.core.codes`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from cxl.diagnostics.diagnostics import Diagnostic as CxlDiagnostic

__all__ = ["Diagnostic", "Label", "LineSource", "PipelineErrors", "did_you_mean", "from_cxl"]

Severity = Literal["error", "warning"]


class LineSource(Protocol):
    """Gives the lines of the file that a diagnostic points into."""

    def line_text(self, line: int) -> str:
        """The text of a line, counted from 1, without its end."""
        ...


class Place(Protocol):
    """A part of a line, such as `errata.yaml.Span`."""

    @property
    def file(self) -> str:
        """The file."""
        ...

    @property
    def line(self) -> int:
        """The line, from 1."""
        ...

    @property
    def column(self) -> int:
        """The column, from 1."""
        ...

    @property
    def length(self) -> int:
        """Characters."""
        ...


@dataclass(frozen=True, slots=True)
class Label:
    """A second place of a diagnostic, and what is there."""

    text: str
    file: str
    line: int
    column: int
    length: int = 1

    @classmethod
    def at(cls, place: Place, text: str) -> "Label":
        """Return the label at a span."""
        return cls(text, place.file, place.line, place.column, place.length)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error or warning.

    Args:
        line, column: From 1; columns count characters. Line 0: no place in a file.
        node: The node concerned.
        lines: Gives the excerpt. Comparisons ignore it.
    """

    code: str
    message: str
    severity: Severity = "error"
    file: str = ""
    line: int = 0
    column: int = 0
    length: int = 0
    node: str = ""
    labels: tuple[Label, ...] = ()
    help: str = ""
    lines: LineSource | None = field(default=None, compare=False, repr=False)

    @classmethod
    def at(
        cls,
        place: Place,
        code: str,
        message: str,
        *,
        severity: Severity = "error",
        node: str = "",
        labels: Sequence[Label] = (),
        help: str = "",
        lines: LineSource | None = None,
    ) -> "Diagnostic":
        """Return the diagnostic at a span."""
        return cls(code, message, severity, place.file, place.line, place.column, place.length, node, tuple(labels), help, lines)

    @property
    def is_error(self) -> bool:
        """Whether it stops the command."""
        return self.severity == "error"


class PipelineErrors(Exception):
    """A pipeline that cannot run: its independent errors and warnings, in the order of the files.

    Ends a command with exit code 1. Nothing is read and nothing is changed.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(f"{one.severity}[{one.code}]: {one.message}" for one in self.diagnostics))


def raise_errors(diagnostics: Iterable[Diagnostic]) -> None:
    """Raise PipelineErrors where one of the diagnostics is an error."""
    found = tuple(diagnostics)
    if any(one.is_error for one in found):
        raise PipelineErrors(ordered(found))


def ordered(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return each diagnostic once, in the order of files, lines and columns."""
    unique = dict.fromkeys(diagnostics)
    return tuple(sorted(unique, key=lambda one: (one.file, one.line, one.column, one.code)))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `did you mean 'amount'?` for the nearest known name, or the empty text. Imports the language only here."""
    from cxl.diagnostics.diagnostics import did_you_mean as nearest

    return nearest(name, known)


def from_cxl(found: "CxlDiagnostic", *, node: str = "") -> Diagnostic:
    """Return a diagnostic of CXL at its place in the pipeline file."""
    place = found.position
    labels = tuple(_label(found, label.span.start, label.span.length, label.text) for label in found.labels)
    return Diagnostic(
        found.code,
        found.message,
        found.severity,
        place.file,
        place.line,
        place.column,
        max(found.span.length, 1),
        node,
        labels,
        found.help,
        found.origin,
    )


def _label(found: "CxlDiagnostic", start: int, length: int, text: str) -> Label:
    place = found.origin.locate(start) if found.origin else found.position
    return Label(text, place.file, place.line, place.column, max(length, 1))
