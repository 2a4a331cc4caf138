"""Diagnostics as text with an excerpt of the file, and as objects."""

from collections.abc import Iterable
from dataclasses import dataclass

from errata.core.diagnostics import Diagnostic, Label
from errata.rendering.terminal import escaped, flattened, styled, width

_LONGEST_LINE = 160
_BEFORE_CARET = 60


@dataclass(frozen=True, slots=True)
class _Mark:
    """One underlined part of a line, and its text. `sign` is ^ or -."""

    column: int
    length: int
    text: str
    sign: str


def as_text(diagnostics: Iterable[Diagnostic], *, color: bool = False) -> str:
    """Return all diagnostics with blank lines between them, and their number in the last line."""
    found = tuple(diagnostics)
    return "\n\n".join([*(one_as_text(one, color=color) for one in found), _count(found)]) + "\n" if found else ""


def _count(found: tuple[Diagnostic, ...]) -> str:
    errors = sum(one.is_error for one in found)
    counts = ((errors, "error"), (len(found) - errors, "warning"))
    return ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts if count)


def one_as_text(found: Diagnostic, *, color: bool = False) -> str:
    """Return one diagnostic: header, place, excerpt, help, and where its page is."""
    gutter = " " * len(str(max([found.line, *(label.line for label in found.labels if label.file == found.file)])))
    shade = "red" if found.is_error else "yellow"
    head = styled(f"{found.severity}[{found.code}]", "bold", shade, on=color)
    lines = [f"{head}: {escaped(found.message)}", *_place(found, gutter), *_excerpts(found, gutter, color=color)]
    lines += [f"{gutter} = note: {escaped(label.text)}: {_where(label)}" for label in found.labels if not _shown(found, label)]
    if found.help:
        lines.append(f"{gutter} = help: {escaped(found.help)}")
    return "\n".join([*lines, f"{gutter} = docs: errata explain --code {found.code}"])


def _where(place: Diagnostic | Label) -> str:
    file = escaped(place.file) or "<inline>"
    return f"{file}:{place.line}:{place.column}" if place.line else file


def _place(found: Diagnostic, gutter: str) -> list[str]:
    node = f'(node "{escaped(found.node)}")' if found.node else ""
    if found.file or found.line:
        return [f"{gutter}--> {_where(found)}{f'   {node}' if node else ''}"]
    return [f"{gutter}--> {node}"] if node else []


def _shown(found: Diagnostic, label: Label) -> bool:
    """Whether the excerpt shows a label."""
    return found.lines is not None and found.line > 0 and label.line > 0 and label.file == found.file


def _excerpts(found: Diagnostic, gutter: str, *, color: bool) -> list[str]:
    """The lines concerned in order, with `...` for lines between them."""
    if found.lines is None or found.line < 1:
        return []
    rows = [f"{gutter} |"]
    previous = found.line
    for line, marks in sorted(_by_line(found).items()):
        rows += ["..."] if len(rows) > 1 and line > previous + 1 else []
        rows += _excerpt(f"{line:>{len(gutter)}}", found.lines.line_text(line), marks, color=color)
        previous = line
    return rows


def _by_line(found: Diagnostic) -> dict[int, list[_Mark]]:
    """The marks of a diagnostic by line, the caret first."""
    marks = {found.line: [_Mark(found.column, found.length, "", "^")]}
    for label in found.labels:
        if _shown(found, label):
            marks.setdefault(label.line, []).append(_Mark(label.column, label.length, label.text, "-"))
    return marks


def _excerpt(number: str, line: str, marks: list[_Mark], *, color: bool) -> list[str]:
    """One line of the file, and the rows of marks below it. Marks beyond the shown part of a long line are left out."""
    text, shift = _window(line, marks[0].column)
    placed = [_Mark(max(mark.column - shift, 1), mark.length, mark.text, mark.sign) for mark in marks]
    seen = [mark for mark in placed if mark.column <= len(text) + 1] or placed[:1]
    gutter = " " * len(number)
    below = [f"{gutter} | {styled(row, 'bold', 'red', on=color and '^' in row)}" for row in _marks(text, seen)]
    return [f"{number} | {text}".rstrip(), *below]


def _window(line: str, column: int) -> tuple[str, int]:
    """The part of a line to show, and by how many columns it moved to the left. Of a long line, the part around the column."""
    line = flattened(line)
    if len(line) <= _LONGEST_LINE:
        return line, 0
    start = max(column - _BEFORE_CARET, 0)
    dots = "..." if start else ""
    return f"{dots}{line[start : start + _LONGEST_LINE]}...", start - len(dots)


def _marks(text: str, marks: list[_Mark]) -> list[str]:
    """The rows below a line: the underlining with the text of its last mark, then the other marks' texts from right to left."""
    placed = [(*_columns(text, mark), mark) for mark in sorted(marks, key=lambda mark: (mark.column, mark.sign != "^"))]
    row = [" "] * max(start + length for start, length, _ in placed)
    for start, length, mark in sorted(placed, key=lambda one: one[2].sign == "^"):
        row[start : start + length] = mark.sign * length
    last = placed[-1][2].text
    rows = ["".join(row) + (f" {flattened(last)}" if last else "")]
    return rows + [" " * start + flattened(mark.text) for start, _, mark in reversed(placed[:-1]) if mark.text]


def _columns(text: str, mark: _Mark) -> tuple[int, int]:
    """The first column of a mark on the terminal, from 0, and its width."""
    start = mark.column - 1
    covered = text[start : start + mark.length]
    return width(text[:start]) + max(start - len(text), 0), max(width(covered), 1)


def as_object(found: Diagnostic) -> dict[str, object]:
    """Return a diagnostic as an object: code, severity, message, file, line, column, length, node, labels, help."""
    labels = [
        {"text": label.text, "file": label.file, "line": label.line, "column": label.column, "length": label.length}
        for label in found.labels
    ]
    return {
        "code": found.code,
        "severity": found.severity,
        "message": found.message,
        "file": found.file,
        "line": found.line,
        "column": found.column,
        "length": found.length,
        "node": found.node,
        "labels": labels,
        "help": found.help,
    }
